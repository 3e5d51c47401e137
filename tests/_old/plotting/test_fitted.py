"""What plots read from estimators: the network in a pipeline, names, weights, predictions."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old import BowTieClassifier, BowTieRegressor, FitOptions, open_source
from bowtienet._old.plotting import (
    ElboDisplay,
    ImportanceDisplay,
    NetworkDisplay,
    PitHistogramDisplay,
    WeightsDisplay,
)
from bowtienet._old.plotting.fitted import (
    encoded_features,
    feature_names,
    member_column_names,
    member_column_weights,
    member_input_names,
    member_weights,
    network_of,
    open_rows,
    output_names,
    target_names,
)
from bowtienet._old.representation.representation import input_names
from tests._old.plotting.fits import quick
from tests._old.sign_pruning import prune_by_signs

Rows = tuple[pd.DataFrame, pd.Series]


def test_the_network_is_the_model_or_the_last_step_of_its_pipeline(model: BowTieRegressor) -> None:
    assert network_of(model) is model
    assert network_of(Pipeline([("first", StandardScaler()), ("last", model)])) is model
    with pytest.raises(TypeError, match="LinearRegression"):
        network_of(make_pipeline(LinearRegression()))


def test_classes_are_outputs_and_have_no_plots_of_numbers() -> None:
    X = np.random.default_rng(500).normal(size=(60, 2))
    options = FitOptions(weighting="equal", tol=1e-2)
    settings = {"n_estimators": 1, "max_iter": 80, "random_state": 0, "options": options}
    codes = np.searchsorted([-0.4, 0.4], X[:, 0])
    three = BowTieClassifier((3,), **settings).fit(X, np.array(["a", "b", "c"])[codes])
    two = BowTieClassifier((3,), **settings).fit(X, codes > 1)
    assert output_names(three) == ["a", "b", "c"]
    assert output_names(two) == list(two.target_names_)
    assert NetworkDisplay.from_estimator(three).output_names == ["a", "b", "c"]
    label = ImportanceDisplay.from_estimator(three, X, np.array(["a", "b", "c"])[codes]).label
    assert "log probability" in label
    with pytest.raises(TypeError, match="ReliabilityDisplay"):
        PitHistogramDisplay.from_estimator(two, X, codes > 1)


def test_plots_of_counts_know_exposures() -> None:
    rng = np.random.default_rng(500)
    table = pd.DataFrame({"x": rng.normal(size=80), "hours": rng.uniform(0.5, 4.0, size=80)})
    table["y"] = rng.poisson(table["hours"] * np.exp(0.5 * table["x"]))
    options = FitOptions(weighting="equal", tol=1e-2)
    settings = {"n_estimators": 1, "max_iter": 80, "random_state": 0, "options": options}
    model = BowTieRegressor((3,), outcome="counts", **settings).fit(table, "y", exposure="hours")
    source = open_source(table, "y", target="count", exposure="hours")
    shown = PitHistogramDisplay.from_estimator(model, source, None)
    found = model.predict_dist(table[["x"]], exposure=table["hours"])
    expected = PitHistogramDisplay.from_predictions(table["y"].to_numpy(), found)
    np.testing.assert_array_equal(shown.values, expected.values)


def test_names_of_a_table(mixed: BowTieRegressor, flats: pd.DataFrame) -> None:
    source = open_rows(mixed, flats, "price")
    assert target_names(mixed, source) == ["price"]
    assert feature_names(mixed, source) == ["city", "area", "new"]
    names = member_input_names(mixed, 0)
    assert names == ["city=Lima", "city=Oslo", "city=Rome", "area", "area missing", "new"]
    encoded = encoded_features(mixed, source)
    assert encoded.shape == (len(flats), len(names))
    np.testing.assert_array_equal(encoded[:, 1], flats["city"] == "Oslo")


def test_rows_of_a_pipeline_are_those_of_its_last_step(rows: Rows) -> None:
    X, y = rows
    scaler = StandardScaler().fit(X)
    last = quick().fit(scaler.transform(X), y)
    found = open_rows(Pipeline([("scale", scaler), ("fit", last)]), X, y)
    np.testing.assert_array_equal(found.block.table.matrix, scaler.transform(X))


def test_rows_must_be_in_memory(
    mixed: BowTieRegressor, flats: pd.DataFrame, tmp_path: Path
) -> None:
    flats.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="in memory"):
        open_rows(mixed, tmp_path / "rows.parquet", "price")


def test_weights_stand_at_their_users_columns(model: BowTieRegressor) -> None:
    """The user's standardised table through the drawn weights is the networks' own forward pass."""
    x = np.random.default_rng(1).normal(size=(5, 3))
    ensemble = model.ensemble_
    for member in range(2):
        own = ensemble.members[member].factors.layers[0].weights.mean
        np.testing.assert_allclose(
            member_weights(model, member)[0][:, 1:] @ x.T,
            own[:, 1:] @ x[:, ensemble.representation.column_order].T,
        )


@pytest.mark.parametrize("when", ["whole", "pruned"])
def test_weights_of_bins_stand_at_their_names(when: str, flats: pd.DataFrame) -> None:
    """Components in the order of the user's columns; those that were pruned have no weight."""
    model = quick(features=3, tol=1.0).fit(flats, "price")
    if when == "pruned":
        model = prune_by_signs(model, 0.01)
    ensemble = model.ensemble_
    [view] = ensemble.representation.views
    names = member_input_names(model, 0)
    assert [name.split(" ")[0] for name in names] == [
        *("city=Lima", "city=Oslo", "city=Rome", "area", "area", "area", "area", "new"),
    ]
    assert names[3].startswith("area ..")
    assert names[6] == "area missing"
    raw = input_names(ensemble.representation, view)
    for place, member in enumerate(ensemble.members):
        own = member.factors.layers[0].weights.mean
        kept = np.arange(len(raw)) if member.pruning is None else member.pruning.inputs
        drawn = member_weights(model, place)[0]
        for name, column in zip(names, drawn[:, 1:].T, strict=True):
            at = np.flatnonzero(kept == raw.index(name))
            np.testing.assert_array_equal(column, own[:, 1 + at[0]] if at.size else 0.0)
        np.testing.assert_array_equal(drawn[:, 0], own[:, 0])
    for display in (WeightsDisplay, NetworkDisplay):
        display.from_estimator(model)


def test_plots_can_be_imported_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the library anew, as in a process of its own; then the old one again."""
    for name in ["matplotlib", *(n for n in sys.modules if n.startswith("matplotlib."))]:
        monkeypatch.setitem(sys.modules, name, None)
    loaded = {name: sys.modules.pop(name) for name in _own_modules()}
    try:
        fresh = importlib.import_module("bowtienet._old.plotting")
        assert fresh.ElboDisplay is not ElboDisplay
        with pytest.raises(ImportError, match=r"bowtienet\[plot\]"):
            fresh.ActivationDisplay.from_parameters()
    finally:
        for name in _own_modules():
            del sys.modules[name]
        sys.modules.update(loaded)


def _own_modules() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "bowtienet"]


def test_a_column_in_bins_is_one_input_with_its_largest_weights(flats: pd.DataFrame) -> None:
    """Among columns of categories and gaps, which are one input each."""
    model = quick(features=4, n_estimators=1).fit(flats, "price")
    names = member_column_names(model, 0)
    first, *others = member_column_weights(model, 0)
    whole, *same = member_weights(model, 0)
    inputs = member_input_names(model, 0)
    area = [place for place, name in enumerate(inputs) if name.startswith("area ")]
    assert [inputs[place].partition(" ")[2].count("..") for place in area[:4]] == [1] * 4
    assert names.count("area") == 1
    assert first.shape == (4, 1 + len(names))
    np.testing.assert_array_equal(first[:, 0], whole[:, 0])
    drawn, components = first[:, 1 + names.index("area")], whole[:, 1:][:, area[:4]]
    np.testing.assert_array_equal(np.abs(drawn), np.abs(components).max(axis=1))
    assert np.all(np.any(components == drawn[:, None], axis=1))
    for name in set(names) & set(inputs):
        np.testing.assert_array_equal(
            first[:, 1 + names.index(name)], whole[:, 1 + inputs.index(name)]
        )
    for one, other in zip(others, same, strict=True):
        np.testing.assert_array_equal(one, other)


def test_plain_columns_are_drawn_as_they_are(flats: pd.DataFrame) -> None:
    model = quick(features="standard", n_estimators=1).fit(flats, "price")
    for found in (model, prune_by_signs(model, 0.3)):
        assert member_column_names(found, 0) == member_input_names(found, 0)
        for one, other in zip(
            member_column_weights(found, 0), member_weights(found, 0), strict=True
        ):
            np.testing.assert_array_equal(one, other)
