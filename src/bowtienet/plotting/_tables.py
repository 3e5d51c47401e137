"""Tables of any library, taken apart by columns and put together again with other rows.

What a picture asks a model about must look like what the model was fitted to, with the same names
and types. Values are therefore picked from the columns themselves; only numbers are made anew.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet._validation import suggestion
from bowtienet.estimators.tables import as_frame, is_foreign_array, with_names

MISSING = "missing"
"""Name of the category of values that are not there."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns in the form of their library, with their names."""

    library: str
    """"numpy", "pandas", or "narwhals" for all others."""
    native: Any
    names: list[str]
    columns: list[Any]
    n_rows: int


def open_table(X: Any) -> Table:
    """Take a NumPy array or a pandas, polars or pyarrow table apart."""
    if type(X).__module__.split(".")[0] == "pandas" and hasattr(X, "iloc") and X.ndim == 2:
        columns = [X.iloc[:, index] for index in range(X.shape[1])]
        return _table("pandas", X, [str(name) for name in X.columns], columns, len(X))
    frame = None if is_foreign_array(X) else as_frame(with_names(X), "X")
    if frame is not None and hasattr(frame, "columns"):
        names = list(frame.columns)
        return _table(
            "narwhals", frame, names, [frame.get_column(name) for name in names], len(frame)
        )
    array = np.asarray(to_numpy(X) if is_foreign_array(X) else X)
    if array.ndim != 2:
        raise ValueError(f"X must be a table of shape (rows, columns), got {array.shape}.")
    names = [f"x{index}" for index in range(array.shape[1])]
    return _table("numpy", array, names, list(array.T), len(array))


def find_column(table: Table, feature: Any) -> int:
    """Place of a column by its name or number."""
    count = len(table.names)
    if isinstance(feature, str):
        if feature in table.names:
            return table.names.index(feature)
        hint = suggestion(feature, table.names)
        raise ValueError(f"feature {feature!r} is no column of X{hint}")
    if (
        isinstance(feature, bool)
        or not isinstance(feature, Integral)
        or feature not in range(count)
    ):
        raise ValueError(
            f"feature must be a column's name or a whole number from 0 to {count - 1}, got "
            f"{feature!r}."
        )
    return int(feature)


def numbers_of(table: Table, index: int) -> np.ndarray | None:
    """A column as floats, with NaN where values are missing; None if it holds no numbers."""
    column = table.columns[index]
    if table.library == "narwhals":
        if not column.dtype.is_numeric():
            return None
        float64 = importlib.import_module("narwhals").Float64
        return np.asarray(column.cast(float64).to_numpy(), dtype=float)
    if hasattr(column.dtype, "categories") or column.dtype.kind not in "iufO":
        return None
    if column.dtype.kind == "O" and not all(map(_is_number_or_missing, column)):
        return None
    if table.library == "pandas":
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
    return np.asarray(column, dtype=float)


def labels_of(table: Table, index: int) -> list[str]:
    """A column's values as texts."""
    column = table.columns[index]
    values = column.to_list() if table.library == "narwhals" else column
    return [MISSING if _is_missing(value) else str(value) for value in values]


def categories_of(table: Table, index: int, most: int) -> list[str]:
    """At most `most` labels of a column, the frequent ones, in their own order if they have one."""
    counts = Counter(labels_of(table, index))
    kept = {label for label, _ in counts.most_common(most)}
    known = getattr(table.columns[index].dtype, "categories", None)
    order = {str(label): place for place, label in enumerate([] if known is None else known)}
    return sorted(kept, key=lambda label: (label == MISSING, order.get(label, 0), label))


def typical_rows(table: Table) -> np.ndarray:
    """For each column a row with its lower median, or with its most frequent value."""
    return np.array([_typical_row(table, index) for index in range(len(table.names))])


def assemble(table: Table, picks: Sequence[np.ndarray], numbers: dict[int, np.ndarray]) -> Any:
    """A table of the same library: rows `picks[j]` of column j, or `numbers[j]` instead."""
    if table.library == "numpy":
        kind = table.native.dtype.kind
        dtype = table.native.dtype if kind in "fO" or not numbers else np.float64
        columns = [
            numbers.get(index, column[picks[index]]) for index, column in enumerate(table.columns)
        ]
        return np.stack([np.asarray(column, dtype=dtype) for column in columns], axis=1)
    if table.library == "pandas":
        parts = {
            index: numbers.get(index, column.iloc[picks[index]].array)
            for index, column in enumerate(table.columns)
        }
        frame = type(table.native)(parts)
        frame.columns = table.native.columns
        return frame
    narwhals = importlib.import_module("narwhals")
    backend = table.native.implementation
    series = {}
    for index, (name, column) in enumerate(zip(table.names, table.columns, strict=True)):
        if index in numbers:
            series[name] = narwhals.new_series(
                name, numbers[index], narwhals.Float64, backend=backend
            )
        else:
            series[name] = column[picks[index].tolist()]
    return narwhals.from_dict(series, backend=backend).to_native()


def _table(library: str, native: Any, names: list[str], columns: list[Any], n_rows: int) -> Table:
    if n_rows == 0 or not columns:
        raise ValueError(
            f"X has {n_rows} rows and {len(columns)} columns: give at least one of each."
        )
    return Table(library=library, native=native, names=names, columns=columns, n_rows=n_rows)


def _typical_row(table: Table, index: int) -> int:
    values = numbers_of(table, index)
    if values is not None:
        present = np.flatnonzero(~np.isnan(values))
        if present.size == 0:
            return 0
        order = present[np.argsort(values[present], kind="stable")]
        return int(order[(order.size - 1) // 2])
    labels = labels_of(table, index)
    return labels.index(Counter(labels).most_common(1)[0][0])


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and bool(value != value)


def _is_number_or_missing(value: Any) -> bool:
    return _is_missing(value) or (
        isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    )
