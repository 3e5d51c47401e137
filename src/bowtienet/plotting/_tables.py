"""Tables taken apart by columns and put together again with other rows.

What a picture asks a model about must look like what the model was fitted to, with the same names
and types. Values are therefore picked from the columns themselves; only numbers, dates and
durations are made anew, in the type of their column.
"""

from __future__ import annotations

import datetime
import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bowtienet._validation import suggestion
from bowtienet.estimators.columns import (
    DATE,
    DAY,
    DURATION,
    NUMBER,
    Numbers,
    Table,
    Texts,
    read_column,
    read_texts,
)
from bowtienet.plotting._checks import chosen

MISSING = "missing"
"""Name of the category of values that are not there."""


def find_column(table: Table, feature: Any) -> int:
    """Place of a column by its name or number."""
    if not isinstance(feature, str):
        return chosen(feature, len(table.names), "feature, where it is no name,")
    if feature in table.names:
        return table.names.index(feature)
    raise ValueError(f"feature {feature!r} is no column of X{suggestion(feature, table.names)}")


def read_contents(table: Table) -> list[Numbers | Texts]:
    """What every column holds: numbers, dates or durations in days, or texts.

    Truth values are texts here: a picture shows the two of them, and nothing in between.
    """
    found = []
    for column, name in zip(table.columns, table.names, strict=True):
        content = read_column(column, name)
        truth = isinstance(content, Numbers) and content.kind == NUMBER and _holds_truth(column)
        found.append(read_texts(column, name, ()) if truth else content)
    return found


def labels_of(content: Texts) -> np.ndarray:
    """The text of every row."""
    return np.array([*content.distinct, MISSING], dtype=object)[content.codes]


def categories_of(column: Any, content: Texts, most: int) -> list[str]:
    """At most `most` labels of a column, the frequent ones, in their own order if they have one."""
    kept = {label for label, _ in Counter(labels_of(content)).most_common(most)}
    order = {str(label): place for place, label in enumerate(_known_categories(column))}
    return sorted(kept, key=lambda label: (label == MISSING, order.get(label, 0), label))


def typical_rows(contents: Sequence[Numbers | Texts]) -> np.ndarray:
    """For each column a row with its lower median, or with its most frequent value."""
    return np.array([_typical_row(content) for content in contents])


def assemble(table: Table, picks: Sequence[np.ndarray], fresh: Mapping[int, Any]) -> Any:
    """A table of the same library: rows `picks[j]` of column j, or `fresh[j]` instead.

    What is fresh is in the type of its column, as `like_column` makes it.
    """
    if table.frame is None:
        columns = [
            fresh.get(index, column[picks[index]]) for index, column in enumerate(table.columns)
        ]
        return np.stack(columns, axis=1)
    series = {
        column.name: fresh[index] if index in fresh else column[picks[index].tolist()]
        for index, column in enumerate(table.columns)
    }
    narwhals = importlib.import_module("narwhals")
    # Without a backend the types of the series stay, and the rows of pandas keep their places.
    return narwhals.maybe_reset_index(narwhals.from_dict(series)).to_native()


def like_column(column: Any, content: Numbers, values: np.ndarray) -> Any:
    """Finite `values` in the type of a column: floats, or days as its dates or durations."""
    if isinstance(column, np.ndarray):
        return _like_array(column, content, values)
    return _like_series(column, content, values)


def as_moments(days: np.ndarray, kind: str) -> np.ndarray:
    """Days as datetime64 or, for durations, timedelta64, to the microsecond."""
    unit = "datetime64[us]" if kind == DATE else "timedelta64[us]"
    return np.round(days * DAY).astype(np.int64).astype(unit)


def _like_array(column: np.ndarray, content: Numbers, values: np.ndarray) -> np.ndarray:
    dtype = column.dtype
    if content.kind == NUMBER:
        return values.astype(dtype if dtype.kind in "fO" else np.float64)
    if dtype.kind in "Mm":
        return as_moments(values, content.kind).astype(dtype)
    # Texts may be longer than those that are there.
    return np.array(_objects(column.tolist(), content, values), dtype=dtype.kind)


def _like_series(column: Any, content: Numbers, values: np.ndarray) -> Any:
    narwhals = importlib.import_module("narwhals")
    dtypes, dtype, backend = narwhals.dtypes, column.dtype, column.implementation
    if content.kind == NUMBER:
        return narwhals.new_series(column.name, values, narwhals.Float64, backend=backend)
    if not isinstance(dtype, (dtypes.Date, dtypes.Datetime, dtypes.Duration)):
        made = _objects(column.to_list(), content, values)
        known = isinstance(dtype, (dtypes.String, dtypes.Object))
        return narwhals.new_series(column.name, made, dtype if known else None, backend=backend)
    unit = narwhals.Duration("us") if content.kind == DURATION else narwhals.Datetime("us")
    moments = narwhals.new_series(
        column.name, as_moments(values, content.kind), unit, backend=backend
    )
    if getattr(dtype, "time_zone", None) is not None:
        moments = moments.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
    return moments.cast(dtype)


def _objects(given: Sequence[Any], content: Numbers, values: np.ndarray) -> list[Any]:
    """Python objects of the kind of those that are given: texts, dates with or without time."""
    example = given[int(np.flatnonzero(~np.isnan(content.values))[0])]
    found: list[Any] = as_moments(values, content.kind).tolist()
    if isinstance(example, (str, bytes)):
        whole = not np.any(content.values % 1.0 > 0.0)
        return [(moment.date() if whole else moment).isoformat() for moment in found]
    if content.kind == DURATION:
        return found
    zone = getattr(example, "tzinfo", None)
    if zone is not None:
        return [moment.replace(tzinfo=datetime.UTC).astimezone(zone) for moment in found]
    has_time = isinstance(example, (datetime.datetime, np.datetime64))
    return found if has_time else [moment.date() for moment in found]


def _known_categories(column: Any) -> Sequence[Any]:
    if isinstance(column, np.ndarray):
        return ()
    # pandas knows an order also of those that narwhals does not call ordered.
    pandas = getattr(getattr(column.to_native(), "cat", None), "categories", ())
    return list(getattr(column.dtype, "categories", pandas))


def _holds_truth(column: Any) -> bool:
    """Whether what reads as numbers is truth values, or texts that say so."""
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return column.dtype.kind in "bUS"
    if not isinstance(column, np.ndarray) and column.dtype.is_numeric():
        return False
    values = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
    return any(issubclass(kind, (bool, np.bool_, str, bytes)) for kind in set(map(type, values)))


def _typical_row(content: Numbers | Texts) -> int:
    if isinstance(content, Texts):
        values, counts = np.unique(content.codes, return_counts=True)
        most = values[counts == np.max(counts)]
        return int(np.flatnonzero(np.isin(content.codes, most))[0])
    present = np.flatnonzero(~np.isnan(content.values))
    if present.size == 0:
        return 0
    order = present[np.argsort(content.values[present], kind="stable")]
    return int(order[(order.size - 1) // 2])
