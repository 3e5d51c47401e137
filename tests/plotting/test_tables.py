"""Tables taken apart and put together: the same in every library, types kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bowtienet.plotting._tables import (
    assemble,
    categories_of,
    find_column,
    labels_of,
    numbers_of,
    open_table,
    typical_rows,
)

CONTENT: dict[str, list[Any]] = {
    "city": ["Rome", "Oslo", "Oslo", "Lima", None],
    "rooms": [4, 1, 3, 2, 5],
    "area": [10.0, 40.0, None, 20.0, 30.0],
    "new": [True, False, False, True, False],
}


def as_numpy(content: dict[str, list[Any]]) -> np.ndarray:
    return np.array(list(content.values()), dtype=object).T


LIBRARIES: list[Any] = [
    pytest.param(as_numpy, id="numpy"),
    pytest.param(pd.DataFrame, id="pandas"),
    pytest.param(pl.DataFrame, id="polars"),
    pytest.param(pa.table, id="pyarrow"),
    pytest.param(pa.RecordBatch.from_pydict, id="record batch"),
]
Maker = Callable[[dict[str, list[Any]]], Any]


@pytest.mark.parametrize("make", LIBRARIES)
def test_columns_of_all_kinds(make: Maker) -> None:
    table = open_table(make(CONTENT))
    assert table.n_rows == 5
    assert numbers_of(table, 0) is None
    np.testing.assert_array_equal(numbers_of(table, 1), [4.0, 1.0, 3.0, 2.0, 5.0])
    np.testing.assert_array_equal(numbers_of(table, 2), [10.0, 40.0, np.nan, 20.0, 30.0])
    assert numbers_of(table, 3) is None
    assert labels_of(table, 0) == ["Rome", "Oslo", "Oslo", "Lima", "missing"]
    assert labels_of(table, 3) == ["True", "False", "False", "True", "False"]


@pytest.mark.parametrize("make", LIBRARIES)
def test_typical_rows_hold_lower_medians_and_frequent_values(make: Maker) -> None:
    """Of 10, 20, 30, 40 the lower median is 20."""
    assert typical_rows(open_table(make(CONTENT))).tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize("make", LIBRARIES)
def test_a_table_put_together_against_lists(make: Maker, rng: np.random.Generator) -> None:
    table = open_table(make(CONTENT))
    picks = [rng.integers(5, size=7) for _ in CONTENT]
    fresh = rng.normal(size=7)
    made = open_table(assemble(table, picks, {1: fresh}))
    expected = {
        name: [values[row] for row in rows]
        for (name, values), rows in zip(CONTENT.items(), picks, strict=True)
    }
    again = open_table(make(expected | {"rooms": fresh.tolist()}))
    assert made.names == table.names
    np.testing.assert_array_equal(numbers_of(made, 1), fresh)
    for index in (0, 2, 3):
        assert labels_of(made, index) == labels_of(again, index)


def test_types_are_kept() -> None:
    frame = pl.DataFrame(CONTENT, schema_overrides={"city": pl.Categorical, "rooms": pl.Int8})
    picks = [np.array([0, 1, 4])] * 4
    assert assemble(open_table(frame), picks, {}).schema == frame.schema
    arrow = pa.table(CONTENT)
    assert assemble(open_table(arrow), picks, {}).schema == arrow.schema
    pandas = pd.DataFrame(CONTENT).astype({"city": "category", "rooms": "Int64"})
    pandas.index = [7] * 5
    made = assemble(open_table(pandas), picks, {})
    assert made.dtypes.tolist() == pandas.dtypes.tolist()
    assert made["rooms"].tolist() == [4, 1, 5]
    single = np.ones((5, 2), dtype=np.float32)
    assert assemble(open_table(single), picks[:2], {0: np.ones(3)}).dtype == np.float32


def test_whole_numbers_make_room_for_others() -> None:
    made = assemble(open_table(np.arange(6).reshape(3, 2)), [np.zeros(2, int)] * 2, {0: [0.5, 1.5]})
    np.testing.assert_array_equal(made, [[0.5, 1.0], [1.5, 1.0]])


def test_pandas_names_that_are_no_texts() -> None:
    made = assemble(open_table(pd.DataFrame({3: [1.0], 5: [2.0]})), [np.zeros(1, int)] * 2, {})
    assert made.columns.tolist() == [3, 5]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["low", "high", "mid"], dtype=pd.CategoricalDtype(["low", "mid", "high"])),
        pl.Series("x", ["low", "high", "mid"], dtype=pl.Enum(["low", "mid", "high"])),
    ],
)
def test_categories_keep_their_own_order(column: Any) -> None:
    frame = column.to_frame("x") if isinstance(column, pd.Series) else column.to_frame()
    assert categories_of(open_table(frame), 0, 20) == ["low", "mid", "high"]


def test_few_of_many_categories_are_the_frequent_ones() -> None:
    table = open_table(pd.DataFrame({"x": [*"zzzyyxw", None, None]}))
    assert categories_of(table, 0, 3) == ["y", "z", "missing"]
    assert categories_of(table, 0, 20) == ["w", "x", "y", "z", "missing"]


def test_columns_of_categories_hold_no_numbers() -> None:
    assert numbers_of(open_table(pd.DataFrame({"x": pd.Categorical([1, 2])})), 0) is None


def test_columns_are_found_by_name_and_number() -> None:
    table = open_table(pd.DataFrame(CONTENT))
    assert (
        find_column(table, "area") == find_column(table, 2) == find_column(table, np.int64(2)) == 2
    )
    assert find_column(open_table(np.ones((2, 3))), "x1") == 1


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ("areas", "feature 'areas' is no column of X; did you mean 'area'?"),
        ("zzz", r"feature 'zzz' is no column of X; there are "),
        (4, "a whole number from 0 to 3, got 4"),
        (-1, "a whole number from 0 to 3, got -1"),
        (True, "a whole number from 0 to 3, got True"),
        (1.0, "a whole number from 0 to 3, got 1.0"),
    ],
)
def test_columns_that_are_not_there(feature: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_column(open_table(pd.DataFrame(CONTENT)), feature)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"X must be a table of shape \(rows, columns\), got \(3,\)"),
        (np.ones((0, 3)), "X has 0 rows and 3 columns"),
        (pd.DataFrame({"a": []}), "X has 0 rows and 1 columns"),
        (pl.DataFrame(CONTENT).lazy(), r"X is a lazy table: call collect\(\)"),
    ],
)
def test_what_is_no_table(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_table(X)
