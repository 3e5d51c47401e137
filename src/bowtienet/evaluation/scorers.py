"""Three scorers for scikit-learn's model selection and inspection: the higher, the better.

`cross_val_score`, `GridSearchCV`, `permutation_importance` and others take them as `scoring`. They
score estimators with `predict_dist`, `log_score` also classifiers, and pipelines that end so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from bowtienet.evaluation.scores import crps, interval_score, log_density, log_probability


def log_score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Mean log predictive density of numbers, or log probability of counts and classes."""
    estimator, X = last_step(estimator, X)
    if hasattr(estimator, "predict_proba"):
        logs = log_probability(y, estimator.predict_proba(X), estimator.classes_)
    else:
        logs = log_density(y, _distribution(estimator, X))
    return _average(logs, sample_weight)


def neg_crps(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Minus the mean continuous ranked probability score of numbers or counts."""
    estimator, X = last_step(estimator, X)
    return -_average(crps(y, _distribution(estimator, X)), sample_weight)


def neg_interval_score(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, coverage: float = 0.9
) -> float:
    """Minus the mean interval score of central intervals; `functools.partial` sets `coverage`."""
    estimator, X = last_step(estimator, X)
    distribution = _distribution(estimator, X)
    ends = np.stack(distribution.interval(coverage), axis=-1)
    targets = np.asarray(y, dtype=float).reshape(ends.shape[:-1])
    return -_average(interval_score(targets, ends, coverage), sample_weight)


def forecast_of(estimator: Any, X: Any, classes: Any = None) -> Any:
    """Predictive distributions, or probabilities (n, C) of classes: zero if a fit had none."""
    estimator, X = last_step(estimator, X)
    if classes is None:
        return estimator.predict_dist(X)
    shares = np.zeros((len(X), len(classes)))
    shares[:, np.searchsorted(classes, estimator.classes_)] = estimator.predict_proba(X)
    return shares


def last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The estimator that predicts, of a search or a pipeline, and the rows that it sees."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X


def _distribution(estimator: Any, X: Any) -> Any:
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
