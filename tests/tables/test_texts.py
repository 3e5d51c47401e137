"""Text cells: numbers with units, truth values, codes, dates, and what is in doubt."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from bowtienet.tables.dates import parse_dates
from bowtienet.tables.texts import Column, Hints, distinct_cells, learn_reading, read_cells

NAN = float("nan")


def read(values: list[Any], hints: Hints | None = None) -> tuple[Column, list[Any]]:
    """The reading of a column, and its values by row."""
    hints = hints or Hints()
    column = np.empty(len(values), dtype=object)
    column[:] = values
    cells = distinct_cells(column)
    reading = learn_reading(cells, np.ones(len(values)), hints)
    known, unread = read_cells(cells, reading, hints)
    assert unread == []
    return reading, list(known[cells[1]])


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["573,77 EUR", "1.204,10 €", "k.A.", None], [573.77, 1204.1, NAN, NAN]),
        (["12 %", "13.5%", "n/a", "-"], [12, 13.5, NAN, NAN]),
        (["$1,200", "$ 3.50", "($4.50)", "-$2", "  "], [1200, 3.5, -4.5, -2, NAN]),
        (["1 234,5", "2\u00a0000,25"], [1234.5, 2000.25]),
        (["1'234.50", "12'000.00"], [1234.5, 12000]),
        (["5 years", "1 year"], [5, 1]),
        (["1e5", ".5", "−3", "+4"], [1e5, 0.5, -3, 4]),
        (["1.234", "12.345.678"], [1234, 12345678]),
        ([1, "2", " 3.5 ", Decimal("4"), True], [1, 2, 3.5, 4, 1]),
        (["Yes", "no", "YES", "n/a", "No"], [1, 0, 1, NAN, 0]),
        (["wahr", "FALSCH"], [1, 0]),
    ],
)
def test_numbers(cells: list[Any], numbers: list[float]) -> None:
    reading, values = read(cells)
    assert reading.kind == "number"
    assert reading.note == ""
    np.testing.assert_array_equal(values, numbers)


@pytest.mark.parametrize(
    "cells",
    [
        ["01234", "80331", "99999"],
        ["A12", "A13", "A14"],
        ["3-4", "5-6"],
        ["12:30", "13:30"],
        ["192.168.1.1", "10.0.0.1"],
        ["-", "n/a"],
        ["a", "b", "-"],
        [1, "a", "b", "c"],
    ],
    ids=str,
)
def test_no_numbers(cells: list[Any]) -> None:
    reading, values = read(cells)
    assert reading.kind == "category"
    assert values == [str(cell) for cell in cells]  # codes are levels of a category


def test_a_code_that_the_user_names_is_missing_everywhere() -> None:
    hints = Hints(missing_values=("-999", "Leer"))
    np.testing.assert_array_equal(read(["1", "-999", "2"], hints)[1], [1, NAN, 2])
    assert read(["a", "leer", "b"], hints)[1] == ["a", None, "b"]


def test_strange_texts_among_numbers_are_missing_and_in_doubt() -> None:
    numbers = [str(i) for i in range(100)]
    reading, values = read([*numbers, "broken"])
    assert (reading.kind, reading.codes) == ("number", ("broken",))
    assert "'broken'" in reading.note
    assert "missing_values" in reading.note
    assert np.isnan(values[-1])
    assert read([*numbers, "a", "b", "c", "d"])[0].kind == "category"


def test_several_units_are_no_numbers() -> None:
    reading, _ = read(["12 kg", "500 g"])
    assert (reading.kind, "units" in reading.note) == ("category", True)


@pytest.mark.parametrize(("decimal", "value"), [(None, 1234.0), (".", 1234.0), (",", 1.234)])
def test_a_decimal_sign_in_doubt(decimal: str | None, value: float) -> None:
    reading, values = read(["1,234", "5,678"], Hints(decimal=decimal))
    assert values[0] == value
    assert ("decimal=','" in reading.note) == (decimal is None)


MARCH = dt.datetime(2024, 3, 31)
NUMERIC = ["2024-03-31", "2024/3/31", "31.3.2024", "31. 3. 24", "03/31/2024", "31-03-2024"]
NAMED = ["31 March 2024", "31. März 2024", "31-mar-24", "Sunday, March 31st, 2024", "Mar 31, 2024"]


@pytest.mark.parametrize("text", [*NUMERIC, *NAMED, "20240331"])
def test_dates(text: str) -> None:
    order = "month first" if text.startswith("03/31") else "day first"
    assert parse_dates([text], order)[0] == np.datetime64(MARCH)
    if text[2:3] != "-" and " " not in text:
        assert parse_dates([f"{text} 15:04:05.25"], order)[0] == np.datetime64(
            MARCH + dt.timedelta(hours=15, minutes=4, seconds=5.25)
        )


def test_times_with_zones_are_on_one_clock() -> None:
    texts = ["2024-07-01T12:00:00+02:00", "2024-07-01T10:00:00Z", "2024-07-01 06:00 -0400"]
    zone = dt.timezone(dt.timedelta(hours=5))
    _, values = read([*texts, "July 1, 2024 10:00 AM"])
    np.testing.assert_array_equal(values, np.datetime64("2024-07-01T10:00"))
    assert read([dt.datetime(2024, 7, 1, 15, tzinfo=zone)])[1][0] == values[0]


@pytest.mark.parametrize("text", ["2024-02-30", "31.04.2024", "13.13.2024", "1 Foo 2024", "24:00"])
def test_no_dates(text: str) -> None:
    assert np.isnat(parse_dates([text], "day first")).all()


def test_the_column_decides_on_day_and_month() -> None:
    assert read(["03/04/2024", "13/04/2024"])[1][0] == np.datetime64("2024-04-03")
    assert read(["03/04/2024", "03/14/2024"])[1][0] == np.datetime64("2024-03-04")
    reading, values = read(["03/04/2024", "05/06/2024", "n/a"])
    assert values[0] == np.datetime64("2024-03-04")
    assert "day_first=True" in reading.note
    reading, values = read(["03/04/2024", "05/06/2024"], Hints(day_first=True))
    assert (reading.note, values[0]) == ("", np.datetime64("2024-04-03"))


def test_what_was_learnt_reads_a_row_alone() -> None:
    """1.204 is a thousand, 03/04 the third of April, and a new code is missing, as in training."""
    for column, new, expected in [
        (["573,77", "1.204,10"], "1.204", 1204.0),
        (["13/04/2024", "01/02/2024"], "03/04/2024", np.datetime64("2024-04-03")),
    ]:
        reading, _ = read(column)
        for text, value in [(new, expected), ("k.A.", None), ("1 and 2", None)]:
            known, unread = read_cells(distinct_cells(np.array([text])), reading, Hints())
            assert (known[0] == expected) == (value is not None)
            assert unread == ([text] if text == "1 and 2" else [])
