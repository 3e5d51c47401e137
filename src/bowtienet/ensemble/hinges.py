"""What the rows leave open between and beyond them.

Networks agree where they were not trained: units bend at rows, and a gap is crossed by straight
lines. So a linear model of hinges stands next to them, h_m(x) = max(w_m'x + b_m, 0), with the
directions w of trained units and kinks anywhere between two rows. With y ~ N(H'v, s²) and
v_m ~ N(0, τ),

    Cov[v] = S = (H'CH / σ² + I / τ)^{-1} = S H'CH S / σ² + S S / τ.

The first part is what the noise of the rows does to v, which the disagreement of networks has
already. The second is what rows do not determine, e²(x) = |S h(x)|² / τ: next to nothing where
rows are dense, large in gaps, and in the end linear outside. σ² is the noise of the networks, and τ
comes from the evidence (MacKay's fixed point). Only e is used: the mean is that of the networks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import with_ones

Floats = NDArray[np.float64]

UNITS = 64
"""Hinges: more of them cost predictions more and change little."""


@dataclass(frozen=True, kw_only=True)
class Hinges:
    """Units and the posterior of what they add up to, for W warps and D targets."""

    view: str
    """What the units see."""
    weights: Floats
    """(M, K+1), bias first; M may be 0."""
    roots: Floats
    """(W, D, M+1, M+1): S / √τ for (1, h)."""


def learn_hinges(
    view: str,
    directions: Floats,
    inputs: NDArray[np.float32],
    goals: Floats,
    weights: Floats,
    noise: Floats,
    rng: np.random.Generator,
) -> Hinges:
    """Hinges of rows (n, K), for targets (W, n, D) with noise variances (W, D).

    `UNITS` of the directions (U, K), weights of trained units, are drawn, and the kinks.
    """
    chosen = directions[rng.choice(len(directions), UNITS, replace=len(directions) < UNITS)]
    left, right = inputs[rng.integers(0, len(inputs), (2, UNITS))].astype(np.float64)
    kinks = left + rng.uniform(size=(UNITS, 1)) * (right - left)
    units = np.column_stack([-np.sum(chosen * kinks, axis=1), chosen])
    share = weights / weights.sum()
    # Slopes of one: a direction that hardly varies would else rise without limit outside. What no
    # row activates would begin to rise somewhere outside.
    size = np.linalg.norm(units[:, 1:], axis=1)
    active = np.mean(activations(units, inputs)[:, 1:] > 0.0, axis=0)
    kept = (size > 0.0) & (active > 0.02)
    units = units[kept] / size[kept, None]
    design = activations(units, inputs)
    moment = (design.T * weights) @ design
    roots = np.zeros((*noise.shape, len(moment), len(moment)))
    for w, d in np.ndindex(noise.shape):
        target = goals[w, :, d] - share @ goals[w, :, d]
        # The evidence is of all hinges alike: functions bend more somewhere, and gaps may be there
        # (docs/measurements/odd.md).
        variance = 10.0 * _prior_variance(design, moment, target, weights)
        roots[w, d] = root_of(moment, max(float(noise[w, d]), 1e-8), variance)
    return Hinges(view=view, weights=units, roots=roots)


def root_of(moment: Floats, noise: float, variance: float) -> Floats:
    """S / √τ for Σ c h h' (M+1, M+1) with the constant first, which has no prior to speak of."""
    prior = np.r_[1e-9, np.full(len(moment) - 1, 1.0 / variance)]
    return np.asarray(np.sqrt(prior)[:, None] * np.linalg.inv(moment / noise + np.diag(prior)))


def activations(units: Floats, inputs: NDArray[np.floating]) -> Floats:
    """(1, h) of rows (n, M+1)."""
    return with_ones(np.maximum(inputs @ units[:, 1:].T + units[:, 0], 0.0))


def deviations(hinges: Hinges, inputs: NDArray[np.floating]) -> Floats:
    """Functions (W, M+1, n, D) whose squares add up to e².

    On a transformed scale, all but the first, e is at most one, the spread of all targets: back in
    the user's unit the mean would be made of nothing else.
    """
    hidden = activations(hinges.weights, inputs)
    values = np.moveaxis(hinges.roots @ hidden.T, 1, -1)
    values[1:] /= np.sqrt(np.maximum(np.sum(values[1:] ** 2, axis=1, keepdims=True), 1.0))
    return values


def variances(hinges: Hinges, inputs: NDArray[np.floating]) -> Floats:
    """e² (W, n, D)."""
    return np.sum(deviations(hinges, inputs) ** 2, axis=1)


def _prior_variance(design: Floats, moment: Floats, target: Floats, weights: Floats) -> float:
    """τ by the evidence, τ <- |v|² / Σ γ and s² <- |y - Hv|² / (n - Σ γ)."""
    values, basis = np.linalg.eigh(moment)
    values = np.maximum(values, 0.0)
    along = basis.T @ (design.T @ (weights * target))
    total = float(weights @ target**2)
    count = float(weights.sum())
    least = 1e-8  # for standardised targets
    variance, noise = (max(share * total / count, least) for share in (1.0, 0.1))
    for _ in range(30):
        mean = along / (values + noise / variance)
        gamma = float(np.sum(values / (values + noise / variance)))
        variance = max(float(mean @ mean) / max(gamma, 1e-9), least)
        misfit = total - 2.0 * float(mean @ along) + float(values @ mean**2)
        noise = max(misfit / max(count - gamma, 0.5), least)
    return variance if math.isfinite(variance) else 1.0
