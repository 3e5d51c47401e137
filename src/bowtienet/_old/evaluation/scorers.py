"""Scorers of forecasts for scikit-learn's model selection: higher is better.

`cross_val_score(model, X, y, scoring=neg_crps_scorer)`, `GridSearchCV(..., scoring=...)`, or
several in a dict for `cross_validate`. Those of distributions take any estimator with
`predict_dist`, those of class probabilities any classifier with `predict_proba`.

>>> import numpy as np
>>> from sklearn.model_selection import cross_val_score
>>> from bowtienet import BowTieRegressor, FitOptions
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(60, 2))
>>> y = X[:, 0] + rng.normal(0.0, 0.1, size=60)
>>> options = FitOptions(weighting="equal")
>>> model = BowTieRegressor((), n_estimators=1, random_state=0, options=options)
>>> bool(np.all(cross_val_score(model, X, y, scoring=log_density_scorer, cv=2) > 0.5))
True
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from bowtienet._old.evaluation.checks import single_coverage
from bowtienet._old.evaluation.class_metrics import brier_score, expected_calibration_error, log_loss
from bowtienet._old.evaluation.metrics import (
    calibration_error,
    crps,
    interval_coverage,
    interval_score,
    negative_log_density,
)
from bowtienet._old.prediction.mixture import Mixture


class Scorer(Protocol):
    """What scikit-learn calls a scorer."""

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score of a fitted estimator on rows, higher is better."""


def log_density_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """mean log p(y): the log score."""
    return -negative_log_density(y, _forecast(estimator, X), sample_weight=sample_weight)


def neg_crps_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Minus the mean continuous ranked probability score. Needs scoringrules."""
    return -crps(y, _forecast(estimator, X), sample_weight=sample_weight)


def neg_calibration_error_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Minus the mean distance of observed from nominal coverage.

    No proper score: a forecast that ignores the inputs can have the best. Look at it beside one.
    """
    return -calibration_error(y, _forecast(estimator, X), sample_weight=sample_weight)


def make_interval_scorer(coverage: float = 0.9) -> Scorer:
    """A scorer: minus the interval score of central intervals of this coverage."""
    return partial(_neg_interval_score, coverage=single_coverage(coverage))


def make_coverage_scorer(coverage: float = 0.9) -> Scorer:
    """A scorer: the share of targets inside central intervals of this coverage.

    Coverage is not a thing to maximise: wide intervals have the most, and right ones have what was
    asked for. It is meant for a column of `cross_validate`, not for a search.
    """
    return partial(_coverage, coverage=single_coverage(coverage))


def neg_log_loss_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """mean log p(y) of the classes: minus the log loss."""
    return -log_loss(y, *class_forecast(estimator, X), sample_weight=sample_weight)


def neg_brier_score_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Minus the Brier score of class probabilities."""
    return -brier_score(y, *class_forecast(estimator, X), sample_weight=sample_weight)


def neg_expected_calibration_error_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Minus the expected calibration error of predicted classes, with 15 bins.

    No proper score: probabilities that ignore the features can have the best. Look at it beside
    one.
    """
    forecast = class_forecast(estimator, X)
    return -expected_calibration_error(y, *forecast, sample_weight=sample_weight)


def class_forecast(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Probabilities (n, C) by a fitted classifier, and its classes."""
    if not (hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_")):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba and classes_, so there are no class "
            "probabilities: use a fitted classifier that has them."
        )
    return estimator.predict_proba(X), estimator.classes_


def _neg_interval_score(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, coverage: float
) -> float:
    intervals = _forecast(estimator, X).interval(coverage)
    return -interval_score(y, intervals, coverage, sample_weight=sample_weight)


def _coverage(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, coverage: float
) -> float:
    intervals = _forecast(estimator, X).interval(coverage)
    return interval_coverage(y, intervals, sample_weight=sample_weight)


def _forecast(estimator: Any, X: Any) -> Mixture:
    estimator = getattr(estimator, "best_estimator_", estimator)  # of a search
    if not hasattr(estimator, "predict_dist"):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_dist, so there is no distribution to "
            "score: use BowTieRegressor, or a pipeline that forwards its predict_dist."
        )
    return estimator.predict_dist(X)


neg_interval_score_scorer = make_interval_scorer(0.9)
"""Minus the interval score of central 90 % intervals."""

coverage_scorer = make_coverage_scorer(0.9)
"""Share inside central 90 % intervals: to look at, and not a thing to maximise."""
