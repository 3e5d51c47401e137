"""Tables with texts, dates and missing values: encoded as by hand, whatever library holds them."""

from __future__ import annotations

import datetime
import io
import statistics
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowtienet._old._arrays import to_numpy
from bowtienet._old.representation.columns import (
    check_columns,
    describe,
    encode,
    encoded_names,
    owners,
)
from tests._old.representation.tables import (
    as_table,
    encoded,
    learn,
    learnt_and_encoded,
    one,
)

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


TABLES: dict[str, Any] = {
    "pandas": FRAME,
    "pandas nullable": nullable(FRAME),
    "pandas of arrow": FRAME.convert_dtypes(dtype_backend="pyarrow").assign(
        born=FRAME["born"].astype("date32[pyarrow]")
    ),
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
}


# The same numbers as by hand


@pytest.mark.parametrize("before", TABLES)
@pytest.mark.parametrize("now", ["pandas", "polars", "pyarrow dictionaries"])
def test_every_kind_of_table_gives_the_same(before: str, now: str) -> None:
    columns = learn(TABLES[before])
    for table in (TABLES[before], TABLES[now]):
        assert encoded(columns, table) == EXPECTED
    assert encoded_names(columns) == list(EXPECTED)
    check_columns(columns)


MOMENT = datetime.datetime(1970, 1, 2, 12)
PARIS = datetime.timezone(datetime.timedelta(hours=1))
UTC = datetime.UTC


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.to_datetime([MOMENT, None]).as_unit("ns"), 1.5),
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
    table = pd.DataFrame({"x": values, "z": [0, 1]})
    columns = learn(table)
    assert columns[0].typical == pytest.approx(expected, rel=1e-14)
    assert encoded(columns, table) == {"x missing": [0, 1], "z": [0, 1]}


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_moments_of_polars_and_pyarrow(zone: str | None, unit: str) -> None:
    moments = [MOMENT.replace(tzinfo=UTC if zone else None), None]
    moments.append(moments[0] + datetime.timedelta(days=2))
    polars = pl.DataFrame({"x": pl.Series(moments).dt.cast_time_unit(unit)})
    polars = polars.with_columns(pl.col("x").dt.convert_time_zone(zone) if zone else "x")
    for table in (polars, pa.table({"x": pa.array(moments, pa.timestamp(unit, zone))})):
        assert learnt_and_encoded(table) == {"x": [1.5, 2.5, 3.5], "x missing": [0, 1, 0]}


def test_texts_that_are_no_dates_stay_texts() -> None:
    for texts in (["2020-06-31", "2020-06-30"], ["2020-06-30", "soon"], ["20200630", "20200631"]):
        assert list(one(texts)) == sorted(f"x={text}" for text in texts)


def test_declared_categories_are_named_by_their_text() -> None:
    assert list(one(pd.Categorical([10, 2, None, 2]))) == ["x=10", "x=2", "x missing"]
    assert list(one(pd.Categorical([1.5, 2.0]))) == ["x=1.5", "x=2"]
    assert list(one(pd.Categorical([True, False]))) == ["x=False", "x=True"]
    assert list(one(pd.Categorical(["a", "b"], categories=["a", "b", "c"]))) == ["x=a", "x=b"]
    for texts in (["2020-01-01", "2021-01-01"], ["false", "true"], ["1,5", "2,5"]):
        assert list(one(pd.Categorical(texts))) == [f"x={text}" for text in texts]


def test_mixed_objects_are_categories() -> None:
    values = [1, "1", 1.0, True, None, "", b"a", float("nan"), pd.NaT]
    assert one(pd.Series(values, dtype=object)) == {
        "x=1": [1, 1, 1, 1, 0, 0, 0, 0, 0],
        "x=a": [0, 0, 0, 0, 0, 0, 1, 0, 0],
        "x missing": [0, 0, 0, 0, 1, 1, 0, 1, 1],
    }


# One file, several readers


FILE = """\
whole,real,text,mixed,truth,Truth,date,moment,empty,gap,few
1,1.5,x,A1,true,True,2020-01-01,2020-01-01 10:00:00,,,07
2,,,12,false,False,,2020-01-01 12:00:00,,,x7
,2.5,y,12,,True,2020-01-03,,,z,07
4,3.5,x,7.5,true,,2020-01-04,2020-01-02 00:00:00,,z,1e3
"""
FILE_ENCODED: dict[str, list[float]] = {
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
READERS: dict[str, Callable[[str], Any]] = {
    "pandas": lambda text: pd.read_csv(io.StringIO(text)),
    "pandas of arrow": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="pyarrow"),
    "pandas nullable": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="numpy_nullable"),
    "polars": lambda text: pl.read_csv(io.StringIO(text)),
    "polars with dates": lambda text: pl.read_csv(io.StringIO(text), try_parse_dates=True),
    "pyarrow": lambda text: pa.csv.read_csv(io.BytesIO(text.encode())),
}
PART = """\
whole,real,text,mixed,truth,Truth,date,moment,empty,gap,few
1,2,,12,,,,,,,07
3,4,,,,,,,,,1000
"""


@pytest.mark.parametrize("before", READERS)
@pytest.mark.parametrize("now", READERS)
def test_a_file_and_a_part_of_it_give_the_same_whoever_reads_them(before: str, now: str) -> None:
    """Texts of the part look like numbers or are all missing: each library reads other types."""
    columns = learn(READERS[before](FILE))
    assert encoded(columns, READERS[now](FILE)) == FILE_ENCODED
    found = encoded(columns, READERS[now](PART))
    assert (found["whole"], found["real"]) == ([1, 3], [2, 4])
    assert (found["mixed=12"], found["mixed=A1"], found["mixed=7.5"]) == ([1, 0], [0, 0], [0, 0])
    assert (found["few=07"], found["few=1e3"], found["few=x7"]) == ([1, 0], [0, 1], [0, 0])
    assert (found["date"], found["truth"]) == ([18264] * 2, [1] * 2)
    for name in ("text", "truth", "date", "moment", "gap"):
        assert found[f"{name} missing"] == [1, 1]


def test_spellings_of_numbers_and_truth_values() -> None:
    assert one([True, False], like=["true", "maybe", "false"])["x=true"] == [1, 0]
    assert one([1, 1], like=["01", "1", "x"])["x=1"] == [1, 1]
    assert one(["01", "01"], like=["01", "1", "x"])["x=01"] == [1, 1]
    assert one([1.0, NAN], like=["1", "x", "x"]) == {"x=1": [1, 0], "x=x": [0, 0]}
    large = 2**60 + 1
    assert one([large, large], like=[str(large), "x"])[f"x={large}"] == [1, 1]


# What is left out


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_identifiers_are_left_out(kind: str) -> None:
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind]
    ids = [f"A-{index}" for index in range(12)]
    few, twice = ids[:9] + [None] * 3, [*ids[:11], ids[0]]
    table = make({"id": ids, "few": few, "twice": twice, "n": range(12)})
    columns = learn(table)
    assert [column.has_value for column in columns] == [False, True, True, True]
    assert describe(columns[0]).startswith("left out (identifiers: 12")
    assert len(columns[1].categories) == 9
    assert "id" not in "".join(encoded(columns, table))


@pytest.mark.parametrize("n_constant", [1, 3])
def test_constant_columns_of_a_matrix(n_constant: int) -> None:
    matrix = np.ones((4, 3))
    matrix[:, n_constant:] = np.arange(4.0)[:, None]
    columns = learn(matrix)
    values, _ = encode(columns, as_table(matrix))
    assert [column.note is None for column in columns] == [
        index >= n_constant for index in range(3)
    ]
    if n_constant == 3:
        assert values is matrix
    else:
        np.testing.assert_array_equal(values, matrix[:, n_constant:])


@pytest.mark.parametrize(
    "cells", [{"id": [f"k{index}" for index in range(10)]}, {"t": ["x", "x"], "u": [None, None]}]
)
def test_nothing_left_is_an_error(cells: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"nothing is left.*{next(iter(cells))!r}"):
        learn(pd.DataFrame(cells))
    with_constant = pd.DataFrame({**cells, "one": 7.0})
    assert learnt_and_encoded(with_constant) == {"one": [7.0] * len(with_constant)}


# Matrices


def torch_array(values: Any) -> Any:
    return pytest.importorskip("torch").asarray(values)


def jax_array(values: Any) -> Any:
    return pytest.importorskip("jax.numpy").asarray(values)


@pytest.mark.parametrize("library", [np.asarray, torch_array, jax_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_plain_matrix_is_passed_on_as_it_is(library: Callable[[Any], Any], dtype: Any) -> None:
    matrix = library(np.random.default_rng(0).normal(size=(50, 3)).astype(dtype))
    columns = learn(to_numpy(matrix))
    values, surprises = encode(columns, as_table(matrix))
    assert values is matrix
    assert surprises == []


@pytest.mark.parametrize("library", [np.asarray, torch_array, jax_array])
def test_a_matrix_with_gaps_is_encoded_where_it_lives(library: Callable[[Any], Any]) -> None:
    gaps = np.array([[1, NAN, 5, 0], [3, 1, 5, 0], [8, 4, 5, NAN], [9, NAN, 5, 1]])
    columns = learn(gaps)
    expected = {
        "x0": [1, 3, 8, 9],
        "x1": [2.5, 1, 4, 2.5],
        "x1 missing": [1, 0, 0, 1],
        "x3": [0, 0, 0, 1],
        "x3 missing": [0, 0, 1, 0],
    }
    matrix = library(gaps.astype(np.float32))
    values, _ = encode(columns, as_table(matrix))
    assert (type(values), values.dtype) == (type(matrix), matrix.dtype)
    np.testing.assert_array_equal(to_numpy(values), np.array(list(expected.values())).T)
    assert encoded_names(columns) == list(expected)
    # The same columns one by one.
    assert encoded(columns, pd.DataFrame(gaps, columns=list("abcd"))) == expected


# Later tables


def test_what_is_missing_only_later_is_filled() -> None:
    columns = learn(pd.DataFrame({"n": [1, 2, 9], "t": ["a", "b", "b"]}))
    found = encoded(columns, pd.DataFrame({"n": [None, 4], "t": ["a", None]}))
    assert found == {"n": [2, 4], "t=a": [1, 0], "t=b": [0, 0]}


def test_new_categories_are_none_of_the_known_ones() -> None:
    columns = learn(pd.DataFrame({"t": ["a", "b", "b"], "u": ["c", "d", None]}))
    new = pd.DataFrame({"t": ["z", "y", "x", "w", "z", "a"], "u": ["c", "e", None, "d", "d", "d"]})
    values, surprises = encode(columns, as_table(new))
    assert values.T.tolist() == [
        [0, 0, 0, 0, 0, 1],
        [0] * 6,
        [1, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 1],
        [0, 0, 1, 0, 0, 0],
    ]
    for surprise, parts in zip(surprises, [("'t'", "5", "'w'"), ("'u'", "1", "'e'")], strict=True):
        assert all(part in surprise for part in parts)


@pytest.mark.parametrize(
    ("like", "now"),
    [
        ([1, 2], ["3", "?"]),
        (["2020-01-01", "2020-01-02"], ["soon", None]),
        (["2020-01-01", "2020-01-02"], [1, 2]),
        ([1, 2], pd.to_datetime(["2020-01-01"] * 2)),
        (pd.to_timedelta(["1h", "2h"]), [1, 2]),
        (pd.to_timedelta(["1h", "2h"]), ["1h", "2h"]),
        (["true", "false"], ["true", "maybe"]),
    ],
)
def test_a_column_that_changes_its_kind(like: Any, now: Any) -> None:
    with pytest.raises(ValueError, match="column 'x' held"):
        one(now, like=like)


def test_numbers_that_come_as_text_later_are_read() -> None:
    assert one(["3", " 4.5 "], like=[1, 2]) == {"x": [3, 4.5]}


@pytest.mark.parametrize("like", [[1, 2], ["2020-01-01", "2020-01-02"], ["a", "b"]])
@pytest.mark.parametrize(
    "nothing", [[None, None], [NAN, NAN], ["", ""], pd.array([None] * 2, "str")]
)
def test_a_column_without_values_is_of_any_kind(like: Any, nothing: Any) -> None:
    assert list(one(nothing, like=like)) == (["x=a", "x=b"] if like[0] == "a" else ["x"])


# What is refused


@pytest.mark.parametrize("text", ["id {}", "{}.0"])
def test_too_many_categories(text: str) -> None:
    table = pd.DataFrame({"x": [text.format(index % 101) for index in range(102)]})
    with pytest.raises(ValueError, match=r"'x'.*max_categories"):
        learn(table)
    assert len(learn(table, 101)[0].categories) == 101


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        ({"a": ["b", "c"], "a=b": [1, 2]}, "a=b"),
        ({"a": [1, None, 2], "a missing": [1, 2, 3]}, "a missing"),
        ({"a": ["b=c", "d"], "a=b": ["c", "d"]}, "a=b=c"),
    ],
)
def test_names_that_would_be_equal(cells: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"'a' and .*{name!r}"):
        learn(pd.DataFrame(cells))


# In words, and back to the user's columns


def test_columns_in_words() -> None:
    table = FRAME.assign(
        span=pd.to_timedelta(["1D", None, "2D", "6D"]),
        once=["x", None, "x", None],
        price=["1,200.5 €", "3 €", "4 €", "7 €"],
    )
    words = {column.name: describe(column) for column in learn(table)}
    expected = {
        **{"age": "median 40", "city": "2 categories", "born": "median 1970-01-02"},
        **{"span": "median 2 days", "nothing": "left out", "same": "left out"},
        **{"once": "values left out", "price": "1,234.5 €"},
    }
    assert [name for name, part in expected.items() if part not in words[name]] == []


def test_the_way_back() -> None:
    columns = learn(FRAME)
    assert owners(columns).tolist() == [0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 5]


# Columns of a file


NUMBER = learn(pd.DataFrame({"n": [1.0, NAN, 2.0]}))[0]
WORDS = learn(pd.DataFrame({"t": ["a", "b", None]}))[0]


@pytest.mark.parametrize(
    "columns",
    [
        (),
        (NUMBER, NUMBER),
        (replace(NUMBER, kind="colour"),),
        (replace(NUMBER, typical=None),),
        (replace(NUMBER, number_format="1;2"),),
    ],
)
def test_columns_of_a_file_that_are_none(columns: Any) -> None:
    check_columns((NUMBER, WORDS))
    with pytest.raises(ValueError, match="column"):
        check_columns(columns)


# Random tables against loops


def by_hand(columns: dict[str, list[Any]]) -> dict[str, list[float]]:
    """Cell by cell; numbers of one value are left out unless nothing else is there."""
    found: dict[str, list[float]] = {}
    constant: dict[str, list[float]] = {}
    for name, cells in columns.items():
        present = [cell for cell in cells if cell is not None]
        if present and not isinstance(present[0], str):
            middle = statistics.median(present)
            filled = [float(middle if cell is None else cell) for cell in cells]
            (found if len(set(present)) > 1 else constant)[name] = filled
        elif len(set(present)) > 1:
            for category in sorted(set(present)):
                found[f"{name}={category}"] = [float(cell == category) for cell in cells]
        if 0 < len(present) < len(cells):
            found[f"{name} missing"] = [float(cell is None) for cell in cells]
    return found or constant


@st.composite
def random_columns(draw: st.DrawFn) -> dict[str, list[Any]]:
    n_rows = draw(st.integers(2, 8))
    words = st.sampled_from(["a", "b", "Ä", "a b", "nan", "NA", "1", "x=y", "'", "None"])
    cells = [st.floats(-1e9, 1e9), st.integers(-(2**40), 2**40), st.booleans(), words]
    one = [st.lists(st.one_of(st.none(), kind), min_size=n_rows, max_size=n_rows) for kind in cells]
    columns = draw(st.lists(st.one_of(one), min_size=1, max_size=4))
    return {f"c{index}": column for index, column in enumerate(columns)}


@settings(deadline=None, max_examples=100)
@given(cells=random_columns())
def test_random_tables_are_encoded_as_by_hand(cells: dict[str, list[Any]]) -> None:
    expected = by_hand(cells)
    for table in (pd.DataFrame(cells), pl.DataFrame(cells), pa.table(cells)):
        if not expected:
            with pytest.raises(ValueError, match="nothing is left"):
                learn(table)
            continue
        columns = learn(table)
        found = encoded(columns, table)
        assert list(found) == list(expected)
        # Quantiles between subnormal numbers have no digits to be right in.
        np.testing.assert_allclose(
            list(found.values()), list(expected.values()), rtol=1e-15, atol=1e-307
        )
        # Each row is encoded by itself.
        last = nw.from_native(table)[-1:].to_native()
        assert encoded(columns, last) == {name: values[-1:] for name, values in found.items()}


def test_true_beside_one_is_the_same_category() -> None:
    """A row alone with True in it is read as a number, as one with 1 is."""
    table = pd.DataFrame({"c": ["a", True, 1.0, "b", "False", 0, None] * 3})
    columns = learn(table)
    assert columns[0].categories == ("0", "1", "a", "b")
    whole = encoded(columns, table)
    assert whole["c=1"][1] == whole["c=1"][2] == whole["c=0"][4] == whole["c=0"][5] == 1.0
    for row in range(7):
        alone = encoded(columns, table.iloc[[row]])
        assert alone == {name: values[row : row + 1] for name, values in whole.items()}
