"""Frames in, frames out: names, index and numbers of predictions and of tables of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from bowtienet._old.data.named_frames import frame_like, is_data_frame, new_frame
from bowtienet._old.ensemble.structure import PROCEDURE, Structure
from bowtienet._old.estimators.predictor import Components
from tests._old.estimators.shown_fits import FEATURES, N_ROWS, fitted, table

SOME = slice(3, 9)


def new_rows() -> pd.DataFrame:
    return table()[FEATURES].iloc[SOME]


def arrays(rows: pd.DataFrame) -> Any:
    """The same rows as a table that is no data frame: what is predicted for it are arrays."""
    return pa.Table.from_pandas(rows, preserve_index=False)


ANSWERS: dict[str, tuple[str, Any, list[str]]] = {
    "interval": ("price", lambda m, X: m.predict_interval(X), ["lower", "upper"]),
    "conformal": (
        "price",
        lambda m, X: m.predict_interval(X, method="conformal"),
        ["lower", "upper"],
    ),
    "quantiles": (
        "price",
        lambda m, X: m.predict_quantiles(X, [0.05, 0.5, 0.975]),
        ["q0.05", "q0.5", "q0.975"],
    ),
    "counts": ("visits", lambda m, X: m.predict_interval(X), ["lower", "upper"]),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_predictions_of_frames_are_frames_with_names(name: str, library: str) -> None:
    target, answer, names = ANSWERS[name]
    model, rows = fitted(target), new_rows()
    expected = answer(model, arrays(rows))
    assert isinstance(expected, np.ndarray)
    if library == "polars":
        found = answer(model, pl.from_pandas(rows))
        assert isinstance(found, pl.DataFrame)
    else:
        found = answer(model, rows)
        assert found.index.equals(rows.index)
    assert list(found.columns) == names
    assert_array_equal(found.to_numpy(), expected)


def test_several_targets_and_coverages_are_in_the_names() -> None:
    model, rows = fitted(("price", "height")), new_rows()
    several = model.predict_interval(rows, [0.5, 0.9])
    expected = model.predict_interval(arrays(rows), [0.5, 0.9])
    assert list(several.columns)[:4] == [
        "lower_price_0.5",
        "upper_price_0.5",
        "lower_price_0.9",
        "upper_price_0.9",
    ]
    assert_array_equal(several["upper_height_0.9"], expected[:, 1, 1, 1])
    assert list(model.predict_interval(rows).columns)[::3] == ["lower_price", "upper_height"]
    assert list(model.predict_quantiles(rows, 0.5).columns) == ["q0.5_price", "q0.5_height"]
    parts = model.predict_components(rows)
    assert_array_equal(parts["mean_height"], model.predict(rows)[:, 1])
    assert "noise_variance_price" in parts


def test_components_are_columns() -> None:
    model, rows = fitted("price"), new_rows()
    parts, expected = model.predict_components(rows), model.predict_components(arrays(rows))
    assert isinstance(expected, Components)
    assert list(parts.columns) == list(Components._fields)
    assert parts.index.equals(rows.index)
    assert_array_equal(parts.to_numpy(), np.column_stack(expected))
    classes = fitted("grade").predict_components(rows)
    assert list(classes.columns) == ["p_<b>high</b>", "p_low", "epistemic", "aleatoric"]
    assert_array_equal(classes.iloc[:, :2].to_numpy(), fitted("grade").predict_proba(rows))


def test_predict_stays_an_array() -> None:
    rows = new_rows()
    mean, deviation = fitted("price").predict(rows, return_std=True)
    assert type(mean) is type(deviation) is np.ndarray
    assert type(fitted("grade").predict_proba(rows)) is np.ndarray


def test_levels_that_are_asked_for_twice_have_one_name() -> None:
    with pytest.raises(ValueError, match="once"):
        fitted("price").predict_quantiles(new_rows(), [0.5, 0.5])
    assert fitted("price").predict_quantiles(arrays(new_rows()), [0.5, 0.5]).shape == (6, 2)


def test_what_a_data_frame_is() -> None:
    frame = pd.DataFrame({"a": [1.0]})
    assert is_data_frame(frame)
    assert is_data_frame(pl.from_pandas(frame))
    others = (frame["a"], frame.to_numpy(), arrays(frame), [[1.0]], None, pl.LazyFrame(frame))
    assert not any(map(is_data_frame, others))
    assert frame_like(pl.from_pandas(frame), {"b": np.ones(1)})["b"].to_list() == [1.0]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_new_frames_of_every_library(library: str) -> None:
    found = new_frame({"column": np.array(["a"], dtype=object), "x": np.ones(1)}, library)
    assert found.shape == (1, 2)


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="library"):
        new_frame({"x": [1.0]}, "spreadsheet")
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(ImportError, match="pip install polars"):
        new_frame({"x": [1.0]}, "polars")


def test_importance_has_columns_in_rows_and_losses_in_columns() -> None:
    model = fitted(("price", "height"))
    targets = table()[["price", "height"]]
    found = model.importance(table()[FEATURES], targets, n_repeats=2)
    frame = found.to_frame()
    assert len(frame) == 6
    own = frame[frame["target"] == "height"]
    assert own["log_density_drop"].is_monotonic_decreasing
    place = list(found.name).index("city")
    assert own.loc["city", "rmse_rise"] == found.rmse_rise[place, 1]
    single = fitted("price").importance(table()[FEATURES], table()["price"], n_repeats=2)
    assert "target" not in single.to_frame()
    assert single.to_frame("polars").columns[0] == "column"


def test_explanations_have_a_row_for_each_prediction_and_column() -> None:
    model, rows = fitted("grade"), new_rows().iloc[:2]
    found = model.explain(rows)
    frame = found.to_frame()
    assert len(frame) == 2 * 3 * 2
    sums = frame.groupby(["row", "target"], sort=False)["mean"].sum().to_numpy().reshape(2, 2)
    np.testing.assert_allclose(found.base_mean + sums, model.predict_proba(rows), atol=1e-9)


def test_structure_relevance_and_sizes_are_frames() -> None:
    structure = Structure(
        names=("a", "b"),
        p_values=np.array([0.01, 0.8]),
        selected=np.array([True, False]),
        variance_share=np.array([0.5, 0.0]),
        false_discovery_rate=0.05,
        procedure=PROCEDURE,
        n_rows=20,
    )
    assert structure.to_frame().loc["a"].tolist() == [0.01, True, 0.5]
    model = fitted("price")
    relevance = model.feature_relevance_
    assert_array_equal(relevance.to_frame()["strength"], relevance.strength)
    assert "strength_1" in fitted(("price", "height")).feature_relevance_.to_frame()
    sizes = model.sparsity_.to_frame()
    assert len(sizes) == len(model.ensemble_.members)
    assert sizes["weights_after"].sum() == model.sparsity_.weights_after.sum()


def test_a_pruned_model_has_a_row_before_and_one_after() -> None:
    found = fitted("price").prune(table()[FEATURES], table()["price"])
    frame = found.pruning_.to_frame()
    assert frame.index.tolist() == ["before", "after"]
    assert frame.loc["after", "weights"] == found.pruning_.weights_after
    assert found.ensemble_.cross_fitted.n_rows == N_ROWS
