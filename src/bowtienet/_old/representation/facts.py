"""Facts of a table's columns, gathered block by block and merged, from which columns are decided.

Numbers leave their range and a sample of rows, texts a dictionary. Both are bounded, and small
tables leave everything: the merged facts of blocks are then those of the whole table.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, namespace, to_numpy
from bowtienet._old.data.random_rows import RowSample, row_keys
from bowtienet._old.data.rows import Rows
from bowtienet._old.data.tables import Table, take_table
from bowtienet._old.representation.kinds import NUMBER, Texts, read_column

Floats = NDArray[np.float64]

KEPT = 50_000
"""Most rows of the sample of numbers, and most texts of a column."""
KEPT_NUMBERS = 10_000_000
"""Most numbers of the sample: of tables of more than 200 columns fewer rows are kept."""
SEED = 0
"""What a column is does not depend on the seed of a fit."""


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """Texts of one column, without what is missing."""

    n_values: int
    counts: Counter[str]
    """How often each text occurs; of more than KEPT texts, those of the smallest checksums.

    A checksum depends on the text alone, so that all blocks keep the same texts.
    """
    weights: Counter[str]
    """Sum of the weights of the rows of each, which need not be whole."""
    declared: bool
    """Whether a table says that they are categories."""


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """What is known of the D columns of some rows; rows of weight 0 are absent."""

    names: tuple[str, ...]
    n_read: int
    """All rows, those of weight 0 too."""
    n_rows: int
    kinds: tuple[frozenset[str], ...]
    """Kinds of the numbers that each column holds; none if there are only texts, or nothing."""
    n_missing: NDArray[np.int64]
    low: Floats
    """Smallest number of each column; infinity without one."""
    high: Floats
    """Largest number of each column; minus infinity without one."""
    sample: RowSample
    """Numbers (k, D) of some rows, NaN where there is none, as inputs; no targets."""
    texts: tuple[TextFacts | None, ...]
    """None for columns without texts."""


def gather_facts(table: Table, weights: Array | None = None, start: int = 0) -> TableFacts:
    """Facts of one block, in which rows of weight 0 are absent; its first row is at `start`."""
    n_read, keys = table.n_rows, row_keys(SEED, start, table.n_rows)
    row_weights = np.ones(n_read) if weights is None else np.array(to_numpy(weights), float)
    present = row_weights > 0.0
    if not present.all():
        table, row_weights = take_table(table, np.flatnonzero(present)), row_weights[present]
    names = table.names or tuple(f"x{place}" for place in range(table.n_columns))
    matrix, kinds, texts = _read(table, names, row_weights)
    n_missing, low, high = _ranges(matrix)
    n_missing -= np.array([0 if found is None else found.n_values for found in texts], np.int64)
    sample = _sample(table.n_columns)
    sample.add(Rows(inputs=matrix, targets=matrix[:, :0], weights=row_weights), 0, keys[present])
    return TableFacts(
        names=names,
        n_read=n_read,
        n_rows=table.n_rows,
        kinds=tuple(
            frozenset([kind] if some else []) for kind, some in zip(kinds, low <= high, strict=True)
        ),
        n_missing=n_missing,
        low=low,
        high=high,
        sample=sample,
        texts=texts,
    )


def merge_facts(*parts: TableFacts) -> TableFacts:
    """Facts of all rows from those of disjoint blocks."""
    if len(parts) == 1:
        return parts[0]
    sample = _sample(len(parts[0].names))
    for part in parts:
        sample.merge(part.sample, 0)
    return TableFacts(
        names=parts[0].names,
        n_read=sum(part.n_read for part in parts),
        n_rows=sum(part.n_rows for part in parts),
        kinds=tuple(
            frozenset().union(*kinds) for kinds in zip(*(p.kinds for p in parts), strict=True)
        ),
        n_missing=np.sum([part.n_missing for part in parts], axis=0),
        low=np.min([part.low for part in parts], axis=0),
        high=np.max([part.high for part in parts], axis=0),
        sample=sample,
        texts=tuple(map(_merge_texts, zip(*(part.texts for part in parts), strict=True))),
    )


def _sample(n_columns: int) -> RowSample:
    """An empty sample of rows of numbers; their keys follow from their positions."""
    size = min(KEPT, max(1_000, KEPT_NUMBERS // max(n_columns, 1)))
    return RowSample(size, np.random.default_rng(SEED))


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
        TextFacts(
            n_values=len(codes),
            counts=Counter(dict(zip(found.distinct, counts, strict=True))),
            weights=Counter(dict(zip(found.distinct, weights, strict=True))),
            declared=found.declared,
        )
    )


def _merge_texts(parts: Iterable[TextFacts | None]) -> TextFacts | None:
    present = [part for part in parts if part is not None]
    if not present:
        return None
    return _bounded(
        TextFacts(
            n_values=sum(part.n_values for part in present),
            counts=sum((part.counts for part in present), Counter()),
            weights=sum((part.weights for part in present), Counter()),
            declared=any(part.declared for part in present),
        )
    )


def _bounded(facts: TextFacts) -> TextFacts:
    if len(facts.counts) <= KEPT:
        return facts
    checksums = {text: zlib.crc32(text.encode(errors="replace")) for text in facts.counts}
    kept = sorted(checksums, key=checksums.__getitem__)[:KEPT]
    return replace(
        facts,
        counts=Counter({text: facts.counts[text] for text in kept}),
        weights=Counter({text: facts.weights[text] for text in kept}),
    )
