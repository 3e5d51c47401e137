"""Memory maps as a source of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bowtienet._arrays import slices
from bowtienet.data.parsing import check_rank
from bowtienet.data.source import PIECE_ROWS, Source, read_part
from bowtienet.data.tables import Block, check_lengths


class MemoryMap(Source):
    """Rows of a memory map in pieces of 4,096; only the piece that is read is ever converted.

    joblib sends memory maps to other processes by the name of their file.

    Parameters
    ----------
    X : numpy.memmap (rows, columns)
    y : array (rows,) or (rows, outputs), optional
        Targets, in memory or mapped.
    sample_weight : array (rows,), optional
    """

    def __init__(self, X: np.memmap, y: Any = None, sample_weight: Any = None) -> None:
        self._arrays = [
            _array(values, name)
            for values, name in ((X, "X"), (y, "y"), (sample_weight, "sample_weight"))
        ]
        n_rows = len(X)
        for values, name in zip(self._arrays[1:], ("y", "sample_weight"), strict=True):
            if values is not None:
                check_lengths(len(values), n_rows, name)
        self._pieces = slices(n_rows, PIECE_ROWS)
        self.n_pieces = len(self._pieces)
        # One row is enough to know the columns, and to refuse what cannot be read at all.
        self.set_layout(read_part("X", *self._rows(slice(0, 1)))[1])

    def read(self, piece: int) -> Iterator[Block]:
        """The one block of a piece."""
        part = self._pieces[piece]
        yield read_part(f"rows {part.start} to {part.stop - 1} of X", *self._rows(part))[0]

    def check_unchanged(self) -> None:
        """Whoever maps a file may write to it."""

    def _rows(self, part: slice) -> list[np.ndarray | None]:
        return [None if array is None else np.asarray(array[part]) for array in self._arrays]


def _array(values: Any, name: str) -> np.ndarray | None:
    if values is None:
        return None
    if isinstance(values, str):
        raise ValueError(f"{name} is a name, but the columns of a memory map have none.")
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    check_rank(array.shape, name)
    # joblib cannot send views that run backwards.
    return array.copy() if min(array.strides) < 0 else array
