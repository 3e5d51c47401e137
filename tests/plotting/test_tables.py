"""Tables taken apart and put together: the same in every library, types kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bowtienet.estimators.columns import DATE, DAY, DURATION, Numbers, Texts, open_table
from bowtienet.plotting._tables import (
    assemble,
    categories_of,
    find_column,
    labels_of,
    like_column,
    read_contents,
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
    city, rooms, area, new = read_contents(open_table(make(CONTENT)))
    assert isinstance(city, Texts)
    assert isinstance(new, Texts)
    np.testing.assert_array_equal(rooms.values, [4.0, 1.0, 3.0, 2.0, 5.0])
    np.testing.assert_array_equal(area.values, [10.0, 40.0, np.nan, 20.0, 30.0])
    assert labels_of(city).tolist() == ["Rome", "Oslo", "Oslo", "Lima", "missing"]
    assert labels_of(new).tolist() == ["True", "False", "False", "True", "False"]


def test_empty_texts_are_missing_and_words_of_truth_stay_words() -> None:
    table = open_table(pd.DataFrame({"a": ["u", "", "v"], "b": ["true", "FALSE", ""]}))
    assert [labels_of(content).tolist() for content in read_contents(table)] == [
        ["u", "missing", "v"],
        ["true", "FALSE", "missing"],
    ]
    (words,) = read_contents(open_table(np.array([["true"], ["false"]])))
    assert labels_of(words).tolist() == ["true", "false"]


@pytest.mark.parametrize("make", LIBRARIES)
def test_typical_rows_hold_lower_medians_and_frequent_values(make: Maker) -> None:
    """Of 10, 20, 30, 40 the lower median is 20."""
    contents = read_contents(open_table(make(CONTENT)))
    assert typical_rows(contents).tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize("make", LIBRARIES)
def test_a_table_put_together_against_lists(make: Maker, rng: np.random.Generator) -> None:
    table = open_table(make(CONTENT))
    picks = [rng.integers(5, size=7) for _ in CONTENT]
    fresh = rng.normal(size=7)
    rooms = like_column(table.columns[1], read_contents(table)[1], fresh)
    made = open_table(assemble(table, picks, {1: rooms}))
    assert made.names == table.names
    city, found, area, new = read_contents(made)
    np.testing.assert_array_equal(found.values, fresh)
    missing = [np.nan if value is None else value for value in CONTENT["area"]]
    np.testing.assert_array_equal(area.values, [missing[row] for row in picks[2]])
    for content, column, rows in ((city, "city", picks[0]), (new, "new", picks[3])):
        words = [str(CONTENT[column][row] or "missing") for row in rows]
        assert labels_of(content).tolist() == [
            "False" if column == "new" and word == "missing" else word for word in words
        ]


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
    single = open_table(np.ones((5, 2), dtype=np.float32))
    fresh = like_column(single.columns[0], read_contents(single)[0], np.ones(3))
    assert assemble(single, picks[:2], {0: fresh}).dtype == np.float32


def test_whole_numbers_make_room_for_others() -> None:
    table = open_table(np.arange(6).reshape(3, 2))
    fresh = like_column(table.columns[0], read_contents(table)[0], np.array([0.5, 1.5]))
    made = assemble(table, [np.zeros(2, int)] * 2, {0: fresh})
    np.testing.assert_array_equal(made, [[0.5, 1.0], [1.5, 1.0]])


def test_pandas_names_that_are_no_texts() -> None:
    frame = pd.DataFrame({3: [1.0, 2.0], 5: [3.0, 4.0]}, index=[7, 7])
    made = assemble(open_table(frame), [np.array([1, 0]), np.array([0, 0])], {})
    assert made.columns.tolist() == [3, 5]
    assert made.to_numpy().tolist() == [[2.0, 3.0], [1.0, 3.0]]


MOMENTS = np.array(["2020-01-01T00:00", "2020-02-29T12:00", "2021-01-01"], dtype="datetime64[us]")
WHOLE = MOMENTS.astype("datetime64[D]")
OSLO = ZoneInfo("Europe/Oslo")
ABROAD = [moment.replace(tzinfo=UTC).astimezone(OSLO) for moment in MOMENTS.tolist()]
SPANS = np.array([1, 36, 240], dtype="timedelta64[h]")

DATES: list[Any] = [
    pytest.param(MOMENTS[:, None], id="numpy"),
    pytest.param(WHOLE[:, None], id="numpy days"),
    pytest.param(np.array(WHOLE.tolist(), dtype=object)[:, None], id="numpy objects"),
    pytest.param(np.array([str(day) for day in WHOLE])[:, None], id="numpy texts"),
    pytest.param(pd.DataFrame({"t": MOMENTS}), id="pandas"),
    pytest.param(pd.DataFrame({"t": pd.Series(MOMENTS).astype("datetime64[ns]")}), id="pandas ns"),
    pytest.param(pd.DataFrame({"t": pd.Series(ABROAD)}), id="pandas zone"),
    pytest.param(pd.DataFrame({"t": pd.Series(ABROAD, dtype=object)}), id="pandas objects zone"),
    pytest.param(pd.DataFrame({"t": pd.Series(WHOLE.tolist(), dtype=object)}), id="pandas objects"),
    pytest.param(pd.DataFrame({"t": [str(moment) for moment in MOMENTS]}), id="pandas texts"),
    pytest.param(pd.DataFrame({"t": [str(day) for day in WHOLE]}), id="pandas texts of days"),
    pytest.param(pl.DataFrame({"t": WHOLE.tolist()}), id="polars days"),
    pytest.param(pl.DataFrame({"t": MOMENTS.tolist()}), id="polars"),
    pytest.param(
        pl.DataFrame({"t": ABROAD}, schema={"t": pl.Datetime("ms", "Europe/Oslo")}),
        id="polars zone",
    ),
    pytest.param(pl.DataFrame({"t": [str(moment) for moment in MOMENTS]}), id="polars texts"),
    pytest.param(pa.table({"t": WHOLE.tolist()}), id="pyarrow days"),
    pytest.param(pa.table({"t": pa.array(WHOLE.tolist(), pa.date64())}), id="pyarrow other days"),
    pytest.param(
        pa.table({"t": pa.array(ABROAD, pa.timestamp("s", "Europe/Oslo"))}), id="pyarrow zone"
    ),
]
DURATIONS: list[Any] = [
    pytest.param(SPANS[:, None], id="numpy"),
    pytest.param(np.array(SPANS.tolist(), dtype=object)[:, None], id="numpy objects"),
    pytest.param(pd.DataFrame({"t": SPANS.astype("timedelta64[s]")}), id="pandas"),
    pytest.param(pl.DataFrame({"t": SPANS.tolist()}, schema={"t": pl.Duration("ms")}), id="polars"),
    pytest.param(pa.table({"t": SPANS.tolist()}), id="pyarrow"),
]


def type_of(X: Any) -> Any:
    """The type of the only column, or of what it holds."""
    if isinstance(X, pa.Table):
        return X.schema.field(0).type
    if isinstance(X, pl.DataFrame):
        return X.dtypes[0]
    column = X.iloc[:, 0] if isinstance(X, pd.DataFrame) else X[:, 0]
    kind = type(column[0]) if column.dtype.kind == "O" else None
    return (np.dtype("U") if column.dtype.kind == "U" else column.dtype, kind)


@pytest.mark.parametrize("X", DATES)
def test_dates_are_made_anew_in_the_type_of_their_column(X: Any) -> None:
    table = open_table(X)
    (content,) = read_contents(table)
    assert content.kind == DATE
    expected = MOMENTS if np.any(content.values % 1.0) else WHOLE
    np.testing.assert_array_equal(
        content.values, expected.astype("datetime64[us]").astype(int) / DAY
    )
    wanted = np.array(["1999-12-31", "2020-05-06", "2030-07-01"], dtype="datetime64[us]")
    days = wanted.astype(int) / DAY
    made = assemble(table, [np.zeros(3, int)], {0: like_column(table.columns[0], content, days)})
    if type_of(X) != pa.date64():  # which narwhals does not know: other whole days will do
        assert type_of(made) == type_of(X)
    (again,) = read_contents(open_table(made))
    assert again.kind == DATE
    np.testing.assert_array_equal(again.values, days)


@pytest.mark.parametrize("X", DURATIONS)
def test_durations_are_made_anew_in_the_type_of_their_column(X: Any) -> None:
    table = open_table(X)
    (content,) = read_contents(table)
    assert content.kind == DURATION
    np.testing.assert_allclose(content.values, [1.0 / 24.0, 1.5, 10.0])
    days = np.array([-1.0, 0.25, 100.5])
    made = assemble(table, [np.zeros(3, int)], {0: like_column(table.columns[0], content, days)})
    assert type_of(made) == type_of(X)
    np.testing.assert_array_equal(read_contents(open_table(made))[0].values, days)


def test_parts_of_days_are_kept_to_the_microsecond() -> None:
    table = open_table(pl.DataFrame({"t": MOMENTS.tolist()}))
    moment = np.array(["2023-04-05T06:07:08.123456"], dtype="datetime64[us]")
    fresh = like_column(table.columns[0], read_contents(table)[0], moment.astype(int) / DAY)
    assert fresh.to_list() == moment.tolist()


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["low", "high", "mid"], dtype=pd.CategoricalDtype(["low", "mid", "high"])),
        pl.Series("x", ["low", "high", "mid"], dtype=pl.Enum(["low", "mid", "high"])),
    ],
)
def test_categories_keep_their_own_order(column: Any) -> None:
    frame = column.to_frame("x") if isinstance(column, pd.Series) else column.to_frame()
    assert shown(frame, 20) == ["low", "mid", "high"]


def test_few_of_many_categories_are_the_frequent_ones() -> None:
    frame = pd.DataFrame({"x": [*"zzzyyxw", None, None]})
    assert shown(frame, 3) == ["y", "z", "missing"]
    assert shown(frame, 20) == ["w", "x", "y", "z", "missing"]
    assert shown(np.array([["b"], ["a"], ["b"]]), 20) == ["a", "b"]


def shown(X: Any, most: int) -> list[str]:
    table = open_table(X)
    return categories_of(table.columns[0], read_contents(table)[0], most)


def test_columns_of_categories_hold_no_numbers() -> None:
    (content,) = read_contents(open_table(pd.DataFrame({"x": pd.Categorical([1, 2])})))
    assert not isinstance(content, Numbers)


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
