"""Comparisons against the same models fitted by hand, and what happens when one fails."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from bowtienet._old import BowTieRegressor, FitOptions
from bowtienet._old.evaluation.comparison import Comparison, average_scores, compare
from bowtienet._old.evaluation.methods import (
    Forecast,
    Forecaster,
    Method,
    boosted_quantiles,
    bow_tie,
    default_methods,
    gaussian_process,
)
from bowtienet._old.evaluation.metrics import Scores, evaluate
from bowtienet._old.prediction.mixture import build_mixture

NAMES = [
    "bowtienet",
    "BayesianRidge",
    "GaussianProcessRegressor",
    "HistGradientBoosting quantiles",
]


def rows(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) * [1.0, 20.0]
    return X, X[:, 0] + 0.1 * X[:, 1] + 0.5 * rng.normal(size=n)


def small() -> BowTieRegressor:
    options = FitOptions(weighting="equal", tol=1.0)
    return BowTieRegressor((3,), n_estimators=1, max_iter=5, random_state=0, options=options)


def only(name: str, X: Any, y: Any, **settings: Any) -> Comparison:
    (found,) = compare(X, y, methods=[name], **settings)
    assert found.method == name
    return found


def standard(found: np.ndarray) -> Forecast:
    """N(0, 1) for every row."""
    mean = np.zeros((1, len(found)))
    distribution = build_mixture([1.0], mean, mean + 1.0)
    return Forecast(distribution=distribution, intervals=distribution.interval(0.9))


def watching(name: str, seen: list) -> Method:
    """A method that notes all that it is given."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        def forecast(new: np.ndarray) -> Forecast:
            seen.append((X.copy(), y.copy(), new.copy(), seed, coverage))
            return standard(new)

        return forecast

    return Method(name=name, fit=fit)


def failing(name: str = "failing", seeds: tuple[int, ...] = (0, 1, 2)) -> Method:
    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        if seed in seeds:
            raise ArithmeticError("no such number")
        return standard

    return Method(name=name, fit=fit)


# The methods, against scikit-learn by hand


def by_hand(split: int, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    train, test, train_y, test_y = train_test_split(X, y, test_size=0.25, random_state=7 + split)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test), train_y, test_y


def gaussian_scores(y: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> dict[str, float]:
    forecast = norm(mean, deviation)
    low, high = forecast.interval(0.8)
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return {
        "n_rows": len(y),
        "rmse": math.sqrt(np.mean((y - mean) ** 2)),
        "nll": -forecast.logpdf(y).mean(),
        "nominal_coverage": 0.8,
        "coverage": np.mean((low <= y) & (y <= high)),
        "interval_score": np.mean(high - low + 10.0 * missed),
    }


def assert_scores(found: Scores, expected: dict[str, float]) -> None:
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, rel=1e-10)


def test_bayesian_ridge_is_that_of_scikit_learn() -> None:
    X, y = rows()
    found = only("BayesianRidge", X, y, n_splits=2, test_size=0.25, random_state=7, coverage=0.8)
    assert found.note is None
    assert len(found.seconds) == 2
    assert min(found.seconds) > 0.0
    for split, scores in enumerate(found.scores):
        train, test, train_y, test_y = by_hand(split, X, y)
        center, scale = np.mean(train_y), np.std(train_y)
        line = BayesianRidge().fit(train, (train_y - center) / scale)
        mean, deviation = line.predict(test, return_std=True)
        moments = center + scale * mean, scale * deviation
        assert_scores(scores, gaussian_scores(test_y, *moments))


@pytest.mark.parametrize("method", ["BayesianRidge", "GaussianProcessRegressor"])
def test_the_unit_of_the_target_changes_no_baseline(method: str) -> None:
    """Prices of houses in francs are as predictable as in millions."""
    X, y = rows(40)
    small, large = (only(method, X, unit * y, n_splits=1).scores[0].rmse for unit in (1.0, 1e6))
    assert large == pytest.approx(1e6 * small, rel=1e-3)


def test_the_gaussian_process_is_that_of_scikit_learn() -> None:
    X, y = rows(40)
    name = "GaussianProcessRegressor"
    found = only(name, X, y, n_splits=1, test_size=0.25, random_state=7, coverage=0.8)
    assert found.note is None
    train, test, train_y, test_y = by_hand(0, X, y)
    kernel = ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        moments = process.fit(train, train_y).predict(test, return_std=True)
    assert_scores(found.scores[0], gaussian_scores(test_y, *moments))


def test_boosted_quantiles_are_those_of_scikit_learn() -> None:
    X, y = rows(120)
    name = "HistGradientBoosting quantiles"
    found = only(name, X, y, n_splits=1, test_size=0.25, random_state=7, coverage=0.8)
    train, test, train_y, test_y = train_test_split(X, y, test_size=0.25, random_state=7)
    mean = HistGradientBoostingRegressor().fit(train, train_y).predict(test)
    low, high = (
        HistGradientBoostingRegressor(loss="quantile", quantile=q).fit(train, train_y).predict(test)
        for q in (0.1, 0.9)
    )
    low, high = np.minimum(low, high), np.maximum(low, high)
    deviation = np.maximum((high - low) / (2.0 * norm.ppf(0.9)), 1e-3 * np.std(train_y))
    expected = gaussian_scores(test_y, mean, deviation)
    missed = np.maximum(low - test_y, 0.0) + np.maximum(test_y - high, 0.0)
    expected["coverage"] = np.mean(missed == 0.0)
    expected["interval_score"] = np.mean(high - low + 10.0 * missed)
    assert_scores(found.scores[0], expected)
    assert found.note is not None
    assert "normal distribution" in found.note


def test_intervals_never_cross() -> None:
    """Quantiles 0.49 and 0.51 of trees that know nothing of each other do."""
    X, y = rows(120)
    raw = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q).fit(X, y).predict(X)
        for q in (0.49, 0.51)
    ]
    assert np.any(raw[0] > raw[1])
    found = boosted_quantiles().fit(X, y, 0, 0.02)(X)
    np.testing.assert_allclose(found.intervals, np.sort(np.transpose(raw), axis=1), rtol=1e-12)


def test_intervals_without_width_have_a_density_all_the_same() -> None:
    """Three of four targets are zero, and so are both quantiles in the middle."""
    X = np.arange(80.0)[:, None]
    y = np.where(np.arange(80) % 4 == 0, 1.0, 0.0)
    found = boosted_quantiles().fit(X, y, 0, 0.2)(X)
    np.testing.assert_array_equal(found.intervals, np.zeros((80, 2)))
    np.testing.assert_allclose(found.distribution.deviations, 1e-3 * np.std(y))
    assert found.note is not None
    assert "at least 0.001 of the target's" in found.note


def test_ours_is_the_given_regressor() -> None:
    X, y = rows()
    given = small()
    (found,) = compare(X, y, regressor=given, methods=["bowtienet"], n_splits=2)
    assert not hasattr(given, "ensemble_")
    for seed, scores in enumerate(found.scores):
        train, test, train_y, test_y = train_test_split(X, y, test_size=0.1, random_state=seed)
        assert scores == evaluate(test_y, small().fit(train, train_y).predict_dist(test))


def test_ours_without_a_regressor_has_the_seed_of_the_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds, real = [], BowTieRegressor.fit

    def fit(self: BowTieRegressor, *data: Any) -> BowTieRegressor:
        seeds.append(self.random_state)
        return real(self.set_params(**small().get_params(deep=False)), *data)

    monkeypatch.setattr(BowTieRegressor, "fit", fit)
    X, y = rows(30)
    only("bowtienet", X, y, n_splits=2, random_state=5)
    only("bowtienet", X, y, n_splits=2, random_state=5, regressor=BowTieRegressor())
    only("bowtienet", X, y, n_splits=2, random_state=5, regressor=BowTieRegressor(random_state=3))
    assert seeds == [5, 6, 5, 6, 3, 3]


def test_the_gaussian_process_is_fitted_to_some_of_many_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = rows(60)
    fitted = []
    original = GaussianProcessRegressor.fit

    def watched(self: Any, X: np.ndarray, y: np.ndarray) -> Any:
        fitted.append((len(X), set(y)))
        return original(self, X, y)

    monkeypatch.setattr(GaussianProcessRegressor, "fit", watched)
    (found,) = compare(X, y, methods=[gaussian_process(max_rows=20)], n_splits=2)
    assert [size for size, _ in fitted] == [20, 20]
    for seed, (_, targets) in enumerate(fitted):
        assert len(targets) == 20  # drawn without replacement
        assert targets <= set(train_test_split(y, test_size=0.1, random_state=seed)[0])
    assert found.note == "fitted to 20 random training rows of 54: its time is cubic"
    (again,) = compare(X, y, methods=[gaussian_process(max_rows=20)], n_splits=2)
    assert again.scores == found.scores
    (whole,) = compare(X, y, methods=[gaussian_process(max_rows=54)], n_splits=2)
    assert whole.note is None


def test_all_methods_stand_in_one_table() -> None:
    X, y = rows()
    found = compare(X, y, regressor=small(), n_splits=1)
    assert [each.method for each in found] == NAMES == [m.name for m in default_methods()]
    assert all(math.isfinite(v) for each in found for v in asdict(each.scores[0]).values())


# The same rows for all


def test_all_methods_see_the_same_splits() -> None:
    X, y = rows(30)
    first, second = [], []
    compare(
        X,
        y,
        methods=[watching("first", first), watching("second", second)],
        test_size=0.2,
        random_state=3,
        coverage=0.7,
    )
    assert len(first) == len(second) == 3
    for split, (ours, theirs) in enumerate(zip(first, second, strict=True)):
        train, test, train_y, _ = train_test_split(X, y, test_size=0.2, random_state=3 + split)
        for found, other, expected in zip(ours, theirs, (train, train_y, test), strict=False):
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(other, expected)
        assert ours[3:] == theirs[3:] == (3 + split, 0.7)


def mixed(n: int = 60) -> tuple[dict[str, Any], np.ndarray]:
    X, y = rows(n)
    number = np.where(np.arange(n) % 9 == 0, np.nan, X[:, 0])
    return {"number": number, "text": np.where(X[:, 1] > 0.0, "high", "low")}, y


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_methods_that_need_numbers_get_encoded_columns(kind: Callable[[Any], Any]) -> None:
    """Medians and indicators for missing values, one column for each text."""
    table, y = mixed()
    seen: list = []
    _, ridge = compare(kind(table), y, methods=[watching("only", seen), "BayesianRidge"])
    for seed, (train, _, test, *_) in enumerate(seen):
        raw, new = train_test_split(table["number"], test_size=0.1, random_state=seed)
        assert train.shape == (54, 4)
        typical = np.nanmedian(raw)
        for found, expected in ((train, raw), (test, new)):
            np.testing.assert_array_equal(
                found[:, 0], np.where(np.isnan(expected), typical, expected)
            )
            np.testing.assert_array_equal(found[:, 1], np.isnan(expected))
            np.testing.assert_array_equal(found[:, 2] + found[:, 3], 1.0)
    assert ridge.note is None
    assert all(math.isfinite(scores.nll) for scores in ridge.scores)


def test_ours_gets_the_table_as_it_is() -> None:
    table, y = mixed()
    frame = pd.DataFrame(table)
    by_name = only("bowtienet", frame.assign(y=y), "y", regressor=small(), n_splits=2)
    assert by_name.note is None
    assert by_name.scores == only("bowtienet", frame, y, regressor=small(), n_splits=2).scores
    for seed, scores in enumerate(by_name.scores):
        parts = train_test_split(frame, y, test_size=0.1, random_state=seed)
        train, test, train_y, test_y = parts
        assert scores == evaluate(test_y, small().fit(train, train_y).predict_dist(test))


def test_unseen_categories_are_no_failure() -> None:
    """One row has a text of its own: the split that tests on it has not seen it in training."""
    table, y = mixed(30)
    table["text"] = np.where(np.arange(30) == 3, "rare", table["text"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = compare(pd.DataFrame(table), y, regressor=small(), methods=NAMES[:2], n_splits=10)
    assert [each.note for each in found] == [None, None]


def test_the_callback_hears_of_every_fit() -> None:
    X, y = rows(30)
    heard: list[tuple[str, int]] = []
    methods = [watching("a", []), failing("b")]
    compare(X, y, methods=methods, n_splits=2, callback=lambda *what: heard.append(what))
    assert heard == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


# Failures


def test_a_method_that_fails_on_one_split_is_reported() -> None:
    X, y = rows(30)
    bad, good = compare(X, y, methods=[failing(seeds=(1,)), "BayesianRidge"])
    assert bad.note == "failed with seed 1: ArithmeticError: no such number"
    assert [math.isnan(scores.crps) for scores in bad.scores] == [False, True, False]
    assert [math.isnan(seconds) for seconds in bad.seconds] == [False, True, False]
    assert (bad.scores[1].n_rows, bad.scores[1].nominal_coverage) == (3, 0.9)
    assert good.note is None
    assert good.scores == only("BayesianRidge", X, y).scores


def test_an_interrupt_is_no_failure_of_a_method() -> None:
    def fit(*_: Any) -> Forecaster:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(*rows(30), methods=[Method(name="stopped", fit=fit)])


# Means


def test_scores_are_averaged_over_splits() -> None:
    X, y = rows(30)
    scores = only("BayesianRidge", X, y).scores
    found = average_scores(scores)
    assert found.n_rows == 9
    assert found.nominal_coverage == 0.9
    for name in ("rmse", "nll", "crps", "coverage", "interval_score", "calibration_error"):
        assert getattr(found, name) == pytest.approx(np.mean([getattr(s, name) for s in scores]))
    failed = average_scores([*scores, replace(scores[0], crps=math.nan)])
    assert math.isnan(failed.crps)


# Bad input


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"methods": ["Ridge"]}, "'Ridge'"),
        ({"methods": [LinearRegression()]}, "LinearRegression"),
        ({"n_splits": 0}, "n_splits"),
        ({"coverage": 90}, "coverage"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_settings(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        compare(*rows(30), **settings)
    with pytest.raises(TypeError, match=r"predict_dist.*LinearRegression"):
        bow_tie(LinearRegression())


def test_bad_tables() -> None:
    X, y = rows(30)
    with pytest.raises(ValueError, match="2 targets"):
        compare(X, X)
    with pytest.raises(ValueError, match="'c'"):
        compare(pd.DataFrame({"c": ["a"] * 30}), y)
    with pytest.raises(ValueError, match="memory"):
        compare([(X, y)], None)
