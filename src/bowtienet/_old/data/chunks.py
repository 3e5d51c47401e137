"""Chunks: the rows of a table cut by their position alone, whatever holds them.

    chunk k = rows k C ... (k + 1) C - 1

Sums over many rows round, and the order of their terms decides how. Moments of columns and
statistics of a fit are therefore summed chunk by chunk: an array, a file, a memory map, batches and
a Dask table with the same rows give sums with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bowtienet._old._arrays import Array, to_numpy
from bowtienet._old.data.rows import Rows, join_rows, split

CHUNK_ROWS = 16_384
"""Rows of a chunk, at most: enough for a task of a cluster;"""
CHUNK_BYTES = 2**25
"""and of many columns fewer, so that a chunk takes no more than this;"""
FEWEST_ROWS = 64
"""but no fewer than these."""


def chunk_rows(n_columns: int) -> int:
    """Rows of a chunk of a table with so many encoded columns."""
    return max(FEWEST_ROWS, min(CHUNK_ROWS, CHUNK_BYTES // (8 * max(n_columns, 1))))


def rechunk(parts: Iterable[Rows], size: int) -> Iterator[Rows]:
    """Consecutive rows, cut anew: `size` rows in each chunk, fewer only in the last."""
    waiting: list[Rows] = []
    count = 0
    for part in parts:
        waiting.append(part)
        count += part.inputs.shape[0]
        if count < size:
            continue
        *full, rest = split(join_rows(waiting), size)
        yield from map(plain_rows, full)
        count = rest.inputs.shape[0]
        waiting = [rest]
        if count == size:
            yield plain_rows(rest)
            waiting, count = [], 0
    if count:
        yield plain_rows(join_rows(waiting))


def overlaps(sizes: Sequence[int], chunk: int) -> list[list[tuple[int, slice]]]:
    """Of each chunk its parts, by their number, and which rows of them; parts have `sizes` rows."""
    found: list[list[tuple[int, slice]]] = []
    room = 0
    for part, size in enumerate(sizes):
        start = 0
        while start < size:
            if room == 0:
                found.append([])
                room = chunk
            stop = min(size, start + room)
            found[-1].append((part, slice(start, stop)))
            room -= stop - start
            start = stop
    return found


def plain_rows(rows: Rows) -> Rows:
    """The rows in double precision and in one order in memory, which products round by too."""
    return Rows(
        inputs=_plain(rows.inputs), targets=_plain(rows.targets), weights=_plain(rows.weights)
    )


def _plain(values: Array) -> np.ndarray:
    return np.ascontiguousarray(to_numpy(values), dtype=np.float64)
