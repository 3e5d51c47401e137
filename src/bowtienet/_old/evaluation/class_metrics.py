"""How good class probabilities are: proper scores, calibration, and how often they are right.

Every score takes

- `y`: labels (n,), each of them one of the classes;
- `probabilities`: (n, C), as `predict_proba` gives them, or (n,) of the second of two classes;
- `classes`: the class of every column, as in the attribute `classes_` of a classifier;
- `sample_weight`: how many times each row counts (n,); averages become Σ w s / Σ w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from bowtienet._old._validation import whole
from bowtienet._old.evaluation.checks import average, effective_rows
from bowtienet._old.evaluation.class_checks import (
    ClassForecast,
    find_class,
    read_forecast,
)
from bowtienet._old.evaluation.metrics import ScoreRow

PROBABILITY_FLOOR = 2.0**-52
"""Smallest probability of the log loss, which is 36 at most; scikit-learn's of double precision."""
BINS = 15
"""Of calibration errors."""
_ROUNDING = 1e-9
"""A rank at the border of two bins belongs to the upper one, however its weights are summed."""


@dataclass(frozen=True, kw_only=True)
class ClassScores(ScoreRow):
    """What `evaluate_classes` finds: plain numbers."""

    n_rows: int
    log_loss: float
    """Mean -log p of the true class, in nats; lower is better."""
    brier_score: float
    """Lower is better."""
    calibration_error: float
    """The expected calibration error of the predicted classes; lower is better."""
    accuracy: float
    """Share of the rows whose most probable class is the true one; higher is better."""
    balanced_accuracy: float
    """The same share within each class, averaged over the classes; higher is better."""
    roc_auc: float
    """Higher is better; NaN unless there are two classes, and rows of both."""


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Bins of a reliability diagram, in the order of their probabilities; none is empty."""

    predicted: np.ndarray
    """Mean predicted probability (bins,)."""
    observed: np.ndarray
    """Share of the rows where it came true (bins,)."""
    share: np.ndarray
    """Share of all rows in the bin (bins,)."""
    n_rows: np.ndarray
    """Rows in the bin (bins,); with weights (Σ w)² / Σ w², the effective number."""


def log_loss(y: Any, probabilities: Any, classes: Any, *, sample_weight: Any = None) -> float:
    """mean -log max(p_y, 2⁻⁵²), in nats: the negative log likelihood of the labels.

    Examples
    --------
    >>> log_loss(["a", "b"], [[1.0, 0.0], [0.5, 0.5]], ["a", "b"])
    0.34657
    """
    found = read_forecast(y, probabilities, classes, sample_weight)
    own = found.probabilities[np.arange(found.places.size), found.places]
    return average(-np.log(np.maximum(own, PROBABILITY_FLOOR)), found.weights)


def brier_score(y: Any, probabilities: Any, classes: Any, *, sample_weight: Any = None) -> float:
    """mean Σ_c (p_c - 1[y = c])²; with two classes mean (p - 1[y = second])², half of that.

    p is the probability of the second class. So it lies between 0 and 1 with two classes, and
    between 0 and 2 with more, as scikit-learn's `brier_score_loss` does.

    Examples
    --------
    >>> brier_score(["a", "b"], [0.0, 0.5], ["a", "b"])
    0.125
    >>> brier_score(["a", "b"], [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], ["a", "b", "c"])
    0.25
    """
    found = read_forecast(y, probabilities, classes, sample_weight)
    squares = np.square(found.probabilities - np.eye(len(found.classes))[found.places])
    scores = squares[:, 1] if len(found.classes) == 2 else np.sum(squares, axis=1)
    return average(scores, found.weights)


def expected_calibration_error(
    y: Any, probabilities: Any, classes: Any, *, bins: int = BINS, sample_weight: Any = None
) -> float:
    """``Σ_b (W_b / W) |accuracy_b - confidence_b|``, the expected calibration error.

    The confidence of a row is its largest probability. Rows are sorted by it and cut into `bins`
    bins of equal weight W_b, with rows of equal confidence together; a bin's accuracy is the share
    of its rows whose most probable class is the true one.

    It says how far stated confidences are from shares of hits, in probability. It does not say that
    a forecast is good: one that ignores the features and always states the shares of the classes
    has an error near zero, so look at it beside a proper score (`log_loss`, `brier_score`). It sees
    the largest probability of a row and none of the others, and errors that cancel within a bin not
    at all. It is never negative, so chance alone lifts it: with n rows of confidence p and b bins
    by 0.8 √(p (1 - p) b / n), 0.07 for p = 0.8, 15 bins and 300 rows. `ReliabilityDisplay` shows
    what chance does. More bins see finer errors, and more chance.

    Parameters
    ----------
    y, probabilities, classes, sample_weight :
        Those of `evaluate_classes`.
    bins : int
        Number of bins; fewer, where many rows have equal confidences.

    Examples
    --------
    >>> expected_calibration_error(["a", "b", "a", "a"], [0.1, 0.7, 0.1, 0.7], ["a", "b"], bins=2)
    0.15
    """
    found = read_forecast(y, probabilities, classes, sample_weight)
    confidence = np.max(found.probabilities, axis=1)
    curve = _reliability(confidence, _hits(found), found.weights, whole(bins, "bins"))
    return float(np.sum(curve.share * np.abs(curve.observed - curve.predicted)))


def accuracy(y: Any, probabilities: Any, classes: Any, *, sample_weight: Any = None) -> float:
    """mean 1[y = argmax_c p_c], the first of the classes where several are the most probable."""
    found = read_forecast(y, probabilities, classes, sample_weight)
    return average(_hits(found), found.weights)


def balanced_accuracy(
    y: Any, probabilities: Any, classes: Any, *, sample_weight: Any = None
) -> float:
    """mean_c mean_{y = c} 1[y = argmax_k p_k], over the classes c that have rows.

    Frequent classes count no more than rare ones.
    """
    found = read_forecast(y, probabilities, classes, sample_weight)
    totals, hits = (
        np.bincount(found.places, weights=found.weights * part) for part in (1.0, _hits(found))
    )
    return float(np.mean(hits[totals > 0.0] / totals[totals > 0.0]))


def roc_auc(y: Any, probabilities: Any, classes: Any, *, sample_weight: Any = None) -> float:
    """P(p > p') + ½ P(p = p') of a row of the second class and a row of the first.

    The area under the receiver operating characteristic: how well probabilities sort rows, whether
    they are calibrated or not.
    """
    found = read_forecast(y, probabilities, classes, sample_weight)
    if len(found.classes) != 2:
        raise ValueError(
            f"roc_auc is for two classes, got {len(found.classes)}: RocCurvesDisplay has the areas "
            "of each class against the rest."
        )
    area = _roc_auc(found)
    if math.isnan(area):
        raise ValueError("roc_auc needs rows of both classes, but y holds one class only.")
    return area


def reliability_curve(
    y: Any,
    probabilities: Any,
    classes: Any,
    *,
    label: Any = None,
    bins: int = BINS,
    sample_weight: Any = None,
) -> Reliability:
    """Predicted probabilities, and how often they came true, in bins of equal weight.

    Parameters
    ----------
    y, probabilities, classes, sample_weight :
        Those of `evaluate_classes`.
    label : class, optional
        Whose probabilities are compared with its share of the rows. By default the second of two
        classes; of more classes the most probable one of each row, with the share that is right.
    bins : int
        Number of bins; fewer, where many rows have equal probabilities.

    Examples
    --------
    >>> found = reliability_curve([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.8], [0, 1], bins=2)
    >>> found.predicted, found.observed
    (array([0.2, 0.8]), array([0.5, 1. ]))
    """
    found = read_forecast(y, probabilities, classes, sample_weight)
    return _reliability(*judged(found, label), found.weights, whole(bins, "bins"))


def judged(found: ClassForecast, label: Any) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n,) of what `label` of `reliability_curve` means, and where it came true."""
    if label is None and len(found.classes) > 2:
        return np.max(found.probabilities, axis=1), _hits(found)
    place = 1 if label is None else find_class(label, found.classes)
    return found.probabilities[:, place], found.places == place


def evaluate_classes(
    y: Any, probabilities: Any, classes: Any, *, sample_weight: Any = None
) -> ClassScores:
    """All scores of class probabilities at once.

    Parameters
    ----------
    y : array (n,)
        Labels, each of them one of the classes.
    probabilities : array (n, C)
        As `predict_proba` gives them; or (n,) of the second of two classes.
    classes : array (C,)
        Class of each column: the attribute `classes_` of a classifier.
    sample_weight : array (n,), optional
        How many times each row counts.

    Returns
    -------
    ClassScores
        `dataclasses.asdict` turns it into a dict of plain numbers.

    Examples
    --------
    >>> scores = evaluate_classes(["no", "yes", "yes"], [0.2, 0.9, 0.4], ["no", "yes"])
    >>> scores.accuracy, scores.balanced_accuracy, scores.roc_auc
    (0.667, 0.75, 1.0)
    """
    found = read_forecast(y, probabilities, classes, sample_weight)
    given: dict[str, Any] = {"sample_weight": sample_weight}
    return ClassScores(
        n_rows=found.places.size,
        log_loss=log_loss(y, probabilities, classes, **given),
        brier_score=brier_score(y, probabilities, classes, **given),
        calibration_error=expected_calibration_error(y, probabilities, classes, **given),
        accuracy=accuracy(y, probabilities, classes, **given),
        balanced_accuracy=balanced_accuracy(y, probabilities, classes, **given),
        roc_auc=_roc_auc(found),
    )


def _roc_auc(found: ClassForecast) -> float:
    counted = found.weights > 0.0
    if len(found.classes) != 2 or np.unique(found.places[counted]).size < 2:
        return math.nan
    scores = found.probabilities[counted, 1]
    weights = found.weights[counted]
    return float(roc_auc_score(found.places[counted], scores, sample_weight=weights))


def _hits(found: ClassForecast) -> np.ndarray:
    """Where the most probable class is the true one (n,)."""
    return np.argmax(found.probabilities, axis=1) == found.places


def _reliability(
    values: np.ndarray, truths: np.ndarray, weights: np.ndarray, bins: int
) -> Reliability:
    """Bin ⌊B (W_< + ½ W_=) / W⌋ of a value: W_< of the weights lie below it, W_= at it.

    So neither the order of rows nor repeated ones in place of weights change a bin.
    """
    counted = weights > 0.0
    values, truths, weights = values[counted], truths[counted], weights[counted]
    _, inverse = np.unique(values, return_inverse=True)
    at = np.bincount(inverse, weights=weights)
    middle = (np.cumsum(at) - 0.5 * at) / np.sum(weights)
    place = np.minimum((bins * middle + _ROUNDING).astype(int), bins - 1)[inverse]
    filled = [np.flatnonzero(place == b) for b in np.unique(place)]
    return Reliability(
        predicted=np.array([average(values[rows], weights[rows]) for rows in filled]),
        observed=np.array([average(truths[rows], weights[rows]) for rows in filled]),
        share=np.array([np.sum(weights[rows]) for rows in filled]) / np.sum(weights),
        n_rows=np.array([effective_rows(rows.size, weights[rows]) for rows in filled]),
    )
