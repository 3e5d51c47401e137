"""Standardising columns, safe for any finite scale, and back again.

The engine's priors speak of inputs and targets with mean 0 and spread of order 1. A constant
column is centred and left at zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bowtienet._arrays import Array, like, namespace
from bowtienet.data.rows import build_inputs, build_weights


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """x -> (x - center) / scale, column by column, both (K,)."""

    center: Array
    scale: Array


def fit_scaling(values: Any, weights: Any = None) -> Scaling:
    """Weighted mean and standard deviation of the columns of `values` (n, K).

    Columns are first divided by their largest magnitude, so that neither sums nor squares overflow
    or vanish, whatever the unit. A column whose spread is rounding of its mean counts as constant;
    its scale is its magnitude, so that the rounding stays rounding (or 1 for a column of zeros).
    """
    values = build_inputs(values, name="values")
    xp = namespace(values)
    weights = build_weights(weights, values)
    counts = (weights > 0.0)[:, None]
    share = (weights / xp.max(weights))[:, None]
    share = share / xp.sum(share)
    # Rows of weight 0 are absent: their values must not even overflow.
    present = xp.where(counts, values, xp.zeros_like(values))
    size = xp.max(xp.abs(present), axis=0)
    unit = xp.where(size > 0.0, size, xp.ones_like(size))
    relative = present / unit
    mean = xp.sum(share * relative, axis=0)
    spread = xp.sqrt(xp.sum(share * (relative - mean) ** 2, axis=0))
    constant = spread <= 64.0 * xp.finfo(values.dtype).eps
    spread = xp.where(constant, xp.ones_like(spread), spread)
    return Scaling(center=mean * unit, scale=spread * unit)


def standardize(scaling: Scaling, values: Any) -> Array:
    """(x - center) / scale, halved first and doubled last so that no difference overflows."""
    values = build_inputs(values, scaling.center.shape[0], name="values")
    center, scale = like(values, scaling.center), like(values, scaling.scale)
    return (0.5 * values - 0.5 * center) / scale * 2.0


def restore_mean(scaling: Scaling, mean: Array) -> Array:
    """Mean in the original unit."""
    return mean * like(mean, scaling.scale) + like(mean, scaling.center)


def restore_deviation(scaling: Scaling, deviation: Array) -> Array:
    """Standard deviation in the original unit (its square may be out of range there)."""
    return deviation * like(deviation, scaling.scale)
