"""What a user should know of a table before trusting a model of it, each with its remedy.

Notes are few, and each is said once: of columns that are left out or in doubt, codes that are read
as missing, columns that give the target away, equal columns, outliers of the target, rows in the
order of time, and few rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bowtienet._format import count, listed, number
from bowtienet.tables.columns import encoded_names, owners, read_column
from bowtienet.tables.door import Table, TrainingTable, arrays_of
from bowtienet.tables.texts import Column

Floats = NDArray[np.float64]


def describe_columns(
    columns: Sequence[Column], table: Table
) -> list[tuple[Column, str, int, list[str]]]:
    """Each column of a table with its fate, the number of missing cells, and three examples."""
    described = []
    for column, array in zip(columns, arrays_of(table), strict=True):
        values, rows, _ = read_column(column, array, table.hints)
        missing = (
            np.array([v is None for v in values]) if values.dtype == object else values != values
        )
        missing = missing[rows]
        examples = dict.fromkeys(str(value) for value in array[~missing][:100].tolist())
        described.append((column, _fate(column), int(missing.sum()), list(examples)[:3]))
    return described


def notes_of_fit(
    training: TrainingTable, columns: Sequence[Column], inputs: Floats, targets: Floats
) -> list[str]:
    """Notes of the rows of a fit, standardised (n, K), with targets (n, T) as numbers."""
    # The encoded columns of the first column, of the second, and so on.
    starts = np.searchsorted(owners(columns), np.arange(len(columns) + 1))
    notes = [*_of_columns(columns), *_codes(columns)]
    notes += _given_away(columns, inputs, targets)
    notes += _equal(columns, inputs, starts)
    if not training.is_labels:
        notes += _outliers(targets, training.target_names)
    notes += _time_order(columns, inputs, starts, targets)
    if len(inputs) < 24:
        notes.append(
            f"{count(len(inputs), 'row')}: with fewer than 24 the held-out rows say little, so do "
            "the intervals."
        )
    return notes


def _fate(column: Column) -> str:
    n_columns = len(encoded_names((column,)))
    if not n_columns:
        return "left out"
    if column.kind == "number":
        return "a number" + (", and whether it is missing" if column.has_indicator else "")
    if column.kind == "date":
        return ", ".join(column.parts)
    if column.kind == "text":
        return count(len(column.parts), "word")
    means = "" if column.means is None else "the mean of the target by level"
    n_levels = len(column.parts)
    if column.kind == "category" and column.levels is not None:
        n_levels = len(column.levels)  # for two of them one indicator says it all
    indicators = count(n_levels, "level") if n_levels else ""
    return " and ".join(filter(None, (indicators, means)))


def _of_columns(columns: Sequence[Column]) -> list[str]:
    """Notes of columns; those that say the same of several are one."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        if column.note:
            groups.setdefault(column.note, []).append(column.name)
    return [f"{_named(names)}: {note}" for note, names in groups.items()]


def _codes(columns: Sequence[Column]) -> list[str]:
    coded = [column for column in columns if column.codes]
    codes = listed(dict.fromkeys(code for column in coded for code in column.codes))
    return [f"{codes} count as missing in {_named([c.name for c in coded])}."] if coded else []


def _given_away(columns: Sequence[Column], inputs: Floats, targets: Floats) -> list[str]:
    """Columns whose correlation with a target is nearly one."""
    size, spread = targets.std(axis=0), inputs.std(axis=0)
    centred = (targets - targets.mean(axis=0)) / np.where(size > 0.0, size, np.inf)
    shared = np.abs(inputs.T @ centred).max(axis=1, initial=0.0) / len(inputs)
    correlation = shared / np.where(spread > 0.0, spread, np.inf)
    names = [columns[i].name for i in np.unique(owners(columns)[correlation > 0.999])]
    note = "nearly gives the target: leave it out if it is not known before the target is."
    return [f"{_named(names)} {note}"] if names else []


def _equal(columns: Sequence[Column], inputs: Floats, starts: NDArray[np.intp]) -> list[str]:
    """Columns that are equal once standardised, whatever their unit."""
    groups: dict[bytes, list[str]] = {}
    apart = -(-len(inputs) // 5_000)  # about 5,000 rows tell
    for i, column in enumerate(columns):
        block = inputs[:, starts[i] : starts[i + 1]]
        if block.size and np.ptp(block) > 0.0:
            sample = np.ascontiguousarray(np.round(block[::apart], 6) + 0.0)
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
                'them, or use noise="student_t" unless they are counts.'
            )
    return notes


def _time_order(
    columns: Sequence[Column], inputs: Floats, starts: NDArray[np.intp], targets: Floats
) -> list[str]:
    """Whether rows are in the order of a date, and errors of a linear function correlate."""
    dated = [i for i, c in enumerate(columns) if c.kind == "date" and c.parts[:1] == ("days",)]
    ordered = [columns[i].name for i in dated if np.all(np.diff(inputs[:, starts[i]]) >= 0.0)]
    if not ordered or len(inputs) < 24:
        return []
    # The last rows, and the first columns: a hint needs no more.
    X = np.column_stack([np.ones(len(inputs)), inputs[:, :200]])[-5_000:]
    y = targets[-5_000:]
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
