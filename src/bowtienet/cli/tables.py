"""From a file to the rows of a regression, and back to a file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bowtienet import persistence
from bowtienet._validation import suggestion
from bowtienet.cli.commands import stop_if_interrupted
from bowtienet.cli.console import Output
from bowtienet.data.arrow_parts import pyarrow
from bowtienet.data.files import read_file
from bowtienet.estimators.columns import reads_as_number

_SUFFIXES = (".csv", ".tsv", ".parquet", ".arrow")
_FEWEST = 2
_LARGEST = 1e150
"""Targets beyond it have no variance: their squares are infinite."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows whose targets are known."""

    table: Any
    """Inputs, targets and weights in a pyarrow table."""
    names: list[str]
    """Of the targets."""
    weight: str | None = None
    """Name of the weights."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return int(self.table.num_rows)

    @property
    def inputs(self) -> Any:
        """The table without targets and weights."""
        return self.table.drop_columns([*self.names, *([self.weight] if self.weight else [])])

    @property
    def y(self) -> str | list[str]:
        """What `fit` is told of the targets."""
        return self.names[0] if len(self.names) == 1 else self.names

    @property
    def targets(self) -> np.ndarray:
        """(n,), or (n, outputs) for several."""
        values = np.stack([self.table.column(name).to_numpy() for name in self.names], axis=1)
        return values[:, 0] if len(self.names) == 1 else values

    @property
    def weights(self) -> np.ndarray | None:
        """(n,)."""
        return None if self.weight is None else self.table.column(self.weight).to_numpy()

    def take(self, places: np.ndarray) -> Rows:
        """Some of the rows."""
        return replace(self, table=self.table.take(places))


def read(path: Path, output: Output, delimiter: str | None, decimal: str, encoding: str) -> Any:
    """The table in a file."""
    with output.stage(f"reading {path.name}"):
        return read_file(path, delimiter=delimiter, decimal=decimal, encoding=encoding)


def split_columns(
    table: Any,
    targets: Sequence[str],
    drop: Sequence[str],
    weight: str | None,
    label: str,
    output: Output,
) -> Rows:
    """Inputs, targets and weights of the rows that have targets."""
    used = [*targets, *([] if weight is None else [weight]), *drop]
    for name in used:
        if name not in table.column_names:
            near = suggestion(name, table.column_names)
            raise ValueError(f"{label} has no column {name!r}{near}")
    twice = sorted({name for name in used if used.count(name) > 1})
    if twice:
        raise ValueError(f"{twice[0]!r} is named twice, as target, weight or drop: name it once.")
    for name in used[: len(used) - len(drop)]:
        numbers = pyarrow().array(_numbers(table, name, label), from_pandas=False)
        table = table.set_column(table.column_names.index(name), name, numbers)
    if table.num_columns == len(used):
        raise ValueError(f"{label} has no columns but those named: inputs are needed too.")
    rows = Rows(table=table.drop_columns(drop), names=list(targets), weight=weight)
    rows = _with_targets(rows, label, output)
    _check_weights(rows, label)
    return rows


def check_inputs(rows: Rows, label: str) -> None:
    """Raise if an input holds what no model can be fitted to: infinite numbers, or lists."""
    compute, types = pyarrow(".compute"), pyarrow().types
    for name in rows.table.column_names:
        if name in (*rows.names, rows.weight):
            continue
        column = rows.table.column(name)
        if types.is_nested(column.type):
            raise ValueError(
                f"the column {name!r} of {label} holds {_words(column.type)}: leave it out, or "
                "spread its parts over columns."
            )
        if types.is_floating(column.type):
            infinite = compute.sum(compute.is_inf(column)).as_py() or 0
            if infinite:
                raise ValueError(
                    f"the column {name!r} of {label} holds infinite numbers, {infinite:,} of them: "
                    "mend them, leave them empty, or leave the column out."
                )


def _with_targets(rows: Rows, label: str, output: Output) -> Rows:
    """The rows that have targets; how many have not is told."""
    known = ~np.isnan(rows.targets.reshape(rows.n_rows, -1)).any(axis=1)
    missing = int(np.sum(~known))
    if missing == known.size:
        raise ValueError(f"the target {rows.names[0]!r} of {label} has no values: name another.")
    for name in rows.names:
        values = rows.table.column(name).to_numpy()
        large = values[np.abs(values) > _LARGEST]
        if len(large):
            raise ValueError(
                f"the target {name!r} of {label} holds {large[0]:g}, too large for a model: mend "
                "such values, leave them empty, or use a larger unit."
            )
    if known.sum() < _FEWEST:
        raise ValueError(
            f"{label} has {known.sum()} row with a target, but at least {_FEWEST} are needed: give "
            "more rows."
        )
    _note_constant(rows.take(np.flatnonzero(known)), output)
    if missing:
        output.note(f"{missing} row{'s' if missing > 1 else ''} without a target left out.")
    return rows.take(np.flatnonzero(known)) if missing else rows


def _note_constant(rows: Rows, output: Output) -> None:
    for name in rows.names:
        values = rows.table.column(name).to_numpy()
        if values.min() == values.max():
            output.note(f"the target {name!r} has only one value: there is nothing to learn.")


def _check_weights(rows: Rows, label: str) -> None:
    weights = rows.weights
    if weights is None:
        return
    bad = int(np.sum(~(np.isfinite(weights) & (weights >= 0.0))))
    if bad:
        raise ValueError(
            f"the weights {rows.weight!r} of {label} must be numbers of at least 0, but {bad:,} "
            f"{'are' if bad > 1 else 'is'} negative, infinite or missing: use 0 to leave a row out."
        )
    if not weights.any():
        raise ValueError(f"the weights {rows.weight!r} of {label} are all 0: no row would count.")


def check_place(path: Path, *sources: Path) -> Path:
    """A file that can be written and is none of those that are read."""
    persistence.check_writable(path)
    for source in sources:
        if os.path.realpath(source) == os.path.realpath(path):
            raise ValueError(f"{path} is the file that is read: choose another name to write to.")
    return path


def check_table_place(path: Path, *sources: Path) -> Path:
    """The same for a table, whose name says how it is written."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(
            f"{path} is no name for a table: let it end in one of {', '.join(_SUFFIXES)}."
        )
    return check_place(path, *sources)


def write(table: Any, path: Path) -> None:
    """Write a table to a file, completely or not at all."""
    stop_if_interrupted()
    with persistence.replacing(persistence.check_writable(path)) as temporary:
        suffix = path.suffix.lower()
        if suffix == ".parquet":
            pyarrow(".parquet").write_table(table, temporary)
        elif suffix == ".arrow":
            pyarrow(".feather").write_feather(table, temporary, compression="uncompressed")
        else:
            with open(temporary, "xb") as file:
                write_text(table, file, "\t" if suffix == ".tsv" else ",")


def write_text(table: Any, file: BinaryIO, delimiter: str = ",") -> None:
    """A table as text, with quotes only where they are needed."""
    for field in table.schema:
        if pyarrow().types.is_nested(field.type):
            raise ValueError(
                f"the column {field.name!r} holds {_words(field.type)}, which text cannot: write "
                "to .parquet or .arrow, or leave the column out."
            )
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(header.getvalue().encode())
    writer = pyarrow(".csv")
    settings = writer.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style="needed"
    )
    writer.write_csv(table, file, settings)


def _numbers(table: Any, name: str, label: str) -> np.ndarray:
    """A column of numbers as floats, missing ones as NaN."""
    arrow = pyarrow()
    column = table.column(name)
    types = arrow.types
    kind = column.type
    if types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind):
        column = column.cast(arrow.float64())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        example = _example(column)
        comma = reads_as_number(example.replace(",", ".", 1))
        remedy = "give the decimal ','" if comma else "name another column, or mend its entries"
        raise ValueError(
            f"the column {name!r} of {label} holds {_words(kind)}, such as {example!r}, where "
            f"numbers are needed: {remedy}."
        )
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _example(column: Any) -> str:
    """The first entry that is no number; the first of all if they are only written as text."""
    entries = [str(value) for value in column.drop_null().to_pylist()]
    return next((entry for entry in entries if not reads_as_number(entry)), entries[0])


def _words(kind: Any) -> str:
    types = pyarrow().types
    if types.is_nested(kind):
        return "lists or groups of values"
    if types.is_temporal(kind):
        return "dates or times"
    return "bytes" if types.is_binary(kind) or types.is_large_binary(kind) else "text"
