"""What becomes of each column: numbers, categories, dates and texts as columns of numbers.

- Numbers stay; truth values are 0 and 1, durations are days. Where one is missing stands the median
  of training, and if any was missing in training a second column says where.
- Categories become a column of zeros and ones for each frequent level; other levels, missing ones
  and levels that training did not have are zero in all of them.
- Of more levels than `max_categories`, those with a row in a hundred have such columns, and all
  have a statistic of each target (`levels`).
- Dates become days, and the sine and cosine of the time of the year, the weekday and the hour, as
  far as they vary.
- Free text becomes indicators of the words that held-out rows confirm (`words`).

Columns that do not vary, and texts that are different in every row, say nothing and are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet.tables.dates import DAY, PARTS, date_parts, days_of
from bowtienet.tables.door import Table, arrays_of, refuse
from bowtienet.tables.levels import LevelStatistic, learn_means, statistic_folds
from bowtienet.tables.quantiles import weighted_quantiles
from bowtienet.tables.texts import (
    CATEGORY,
    COMPACT,
    DATE,
    NUMBER,
    Cells,
    Hints,
    Reading,
    distinct_cells,
    is_compact_date,
    learn_reading,
    read_cells,
    settled,
)
from bowtienet.tables.words import helpful_words, word_indicators, words_of

Floats = NDArray[np.float64]

LEVELS, TEXT = "many levels", "text"


@dataclass(frozen=True, kw_only=True)
class Column:
    """What was learnt of a column."""

    name: str
    kind: str
    """A number, a category, a date, many levels or a text."""
    reading: Reading
    """How its cells are read."""
    parts: tuple[str, ...]
    """Levels, words, parts of a date that vary, ("",) for a number; none if left out."""
    typical: float = 0.0
    """Median of numbers and days, which stands where one is missing."""
    has_indicator: bool = False
    """Whether a further column says where values are missing."""
    statistic: LevelStatistic | None = None
    note: str = ""
    """Why it is left out, or what is in doubt, and the remedy."""


def learn_columns(
    table: Table, targets: Floats, weights: Floats, max_categories: int
) -> tuple[tuple[Column, ...], Floats]:
    """What becomes of each column of the rows of a fit, and these rows (n, encoded).

    Targets (n, T) are numbers. In the rows, statistics of a target are out of fold.
    """
    arrays = arrays_of(table)
    cells = [_cells(array) for array in arrays]
    readings = _learn_readings(arrays, cells, weights, table.hints)
    columns: list[Column] = []
    levels: dict[int, tuple[NDArray[np.str_], NDArray[np.intp]]] = {}
    for i, (name, array) in enumerate(zip(table.names, arrays, strict=True)):
        if readings[i].kind == CATEGORY:
            levels[i] = _levels(array, cells[i], readings[i], table.hints)
            column = _learn_category(name, readings[i], *levels[i], weights, max_categories)
        else:
            values = _values(array, cells[i], readings[i], table.hints)[0]
            column = _learn_values(name, readings[i], values, weights)
        columns.append(column)
    if _is_ready(columns, table):
        return tuple(columns), encode(columns, table)
    each = zip(columns, arrays, cells, strict=True)
    blocks = [_encoded(column, array, cell, table.hints)[0] for column, array, cell in each]
    if of_target := [i for i, c in enumerate(columns) if c.kind in (LEVELS, TEXT)]:
        indexes = [levels[i][1][:, None].astype(float) for i in of_target]
        folds = statistic_folds(np.concatenate([*blocks, *indexes], axis=1), targets)
        for i in of_target:
            columns[i], means = _learn_from_targets(columns[i], *levels[i], targets, weights, folds)
            parts = _encoded(columns[i], arrays[i], cells[i], table.hints)[0]
            blocks[i] = np.concatenate([parts[:, : len(columns[i].parts)], means], axis=1)
    if not encoded_names(columns):
        # A network needs an input, even if it says nothing.
        parts_of_first = ("days",) if columns[0].kind == DATE else ("",)
        columns[0] = replace(columns[0], parts=parts_of_first)
        return tuple(columns), encode(columns, table)
    return tuple(columns), np.concatenate(blocks, axis=1)


def encode(columns: Sequence[Column], table: Table) -> Floats:
    """Finite numbers (n, encoded); the matrix itself if nothing in it has to change."""
    if table.matrix is not None and _is_ready(columns, table):
        return table.matrix
    blocks = [np.zeros((table.n_rows, 0))]
    problems: list[str] = []
    unknown: list[str] = []
    for column, array in zip(columns, arrays_of(table), strict=True):
        block, problem, new = _encoded(column, array, _cells(array), table.hints)
        blocks.append(block)
        problems += [problem] * bool(problem)
        unknown += [f"{column.name!r} ({level!r})" for level in new[:1]]
    refuse(problems)
    if unknown:
        warnings.warn(
            f"levels that training did not have, in {', '.join(unknown[:5])}: their rows are "
            "predicted with the mean of all levels.",
            UserWarning,
            stacklevel=2,
        )
    return np.concatenate(blocks, axis=1)


def encoded_names(columns: Sequence[Column]) -> list[str]:
    """Names of the encoded columns."""
    return [name for column in columns for name in _names(column)]


def owners(columns: Sequence[Column]) -> NDArray[np.intp]:
    """The user's column of each encoded one."""
    sizes = [len(_names(column)) for column in columns]
    return np.repeat(np.arange(len(columns), dtype=np.intp), sizes)


def _names(column: Column) -> list[str]:
    link = {NUMBER: "", DATE: " ", TEXT: " has "}.get(column.kind, "=")
    names = [f"{column.name}{link}{part}" for part in column.parts]
    names += [f"{column.name} missing"] * column.has_indicator
    n_means = 0 if column.statistic is None else column.statistic.means.shape[1]
    return names + [f"{column.name} mean{f' {i}' if n_means > 1 else ''}" for i in range(n_means)]


def missing_cells(column: Column, array: NDArray[Any], hints: Hints) -> NDArray[np.bool_]:
    """Where (n,) a column has no value, codes included."""
    if column.reading.kind == CATEGORY:
        return np.asarray(_levels(array, _cells(array), column.reading, hints)[1] < 0)
    values = _values(array, _cells(array), column.reading, hints)[0]
    return np.isnat(values) if column.reading.kind == DATE else np.isnan(values)


def _learn_readings(
    arrays: Sequence[NDArray[Any]], cells: list[Cells | None], weights: Floats, hints: Hints
) -> list[Reading]:
    """How each column is read; columns that leave it open follow those that decide."""
    readings = []
    for array, each in zip(arrays, cells, strict=True):
        if array.dtype.kind == "U":
            readings.append(Reading(kind=CATEGORY))  # as the user says
        elif each is not None:
            readings.append(learn_reading(each, weights, hints))
        elif array.dtype.kind == "M":
            readings.append(Reading(kind=DATE))
        elif array.dtype.kind in "fi" and is_compact_date(array):
            readings.append(Reading(kind=DATE, style=COMPACT))
        else:
            readings.append(Reading(kind=NUMBER))
    said, hints = hints, settled(hints, readings)
    for i, (each, reading) in enumerate(zip(cells, readings, strict=True)):
        if hints != said and each is not None and (reading.doubt or reading.style == "."):
            readings[i] = learn_reading(each, weights, hints)
    return readings


def _learn_values(name: str, reading: Reading, values: NDArray[Any], weights: Floats) -> Column:
    """A column of numbers or dates."""
    numbers = days_of(values) if reading.kind == DATE else values
    known = np.isfinite(numbers)
    typical = _median(numbers[known], weights[known]) if known.any() else 0.0
    if reading.kind == DATE:
        varying = zip(PARTS, date_parts(values, typical).T, strict=True)
        parts = tuple(part for part, column in varying if _varies(column))
    else:
        parts = ("",) if _varies(numbers[known]) else ()
    has_indicator = bool(known.any() and not known.all())
    note = reading.doubt
    if not parts and not has_indicator:
        note = "left out, with a single value." if known.any() else "left out, with no value."
    return Column(
        name=name,
        kind=reading.kind,
        reading=reading,
        parts=parts,
        typical=typical,
        has_indicator=has_indicator,
        note=note,
    )


def _learn_category(
    name: str,
    reading: Reading,
    levels: NDArray[np.str_],
    index: NDArray[np.intp],
    weights: Floats,
    max_categories: int,
) -> Column:
    """A column of levels or texts, without what needs the target."""
    present = index >= 0
    n_rows = int(np.count_nonzero(present))
    counts = np.bincount(index[present], weights=weights[present], minlength=len(levels))
    order = np.argsort(-counts, kind="stable")[:max_categories]
    kind, parts, note = CATEGORY, [], reading.doubt
    if len(levels) == 2 and n_rows == len(index):
        parts = levels[1:].tolist()  # of two levels one column says it all
    elif len(levels) > max_categories:
        kind = _kind_of_many(levels, n_rows)
        if kind == LEVELS:
            parts = np.sort(levels[order[counts[order] >= 0.01 * counts.sum()]]).tolist()
        if kind == CATEGORY:
            note = "left out, for nearly every row has another text."
    elif len(levels) > 1 or 0 < n_rows < len(index):
        parts = np.sort(levels[order]).tolist()
    else:
        note = "left out, with a single value." if len(levels) else "left out, with no value."
    return Column(name=name, kind=kind, reading=reading, parts=tuple(parts), note=note)


def _kind_of_many(levels: NDArray[np.str_], n_rows: int) -> str:
    """Many levels or free text; a category for names of rows.

    Names are texts of one word that hardly ever come twice; of texts that come twice now and then
    those of four words and more are free text.
    """
    share = len(levels) / n_rows
    n_words = float(np.mean([len(words_of(text)) for text in levels[:2000].tolist()]))
    if n_words >= (2.0 if share >= 0.9 else 4.0) and share >= 0.5:
        return TEXT
    return LEVELS if share < 0.9 else CATEGORY


def _learn_from_targets(
    column: Column,
    levels: NDArray[np.str_],
    index: NDArray[np.intp],
    targets: Floats,
    weights: Floats,
    folds: NDArray[np.intp],
) -> tuple[Column, Floats]:
    """Free text with the words that help, or many levels with their means; those of the rows."""
    if column.kind == TEXT:
        words = helpful_words(levels.tolist(), index, targets, weights, folds)
        note = "left out, for held-out rows confirm none of its words; a text vectoriser sees more."
        return replace(column, parts=words, note="" if words else note), np.zeros((len(index), 0))
    means, held_out = learn_means(index, targets, weights, folds)
    if means.shape[1]:
        statistic = LevelStatistic(levels=levels, means=means)
        return replace(column, statistic=statistic), held_out
    note = f"{len(levels):,} levels whose target means differ by chance alone."
    return replace(column, note=column.note or note), held_out


def _median(values: Floats, weights: Floats) -> float:
    """Weighted median; of equal weights without sorting, and in halves against overflow."""
    if np.ptp(weights) == 0.0:
        return float(2.0 * np.median(0.5 * values))
    return float(weighted_quantiles(values, weights, np.array([0.5]))[0])


def _varies(values: Floats) -> bool:
    # Halves, so that no difference overflows; a range of less than this is rounding.
    return bool(values.size and np.ptp(0.5 * values) > 0.5e-9 * np.abs(values).max())


def _is_ready(columns: Sequence[Column], table: Table) -> bool:
    """Whether a table is a matrix in which nothing has to change."""
    plain = all(
        c.kind == NUMBER and c.parts and not c.has_indicator and not c.reading.codes
        for c in columns
    )
    matrix, codes = table.matrix, table.hints.missing_values
    return matrix is not None and plain and not codes and bool(np.isfinite(matrix).all())


def _cells(array: NDArray[Any]) -> Cells | None:
    """Distinct values of a column of texts or objects."""
    return None if array.dtype.kind in "fiubMm" else distinct_cells(array)


def _levels(
    array: NDArray[Any], cells: Cells | None, reading: Reading, hints: Hints
) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
    """Levels (L,), sorted, and the level of each row; -1 where it is missing."""
    cells = cells or distinct_cells(array.astype(object))
    texts: list[str | None] = read_cells(cells, reading, hints)[0].tolist()
    known = sorted({text for text in texts if text is not None})
    place = {text: i for i, text in enumerate(known)}
    to_level = np.array([-1 if t is None else place[t] for t in texts] + [-1], dtype=np.intp)
    return np.array(known, dtype=str), to_level[cells.place]


def _values(
    array: NDArray[Any], cells: Cells | None, reading: Reading, hints: Hints
) -> tuple[NDArray[Any], list[Any]]:
    """Floats or dates (n,) of a column, and cells that are neither."""
    kind = array.dtype.kind
    if kind == "M":
        dates = array.astype("datetime64[us]")
        return dates, [] if reading.kind == DATE else dates[~np.isnat(dates)][:1].tolist()
    if kind == "m":
        return np.where(np.isnat(array), np.nan, array / DAY), []
    if cells is None and kind in "fiub" and reading.kind == NUMBER:
        numbers = array.astype(np.float64, copy=False)
        codes = (*hints.missing_values, *reading.codes)
        coded = [float(code) for code in codes if _is_float(code)]
        return (np.where(np.isin(numbers, coded), np.nan, numbers) if coded else numbers), []
    cells = cells or distinct_cells(array.astype(object))
    values, unread = read_cells(cells, reading, hints)
    nothing = np.array(np.datetime64("NaT") if reading.kind == DATE else np.nan, values.dtype)
    return np.append(values, nothing)[cells.place], unread


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _encoded(
    column: Column, array: NDArray[Any], cells: Cells | None, hints: Hints
) -> tuple[Floats, str, list[str]]:
    """Encoded columns (n, k) of one column, what is wrong with it, and levels that are new."""
    if not column.parts and not column.has_indicator and column.statistic is None:
        return np.zeros((len(array), 0)), "", []
    if column.reading.kind == CATEGORY:
        return _encoded_levels(column, cells or distinct_cells(array.astype(object)), hints)
    values, unread = _values(array, cells, column.reading, hints)
    if unread:
        problem = (
            f"column {column.name!r} was a {column.kind} in training and holds {unread[0]!r} now: "
            "read it as before, or name what is missing in missing_values."
        )
        return np.zeros((len(array), 0)), problem, []
    if column.kind == DATE:
        missing = np.isnat(values)
        blocks = [date_parts(values, column.typical)[:, [PARTS.index(p) for p in column.parts]]]
    else:
        missing = ~np.isfinite(values)
        blocks = [np.where(missing, column.typical, values)[:, None]][: len(column.parts)]
    if column.has_indicator:
        blocks.append(missing[:, None].astype(float))
    return np.concatenate(blocks, axis=1), "", []


def _encoded_levels(column: Column, cells: Cells, hints: Hints) -> tuple[Floats, str, list[str]]:
    """Distinct texts are encoded, and each row takes the values of its own."""
    texts = [*read_cells(cells, column.reading, hints)[0].tolist(), None]
    if column.kind == TEXT:
        known = word_indicators([text or "" for text in texts], column.parts)
    else:
        place = {part: i for i, part in enumerate(column.parts)}
        known = np.eye(len(place) + 1)[[place.get(text, -1) for text in texts], :-1]
    unknown: list[str] = []
    if column.statistic is not None:
        levels = column.statistic.levels
        asked = np.array(["" if text is None else text for text in texts])
        at = np.minimum(np.searchsorted(levels, asked), len(levels) - 1)
        is_known = levels[at] == asked
        unknown = [t for t in asked[~is_known].tolist() if t]
        means = column.statistic.means[np.where(is_known, at, len(levels))]
        known = np.concatenate([known, means], axis=1)
    return known[cells.place], "", unknown
