"""Rows outside the range of training: functions may bend there as they do inside.

A network goes on outside the data with the slope that it has at the edge, and networks of one
recipe agree on it. What a function does there is not known better than its slopes are alike inside:

    f(x) = mean(x) + Σ_j ξ_j e_j(x),   ξ_j ~ N(0, Var[∂f/∂x_j]),

with e_j how far x is below or above the training rows in column j, each side with a ξ of its own,
and the variance over these rows. Straight lines go on as lines; inside the range nothing changes.
Of warped targets the variance v of the sum is bounded by theirs, to v / (1 + v): the mean of a
target whose logarithm may be anything would be infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, to_numpy

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Outside:
    """The range of E standardised columns, and how much slopes of G functions differ in it."""

    low: Floats
    """(E,)"""
    high: Floats
    """(E,)"""
    slope_variances: Floats
    """Var[∂f/∂x] (G, E, D) over the rows of training."""
    bounded: NDArray[np.bool_]
    """Functions (G,) of warped targets."""


def excess(outside: Outside, standardized: Array) -> Floats:
    """How far rows are below and above the range of each column, (2, n, E)."""
    x = np.asarray(to_numpy(standardized), dtype=np.float64)
    return np.stack([np.maximum(outside.low - x, 0.0), np.maximum(x - outside.high, 0.0)])


def outside_variances(outside: Outside, standardized: Array) -> Floats:
    """Variances (G, n, D) of Σ_j ξ_j e_j."""
    x = np.asarray(to_numpy(standardized), dtype=np.float64)
    found = np.zeros((len(outside.bounded), len(x), outside.slope_variances.shape[2]))
    # Most rows are inside: the products are for the others.
    beyond = np.flatnonzero(np.any((x < outside.low) | (x > outside.high), axis=1))
    if beyond.size:
        variances = _unbounded(outside, excess(outside, x[beyond]))
        found[:, beyond] = variances * _shrinkage(outside, variances) ** 2
    return found


def outside_covariances(outside: Outside, standardized: Array) -> Floats:
    """Covariances (G, n, n, D) of Σ_j ξ_j e_j between rows."""
    away = excess(outside, standardized)
    found = np.einsum("sne,sme,ged->gnmd", away, away, outside.slope_variances, optimize=True)
    factor = _shrinkage(outside, _unbounded(outside, away))
    return found * factor[:, :, None] * factor[:, None]


def draw_outside(
    outside: Outside, standardized: Array, group: int, rng: np.random.Generator
) -> Floats:
    """A draw (n, D) of Σ_j ξ_j e_j."""
    away = excess(outside, standardized)
    deviations = np.sqrt(outside.slope_variances[group])
    slopes = deviations * rng.standard_normal((2, *deviations.shape))
    factor = _shrinkage(outside, _unbounded(outside, away))[group]
    return np.einsum("sne,sed->nd", away, slopes) * factor


def _unbounded(outside: Outside, away: Floats) -> Floats:
    """Σ_j Var[∂f/∂x_j] e_j² (G, n, D)."""
    return np.einsum("ne,ged->gnd", (away**2).sum(axis=0), outside.slope_variances)


def _shrinkage(outside: Outside, variances: Floats) -> Floats:
    """Factors (G, n, D) of deviations that keep those of warped targets bounded."""
    return np.where(outside.bounded[:, None, None], 1.0 / np.sqrt(1.0 + variances), 1.0)


def check_outside(outside: Outside, n_columns: int, n_groups: int, n_outputs: int) -> None:
    """Raise a ValueError if ranges and slopes are not of these columns."""
    if not isinstance(outside, Outside):
        raise ValueError("the ranges of the columns are none")
    shapes = ((n_columns,), (n_columns,), (n_groups, n_columns, n_outputs), (n_groups,))
    for values, shape, kind in zip(vars(outside).values(), shapes, "fffb", strict=True):
        own = np.asarray(values)
        if own.shape != shape or own.dtype.kind != kind or not np.isfinite(own).all():
            raise ValueError("the ranges of the columns are of other columns")
    if np.any(outside.low > outside.high) or np.any(outside.slope_variances < 0.0):
        raise ValueError("the ranges of the columns are none")
