"""What a column holds: numbers, dates, durations, or texts.

The same file read by pandas, polars or pyarrow gives columns of different types. What is read here
of them is the same.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bowtienet._old.data.parsing import column_floats
from bowtienet._old.representation.written import read_written, reads_as_number

NUMBER, DATE, DURATION, CATEGORY = "number", "date", "duration", "category"
KINDS = {NUMBER: "numbers", DATE: "dates", DURATION: "durations", CATEGORY: "categories"}
"""What columns hold, by their kind."""
DAY = 86_400e6
"""Microseconds."""
_ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_TRUTH = {"true": 1.0, "false": 0.0}
_MOMENTS, _SPANS = "datetime64[us]", "timedelta64[us]"
_OBJECTS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    (DATE, (datetime.date, np.datetime64), _MOMENTS),
    (DURATION, (datetime.timedelta, np.timedelta64), _SPANS),
)
"""Kinds of columns of Python objects, and the types of NumPy for them."""


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
    numbers = column_floats(column, f"column {name!r}")
    if numbers is not None:
        return Numbers(kind=NUMBER, values=numbers)
    return _read_array(column) if isinstance(column, np.ndarray) else _read_series(column)


def read_texts(column: Any, categories: Sequence[str]) -> Texts:
    """The same column as texts, whatever its type, spelt like the known ones where it can be.

    A part of a column of texts may hold only numbers and be read as such: 1234 is then the known
    '01234', 1.0 is '1', and True is 'true'.
    """
    return _texts(_values(column), spellings(categories))


def spellings(categories: Sequence[str]) -> dict[str, str]:
    """The known text for what it would be if its column were read as numbers or truth values."""
    found = {canonical(text): text for text in reversed(categories)}
    return found | {text: text for text in categories}


def spell(value: Any, known: dict[str, str]) -> str:
    """The text of a value that is none, one of `spellings` if it can be; 1 and 1.0 are both '1'.

    A missing value makes floats of a column of whole numbers.
    """
    text = _text(value)
    return known.get(text) or known.get(canonical(text), text)


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
        moment = _in_utc(datetime.datetime.fromisoformat(text))
        return float(_days(np.array(moment, dtype=_MOMENTS)))
    except ValueError:  # such as the 31st of June
        return None


def is_truth_value(text: str) -> bool:
    """Whether a text is "true" or "false", in capitals or not."""
    return text.lower() in _TRUTH


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return str(int(value)) if is_number and value == value // 1 else str(value)


def canonical(text: str) -> str:
    """How a text would come if its column were read as numbers or truth values."""
    if is_truth_value(text):
        return _text(_TRUTH[text.lower()])
    return _text(float(text)) if reads_as_number(text) else text


def _values(column: Any) -> list[Any]:
    if isinstance(column, np.ndarray):
        return column.tolist()
    if _is_declared(column) and column.implementation.is_pyarrow():
        column = column.cast(nw.String)  # dictionaries are slow to unpack as they are
    return column.to_list()


def _is_declared(column: Any) -> bool:
    """Whether a series says that it holds categories."""
    return column.dtype in (nw.Categorical, nw.Enum)


def _read_array(column: np.ndarray) -> Numbers | Texts:
    if column.dtype.kind == "M":
        return Numbers(kind=DATE, values=_days(column.astype(_MOMENTS)))
    if column.dtype.kind == "m":
        return Numbers(kind=DURATION, values=_days(column.astype(_SPANS)))
    return _read_objects(column.tolist())


def _read_series(column: Any) -> Numbers | Texts:
    dtype = column.dtype
    if dtype in (nw.Date, nw.Datetime):
        return Numbers(kind=DATE, values=_microseconds(column.dt.timestamp("us")) / DAY)
    if dtype == nw.Duration:
        return Numbers(kind=DURATION, values=_microseconds(column.dt.total_microseconds()) / DAY)
    if dtype == nw.String:
        return _coded(column.to_list())
    if _is_declared(column):
        return _texts(_values(column), {}, declared=True)
    return _read_objects(column.to_list())


def _microseconds(column: Any) -> NDArray[np.float64]:
    return np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64)


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


def _texts(values: Sequence[Any], known: dict[str, str], *, declared: bool = False) -> Texts:
    texts = [
        value if isinstance(value, str) or _is_missing(value) else spell(value, known)
        for value in values
    ]
    return _coded(texts, declared=declared)


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


def _read_objects(values: Sequence[Any]) -> Numbers | Texts:
    """Python objects: dates or durations if all are, and else texts."""
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    present = [value for value, absent in zip(values, missing, strict=True) if not absent]
    for kind, types, dtype in _OBJECTS:
        if all(issubclass(found, types) for found in set(map(type, present))):
            found = np.full(len(values), np.nan)
            found[~missing] = _days(np.array(list(map(_in_utc, present)), dtype=dtype))
            return Numbers(kind=kind, values=found)
    return _texts(values, {})


def _in_utc(value: Any) -> Any:
    """A moment without its time zone; all else as it is."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(datetime.UTC).replace(tzinfo=None)
