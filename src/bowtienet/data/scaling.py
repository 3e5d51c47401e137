"""Standardising columns, safe for any finite scale, and back again.

The engine's priors speak of inputs and targets with mean 0 and spread of order 1. A constant
column is centred and left at zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from bowtienet._arrays import Array, namespace


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """x -> (x - center) / scale, column by column, both (K,)."""

    center: Array
    scale: Array


def fit_scaling(values: Array, weights: Array | None = None) -> Scaling:
    """Weighted mean and standard deviation of the columns of `values` (n, K).

    Columns are first divided by their largest magnitude, so that neither sums nor squares overflow
    or vanish, whatever the unit. A column whose spread is rounding of its mean counts as constant
    and gets the scale 1.
    """
    xp = namespace(values)
    weights = xp.ones_like(values[:, 0]) if weights is None else weights
    share = (weights / xp.sum(weights))[:, None]
    size = xp.max(xp.abs(values) * xp.astype(share > 0.0, values.dtype), axis=0)
    unit = xp.where(size > 0.0, size, xp.ones_like(size))
    relative = values / unit
    mean = xp.sum(share * relative, axis=0)
    spread = xp.sqrt(xp.sum(share * (relative - mean) ** 2, axis=0))
    constant = spread <= 64.0 * xp.finfo(values.dtype).eps
    return Scaling(
        center=mean * unit,
        scale=xp.where(constant, unit, xp.where(constant, xp.ones_like(spread), spread) * unit),
    )


def standardize(scaling: Scaling, values: Array) -> Array:
    """(x - center) / scale."""
    return (values - scaling.center) / scaling.scale


def restore_mean(scaling: Scaling, mean: Array) -> Array:
    """Mean in the original unit."""
    return mean * scaling.scale + scaling.center


def restore_deviation(scaling: Scaling, deviation: Array) -> Array:
    """Standard deviation in the original unit (its square may be out of range there)."""
    return deviation * scaling.scale
