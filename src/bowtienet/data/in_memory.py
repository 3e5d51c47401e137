"""A table in memory as a source of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from bowtienet._arrays import slices, to_numpy
from bowtienet.data.source import PIECE_ROWS, Source
from bowtienet.data.tables import Block, read_block, slice_block, take_block


class InMemory(Source):
    """Rows of an array, a list or a frame, read and checked once.

    Parameters
    ----------
    X, y, sample_weight, features
        See `open_source`.

    Attributes
    ----------
    block : Block
        All rows.
    """

    in_memory = True

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, *, features: Sequence[str] | None = None
    ) -> None:
        self.block, layout = read_block(X, y, sample_weight, features=features)
        if not np.any(to_numpy(self.block.weights) > 0.0):
            raise ValueError(
                "sample_weight is zero for all rows: at least one must have a positive weight."
            )
        self.set_layout(layout)
        self._cut()

    def read(self, piece: int) -> Iterator[Block]:
        """The one block of a piece."""
        yield slice_block(self.block, self._pieces[piece])

    def take(self, rows: np.ndarray) -> InMemory:
        """Some of the rows, in the given order."""
        some = copy(self)
        some.block = take_block(self.block, rows)
        some._cut()
        return some

    def check_unchanged(self) -> None:
        """What is in memory was read when the source was made."""

    def _cut(self) -> None:
        self._pieces = slices(self.block.table.n_rows, PIECE_ROWS)
        self.n_pieces = len(self._pieces)
