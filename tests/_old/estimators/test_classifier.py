"""`BowTieClassifier`: labels of every kind, weights, invariances, files, fits that go on."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

from bowtienet._old import BowTieClassifier, BowTieRegressor, load
from tests._old.estimators.class_models import WORDS, rows, small, stacked
from tests._old.estimators.models import assert_same, at_sweep, watched

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = rows()
CODES = np.searchsorted(WORDS, Y)
KINDS: dict[str, np.ndarray] = {
    "text": WORDS,
    "objects": WORDS.astype(object),
    "bytes": WORDS.astype("S"),
    "whole numbers": np.array([-3, 0, 7]),
    "short numbers": np.array([1, 2, 5], dtype="int8"),
    "whole floats": np.array([0.0, 1.0, 2.0]),
    "booleans": np.array([False, True, True]),
}
LIBRARIES: dict[str, Any] = {
    "list": lambda y: y.tolist(),
    "pandas": pd.Series,
    "category": lambda y: pd.Series(y, dtype="category"),
    "polars": pl.Series,
    "pyarrow": pa.array,
}


@pytest.fixture(scope="module")
def fitted() -> BowTieClassifier:
    return stacked().fit(X, Y)


# Labels


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_every_type_come_back_as_they_were(kind: str, tmp_path: Path) -> None:
    labels = KINDS[kind]
    y = labels[CODES]
    model = small(class_weight={np.unique(y).tolist()[0]: 2.0}).fit(X, y)
    assert_array_equal(model.classes_, np.unique(y))
    assert model.classes_.dtype == model.predict(X).dtype == labels.dtype
    assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    model.save(tmp_path / "model.btn")
    for again in (load(tmp_path / "model.btn"), pickle.loads(pickle.dumps(model))):
        assert type(again) is BowTieClassifier
        assert again.classes_.dtype == model.classes_.dtype
        assert_array_equal(again.classes_, model.classes_)
        assert again.class_weight == model.class_weight
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.score(X, y) == model.score(X, y)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["text", "whole numbers", "booleans"])
def test_labels_of_every_library_make_the_same_model(library: str, kind: str) -> None:
    y = KINDS[kind][CODES]
    model, expected = small().fit(X, LIBRARIES[library](y)), small().fit(X, y)
    assert_array_equal(model.classes_, expected.classes_)
    assert_same(model, expected)
    assert model.score(X, LIBRARIES[library](y)) == expected.score(X, y)


def test_two_classes_have_log_odds_and_more_have_log_probabilities(
    fitted: BowTieClassifier,
) -> None:
    assert_array_equal(fitted.decision_function(X), fitted.predict_log_proba(X))
    assert_allclose(np.exp(fitted.predict_log_proba(X)), fitted.predict_proba(X), rtol=1e-12)
    two = small().fit(X, Y == "ash")
    p = two.predict_proba(X)[:, 1]
    assert_allclose(two.decision_function(X), np.log(p) - np.log1p(-p), rtol=1e-9, atol=1e-9)
    assert_array_equal(two.decision_function(X) > 0.0, two.predict(X))


@pytest.mark.slow
def test_a_hundred_and_twenty_classes() -> None:
    rng = np.random.default_rng(502)
    y = np.arange(720) % 120
    table = np.column_stack([y / 10.0 + rng.normal(size=720), rng.normal(size=720)])
    model = small(weighting="stacking").fit(table, y)
    found = model.predict_proba(table)
    assert found.shape == (720, 120)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert model.log_score(table, y) > -np.log(120.0) + 0.5
    assert_array_equal(model.structure(table, y).selected, [True, False])


def test_bad_labels_are_named() -> None:
    with pytest.raises(ValueError, match="only one class, 'ash': a classifier needs at least two"):
        small().fit(X, np.full(len(X), "ash"))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        small().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="1 missing label"):
        small().fit(X, [None, *Y[1:]])
    with pytest.raises(ValueError, match="3 columns, but labels are one"):
        small().fit(X, X)
    with pytest.raises(NotFittedError):
        small().decision_function(X)


def test_labels_that_were_not_fitted_are_named(fitted: BowTieClassifier) -> None:
    for score in (fitted.score, fitted.log_score, fitted.importance, fitted.structure):
        with pytest.raises(ValueError, match=r"'yew' in row 0.*not one of the 3 classes"):
            score(X, np.array(["yew", *Y[1:]]))


def test_a_column_is_taken_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        model = small().fit(X, Y[:, None])
    assert caught[0].filename == __file__
    assert model.predict(X).shape == (len(X),)
    assert_same(model, small().fit(X, Y))


# Scores


def test_scores_are_those_of_the_probabilities(fitted: BowTieClassifier) -> None:
    weights = np.random.default_rng(503).integers(0, 3, size=len(X)).astype(float)
    own = np.log(fitted.predict_proba(X)[np.arange(len(X)), CODES])
    assert_allclose(fitted.log_score(X, Y, weights), np.average(own, weights=weights))
    assert_allclose(
        fitted.score(X, Y, weights), np.average(fitted.predict(X) == Y, weights=weights)
    )


# Weights and invariances


@pytest.mark.parametrize("make", [small, stacked])
def test_weights_of_classes_are_weights_of_rows(make: Any) -> None:
    weights = 1.0 + np.arange(len(X)) % 2
    sums = np.bincount(CODES, weights=weights)
    balancing = weights.sum() / (3.0 * sums)
    balanced = make(class_weight="balanced").fit(X, Y, weights)
    assert_allclose(
        balanced.predict_proba(X),
        make().fit(X, Y, weights * balancing[CODES]).predict_proba(X),
        atol=1e-12,
    )
    given = make(class_weight={"ash": 0.5, "oak": 4.0}).fit(X, Y, weights)
    factors = np.array([0.5, 1.0, 4.0])[CODES]
    assert_same(given, make().fit(X, Y, weights * factors))
    assert given.predict_proba(X)[:, 2].mean() > balanced.predict_proba(X)[:, 2].mean()


def test_bad_weights_of_classes_are_named() -> None:
    with pytest.raises(ValueError, match="class_weight names the class 'yew'"):
        small(class_weight={"yew": 1.0}).fit(X, Y)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="finite weights that are not negative"):
            small(class_weight={"ash": bad}).fit(X, Y)
    with pytest.raises(ValueError, match="class_weight"):
        small(class_weight="even").fit(X, Y)
    with pytest.raises(ValueError, match=r"'balanced' needs all rows at once.*dict"):
        small(class_weight="balanced").partial_fit(X, Y)


@pytest.mark.parametrize("make", [small, stacked])
def test_rows_of_weight_zero_are_absent_and_of_weight_two_there_twice(make: Any) -> None:
    counts = np.arange(len(X)) % 3
    again = np.repeat(np.arange(len(X)), counts)
    assert_allclose(
        make().fit(X, Y, counts.astype(float)).predict_proba(X),
        make().fit(X[again], Y[again]).predict_proba(X),
        atol=1e-9,
    )
    absent = (counts > 0).astype(float)
    assert_same(make().fit(X, Y, absent), make().fit(X[counts > 0], Y[counts > 0]))


# Tables that ask for care


def constant_column() -> tuple[np.ndarray, np.ndarray]:
    return np.column_stack([X, np.ones(len(X))]), Y


def same_rows() -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(X[:6], 10, axis=0), np.tile(np.array(["a", "b"]), 30)


TABLES: dict[str, Any] = {
    "ten rows": lambda: (X[:10], Y[:10]),
    "two rows": lambda: (X[[0, 1]], np.array(["a", "b"])),
    "constant column": constant_column,
    "only constants": lambda: (np.ones((40, 2)), np.arange(40) % 2),
    "identical rows": same_rows,
    "one row of a class": lambda: (X, np.where(np.arange(len(X)) == 3, "rare", "often")),
    "far apart": lambda: (X * 1e6 + 1e9, Y),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("make", [small, stacked])
def test_small_and_poor_tables(make: Any, table: str) -> None:
    features, labels = TABLES[table]()
    found = make().fit(features, labels).predict_proba(features)
    assert np.isfinite(found).all()
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    if table in ("only constants", "identical rows"):
        assert_allclose(found, 0.5, atol=0.1)


def test_more_columns_than_rows_are_seen_by_principal_components() -> None:
    wide = np.random.default_rng(505).normal(size=(60, 200))
    y = np.where(wide[:, 0] > 0.0, "up", "down")
    model = stacked().fit(wide, y)
    assert model.ensemble_.representation.views[0].principal is not None
    assert np.isfinite(model.log_score(wide, y))


@pytest.mark.parametrize("layers", [(), (8, 8)])
def test_no_hidden_layer_and_two(layers: tuple[int, ...]) -> None:
    model = stacked(hidden_layer_sizes=layers).fit(X, Y)
    shares = np.bincount(CODES) / len(X)
    assert model.log_score(X, Y) > float(shares @ np.log(shares))


# Fits that go on


def test_a_warm_start_goes_on_with_the_weights_of_classes() -> None:
    heavy = {"oak": 5.0}
    model = small(warm_start=True, class_weight=heavy).fit(X, Y).fit(X, Y)
    by_rows = small(warm_start=True)
    for _ in range(2):
        by_rows.fit(X, Y, np.where(Y == "oak", 5.0, 1.0))
    assert_same(model, by_rows)
    with pytest.raises(ValueError, match=r"'yew'.*This goes on from the last fit"):
        model.fit(X, np.where(Y == "ash", "yew", Y))


@pytest.mark.parametrize("make", [small, stacked])
def test_rows_that_arrive(make: Any) -> None:
    labels = [*WORDS, "yew"]
    model = make().partial_fit(X[:50], Y[:50], classes=labels)
    assert_array_equal(model.classes_, labels)
    before = model.predict_proba(X)
    model.partial_fit(X[50:], Y[50:]).partial_fit(X[:20], np.repeat("yew", 20), classes=labels)
    found = model.predict_proba(X)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert found[:, 3].mean() > before[:, 3].mean()
    assert_allclose(model.member_weights_.sum(), 1.0)
    with pytest.raises(ValueError, match="not those of the calls before"):
        model.partial_fit(X, Y, classes=WORDS)
    with pytest.raises(ValueError, match="'box'"):
        model.partial_fit(X[:2], ["box", "ash"])


def test_weights_of_members_follow_the_probability_of_arriving_labels() -> None:
    """Of two members one hardly dares: its outputs are nearer to the numbers of the classes."""
    labels = np.where(X[:, 1] > 0.0, "up", "down")
    model = stacked(n_estimators=1).fit(X, labels)
    [sure] = model.ensemble_.members
    output = sure.factors.layers[-1]
    weights = replace(output.weights, mean=0.1 * output.weights.mean)
    layers = (*sure.factors.layers[:-1], replace(output, weights=weights))
    hesitant = replace(sure, factors=replace(sure.factors, layers=layers))
    model.ensemble_ = replace(
        model.ensemble_,
        members=(sure, hesitant),
        weights=np.array([0.5, 0.5]),
        views=model.ensemble_.views * 2,
        groups=(0, 0),
    )
    new = np.tile(X, (10, 1))
    model.partial_fit(new, np.where(new[:, 1] > 0.0, "up", "down"))
    assert model.member_weights_[0] > 0.8


def test_a_fit_that_was_cut_short_is_resumed(tmp_path: Path) -> None:
    settings = {"max_iter": 4, "tol": 0.0, "n_estimators": 3, "class_weight": "balanced"}
    expected = small(**settings).fit(X, Y)
    model = small(**settings, checkpoint=tmp_path / "checkpoint")
    watched(model, at_sweep(6, KeyboardInterrupt))  # type: ignore[arg-type]
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*resume"):
        model.fit(X, Y)
    assert np.isfinite(model.predict_proba(X)).all()
    again = small(**settings, checkpoint=tmp_path / "checkpoint").resume(X, Y)
    assert_same(again, expected)


def test_files_are_those_of_one_estimator(fitted: BowTieClassifier, tmp_path: Path) -> None:
    fitted.structure(X, Y)
    fitted.save(tmp_path / "model.btn")
    again = BowTieClassifier.load(tmp_path / "model.btn")
    assert again.structure_.names == fitted.structure_.names
    assert_allclose(again.feature_importances_, fitted.feature_importances_)
    assert_array_equal(again.sample_proba(X, 3), fitted.sample_proba(X, 3))
    with pytest.raises(ValueError, match="BowTieClassifier"):
        BowTieRegressor.load(tmp_path / "model.btn")


# Two values as numbers


def test_a_regressor_asks_whether_zeros_and_ones_are_classes() -> None:
    y = np.arange(20) % 2
    model = BowTieRegressor((4,), n_estimators=1, effort="fast", random_state=0)
    with pytest.warns(UserWarning, match="BowTieClassifier") as caught:
        model.fit(X[:20], y)
    assert [warning.filename for warning in caught] == [__file__]
    for other in (y + 1, np.where(y > 0, 1.5, 0.0), np.column_stack([y, 1 - y])):
        model.fit(X[:20], other)
    model.fit(X[:8], y[:8])
    model.set_params(outcome="counts").fit(X[:20], y)
    for classes in (y > 0, np.where(y > 0, "yes", "no")):
        with pytest.raises(ValueError, match="use BowTieClassifier for classes"):
            model.fit(X[:20], classes)
