"""A table in memory as a source of rows."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from bowtienet._old._arrays import slices, to_numpy
from bowtienet._old.data.labels import encode_labels
from bowtienet._old.data.source import PIECE_ROWS, Source
from bowtienet._old.data.tables import Block, read_block, slice_block, take_block
from bowtienet._old.data.targets import NUMBERS, Reading


class InMemory(Source):
    """Rows of an array, a list or a frame, read and checked once; `block` has all of them."""

    in_memory = True

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, *, reading: Reading = NUMBERS, **settings: Any
    ) -> None:
        self.block, layout = read_block(X, y, sample_weight, reading=reading, **settings)
        self.reading = replace(reading, classes=layout.classes)
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

    def part_classes(self) -> Iterator[np.ndarray]:
        """All classes."""
        if self.classes is not None:
            yield self.classes

    def with_classes(self, classes: np.ndarray) -> InMemory:
        """The same rows, coded by other classes, which have all labels."""
        other = super().with_classes(classes)
        if self.classes is not None:
            labels = self.classes[self.block.targets[:, 0].astype(np.intp)]
            other.block = replace(self.block, targets=encode_labels(labels, classes))
        return other

    def _cut(self) -> None:
        self._pieces = slices(self.block.table.n_rows, PIECE_ROWS)
        self.n_pieces = len(self._pieces)
