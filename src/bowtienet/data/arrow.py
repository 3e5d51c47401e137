"""Parquet and Arrow as a source of rows: files, folders, datasets and tables with named columns."""

from __future__ import annotations

import decimal
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._validation import suggestion
from bowtienet.data.arrow_parts import (
    FilePart,
    Part,
    check_part,
    dataset_parts,
    open_fragment,
    open_path,
    pyarrow,
    read_group,
    table_part,
)
from bowtienet.data.blocks import Source, check_block, check_unique
from bowtienet.data.rows import Rows

_FOOTERS = 8
"""Files whose footers are kept while row groups are read in random order."""
_INDEX = re.compile(r"__index_level_\d+__")
_ONCE = ("Scanner", "ParquetFile", "ParquetDataset")
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns that are read."""

    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    weights: str | None
    single_target: bool

    @property
    def all(self) -> tuple[str, ...]:
        """Inputs, targets and the weight."""
        return (*self.inputs, *self.targets, *([] if self.weights is None else [self.weights]))


class ArrowSource(Source):
    """Rows of files or tables with named columns; its pieces are their groups of rows.

    Made by `open_arrow`, which checks names and types before anything is read.
    """

    def __init__(self, parts: Sequence[Part], columns: Columns) -> None:
        self.input_names, self.target_names = columns.inputs, columns.targets or None
        self.n_inputs, self.n_targets = len(columns.inputs), len(columns.targets)
        self.single_target = columns.single_target
        self._columns = columns
        self._parts = tuple(parts)
        self._pieces = [(i, group) for i, part in enumerate(parts) for group in part.groups]
        self.n_pieces = len(self._pieces)
        self._fragments: dict[int, Any] = {}

    def read(self, piece: int) -> Iterator[Rows]:
        """Blocks of a group of rows."""
        index, group = self._pieces[piece]
        part, start = self._parts[index], 0
        names = [name for name in self._columns.all if name not in part.folders]
        for batch in read_group(part, group, names, self._fragment(index)):
            stop = start + batch.num_rows
            where = part.where(group)
            if isinstance(part, FilePart):
                where = f"{where} (rows {start} to {stop - 1})"
            yield check_block(
                self._rows(batch, part.folders), where, self.input_names, self.target_names
            )
            start = stop

    def check_unchanged(self) -> None:
        """Raise if a file changed since it was opened."""
        for part in self._parts:
            check_part(part)

    def _rows(self, batch: Any, folders: dict[str, Any]) -> Rows:
        weights = self._columns.weights
        return Rows(
            inputs=_floats(batch, self._columns.inputs, folders),
            targets=_floats(batch, self._columns.targets, folders),
            weights=(
                np.ones(batch.num_rows)
                if weights is None
                else _floats(batch, [weights], folders)[:, 0]
            ),
        )

    def _fragment(self, index: int) -> Any:
        """The opened file, which knows its footer after the first use; only a few are kept."""
        part = self._parts[index]
        if not isinstance(part, FilePart):
            return None
        fragment = self._fragments.get(index) or open_fragment(part)
        others = [item for item in self._fragments.items() if item[0] != index]
        # A new dictionary each time, so that threads may read pieces side by side.
        self._fragments = dict([*others[1 - _FOOTERS :], (index, fragment)])
        return fragment

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fragments": {}}


def is_arrow(X: Any, y: Any, inputs: Sequence[str] | None) -> bool:
    """Whether `X` has named columns that are read from files or picked from a pyarrow table."""
    if isinstance(X, (str, os.PathLike)):
        return True
    if isinstance(X, (list, tuple)) and X:
        if all(isinstance(item, (str, os.PathLike)) for item in X):
            return y is None or _is_names(y)
        return (_is_names(y) or inputs is not None) and all(_is_table(item) for item in X)
    if not _is_pyarrow(X):
        return False
    if type(X).__name__ in _ONCE or type(X).__name__.endswith("Reader"):
        raise ValueError(
            f"X is a {type(X).__name__} of pyarrow, which cannot be read several times: give the "
            "path of the files, a pyarrow.dataset.Dataset or a pyarrow.Table."
        )
    if _is_table(X):
        return _is_names(y) or (y is None and inputs is not None)
    return type(X).__name__.endswith("Dataset")


def open_arrow(X: Any, y: Any, weights: Any, inputs: Sequence[str] | None) -> ArrowSource:
    """The source of `X`, for which `is_arrow` holds; see `open_source`."""
    if y is not None and not _is_names(y):
        raise ValueError(
            f"y must be the name of the target column of X, or a list of names, when X is a "
            f"{_what(X)}; got {type(y).__name__}."
        )
    if weights is not None and not isinstance(weights, str):
        raise ValueError(
            f"weights must be the name of a column of X when X is a {_what(X)}; got "
            f"{type(weights).__name__}."
        )
    if inputs is not None and not isinstance(inputs, str):
        inputs = [str(name) for name in inputs]
    parts, names = _open(X)
    if not parts:
        raise ValueError(f"{_label(X)} has no rows: at least one is needed.")
    columns = _choose(parts, names, y, weights, inputs)
    _check_types(parts, columns, extra=inputs is None)
    return ArrowSource([part for part, _ in parts], columns)


def _open(X: Any) -> tuple[list[tuple[Part, Any]], list[str]]:
    """The parts of `X` with their schemas, and the names of all columns there are."""
    if not _is_pyarrow(X) and not (isinstance(X, (list, tuple)) and _is_table(X[0])):
        parts = dataset_parts(open_path(X), whole=True)
        names = [*parts[0][1].names, *parts[0][0].folders] if parts else []
        return parts, list(dict.fromkeys(names))
    if type(X).__name__.endswith("Dataset"):
        return dataset_parts(X), list(X.schema.names)
    tables = [_as_table(item) for item in (X if isinstance(X, (list, tuple)) else [X])]
    check_unique(tables[0].column_names, "X")
    labels = ["X"] if len(tables) == 1 else [f"table {number}" for number in range(len(tables))]
    found = [(table_part(t, label), t.schema) for t, label in zip(tables, labels, strict=True)]
    return [(part, schema) for part, schema in found if part.groups], tables[0].column_names


def _choose(
    parts: Sequence[tuple[Part, Any]],
    names: Sequence[str],
    y: Any,
    weights: str | None,
    inputs: Sequence[str] | None,
) -> Columns:
    """The columns to read, all of which exist and have one purpose each."""
    targets = (y,) if isinstance(y, str) else tuple(y or ())
    used = [*targets, *([] if weights is None else [weights])]
    if inputs is None:
        text = {
            name for part, _ in parts for name, value in part.folders.items() if not _is_real(value)
        }
        inputs = [n for n in names if n not in used and n not in text and not _INDEX.fullmatch(n)]
        if not inputs:
            raise ValueError("X has no columns left for inputs: give more columns.")
    elif isinstance(inputs, str) or not inputs:
        raise ValueError(f"inputs must be a list of names of columns, got {inputs!r}.")
    for wanted, purpose in ((targets, "y"), (used[len(targets) :], "weights"), (inputs, "inputs")):
        for name in wanted:
            _check_known(name, names, purpose)
    columns = Columns(
        inputs=tuple(inputs),
        targets=targets,
        weights=weights,
        single_target=isinstance(y, str),
    )
    repeated = sorted({name for name in columns.all if columns.all.count(name) > 1})
    if repeated:
        raise ValueError(
            f"{repeated[0]!r} is named several times in inputs, y and weights: name each column "
            "once."
        )
    return columns


def _check_known(name: str, names: Sequence[str], purpose: str) -> None:
    if name in names:
        return
    hint = suggestion(str(name), names)
    raise ValueError(f"X has no column {name!r}, which {purpose} names{hint}")


def _check_types(parts: Sequence[tuple[Part, Any]], columns: Columns, *, extra: bool) -> None:
    """Raise if a file lacks a column or has no numbers in it.

    pyarrow itself would fill the one with nulls and try to convert the other.
    """
    first = {*parts[0][1].names, *parts[0][0].folders}
    for part, schema in parts:
        check_unique(schema.names, part.label)
        for name in columns.all:
            if name not in schema.names and name not in part.folders:
                owner = "the first file" if name in first else "the dataset"
                raise ValueError(
                    f"{part.label} has no column {name!r}, which {owner} has: let all files have "
                    "the same columns, or name those to use with inputs."
                )
        unknown = [n for n in schema.names if n not in first and not _INDEX.fullmatch(n)]
        if extra and unknown:
            raise ValueError(
                f"{part.label} has the column {unknown[0]!r}, which the first file has not: let "
                "all files have the same columns, or name those to use with inputs."
            )
        bad = [
            f"{name!r} ({kind})" for name in columns.all if (kind := _not_real(name, part, schema))
        ]
        if bad:
            raise ValueError(
                f"{part.label} has no numbers in {_more(bad)}: encode them as numbers first, or "
                "name the columns to use with inputs."
            )


def _not_real(name: str, part: Part, schema: Any) -> str | None:
    """The type of a column that does not hold numbers."""
    if name in part.folders:
        value = part.folders[name]
        return None if _is_real(value) else f"the folder {name}={value}"
    kind, types = schema.field(name).type, pyarrow().types
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return None if any(check(kind) for check in checks) else str(kind)


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float, decimal.Decimal))


def _floats(batch: Any, names: Sequence[str], folders: dict[str, Any]) -> np.ndarray:
    """Columns (rows, names) as floats; nulls become NaN, large integers are rounded."""
    values = np.empty((batch.num_rows, len(names)))
    for index, name in enumerate(names):
        if name in folders:
            values[:, index] = float(folders[name])
        else:
            column = batch.column(name).cast(pyarrow().float64(), safe=False)
            values[:, index] = column.to_numpy(zero_copy_only=False)
    return values


def _is_pyarrow(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "pyarrow"


def _is_table(X: Any) -> bool:
    return _is_pyarrow(X) and type(X).__name__ in ("Table", "RecordBatch")


def _as_table(X: Any) -> Any:
    return X if type(X).__name__ == "Table" else pyarrow().Table.from_batches([X])


def _is_names(y: Any) -> bool:
    if isinstance(y, (list, tuple)):
        return len(y) > 0 and all(isinstance(name, str) for name in y)
    return isinstance(y, str)


def _what(X: Any) -> str:
    kind = type(X[0] if isinstance(X, (list, tuple)) else X)
    return "path" if not kind.__module__.startswith("pyarrow") else f"pyarrow {kind.__name__}"


def _label(X: Any) -> str:
    return os.path.basename(os.path.abspath(X)) if isinstance(X, (str, os.PathLike)) else "X"


def _more(words: Sequence[str]) -> str:
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
