"""Numbers as people write them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowtienet._old.representation.columns import encode
from bowtienet._old.representation.written import find_format, formats, read_written
from tests._old.representation.tables import as_table, encoded, learn


@pytest.mark.parametrize(
    ("text", "number_format", "expected"),
    [
        ("1,234.5", "1,234.5", 1234.5),
        ("1.234,5", "1.234,5", 1234.5),
        ("1 234", "1,234.5", 1234.0),
        ("1\u202f234,5", "1.234,5", 1234.5),
        ("1'234'567.25", "1,234.5", 1234567.25),
        ("0,5", "1.234,5", 0.5),
        ("-3,25", "1.234,5", -3.25),
        ("12", "1.234,5", 12.0),
        ("1e3", "1,234.5", 1000.0),
        ("12 %", "1,234.5 %", 12.0),
        ("12,5%", "1.234,5 %", 12.5),
        ("$1,234", "1,234.5 $", 1234.0),
        ("-$1,234", "1,234.5 $", -1234.0),
        ("1.234,50 €", "1.234,5 €", 1234.5),
        ("7", "1,234.5 $", 7.0),
        ("7", "1,234.5 %", None),
        ("7 €", "1,234.5 $", None),
        ("$7 €", "1,234.5 $", None),
        ("12,34", "1,234.5", None),
        ("0,123", "1,234.5", None),
        ("1,2,3", "1.234,5", None),
        ("1,234 567", "1,234.5", None),
        ("1.5", "1.234,5", None),
        ("n/a", "1,234.5", None),
        ("", "1,234.5", None),
    ],
)
def test_one_text(text: str, number_format: str, expected: float | None) -> None:
    assert number_format in formats()
    assert read_written(text, number_format) == expected


@given(
    value=st.integers(-(10**11), 10**11),
    style=st.sampled_from([("1,234.5", ",", "."), ("1.234,5", ".", ","), ("1.234,5", " ", ",")]),
)
def test_every_number_comes_back(value: int, style: tuple[str, str, str]) -> None:
    number_format, thousands, decimal = style
    whole, cents = divmod(abs(value), 100)
    sign = "-" if value < 0 else ""
    text = f"{sign}{whole:,}".replace(",", thousands) + f"{decimal}{cents:02d}"
    assert read_written(text, number_format) == float(f"{sign}{whole}.{cents:02d}")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1,234", "5,678", "12"], "1,234.5"),
        (["1,234", "0,5"], "1.234,5"),
        (["1.234", "5.678"], None),
        (["1.234", "0,5"], "1.234,5"),
        (["12 %", "3 %"], "1,234.5 %"),
        (["12 %", "0.12"], None),
        (["$5", "7", "$1,000"], "1,234.5 $"),
        (["$5", "€7"], None),
        (["07", "12"], None),
        (["1", "2", "x"], None),
        (["1,5"] * 19 + ["n/a"], "1.234,5"),
        (["1,5"] * 18 + ["n/a"], None),
        ([str(number) for number in range(19)] + ["n/a"], None),
        (["555-1234", "555-9876"], None),
    ],
)
def test_the_format_of_a_column(texts: list[str], expected: str | None) -> None:
    assert find_format({text: texts.count(text) for text in texts}) == expected


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_of_written_numbers(make: Any) -> None:
    texts = [f"{index}.{index:03d},50" for index in range(1, 21)]
    texts[3] = "on request"
    table = make({"price": texts})
    columns = learn(table)
    assert {"1.234,5;", "'on", "request'"} <= set(str(columns[0].note).split())
    values, surprises = encode(columns, as_table(table))
    numbers = [1001.0 * index + 0.5 for index in range(1, 21)]
    numbers[3] = 1001.0 * 11 + 0.5
    assert values[:, 0].tolist() == numbers
    assert values[:, 1].tolist() == [float(index == 3) for index in range(20)]
    assert [("'price'" in text, "'on request'" in text) for text in surprises] == [(True, True)]
    # Later the format of training holds, also for numbers and for texts that another would read.
    assert encoded(columns, make({"price": ["1.500", "2,5", "7"]}))["price"] == [1500, 2.5, 7]
    assert encoded(columns, make({"price": [1.5, 2.0]}))["price"] == [1.5, 2]
    values, surprises = encode(columns, as_table(make({"price": ["1,234.5", None]})))
    assert values.tolist() == [[11011.5, 1.0]] * 2
    assert len(surprises) == 1
