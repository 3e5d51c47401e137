"""Facts of a table's columns, gathered block by block and merged, from which columns are decided.

Numbers leave their range and a sample of rows, texts a dictionary. Both are bounded, and small
tables leave everything: the merged facts of blocks are then those of the whole table.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import Array, namespace, take, to_numpy
from bowtienet.data.tables import Table
from bowtienet.representation.kinds import NUMBER, Texts, read_column

Floats = NDArray[np.float64]

KEPT = 50_000
"""Most rows of the sample of numbers, and most texts of a column."""
KEPT_NUMBERS = 10_000_000
"""Most numbers of the sample: of tables of more than 200 columns fewer rows are kept."""


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """Texts of one column, without what is missing."""

    n_values: int
    counts: dict[str, int]
    """How often each text occurs; of more than KEPT texts, those of the smallest checksums.

    A checksum depends on the text alone, so that all blocks keep the same texts.
    """
    weights: dict[str, float]
    """Sum of the weights of the rows of each."""
    complete: bool
    """Whether no text was dropped."""
    repeated: bool
    """Whether a text occurs twice."""
    declared: bool
    """Whether a table says that they are categories."""


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """What is known of the D columns of some rows; rows of weight 0 are absent."""

    names: tuple[str, ...]
    n_rows: int
    kinds: tuple[frozenset[str], ...]
    """Kinds of the numbers that each column holds; none if there are only texts, or nothing."""
    n_missing: NDArray[np.int64]
    low: Floats
    """Smallest number of each column; infinity without one."""
    high: Floats
    """Largest number of each column; minus infinity without one."""
    keys: Floats
    """Random keys (k,) of a sample of rows: those of the smallest keys are kept."""
    row_weights: Floats
    """Their weights (k,)."""
    sample: Floats
    """Their numbers (k, D); NaN where there is none."""
    texts: tuple[TextFacts | None, ...]
    """None for columns without texts."""


def gather_facts(table: Table, weights: Array | None = None) -> TableFacts:
    """Facts of one block, in which rows of weight 0 are absent."""
    row_weights = np.ones(table.n_rows) if weights is None else np.array(to_numpy(weights), float)
    present = row_weights > 0.0
    if not present.all():
        table, row_weights = _rows_of(table, np.flatnonzero(present)), row_weights[present]
    names = table.names or tuple(f"x{place}" for place in range(table.n_columns))
    matrix, kinds, texts = _read(table, names, row_weights)
    n_missing, low, high = _ranges(matrix)
    n_missing -= np.array([0 if found is None else found.n_values for found in texts], np.int64)
    # Random, other ones for every block, and the same for the same block.
    seed = zlib.crc32(np.ascontiguousarray(to_numpy(matrix[:1, :])).data)
    keys = np.random.default_rng(seed).random(table.n_rows)
    kept = _smallest(keys, table.n_columns)
    return TableFacts(
        names=names,
        n_rows=table.n_rows,
        kinds=tuple(
            frozenset([kind] if some else []) for kind, some in zip(kinds, low <= high, strict=True)
        ),
        n_missing=n_missing,
        low=low,
        high=high,
        keys=keys[kept],
        row_weights=row_weights[kept],
        sample=np.asarray(to_numpy(take(matrix, kept)), dtype=np.float64),
        texts=texts,
    )


def merge_facts(*parts: TableFacts) -> TableFacts:
    """Facts of all rows from those of disjoint blocks."""
    if len(parts) == 1:
        return parts[0]
    keys = np.concatenate([part.keys for part in parts])
    kept = _smallest(keys, len(parts[0].names))
    return TableFacts(
        names=parts[0].names,
        n_rows=sum(part.n_rows for part in parts),
        kinds=tuple(
            frozenset().union(*kinds) for kinds in zip(*(p.kinds for p in parts), strict=True)
        ),
        n_missing=np.sum([part.n_missing for part in parts], axis=0),
        low=np.min([part.low for part in parts], axis=0),
        high=np.max([part.high for part in parts], axis=0),
        keys=keys[kept],
        row_weights=np.concatenate([part.row_weights for part in parts])[kept],
        sample=np.concatenate([part.sample for part in parts])[kept],
        texts=tuple(map(_merge_texts, zip(*(part.texts for part in parts), strict=True))),
    )


def _rows_of(table: Table, rows: NDArray[np.intp]) -> Table:
    given: dict[str, Any] = {"n_columns": table.n_columns, "names": table.names}
    if table.matrix is not None:
        return Table(**given, n_rows=len(rows), matrix=take(table.matrix, rows), columns=None)
    columns = tuple(column[rows] for column in table.columns or ())
    return Table(**given, n_rows=len(rows), matrix=None, columns=columns)


def _smallest(keys: Floats, n_columns: int) -> NDArray[np.intp]:
    """Places of the keys that are kept, in their order."""
    most = min(KEPT, max(1_000, KEPT_NUMBERS // max(n_columns, 1)))
    if len(keys) <= most:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, most)[:most])


def _read(
    table: Table, names: Sequence[str], row_weights: Floats
) -> tuple[Array, Sequence[str], tuple[TextFacts | None, ...]]:
    """Numbers (n, D) with NaN where there are none, their kinds, and facts of the texts."""
    if table.matrix is not None:
        return table.matrix, [NUMBER] * table.n_columns, (None,) * table.n_columns
    kinds = [NUMBER] * table.n_columns
    texts: list[TextFacts | None] = [None] * table.n_columns
    matrix = np.full((table.n_rows, table.n_columns), np.nan, order="F")
    for place, (name, column) in enumerate(zip(names, table.columns or (), strict=True)):
        found = read_column(column, name)
        if isinstance(found, Texts):
            texts[place] = _text_facts(found, row_weights)
        else:
            kinds[place], matrix[:, place] = found.kind, found.values
    return matrix, kinds, tuple(texts)


def _ranges(matrix: Array) -> tuple[NDArray[np.int64], Floats, Floats]:
    """How many numbers are missing in each column, and the least and largest of the others."""
    xp = namespace(matrix)
    n_rows, n_columns = matrix.shape
    n_missing = np.zeros(n_columns, dtype=np.int64)
    if n_rows == 0:
        return n_missing, np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    least, largest = xp.min(matrix, axis=0), xp.max(matrix, axis=0)
    if bool(xp.any(xp.isnan(least))):
        missing = xp.isnan(matrix)
        n_missing += to_numpy(xp.count_nonzero(missing, axis=0))
        infinity = xp.full_like(matrix, float("inf"))
        least = xp.min(xp.where(missing, infinity, matrix), axis=0)
        largest = xp.max(xp.where(missing, -infinity, matrix), axis=0)
    return n_missing, np.asarray(to_numpy(least), float), np.asarray(to_numpy(largest), float)


def _text_facts(found: Texts, row_weights: Floats) -> TextFacts:
    present = found.codes >= 0
    codes, size = found.codes[present], len(found.distinct)
    counts = np.bincount(codes, minlength=size).tolist()
    weights = np.bincount(codes, weights=row_weights[present], minlength=size).tolist()
    return _bounded(
        n_values=len(codes),
        counts=dict(zip(found.distinct, counts, strict=True)),
        weights=dict(zip(found.distinct, weights, strict=True)),
        complete=True,
        repeated=size < len(codes),
        declared=found.declared,
    )


def _merge_texts(parts: Iterable[TextFacts | None]) -> TextFacts | None:
    present = [part for part in parts if part is not None]
    return reduce(_merge_two_texts, present) if present else None


def _merge_two_texts(first: TextFacts, second: TextFacts) -> TextFacts:
    counts, weights = dict(first.counts), dict(first.weights)
    for text, count in second.counts.items():
        counts[text] = counts.get(text, 0) + count
        weights[text] = weights.get(text, 0.0) + second.weights[text]
    shared = len(counts) < len(first.counts) + len(second.counts)
    return _bounded(
        n_values=first.n_values + second.n_values,
        counts=counts,
        weights=weights,
        complete=first.complete and second.complete,
        repeated=first.repeated or second.repeated or shared,
        declared=first.declared or second.declared,
    )


def _bounded(*, counts: dict[str, int], weights: dict[str, float], **others: Any) -> TextFacts:
    if len(counts) <= KEPT:
        return TextFacts(counts=counts, weights=weights, **others)
    sums = np.fromiter((zlib.crc32(text.encode(errors="replace")) for text in counts), np.uint32)
    limit = np.partition(sums, KEPT - 1)[KEPT - 1]
    kept = [text for text, checksum in zip(counts, sums, strict=True) if checksum <= limit]
    return TextFacts(
        **{**others, "complete": False},
        counts={text: counts[text] for text in kept},
        weights={text: weights[text] for text in kept},
    )
