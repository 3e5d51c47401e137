"""Rows larger than memory: opening a source of them, and reading it in order, mixed or sampled.

source = open_source("trips/", "fare")      Parquet files, memory maps, batches
for rows in in_order(source): ...           once through all rows
for rows in shuffled(source, 256, rng): ... the same in random minibatches
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from bowtienet._validation import whole
from bowtienet.data.arrow import ArrowSource, is_arrow, open_arrow
from bowtienet.data.batches import BatchSource, gives_batches
from bowtienet.data.blocks import BLOCK_ROWS, PIECE_ROWS, Source
from bowtienet.data.mapped import ArraySource
from bowtienet.data.rows import Rows, join_rows, split, take_rows

__all__ = [
    "BLOCK_ROWS",
    "PIECE_ROWS",
    "ArraySource",
    "ArrowSource",
    "BatchSource",
    "RowSample",
    "Source",
    "in_order",
    "open_source",
    "shuffled",
]


class Pieces(Protocol):
    """Anything that is read piece by piece: a source, or a part of one."""

    @property
    def n_pieces(self) -> int:
        """How many parts can be read in any order."""

    def read(self, piece: int) -> Iterator[Rows]:
        """Blocks of one part."""


def open_source(
    X: Any,
    y: Any = None,
    weights: Any = None,
    *,
    inputs: Sequence[str] | None = None,
    read: Callable[[Any, str], Any] | None = None,
) -> Source | None:
    """The rows behind `X`, to be read block by block; None if `X` is an ordinary table in memory.

    Parameters
    ----------
    X : path, pyarrow Dataset, pyarrow table, numpy.memmap or batches
        A Parquet or Arrow file, a folder of them (hive folders such as ``year=2024`` are columns),
        a list of files, or the URI of a Parquet file or folder in other storage; a
        ``pyarrow.dataset.Dataset``; a pyarrow table of which `y` or `inputs` name columns; a memory
        map (rows, columns); or anything that can be iterated over again and again and gives
        ``(X, y)`` or ``(X, y, weights)``, counted from batch 0 (or `X` alone).
    y : name, list of names, or array, optional
        The targets: names for files and pyarrow tables, an array (rows,) or (rows, outputs) for a
        memory map, nothing for batches. Without targets the source is one for prediction.
    weights : name or array, optional
        How many times each row counts, in the same way; 1 by default.
    inputs : list of names, optional
        The columns of files or pyarrow tables that are inputs, and the only ones read besides
        targets and weights. By default all others; not the unnamed index of a pandas frame, and
        of hive folders those that are numbers.
    read : callable, optional
        Turns the table of a batch into an array of floats: ``read(values, "X")`` or
        ``read(values, "y")``.
    """
    if is_arrow(X, y, inputs):
        return open_arrow(X, y, weights, inputs)
    if isinstance(X, np.memmap):
        return ArraySource(X, y, weights)
    if y is None and gives_batches(X):
        if weights is not None:
            raise ValueError(
                "weights must come with the batches when X gives batches: let each be "
                "(X, y, weights)."
            )
        return BatchSource(X, read)
    return None


def in_order(source: Pieces) -> Iterator[Rows]:
    """All rows once, piece after piece."""
    for piece in range(source.n_pieces):
        yield from source.read(piece)


def shuffled(
    source: Pieces, batch_size: int, rng: np.random.Generator, pool_rows: int = 131_072
) -> Iterator[Rows]:
    """All rows once in random minibatches of `batch_size`; the last may be smaller.

    Pieces come in random order. Their rows are gathered in a pool of about `pool_rows`, which is
    permuted and cut into batches; what is left over goes to the next pool.
    """
    batch_size = whole(batch_size, "batch_size")
    full = max(whole(pool_rows, "pool_rows"), batch_size)
    pool: list[Rows] = []
    gathered = 0
    for piece in rng.permutation(source.n_pieces):
        for block in source.read(int(piece)):
            pool.append(block)
            gathered += block.inputs.shape[0]
            if gathered < full:
                continue
            *batches, rest = _cut(pool, batch_size, rng)
            yield from batches
            pool, gathered = [rest], rest.inputs.shape[0]
    if gathered:
        yield from _cut(pool, batch_size, rng)


WAITING_ROWS = 2_048
"""New rows of a sample that are sorted in together."""


class RowSample:
    """A uniform sample without replacement of at most `size` rows of a stream of any length.

    Every row is given a random key and those with the smallest keys stay, so the sample depends on
    the rows and on `rng`, not on how the rows are cut into blocks. Rows of weight 0 are passed
    over.

    Attributes
    ----------
    rows : Rows
        The sample in the order of its keys: any first part of it is a uniform sample too.
    positions : array of int
        Where in the stream these rows were.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size = whole(size, "size")
        self._rng = rng
        self._keys = np.empty(0)
        self._positions = np.empty(0, dtype=np.int64)
        self._rows: Rows | None = None
        self._waiting: list[tuple[np.ndarray, np.ndarray, Rows]] = []

    @property
    def rows(self) -> Rows:
        """The sample in the order of its keys."""
        self._sort_in()
        if self._rows is None:
            raise ValueError("The sample has no rows: add a block first.")
        return self._rows

    @property
    def positions(self) -> np.ndarray:
        """Where in the stream these rows were."""
        self._sort_in()
        return self._positions

    def add(self, rows: Rows, start: int) -> None:
        """Let the rows of a block, the first of them at position `start`, take part."""
        keys = self._rng.random(rows.inputs.shape[0])
        self._offer(keys, start + np.arange(len(keys)), rows)

    def merge(self, other: RowSample, start: int) -> None:
        """Let the sample of another stretch of the stream, which begins at `start`, take part.

        The result is as good as one sample of both only if `other` has at least the same size.
        """
        if other.size < self.size:
            raise ValueError(
                f"other is a sample of size {other.size}, but at least {self.size} is needed."
            )
        other._sort_in()
        if other._rows is not None:
            self._offer(other._keys, start + other._positions, other._rows)

    def _offer(self, keys: np.ndarray, positions: np.ndarray, rows: Rows) -> None:
        limit = self._keys[-1] if self._keys.size == self.size else 1.0
        new = np.flatnonzero((rows.weights > 0.0) & (keys < limit))
        if new.size or self._rows is None:
            self._waiting.append((keys[new], positions[new], take_rows(rows, new)))
        # Sorting in for every small block would copy the sample again and again.
        if self._rows is None or sum(len(w[0]) for w in self._waiting) >= WAITING_ROWS:
            self._sort_in()

    def _sort_in(self) -> None:
        if not self._waiting:
            return
        keys, positions, rows = zip(*self._waiting, strict=True)
        self._waiting = []
        merged = np.concatenate([self._keys, *keys])
        order = np.argsort(merged, kind="stable")[: self.size]
        kept = rows if self._rows is None else (self._rows, *rows)
        self._keys = merged[order]
        self._positions = np.concatenate([self._positions, *positions])[order]
        self._rows = take_rows(join_rows(kept), order)


def _cut(pool: Sequence[Rows], size: int, rng: np.random.Generator) -> list[Rows]:
    rows = join_rows(pool)
    return split(take_rows(rows, rng.permutation(rows.inputs.shape[0])), size)
