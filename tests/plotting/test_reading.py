"""Tables taken apart and put together: the same in every library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bowtienet.plotting._reading import (
    assemble,
    find_column,
    frequent_labels,
    labels_of,
    read_columns,
    read_rows,
    take,
    typical_row,
)
from tests.plotting.fits import quick

CONTENT: dict[str, list[Any]] = {
    "city": ["Rome", "Oslo", "Oslo", "Lima", None],
    "rooms": [4, 1, 3, 2, 5],
    "area": [10.0, 40.0, None, 20.0, 30.0],
    "new": [True, False, False, True, False],
}
LABELS = {
    "city": ["Rome", "Oslo", "Oslo", "Lima", "missing"],
    "new": ["True", "False", "False", "True", "False"],
}


def as_numpy(content: dict[str, list[Any]]) -> np.ndarray:
    return np.array(list(content.values()), dtype=object).T


LIBRARIES: list[Any] = [
    pytest.param(as_numpy, id="numpy"),
    pytest.param(pd.DataFrame, id="pandas"),
    pytest.param(pl.DataFrame, id="polars"),
    pytest.param(pa.table, id="pyarrow"),
]
Maker = Callable[[dict[str, list[Any]]], Any]


@pytest.mark.parametrize("make", LIBRARIES)
def test_columns_of_all_kinds(make: Maker) -> None:
    city, rooms, area, new = read_columns(make(CONTENT)).contents
    np.testing.assert_array_equal(rooms.values, [4.0, 1.0, 3.0, 2.0, 5.0])
    np.testing.assert_array_equal(area.values, [10.0, 40.0, np.nan, 20.0, 30.0])
    assert labels_of(city).tolist() == LABELS["city"]
    assert labels_of(new).tolist() == LABELS["new"]


@pytest.mark.parametrize("make", LIBRARIES)
def test_typical_rows_hold_lower_medians_and_frequent_values(make: Maker) -> None:
    """Of 10, 20, 30, 40 the lower median is 20."""
    contents = read_columns(make(CONTENT)).contents
    assert [typical_row(content) for content in contents] == [1, 2, 3, 1]


@pytest.mark.parametrize("make", LIBRARIES)
def test_a_table_put_together_against_lists(make: Maker, rng: np.random.Generator) -> None:
    table = read_columns(make(CONTENT))
    picks = [rng.integers(5, size=7) for _ in CONTENT]
    fresh = rng.normal(size=7)
    made = read_columns(assemble(table, picks, {1: fresh}))
    assert made.names == table.names
    city, found, area, new = made.contents
    np.testing.assert_array_equal(found.values, fresh)
    missing = [np.nan if value is None else value for value in CONTENT["area"]]
    np.testing.assert_array_equal(area.values, [missing[row] for row in picks[2]])
    assert labels_of(city).tolist() == [LABELS["city"][row] for row in picks[0]]
    assert labels_of(new).tolist() == [LABELS["new"][row] for row in picks[3]]


@pytest.mark.parametrize("make", LIBRARIES)
def test_some_rows_and_columns(make: Maker) -> None:
    found = read_columns(take(make(CONTENT), np.array([3, 0]), ["area", "city", "other"]))
    area = found.contents[0 if make is not as_numpy else 2]
    np.testing.assert_array_equal(area.values, [20.0, 10.0])
    if make is not as_numpy:
        assert found.names == ("area", "city")


@pytest.mark.parametrize("make", LIBRARIES[1:])
def test_targets_and_weights_may_be_columns(make: Maker) -> None:
    found = read_rows(make(CONTENT), "rooms", [1.0, 0.0, 2.0, 1.0, 1.0])
    assert read_columns(found.features).names == ("city", "area", "new")
    assert found.target_names == ("rooms",)
    np.testing.assert_array_equal(found.targets[:, 0], CONTENT["rooms"])
    np.testing.assert_array_equal(found.weights, [1.0, 0.0, 2.0, 1.0, 1.0])
    found = read_rows(make(CONTENT), np.ones((5, 2)), "rooms")
    assert read_columns(found.features).names == ("city", "area", "new")
    assert (found.targets.shape, found.target_names) == ((5, 2), ())
    np.testing.assert_array_equal(found.weights, CONTENT["rooms"])


def test_rows_must_be_in_memory(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="in memory"):
        read_rows(tmp_path / "rows.parquet", "y")


def test_columns_are_read_as_a_model_has_learnt_them() -> None:
    table = pd.DataFrame(
        {
            "day": ["2020-01-01", "2020-01-03", "2020-01-02", "2020-01-01"],
            "cost": ["1,200 €", "3 €", "10 €", "7 €"],
            "zip": [1, 2, 1, 2],
        }
    )
    with pytest.warns(UserWarning, match="cost"):
        learnt = quick(n_estimators=1).fit(table.astype({"zip": str}), [0.0, 1.0, 2.0, 3.0])
    day, cost, code = read_columns(table, learnt.columns_).contents
    np.testing.assert_array_equal(day.values - day.values[0], [0.0, 2.0, 1.0, 0.0])
    np.testing.assert_array_equal(cost.values, [1200.0, 3.0, 10.0, 7.0])
    assert labels_of(code).tolist() == ["1", "2", "1", "2"]


def test_few_of_many_categories_are_the_frequent_ones() -> None:
    frame = pd.DataFrame({"x": [*"zzzyyxw", None, None]})
    assert shown(frame, 3) == ["y", "z", "missing"]
    assert shown(frame, 20) == ["w", "x", "y", "z", "missing"]
    assert shown(np.array([["b"], ["a"], ["b"]]), 20) == ["a", "b"]


def shown(X: Any, most: int) -> list[str]:
    table = read_columns(X)
    return frequent_labels(table.contents[0], most)


def test_columns_are_found_by_name_and_number() -> None:
    table = read_columns(pd.DataFrame(CONTENT))
    for feature in ("area", 2, np.int64(2)):
        assert find_column(table, feature) == 2
    assert find_column(read_columns(np.ones((2, 3))), "x1") == 1
    with pytest.raises(ValueError, match=r"'areas'.*'area'"):
        find_column(table, "areas")
