"""Checks of what a mixture is built from, with one sentence for what is wrong."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from bowtienet._old._arrays import map_arrays, to_numpy
from bowtienet._old.distributions.yeo_johnson import LARGEST_EXPONENT, LEAST_EXPONENT, Warp

_WEIGHT_ROUNDING = 1e-6
"""Weights computed in single precision sum to one within this."""
_LARGEST = 1e100
"""Warped numbers are of the size of one; those up to this cannot overflow on any way back."""


def check_components(
    weights: Any, means: Any, deviations: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights with sum one, means and deviations as arrays of doubles, if they fit together."""
    weights, means, deviations = (
        np.ascontiguousarray(to_numpy(values), dtype=np.float64)
        for values in (weights, means, deviations)
    )
    if means.ndim not in (2, 3) or not _within(means, -np.inf):
        raise ValueError(f"means must be finite and (K, n) or (K, n, D), got {means.shape}.")
    if deviations.shape != means.shape or not _within(deviations, 0.0):
        raise ValueError("deviations must be positive, finite and of the shape of means.")
    if weights.ndim > 1:
        return _weights_of_rows(weights, means), means, deviations
    total = float(np.sum(weights))
    fits = weights.shape == means.shape[:1] and np.min(weights) >= 0.0
    if not fits or not abs(total - 1.0) <= _WEIGHT_ROUNDING:
        raise ValueError(f"weights must be {len(means)} shares with sum 1, got {weights}.")
    return weights / total, means, deviations


def _weights_of_rows(weights: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Weights of the shape of means, with sum one in every row (and target)."""
    if weights.shape != means.shape:
        raise ValueError(
            f"weights must be {means.shape[:1]}, the same for all rows, or {means.shape}, "
            f"as means are, got {weights.shape}."
        )
    # Negated, so that NaN is found too.
    if not np.min(weights) >= 0.0:
        place = np.argwhere(~(weights >= 0.0))[0]
        raise ValueError(
            f"weights must not be negative or NaN, got {weights[tuple(place)]} for component "
            f"{place[0]} of row {place[1]}."
        )
    total = np.sum(weights, axis=0)
    wrong = np.argwhere(~(np.abs(total - 1.0) <= _WEIGHT_ROUNDING))
    if len(wrong):
        raise ValueError(
            f"weights must have sum 1 over the {len(means)} components of every row, got "
            f"{total[tuple(wrong[0])]:g} in row {wrong[0][0]}."
        )
    return weights / total


def check_size(means: np.ndarray, deviations: np.ndarray) -> None:
    """Whether means and deviations are of a size that warps can be undone from."""
    if max(-np.min(means), np.max(means), np.max(deviations)) > _LARGEST:
        raise ValueError(f"means and deviations must be at most {_LARGEST:g} where warps follow.")


def values_of_targets(values: Any, means: np.ndarray, name: str, lowest: float) -> np.ndarray:
    """Numbers for all targets as an array (1,) or (1, D)."""
    found, shape = np.asarray(to_numpy(values), dtype=np.float64), means.shape[2:]
    if found.shape not in ((), shape) or not _within(found, lowest):
        sort = "finite" if lowest < 0.0 else "positive and finite"
        raise ValueError(f"{name} must be {sort}, a number or {shape}, got {values!r}.")
    return np.broadcast_to(found, shape)[None].copy()


def warp_of_components(warp: Warp, means: np.ndarray) -> Warp:
    """The warp with arrays (K, 1) or (K, 1, D), if they are numbers that make sense."""
    shape = (len(means), *means.shape[2:])
    found: Warp = map_arrays(lambda a: np.asarray(to_numpy(a), dtype=np.float64), warp)
    for field in fields(found):
        values = getattr(found, field.name)
        if values.shape != shape or not np.all(np.abs(values) <= _LARGEST):
            raise ValueError(f"warp.{field.name} must be finite and {shape}, got {values.shape}.")
    if np.min(found.exponent) < LEAST_EXPONENT or np.max(found.exponent) > LARGEST_EXPONENT:
        raise ValueError("warp.exponent must lie between 0 and 2.")
    if np.min(found.scale) < 1.0 / _LARGEST or np.any(found.low > found.high):
        raise ValueError("warp.scale must be positive, and warp.low no more than warp.high.")
    expanded: Warp = map_arrays(lambda a: a[:, None], found)
    return expanded


def _within(values: np.ndarray, lowest: float) -> bool:
    """Whether there are values and all are finite and above `lowest`, without another array."""
    return values.size > 0 and bool(lowest < np.min(values) <= np.max(values) < np.inf)


def check_levels(q: Any) -> np.ndarray:
    """`q` as an array of no or one axis if it lies in [0, 1]."""
    levels = np.asarray(q)
    if levels.dtype.kind not in "fiu" or levels.ndim > 1:
        raise ValueError(f"q must be a number or a list of numbers between 0 and 1, got {q!r}.")
    outside = levels[~((levels >= 0.0) & (levels <= 1.0))]
    if outside.size:
        raise ValueError(f"q must lie between 0 and 1, got {outside[0]:g}.")
    return levels.astype(np.float64)
