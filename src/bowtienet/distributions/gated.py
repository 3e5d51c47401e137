"""A Gaussian behind a random gate: gamma z, z ~ N(m, v), gamma | z ~ Bernoulli(sigmoid(z/T)).

With g(z) = sigmoid(z/T) z it has the mean E[g(z)] and the variance

    Var[g(z)] + E[sigmoid (1 - sigmoid) z²],

that of z and that of the gate. A mixture of probits stands in for the sigmoid,
sigmoid(x) = Σ_k p_k Phi(s_k x) to within 5e-5, and turns all of them into closed forms: with
c = T / s_k, r² = c² + v and h = m / r,

    E[Phi(z/c) z]  = m Phi(h) + v phi(h) / r,
    E[Phi(z/c) z²] = (m² + v) Phi(h) + v m (2 - v / r²) phi(h) / r,
    E[sigmoid (1 - sigmoid) z²] = T Σ_k p_k (c² / r²) (v + m² c² / r²) phi(h) / r,

the last because sigmoid (1 - sigmoid) is T times the derivative of sigmoid(z/T).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from bowtienet._arrays import Array

PROBITS = ((0.16257377, 0.36403796), (0.58522407, 0.57778725), (0.25220216, 0.90793031))
"""(p_k, s_k), flattest first: Σ p_k Phi(s_k x) is within 4.4e-5 of sigmoid(x), the least that
three terms allow."""


def gated_moments(mean: Array, variance: Array, temperature: float) -> tuple[Array, Array, Array]:
    """E[g], Var[g] and E[sigmoid (1 - sigmoid) z²] for z ~ N(mean, variance).

    Most gates of most rows are open or shut beyond doubt, where g is z or zero: the integrals are
    done for the others only.
    """
    widest = (temperature / PROBITS[0][1]) ** 2
    # Beyond 6.5 standard deviations from the gate's edge the rest is below 1e-10.
    in_doubt = mean * mean < (variance + widest) * 6.5**2
    opened = (mean > 0.0).astype(mean.dtype)
    moments = mean * opened, variance * opened, np.zeros_like(mean)
    values = _integrals(mean[in_doubt], variance[in_doubt], temperature)
    for moment, value in zip(moments, values, strict=True):
        moment[in_doubt] = value
    return moments


def _integrals(mean: Array, variance: Array, temperature: float) -> tuple[Array, Array, Array]:
    opened = edge = bend = gates = np.zeros_like(mean)
    for weight, slope in PROBITS:
        width = (temperature / slope) ** 2
        inverse = 1.0 / np.sqrt(variance + width)
        standardized = mean * inverse
        density = np.exp(-0.5 * standardized * standardized)
        density = density * (weight / math.sqrt(2.0 * math.pi)) * inverse
        ratio = width * inverse * inverse
        opened = opened + weight * ndtr(standardized)
        edge = edge + density
        bend = bend + (1.0 + ratio) * density
        gates = gates + ratio * (variance + mean * mean * ratio) * density
    first = mean * opened + variance * edge
    second = (mean * mean + variance) * opened + variance * mean * bend
    total = np.maximum(second - first * first, 0.0)
    gates = np.minimum(temperature * gates, total)
    return first, total - gates, gates
