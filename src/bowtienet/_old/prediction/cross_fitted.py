"""How rows were predicted that were held out in turn: scores and a curve of calibration.

Each row is predicted by networks that were not fitted to it. The same rows have chosen the recipes,
their weights and the levels of noise, so the scores are a little better than those of new rows; and
each forecast is that of one network for each recipe, so they are a little worse than those of the
ensemble.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

Floats = NDArray[np.float64]

COVERAGE = 0.9
"""Of the intervals whose coverage is a score."""
LEVELS = np.linspace(0.05, 0.95, 19)
"""Nominal coverages of the curve;"""
BINS = 10
"""and bins of equal count of that of classes."""
OF_NUMBERS = ("r2", "rmse", "mae", "log_density", "coverage")
OF_COUNTS = ("rmse", "mae", "log_probability", "coverage")
OF_CLASSES = ("accuracy", "log_loss", "brier_score")


@dataclass(frozen=True, kw_only=True)
class CrossFitted:
    """Scores of held-out rows, for each of D targets; of classes D is 1."""

    scores: Floats
    """(D, S), in the order of `OF_NUMBERS`, `OF_COUNTS` or `OF_CLASSES`; those of numbers are of
    standardised targets."""
    nominal: Floats
    """(D, m): coverages, or mean probabilities of bins."""
    observed: Floats
    """(D, m): shares of the rows inside central intervals, or of those that were right."""
    counts: Floats
    """(D, m): rows behind each of these."""
    n_rows: int
    """Rows that were held out."""


def score_numbers(
    targets: Floats, means: Floats, log_densities: Floats, values: Floats, weights: Floats
) -> CrossFitted:
    """R², RMSE, MAE, mean log density and coverage of targets (n, D) with F(y) `values` (n, D)."""
    share = weights / weights.sum()
    errors = targets - means
    squares = share @ errors**2
    spread = share @ (targets - share @ targets) ** 2
    inside = np.abs(2.0 * values - 1.0) <= COVERAGE
    explained = 1.0 - squares / np.where(spread > 0.0, spread, np.inf)
    columns = [
        np.where(spread > 0.0, explained, 0.0),
        np.sqrt(squares),
        share @ np.abs(errors),
        share @ log_densities,
        share @ inside,
    ]
    return CrossFitted(scores=np.column_stack(columns), **_coverage_curve(values, weights))


def score_counts(
    counts: Floats,
    means: Floats,
    log_probabilities: Floats,
    intervals: Floats,
    values: Floats,
    weights: Floats,
) -> CrossFitted:
    """RMSE, MAE, log probability and coverage of counts (n,) with randomised F(y) `values`."""
    share = weights / weights.sum()
    errors, (low, high) = counts - means, intervals.T
    row = [
        np.sqrt(share @ errors**2),
        share @ np.abs(errors),
        share @ log_probabilities,
        share @ ((counts >= low) & (counts <= high)),
    ]
    return CrossFitted(scores=np.array([row]), **_coverage_curve(values[:, None], weights))


def score_classes(codes: NDArray[np.intp], probabilities: Floats, weights: Floats) -> CrossFitted:
    """Accuracy, log loss and Brier score of classes (n,), as `evaluate_classes` has them.

    The last is (1{y = 1} - p_1)² of two classes and Σ_c (1{y = c} - p_c)² of more.
    The curve is that of the second of two classes, or of the most probable one of more.
    """
    share = weights / weights.sum()
    truths = np.eye(probabilities.shape[1])[codes]
    best, two = np.argmax(probabilities, axis=1), probabilities.shape[1] == 2
    row = [
        share @ (best == codes),
        -share @ xlogy(truths, np.maximum(probabilities, np.finfo(float).tiny)).sum(axis=1),
        share @ ((truths - probabilities) ** 2).sum(axis=1) / (2.0 if two else 1.0),
    ]
    judged = probabilities[:, 1] if two else probabilities.max(axis=1)
    right = (codes == 1 if two else best == codes).astype(float)
    order = np.argsort(judged, kind="stable")
    places = np.cumsum(weights[order]) / weights.sum() * BINS
    bins = np.clip(np.ceil(places - 1e-9).astype(np.intp) - 1, 0, BINS - 1)
    totals: Floats = np.asarray(
        np.bincount(bins, weights=weights[order], minlength=BINS), dtype=np.float64
    )
    filled = totals > 0.0
    sums = [
        np.bincount(bins, weights=(weights * found)[order], minlength=BINS)[filled]
        for found in (judged, right)
    ]
    nominal, observed = (found / totals[filled] for found in sums)
    return CrossFitted(
        scores=np.array([row]),
        nominal=nominal[None],
        observed=observed[None],
        counts=totals[filled][None],
        n_rows=len(codes),
    )


def check_cross_fitted(found: CrossFitted, n_targets: int) -> None:
    """Raise a ValueError if scores, such as those of a file, are not of so many targets."""
    if not isinstance(found, CrossFitted):
        raise ValueError("the scores of held-out rows are none")
    scores = np.asarray(found.scores)
    curves = [np.asarray(part) for part in (found.nominal, found.observed, found.counts)]
    if scores.ndim != 2 or len(scores) != n_targets or not np.isfinite(scores).all():
        raise ValueError("the scores of held-out rows are of other targets")
    if len({part.shape for part in curves}) != 1 or curves[0].shape[:1] != (n_targets,):
        raise ValueError("the calibration of held-out rows is of other targets")
    if not all(np.all((part >= 0.0) & np.isfinite(part)) for part in curves):
        raise ValueError("the calibration of held-out rows has numbers that are none")


def _coverage_curve(values: Floats, weights: Floats) -> dict[str, Any]:
    """Shares of rows with |2 F(y) - 1| <= c."""
    share = weights / weights.sum()
    away = np.abs(2.0 * values - 1.0)
    observed = np.einsum("n,nmd->dm", share, away[:, None, :] <= LEVELS[:, None])
    effective = weights.sum() ** 2 / np.sum(weights**2)
    return {
        "nominal": np.tile(LEVELS, (values.shape[1], 1)),
        "observed": observed,
        "counts": np.full(observed.shape, effective),
        "n_rows": len(values),
    }
