"""Proper scores and calibration of predictive distributions, intervals and probabilities.

Scores are arrays with a value for each row, so that they can be averaged, weighted and compared in
pairs. A distribution is what `predict_dist` returns. Other scores are in `sklearn.metrics`.

`log_score`, `neg_crps` and `neg_interval_score` are scorers, the higher the better, for
`cross_val_score`, `GridSearchCV`, `permutation_importance` and others. They take estimators with
`predict_dist`, `log_score` also classifiers, and pipelines that end in one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length

from bowtienet.prediction.discrete import CountMixture

Floats = NDArray[np.float64]


def log_scores(y: Any, forecast: Any, classes: Any = None) -> Floats:
    """log p(y) (n,) of distributions, or log P(y) of probabilities (n, C) of sorted classes."""
    if classes is None:
        return np.asarray(forecast.logpdf(_like_mean(y, forecast)))
    chosen = np.asarray(forecast)[np.arange(len(forecast)), _numbers(y, classes)]
    # A probability of zero counts as the machine epsilon, as in scikit-learn.
    return np.log(np.clip(chosen, np.finfo(float).eps, 1.0))


def crps(y: Any, distribution: Any) -> Floats:
    """Continuous ranked probability score ∫ (F(t) - 1{t >= y})² dt (n,): the lower, the better.

    It has the unit of y; for a point forecast it is the absolute error. For numbers it is computed
    as the mean pinball loss 2 ∫ (1{y < Q(u)} - u) (Q(u) - y) du, for counts as a sum.
    """
    targets = _like_mean(y, distribution)
    if isinstance(distribution, CountMixture):
        return _crps_of_counts(targets, distribution)
    total = np.zeros(targets.shape)
    # At the midpoints of 99 equal steps the CRPS of a Gaussian is exact to 5e-4.
    for level in (np.arange(99) + 0.5) / 99.0:
        apart = distribution.ppf(level) - targets
        total += ((apart > 0.0) - level) * apart
    return 2.0 * total / 99.0


def interval_score(y: Any, intervals: Any, coverage: float = 0.9) -> Floats:
    """(h - l) + 2/(1 - coverage) ((l - y)₊ + (y - h)₊) of intervals (..., 2): lower is better."""
    targets = np.asarray(y, dtype=float)
    low, high = np.moveaxis(np.asarray(intervals, dtype=float), -1, 0)
    outside = np.maximum(low - targets, 0.0) + np.maximum(targets - high, 0.0)
    return np.asarray(high - low + 2.0 / (1.0 - coverage) * outside)


def coverage(y: Any, intervals: Any) -> float:
    """Share of targets inside their intervals (..., 2), ends included."""
    low, high = np.moveaxis(np.asarray(intervals, dtype=float), -1, 0)
    return float(np.mean((low <= np.asarray(y)) & (np.asarray(y) <= high)))


def pit(y: Any, distribution: Any, random_state: int = 0) -> Floats:
    """Probability integral transform F(y) (n,), uniform if the distributions are right.

    For counts it is uniform between F(y - 1) and F(y), drawn with `random_state`.
    """
    targets = _like_mean(y, distribution)
    upper = np.asarray(distribution.cdf(targets))
    if not isinstance(distribution, CountMixture):
        return upper
    lower = distribution.cdf(targets - 1.0)
    draws = np.random.default_rng(random_state).random(targets.shape)
    return np.asarray(lower + draws * (upper - lower))


def chance_band(share: Any, n_rows: int, level: float = 0.95) -> tuple[Floats, Floats]:
    """Where the observed share of n rows lies with probability `level` if `share` is right."""
    low, high = binom.interval(level, n_rows, np.asarray(share, dtype=float))
    return low / n_rows, high / n_rows


def calibration_error(
    y: Any, probabilities: Any, classes: Any, bins: int = 15
) -> tuple[float, float]:
    """Expected calibration error, and what a calibrated forecast of as many rows has on average.

    Σ_b (n_b / n) abs(accuracy_b - confidence_b) over bins of equally many rows, where confidence is
    the probability of the predicted class. Under calibration the hits of a bin have the variance
    Σ p (1 - p), and the mean absolute deviation is sqrt(2/π) times its root. It is not a proper
    score: probabilities that ignore the features can have the lowest error.
    """
    shares = np.asarray(probabilities, dtype=float)
    confidence = shares.max(axis=1)
    hits = np.argmax(shares, axis=1) == _numbers(y, classes)
    groups = np.array_split(np.argsort(confidence, kind="stable"), min(bins, len(hits)))
    apart = [abs(np.sum(hits[rows] - confidence[rows])) for rows in groups]
    variances = [np.sum(confidence[rows] * (1.0 - confidence[rows])) for rows in groups]
    chance = np.sqrt(2.0 / np.pi) * np.sum(np.sqrt(variances))
    return float(np.sum(apart)) / len(hits), float(chance) / len(hits)


def scores_of_rows(y: Any, forecast: Any, classes: Any = None) -> dict[str, Floats]:
    """Scores (n,) of distributions, or of probabilities (n, C) of classes; the first decides.

    "rmse" holds squared errors, "coverage" (of 90 % intervals) and "accuracy" zeros and ones:
    `mean_score` turns each into what its name says.
    """
    if classes is not None:
        hits = np.asarray(classes) == np.asarray(y)[:, None]
        return {
            "log_score": log_scores(y, forecast, classes),
            "brier_score": np.sum((forecast - hits) ** 2, axis=1),
            "accuracy": hits[np.arange(len(hits)), np.argmax(forecast, axis=1)].astype(float),
        }
    low, high = forecast.interval(0.9)
    return {
        "crps": crps(y, forecast),
        "rmse": (y - forecast.mean()) ** 2,
        "log_score": log_scores(y, forecast),
        "interval_score": interval_score(y, np.stack([low, high], axis=-1)),
        "coverage": ((low <= y) & (y <= high)).astype(float),
    }


def mean_score(name: str, values: Floats) -> float:
    """The mean of a score over rows; for squared errors its root."""
    mean = float(np.mean(values))
    return mean**0.5 if name == "rmse" else mean


def log_score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Mean log predictive density of numbers, or log probability of counts and classes."""
    classes = estimator.classes_ if hasattr(estimator, "predict_proba") else None
    return _average(log_scores(y, forecast_of(estimator, X, classes), classes), sample_weight)


def neg_crps(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Minus the mean continuous ranked probability score of numbers or counts."""
    return -_average(crps(y, forecast_of(estimator, X)), sample_weight)


def neg_interval_score(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, coverage: float = 0.9
) -> float:
    """Minus the mean interval score of central intervals; `functools.partial` sets `coverage`."""
    ends = np.stack(forecast_of(estimator, X).interval(coverage), axis=-1)
    targets = np.asarray(y, dtype=float).reshape(ends.shape[:-1])
    return -_average(interval_score(targets, ends, coverage), sample_weight)


def forecast_of(estimator: Any, X: Any, classes: Any = None) -> Any:
    """Predictive distributions, or probabilities (n, C) of classes: zero if a fit had none."""
    if classes is not None:
        shares = np.zeros((len(X), len(classes)))
        shares[:, np.searchsorted(classes, estimator.classes_)] = estimator.predict_proba(X)
        return shares
    # scikit-learn's searches and pipelines do not pass predict_dist on.
    estimator = getattr(estimator, "best_estimator_", estimator)
    if isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    if not hasattr(estimator, "predict_dist"):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_dist: use log_score for classifiers, or "
            "scikit-learn's own scorers."
        )
    return estimator.predict_dist(X)


def _average(scores: Any, sample_weight: Any) -> float:
    """Mean over rows, of all targets together."""
    by_row = scores.reshape(len(scores), -1).mean(axis=1)
    return float(np.average(by_row, weights=sample_weight))


def _like_mean(y: Any, distribution: Any) -> Floats:
    """Targets in the shape of predictions: (n,) and (n, 1) are the same."""
    mean = distribution.mean()
    check_consistent_length(y, mean)
    return np.asarray(y, dtype=float).reshape(np.shape(mean))


def _numbers(y: Any, classes: Any) -> NDArray[np.intp]:
    """Position of each label among the sorted classes."""
    known, labels = np.asarray(classes), np.asarray(y)
    positions = np.clip(np.searchsorted(known, labels), 0, len(known) - 1)
    wrong = known[positions] != labels
    if np.any(wrong):
        raise ValueError(f"y has the class {labels[wrong][0]!r}, which classes do not name.")
    return positions


def _crps_of_counts(counts: Floats, distribution: CountMixture) -> Floats:
    """Σ_{k < y} F(k)² + Σ_{k >= y} (1 - F(k))², without tails below 1e-4.

    A sum over more than 128 counts is one over blocks of odd width, by the count in their middle.
    """
    first = np.minimum(distribution.ppf(1e-4), counts)
    end = np.maximum(distribution.isf(1e-4), counts) + 1.0
    total = np.zeros(len(counts))
    for tail, start, stop in ((distribution.cdf, first, counts), (distribution.sf, counts, end)):
        length = stop - start
        width = 2.0 * np.ceil(np.maximum(0.5 * (length / 128.0 - 1.0), 0.0)) + 1.0
        for block in range(int(np.max(np.ceil(length / width), initial=0.0))):
            size = np.clip(length - block * width, 0.0, width)
            middle = start + block * width + np.floor(np.maximum(0.5 * (size - 1.0), 0.0))
            total += size * tail(middle) ** 2
    return total
