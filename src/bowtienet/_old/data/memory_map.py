"""Memory maps as a source of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bowtienet._old._arrays import slices
from bowtienet._old.data.parsing import check_lengths, check_rank
from bowtienet._old.data.source import PIECE_ROWS, Source, read_part, read_part_classes
from bowtienet._old.data.tables import Block
from bowtienet._old.data.targets import NUMBERS, Reading


class MemoryMap(Source):
    """Rows of a memory map in pieces of 4,096; only the piece that is read is ever converted.

    joblib sends memory maps to other processes by the name of their file.
    """

    def __init__(
        self,
        X: np.memmap,
        y: Any = None,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        reading: Reading = NUMBERS,
    ) -> None:
        self.reading = reading
        given = {"X": X, "y": y, "sample_weight": sample_weight, "exposure": exposure}
        self._arrays = [_array(values, name) for name, values in given.items()]
        n_rows = len(X)
        for array, name in zip(self._arrays, given, strict=True):
            if array is not None:
                check_lengths(len(array), n_rows, name)
        self._pieces = slices(n_rows, PIECE_ROWS)
        self.n_pieces = len(self._pieces)
        # One row is enough to know the columns, and to refuse what cannot be read at all.
        self.set_layout(self._read("X", slice(0, 1))[1])

    def read(self, piece: int) -> Iterator[Block]:
        """The one block of a piece."""
        part = self._pieces[piece]
        yield self._read(_where(part), part)[0]

    def part_classes(self) -> Iterator[np.ndarray]:
        """Classes of each piece."""
        for part in self._pieces:
            X, y, _, _ = self._rows(part)
            yield read_part_classes(_where(part), X, y)

    def _read(self, where: str, part: slice) -> tuple[Block, Any]:
        X, y, weights, exposure = self._rows(part)
        return read_part(where, X, y, weights, exposure=exposure, reading=self.reading)

    def _rows(self, part: slice) -> list[np.ndarray | None]:
        return [None if array is None else np.asarray(array[part]) for array in self._arrays]


def _where(part: slice) -> str:
    return f"rows {part.start} to {part.stop - 1} of X"


def _array(values: Any, name: str) -> np.ndarray | None:
    if values is None:
        return None
    if isinstance(values, str):
        raise ValueError(f"{name} is a name, but the columns of a memory map have none.")
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    check_rank(array.shape, name)
    # joblib cannot send views that run backwards.
    return array.copy() if min(array.strides) < 0 else array
