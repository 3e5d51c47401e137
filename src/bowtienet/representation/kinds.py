"""What a column holds: numbers, dates, durations, or texts.

The same file read by pandas, polars or pyarrow gives columns of different types. What is read here
of them is the same.
"""

from __future__ import annotations

import datetime
import importlib
import math
import numbers
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet.representation.written import read_written, reads_as_number

NUMBER, DATE, DURATION, CATEGORY = "number", "date", "duration", "category"
KINDS = {NUMBER: "numbers", DATE: "dates", DURATION: "durations", CATEGORY: "categories"}
"""What columns hold, by their kind."""
DAY = 86_400e6
"""Microseconds."""
_ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A column of numbers; dates are days since 1970-01-01 and durations days."""

    kind: str
    values: NDArray[np.float64]
    """NaN where missing, and else finite."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """A column of texts."""

    distinct: tuple[str, ...]
    """Every text once, in no order."""
    codes: NDArray[np.intp]
    """Place of each row's text among them; -1 where missing."""
    declared: bool = False
    """Whether the table says that they are categories, whatever they look like."""


def read_column(column: Any, name: str) -> Numbers | Texts:
    """What a column of a `Table` holds. Texts stay texts, also those that look like numbers."""
    found = (
        _read_array(column, name) if isinstance(column, np.ndarray) else _read_series(column, name)
    )
    if isinstance(found, Numbers) and np.isinf(found.values).any():
        raise ValueError(
            f"column {name!r} holds infinite values: mend them or mark them as missing."
        )
    return found


def read_texts(column: Any, name: str, categories: Sequence[str]) -> Texts:
    """The same column as texts, whatever its type, spelt like the known ones where it can be.

    A part of a column of texts may hold only numbers and be read as such: 1234 is then the known
    '01234', 1.0 is '1', and True is 'true'.
    """
    if isinstance(column, np.ndarray):
        return _texts_of_objects(column.tolist(), name, spellings(categories))
    if isinstance(column.dtype, _narwhals().String) or _has_text_categories(column):
        return _texts_of_series(column)
    return _texts_of_objects(column.to_list(), name, spellings(categories))


def spellings(categories: Sequence[str]) -> dict[str, str]:
    """The known text for what it would be if its column were read as numbers or truth values."""
    found = {_canonical(text): text for text in reversed(categories)}
    return found | {text: text for text in categories}


def spelt(number: float) -> str:
    """The text of a number: 1 and 1.0 are both '1'."""
    return _text(number, "")


def text_as_number(text: str, kind: str, number_format: str | None) -> float | None:
    """The number that a text is in a column of a kind and a format of numbers; None if it is none.

    ISO dates are days since 1970-01-01, "true" is 1 and "false" is 0.
    """
    if kind == DATE:
        return text_as_date(text)
    if kind != NUMBER:
        return None
    if number_format is not None:
        return read_written(text, number_format)
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    return float(text) if reads_as_number(text) else None


def text_as_date(text: str) -> float | None:
    """Days since 1970-01-01 of an ISO date such as 2024-05-31 or 2024-05-31 12:00; else None."""
    if _ISO_DATE.fullmatch(text) is None:
        return None
    try:
        return _days_of_date(datetime.datetime.fromisoformat(text))
    except ValueError:  # such as the 31st of June
        return None


def is_truth_value(text: str) -> bool:
    """Whether a text is "true" or "false", in capitals or not."""
    return text.lower() in _TRUTH


def _narwhals() -> Any:
    return importlib.import_module("narwhals")


def _read_array(column: np.ndarray, name: str) -> Numbers | Texts:
    kind = column.dtype.kind
    if kind in "biuf":
        return Numbers(kind=NUMBER, values=column.astype(np.float64))
    if kind == "M":
        return Numbers(kind=DATE, values=_days(column.astype("datetime64[us]")))
    if kind == "m":
        return Numbers(kind=DURATION, values=_days(column.astype("timedelta64[us]")))
    return _read_objects(column.tolist(), name)


def _read_series(column: Any, name: str) -> Numbers | Texts:
    dtypes, dtype = _narwhals().dtypes, column.dtype
    if dtype.is_numeric() or isinstance(dtype, dtypes.Boolean):
        return Numbers(kind=NUMBER, values=_floats(column))
    if isinstance(dtype, (dtypes.Date, dtypes.Datetime)):
        return Numbers(kind=DATE, values=_floats(column.dt.timestamp("us")) / DAY)
    if isinstance(dtype, dtypes.Duration):
        return Numbers(kind=DURATION, values=_floats(column.dt.total_microseconds()) / DAY)
    if isinstance(dtype, dtypes.String):
        return _texts_of_series(column)
    if _has_text_categories(column):
        return _texts_of_series(column, declared=True)
    if isinstance(dtype, (dtypes.Categorical, dtypes.Enum)):
        return _texts_of_objects(column.to_list(), name, {}, declared=True)
    return _read_objects(column.to_list(), name)


def _has_text_categories(column: Any) -> bool:
    """Whether a column is of categories that are texts (in pandas they may be anything)."""
    if not isinstance(column.dtype, (_narwhals().Categorical, _narwhals().Enum)):
        return False
    return all(isinstance(value, str) or _is_missing(value) for value in column.unique().to_list())


def _texts_of_series(column: Any, *, declared: bool = False) -> Texts:
    if column.implementation.is_pyarrow():  # whose dictionaries are slow to unpack as they are
        column = column.cast(_narwhals().String)
    return _coded(column.to_list(), declared=declared)


def _floats(column: Any) -> NDArray[np.float64]:
    # pyarrow refuses to round whole numbers that no float can hold, such as ids; NumPy does it.
    with suppress(ValueError):
        column = column.cast(_narwhals().Float64)
    return np.array(column.to_numpy(), dtype=np.float64)


def _days(moments: np.ndarray) -> NDArray[np.float64]:
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / DAY)


def _coded(values: Sequence[Any], *, declared: bool = False) -> Texts:
    """Texts, among which all else is missing. It runs for every row, but inside `map`."""
    found = dict.fromkeys(values)
    # Texts of NumPy are of a subclass, which cannot be saved.
    distinct = tuple(str(text) for text in found if isinstance(text, str) and text)
    places = {text: place for place, text in enumerate(distinct)}
    codes = np.fromiter(map(places.get, values, repeat(-1)), dtype=np.intp, count=len(values))
    return Texts(distinct=distinct, codes=codes, declared=declared)


def _texts_of_objects(
    values: Sequence[Any], name: str, known: dict[str, str], *, declared: bool = False
) -> Texts:
    texts: list[str | None] = []
    for value in values:
        if isinstance(value, str) or _is_missing(value):
            texts.append(value if isinstance(value, str) else None)
        else:
            text = _text(value, name)
            texts.append(known.get(text, text))
    return _coded(texts, declared=declared)


def _text(value: Any, name: str) -> str:
    """1 and 1.0 are both '1': a missing value makes floats of a column of whole numbers."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (complex, np.complexfloating)):
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers.")
    is_real = isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool)
    is_whole = is_real and math.isfinite(value) and value == int(value)
    return str(int(value)) if is_whole else str(value)


def _canonical(text: str) -> str:
    """How a text would come if its column were read as numbers or truth values."""
    if is_truth_value(text):
        return text.capitalize()
    if not reads_as_number(text):
        return text
    return _text(int(text) if text.isdecimal() else float(text), "")


def _is_missing(value: Any) -> bool:
    """None, an empty text, and what does not equal itself: NaN, NaT and NA of any library."""
    if value is None or isinstance(value, (str, bytes)):
        return not value
    try:
        return bool(value != value)
    except TypeError:
        return True  # pandas.NA is neither equal to itself nor not
    except ValueError:
        return False


def _read_objects(values: Sequence[Any], name: str) -> Numbers | Texts:
    """Python objects: numbers, dates or durations if all are, and else texts."""
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    present = [value for value, absent in zip(values, missing, strict=True) if not absent]
    for kind, types, to_float in _OBJECTS:
        if all(issubclass(found, types) for found in set(map(type, present))):
            found = np.full(len(values), np.nan)
            found[~missing] = _each(to_float, present, name)
            return Numbers(kind=kind, values=found)
    return _texts_of_objects(values, name, {})


def _each(to_float: Callable[[Any], float], values: Sequence[Any], name: str) -> list[float]:
    try:
        return [to_float(value) for value in values]
    except OverflowError:
        raise ValueError(f"X holds a number too large for a float in column {name!r}.") from None


def _days_of_date(value: Any) -> float:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return float(np.datetime64(value, "us").astype(np.int64) / DAY)


def _days_of_duration(value: Any) -> float:
    return float(np.timedelta64(value, "us").astype(np.int64) / DAY)


_OBJECTS: tuple[tuple[str, tuple[type, ...], Callable[[Any], float]], ...] = (
    (NUMBER, (numbers.Real, np.bool_, Decimal), float),
    (DATE, (datetime.date, np.datetime64), _days_of_date),
    (DURATION, (datetime.timedelta, np.timedelta64), _days_of_duration),
)
