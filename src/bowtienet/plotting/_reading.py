"""How plots read tables: targets, what columns hold, and tables put together from other rows.

This is the only module of the plots that knows where tables are read. What a plot asks a model
about has the names and the library of the table that was given: values are picked from its columns,
and only those of the column that is varied are made anew.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet._validation import suggestion
from bowtienet.data.rows import build_weights
from bowtienet.estimators.columns import (
    CATEGORY,
    DATE,
    DAY,
    NUMBER,
    Numbers,
    Texts,
    open_table,
    read_column,
    read_texts,
)
from bowtienet.estimators.preparing import Column
from bowtienet.estimators.tables import named_columns, read_targets
from bowtienet.plotting._checks import chosen

MISSING = "missing"
"""Label of the category of missing values."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """A table in memory, column by column."""

    frame: Any
    """A narwhals frame; None for arrays."""
    names: tuple[str, ...]
    columns: tuple[Any, ...]
    """Narwhals series, or arrays (n,)."""
    contents: tuple[Numbers | Texts, ...]
    n_rows: int


def read_columns(X: Any, learnt: Sequence[Column] = ()) -> TableColumns:
    """Columns of a table with what they hold, read as a model did that has `learnt` of them.

    Truth values are texts: there is nothing in between.
    """
    table = open_table(X)
    categories = {column.name: column.categories for column in learnt if column.kind == CATEGORY}
    contents = []
    for name, column in zip(table.names, table.columns, strict=True):
        found = read_column(column, name)
        if name in categories or _holds_truth(column, found):
            found = read_texts(column, name, categories.get(name, ()))
        contents.append(found)
    return TableColumns(
        frame=table.frame,
        names=table.names,
        columns=table.columns,
        contents=tuple(contents),
        n_rows=table.n_rows,
    )


def split_rows(
    X: Any, y: Any, sample_weight: Any = None
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Features, targets (n, outputs) and weights (n,), which may be named columns of X."""
    X, y, sample_weight = named_columns(X, y, sample_weight)
    n_rows = open_table(X).n_rows
    targets = to_numpy(read_targets(y, n_rows)).astype(float).reshape(n_rows, -1)
    if sample_weight is not None:
        sample_weight = to_numpy(build_weights(to_numpy(sample_weight), targets, "sample_weight"))
    return X, targets, sample_weight


def take(X: Any, rows: np.ndarray, names: Sequence[str] = ()) -> Any:
    """Some rows of a table in its own library, and of its columns those with the given names."""
    table = open_table(X)
    if table.frame is None:
        return np.stack(table.columns, axis=1)[rows]
    known = [name for name in names if name in table.frame.columns]
    frame = table.frame.select(known) if known else table.frame
    return frame[rows.tolist()].to_native()


def names_of_targets(y: Any) -> list[str]:
    """Names that targets bring with them; none if they have none."""
    if isinstance(y, str):
        return [y]
    several = list(getattr(y, "column_names", getattr(y, "columns", [])))
    several = list(y) if isinstance(y, list | tuple) else several
    if several and all(isinstance(name, str) for name in several):
        return several
    own = getattr(y, "name", None)
    return [str(own)] if own else []


def find_column(table: TableColumns, feature: Any) -> int:
    """Place of a column by its name or number."""
    if not isinstance(feature, str):
        return chosen(feature, len(table.names), "feature, where it is no name,")
    if feature in table.names:
        return table.names.index(feature)
    raise ValueError(f"feature {feature!r} is no column of X{suggestion(feature, table.names)}")


def labels_of(content: Texts) -> np.ndarray:
    """The text of every row."""
    return np.array([*content.distinct, MISSING], dtype=object)[content.codes]


def frequent_labels(column: Any, content: Texts, most: int) -> list[str]:
    """At most `most` labels, the frequent ones, in the order of their categories or texts."""
    kept = {label for label, _ in Counter(labels_of(content)).most_common(most)}
    order = {str(label): place for place, label in enumerate(_known_categories(column))}
    return sorted(kept, key=lambda label: (label == MISSING, order.get(label, 0), label))


def typical_row(content: Numbers | Texts) -> int:
    """A row with the lower median of a column, or with its most frequent value."""
    if isinstance(content, Texts):
        values, counts = np.unique(content.codes, return_counts=True)
        most = values[counts == np.max(counts)]
        return int(np.flatnonzero(np.isin(content.codes, most))[0])
    present = np.flatnonzero(~np.isnan(content.values))
    if present.size == 0:
        return 0
    order = present[np.argsort(content.values[present], kind="stable")]
    return int(order[(order.size - 1) // 2])


def assemble(
    table: TableColumns, picks: Sequence[np.ndarray], fresh: Mapping[int, np.ndarray]
) -> Any:
    """A table of the same library: rows `picks[j]` of column j, or the values `fresh[j]`."""
    if table.frame is None:
        columns = [fresh.get(j, column[picks[j]]) for j, column in enumerate(table.columns)]
        return np.stack(columns, axis=1)
    narwhals = importlib.import_module("narwhals")
    backend = table.frame.implementation
    series = {
        column.name: narwhals.new_series(column.name, fresh[j], backend=backend)
        if j in fresh
        else column[picks[j].tolist()]
        for j, column in enumerate(table.columns)
    }
    # Without a backend the types of the series stay, and the rows of pandas keep their places.
    return narwhals.maybe_reset_index(narwhals.from_dict(series)).to_native()


def as_moments(days: np.ndarray, kind: str) -> np.ndarray:
    """Days as datetime64 or, for durations, timedelta64, to the microsecond; numbers stay."""
    if kind == NUMBER:
        return days
    unit = "datetime64[us]" if kind == DATE else "timedelta64[us]"
    return np.round(days * DAY).astype(np.int64).astype(unit)


def _known_categories(column: Any) -> Sequence[Any]:
    if isinstance(column, np.ndarray):
        return ()
    # pandas knows an order also of those that narwhals does not call ordered.
    pandas = getattr(getattr(column.to_native(), "cat", None), "categories", ())
    return list(getattr(column.dtype, "categories", pandas))


def _holds_truth(column: Any, content: Numbers | Texts) -> bool:
    """Whether what reads as zeros and ones is truth values, or texts that say so."""
    if not isinstance(content, Numbers) or content.kind != NUMBER:
        return False
    if isinstance(column, np.ndarray):
        is_numeric = column.dtype.kind in "iuf"
    else:
        is_numeric = column.dtype.is_numeric()
    present = content.values[~np.isnan(content.values)]
    return not is_numeric and bool(np.isin(present, (0.0, 1.0)).all())
