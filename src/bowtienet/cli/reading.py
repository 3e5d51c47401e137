"""From a file to the rows of a regression, or to the columns that a model needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bowtienet._validation import listed_with_hints, suggestion
from bowtienet.cli.console import Output
from bowtienet.data.arrow_files import pyarrow
from bowtienet.data.door import open_source
from bowtienet.data.files import read_table
from bowtienet.data.in_memory import InMemory
from bowtienet.data.parsing import parse
from bowtienet.representation.columns import names_of
from bowtienet.representation.written import reads_as_number

_FEWEST = 2
_LARGEST = 1e150
"""Targets beyond it have no variance: their squares are infinite."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows whose targets are known, checked."""

    table: Any
    """Features, targets and weights in a pyarrow table."""
    source: InMemory
    """The same for the estimator."""
    names: list[str]
    """Of the targets."""
    weight: str | None
    """Name of the weights."""
    numbers: np.ndarray
    """Numbers (n,) of the rows in their file, from 1."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.numbers)

    @property
    def features(self) -> Any:
        """The features alone, in a pyarrow table."""
        return self.table.select(list(self.source.feature_names or ()))

    @property
    def named_targets(self) -> Any:
        """The targets alone, in a pyarrow table."""
        return self.table.select(self.names)

    @property
    def targets(self) -> np.ndarray:
        """(n, outputs)."""
        return np.asarray(self.source.block.targets)

    @property
    def weights(self) -> np.ndarray | None:
        """(n,)."""
        return None if self.weight is None else np.asarray(self.source.block.weights)

    def take(self, places: np.ndarray) -> Rows:
        """Some of the rows."""
        return Rows(
            table=self.table.take(places),
            source=self.source.take(places),
            names=self.names,
            weight=self.weight,
            numbers=self.numbers[places],
        )


def read(path: Path, output: Output, delimiter: str | None, decimal: str, encoding: str) -> Any:
    """The table in a file."""
    with output.stage(f"reading {path.name}"):
        return read_table(path, delimiter=delimiter, decimal=decimal, encoding=encoding)


def open_rows(
    table: Any,
    label: str,
    output: Output,
    *,
    targets: Sequence[str],
    drop: Sequence[str] = (),
    weight: str | None = None,
    features: Sequence[str] | None = None,
) -> Rows:
    """The rows of a table that have targets; how many have not is told.

    `features` are those that a model needs, in its order; by default all other columns are.
    """
    _check_names(table, label, [*targets, *([weight] if weight else []), *drop])
    kept = _known_targets(table, label, targets, output)
    table = table.drop_columns(list(drop)).take(kept)
    if table.num_columns == len(targets) + (weight is not None):
        raise ValueError(f"{label} has no columns but those named: features are needed too.")
    source = open_source(
        table, targets[0] if len(targets) == 1 else list(targets), weight, features=features
    )
    assert isinstance(source, InMemory)
    return Rows(table=table, source=source, names=list(targets), weight=weight, numbers=1 + kept)


def open_known_rows(
    model: Any,
    table: Any,
    label: str,
    output: Output,
    *,
    targets: Sequence[str],
    weight: str | None = None,
) -> Rows:
    """The rows of a table that have targets, with the features that a model was fitted to."""
    names = getattr(model, "feature_names_in_", None)
    return open_rows(
        needed_columns(model, table, label),
        label,
        output,
        targets=targets,
        weight=weight,
        features=None if names is None else [str(name) for name in names],
    )


def _check_names(table: Any, label: str, used: Sequence[str]) -> None:
    for name in used:
        if name not in table.column_names:
            near = suggestion(name, table.column_names)
            raise ValueError(f"{label} has no column {name!r}{near}")
        if used.count(name) > 1:
            raise ValueError(f"{name!r} is named twice, as target, weight or drop: name it once.")


def _known_targets(table: Any, label: str, targets: Sequence[str], output: Output) -> np.ndarray:
    """Places of the rows whose targets are all known."""
    values = np.stack([_numbers(table, name, label) for name in targets])
    known = ~np.isnan(values).any(axis=0)
    n_known, n_missing = int(known.sum()), int((~known).sum())
    if n_known == 0:
        raise ValueError(f"the target {targets[0]!r} of {label} has no values: name another.")
    if n_known < _FEWEST:
        raise ValueError(
            f"{label} has {n_known} row with a target, but at least {_FEWEST} are needed: give "
            "more rows."
        )
    for name, column in zip(targets, values[:, known], strict=True):
        _check_target(name, column, label, output)
    if n_missing:
        output.note(f"{n_missing:,} row{'s' if n_missing > 1 else ''} without a target left out.")
    return np.flatnonzero(known)


def _check_target(name: str, values: np.ndarray, label: str, output: Output) -> None:
    large = values[np.abs(values) > _LARGEST]
    if len(large):
        raise ValueError(
            f"the target {name!r} of {label} holds {large[0]:g}, too large for a model: correct "
            "such values, leave them empty, or use a larger unit."
        )
    if values.min() == values.max():
        output.note(f"the target {name!r} has only one value: there is nothing to learn.")


def _numbers(table: Any, name: str, label: str) -> np.ndarray:
    """A column of numbers (n,) as floats, NaN where they are missing."""
    found = parse(table.select([name]), "y").array
    if found is not None:
        return np.asarray(found[:, 0], dtype=np.float64)
    entries = [str(value) for value in table.column(name).drop_null().to_pylist()]
    example = next((entry for entry in entries if not reads_as_number(entry)), entries[0])
    comma = reads_as_number(example.replace(",", ".", 1))
    remedy = "give --decimal ','" if comma else "name another column, or correct its entries"
    raise ValueError(
        f"the column {name!r} of {label} holds {example!r}, where numbers are needed: {remedy}."
    )


def needed_columns(model: Any, table: Any, label: str) -> Any:
    """A table with the columns that a model was fitted to in their order, and all others.

    Columns that the model left out may be absent: empty ones stand for them.
    """
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    used = {column.name for column in model.columns_ if names_of(column)}
    absent = [name for name in names if name not in table.column_names]
    missing = [name for name in absent if name in used]
    if missing:
        several = len(missing) > 1
        raise ValueError(
            f"{label} lacks the column{'s' if several else ''} "
            f"{listed_with_hints(missing, table.column_names)} that the model needs: add or rename "
            f"{'them' if several else 'it'}."
        )
    arrow = pyarrow()
    for name in absent:
        table = table.append_column(name, arrow.nulls(table.num_rows, arrow.float64()))
    others = [name for name in table.column_names if name not in names]
    return table.select([*names, *others])


def target_columns(model: Any, given: Sequence[str]) -> list[str]:
    """Columns of the targets: those given, or those of training."""
    names = list(model.target_names_)
    if given and len(given) != len(names):
        raise ValueError(
            f"the model has the target{'s' if len(names) > 1 else ''} "
            f"{', '.join(map(repr, names))}: name --target as often, or not at all."
        )
    return list(given) or names
