"""Rows in random order and random samples of rows, without knowing how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from bowtienet._old._validation import whole
from bowtienet._old.data.rows import Rows, join_rows, split, take_rows

WAITING_ROWS = 2_048
"""New rows of a sample that are sorted in together."""
POOL_ROWS = 131_072
"""Rows that are mixed with each other."""
KEY_ROWS = 4_096
"""Consecutive rows whose keys come from one generator."""


class Pieces(Protocol):
    """What gives rows piece by piece, such as those that networks see of a source."""

    @property
    def n_pieces(self) -> int:
        """How many parts can be read in any order."""

    def read(self, piece: int) -> Iterator[Rows]:
        """Rows of one part."""


def shuffled(
    pieces: Pieces,
    batch_size: int,
    rng: np.random.Generator,
    pool_rows: int = POOL_ROWS,
    n_rows: int | None = None,
) -> Iterator[Rows]:
    """All rows once in random minibatches of `batch_size`; the last may be smaller.

    Pieces come in random order. Their rows are gathered in a pool of about `pool_rows`, which is
    permuted and cut into batches; what is left over goes to the next pool. If all `n_rows`, where
    these are known, are one pool, pieces come in their own order: the batches then do not depend
    on how rows are cut into pieces.
    """
    batch_size = whole(batch_size, "batch_size")
    full = max(whole(pool_rows, "pool_rows"), batch_size)
    one_pool = n_rows is not None and n_rows <= full
    pool: list[Rows] = []
    gathered = 0
    for piece in range(pieces.n_pieces) if one_pool else rng.permutation(pieces.n_pieces):
        for rows in pieces.read(int(piece)):
            pool.append(rows)
            gathered += rows.inputs.shape[0]
            if gathered < full:
                continue
            *batches, rest = _cut(pool, batch_size, rng)
            yield from batches
            pool, gathered = [rest], rest.inputs.shape[0]
    if gathered:
        yield from _cut(pool, batch_size, rng)


def row_keys(seed: int, start: int, count: int) -> np.ndarray:
    """Random keys (count,) in [0, 1) of the rows from position `start` on.

    A key depends on the seed and on the position alone, so that parts of a table can be sampled
    apart, and the same rows of it whatever holds them.
    """
    first, last = start // KEY_ROWS, (start + max(count, 1) - 1) // KEY_ROWS
    drawn = [np.random.default_rng((seed, n)).random(KEY_ROWS) for n in range(first, last + 1)]
    begin = start - first * KEY_ROWS
    return np.concatenate(drawn)[begin : begin + count]


class RowSample:
    """A uniform sample without replacement of at most `size` rows of a stream of any length.

    Every row is given a random key and those with the smallest keys stay, so the sample depends on
    the rows and on `rng`, not on how the rows are cut into blocks. Rows of weight 0 are passed
    over.
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
        """The sample in the order of its keys: any first part of it is a uniform sample too."""
        self._sort_in()
        if self._rows is None:
            raise ValueError("The sample has no rows: add a block first.")
        return self._rows

    @property
    def positions(self) -> np.ndarray:
        """Where in the stream these rows were."""
        self._sort_in()
        return self._positions

    def add(self, rows: Rows, start: int, keys: np.ndarray | None = None) -> None:
        """Let the rows of a block, the first of them at position `start`, take part.

        With keys of their own, such as `row_keys`, the generator is not asked for any.
        """
        if keys is None:
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
