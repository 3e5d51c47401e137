"""One number that makes forecasts of classes and counts as sure as held-out rows allow.

Classes: softmax(z / t) with the temperature t of least log loss, which is convex in 1/t.
Counts: the negative binomial (NB2), variance mu + alpha mu², with the alpha of highest likelihood.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betaln, gammaln, softmax

from bowtienet.outcomes.counts import SMALLEST_DISPERSION

Floats = NDArray[np.float64]

TEMPERATURES = (0.05, 20.0)
"""Range: where all rows are right, or wrong, the best one is at an end."""
LARGEST_DISPERSION = 100.0
"""Counts that are all zero have no finite best dispersion."""


def temperature(outputs: Floats, labels: NDArray[np.integer], weights: Floats) -> float:
    """T in `TEMPERATURES` that minimises Σ w (log Σ_c e^{z_c / t} - z_y / t).

    The slope by b = 1/t, Σ w (Σ_c P_c z_c - z_y), rises with b; if it is zero throughout, t is 1.

    Parameters
    ----------
    outputs : array (n, C)
        z, forecast for rows that were held out.
    labels : array (n,)
        Numbers of the classes.
    weights : array (n,)
        Weights of the rows.
    """
    right = np.take_along_axis(outputs, labels[:, None].astype(np.intp), axis=1)
    beyond = outputs - right

    def slope(inverse: float) -> float:
        return float(weights @ np.sum(softmax(inverse * outputs, axis=1) * beyond, axis=1))

    low, high = 1.0 / TEMPERATURES[1], 1.0 / TEMPERATURES[0]
    first, last = slope(low), slope(high)
    if first == last == 0.0:
        return 1.0
    if last <= 0.0:
        return TEMPERATURES[0]
    if first >= 0.0:
        return TEMPERATURES[1]
    return 1.0 / float(brentq(slope, low, high, rtol=1e-8))


def dispersion(rates: Floats, counts: Floats, weights: Floats) -> float:
    """Alpha of highest likelihood for means `rates`, from 0 (Poisson) to `LARGEST_DISPERSION`.

    With r = 1 / alpha it is the maximum of

        Σ w (log Γ(y + r) - log Γ(r) + y log alpha - (y + r) log(1 + alpha mu)).

    Parameters
    ----------
    rates : array (n,)
        Means mu, forecast for rows that were held out.
    counts : array (n,)
        y.
    weights : array (n,)
        Weights of the rows.
    """
    positive = counts > 0.0
    y, share = counts[positive], weights[positive]
    log_gamma = gammaln(y)

    def loss(log_alpha: float) -> float:
        alpha = math.exp(log_alpha)
        # By the beta function, which loses no digits where r is large.
        gain = log_gamma - betaln(1.0 / alpha, y) + y * log_alpha
        cost = (counts + 1.0 / alpha) * np.log1p(alpha * rates)
        return float(weights @ cost - share @ gain)

    low, high = math.log(SMALLEST_DISPERSION), math.log(LARGEST_DISPERSION)
    best = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    if best.fun >= weights @ rates:  # That of Poisson noise.
        return 0.0
    return LARGEST_DISPERSION if loss(high) <= best.fun else math.exp(best.x)
