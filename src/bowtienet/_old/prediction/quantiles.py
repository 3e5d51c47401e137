"""Quantiles of mixtures of Gaussians: Σ_k w_k Φ((x - m_k) / d_k) = tail solved for x.

The answer for a row is the same double whatever rows stand beside it, and levels are rounded to a
grid coarser than the noise of F, so that quantiles keep the order of their levels. Components that
are Gaussian after a warp g_k have (g_k(x) - m_k) / d_k in its place.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from bowtienet._old.distributions.yeo_johnson import Warp, from_warped, warped_and_slope

_LEVEL_BITS = 48
"""Digits kept of a quantile's level; see `round_tail`."""
_NEWTON_STEPS = 40
"""Iterations before bisection alone: most quantiles need five."""
_ALL_STEPS = _NEWTON_STEPS + 65
"""Bisection over the doubles themselves ends after 64 steps, whatever the distribution."""
_EPSILON, _SMALLEST = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
_LOWEST_INTEGER = np.iinfo(np.int64).min


def round_tail(tail: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tails on a grid coarser than rounding errors, and the error allowed of F at a quantile.

    With z = (y - m)/d rounded, Φ(z) is uncertain by about (1 + z²) 2^-52 of itself, and z² grows
    like -log Φ. Steps of 2^-48 (1 - log2 tail) are several times that, so that quantiles of two
    different levels come out in their order, and those of one level equal, in whatever call.
    """
    mantissa, exponent = np.frexp(tail)
    bits = _level_bits(exponent)
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    # What is rounded up to a power of two has the slack of that power.
    exponent = np.frexp(rounded)[1]
    return rounded, np.ldexp(0.125, exponent - _level_bits(exponent))


def rounded_levels(tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Tails, slacks and signs (3, m) of quantiles; see `block_quantiles`."""
    tail, slack = round_tail(tail)
    # The median has one value, so that it parts those below from those above.
    return np.stack([tail, slack, np.where(upper & (tail < 0.5), -1.0, 1.0)])


def normal_quantiles(tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """±Φ^{-1}(tail), in the order of the tails: the library's may fall by a rounding error."""
    order, quantiles = np.argsort(tail), ndtri(tail)
    quantiles[order] = np.maximum.accumulate(quantiles[order])
    return np.where(upper, -1.0, 1.0) * quantiles


def block_quantiles(
    weights: np.ndarray, means: np.ndarray, deviations: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """Quantiles (..., m) of components (K, ...) for levels (3, m): tail, slack and sign.

    Weights are (K,), or (K, ...) where rows have their own.

    A power of two brings each row to size one, which changes no digit. Quantiles above the median
    are negative ones of the mirrored mixture, whose small tail is exact.
    """
    sign = levels[2]
    exponent = np.frexp(np.maximum(np.abs(means), deviations).max(axis=0))[1]
    mirrored = np.ldexp(means, -exponent)[..., None] * sign
    # Less than 1e-308 of the row's size would be zero: that narrow is as good as a step.
    scaled = np.maximum(np.ldexp(deviations, -exponent), _SMALLEST)
    spread = np.repeat(scaled[..., None], sign.size, axis=-1)
    shape = mirrored.shape[1:]
    every = np.broadcast_to(levels.reshape(3, *[1] * len(exponent.shape), -1), (3, *shape))
    flat, widths, wanted = (a.reshape(a.shape[0], -1) for a in (mirrored, spread, every))
    root = _solve(_beside_levels(weights, sign.size), flat, widths, wanted)
    return np.ldexp(sign * root.reshape(shape), exponent[..., None])


def warped_quantiles(
    weights: np.ndarray, means: np.ndarray, deviations: np.ndarray, warp: Warp, levels: np.ndarray
) -> np.ndarray:
    """Quantiles (n, m) of u, of components (K, n) that are Gaussian after warps (K, 1)."""
    shape, sign = (*means.shape[1:], levels.shape[1]), levels[2]
    mirrored = (means[..., None] * sign).reshape(len(means), -1)
    spread = np.repeat(np.maximum(deviations, _SMALLEST), sign.size, axis=1)
    shares = _beside_levels(weights, sign.size)
    root = _solve(shares, mirrored, spread, np.tile(levels, (1, shape[0])), warp)
    return sign * root.reshape(shape)


def _level_bits(exponent: np.ndarray) -> np.ndarray:
    """Digits kept of tails with these exponents."""
    return _LEVEL_BITS - np.ceil(np.log2(1.0 - exponent)).astype(exponent.dtype)


def _beside_levels(weights: np.ndarray, n_levels: int) -> np.ndarray:
    """Weights of rows as (K, N), those of a row for each of its levels; shared ones stay (K,)."""
    if weights.ndim == 1:
        return weights
    return np.repeat(weights.reshape(len(weights), -1), n_levels, axis=1)


def _solve(
    weights: np.ndarray,
    means: np.ndarray,
    deviations: np.ndarray,
    levels: np.ndarray,
    warp: Warp | None = None,
) -> np.ndarray:
    """x (N,) with Σ w Φ((x - m)/d) = tail <= ½, for components (K, N) and levels (3, N).

    Weights are (K,) or (K, N).
    Newton's method inside a bracket that always shrinks, on the scale of Φ^{-1}(F(x)), where one
    Gaussian is a straight line. A root that falls between two neighbouring doubles becomes the
    larger one of them, after the mirroring: hence `sign`.
    """
    tail, slack, sign = levels
    target = ndtri(tail)
    ends = means + deviations * target
    # What rounding may have taken from the ends of the bracket is given back.
    if warp is None:
        rounding = 8.0 * _EPSILON * (np.abs(means) - deviations * target).max(axis=0)
        low, high = ends.min(axis=0) - rounding, ends.max(axis=0) + rounding
    else:
        size = np.abs(means) - deviations * target + np.abs(warp.center) / warp.scale
        ends, above = (
            sign * from_warped(warp, sign * (ends + rounding))
            for rounding in (-8.0 * _EPSILON * size, 8.0 * _EPSILON * size)
        )
        # A component has its own warp also where it has no weight, and its ends are no bracket.
        present = True if weights.ndim == 1 else weights > 0.0
        low = ends.min(axis=0, where=present, initial=np.inf)
        high = above.max(axis=0, where=present, initial=-np.inf)
        low, high = low - 64.0 * _EPSILON * np.abs(low), high + 64.0 * _EPSILON * np.abs(high)
    root, x = low.copy(), weighted_sum(weights, ends)
    index, move, keep = np.arange(x.size), high - low, low < high
    for iteration in range(_ALL_STEPS):
        if not keep.all():
            kept = np.flatnonzero(keep)
            entries = (index, means, deviations, tail, slack, sign, target, low, high, x, move)
            index, means, deviations, tail, slack, sign, target, low, high, x, move = (
                entry.take(kept, axis=-1) for entry in entries
            )
            weights = weights if weights.ndim == 1 else weights.take(kept, axis=1)
        if not index.size:
            break
        reached, step = _newton(weights, means, deviations, x, target, sign, warp)
        below = reached < tail
        low, high = np.where(below, x, low), np.where(below, high, x)
        met = np.abs(reached - tail) <= slack
        root[index] = np.where(met, x, np.where(sign < 0.0, low, high))
        keep = ~met & (np.nextafter(low, np.inf) < high)
        x, move = _next_point(x, step, low, high, move, iteration)
    return root


def _newton(
    weights: np.ndarray,
    means: np.ndarray,
    deviations: np.ndarray,
    x: np.ndarray,
    target: np.ndarray,
    sign: np.ndarray,
    warp: Warp | None,
) -> tuple[np.ndarray, np.ndarray]:
    """F(x), and the step (Φ^{-1}(tail) - u) φ(u) / F'(x) with u = Φ^{-1}(F(x))."""
    if warp is None:
        z = (x - means) / deviations
        density = weighted_sum(weights, np.exp(-0.5 * z * z) / deviations)
    else:
        warped, slope = warped_and_slope(warp, sign * x)
        z = (sign * warped - means) / deviations
        density = weighted_sum(weights, np.exp(-0.5 * z * z) * (slope / deviations))
    reached = weighted_sum(weights, ndtr(z))
    u = ndtri(reached)
    return reached, (target - u) * np.exp(-0.5 * u * u) / density


def _next_point(
    x: np.ndarray,
    step: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    move: np.ndarray,
    iteration: int,
) -> tuple[np.ndarray, np.ndarray]:
    """x + step if that stays in the bracket and halves the last move, else a middle; and the move.

    Halving the bracket is quick when all numbers are of one size, halving the number of doubles in
    it when they are not: the two take turns.
    """
    new = x + step
    # A step too small to be seen asks whether the root lies before the next double.
    new = np.where(new == x, np.nextafter(x, np.where(x == low, np.inf, -np.inf)), new)
    # Steps of a few doubles are rounding errors, which need not shrink.
    short = np.abs(new - x) <= np.maximum(0.5 * move, 4.0 * np.spacing(np.abs(x)))
    trusted = (low < new) & (new < high) & short & (iteration < _NEWTON_STEPS)
    if not trusted.all():
        by_value = iteration % 2 == 0 and iteration < _NEWTON_STEPS
        middle = 0.5 * low + 0.5 * high if by_value else _middle_double(low, high)
        new = np.where(trusted, new, middle)
    return new, np.abs(new - x)


def _middle_double(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The double with as many doubles between it and `low` as between it and `high`."""
    first, second = _rank(low.view(np.int64)), _rank(high.view(np.int64))
    return _rank((first >> 1) + (second >> 1) + (first & second & 1)).view(np.float64)


def _rank(bits: np.ndarray) -> np.ndarray:
    """Doubles' bits as integers in the order of the doubles, and back again."""
    return np.where(bits < 0, _LOWEST_INTEGER - bits, bits)


def weighted_sum(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Σ w v, added in the order of the components; weights (K,), or (K, n) of values (K, n, ...).

    A matrix product is no faster here, and rounds a row differently when its neighbours change.
    """
    weights = beside(weights, values)
    total = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total += weight * value
    return total


def beside(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weights with further axes of length one, so that they are broadcast against the values."""
    return weights.reshape(*weights.shape, *[1] * (values.ndim - weights.ndim))
