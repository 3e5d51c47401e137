"""Scorers in the hands of scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old import BowTieRegressor, FitOptions
from bowtienet._old.evaluation import metrics, scorers
from bowtienet._old.prediction.mixture import Mixture, build_mixture

SCORERS: dict[str, scorers.Scorer] = {
    "log_density": scorers.log_density_scorer,
    "neg_crps": scorers.neg_crps_scorer,
    "neg_interval_score": scorers.neg_interval_score_scorer,
    "neg_calibration_error": scorers.neg_calibration_error_scorer,
    "coverage": scorers.coverage_scorer,
    "narrow": scorers.make_interval_scorer(0.5),
    "narrow_coverage": scorers.make_coverage_scorer(0.5),
}
every_scorer = pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)


class Spread(RegressorMixin, BaseEstimator):
    """N(first column, deviation²): nothing to fit."""

    def __init__(self, deviation: float = 1.0) -> None:
        self.deviation = deviation

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Spread:
        self.is_fitted_ = True
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(X)[:, 0]

    def predict_dist(self, X: Any) -> Mixture:
        mean = self.predict(X)[None]
        return build_mixture([1.0], mean, np.full(mean.shape, self.deviation))


class ForwardingPipeline(Pipeline):
    """A pipeline that hands `predict_dist` on to its last step."""

    def predict_dist(self, X: Any) -> Mixture:
        return self[-1].predict_dist(self[:-1].transform(X))


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Noise of deviation 0.5."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + 0.5 * rng.normal(size=n)


def test_scorers_are_the_metrics_with_the_sign_of_a_score() -> None:
    X, y = rows()
    weight = np.arange(60.0)
    found = Spread(0.7).predict_dist(X)
    settings = {"sample_weight": weight}
    expected = {
        "log_density": -metrics.negative_log_density(y, found, **settings),
        "neg_crps": -metrics.crps(y, found, **settings),
        "neg_interval_score": -metrics.interval_score(y, found.interval(0.9), 0.9, **settings),
        "neg_calibration_error": -metrics.calibration_error(y, found, **settings),
        "coverage": metrics.interval_coverage(y, found.interval(0.9), **settings),
        "narrow": -metrics.interval_score(y, found.interval(0.5), 0.5, **settings),
        "narrow_coverage": metrics.interval_coverage(y, found.interval(0.5), **settings),
    }
    scores = {name: scorer(Spread(0.7), X, y, weight) for name, scorer in SCORERS.items()}
    assert scores == expected
    unweighted = {name: scorer(Spread(0.7), X, y) for name, scorer in SCORERS.items()}
    assert all(scores[name] != unweighted[name] for name in SCORERS)


@pytest.mark.parametrize("name", ["log_density", "neg_crps", "neg_interval_score"])
def test_a_search_finds_the_deviation_of_the_noise(name: str) -> None:
    """Seeded; of 0.05, 0.5 and 5 the truth wins by a wide margin."""
    X, y = rows()
    grid = {"deviation": [0.05, 0.5, 5.0]}
    search = GridSearchCV(Spread(), grid, scoring=SCORERS[name], cv=3).fit(X, y)
    assert search.best_params_ == {"deviation": 0.5}
    assert search.score(X, y) == SCORERS[name](Spread(0.5), X, y)


def test_several_scorers_in_one_table() -> None:
    X, y = rows()
    folds = KFold(3)
    table = cross_validate(Spread(0.7), X, y, scoring=SCORERS, cv=folds)
    for name, scorer in SCORERS.items():
        expected = [scorer(Spread(0.7), X[test], y[test]) for _, test in folds.split(X)]
        np.testing.assert_array_equal(table[f"test_{name}"], expected)


@every_scorer
def test_scorers_survive_pickling(scorer: scorers.Scorer) -> None:
    X, y = rows()
    again = pickle.loads(pickle.dumps(scorer))
    assert again(Spread(), X, y) == scorer(Spread(), X, y)


def test_the_regressor_itself_in_two_processes() -> None:
    X, y = rows(40)
    options = FitOptions(weighting="equal", tol=1.0)
    model = BowTieRegressor((3,), n_estimators=1, max_iter=5, random_state=0, options=options)
    table = cross_validate(model, X, y, scoring=SCORERS, cv=2, n_jobs=2)
    assert all(np.all(np.isfinite(table[f"test_{name}"])) for name in SCORERS)
    fitted = model.fit(X, y)
    assert scorers.log_density_scorer(fitted, X, y) == pytest.approx(fitted.log_score(X, y))


def test_a_pipeline_that_forwards_its_distribution() -> None:
    X, y = rows()
    pipeline = ForwardingPipeline([("scale", StandardScaler()), ("spread", Spread())]).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    for scorer in SCORERS.values():
        assert scorer(pipeline, X, y) == scorer(Spread(), scaled, y)


@every_scorer
def test_estimators_without_a_distribution_are_refused(scorer: scorers.Scorer) -> None:
    X, y = rows()
    for model in (LinearRegression(), make_pipeline(StandardScaler(), Spread())):
        with pytest.raises(TypeError, match=r"predict_dist"):
            scorer(model.fit(X, y), X, y)


@pytest.mark.parametrize("make", [scorers.make_interval_scorer, scorers.make_coverage_scorer])
def test_bad_coverage(make: Any) -> None:
    with pytest.raises(ValueError, match="coverage"):
        make(95)
