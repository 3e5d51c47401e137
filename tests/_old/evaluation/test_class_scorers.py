"""Scorers of class probabilities in the hands of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from bowtienet._old.evaluation import class_metrics, scorers

SCORERS: dict[str, scorers.Scorer] = {
    "neg_log_loss": scorers.neg_log_loss_scorer,
    "neg_brier_score": scorers.neg_brier_score_scorer,
    "neg_expected_calibration_error": scorers.neg_expected_calibration_error_scorer,
}
METRICS = {
    "neg_log_loss": class_metrics.log_loss,
    "neg_brier_score": class_metrics.brier_score,
    "neg_expected_calibration_error": class_metrics.expected_calibration_error,
}
every_scorer = pytest.mark.parametrize("name", SCORERS)


def flowers() -> tuple[np.ndarray, np.ndarray]:
    bunch = load_iris()
    return bunch.data, bunch.target_names[bunch.target]


@every_scorer
def test_scorers_are_the_metrics_with_the_sign_of_a_score(name: str) -> None:
    X, y = flowers()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    weight = np.arange(150.0)
    score = METRICS[name](y, model.predict_proba(X), model.classes_, sample_weight=weight)
    assert SCORERS[name](model, X, y, weight) == -score
    assert SCORERS[name](model, X, y) != -score
    assert pickle.loads(pickle.dumps(SCORERS[name]))(model, X, y, weight) == -score


def test_cross_validation_is_that_of_scikit_learn() -> None:
    X, y = flowers()
    model, folds = LogisticRegression(max_iter=500), StratifiedKFold(3)
    ours = cross_val_score(model, X, y, scoring=SCORERS["neg_log_loss"], cv=folds)
    theirs = cross_val_score(model, X, y, scoring="neg_log_loss", cv=folds)
    np.testing.assert_allclose(ours, theirs)
    table = cross_validate(model, X, y, scoring=SCORERS, cv=folds)
    np.testing.assert_array_equal(table["test_neg_log_loss"], ours)
    assert all(np.all(table[f"test_{name}"] < 0.0) for name in SCORERS)


def test_two_classes_beside_scikit_learn() -> None:
    X, y = flowers()
    X, y = X[50:], y[50:]
    model = LogisticRegression(max_iter=500)
    ours = cross_val_score(model, X, y == "virginica", scoring=SCORERS["neg_brier_score"], cv=3)
    theirs = cross_val_score(model, X, y == "virginica", scoring="neg_brier_score", cv=3)
    np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize("name", ["neg_log_loss", "neg_brier_score"])
def test_a_search_rejects_heavy_penalties(name: str) -> None:
    X, y = flowers()
    grid = {"C": [1e-4, 1.0]}
    search = GridSearchCV(LogisticRegression(max_iter=500), grid, scoring=SCORERS[name], cv=3)
    assert search.fit(X, y).best_params_ == {"C": 1.0}
    assert search.score(X, y) == SCORERS[name](search.best_estimator_, X, y)


@every_scorer
def test_what_cannot_be_scored(name: str) -> None:
    X, y = flowers()
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        SCORERS[name](LinearSVC().fit(X, y), X, y)
    model = LogisticRegression(max_iter=500).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="'virginica' in row 100"):
        SCORERS[name](model, X, y)
