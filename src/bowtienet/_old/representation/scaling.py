"""Standardising columns, safe for any finite scale, and back again.

The engine's priors speak of inputs and targets with mean 0 and spread of order 1. A constant
column is centred and left at zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, like, namespace, to_numpy
from bowtienet._old.data.rows import build_inputs, build_weights
from bowtienet._old.representation.quantiles import weighted_quantiles

NORMAL_QUARTILES = 1.3489795
"""Distance of the quartiles of a standard normal distribution."""
FARTHEST = 1e6
"""Deviations from which on features are drawn in. Squares of squares stay in range there, also in
single precision; of n rows of one weight none is further than sqrt(n) deviations."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """x -> (x - center) / scale, column by column, both (K,)."""

    center: Array
    scale: Array


@dataclass(frozen=True, kw_only=True)
class ColumnMoments:
    """Weighted mean and standard deviation of columns, both (K,) and relative to their `unit`.

    The unit (K,) of a column is its largest magnitude, so that neither sums nor squares overflow or
    vanish; 0 for a column of zeros, whose mean and spread are 0 too. `weight` is the sum of the
    weights of the rows; rows of weight 0 are absent, and there may be no others.
    """

    weight: float
    unit: Array
    mean: Array
    spread: Array


def fit_scaling(values: Any, weights: Any = None) -> Scaling:
    """Weighted mean and standard deviation of the columns of `values` (n, K).

    A column whose spread is rounding of its mean counts as constant; its scale is its magnitude, so
    that the rounding stays rounding (or 1 for a column of zeros).
    """
    return scaling_from(column_moments(values, weights))


def fit_robust_scaling(values: np.ndarray, weights: np.ndarray) -> Scaling:
    """Weighted median, and the deviation of a normal distribution with the same quartiles.

    Where half of the rows share a value it is that of `fit_scaling`.
    """
    plain = fit_scaling(values, weights)
    counted, levels = weights > 0.0, np.array([0.25, 0.5, 0.75])
    found = np.stack(
        [weighted_quantiles(x[counted], weights[counted], levels) for x in values.T], axis=1
    )
    scale = (found[2] - found[0]) / NORMAL_QUARTILES
    usable = scale > 64.0 * np.finfo(float).eps * np.abs(found[1])
    return Scaling(
        center=np.where(usable, found[1], to_numpy(plain.center)),
        scale=np.where(usable, scale, to_numpy(plain.scale)),
    )


def column_moments(values: Any, weights: Any = None) -> ColumnMoments:
    """Moments of the columns of `values` (n, K), the whole table or a block of it."""
    values = build_inputs(values, name="values")
    xp = namespace(values)
    weights = build_weights(weights, values, allow_zero=True)
    if not bool(xp.any(weights > 0.0)):
        zeros = xp.zeros_like(values[0, :])
        return ColumnMoments(weight=0.0, unit=zeros, mean=zeros, spread=zeros)
    counts = (weights > 0.0)[:, None]
    share = (weights / xp.max(weights))[:, None]
    share = share / xp.sum(share)
    # Rows of weight 0 are absent: their values must not even overflow.
    present = xp.where(counts, values, xp.zeros_like(values))
    size = xp.max(xp.abs(present), axis=0)
    relative = present / _or_one(size)
    mean = xp.sum(share * relative, axis=0)
    spread = xp.sqrt(xp.sum(share * (relative - mean) ** 2, axis=0))
    total = float(np.sum(to_numpy(weights), dtype=np.float64))
    return ColumnMoments(weight=total, unit=size, mean=mean, spread=spread)


def combine_moments(parts: Iterable[ColumnMoments]) -> ColumnMoments:
    """Moments of all rows from those of disjoint blocks, in the largest of their units.

    With shares w_b of the weight, mean = Σ w_b mean_b and
    spread² = Σ w_b (spread_b² + (mean_b - mean)²): within blocks and between them.
    """
    parts = list(parts)
    if not parts:
        raise ValueError("parts are empty: moments of at least one block are needed.")
    present = [part for part in parts if part.weight > 0.0]
    if not present:
        return parts[0]
    xp = namespace(present[0].unit)
    units = xp.stack([part.unit for part in present])
    unit = xp.max(units, axis=0)
    ratio = units / _or_one(unit)
    weights = np.asarray([part.weight for part in present])
    share = weights / np.max(weights)
    share = like(unit, share / np.sum(share))[:, None]
    means = ratio * xp.stack([part.mean for part in present])
    spreads = ratio * xp.stack([part.spread for part in present])
    mean = xp.sum(share * means, axis=0)
    spread = xp.sqrt(xp.sum(share * (spreads**2 + (means - mean) ** 2), axis=0))
    return ColumnMoments(weight=float(np.sum(weights)), unit=unit, mean=mean, spread=spread)


def scaling_from(moments: ColumnMoments) -> Scaling:
    """The scaling that moments stand for; see `fit_scaling` for constant columns."""
    if not moments.weight > 0.0:
        raise ValueError("weights are all zero: at least one row must have a positive weight.")
    xp = namespace(moments.spread)
    unit, spread = _or_one(moments.unit), moments.spread
    constant = spread <= 64.0 * xp.finfo(spread.dtype).eps
    spread = xp.where(constant, xp.ones_like(spread), spread)
    return Scaling(center=moments.mean * unit, scale=spread * unit)


def standardize(scaling: Scaling, values: Any) -> Array:
    """(x - center) / scale, halved first and doubled last so that no difference overflows.

    It is infinite where x is more scales away than a number can say.
    """
    values = build_inputs(values, scaling.center.shape[0], name="values")
    half, scale = _half_and_scale(scaling, values)
    with np.errstate(over="ignore"):
        return namespace(half).astype(half / scale * 2.0, values.dtype, copy=False)


def standardize_features(scaling: Scaling, values: Any) -> Array:
    """z = (x - center) / scale, and ±C (1 + log(|z| / C)) where |z| is above C, `FARTHEST`.

    The two meet with the same slope, and the second grows without end; it is below 2e9 for every x
    and scale that are doubles, so that no product that a network makes of it overflows.
    """
    values = build_inputs(values, scaling.center.shape[0], name="values")
    half, scale = _half_and_scale(scaling, values)
    xp = namespace(half)
    # From scales that C times would overflow, nothing is so far away.
    end = 0.5 * FARTHEST * xp.minimum(scale, like(scale, xp.finfo(scale.dtype).max / FARTHEST))
    far = xp.abs(half) > end
    if not bool(xp.any(far)):
        return xp.astype(half / scale * 2.0, values.dtype, copy=False)
    near = xp.where(far, xp.zeros_like(half), half) / scale * 2.0
    beyond = xp.log(xp.where(far, xp.abs(half), end)) - xp.log(end)
    found = xp.where(far, xp.sign(half) * (FARTHEST * (1.0 + beyond)), near)
    return xp.astype(found, values.dtype, copy=False)


def drawn_in(values: Array, limit: float) -> Array:
    """Values x beyond C, the limit, as ±C (1 + log(|x| / C)); see `standardize_features`."""
    xp = namespace(values)
    size = xp.abs(values)
    far = size > limit
    if not bool(xp.any(far)):
        return values
    beyond = xp.log(xp.where(far, size, xp.full_like(size, limit)) / limit)
    return xp.where(far, xp.sign(values) * (limit * (1.0 + beyond)), values)


def restore_mean(scaling: Scaling, mean: Array) -> Array:
    """Mean in the original unit."""
    return mean * like(mean, scaling.scale) + like(mean, scaling.center)


def restore_deviation(scaling: Scaling, deviation: Array) -> Array:
    """Standard deviation in the original unit (its square may be out of range there)."""
    return deviation * like(deviation, scaling.scale)


def restore_variance(scaling: Scaling, variance: Array) -> Array:
    """Variance in the original unit; a ValueError where a double would make it 0 or infinite."""
    xp = namespace(variance)
    deviation = restore_deviation(scaling, xp.sqrt(variance))
    with np.errstate(over="ignore", under="ignore"):
        found = deviation**2
    check_squares(scaling, bool(xp.any(~xp.isfinite(found) | ((found == 0.0) & (variance > 0.0)))))
    return found


def check_squares(scaling: Scaling, lost: bool) -> None:
    """Raise a ValueError if squares in the unit of the targets were lost."""
    if not lost:
        return
    scales = to_numpy(scaling.scale)
    unit = float(scales[np.argmax(np.abs(np.log10(scales)))])
    raise ValueError(
        f"no double can hold the variances of a target with a spread of {unit:.3g}: fit it divided "
        f"by {unit:.0e}, or ask for standard deviations (return_std=True), which have its unit."
    )


def _half_and_scale(scaling: Scaling, values: Array) -> tuple[Array, Array]:
    """(x - center) / 2 and the scale, in double precision where the values' own cannot hold it."""
    xp = namespace(values)
    limits = xp.finfo(values.dtype)
    center, scale = np.abs(to_numpy(scaling.center)), to_numpy(scaling.scale)
    if center.size and (
        max(float(center.max()), float(scale.max())) > float(limits.max)
        or scale.min() < float(limits.smallest_normal)
    ):
        values = xp.astype(values, xp.float64, copy=False)
    return 0.5 * values - 0.5 * like(values, scaling.center), like(values, scaling.scale)


def _or_one(size: Array) -> Array:
    """Sizes to divide by: 1 instead of 0."""
    xp = namespace(size)
    return xp.where(size > 0.0, size, xp.ones_like(size))
