"""Probabilities of classes when the outputs z of a network are uncertain, z_d ~ N(m_d, v_d).

    P(c) = E[p_c(z)]

Two classes have one output, and E[sigmoid(z)] = Σ_k p_k Phi(s_k m / sqrt(1 + s_k² v)) by the
mixture of probits of `distributions.gated`. Of more classes, and for entropies, it is a mean over
points ξ of a standard normal distribution: Gauss-Hermite nodes of one output, a Latin hypercube and
its mirror image of several.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, log_expit, ndtr, ndtri

from bowtienet._old._arrays import slices
from bowtienet._old.distributions.gated import PROBIT_SLOPES, PROBIT_WEIGHTS
from bowtienet._old.model.outcomes import Binary, Outcome

Floats = NDArray[np.float64]

N_NODES = 32
"""Of Gauss-Hermite quadrature."""
N_POINTS = 256
"""Of the Latin hypercube with its mirror image."""
MODERATION = math.pi / 8.0
"""E[sigmoid(z)] is about sigmoid(m / sqrt(1 + π/8 v)) for z ~ N(m, v)."""
CHUNK_NUMBERS = 2**22
"""Rows x points x classes that are worked on at a time."""


@dataclass(frozen=True, kw_only=True)
class ProbabilityMoments:
    """What uncertain outputs make of the probabilities of C classes, for n rows."""

    mean: Floats
    """E[p] (n, C): the predictive probabilities."""
    variance: Floats
    """Var[p] (n, C)."""
    entropy: Floats
    """E[H(p)] (n,): of the classes if the function were known."""


def probabilities(outcome: Outcome, outputs: Floats) -> Floats:
    """p (..., C) of outputs (..., D)."""
    if isinstance(outcome, Binary):
        p = expit(outputs)
        return np.concatenate([1.0 - p, p], axis=-1)
    logs = log_expit(outputs)
    relative = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(relative / relative.sum(axis=-1, keepdims=True))


def expected_probabilities(outcome: Outcome, means: Floats, variances: Floats) -> Floats:
    """E[p] (n, C) for outputs with means and variances (n, D)."""
    if not isinstance(outcome, Binary):
        return probability_moments(outcome, means, variances).mean
    p = np.zeros_like(means)
    for weight, slope in zip(PROBIT_WEIGHTS, PROBIT_SLOPES, strict=True):
        p += weight * ndtr(slope * means / np.sqrt(1.0 + slope**2 * variances))
    return np.concatenate([1.0 - p, p], axis=-1)


def probability_moments(outcome: Outcome, means: Floats, variances: Floats) -> ProbabilityMoments:
    """Moments over uncertain outputs (n, D), by quadrature."""
    points, weights = normal_points(means.shape[-1])
    size = max(1, CHUNK_NUMBERS // (len(points) * max(means.shape[-1], 2)))
    parts = []
    for rows in slices(len(means), size):
        deviations = np.sqrt(variances[rows])
        p = probabilities(outcome, means[rows, None] + deviations[:, None] * points)
        mean = np.einsum("s,nsc->nc", weights, p)
        spread = np.einsum("s,nsc->nc", weights, (p - mean[:, None]) ** 2)
        parts.append((mean, spread, entr(p).sum(axis=-1) @ weights))
    mean, spread, entropy = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ProbabilityMoments(mean=mean, variance=spread, entropy=entropy)


@lru_cache(maxsize=16)
def normal_points(n_outputs: int) -> tuple[Floats, Floats]:
    """Points (S, D) of a standard normal distribution, and their weights (S,)."""
    if n_outputs == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
        return nodes[:, None], weights / weights.sum()
    ranks = np.random.default_rng(0).permuted(
        np.tile(np.arange(N_POINTS // 2), (n_outputs, 1)), axis=1
    )
    half = ndtri((ranks.T + 0.5) / (N_POINTS // 2))
    # Scaled to variance one along every axis; with the mirror image the mean is zero.
    half = half / np.sqrt(np.mean(half**2, axis=0))
    return np.concatenate([half, -half]), np.full(N_POINTS, 1.0 / N_POINTS)
