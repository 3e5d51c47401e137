"""Columns of a table as they come, and what they hold: numbers, or texts.

The same file read by pandas, polars or pyarrow gives columns of different types. What is read here
of them is the same.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import math
import numbers
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from bowtienet._arrays import to_numpy
from bowtienet.data.batches import gives_batches
from bowtienet.data.sources import Source
from bowtienet.estimators.cluster import is_dask
from bowtienet.estimators.tables import (
    as_frame,
    check_rank,
    check_size,
    is_foreign_array,
    refuse_complex,
    with_names,
)

Mask = NDArray[np.bool_]
NUMBER, DATE, DURATION, CATEGORY = "number", "date", "duration", "category"
DAY = 86_400e6
"""Microseconds."""
_ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of what was given, not read yet."""

    native: Any
    """What was given, in a form whose names scikit-learn finds."""
    frame: Any
    """The same as a narwhals frame; None for arrays."""
    names: tuple[str, ...]
    named: bool
    columns: tuple[Any, ...]
    n_rows: int


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A column of numbers; dates are days since 1970-01-01 and durations days."""

    kind: str
    values: NDArray[np.float64]
    """NaN where missing."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """A column of texts."""

    distinct: tuple[str, ...]
    """Every text once, in no order."""
    codes: NDArray[np.intp]
    """Place of each row's text among them; -1 where missing."""


def open_table(X: Any, *, min_rows: int = 1) -> Table:
    """The columns of a table in memory; x0, x1, ... where they have no names."""
    refuse_sources(X)
    X = to_numpy(X) if is_foreign_array(X) else with_names(X)
    frame = as_frame(X, "X")
    if frame is None:
        _refuse_unreadable_frame(X)
        array = _as_array(X)
        check_rank(array.shape, "X")
        check_size(array.shape, "X", min_rows)
        return Table(
            native=X,
            frame=None,
            names=_numbered(array.shape[1]),
            named=False,
            columns=tuple(array.T),
            n_rows=len(array),
        )
    check_rank(frame.shape, "X")
    check_size(frame.shape, "X", min_rows)
    named = all(isinstance(name, str) for name in frame.columns)
    return Table(
        native=X,
        frame=frame,
        names=tuple(map(str, frame.columns)) if named else _numbered(len(frame.columns)),
        named=named,
        columns=tuple(frame.get_column(name) for name in frame.columns),
        n_rows=len(frame),
    )


def read_column(column: Any, name: str) -> Numbers | Texts:
    """What a column holds. Texts that are all dates or all truth values are read as such."""
    if isinstance(column, np.ndarray):
        return _read_array(column, name)
    return _read_series(column, name)


def read_texts(column: Any, name: str, categories: Sequence[str]) -> Texts:
    """The same column as texts, whatever its type, spelt like the known ones where it can be.

    A part of a column of texts may hold only numbers and be read as such: 1234 is then the known
    '01234', 1.0 is '1', and True is 'true'.
    """
    if isinstance(column, np.ndarray):
        return _texts_of_objects(column.tolist(), name, categories)
    if isinstance(column.dtype, importlib.import_module("narwhals").String):
        return _coded(column.to_list())
    return _texts_of_objects(column.to_list(), name, categories)


def reads_as_number(text: str) -> bool:
    """Whether a text is a finite number, with spaces around it or not."""
    try:
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


def like_input(values: NDArray[np.float64], names: Sequence[str], table: Table) -> Any:
    """A table of the kind that was given; a pandas table keeps its index."""
    if table.frame is None:
        return np.ascontiguousarray(values)
    narwhals = importlib.import_module("narwhals")
    backend = table.frame.implementation
    columns = dict(zip(names, np.ascontiguousarray(values.T), strict=True))
    native = narwhals.from_dict(columns, backend=backend).to_native()
    if backend.is_pandas_like():
        native.index = table.native.index
    return native


def refuse_sources(X: Any) -> None:
    """Refuse rows that are not in memory."""
    if X is None:
        raise ValueError("X is None: give a table, one row for each observation.")
    is_dataset = type(X).__module__.startswith("pyarrow") and "Dataset" in type(X).__name__
    is_stream = not isinstance(X, (list, tuple)) and gives_batches(X)
    if isinstance(X, (str, os.PathLike, Source)) or is_dask(X) or is_dataset or is_stream:
        raise ValueError(
            f"X is a {type(X).__name__}, but a table is prepared in memory: read it into a table, "
            "or prepare the columns in the files and fit BowTieRegressor itself to them."
        )


def _numbered(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{index}" for index in range(n_columns))


def _refuse_unreadable_frame(X: Any) -> None:
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        if importlib.util.find_spec("narwhals") is None:
            raise ImportError("tables with names need narwhals: pip install 'bowtienet[bigdata]'.")
        raise TypeError(
            f"X is a {type(X).__name__}, which is no known table: give a pandas, polars or pyarrow "
            "table, or an array."
        )


def _as_array(X: Any) -> np.ndarray:
    """Arrays and lists. Numbers in lists beside texts stay numbers."""
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError("X must not be a masked array: fill the masked values with NaN first.")
    settings: dict[str, Any] = {"ensure_all_finite": False, "ensure_2d": False, "allow_nd": True}
    settings |= {"ensure_min_samples": 0, "ensure_min_features": 0}
    array = check_array(X, dtype=None, input_name="X", estimator="TablePreparer", **settings)
    if array.dtype.kind in "SU" and not hasattr(X, "dtype"):
        return np.asarray(X, dtype=object)
    return array


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
    narwhals = importlib.import_module("narwhals")
    dtypes, dtype = narwhals.dtypes, column.dtype
    if dtype.is_numeric() or isinstance(dtype, dtypes.Boolean):
        return Numbers(kind=NUMBER, values=_floats(column))
    if isinstance(dtype, (dtypes.Date, dtypes.Datetime)):
        return Numbers(kind=DATE, values=_floats(column.dt.timestamp("us")) / DAY)
    if isinstance(dtype, dtypes.Duration):
        return Numbers(kind=DURATION, values=_floats(column.dt.total_microseconds()) / DAY)
    if isinstance(dtype, dtypes.String):
        return _understood(_coded(column.to_list()))
    if isinstance(dtype, (dtypes.Categorical, dtypes.Enum)):
        return _texts_of_objects(column.to_list(), name)
    return _read_objects(column.to_list(), name)


def _floats(column: Any) -> NDArray[np.float64]:
    float64 = importlib.import_module("narwhals").Float64
    # pyarrow refuses to round whole numbers that no float can hold, such as ids; NumPy does it.
    with suppress(ValueError):
        column = column.cast(float64)
    return np.array(column.to_numpy(), dtype=np.float64)


def _days(moments: np.ndarray) -> NDArray[np.float64]:
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / DAY)


def _coded(values: Sequence[Any]) -> Texts:
    """Texts, among which all else is missing. It runs for every row, but inside `map`."""
    found = dict.fromkeys(values)
    # Texts of NumPy are of a subclass, which cannot be saved.
    distinct = tuple(str(text) for text in found if isinstance(text, str) and text)
    places = {text: place for place, text in enumerate(distinct)}
    codes = np.fromiter(map(places.get, values, repeat(-1)), dtype=np.intp, count=len(values))
    return Texts(distinct=distinct, codes=codes)


def _texts_of_objects(values: Sequence[Any], name: str, categories: Sequence[str] = ()) -> Texts:
    spellings = {_canonical(text): text for text in reversed(categories)}
    spellings |= {text: text for text in categories}
    texts: list[str | None] = []
    for value in values:
        if isinstance(value, str) or _is_missing(value):
            texts.append(value if isinstance(value, str) else None)
        else:
            text = _text(value, name)
            texts.append(spellings.get(text, text))
    return _coded(texts)


def _text(value: Any, name: str) -> str:
    """1 and 1.0 are both '1': a missing value makes floats of a column of whole numbers."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (complex, np.complexfloating)):
        refuse_complex("X", f"complex numbers in column {name!r}")
    is_real = isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool)
    is_whole = is_real and value - value == 0 and value == int(value)
    return str(int(value)) if is_whole else str(value)


def _canonical(text: str) -> str:
    """How a text would come if its column were read as numbers or truth values."""
    if text.lower() in _TRUTH:
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
            return _at(~missing, _each(to_float, present, name), kind)
    return _understood(_texts_of_objects(values, name))


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


def _understood(texts: Texts) -> Numbers | Texts:
    """Truth values and dates that one library reads as such and another as texts."""
    if all(text.lower() in _TRUTH for text in texts.distinct):
        return _looked_up(texts, [_TRUTH[text.lower()] for text in texts.distinct], NUMBER)
    if all(_ISO_DATE.fullmatch(text) for text in texts.distinct):
        try:
            dates = map(datetime.datetime.fromisoformat, texts.distinct)
            return _looked_up(texts, [_days_of_date(date) for date in dates], DATE)
        except ValueError:  # such as the 31st of June
            return texts
    return texts


def _looked_up(texts: Texts, values: Sequence[float], kind: str) -> Numbers:
    """The number that belongs to each row's text."""
    return Numbers(kind=kind, values=np.append(values, np.nan)[texts.codes])


def _at(present: Mask, values: Any, kind: str) -> Numbers:
    found = np.full(len(present), np.nan)
    found[present] = values
    return Numbers(kind=kind, values=found)
