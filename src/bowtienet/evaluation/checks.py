"""Checks of what users hand to a score or a picture, with one sentence for what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet._validation import number
from bowtienet.data.rows import build_weights
from bowtienet.prediction.intervals import check_coverage
from bowtienet.prediction.mixture import GaussianMixture


def read_numbers(values: Any, name: str) -> np.ndarray:
    """Real numbers in an array of any shape; they may be NaN or infinite."""
    try:
        array = to_numpy(values)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers.") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    return array.astype(np.float64, copy=False)


def read_targets(targets: Any) -> np.ndarray:
    """Targets (n,) or (n, D), finite."""
    if isinstance(targets, GaussianMixture):
        raise TypeError("targets come first and the forecast second: exchange the two.")
    values = read_numbers(targets, "targets")
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(
            "targets must have shape (rows,) or (rows, targets) with at least one of each, got "
            f"{values.shape}."
        )
    wrong = int(np.sum(~np.isfinite(values)))
    if wrong:
        raise ValueError(
            f"targets hold {wrong} NaN or infinite values: leave those rows out of targets and "
            "forecast."
        )
    return values


def read_mean(mean: Any, targets: np.ndarray) -> np.ndarray:
    """Point forecasts, finite and of the shape of the targets."""
    values = read_numbers(mean, "mean")
    _same_shape(values.shape, targets, "mean")
    if not np.all(np.isfinite(values)):
        raise ValueError("mean holds NaN or infinite values: give one finite forecast a target.")
    return values


def check_distribution(distribution: Any, targets: np.ndarray) -> GaussianMixture:
    """`distribution` if it is a mixture for rows of the shape of the targets."""
    if not isinstance(distribution, GaussianMixture):
        raise TypeError(
            "distribution must be a GaussianMixture, such as predict_dist and build_mixture give, "
            f"got {type(distribution).__name__}."
        )
    _same_shape(distribution.means.shape[1:], targets, "distribution")
    return distribution


def read_intervals(intervals: Any, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, each of the shape of the targets; ends may be infinite."""
    ends = read_numbers(intervals, "intervals")
    if ends.shape != (*targets.shape, 2):
        raise ValueError(
            f"intervals have shape {ends.shape}, but targets of shape {targets.shape} need "
            f"{(*targets.shape, 2)}: the lower and the upper end for each."
        )
    low, high = ends[..., 0], ends[..., 1]
    check_ends(low, high)
    return low, high


def check_ends(low: np.ndarray, high: np.ndarray) -> None:
    """Refuse intervals whose lower end is not below or at the upper one."""
    wrong = np.argwhere(~(low <= high))
    if len(wrong):
        first = tuple(int(i) for i in wrong[0])
        raise ValueError(
            f"{len(wrong)} intervals have NaN ends or a lower end above the upper one, the first "
            f"at index {first}: [{low[first]:g}, {high[first]:g}]."
        )


def read_sample_weight(sample_weight: Any, targets: np.ndarray) -> np.ndarray:
    """Weights (n,), the largest of them one; all one by default."""
    rows = targets.reshape(len(targets), -1)
    given = None if sample_weight is None else to_numpy(sample_weight)
    weights = build_weights(given, rows, "sample_weight")
    return weights / np.max(weights)


def single_coverage(coverage: Any) -> float:
    """One coverage, strictly between 0 and 1."""
    return float(check_coverage(number(coverage, "coverage")))


def single_probability(probability: Any) -> float:
    """One probability, strictly between 0 and 1."""
    if not 0.0 < number(probability, "probability") < 1.0:
        raise ValueError(f"probability must lie strictly between 0 and 1, got {probability!r}.")
    return float(probability)


def read_levels(levels: Any) -> np.ndarray:
    """Nominal coverages (m,), each between 0 and 1."""
    values = np.atleast_1d(read_numbers(levels, "levels"))
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"levels must be one row of numbers, got shape {values.shape}.")
    outside = values[~((values >= 0.0) & (values <= 1.0))]
    if outside.size:
        raise ValueError(f"levels must lie between 0 and 1, got {outside[0]:g}.")
    return values


def _same_shape(shape: tuple[int, ...], targets: np.ndarray, name: str) -> None:
    if shape != targets.shape:
        raise ValueError(
            f"{name} has shape {shape}, but targets have {targets.shape}: give one forecast for "
            "each target, in the same order."
        )
