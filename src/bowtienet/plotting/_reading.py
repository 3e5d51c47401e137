"""How plots read tables: rows with targets, what columns hold, and tables put together anew.

What a plot asks a model about has the names and the library of the table that was given: values are
picked from its columns, and only those of the column that is varied are made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet._validation import suggestion
from bowtienet.data.door import open_features, open_source
from bowtienet.data.in_memory import InMemory
from bowtienet.data.parsing import as_frame
from bowtienet.data.source import Source
from bowtienet.data.tables import names_of
from bowtienet.plotting._checks import chosen
from bowtienet.representation.columns import Column
from bowtienet.representation.kinds import (
    CATEGORY,
    DATE,
    DAY,
    NUMBER,
    Numbers,
    Texts,
    read_column,
    read_texts,
    text_as_number,
)

MISSING = "missing"
"""Label of the category of missing values."""


@dataclass(frozen=True, kw_only=True)
class RowsWithTargets:
    """Features in the user's own form, and what was read beside them."""

    features: Any
    targets: np.ndarray
    """(n, outputs)."""
    weights: np.ndarray
    """(n,)."""
    target_names: tuple[str, ...]
    """None of them if targets have no names."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """A table in memory, column by column."""

    frame: nw.DataFrame[Any] | None
    """None for arrays."""
    names: tuple[str, ...]
    columns: tuple[Any, ...]
    """Narwhals series, or arrays (n,)."""
    contents: tuple[Numbers | Texts, ...]
    n_rows: int


def read_rows(X: Any, y: Any, sample_weight: Any = None) -> RowsWithTargets:
    """Rows in memory; targets and weights may be named columns of X."""
    source = _in_memory(open_source(X, y, sample_weight))
    named = [*names_of(y), *names_of(sample_weight)]
    frame = as_frame(X, "X") if named else None
    return RowsWithTargets(
        features=X if frame is None else frame.drop(named).to_native(),
        targets=to_numpy(source.block.targets).astype(float),
        weights=to_numpy(source.block.weights).astype(float),
        target_names=source.target_names or (),
    )


def read_columns(X: Any, learnt: Sequence[Column] = ()) -> TableColumns:
    """Columns of a table with what they hold, read as a model did that has `learnt` of them.

    Truth values are texts: there is nothing in between.
    """
    table = _in_memory(open_features(X)).block.table
    frame = as_frame(X, "X")
    if frame is not None:
        columns = tuple(frame.get_column(name) for name in frame.columns)
    else:
        # As they came: the door reads truth values as numbers.
        array = np.asarray(X, dtype=object) if table.matrix is None else to_numpy(table.matrix)
        columns = tuple(array.T)
    names = table.names or tuple(f"x{place}" for place in range(table.n_columns))
    known = {column.name: column for column in learnt}
    if len(learnt) == len(names):  # in the order of training, whatever they are called
        known = dict(zip(names, learnt, strict=True))
    return TableColumns(
        frame=frame,
        names=names,
        columns=columns,
        contents=tuple(
            _read(column, name, known.get(name))
            for name, column in zip(names, columns, strict=True)
        ),
        n_rows=table.n_rows,
    )


def take(X: Any, rows: np.ndarray, names: Sequence[str] = ()) -> Any:
    """Some rows of a table in its own library, and of its columns those with the given names."""
    frame = as_frame(X, "X")
    if frame is None:
        return np.stack(read_columns(X).columns, axis=1)[rows]
    known = [name for name in names if name in frame.columns]
    return (frame.select(known) if known else frame)[rows.tolist()].to_native()


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


def frequent_labels(content: Texts, most: int) -> list[str]:
    """At most `most` labels, the frequent ones, in their order, and missing values last."""
    kept = [label for label, _ in Counter(labels_of(content)).most_common(most)]
    return sorted(kept, key=lambda label: (label == MISSING, label))


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
    backend = table.frame.implementation
    series = {
        column.name: nw.new_series(column.name, fresh[j], backend=backend)
        if j in fresh
        else column[picks[j].tolist()]
        for j, column in enumerate(table.columns)
    }
    # Without a backend the types of the series stay, and the rows of pandas keep their places.
    return nw.maybe_reset_index(nw.from_dict(series)).to_native()


def as_moments(days: np.ndarray, kind: str) -> np.ndarray:
    """Days as datetime64 or, for durations, timedelta64, to the microsecond; numbers stay."""
    if kind == NUMBER:
        return days
    unit = "datetime64[us]" if kind == DATE else "timedelta64[us]"
    return np.round(days * DAY).astype(np.int64).astype(unit)


def _in_memory(source: Source) -> InMemory:
    if not isinstance(source, InMemory):
        raise ValueError("plots and reports need rows in memory: read X, or some of it, first.")
    return source


def _read(column: Any, name: str, learnt: Column | None) -> Numbers | Texts:
    found = read_column(column, name)
    if learnt is not None and learnt.kind == CATEGORY:
        return read_texts(column, learnt.categories)
    if learnt is not None and isinstance(found, Texts):
        read = [text_as_number(text, learnt.kind, learnt.number_format) for text in found.distinct]
        values = np.array([np.nan if value is None else value for value in [*read, None]])
        found = Numbers(kind=learnt.kind, values=values[found.codes])
    return read_texts(column, ()) if _holds_truth(column, found) else found


def _holds_truth(column: Any, content: Numbers | Texts) -> bool:
    """Whether what reads as zeros and ones is truth values, or texts that say so."""
    if not isinstance(content, Numbers) or content.kind != NUMBER:
        return False
    is_array = isinstance(column, np.ndarray)
    numeric = column.dtype.kind in "iuf" if is_array else column.dtype.is_numeric()
    present = content.values[~np.isnan(content.values)]
    return not numeric and bool(np.isin(present, (0.0, 1.0)).all())
