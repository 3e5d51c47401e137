"""What users hand to a score or a plot, checked, and averages over rows that count by weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import number
from bowtienet._old.data.rows import build_weights
from bowtienet._old.prediction.intervals import check_coverage
from bowtienet._old.prediction.mixture import Mixture

_ROUNDING = 1e-9
"""n equal weights are n rows, also where their sums are a little less."""


def read_targets(targets: Any) -> np.ndarray:
    """Targets (n,) or (n, D), finite."""
    values = to_numpy(targets).astype(np.float64, copy=False)
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
    """Point forecasts of the shape of the targets."""
    values = to_numpy(mean).astype(np.float64, copy=False)
    _same_shape(values.shape, targets.shape, "mean")
    return values


def check_distribution(distribution: Any, targets: np.ndarray) -> Mixture:
    """`distribution` if it is a mixture for rows of the shape of the targets."""
    if not isinstance(distribution, Mixture):
        raise TypeError(
            "distribution must be a Mixture, such as predict_dist and build_mixture give, "
            f"got {type(distribution).__name__}."
        )
    _same_shape(distribution.means.shape[1:], targets.shape, "distribution")
    return distribution


def read_intervals(intervals: Any, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, each of the shape of the targets; ends may be infinite."""
    ends = to_numpy(intervals).astype(np.float64, copy=False)
    _same_shape(ends.shape, (*targets.shape, 2), "intervals")
    low, high = ends[..., 0], ends[..., 1]
    wrong = int(np.sum(~(low <= high)))
    if wrong:
        raise ValueError(f"{wrong} intervals have NaN ends or a lower end above the upper one.")
    return low, high


def read_sample_weight(sample_weight: Any, targets: np.ndarray) -> np.ndarray:
    """Weights (n,), the largest of them one; all one by default."""
    rows = targets.reshape(len(targets), -1)
    given = None if sample_weight is None else to_numpy(sample_weight)
    weights = build_weights(given, rows, "sample_weight")
    return weights / np.max(weights)


def single_coverage(coverage: Any) -> float:
    """One coverage, strictly between 0 and 1."""
    return float(check_coverage(number(coverage, "coverage")))


def read_levels(levels: Any) -> np.ndarray:
    """Nominal coverages (m,), each between 0 and 1."""
    values = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    outside = values[~((values >= 0.0) & (values <= 1.0))]
    if outside.size:
        raise ValueError(f"levels must lie between 0 and 1, got {outside[0]:g}.")
    return values


def average(values: np.ndarray, weights: np.ndarray) -> float:
    """Σ w_n s_n / Σ w_n, over rows and targets; of k in n it is k / n to the last bit."""
    counted = weights > 0.0
    values, weights = values[counted], weights[counted]
    return float(np.sum(weights @ values) / (np.sum(weights) * (values.size // len(values))))


def effective_rows(n_rows: int, sample_weight: Any) -> int:
    """(Σ w)² / Σ w², the number of rows of equal weight that say as much; n without weights."""
    if sample_weight is None:
        return n_rows
    weights = read_sample_weight(sample_weight, np.zeros(n_rows))
    return max(1, int(np.sum(weights) ** 2 / np.sum(weights**2) + _ROUNDING))


def _same_shape(shape: tuple[int, ...], wanted: tuple[int, ...], name: str) -> None:
    if shape != wanted:
        raise ValueError(
            f"{name} must have shape {wanted} for these targets, got {shape}: give one forecast "
            "for each target, in the same order."
        )
