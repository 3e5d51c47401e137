"""Components of a mixture, rows by rows: weights, means, deviations and warps, and their sums.

    log p(x) = log Σ_k w_k N(g_k(x) | m_k, d_k²) g_k'(x),   F(x) = Σ_k w_k Φ((g_k(x) - m_k) / d_k).

Weights are those of all rows, (K,), or of each row, of the shape of the means.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from bowtienet._old._arrays import map_arrays, slices
from bowtienet._old.distributions.yeo_johnson import (
    Warp,
    from_warped,
    log_slope,
    mean_and_deviation,
    to_warped,
)
from bowtienet._old.prediction.quantiles import (
    beside,
    block_quantiles,
    warped_quantiles,
    weighted_sum,
)

_SMALL = 2**13
"""Numbers in arrays that many steps go over while a core's cache holds them."""
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Components(NamedTuple):
    """Components of some rows that have weight."""

    weights: np.ndarray
    """(K,) or (K, ...)"""
    means: np.ndarray
    """(K, ...)"""
    deviations: np.ndarray
    """(K, ...)"""
    warp: Warp | None
    """Arrays (K, 1) or (K, 1, D)."""


def components_with_weight(
    weights: np.ndarray, means: np.ndarray, deviations: np.ndarray, warp: Warp | None
) -> Components:
    """Without components that have no weight in any row.

    Where a component has no weight in a row, it has mean and deviation of the heaviest one there:
    no number without weight has a say in a row's size, and none overflows.
    """
    members = np.flatnonzero(weights.reshape(len(weights), -1).any(axis=1))
    if members.size < len(weights):
        warp = map_arrays(lambda a: a[members], warp)
        weights, means, deviations = weights[members], means[members], deviations[members]
    if weights.ndim > 1 and not weights.all():
        heaviest = np.argmax(weights, axis=0)[None]
        means, deviations = (
            np.where(weights > 0.0, a, np.take_along_axis(a, heaviest, axis=0))
            for a in (means, deviations)
        )
    return Components(weights, means, deviations, warp)


def standard_deviation(parts: Components) -> np.ndarray:
    """√Σ w (d² + (m - Σ w m)²) by hypotenuses: no square is ever formed."""
    distance = parts.means - weighted_sum(parts.weights, parts.means)
    roots = np.sqrt(beside(parts.weights, parts.means))
    return np.hypot.reduce(roots * np.hypot(parts.deviations, distance), axis=0)


def unwarped(parts: Components) -> Components:
    """The components of u with their means and deviations; linear warps need no quadrature."""
    warp = parts.warp
    assert warp is not None
    means, deviations = from_warped(warp, parts.means), parts.deviations * warp.scale
    bent = np.flatnonzero(np.any((warp.exponent != 1.0).reshape(len(means), -1), axis=1))
    for some in slices(bent.size, max(1, _SMALL // means[0].size)):
        own = bent[some]
        means[own], deviations[own] = mean_and_deviation(
            map_arrays(lambda a, own=own: a[own], warp), parts.means[own], parts.deviations[own]
        )
    return Components(parts.weights, means, deviations, None)


def quantiles_of(parts: Components, normal: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Quantiles (..., m) for normal quantiles (m,) and levels (3, m); with warps those of u.

    m + d Φ^{-1}(q), exactly, in rows where one component has all the weight.
    """
    alone = np.asarray(np.count_nonzero(parts.weights, axis=0) == 1)
    if alone.all():
        return _gaussian_quantiles(parts, normal)
    if parts.warp is None:
        found = block_quantiles(*parts[:3], levels)
    else:
        found = warped_quantiles(*parts[:3], parts.warp, levels)
    if alone.any():
        found[alone] = _gaussian_quantiles(parts, normal)[alone]
    return found


def standardized(y: np.ndarray, origin: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """u = (y - origin) / unit; halves, because the distance of two numbers may overflow."""
    return 2.0 * ((0.5 * y - 0.5 * origin) / unit)


def restored(u: np.ndarray, origin: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """y = origin + unit u; halves, because the parts of the sum may overflow where y does not."""
    return 2.0 * (0.5 * origin + unit * (0.5 * u))


def log_density(parts: Components, x: np.ndarray) -> np.ndarray:
    """log p (..., m) of u at points x (..., m)."""
    z = _z_scores(parts, x)
    with np.errstate(divide="ignore"):
        log_weights = np.log(beside(parts.weights, z))
    constants = log_weights - np.log(parts.deviations)[..., None] - _LOG_ROOT_TWO_PI
    if parts.warp is not None:
        constants = constants + log_slope(_beside_points(parts.warp), x)
    return np.logaddexp.reduce(constants - 0.5 * z * z, axis=0)


def lower_tail(parts: Components, x: np.ndarray) -> np.ndarray:
    """F (..., m) at points x (..., m)."""
    return _tail(parts.weights, _z_scores(parts, x))


def upper_tail(parts: Components, x: np.ndarray) -> np.ndarray:
    """1 - F (..., m) at points x (..., m), without cancellation."""
    return _tail(parts.weights, -_z_scores(parts, x))


def _tail(weights: np.ndarray, z: np.ndarray) -> np.ndarray:
    total = np.cumsum(weights, axis=0)[-1:]
    return weighted_sum(weights, ndtr(z)) / beside(total, z)[0]


def _z_scores(parts: Components, x: np.ndarray) -> np.ndarray:
    """(g(x) - m) / d of the components, (K, ..., m), at points x (..., m)."""
    if parts.warp is not None:
        x = to_warped(_beside_points(parts.warp), x)
    # Halves, because the distance of two numbers near ±1e308 would overflow.
    half = (0.5 * x - 0.5 * parts.means[..., None]) / parts.deviations[..., None]
    return 2.0 * half


def _beside_points(warp: Warp) -> Warp:
    found: Warp = map_arrays(lambda a: a[..., None], warp)
    return found


def _gaussian_quantiles(parts: Components, normal: np.ndarray) -> np.ndarray:
    """m + d Φ^{-1}(q), or its g^{-1}, of the heaviest component of a row."""
    # Where it has all the weight, its mean and deviation are those of every component.
    found = parts.deviations[0, ..., None] * normal
    found += parts.means[0, ..., None]
    if parts.warp is None:
        return found
    heaviest = np.argmax(parts.weights, axis=0)
    own: Warp = map_arrays(lambda a: a[heaviest], parts.warp)
    return from_warped(own, found)
