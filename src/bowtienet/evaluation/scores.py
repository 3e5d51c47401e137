"""Proper scores and calibration of predictive distributions, intervals and probabilities.

Scores are arrays with a value for each row, so that they can be averaged, weighted and compared in
pairs. A distribution is what `predict_dist` returns. Other scores are in `sklearn.metrics`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from bowtienet.prediction.discrete import CountMixture

Floats = NDArray[np.float64]

BLOCKS = 128
"""Counts up to which the CRPS sums over each; over more, it sums over blocks."""


def log_density(y: Any, distribution: Any) -> Floats:
    """log p(y) (n,), of counts the log probability: the higher, the better."""
    return np.asarray(distribution.logpdf(_like_mean(y, distribution)))


def log_probability(y: Any, probabilities: Any, classes: Any) -> Floats:
    """log P(y) (n,) by probabilities (n, C) of the sorted classes (C,).

    Probabilities of zero are taken for the smallest step of a float, as in scikit-learn.
    """
    chosen = np.asarray(probabilities)[np.arange(len(probabilities)), _numbers(y, classes)]
    return np.log(np.clip(chosen, np.finfo(float).eps, 1.0))


def crps(y: Any, distribution: Any) -> Floats:
    """Continuous ranked probability score ∫ (F(t) - 1{t >= y})² dt (n,): the lower, the better.

    It is in the unit of y, and the absolute error where the distribution is a point. For numbers it
    is the mean pinball loss 2 ∫ (1{y < Q(u)} - u) (Q(u) - y) du; for counts the sum over counts.
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
    targets, ends = np.asarray(y, dtype=float), np.asarray(intervals, dtype=float)
    low, high = ends[..., 0], ends[..., 1]
    outside = np.maximum(low - targets, 0.0) + np.maximum(targets - high, 0.0)
    return np.asarray(high - low + 2.0 / (1.0 - coverage) * outside)


def coverage(y: Any, intervals: Any) -> float:
    """Share of targets inside their intervals (..., 2), ends included."""
    targets, ends = np.asarray(y, dtype=float), np.asarray(intervals, dtype=float)
    return float(np.mean((ends[..., 0] <= targets) & (targets <= ends[..., 1])))


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
    Σ p (1 - p), and a Gaussian deviation the mean size sqrt(2/π) times its root. It is no proper
    score: probabilities that ignore the features can have the best.
    """
    shares = np.asarray(probabilities, dtype=float)
    predicted = np.argmax(shares, axis=1)
    confidence = shares.max(axis=1)
    hits = predicted == _numbers(y, classes)
    groups = np.array_split(np.argsort(confidence, kind="stable"), min(bins, len(hits)))
    apart = [abs(np.sum(hits[rows] - confidence[rows])) for rows in groups]
    variances = [np.sum(confidence[rows] * (1.0 - confidence[rows])) for rows in groups]
    chance = np.sqrt(2.0 / np.pi) * np.sum(np.sqrt(variances))
    return float(np.sum(apart)) / len(hits), float(chance) / len(hits)


def scores_of_rows(
    y: Any, forecast: Any, classes: Any = None, coverage: float = 0.9
) -> dict[str, Floats]:
    """Scores (n,) of distributions, or of probabilities (n, C) of classes, the most telling first.

    "rmse" has squared errors, and "coverage" and "accuracy" have zeros and ones: `mean_score` makes
    of each what its name says.
    """
    if classes is not None:
        hits = np.asarray(classes) == np.asarray(y)[:, None]
        return {
            "log_score": log_probability(y, forecast, classes),
            "brier_score": np.sum((forecast - hits) ** 2, axis=1),
            "accuracy": hits[np.arange(len(hits)), np.argmax(forecast, axis=1)].astype(float),
        }
    ends = np.stack(forecast.interval(coverage), axis=-1)
    return {
        "crps": crps(y, forecast),
        "rmse": (y - forecast.mean()) ** 2,
        "log_score": log_density(y, forecast),
        "interval_score": interval_score(y, ends, coverage),
        "coverage": ((ends[:, 0] <= y) & (y <= ends[:, 1])).astype(float),
    }


def mean_score(name: str, values: Floats) -> float:
    """The mean of a score over rows, of squared errors its root."""
    mean = float(np.mean(values))
    return mean**0.5 if name == "rmse" else mean


def _like_mean(y: Any, distribution: Any) -> Floats:
    """Targets in the shape of predictions: (n,) and (n, 1) are the same."""
    return np.asarray(y, dtype=float).reshape(np.shape(distribution.mean()))


def _numbers(y: Any, classes: Any) -> NDArray[np.intp]:
    """Position of each label among the sorted classes."""
    known, labels = np.asarray(classes), np.asarray(y)
    places = np.clip(np.searchsorted(known, labels), 0, len(known) - 1)
    wrong = known[places] != labels
    if np.any(wrong):
        raise ValueError(f"y has the class {labels[wrong][0]!r}, which classes do not name.")
    return places


def _crps_of_counts(counts: Floats, distribution: CountMixture) -> Floats:
    """Σ_{k < y} F(k)² + Σ_{k >= y} (1 - F(k))²; tails that are left out are below 1e-4.

    Of many counts, blocks of odd width stand for the one in their middle.
    """
    first = np.minimum(distribution.ppf(1e-4), counts)
    end = np.maximum(distribution.isf(1e-4), counts) + 1.0
    total = np.zeros(len(counts))
    below, above = (distribution.cdf, first, counts), (distribution.sf, counts, end)
    for tail, start, stop in (below, above):
        length = stop - start
        width = 2.0 * np.ceil(np.maximum(0.5 * (length / BLOCKS - 1.0), 0.0)) + 1.0
        for block in range(int(np.max(np.ceil(length / width), initial=0.0))):
            size = np.clip(length - block * width, 0.0, width)
            middle = start + block * width + np.floor(np.maximum(0.5 * (size - 1.0), 0.0))
            total += size * tail(middle) ** 2
    return total
