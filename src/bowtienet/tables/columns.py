"""What becomes of each column: numbers, categories or dates as columns of numbers.

- Numbers stay; truth values are 0 and 1, durations are days. Where one is missing stands the median
  of training, and if any was missing in training a second column says where.
- Categories, texts and mixed objects become a column of zeros and ones for each frequent level;
  other levels, missing ones and levels that training did not have are zero in all of them.
- Dates become days, and the sine and cosine of the time of the year, the weekday and the hour, as
  far as they vary.

Columns that do not vary say nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet.tables.door import Table, is_missing
from bowtienet.tables.quantiles import weighted_quantiles

Floats = NDArray[np.float64]

NUMBER, CATEGORY, DATE = "number", "category", "date"
DATE_PARTS = ("days", "season sine", "season cosine", "weekday", "hour")
DAY = np.timedelta64(1, "D")
DAYS_OF_YEAR = 365.2425
CONSTANT = 1e-9
"""A range below this part of the size of the values is rounding."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """What was learnt of a column."""

    name: str
    kind: str
    parts: tuple[str, ...]
    """Levels of a category, parts of a date that vary, ("",) for a number; none if left out."""
    typical: float
    """Median of numbers and days, which stands where one is missing."""
    has_indicator: bool
    """Whether a further column says where values are missing."""


def learn_columns(table: Table, weights: Floats, max_categories: int) -> tuple[Column, ...]:
    """What becomes of each column of the rows of a fit."""
    if table.matrix is not None:
        values = [(NUMBER, column) for column in table.matrix.T]
    else:
        values = [_read(column) for column in table.columns]
    learnt = zip(table.names, values, strict=True)
    columns = tuple(_learn(name, *read, weights, max_categories) for name, read in learnt)
    if any(encoded_names((column,)) for column in columns):
        return columns
    # A network needs an input, even if it says nothing.
    first = columns[0]
    return (replace(first, parts=("days",) if first.kind == DATE else ("",)), *columns[1:])


def encode(columns: Sequence[Column], table: Table) -> Floats:
    """Finite numbers (n, encoded); the matrix itself if nothing in it has to change."""
    matrix = table.matrix
    plain = all(c.kind == NUMBER and c.parts and not c.has_indicator for c in columns)
    if matrix is not None and plain and np.isfinite(matrix).all():
        return matrix
    blocks = []
    for index, column in enumerate(columns):
        values = table.columns[index] if matrix is None else matrix[:, index]
        blocks.append(_encoded(column, values))
    return np.column_stack(blocks)


def encoded_names(columns: Sequence[Column]) -> list[str]:
    """Names of the encoded columns."""
    names = []
    for column in columns:
        link = {NUMBER: "", CATEGORY: "=", DATE: " "}[column.kind]
        names += [f"{column.name}{link}{part}" for part in column.parts]
        names += [f"{column.name} missing"] * column.has_indicator
    return names


def owners(columns: Sequence[Column]) -> NDArray[np.intp]:
    """The user's column of each encoded one."""
    sizes = [len(encoded_names((column,))) for column in columns]
    return np.repeat(np.arange(len(columns), dtype=np.intp), sizes)


def _learn(
    name: str, kind: str, values: NDArray[Any], weights: Floats, max_categories: int
) -> Column:
    if kind == CATEGORY:
        known = np.array([value is not None for value in values])
        present = values[known]
        levels, rows = np.unique(present.astype(str), return_inverse=True)
        counts = np.bincount(rows, weights=weights[known], minlength=len(levels))
        frequent = np.sort(levels[np.argsort(-counts, kind="stable")[:max_categories]])
        varies = len(levels) > 1 or 0 < len(present) < len(values)
        # With two levels one column says it all.
        complete = len(present) == len(values)
        kept = levels[1:] if len(levels) == 2 and complete else frequent
        return Column(
            name=name,
            kind=kind,
            parts=tuple(map(str, kept)) if varies else (),
            typical=0.0,
            has_indicator=False,
        )
    numbers = _days(values) if kind == DATE else values
    known = np.isfinite(numbers)
    typical = 0.0
    if known.any():
        half = np.array([0.5])
        typical = float(weighted_quantiles(numbers[known], weights[known], half)[0])
    has_indicator = bool(known.any() and not known.all())
    if kind == DATE:
        parts = tuple(
            part
            for part, column in zip(DATE_PARTS, _date_parts(values, typical).T, strict=True)
            if _varies(column)
        )
    else:
        parts = ("",) if _varies(numbers[known]) else ()
    return Column(name=name, kind=kind, parts=parts, typical=typical, has_indicator=has_indicator)


def _varies(values: Floats) -> bool:
    if not values.size:
        return False
    # Halves, so that no difference overflows.
    return bool(np.ptp(0.5 * values) > 0.5 * CONSTANT * np.abs(values).max())


def _encoded(column: Column, values: NDArray[Any]) -> Floats:
    """Encoded columns (n, k) of one column."""
    kind, read = _read(values)
    if column.kind == CATEGORY:
        texts = np.array([None if value is None else _text(value) for value in read], dtype=object)
        return np.column_stack(
            [*((texts == part).astype(float) for part in column.parts), np.zeros((len(read), 0))]
        )
    if kind != column.kind and not (kind == CATEGORY and all(value is None for value in read)):
        raise ValueError(
            f"column {column.name!r} was a {column.kind} in training and is a {kind} now: read it "
            "as before."
        )
    if kind == CATEGORY:
        read = np.full(len(read), np.nan)
    if column.kind == DATE:
        dates = read if kind == DATE else np.full(len(read), np.datetime64("NaT"))
        everything = _date_parts(dates, column.typical)
        wanted = [DATE_PARTS.index(part) for part in column.parts]
        blocks, missing = [everything[:, wanted]], np.isnat(dates)
    else:
        missing = ~np.isfinite(read)
        blocks = [np.where(missing, column.typical, read)[:, None]][: len(column.parts)]
    if column.has_indicator:
        blocks.append(missing[:, None].astype(float))
    return np.column_stack([*blocks, np.zeros((len(read), 0))])


def _read(values: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Kind of a column, and its values: floats, dates, or objects with None where missing."""
    kind = values.dtype.kind
    if kind in "fiub":
        return NUMBER, values.astype(np.float64, copy=False)
    if kind == "M":
        return DATE, values.astype("datetime64[us]")
    if kind == "m":
        return NUMBER, np.where(np.isnat(values), np.nan, values / DAY)
    values = np.array([_plain(value) for value in values], dtype=object)
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, (Real, Decimal, np.bool_)) for value in known):
        numbers = np.array([np.nan if v is None else float(v) for v in values])
        return NUMBER, numbers
    if known and all(isinstance(value, (date, np.datetime64)) for value in known):
        return DATE, np.array(values, dtype="datetime64[us]")
    if known and all(isinstance(value, timedelta) for value in known):
        return NUMBER, np.array([np.nan if v is None else v / timedelta(days=1) for v in values])
    return CATEGORY, np.array([None if v is None else _text(v) for v in values], dtype=object)


def _plain(value: Any) -> Any:
    """None for what is missing; times as the clock shows them, without their zone."""
    if is_missing(value) or (isinstance(value, str) and not value):
        return None
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _text(value: Any) -> str:
    """A level as text; whole floats as whole numbers, so that 1 and 1.0 are one level."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _days(dates: NDArray[Any]) -> Floats:
    """Days since 1970-01-01; NaN where missing."""
    days = (dates.astype("datetime64[us]") - np.datetime64("1970-01-01T00:00:00", "us")) / DAY
    return np.where(np.isnat(dates), np.nan, days)


def _date_parts(dates: NDArray[Any], typical: float) -> Floats:
    """Days, season, weekday and hour (n, 5); those of the typical day where missing."""
    days = _days(dates)
    days = np.where(np.isfinite(days), days, typical)
    angle = 2.0 * np.pi * days / DAYS_OF_YEAR
    whole = np.floor(days)
    # To the digits that days have: the same time of every day is the same number.
    hours = np.round(24.0 * (days - whole), 6)
    return np.column_stack([days, np.sin(angle), np.cos(angle), (whole + 3.0) % 7.0, hours])
