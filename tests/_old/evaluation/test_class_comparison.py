"""Comparisons of classifiers against the same models fitted by hand."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old import BowTieClassifier, BowTieRegressor, FitOptions
from bowtienet._old.evaluation import ClassMethod, ClassScores, average_scores, compare, evaluate_classes
from bowtienet._old.evaluation.class_methods import bow_tie_classes, logistic_probabilities
from bowtienet._old.evaluation.splits import split_rows

NAMES = ["bowtienet", "LogisticRegression", "RandomForest", "HistGradientBoosting"]


def rows(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(503)
    X = rng.normal(size=(n, 2)) * [1.0, 20.0]
    score = X[:, 0] + 0.05 * X[:, 1] + 0.5 * rng.normal(size=n)
    return X, np.select([score < -0.6, score > 0.6], ["low", "top"], "mid")


def small() -> BowTieClassifier:
    options = FitOptions(weighting="equal", tol=1.0)
    return BowTieClassifier((3,), n_estimators=1, max_iter=5, random_state=0, options=options)


def fixed(name: str, seeds: tuple[int, ...] = ()) -> ClassMethod:
    """The same probabilities for all rows; fails with some seeds."""

    def fit(X: Any, codes: np.ndarray, n_classes: int, seed: int) -> Any:
        if seed in seeds:
            raise ArithmeticError("no such number")
        return lambda new: np.full((len(new), n_classes), 1.0 / n_classes)

    return ClassMethod(name=name, fit=fit)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        (
            "LogisticRegression",
            lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        ),
        ("RandomForest", lambda seed: RandomForestClassifier(300, random_state=seed)),
        ("HistGradientBoosting", lambda seed: HistGradientBoostingClassifier(random_state=seed)),
    ],
)
def test_methods_are_those_of_scikit_learn(name, make):
    X, y = rows()
    [found] = compare(X, y, methods=[name], n_splits=2, test_size=0.25, random_state=507)
    for split, scores in enumerate(found.scores):
        train, test, train_y, test_y = train_test_split(
            X, y, test_size=0.25, random_state=507 + split, stratify=y
        )
        model = make(507 + split).fit(train, train_y)
        expected = evaluate_classes(test_y, model.predict_proba(test), model.classes_)
        assert asdict(scores) == pytest.approx(asdict(expected), nan_ok=True)
    assert len(found.seconds) == 2


def test_ours_is_fitted_to_tables_as_they_are():
    X, y = rows()
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "u", "v"), "y": y})
    ours, *others = compare(table, "y", classifier=small(), n_splits=1, random_state=500)
    assert [ours.method, *(one.method for one in others)] == NAMES
    assert all(one.note is None for one in (ours, *others))
    train, test = train_test_split(table, test_size=0.1, random_state=500, stratify=table["y"])
    model = small().fit(train, "y")
    expected = evaluate_classes(
        test["y"].to_numpy(), model.predict_proba(test.drop(columns="y")), model.classes_
    )
    assert asdict(ours.scores[0]) == pytest.approx(asdict(expected), nan_ok=True)


@pytest.mark.parametrize(
    ("y", "settings", "kind"),
    [
        (["u", "v"] * 20, {}, "ClassScores"),
        ([True, False] * 20, {}, "ClassScores"),
        ([0, 1] * 20, {}, "Scores"),
        ([0, 1] * 20, {"task": "classes"}, "ClassScores"),
        (np.linspace(0.0, 1.0, 40), {}, "Scores"),
    ],
)
def test_texts_and_booleans_are_classes(y, settings, kind):
    X = np.random.default_rng(500).normal(size=(40, 2))
    line = "LogisticRegression" if kind == "ClassScores" else "BayesianRidge"
    [found] = compare(X, np.asarray(y), methods=[line], n_splits=1, **settings)
    assert type(found.scores[0]).__name__ == kind


def test_a_method_that_fails_has_no_scores():
    X, y = rows()
    methods = [fixed("fails", (501,)), fixed("works")]
    fails, works = compare(X, y, methods=methods, n_splits=2, random_state=500)
    assert fails.note == "failed with seed 501: ArithmeticError: no such number"
    assert math.isnan(fails.scores[1].log_loss)
    assert math.isnan(fails.seconds[1])
    assert math.isnan(average_scores(fails.scores).log_loss)
    mean = average_scores(works.scores)
    assert isinstance(mean, ClassScores)
    assert (mean.n_rows, mean.log_loss) == (24, pytest.approx(math.log(3.0)))


@pytest.mark.parametrize(
    ("settings", "mentioned"),
    [
        ({"task": "counts"}, "task"),
        ({"task": "numbers", "classifier": small()}, "classifier"),
        ({"task": "classes", "regressor": BowTieRegressor()}, "regressor"),
        ({"methods": ["BayesianRidge"]}, "LogisticRegression"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, mentioned):
    X, y = rows(20)
    with pytest.raises(ValueError, match=mentioned):
        compare(X, y, **settings)


def test_a_classifier_without_probabilities_is_refused():
    with pytest.raises(TypeError, match="predict_proba"):
        bow_tie_classes(LinearRegression())


def test_every_class_has_training_rows():
    codes = np.array([0] * 30 + [1] * 9 + [2])
    for seed in range(500, 520):
        train, test = split_rows(40, 0.5, seed, codes)
        assert set(codes[test]) <= set(codes[train])
        assert sorted([*train, *test]) == list(range(40))
    shares = [np.mean(codes[:39][part]) for part in split_rows(39, 1 / 3, 500, codes[:39])]
    np.testing.assert_allclose(shares, [6 / 26, 3 / 13])


def test_weights_of_a_logistic_regression_are_numbers_of_rows():
    X, y = rows(60)
    codes = np.unique(y, return_inverse=True)[1]
    counts = np.random.default_rng(500).integers(0, 3, size=60)
    repeated = np.repeat(np.arange(60), counts)
    once = logistic_probabilities(X, codes, counts.astype(float), X, 3)
    often = logistic_probabilities(X[repeated], codes[repeated], None, X, 3)
    np.testing.assert_allclose(once, often, atol=1e-4)
    alone = logistic_probabilities(X[:2], np.array([1, 1]), None, X, 3)
    np.testing.assert_array_equal(alone, np.tile([0.0, 1.0, 0.0], (60, 1)))
