"""From a file to rows with targets, or to the columns that a model needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bowtienet._old._validation import listed_with_hints, suggestion
from bowtienet._old.cli.console import Output, note
from bowtienet._old.cli.tasks import TARGETS, Task, task_of
from bowtienet._old.data import files
from bowtienet._old.data.arrow_files import pyarrow
from bowtienet._old.data.dialect import Dialect, Given
from bowtienet._old.data.door import open_source
from bowtienet._old.data.labels import read_labels
from bowtienet._old.data.parsing import parse
from bowtienet._old.representation.columns import encoded_names_of
from bowtienet._old.representation.kinds import CATEGORY
from bowtienet._old.representation.written import (
    COMMA,
    POINT,
    find_format,
    read_written,
    reads_as_number,
)

_FEWEST = 2


@dataclass(frozen=True, kw_only=True)
class NamedTable:
    """Rows whose targets are known."""

    table: Any
    """Features, targets and weights in a pyarrow table."""
    names: list[str]
    """Of the targets."""
    weight: str | None
    """Name of the weights."""
    numbers: np.ndarray
    """Numbers (n,) of the rows in their file, from 1."""
    task: Task = Task.NUMBERS
    exposure: str | None = None
    """Name of the exposures of counts."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.numbers)

    @property
    def target(self) -> str | list[str]:
        """What an estimator takes as y beside the table."""
        return self.names[0] if len(self.names) == 1 else self.names

    @property
    def features(self) -> Any:
        """The features alone, in a pyarrow table."""
        others = [name for name in (self.weight, self.exposure) if name]
        return self.table.drop_columns([*self.names, *others])

    @property
    def targets(self) -> Any:
        """The targets alone, in a pyarrow table."""
        return self.table.select(self.names)

    @property
    def weights(self) -> np.ndarray | None:
        """(n,)."""
        return None if self.weight is None else self.table.column(self.weight).to_numpy()

    @property
    def labels(self) -> np.ndarray:
        """Classes (n,)."""
        return read_labels(self.targets).values

    @property
    def exposures(self) -> np.ndarray | None:
        """(n,)."""
        return None if self.exposure is None else self.table.column(self.exposure).to_numpy()

    def source(self, model: Any = None) -> Any:
        """All of it as estimators read it; by the classes of a fitted one, if it has any."""
        return open_source(
            self.table,
            self.target,
            self.weight,
            target=TARGETS[self.task],
            classes=getattr(model, "classes_", None),
            exposure=self.exposure,
        )

    def take(self, places: np.ndarray) -> NamedTable:
        """Some of the rows."""
        return replace(self, table=self.table.take(places), numbers=self.numbers[places])


Marks: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""Delimiter, decimal sign, encoding and format of dates, as options give them."""


def read(path: Path, output: Output, marks: Marks, model: Any = None) -> Any:
    """The table in a file, by the dialect of the file that a model was fitted to if need be."""
    return read_with_dialect(path, output, marks, model)[0]


def read_with_dialect(
    path: Path, output: Output, marks: Marks, model: Any = None
) -> tuple[Any, Dialect | None]:
    """The table in a file, and how a text file is written."""
    delimiter, decimal, encoding, date_format = marks
    given = Given(delimiter=delimiter, decimal=decimal, encoding=encoding, date_format=date_format)
    if hasattr(model, "dialect_"):
        texts = tuple(column.name for column in model.columns_ if column.kind == CATEGORY)
        given = replace(given, remembered=model.dialect_, texts=texts)
    with output.stage(f"reading {path.name}"):
        return files.read_with_dialect(path, given)


def known_rows(
    table: Any,
    label: str,
    *,
    targets: Sequence[str],
    drop: Sequence[str] = (),
    weight: str | None = None,
    task: Task = Task.NUMBERS,
    exposure: str | None = None,
    says_missing: bool = True,
) -> NamedTable:
    """The rows of a table that have targets; how many have not is told."""
    others = [name for name in (weight, exposure) if name]
    check_names(table, label, [*targets, *others, *drop])
    if task == Task.CLASSES:
        missing = _without_label(table, targets[0])
    else:
        values = np.stack([column_numbers(table, name, label) for name in targets])
        missing = np.isnan(values).any(axis=0)
    kept = np.flatnonzero(~missing)
    if len(kept) < _FEWEST:
        raise ValueError(
            f"{label} has {len(kept)} rows with a value of {targets[0]!r}, but at least {_FEWEST} "
            "are needed: give more rows, or name another target."
        )
    n_missing = table.num_rows - len(kept)
    if n_missing and says_missing:
        note(f"{n_missing:,} row{'s' if n_missing > 1 else ''} without a target left out.")
    table = table.drop_columns(list(drop)).take(kept)
    return NamedTable(
        table=table,
        names=list(targets),
        weight=weight,
        numbers=1 + kept,
        task=task,
        exposure=exposure,
    )


def without_infinities(table: Any, label: str) -> tuple[Any, dict[str, str]]:
    """The table with missing values in place of infinite ones, and a sentence for each column."""
    arrow, compute = pyarrow(), pyarrow(".compute")
    sentences = {}
    for place, name in enumerate(table.column_names):
        column = table.column(name)
        if not arrow.types.is_floating(column.type):
            continue
        wrong = compute.fill_null(compute.is_inf(column), False)
        rows = np.flatnonzero(wrong.to_numpy())
        if len(rows):
            more = f" and in {len(rows) - 1:,} more" if len(rows) > 1 else ""
            sentences[name] = (
                f"{label} has an infinite value of {name!r} in row {rows[0] + 1:,}{more}, counted "
                "from 1 below the header: correct it, or leave the row out."
            )
            nothing = arrow.scalar(None, type=column.type)
            table = table.set_column(place, name, compute.if_else(wrong, nothing, column))
    return table, sentences


def check_finite(table: Any, label: str) -> None:
    """Raise a ValueError that names every column with an infinite value."""
    sentences = without_infinities(table, label)[1]
    if sentences:
        raise ValueError(" ".join(sentences.values()))


def known_rows_of_model(
    model: Any,
    table: Any,
    label: str,
    *,
    targets: Sequence[str] | None = None,
    weight: str | None = None,
    exposure: str | None = None,
) -> NamedTable:
    """The rows of a table that have targets, with the features that a model was fitted to.

    Without names of the targets, these are those of training.
    """
    names = list(targets or model.target_names_)
    if len(names) != len(model.target_names_):
        several = "s" if len(model.target_names_) > 1 else ""
        raise ValueError(
            f"the model has the target{several} {', '.join(map(repr, model.target_names_))}: name "
            "--target as often, or not at all."
        )
    task = task_of(model)
    check_exposure(task, exposure)
    if task != Task.CLASSES:
        table, _ = with_written_numbers(table, names)
    check_finite(table, label)
    rows = known_rows(table, label, targets=names, weight=weight, task=task, exposure=exposure)
    features = needed_columns(model, rows.features, label)
    for name in (*names, *(name for name in (weight, exposure) if name)):
        features = features.append_column(name, rows.table.column(name))
    return replace(rows, table=features)


def with_written_numbers(table: Any, names: Sequence[str]) -> tuple[Any, dict[str, str]]:
    """The table with numbers in columns of texts such as 1,234.5 or 12 %, and how they are written.

    A column in which any text is something else stays as it is.
    """
    arrow, formats = pyarrow(), dict[str, str]()
    for name in names:
        place = table.schema.get_field_index(name)
        if place < 0 or not arrow.types.is_string(table.column(place).type):
            continue
        cells = table.column(place).to_pylist()
        written = find_format(Counter(cell for cell in cells if cell is not None))
        if written is None:
            continue
        numbers = [None if cell is None else read_written(cell, written) for cell in cells]
        if numbers.count(None) == cells.count(None):
            formats[name] = written
            column = arrow.array(numbers, arrow.float64())
            table = table.set_column(place, name, column)
    return table, formats


def check_names(table: Any, label: str, used: Sequence[str]) -> None:
    """Raise if a table has not all of these columns, or one is named twice."""
    for name in used:
        if name not in table.column_names:
            near = suggestion(name, table.column_names)
            raise ValueError(f"{label} has no column {name!r}{near}")
        if used.count(name) > 1:
            raise ValueError(
                f"{name!r} is named twice, as target, weight, exposure or drop: name it once."
            )


def check_exposure(task: Task, exposure: str | None) -> None:
    """Raise if exposures are given for what is not counted."""
    if exposure is not None and task != Task.COUNTS:
        raise ValueError(f"--exposure is for counts, but the model is of {task}: leave it out.")


def _without_label(table: Any, name: str) -> np.ndarray:
    """Where a column (n,) has no label."""
    return np.asarray(table.column(name).is_null(nan_is_null=True).to_numpy(), dtype=bool)


def column_numbers(table: Any, name: str, label: str) -> np.ndarray:
    """A column of numbers (n,) as floats, NaN where they are missing."""
    found = parse(table.select([name]), "y").array
    if found is not None:
        return np.asarray(found[:, 0], dtype=np.float64)
    entries = [str(value) for value in table.column(name).drop_null().to_pylist()]
    written = [entry for entry in entries if not reads_as_number(entry)]
    strange = [
        entry
        for entry in written
        if read_written(entry, POINT) is None and read_written(entry, COMMA) is None
    ]
    example = (strange or written or entries)[0]
    remedy = (
        "name another column, correct its entries, or give --task classes"
        if strange
        else "write all of them in one way, or give --decimal"
    )
    raise ValueError(
        f"the column {name!r} of {label} holds {example!r}, where numbers are needed: {remedy}."
    )


def needed_columns(model: Any, table: Any, label: str) -> Any:
    """The columns that a model was fitted to, in their order; all but targets if it has no names.

    Columns that the model left out may be absent: empty ones stand for them.
    """
    if not hasattr(model, "feature_names_in_"):
        return table.select([n for n in table.column_names if n not in model.target_names_])
    used = {column.name for column in model.columns_ if encoded_names_of(column)}
    absent = [name for name in model.feature_names_in_ if name not in table.column_names]
    missing = [str(name) for name in absent if name in used]
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
    return table.select([str(name) for name in model.feature_names_in_])
