"""What pictures read from estimators: the network in a pipeline, names, weights, predictions."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from bowtienet import BowTieRegressor
from bowtienet.estimators.table_pipeline import TablePipeline
from bowtienet.plotting import ElboDisplay
from bowtienet.plotting.fitted import (
    member_weights,
    names_of,
    network_of,
    predictive,
    target_name,
)
from tests.plotting.fits import quick

Rows = tuple[pd.DataFrame, pd.Series]


def test_the_network_is_the_model_or_the_last_step_of_its_pipeline(
    model: BowTieRegressor, pipeline: TablePipeline
) -> None:
    assert network_of(model) is model
    assert network_of(pipeline) is pipeline.regressor_
    assert network_of(Pipeline([("first", StandardScaler()), ("last", model)])) is model
    assert network_of(Pipeline([("only", model)])) is model


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (LinearRegression(), "model must be a fitted BowTieRegressor.*got LinearRegression"),
        (make_pipeline(LinearRegression()), "got a pipeline that ends with LinearRegression"),
        (BowTieRegressor, "got BowTieRegressor"),
        (None, "got NoneType"),
    ],
)
def test_other_models_have_no_network(given: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        network_of(given)


def test_unfitted() -> None:
    with pytest.raises(NotFittedError):
        network_of(BowTieRegressor())
    with pytest.raises(NotFittedError):
        network_of(make_pipeline(StandardScaler(), BowTieRegressor()))
    with pytest.raises(NotFittedError):
        predictive(make_pipeline(StandardScaler(), BowTieRegressor()), np.ones((2, 2)))


def test_names_are_those_of_the_networks_inputs(
    model: BowTieRegressor, pipeline: TablePipeline, rows: Rows
) -> None:
    assert names_of(model) == ["a", "b", "c"]
    assert names_of(pipeline)[:3] == ["city=Lima", "city=Oslo", "city=Rome"]
    X, y = rows
    assert names_of(make_pipeline(StandardScaler(), quick()).fit(X, y)) == ["a", "b", "c"]
    unnamed = make_pipeline(FunctionTransformer(np.asarray), quick()).fit(X, y)
    assert names_of(unnamed) == ["x0", "x1", "x2"]
    assert names_of(make_pipeline(quick()).fit(X.to_numpy(), y)) == ["x0", "x1", "x2"]


def test_predictions_of_a_pipeline_are_those_of_its_last_step(rows: Rows) -> None:
    X, y = rows
    scaler = StandardScaler().fit(X)
    last = quick().fit(scaler.transform(X), y)
    found = predictive(Pipeline([("scale", scaler), ("fit", last)]), X)
    np.testing.assert_array_equal(found.means, last.predict_dist(scaler.transform(X)).means)
    np.testing.assert_array_equal(
        predictive(last, X.to_numpy()).means, last.predict_dist(X.to_numpy()).means
    )
    assert predictive(Pipeline([("fit", last)]), X.to_numpy()).means.shape == (2, 61)


def test_models_without_distributions_are_refused(rows: Rows) -> None:
    X, y = rows
    line = LinearRegression().fit(X, y)
    for given in (line, make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)):
        with pytest.raises(
            TypeError, match=r"by predict_dist\(X\).*(LinearRegression|Pipeline) does"
        ):
            predictive(given, X)
    line.predict_dist = line.predict
    with pytest.raises(TypeError, match="must return a GaussianMixture, got ndarray"):
        predictive(line, X)


@pytest.mark.parametrize(
    ("y", "target", "expected"),
    [
        ("price", 0, "price"),
        (["low", "high"], 1, "high"),
        (pd.Series([1.0], name="height"), 0, "height"),
        (pl.Series("height", [1.0]), 0, "height"),
        (pd.DataFrame({"u": [1.0], "v": [2.0]}), 1, "v"),
        (pl.DataFrame({"u": [1.0], "v": [2.0]}), 1, "v"),
        (pa.table({"u": [1.0], "v": [2.0]}), 0, "u"),
        (np.ones(3), 0, "target"),
        ([1.0, 2.0], 1, "target"),
        (pd.Series([1.0]), 0, "target"),
    ],
)
def test_the_name_of_the_target(y: object, target: int, expected: str) -> None:
    assert target_name(LinearRegression(), y, target) == expected


def test_the_pipeline_knows_the_name_of_its_target(pipeline: TablePipeline) -> None:
    assert target_name(pipeline, np.ones(3), 0) == "price"
    assert target_name(pipeline, None, 0) == "price"


def test_weights_stand_at_their_users_columns(model: BowTieRegressor) -> None:
    """The user's standardised table through the drawn weights is the networks' own forward pass."""
    x = np.random.default_rng(1).normal(size=(5, 3))
    ensemble = model.ensemble_
    for member in range(2):
        own = ensemble.members[member].factors.layers[0].weights.mean
        np.testing.assert_allclose(
            member_weights(model, member)[0][:, 1:] @ x.T,
            own[:, 1:] @ x[:, ensemble.column_order].T,
        )


def test_pictures_can_be_imported_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the library anew, as in a process of its own; then the old one again."""
    for name in ["matplotlib", *(n for n in sys.modules if n.startswith("matplotlib."))]:
        monkeypatch.setitem(sys.modules, name, None)
    loaded = {name: sys.modules.pop(name) for name in _own_modules()}
    try:
        fresh = importlib.import_module("bowtienet.plotting")
        assert fresh.ElboDisplay is not ElboDisplay
        with pytest.raises(ImportError, match=r"pip install 'bowtienet\[plot\]'"):
            fresh.draw_bars(["a"], [1.0])
    finally:
        for name in _own_modules():
            del sys.modules[name]
        sys.modules.update(loaded)


def _own_modules() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "bowtienet"]
