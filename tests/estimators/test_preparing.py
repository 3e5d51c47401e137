"""Tables with texts, dates and missing values: prepared as by hand, whatever library holds them."""

from __future__ import annotations

import copy
import datetime
import io
import pickle
import re
import statistics
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from bowtienet import TablePreparer
from bowtienet.estimators.keeping import from_plain, to_plain
from bowtienet.estimators.preparing import Column, describe

NAN = float("nan")
CELLS: dict[str, list[Any]] = {
    "age": [30, None, 50, 40],
    "height": [1.5, 1.7, None, 2.0],
    "city": ["Rome", "Oslo", None, "Rome"],
    "colour": ["red", "blue", "red", "green"],
    "member": [True, False, True, True],
    "born": [
        datetime.date(1970, 1, 2),
        datetime.date(1970, 1, 4),
        None,
        datetime.date(1969, 12, 31),
    ],
    "nothing": [None] * 4,
    "same": ["x"] * 4,
}
EXPECTED: dict[str, list[float]] = {
    "age": [30, 40, 50, 40],
    "age missing": [0, 1, 0, 0],
    "height": [1.5, 1.7, 1.7, 2.0],
    "height missing": [0, 0, 1, 0],
    "city=Oslo": [0, 1, 0, 0],
    "city=Rome": [1, 0, 0, 1],
    "city missing": [0, 0, 1, 0],
    "colour=blue": [0, 1, 0, 0],
    "colour=green": [0, 0, 0, 1],
    "colour=red": [1, 0, 1, 0],
    "member": [1, 0, 1, 1],
    "born": [1, 3, 1, -1],
    "born missing": [0, 0, 1, 0],
}
FRAME = pd.DataFrame(CELLS)
OBJECTS = np.array(list(CELLS.values()), dtype=object).T


def nullable(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(
        age=frame["age"].astype("Int64"),
        height=frame["height"].astype("Float64"),
        city=frame["city"].astype("string"),
        colour=frame["colour"].astype("category"),
        member=frame["member"].astype("boolean"),
        born=pd.to_datetime(frame["born"]),
    )


def arrow_backed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.convert_dtypes(dtype_backend="pyarrow").assign(
        born=frame["born"].astype("date32[pyarrow]")
    )


TABLES: dict[str, Any] = {
    "pandas": FRAME,
    "pandas nullable": nullable(FRAME),
    "pandas of arrow": arrow_backed(FRAME),
    "pandas objects": FRAME.astype(object),
    "polars": pl.DataFrame(CELLS),
    "polars categories": pl.DataFrame(CELLS).with_columns(
        pl.col("city").cast(pl.Categorical),
        pl.col("colour").cast(pl.Enum(["red", "green", "blue"])),
    ),
    "pyarrow": pa.table(CELLS),
    "pyarrow dictionaries": pa.table(
        CELLS | {name: pa.array(CELLS[name]).dictionary_encode() for name in ("city", "colour")}
    ),
    "a record batch": pa.RecordBatch.from_pydict(CELLS),
}


def as_dict(table: Any) -> dict[str, list[float]]:
    """Columns by name; all must be floats."""
    if isinstance(table, pa.Table):
        assert set(table.schema.types) == {pa.float64()}
        return table.to_pydict()
    if isinstance(table, pl.DataFrame):
        assert set(table.dtypes) == {pl.Float64}
        return table.to_dict(as_series=False)
    assert isinstance(table, pd.DataFrame)
    assert set(table.dtypes) == {np.dtype(float)}
    return table.to_dict("list")


def prepared(column: Any, *, like: Any = None) -> dict[str, list[float]]:
    """A single pandas column `x`, prepared as one that was learnt from `like`."""
    preparer = TablePreparer().fit(pd.DataFrame({"x": column if like is None else like}))
    return as_dict(preparer.transform(pd.DataFrame({"x": column})))


# The same numbers as by hand


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same(kind: str) -> None:
    table = TABLES[kind]
    found = TablePreparer().fit(table).transform(table)
    expected = pa.Table if isinstance(table, pa.RecordBatch) else type(table)
    assert type(found) is expected
    assert as_dict(found) == EXPECTED
    assert list(as_dict(found)) == list(EXPECTED)


def test_an_array_of_objects_gives_the_same() -> None:
    preparer = TablePreparer().fit(OBJECTS)
    found = preparer.transform(OBJECTS)
    assert (type(found), found.dtype) == (np.ndarray, float)
    np.testing.assert_array_equal(found, np.array(list(EXPECTED.values())).T)
    names = [f"x{index}" for index in range(len(CELLS))]
    renamed = dict(zip(CELLS, names, strict=True))
    expected = [re.sub(r"^\w+", lambda name: renamed[name[0]], name) for name in EXPECTED]
    assert preparer.get_feature_names_out().tolist() == expected


def test_nested_lists_keep_their_numbers() -> None:
    found = TablePreparer().fit_transform([[1.5, "b"], [2.5, "a"], [None, ""]])
    expected = [[1.5, 0, 0, 1, 0], [2.5, 0, 1, 0, 0], [2.0, 1, 0, 0, 1]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [float, np.float32, int, bool, "datetime64[D]", "timedelta64[h]"])
def test_arrays_of_one_type(dtype: Any) -> None:
    days = 1 / 24 if dtype == "timedelta64[h]" else 1.0
    values = np.array([[0, 1], [1, 0]]).astype(dtype)
    found = TablePreparer().fit_transform(values)
    assert found.dtype == float
    np.testing.assert_array_equal(found, np.array([[0, days], [days, 0]]))


def test_a_tensor_is_read_as_an_array() -> None:
    torch = pytest.importorskip("torch")
    found = TablePreparer().fit_transform(torch.tensor([[1.0, NAN], [2.0, 3.0], [2.0, 5.0]]))
    np.testing.assert_array_equal(found, [[1, 4, 1], [2, 3, 0], [2, 5, 0]])


def test_the_index_of_pandas_stays() -> None:
    table = FRAME.set_index(pd.Index(["d", "a", "c", "b"], name="who"))
    pd.testing.assert_index_equal(TablePreparer().fit_transform(table).index, table.index)


def test_names_of_outputs() -> None:
    preparer = TablePreparer().fit(FRAME)
    assert preparer.get_feature_names_out().tolist() == list(EXPECTED)
    assert preparer.feature_names_in_.tolist() == list(CELLS)
    other = TablePreparer().fit([[1, "a"], [2, "b"]])
    assert other.get_feature_names_out(["n", "t"]).tolist() == ["n", "t=a", "t=b"]
    with pytest.raises(ValueError, match="input_features"):
        preparer.get_feature_names_out(["a"] * len(CELLS))


def test_columns_of_pandas_that_are_numbered_have_no_names() -> None:
    table = pd.DataFrame([[1, "a"], [2, "b"]])
    preparer = TablePreparer().fit(table)
    assert as_dict(preparer.transform(table)) == {"x0": [1, 2], "x1=a": [1, 0], "x1=b": [0, 1]}
    assert not hasattr(preparer, "feature_names_in_")


MOMENT = datetime.datetime(1970, 1, 2, 12)
PARIS = datetime.timezone(datetime.timedelta(hours=1))
UTC = datetime.UTC


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.to_datetime([MOMENT, None]).as_unit("ns"), 1.5),
        (pd.to_datetime([MOMENT, None]).as_unit("s"), 1.5),
        (pd.to_datetime([MOMENT, None]).tz_localize("UTC").tz_convert("Asia/Tokyo"), 1.5),
        (pd.Series([MOMENT, None], dtype=object), 1.5),
        (pd.Series([np.datetime64(MOMENT), None], dtype=object), 1.5),
        (pd.Series([MOMENT.replace(tzinfo=PARIS), None], dtype=object), 1.5 - 1 / 24),
        (["1970-01-02 12:00", None], 1.5),
        (["1970-01-02T12:00:00.5", None], 1.5 + 0.5 / 86400),
        (["1970-01-02T12:00Z", None], 1.5),
        (["1970-01-02T12:00+01:00", None], 1.5 - 1 / 24),
        (["1970-01-02 12:00:00.000000500", None], 1.5),
        (pd.to_timedelta(["36h", None]), 1.5),
        (pd.Series([datetime.timedelta(hours=36), None], dtype=object), 1.5),
        (pd.Series([Decimal("1.5"), None], dtype=object), 1.5),
        (pd.Series([np.float32(1.5), pd.NA], dtype=object), 1.5),
        (pd.arrays.SparseArray([1.5, NAN]), 1.5),
    ],
    ids=lambda value: (
        None if isinstance(value, float) else str(getattr(value, "dtype", value))[:20]
    ),
)
def test_dates_durations_and_numbers_of_any_type(values: Any, expected: float) -> None:
    """The second value is missing; a third, equal one at fit does no harm."""
    table = pd.DataFrame({"x": values})
    later = table["x"].iloc[:1].reset_index(drop=True)
    like = pd.concat([table, table[:1]], ignore_index=True).assign(z=[0, 1, 2])
    preparer = TablePreparer().fit(like)
    assert [column.has_value for column in preparer.columns_] == [False, True]
    assert preparer.columns_[0].typical == pytest.approx(expected, rel=1e-14)
    found = as_dict(preparer.transform(pd.DataFrame({"x": later, "z": [5]})))
    assert found == {"x missing": [0], "z": [5]}


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_moments_of_polars_and_pyarrow(zone: str | None, unit: str) -> None:
    moments = [MOMENT.replace(tzinfo=UTC if zone else None), None]
    moments.append(moments[0] + datetime.timedelta(days=2))
    polars = pl.DataFrame({"x": pl.Series(moments).dt.cast_time_unit(unit)})
    arrow = pa.table({"x": pa.array(moments, pa.timestamp(unit, zone))})
    for table in (
        polars.with_columns(pl.col("x").dt.convert_time_zone(zone) if zone else "x"),
        arrow,
    ):
        found = as_dict(TablePreparer().fit_transform(table))
        assert found == {"x": [1.5, 2.5, 3.5], "x missing": [0, 1, 0]}


def test_texts_that_are_no_dates_stay_texts() -> None:
    for texts in (["2020-06-31", "2020-06-30"], ["2020-06-30", "soon"], ["20200630", "20200631"]):
        assert list(prepared(texts)) == sorted(f"x={text}" for text in texts)


def test_categories_that_are_no_texts_are_named_by_their_text() -> None:
    assert list(prepared(pd.Categorical([10, 2, None, 2]))) == ["x=10", "x=2", "x missing"]
    assert list(prepared(pd.Categorical([1.5, 2.0]))) == ["x=1.5", "x=2"]
    assert list(prepared(pd.Categorical([True, False]))) == ["x=False", "x=True"]
    assert list(prepared(pd.Categorical(["2020-01-01", "2021-01-01"]))) == [
        "x=2020-01-01",
        "x=2021-01-01",
    ]


def test_a_category_that_no_row_has_is_none() -> None:
    assert list(prepared(pd.Categorical(["a", "b"], categories=["a", "b", "c"]))) == ["x=a", "x=b"]


def test_mixed_objects_are_categories() -> None:
    values = [1, "1", 1.0, True, None, "", b"a", [2], float("nan"), pd.NaT]
    found = prepared(pd.Series(values, dtype=object))
    assert found == {
        "x=1": [1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
        "x=True": [0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        "x=[2]": [0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        "x=a": [0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        "x missing": [0, 0, 0, 0, 1, 1, 0, 0, 1, 1],
    }


def test_the_types_of_other_libraries_are_categories_by_text() -> None:
    hours = [datetime.time(12, 30), datetime.time(8), None]
    for table in (pl.DataFrame({"x": hours}), pa.table({"x": hours})):
        names = list(as_dict(TablePreparer().fit_transform(table)))
        assert names == ["x=08:00:00", "x=12:30:00", "x missing"]
    lists = pl.DataFrame({"x": [[1, 2], [3], [3]]})
    assert list(as_dict(TablePreparer().fit_transform(lists))) == ["x=[1, 2]", "x=[3]"]


# One file, three readers


FILE = """\
whole,real,text,mixed,truth,Truth,date,moment,empty,gap,few
1,1.5,x,A1,true,True,2020-01-01,2020-01-01 10:00:00,,,07
2,,,12,false,False,,2020-01-01 12:00:00,,,x7
,2.5,y,12,,True,2020-01-03,,,z,07
4,3.5,x,7.5,true,,2020-01-04,2020-01-02 00:00:00,,z,1e3
"""
READERS: dict[str, Callable[[str], Any]] = {
    "pandas": lambda text: pd.read_csv(io.StringIO(text)),
    "pandas of arrow": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="pyarrow"),
    "pandas nullable": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="numpy_nullable"),
    "polars": lambda text: pl.read_csv(io.StringIO(text)),
    "polars with dates": lambda text: pl.read_csv(io.StringIO(text), try_parse_dates=True),
    "pyarrow": lambda text: pa.csv.read_csv(io.BytesIO(text.encode())),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_file_gives_the_same_whoever_reads_it(reader: str) -> None:
    expected = {
        "whole": [1, 2, 2, 4],
        "whole missing": [0, 0, 1, 0],
        "real": [1.5, 2.5, 2.5, 3.5],
        "real missing": [0, 1, 0, 0],
        "text=x": [1, 0, 0, 1],
        "text=y": [0, 0, 1, 0],
        "text missing": [0, 1, 0, 0],
        "mixed=12": [0, 1, 1, 0],
        "mixed=7.5": [0, 0, 0, 1],
        "mixed=A1": [1, 0, 0, 0],
        "truth": [1, 0, 1, 1],
        "truth missing": [0, 0, 1, 0],
        "Truth": [1, 0, 1, 1],
        "Truth missing": [0, 0, 0, 1],
        "date": [18262, 18264, 18264, 18265],
        "date missing": [0, 1, 0, 0],
        "moment": [18262 + 10 / 24, 18262.5, 18262.5, 18263],
        "moment missing": [0, 0, 1, 0],
        "gap missing": [1, 1, 0, 0],
        "few=07": [1, 0, 1, 0],
        "few=1e3": [0, 0, 0, 1],
        "few=x7": [0, 1, 0, 0],
    }
    table = READERS[reader](FILE)
    assert as_dict(TablePreparer().fit_transform(table)) == expected


PART = """\
whole,real,text,mixed,truth,Truth,date,moment,empty,gap,few
1,2,,12,,,,,,,07
3,4,,,,,,,,,1000
"""


@pytest.mark.parametrize("before", READERS)
@pytest.mark.parametrize("now", READERS)
def test_a_part_of_a_file_is_read_like_the_whole(before: str, now: str) -> None:
    """Its texts look like numbers or are all missing: each library makes another thing of them."""
    preparer = TablePreparer().fit(READERS[before](FILE))
    found = as_dict(preparer.transform(READERS[now](PART)))
    assert (found["whole"], found["real"]) == ([1, 3], [2, 4])
    assert (found["mixed=12"], found["mixed=A1"], found["mixed=7.5"]) == ([1, 0], [0, 0], [0, 0])
    assert (found["few=07"], found["few=1e3"], found["few=x7"]) == ([1, 0], [0, 1], [0, 0])
    assert (found["date"], found["truth"]) == ([18264] * 2, [1] * 2)
    for name in ("text", "truth", "date", "moment", "gap"):
        assert found[f"{name} missing"] == [1, 1]


def test_truth_values_that_stood_among_texts() -> None:
    assert prepared([True, False], like=["true", "maybe", "false"]) == {
        "x=false": [0, 1],
        "x=maybe": [0, 0],
        "x=true": [1, 0],
    }


def test_the_exact_text_goes_before_the_same_number() -> None:
    assert prepared([1, 1], like=["01", "1", "x"])["x=1"] == [1, 1]
    assert prepared(["01", "01"], like=["01", "1", "x"])["x=01"] == [1, 1]


def test_whole_numbers_that_a_missing_value_made_floats() -> None:
    assert prepared([1.0, NAN], like=["1", "x", "x"]) == {"x=1": [1, 0], "x=x": [0, 0]}
    large = 2**60 + 1
    assert prepared([large, large], like=[str(large), "x"])[f"x={large}"] == [1, 1]


# What is left out


def test_a_constant_column_keeps_its_indicator() -> None:
    table = pd.DataFrame({"n": [1.0, NAN, 1.0], "t": ["a", "a", None], "z": [1, 2, 3]})
    preparer = TablePreparer().fit(table)
    assert as_dict(preparer.transform(table)) == {
        "n missing": [0, 1, 0],
        "t missing": [0, 0, 1],
        "z": [1, 2, 3],
    }
    new = pd.DataFrame({"n": [5.0, NAN], "t": ["b", None], "z": [1, 2]})
    assert as_dict(preparer.transform(new))["t missing"] == [0, 1]


def test_a_column_that_was_left_out_need_not_come_again() -> None:
    preparer = TablePreparer().fit(FRAME)
    assert as_dict(preparer.transform(FRAME.drop(columns=["nothing", "same"]))) == EXPECTED


@pytest.mark.parametrize("table", [pd.DataFrame({"a": [1, 1], "b": ["x", "x"]}), np.ones((3, 2))])
def test_nothing_left_is_an_error(table: Any) -> None:
    with pytest.raises(ValueError, match=r"nothing is left of X.*differ between rows"):
        TablePreparer().fit(table)


def test_infinite_numbers_are_passed_on() -> None:
    inf = float("inf")
    assert prepared([inf, 1.0, 3.0, NAN])["x"] == [inf, 1, 3, 2]
    assert prepared([inf, inf])["x"] == [inf, inf]
    assert prepared([-inf, NAN])["x"] == [-inf, 0]


# Later tables


@pytest.mark.parametrize("kind", TABLES)
def test_columns_are_found_by_name_and_others_ignored(kind: str) -> None:
    names = [*list(CELLS)[::-1]]
    cells = {"first": [0] * 4} | {name: CELLS[name] for name in names} | {"last": ["?"] * 4}
    preparer = TablePreparer().fit(TABLES[kind])
    for table in (pd.DataFrame(cells), pl.DataFrame(cells), pa.table(cells)):
        assert as_dict(preparer.transform(table)) == EXPECTED


def test_arrays_are_taken_by_place() -> None:
    preparer = TablePreparer().fit(FRAME)
    expected = np.array(list(EXPECTED.values())).T
    np.testing.assert_array_equal(preparer.transform(OBJECTS), expected)
    by_place = TablePreparer().fit(OBJECTS)
    np.testing.assert_array_equal(by_place.transform(FRAME).to_numpy(), expected)


def test_what_is_missing_only_later_is_filled() -> None:
    preparer = TablePreparer().fit(pd.DataFrame({"n": [1, 2, 9], "t": ["a", "b", "b"]}))
    found = as_dict(preparer.transform(pd.DataFrame({"n": [None, 4], "t": ["a", None]})))
    assert found == {"n": [2, 4], "t=a": [1, 0], "t=b": [0, 0]}


def test_new_categories_are_none_of_the_known_ones() -> None:
    preparer = TablePreparer().fit(pd.DataFrame({"t": ["a", "b", "b"], "u": ["c", "d", None]}))
    new = pd.DataFrame({"t": ["z", "y", "x", "w", "z", "a"], "u": ["c", "e", None, "d", "d", "d"]})
    words = (
        "X has categories that training did not have: column 't', 5 rows, such as 'w', 'x', 'y'; "
        "column 'u', 1 row, such as 'e'; they are treated as none of the known ones."
    )
    with pytest.warns(UserWarning, match="X has categories") as caught:
        found = as_dict(preparer.transform(new))
    assert [str(warning.message) for warning in caught] == [words]
    assert caught[0].filename == __file__
    assert found == {
        "t=a": [0, 0, 0, 0, 0, 1],
        "t=b": [0] * 6,
        "u=c": [1, 0, 0, 0, 0, 0],
        "u=d": [0, 0, 0, 1, 1, 1],
        "u missing": [0, 0, 1, 0, 0, 0],
    }


@pytest.mark.parametrize(
    ("like", "now", "words"),
    [
        (
            [1, 2],
            ["3", "?"],
            r"'x' held numbers in training and now holds text, such as '\?': c",
        ),
        ([1, 2], ["3", "4"], "'x' held numbers in training and now holds text, such as '3', '4'"),
        (["2020-01-01", "2020-01-02"], ["soon", None], "'x' held dates.*now holds text.*'soon'"),
        (["2020-01-01", "2020-01-02"], [1, 2], "'x' held dates.*now holds numbers: convert it"),
        ([1, 2], pd.to_datetime(["2020-01-01"] * 2), "'x' held numbers.*now holds dates"),
        (pd.to_timedelta(["1h", "2h"]), [1, 2], "'x' held durations.*now holds numbers"),
    ],
)
def test_a_column_that_changes_its_kind(like: Any, now: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        prepared(now, like=like)


@pytest.mark.parametrize("like", [[1, 2], ["2020-01-01", "2020-01-02"], ["a", "b"]])
@pytest.mark.parametrize(
    "nothing", [[None, None], [NAN, NAN], ["", ""], pd.array([None] * 2, "str")]
)
def test_a_column_without_values_is_of_any_kind(like: Any, nothing: Any) -> None:
    found = prepared(nothing, like=like)
    assert list(found) == (["x=a", "x=b"] if like[0] == "a" else ["x"])


def test_missing_columns_are_named_with_near_names() -> None:
    preparer = TablePreparer().fit(FRAME)
    with pytest.raises(ValueError, match=r"X lacks the column that training had: 'age'; add"):
        preparer.transform(FRAME.drop(columns="age"))
    with pytest.raises(ValueError, match=r"'city' \(is it 'City'\?\), 'member'; add or rename"):
        preparer.transform(FRAME.drop(columns="member").rename(columns={"city": "City"}))
    with pytest.raises(ValueError, match="'age', 'height', 'city', 'colour', 'member' and 1 more;"):
        preparer.transform(FRAME[["same"]])


# What is refused


def many(n: int) -> list[str]:
    return [f"id {index}" for index in range(n)]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (
            [f"k{index:06d}" for index in range(100_000)],
            "column 'x' holds 100,000 different texts, such as 'k000000', 'k000001', 'k000002', "
            "more than max_categories=100: leave the column out, or raise max_categories.",
        ),
        (
            [*map(str, range(60)), *many(41), *["7", None] * 100],
            "column 'x' holds text where numbers are expected, 41 of 201 values are not numbers, "
            "such as 'id 0', 'id 1', 'id 10': mend them, mark them as missing, or leave the column "
            "out.",
        ),
        (
            [*map(str, range(41)), *many(60), *["id 1", None] * 100],
            "column 'x' holds 101 different texts, such as '0', '1', '10', more than "
            "max_categories=100: leave the column out, or raise max_categories.",
        ),
        (
            [f"{index}.0" for index in range(101)],
            "column 'x' holds 101 numbers as text, such as '0.0', '1.0', '10.0': convert them to "
            "numbers.",
        ),
    ],
    ids=["texts", "mostly numbers", "mostly texts", "only numbers"],
)
def test_too_many_categories(kind: str, texts: list[str], words: str) -> None:
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind]
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        TablePreparer().fit(make({"x": texts}))


def test_half_of_the_values_decide_what_is_said() -> None:
    numbers = [str(index) for index in range(60)]
    with pytest.raises(ValueError, match="numbers are expected, 60 of 120 values are not numbers"):
        TablePreparer().fit(pd.DataFrame({"x": [*numbers, *many(60)]}))
    with pytest.raises(ValueError, match="holds 121 different texts"):
        TablePreparer().fit(pd.DataFrame({"x": [*numbers, *many(61)]}))


def test_the_limit_of_categories() -> None:
    table = pd.DataFrame({"x": many(101)})
    assert TablePreparer(max_categories=101).fit_transform(table).shape == (101, 101)
    assert TablePreparer().fit_transform(table[:100]).shape == (100, 100)
    with pytest.raises(ValueError, match=r"'max_categories'.*Got 0"):
        TablePreparer(max_categories=0).fit(table)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"a": ["b", "c"], "a=b": [1, 2]}, "columns 'a' and 'a=b' would both become 'a=b': rename"),
        ({"a": [1, None, 2], "a missing": [1, 2, 3]}, "'a' and 'a missing'.*become 'a missing'"),
        ({"a": ["b=c", "d"], "a=b": ["c", "d"]}, "'a' and 'a=b' would both become 'a=b=c'"),
    ],
)
def test_names_that_would_be_equal(cells: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TablePreparer().fit(pd.DataFrame(cells))


BAD_TABLES: dict[str, tuple[Any, str]] = {
    "nothing": (None, "X is None: give a table"),
    "a path": ("table.csv", "X is a str.*read it into a table.*fit BowTieRegressor itself"),
    "a path object": (Path("table.csv"), "read it into a table.*BowTieRegressor itself"),
    "a generator": ((row for row in [[1], [2]]), "X is a generator.*BowTieRegressor itself"),
    "a dataset": (pa.dataset.dataset(pa.table({"a": [1]})), "InMemoryDataset.*BowTieRegressor it"),
    "a lazy frame": (pl.LazyFrame({"a": [1, 2]}), r"lazy.*collect\(\)"),
    "equal names": (pd.DataFrame([[1, 2]] * 2, columns=["a", "a"]), "several columns called 'a'"),
    "names of several types": (pd.DataFrame({"a": [1, 2], 1: [1, 2]}), "names.*strings"),
    "a series": (pd.Series([1, 2]), "Reshape your data"),
    "one axis": (np.arange(3.0), "Reshape your data"),
    "three axes": (np.zeros((2, 2, 2)), r"X must be a table of shape \(rows, columns\)"),
    "one row": (FRAME[:1], r"X has 1 sample\(s\).*at least 2"),
    "no rows": (pl.DataFrame(CELLS)[:0], r"X has 0 sample\(s\)"),
    "no columns": (np.empty((3, 0)), r"0 feature\(s\)"),
    "complex": (np.ones((3, 1)) + 1j, "Complex data not supported"),
    "complex in pandas": (pd.DataFrame({"a": [1j, 2j]}), "Complex data not supported.*'a'"),
    "sparse": (sparse.csr_matrix(np.eye(3)), r"toarray\(\)"),
    "masked": (np.ma.masked_array([[1.0], [2.0]], mask=[[True], [False]]), "masked.*NaN"),
    "a number too large": (np.array([[10**400], [1]], dtype=object), "too large.*'x0'"),
    "a strange frame": (type("Frame", (), {"columns": ["a"]})(), "no known table: give a pandas"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_refused_and_nothing_changes(case: str) -> None:
    table, words = BAD_TABLES[case]
    preparer = TablePreparer().fit(FRAME)
    before = dict(vars(preparer))
    with pytest.raises((ValueError, TypeError), match=re.compile(words, re.DOTALL)):
        preparer.fit(table)
    assert vars(preparer) == before


def test_dask_is_refused() -> None:
    dask = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="BowTieRegressor itself"):
        TablePreparer().fit(dask.ones((10, 2)))


def test_other_numbers_of_columns() -> None:
    for preparer in (TablePreparer().fit(FRAME), TablePreparer().fit(OBJECTS)):
        with pytest.raises(ValueError, match="X has 3 features, but TablePreparer is expecting 8"):
            preparer.transform(OBJECTS[:, :3])
    with pytest.raises(ValueError, match=r"X has 0 sample\(s\)"):
        TablePreparer().fit(FRAME).transform(FRAME[:0])


def test_without_narwhals_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r"narwhals: pip install 'bowtienet\[bigdata\]'"):
        TablePreparer().fit(FRAME)


def test_an_unfitted_preparer_says_so() -> None:
    for ask in (TablePreparer().transform, TablePreparer().get_feature_names_out):
        with pytest.raises(NotFittedError):
            ask(FRAME)


# In words


def test_columns_in_words() -> None:
    table = FRAME.assign(
        whole=[1, 2, 3, 4],
        when=pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"]),
        span=pd.to_timedelta(["1D", None, "2D", "6D"]),
        once=["x", None, "x", None],
        none=pd.Categorical([None] * 4),
    )
    columns = TablePreparer().fit(table).columns_
    assert {column.name: describe(column) for column in columns} == {
        "age": "number; 1 missing: median 40 and an indicator",
        "height": "number; 1 missing: median 1.7 and an indicator",
        "city": "2 categories, one-hot; 1 missing: an indicator",
        "colour": "3 categories, one-hot",
        "member": "number",
        "born": "date, as days since 1970; 1 missing: median 1970-01-02 and an indicator",
        "nothing": "left out: no values",
        "same": "left out: only one value",
        "whole": "number",
        "when": "date, as days since 1970",
        "span": "duration, in days; 1 missing: median 2 days and an indicator",
        "once": "only one value; 2 missing: an indicator",
        "none": "left out: no values",
    }
    assert [column.n_missing for column in columns] == [1, 1, 1, 0, 0, 1, 4, 0, 0, 0, 1, 2, 4]
    kinds = {column.name: column.kind for column in columns}
    assert {kinds[name] for name in ("age", "member", "whole")} == {"number"}
    assert (kinds["city"], kinds["born"], kinds["span"]) == ("category", "date", "duration")


# Plain content


def test_texts_of_numpy_are_plain_texts() -> None:
    values = np.array([[np.str_("a")], [np.str_("b")]], dtype=object)
    [column] = TablePreparer().fit(values).columns_
    assert {type(category) for category in column.categories} == {str}


def test_plain_content_comes_back() -> None:
    for table in (FRAME, FRAME.assign(none=pd.Categorical([None] * 4)), OBJECTS):
        preparer = TablePreparer(max_categories=7).fit(table)
        again = from_plain(to_plain(preparer))
        assert vars(again).keys() == vars(preparer).keys()
        assert again.columns_ == preparer.columns_
        assert again.get_params() == preparer.get_params()
        np.testing.assert_array_equal(
            np.asarray(again.transform(table)), np.asarray(preparer.transform(table))
        )


@pytest.mark.parametrize(
    "copied", [clone, copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_copies(copied: Callable[[TablePreparer], TablePreparer]) -> None:
    preparer = TablePreparer(max_categories=7).fit(FRAME)
    again = copied(preparer)
    assert again.max_categories == 7
    if copied is clone:
        again.fit(FRAME)
    assert again.columns_ == preparer.columns_


def test_a_column_cannot_be_changed() -> None:
    [column] = TablePreparer().fit([[1], [2]]).columns_
    assert isinstance(column, Column)
    with pytest.raises(AttributeError):
        column.name = "other"  # type: ignore[misc]


# Random tables against loops


def by_hand(names: list[str], columns: list[list[Any]]) -> dict[str, list[float]]:
    """Cell by cell."""
    found: dict[str, list[float]] = {}
    for name, cells in zip(names, columns, strict=True):
        present = [cell for cell in cells if cell is not None]
        if len(set(present)) > 1 and isinstance(present[0], str):
            for category in sorted(set(present)):
                found[f"{name}={category}"] = [float(cell == category) for cell in cells]
        elif len(set(present)) > 1:
            middle = statistics.median(present)
            found[name] = [float(middle if cell is None else cell) for cell in cells]
        if 0 < len(present) < len(cells):
            found[f"{name} missing"] = [float(cell is None) for cell in cells]
    return found


@st.composite
def random_columns(draw: st.DrawFn) -> list[list[Any]]:
    n_rows = draw(st.integers(2, 8))
    words = st.sampled_from(["a", "b", "Ä", "a b", "nan", "NA", "1", "x=y", "'", "None"])
    cells = [
        st.floats(-1e9, 1e9),
        st.integers(-(2**40), 2**40),
        st.booleans(),
        words,
    ]
    one = [st.lists(st.one_of(st.none(), kind), min_size=n_rows, max_size=n_rows) for kind in cells]
    return draw(st.lists(st.one_of(one), min_size=1, max_size=4))


@settings(deadline=None, max_examples=150)
@given(columns=random_columns())
def test_random_tables_are_prepared_as_by_hand(columns: list[list[Any]]) -> None:
    names = [f"c{index}" for index in range(len(columns))]
    cells = dict(zip(names, columns, strict=True))
    expected = by_hand(names, columns)
    tables = [pd.DataFrame(cells), pl.DataFrame(cells), pa.table(cells)]
    if not expected:
        for table in tables:
            with pytest.raises(ValueError, match="nothing is left"):
                TablePreparer().fit(table)
        return
    for table in tables:
        preparer = TablePreparer().fit(table)
        found = as_dict(preparer.transform(table))
        assert list(found) == list(expected) == preparer.get_feature_names_out().tolist()
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-15)
        # Each row is prepared by itself.
        for row in (0, len(columns[0]) - 1):
            alone = as_dict(preparer.transform(table[row : row + 1]))
            assert alone == {name: values[row : row + 1] for name, values in found.items()}


# scikit-learn's own checks, none of them expected to fail


@parametrize_with_checks([TablePreparer()], expected_failed_checks=lambda estimator: {})
def test_scikit_learn_contract(estimator: TablePreparer, check: Callable[..., None]) -> None:
    check(estimator)
