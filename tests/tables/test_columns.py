"""Columns as numbers: every kind against values by hand, whatever library holds them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

from bowtienet.tables.columns import encode, encoded_names, learn_columns, owners
from bowtienet.tables.door import Table, open_features
from bowtienet.tables.texts import Column

CELLS: dict[str, list[Any]] = {
    "age": [30, None, 50, 40],
    "height": [1.5, 1.7, None, 2.0],
    "city": ["Rome", "Oslo", None, "Rome"],
    "colour": ["red", "blue", "red", "green"],
    "member": [True, False, True, True],
    "wait": [dt.timedelta(days=1), dt.timedelta(hours=12), None, dt.timedelta(days=-2)],
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
    "colour=blue": [0, 1, 0, 0],
    "colour=green": [0, 0, 0, 1],
    "colour=red": [1, 0, 1, 0],
    "member": [1, 0, 1, 1],
    "wait": [1, 0.5, 0.5, -2],
    "wait missing": [0, 0, 1, 0],
}
FRAME = pd.DataFrame(CELLS)
TABLES: dict[str, Any] = {
    "pandas": FRAME,
    "pandas nullable": FRAME.assign(
        age=FRAME["age"].astype("Int64"),
        height=FRAME["height"].astype("Float64"),
        city=FRAME["city"].astype("string"),
        colour=FRAME["colour"].astype("category"),
        member=FRAME["member"].astype("boolean"),
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
    "array": np.array(list(CELLS.values()), dtype=object).T,
}


def opened(X: Any) -> Table:
    return open_features(BaseEstimator(), X, reset=True)


def learnt(X: Any, weights: Any = None, max_categories: int = 30) -> tuple[Column, ...]:
    table = opened(X)
    weights = np.ones(table.n_rows) if weights is None else np.asarray(weights, dtype=float)
    return learn_columns(table, np.zeros((table.n_rows, 1)), weights, max_categories)[0]


def encoded(columns: Sequence[Column], X: Any) -> dict[str, list[float]]:
    values = encode(columns, opened(X))
    return dict(zip(encoded_names(columns), values.T.tolist(), strict=True))


def alone(values: Any, **options: Any) -> dict[str, list[float]]:
    """The encoding of a frame with the one column "c"."""
    X = pd.DataFrame({"c": values})
    return encoded(learnt(X, **options), X)


@pytest.mark.parametrize("before", TABLES)
@pytest.mark.parametrize("now", ["pandas", "polars categories", "pyarrow", "array"])
def test_tables_of_any_library_read_alike(before: str, now: str) -> None:
    columns = learnt(TABLES[before])
    names = list(EXPECTED)
    if before == "array":
        numbers = {f"x{i}": name for i, name in enumerate(CELLS)}
        names = [n.replace(v, k, 1) for n in names for k, v in numbers.items() if n.startswith(v)]
    for X in (TABLES[before], TABLES[now]):
        values = encoded(columns, X)
        assert list(values) == names
        assert list(values.values()) == list(EXPECTED.values())
    assert owners(columns).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 5, 5]


# Numbers


def test_a_ready_matrix_is_not_copied(rng: np.random.Generator) -> None:
    X = rng.normal(size=(6, 3))
    columns = learnt(X)
    for layout in (X, np.asfortranarray(X)):
        assert np.shares_memory(encode(columns, opened(layout)), layout)
    X[2, 1] = np.nan
    filled = encode(columns, opened(X))
    assert not np.shares_memory(filled, X)
    assert filled[2, 1] == columns[1].typical
    assert np.isnan(X[2, 1])


def test_missing_numbers_are_the_weighted_median() -> None:
    values, weights = [1.0, 2.0, 7.0, np.nan, 9.0], [1.0, 1.0, 1.0, 50.0, 4.0]
    assert alone(values, weights=weights)["c"] == [1, 2, 7, 9, 9]
    repeated = np.repeat(values, np.array(weights, dtype=int))
    assert learnt(repeated[:, None])[0].typical == 9.0
    columns = learnt(pd.DataFrame({"c": [1.0, 2.0, 4.0]}))  # without an indicator
    assert encoded(columns, pd.DataFrame({"c": [np.nan, 5.0]})) == {"c": [2.0, 5.0]}


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.5"), None, Decimal("3")],
        pd.array([1.5, None, 3.0], dtype="Float64"),
        np.array([1.5, pd.NA, 3], dtype=object),
        np.array([1.5, "", np.float32(3.0)], dtype=object),
    ],
)
def test_numbers_in_other_clothes(values: Any) -> None:
    assert alone(values) == {"c": [1.5, 2.25, 3.0], "c missing": [0, 1, 0]}


# Categories


def test_frequent_levels_have_columns_and_the_others_none() -> None:
    values = list("bacaabdd")
    assert list(alone(values, max_categories=2)) == ["c=a", "c=b"]  # ties by the alphabet
    assert list(alone(values, max_categories=9)) == ["c=a", "c=b", "c=c", "c=d"]
    assert alone(values, max_categories=1) == {"c=a": [0, 1, 0, 1, 1, 0, 0, 0]}
    assert list(alone(list("aabc"), weights=[1, 1, 1, 3], max_categories=1)) == ["c=c"]
    for most in (1, 30):  # of two levels the second says it all
        assert alone(list("yxyy"), max_categories=most) == {"c=y": [1, 0, 1, 1]}


def test_missing_and_unknown_levels_are_zero_in_all() -> None:
    columns = learnt(pd.DataFrame({"c": ["a", "b", None, "e"]}))
    new = pd.DataFrame({"c": ["b", "never", None, ""]})
    with pytest.warns(UserWarning, match="levels that training did not have, in 'c'"):
        values = encoded(columns, new)
    assert values == {"c=a": [0] * 4, "c=b": [1, 0, 0, 0], "c=e": [0] * 4}
    with pytest.warns(UserWarning, match="in 'c'") as caught:  # also of two, with one indicator
        encoded(learnt(pd.DataFrame({"c": ["a", "b"]})), new)
    assert caught[0].filename == __file__
    assert alone(["a", None, "a", ""]) == {"c=a": [1, 0, 1, 0]}


def test_levels_that_are_numbers() -> None:
    """A declared category stays one; texts and numbers in one column are numbers."""
    expected = {"c=1": [0, 1, 0, 1], "c=2": [0, 0, 1, 0], "c=3": [1, 0, 0, 0]}
    assert alone(pd.Categorical([3, 1, 2, 1])) == expected
    columns = learnt(pd.DataFrame({"c": pd.Categorical([3, 1, 2, 1])}))
    for other in ([3, 1, 2, 1], [3.0, 1.0, 2.0, 1.0], list("3121")):
        assert encoded(columns, pd.DataFrame({"c": other})) == expected
    assert alone(np.array([3, "1", 2.0, 1], dtype=object)) == {"c": [3, 1, 2, 1]}


@pytest.mark.parametrize("cells", [[[1, 2], "z"], [{"a": 1}, "z"], [1j, 2.0]])
def test_cells_that_are_no_single_values_are_refused(cells: Any) -> None:
    for X in (pd.DataFrame({"c": cells}), np.array([[cells[0]], [None]], dtype=object)[:, :1]):
        with pytest.raises(ValueError, match=r"cells such as .* column of numbers|Complex"):
            learnt(X)


# Dates


DAY = dt.date(2020, 1, 1)
MOMENTS = [
    dt.datetime(2019, 3, 1, 6, 30),
    dt.datetime(1969, 12, 31, 23, 0),
    dt.datetime(2024, 2, 29, 0, 15),
    dt.datetime(2000, 7, 9, 12, 45),
]


def by_hand(moment: dt.datetime) -> list[float]:
    days = (moment - dt.datetime(1970, 1, 1)).total_seconds() / 86400.0
    angle = 2.0 * math.pi * days / 365.2425
    hour = moment.hour + moment.minute / 60
    return [days, math.sin(angle), math.cos(angle), moment.weekday(), hour]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"c": MOMENTS}),
        pd.DataFrame({"c": MOMENTS}).astype("datetime64[s]"),
        pd.DataFrame({"c": pd.DatetimeIndex(MOMENTS, tz="UTC").tz_convert("Asia/Tokyo")}),
        pd.DataFrame({"c": pd.PeriodIndex(MOMENTS, freq="s")}),
        pl.DataFrame({"c": MOMENTS}),
        pa.table({"c": MOMENTS}),
        np.array(MOMENTS, dtype="datetime64[m]")[:, None],
        np.array(MOMENTS, dtype=object)[:, None],
        np.array([m.replace(tzinfo=dt.UTC) for m in MOMENTS], dtype=object)[:, None],
    ],
    ids=[
        "pandas",
        "seconds",
        "zone",
        "periods",
        "polars",
        "pyarrow",
        "array",
        "objects",
        "objects of a zone",
    ],
)
def test_dates(table: Any) -> None:
    """Days, season, weekday and hour; those of UTC where there is a zone."""
    columns = learnt(table)
    assert columns[0].parts == ("days", "season sine", "season cosine", "weekday", "hour")
    expected = np.array([by_hand(moment) for moment in MOMENTS])
    np.testing.assert_allclose(encode(columns, opened(table)), expected, rtol=0.0, atol=1e-6)


def test_parts_of_dates_that_vary() -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=7 * i) for i in range(4)]
    parts = ["c days", "c season sine", "c season cosine"]
    assert list(alone(days)) == parts
    # Across 2014-11-10, the day 2^14, from which on days have a digit less.
    daily = [dt.datetime(2014, 9, 1, 0, 1) + dt.timedelta(days=7 * i) for i in range(40)]
    assert list(alone(daily)) == parts  # the hour is the same up to rounding


def test_missing_dates_are_the_typical_day() -> None:
    table = pl.DataFrame({"c": [dt.date(2024, 1, day) for day in (1, 9, 3)] + [None]})
    columns = learnt(table)
    values = encoded(columns, table)
    assert values.pop("c missing") == [0, 0, 0, 1]
    assert all(column[2] == column[3] for column in values.values())
    nothing = encoded(columns, pd.DataFrame({"c": [None]}))
    assert nothing == {name: column[3:] for name, column in values.items()} | {"c missing": [1]}


# Columns that say nothing, and other kinds than before


def test_constant_columns_are_left_out() -> None:
    near = 1e6 * (1.0 + 1e-12 * np.arange(4))
    X = pd.DataFrame({"a": [5.0] * 4, "b": near, "c": [1.0, 2.0, 3.0, 4.0], "d": ["x"] * 4})
    columns = learnt(X)
    assert encoded_names(columns) == ["c"]
    assert owners(columns).tolist() == [2]
    assert encode(columns, opened(X.assign(a=7.0, d="y"))).shape == (4, 1)
    assert alone([5.0, None, 5.0, 5.0]) == {"c missing": [0, 1, 0, 0]}


@pytest.mark.parametrize(
    ("value", "new"), [(5.0, 6.0), ("x", "y"), (DAY, dt.date(2021, 1, 1)), (None, 1.0)]
)
def test_a_table_that_says_nothing_keeps_a_column(value: Any, new: Any) -> None:
    X = pd.DataFrame({"c": [value] * 3, "d": [value] * 3})
    columns = learnt(X)
    assert owners(columns).tolist() == [0]
    assert np.ptp(encode(columns, opened(X))) == 0.0
    for other in (new, None):
        row = pd.DataFrame({"c": [other], "d": [other]})
        assert np.isfinite(encode(columns, opened(row))).all()


@pytest.mark.parametrize(
    ("before", "now", "kind"), [(1.0, "a", "number"), (DAY, 1.0, "date"), (1.0, DAY, "number")]
)
def test_another_kind_than_in_training_is_refused(before: Any, now: Any, kind: str) -> None:
    columns = learnt(pd.DataFrame({"price": [before, 2 * before if kind == "number" else None]}))
    with pytest.raises(ValueError, match=rf"'price'.*{kind}"):
        encode(columns, opened(pd.DataFrame({"price": [now, now]})))
