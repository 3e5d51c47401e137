"""What becomes of each column: numbers, categories, dates and texts as columns of numbers.

- Numbers stay; truth values are 0 and 1, durations are days. Where one is missing stands the median
  of training, and if any was missing in training a second column says where.
- Categories become a column of zeros and ones for each frequent level; other levels, missing ones
  and levels that training did not have are zero in all of them.
- Of more levels than `max_categories`, those with a row in a hundred have such columns, and all
  have a statistic of each target (`levels`).
- Dates become days, and the sine and cosine of the time of the year, the weekday and the hour, as
  far as they vary.
- Free text becomes indicators of the words that held-out rows confirm (`levels`).

Columns that do not vary, and texts that are different in every row, say nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._format import listed, warn
from bowtienet.tables.dates import PARTS, date_parts, days_of
from bowtienet.tables.door import Table, arrays_of, refuse
from bowtienet.tables.levels import (
    helpful_words,
    learn_means,
    statistic_folds,
    word_indicators,
    words_of,
)
from bowtienet.tables.quantiles import weighted_quantiles
from bowtienet.tables.texts import (
    Cells,
    Column,
    Hints,
    distinct_cells,
    is_compact_date,
    learn_readings,
    read_cells,
)

Floats = NDArray[np.float64]


def learn_columns(
    table: Table, targets: Floats, weights: Floats, max_categories: int
) -> tuple[tuple[Column, ...], Floats]:
    """What becomes of each column of the rows of a fit, and these rows (n, encoded).

    Targets (n, T) are numbers. In the rows, statistics of a target are out of fold.
    """
    arrays, hints = arrays_of(table), table.hints
    cells = {i: distinct_cells(a) for i, a in enumerate(arrays) if a.dtype.kind not in "fiubMmU"}
    readings = dict(zip(cells, learn_readings([*cells.values()], weights, hints), strict=True))
    columns: list[Column] = []
    reads: list[tuple[NDArray[Any], Any]] = []
    levels: dict[int, tuple[NDArray[np.str_], NDArray[np.intp]]] = {}
    for i, (name, array) in enumerate(zip(table.names, arrays, strict=True)):
        reading = replace(readings.get(i) or _reading_of(array), name=name)
        values, rows, _ = read_column(reading, array, hints, cells.get(i))
        reads.append((values, rows))
        if reading.kind == "category":
            levels[i] = _levels(values, rows)
            columns.append(_learn_category(reading, *levels[i], weights, max_categories))
        else:
            columns.append(_learn_values(reading, values[rows], weights))
    if not _is_ready(columns, table):
        each = zip(columns, reads, strict=True)
        blocks = [_encoded(column, values)[0][rows] for column, (values, rows) in each]
        if of_target := [i for i, c in enumerate(columns) if c.kind in ("many levels", "text")]:
            indexes = [levels[i][1][:, None].astype(float) for i in of_target]
            folds = statistic_folds(np.concatenate([*blocks, *indexes], axis=1), targets)
            for i in of_target:
                columns[i], more = _learn_from_targets(
                    columns[i], *levels[i], targets, weights, folds
                )
                blocks[i] = np.concatenate([blocks[i], more], axis=1)
        if encoded_names(columns):
            return tuple(columns), np.concatenate(blocks, axis=1)
        # A network needs an input, even if it says nothing.
        part = "days" if columns[0].kind == "date" else ""
        note = "kept, for no column is usable; predictions are the same for all rows."
        columns[0] = replace(columns[0], parts=(part,), note=note)
    return tuple(columns), encode(columns, table)


def encode(columns: Sequence[Column], table: Table) -> Floats:
    """Finite numbers (n, encoded); the matrix itself if nothing in it has to change."""
    if table.matrix is not None and _is_ready(columns, table):
        return table.matrix
    blocks = [np.zeros((table.n_rows, 0))]
    problems: list[str] = []
    unknown: list[str] = []
    for column, array in zip(columns, arrays_of(table), strict=True):
        if not _names(column):
            continue
        values, rows, unread = read_column(column, array, table.hints)
        if unread:
            problems.append(
                f"column {column.name!r} was a {column.kind} in training and holds {unread[0]!r} "
                "now: read it as before, or name what is missing in missing_values."
            )
            continue
        block, has_unknown = _encoded(column, values)
        blocks.append(block[rows])
        unknown += [column.name] * has_unknown
    refuse(problems)
    if unknown:
        warn(
            f"levels that training did not have, in {listed(unknown)}: check how they are "
            "written, or train on rows with them."
        )
    return np.concatenate(blocks, axis=1)


def encoded_names(columns: Sequence[Column]) -> list[str]:
    """Names of the encoded columns."""
    return [name for column in columns for name in _names(column)]


def owners(columns: Sequence[Column]) -> NDArray[np.intp]:
    """The user's column of each encoded one."""
    sizes = [len(_names(column)) for column in columns]
    return np.repeat(np.arange(len(columns), dtype=np.intp), sizes)


def read_column(
    column: Column, array: NDArray[Any], hints: Hints, cells: Cells | None = None
) -> tuple[NDArray[Any], Any, list[Any]]:
    """Values as floats, dates or texts, the one of each row, and cells that are none of these.

    Each distinct cell is read once, and None, NaN and NaT are missing.
    """
    if array.dtype.kind == "M" and column.kind in ("number", "date"):
        dates = array.astype("datetime64[us]")
        others = dates[~np.isnat(dates)] if column.kind == "number" else dates[:0]
        return dates, slice(None), others.tolist()
    if array.dtype.kind == "m" and column.kind == "number":
        return array / np.timedelta64(1, "D"), slice(None), []
    if array.dtype.kind in "fiub" and column.kind == "number":
        numbers, coded = array.astype(np.float64, copy=False), []
        for code in (*hints.missing_values, *column.codes):
            with suppress(ValueError):
                coded.append(float(code))
        values = np.where(np.isin(numbers, coded), np.nan, numbers) if coded else numbers
        return values, slice(None), []
    cells = cells or distinct_cells(array.astype(object, copy=False))
    values, unread = read_cells(cells, column, hints)
    return values, cells[1], unread


def _names(column: Column) -> list[str]:
    link = {"number": "", "date": " ", "text": " has "}.get(column.kind, "=")
    names = [f"{column.name}{link}{part}" for part in column.parts]
    names += [f"{column.name} missing"] * column.has_indicator
    n_means = 0 if column.means is None else column.means.shape[1]
    return names + [f"{column.name} mean{f' {i}' if n_means > 1 else ''}" for i in range(n_means)]


def _reading_of(array: NDArray[Any]) -> Column:
    """How a column is read whose type says it."""
    if array.dtype.kind == "U":
        return Column(kind="category")  # as the user says
    if array.dtype.kind in "fi" and is_compact_date(array):
        return Column(kind="date", style="compact")
    return Column(kind="date" if array.dtype.kind == "M" else "number")


def _learn_values(reading: Column, values: NDArray[Any], weights: Floats) -> Column:
    """A column of numbers or dates."""
    numbers = days_of(values) if reading.kind == "date" else values
    known = np.isfinite(numbers)
    typical = _median(numbers[known], weights[known]) if known.any() else 0.0
    if reading.kind == "date":
        varying = zip(PARTS, date_parts(values, typical).T, strict=True)
        parts = tuple(part for part, column in varying if _varies(column))
    else:
        parts = ("",) if _varies(numbers[known]) else ()
    has_indicator = bool(known.any() and not known.all())
    note = reading.note
    if not parts and not has_indicator:
        note = "left out, with a single value." if known.any() else "left out, with no value."
    return replace(reading, parts=parts, typical=typical, has_indicator=has_indicator, note=note)


def _learn_category(
    reading: Column,
    levels: NDArray[np.str_],
    index: NDArray[np.intp],
    weights: Floats,
    max_categories: int,
) -> Column:
    """A column of levels or texts, without what needs the target."""
    n_rows = int(np.count_nonzero(index >= 0))
    counts = np.bincount(index + 1, weights, len(levels) + 1)[1:]
    order = np.argsort(-counts, kind="stable")[:max_categories]
    kind, note, parts = "category", reading.note, levels[:0]
    if len(levels) == 2 and n_rows == len(index):
        parts = levels[1:]  # of two levels one column says it all
    elif len(levels) > max_categories:
        kind = _kind_of_many(levels, n_rows)
        if kind == "many levels":
            parts = levels[order[counts[order] >= 0.01 * counts.sum()]]
        if kind == "category":
            note = "left out, nearly every row has a different text."
    elif len(levels) > 1 or 0 < n_rows < len(index):
        parts = levels[order]
    else:
        note = "left out, with a single value." if len(levels) else "left out, with no value."
    known = levels if parts.size else None
    parts = np.sort(parts)
    return replace(reading, kind=kind, parts=tuple(parts.tolist()), levels=known, note=note)


def _kind_of_many(levels: NDArray[np.str_], n_rows: int) -> str:
    """Many levels or free text; a category for names of rows.

    Names are texts of one word that hardly ever come twice. Texts that come twice now and then are
    free text from four words on.
    """
    share = len(levels) / n_rows
    n_words = float(np.mean([len(words_of(text)) for text in levels[:2000].tolist()]))
    if n_words >= (2.0 if share >= 0.9 else 4.0) and share >= 0.5:
        return "text"
    return "many levels" if share < 0.9 else "category"


def _learn_from_targets(
    column: Column,
    levels: NDArray[np.str_],
    index: NDArray[np.intp],
    targets: Floats,
    weights: Floats,
    folds: NDArray[np.intp],
) -> tuple[Column, Floats]:
    """Free text with the words that help, or many levels with their means; those of the rows."""
    if column.kind == "text":
        words = helpful_words(levels.tolist(), index, targets, weights, folds)
        note = "left out, for held-out rows confirm none of its words; a text vectoriser sees more."
        column = replace(column, parts=words, note="" if words else note)
        return column, word_indicators([*levels.tolist(), ""], words)[index]
    means, held_out = learn_means(index, targets, weights, folds)
    if means.shape[1]:
        return replace(column, levels=levels, means=means), held_out
    note = f"{len(levels):,} levels whose target means differ by chance alone."
    return replace(column, note=column.note or note), held_out


def _median(values: Floats, weights: Floats) -> float:
    """Weighted median; with equal weights without sorting, and in halves against overflow."""
    if np.ptp(weights) == 0.0:
        return float(2.0 * np.median(0.5 * values))
    return float(weighted_quantiles(values, weights, np.array([0.5]))[0])


def _varies(values: Floats) -> bool:
    # Halves, so that no difference overflows; a range of less than this is rounding.
    return bool(values.size and np.ptp(0.5 * values) > 0.5e-9 * np.abs(values).max())


def _is_ready(columns: Sequence[Column], table: Table) -> bool:
    """Whether a table is a matrix in which nothing has to change."""
    plain = all(
        c.kind == "number" and c.parts and not c.has_indicator and not c.codes for c in columns
    )
    matrix, codes = table.matrix, table.hints.missing_values
    return matrix is not None and plain and not codes and bool(np.isfinite(matrix).all())


def _levels(values: NDArray[Any], rows: Any) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
    """Levels (L,), sorted, and the level of each row; -1 where it is missing."""
    levels = sorted({text for text in values.tolist() if text is not None})
    number = {text: i for i, text in enumerate(levels)}
    index = np.array([number.get(text, -1) for text in values.tolist()], dtype=np.intp)
    return np.array(levels, dtype=str), index[rows]


def _encoded(column: Column, values: NDArray[Any]) -> tuple[Floats, bool]:
    """Encoded columns (m, k) of the values of one column, and whether levels are unknown."""
    if not _names(column):
        return np.zeros((len(values), 0)), False
    if column.kind in ("number", "date"):
        missing = ~np.isfinite(values)[:, None]
        if column.kind == "date":
            parts = [PARTS.index(part) for part in column.parts]
            block = date_parts(values, column.typical)[:, parts]
        else:
            block = np.where(missing, column.typical, values[:, None])[:, : len(column.parts)]
        return np.concatenate([block, missing], axis=1) if column.has_indicator else block, False
    texts = values.tolist()
    if column.kind == "text":
        return word_indicators([text or "" for text in texts], column.parts), False
    number = {part: i for i, part in enumerate(column.parts)}
    block = np.eye(len(number) + 1)[[number.get(text, -1) for text in texts], :-1]
    if column.levels is None:
        return block, False
    asked = np.array([text or "" for text in texts])
    at = np.minimum(np.searchsorted(column.levels, asked), len(column.levels) - 1)
    is_known = column.levels[at] == asked
    if column.means is not None:
        means = column.means[np.where(is_known, at, len(column.levels))]
        block = np.concatenate([block, means], axis=1)
    return block, bool(np.any(asked[~is_known] != ""))
