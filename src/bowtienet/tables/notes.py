"""What a user should know of a table before trusting a model of it, each with its remedy.

Notes are few, and each is said once: of columns that are left out or in doubt, codes that are read
as missing, columns that give the target away, equal columns, outliers of the target, rows in the
order of time, and few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._format import count, listed, number
from bowtienet.tables.columns import TEXT, Column, encoded_names, missing_cells
from bowtienet.tables.dates import PARTS
from bowtienet.tables.door import Table, TrainingTable, arrays_of
from bowtienet.tables.texts import DATE, NUMBER

Floats = NDArray[np.float64]

MOST_ROWS = 5_000
"""That are looked at for equal columns and correlated errors."""


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """A column for people."""

    name: str
    kind: str
    becomes: str
    missing: int
    examples: tuple[str, ...]
    note: str


def describe_columns(columns: Sequence[Column], table: Table) -> tuple[ColumnFacts, ...]:
    """Kind, fate, missing cells and examples of each column of a table."""
    described = []
    for column, values in zip(columns, arrays_of(table), strict=True):
        missing = missing_cells(column, values, table.hints)
        examples = dict.fromkeys(str(value) for value in values[~missing][:100].tolist())
        described.append(
            ColumnFacts(
                name=column.name,
                kind=column.kind,
                becomes=_fate(column),
                missing=int(np.count_nonzero(missing)),
                examples=tuple(examples)[:3],
                note=column.note,
            )
        )
    return tuple(described)


def notes_of_fit(
    training: TrainingTable,
    columns: Sequence[Column],
    inputs: Floats,
    owners: NDArray[np.intp],
    targets: Floats,
) -> tuple[str, ...]:
    """Notes of the rows of a fit, standardised (n, K), with targets (n, T) as numbers."""
    notes = [*_of_columns(columns), *_codes(columns)]
    notes += _given_away(columns, inputs, owners, targets)
    notes += _equal(columns, inputs, owners)
    if not training.is_labels:
        notes += _outliers(targets, training.target_names)
    notes += _time_order(columns, inputs, owners, targets)
    if (n_rows := training.table.n_rows) < 24:
        notes.append(
            f"{count(n_rows, 'row')}: with fewer than 24 the held-out rows say little, so do the "
            "intervals."
        )
    return tuple(notes)


def _fate(column: Column) -> str:
    n_columns = len(encoded_names((column,)))
    if not n_columns:
        return "left out"
    if column.kind == NUMBER:
        return "a number" + (", and whether it is missing" if column.has_indicator else "")
    if column.kind == DATE:
        return ", ".join(column.parts)
    if column.kind == TEXT:
        return count(len(column.parts), "word")
    means = "" if column.statistic is None else "the mean of the target by level"
    indicators = count(len(column.parts), "level") if column.parts else ""
    return " and ".join(filter(None, (indicators, means)))


def _of_columns(columns: Sequence[Column]) -> list[str]:
    """Notes of columns; those that say the same of several are one."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        if column.note:
            groups.setdefault(column.note, []).append(column.name)
    return [f"{_named(names)}: {note}" for note, names in groups.items()]


def _codes(columns: Sequence[Column]) -> list[str]:
    coded = [column for column in columns if column.reading.codes]
    codes = listed(dict.fromkeys(code for column in coded for code in column.reading.codes))
    return [f"{codes} count as missing in {_named([c.name for c in coded])}."] if coded else []


def _given_away(
    columns: Sequence[Column], inputs: Floats, owners: NDArray[np.intp], targets: Floats
) -> list[str]:
    """Columns whose correlation with a target is nearly one."""
    size, spread = targets.std(axis=0), inputs.std(axis=0)
    centred = (targets - targets.mean(axis=0)) / np.where(size > 0.0, size, np.inf)
    shared = np.abs(inputs.T @ centred).max(axis=1, initial=0.0) / len(inputs)
    correlation = shared / np.where(spread > 0.0, spread, np.inf)
    names = [columns[i].name for i in np.unique(owners[correlation > 0.999])]
    note = "nearly gives the target: leave it out if it is not known before the target is."
    return [f"{_named(names)} {note}"] if names else []


def _equal(columns: Sequence[Column], inputs: Floats, owners: NDArray[np.intp]) -> list[str]:
    """Columns that are equal once standardised, whatever their unit."""
    groups: dict[bytes, list[str]] = {}
    starts = np.searchsorted(owners, np.arange(len(columns) + 1))
    for i, column in enumerate(columns):
        block = inputs[:, starts[i] : starts[i + 1]]
        if block.size and np.ptp(block) > 0.0:
            sample = np.ascontiguousarray(np.round(block[:: -(-len(block) // MOST_ROWS)], 6) + 0.0)
            groups.setdefault(sample.tobytes(), []).append(column.name)
    return [
        f"{_named(names)} are equal: leave out all but the first."
        for names in groups.values()
        if len(names) > 1
    ]


def _outliers(targets: Floats, names: Sequence[str]) -> list[str]:
    """Few values ten interquartile ranges beyond the quartiles."""
    notes = []
    for target, name in zip(targets.T, names, strict=True):
        low, high = np.quantile(target, (0.25, 0.75))
        reach = 10.0 * (high - low)
        far = target[(target < low - reach) | (target > high + reach)]
        if reach > 0.0 and 0 < len(far) <= 0.02 * len(target):
            example = number(float(far[np.argmax(np.abs(far))]))
            notes.append(
                f"target {name!r} has {count(len(far), 'outlier')} such as {example}: correct "
                'them, or use noise="student_t".'
            )
    return notes


def _time_order(
    columns: Sequence[Column], inputs: Floats, owners: NDArray[np.intp], targets: Floats
) -> list[str]:
    """Whether rows are in the order of a date, and errors of a linear function correlate."""
    starts = np.searchsorted(owners, np.arange(len(columns)))
    dated = [i for i, column in enumerate(columns) if column.parts[:1] == (PARTS[0],)]
    ordered = [columns[i].name for i in dated if np.all(np.diff(inputs[:, starts[i]]) >= 0.0)]
    if not ordered or len(inputs) < 24:
        return []
    # The last rows, and the first columns: a hint needs no more.
    X = np.column_stack([np.ones(len(inputs)), inputs[:, :200]])[-MOST_ROWS:]
    y = targets[-MOST_ROWS:]
    errors = y - X @ np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y)
    total = np.sum(errors**2, axis=0)
    lagged = np.sum(errors[1:] * errors[:-1], axis=0) / np.where(total > 0.0, total, 1.0)
    if lagged.max() < max(0.2, 3.0 / np.sqrt(len(X))):
        return []
    return [
        f"rows are in the order of {ordered[0]!r} and the errors of neighbours are correlated: "
        "score the model on the last rows (--test-last SHARE), a random split is optimistic."
    ]


def _named(names: Sequence[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {listed(names)}"
