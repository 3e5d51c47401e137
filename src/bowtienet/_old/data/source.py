"""What every source of rows has in common: its interface and its blocks.

A source is read block by block and as often as wanted, so that it may be larger than memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.labels import join_classes
from bowtienet._old.data.tables import Block, Layout, block_classes, read_block
from bowtienet._old.data.targets import NUMBERS, Reading

BLOCK_ROWS = 65_536
"""No block has more rows."""
PIECE_ROWS = 4_096
"""Rows in a piece of a table in memory or in a memory map: few enough to mix well."""


class Source(ABC):
    """Rows that are read block by block, as often as wanted.

    A source can be pickled: it holds paths and settings, and opens files only to read them.

    Attributes
    ----------
    feature_names, target_names : tuple of str, or None
        Names of the columns, None if they have none.
    n_features, n_targets : int
        Numbers of columns; no targets for a source of features alone. The logs of exposures in
        the last column of the blocks' targets do not count.
    single_target : bool
        Whether the targets were given as one column (1-D, or one name), not as a table.
    n_pieces : int
        Parts that can be read in any order; 1 for what can only be read from its beginning.
    in_memory : bool
        Whether all rows are in memory as one `Block`, the attribute `block`.
    reading : Reading
        What the targets are: numbers, labels of classes, or counts.
    has_exposure : bool
        Whether the last column of the blocks' targets has logs of exposures.
    classes : array, or None
        Sorted classes if the targets are labels; a target is the number of its class.
    """

    feature_names: tuple[str, ...] | None
    target_names: tuple[str, ...] | None
    n_features: int
    n_targets: int
    single_target: bool
    n_pieces: int
    in_memory: bool = False
    reading: Reading = NUMBERS
    has_exposure: bool = False

    @abstractmethod
    def read(self, piece: int) -> Iterator[Block]:
        """Blocks of a piece in the user's units, of at most BLOCK_ROWS rows.

        Targets have the shape (rows, n_targets), also (rows, 0), or one column more if
        `has_exposure`; weights may all be zero. The same piece gives the same rows in the same
        order every time.
        """

    def check_unchanged(self) -> None:  # noqa: B027 (most sources have no means to tell)
        """Raise if a file behind the rows is no longer what it was when it was opened."""

    @property
    def classes(self) -> np.ndarray | None:
        """Sorted classes if the targets are labels."""
        return self.reading.classes

    def part_classes(self) -> Iterator[np.ndarray]:
        """Sorted classes of each part of the rows; other columns are not read if possible."""
        raise ValueError(f"the classes of a {type(self).__name__} are not known: give classes.")

    def with_classes(self, classes: np.ndarray) -> Self:
        """The same rows, with labels coded by these classes, which are sorted."""
        other = copy(self)
        other.reading = replace(self.reading, classes=classes)
        return other

    def set_layout(self, layout: Layout) -> None:
        """Take names and numbers of columns from those of a block."""
        self.feature_names, self.n_features = layout.feature_names, layout.n_features
        self.target_names, self.n_targets = layout.target_names, layout.n_targets
        self.single_target, self.has_exposure = layout.single_target, layout.has_exposure


def in_order(source: Source) -> Iterator[Block]:
    """All rows once, piece after piece."""
    for piece in range(source.n_pieces):
        yield from source.read(piece)


def find_classes(source: Source) -> np.ndarray:
    """Sorted classes of all labels, read once."""
    return join_classes(source.part_classes())


def log_exposures(source: Source, block: Block) -> np.ndarray:
    """Logs (rows,) of the exposures of a block of `source`; zeros if it has none."""
    if not source.has_exposure:
        return np.zeros(block.table.n_rows)
    return _double(block.targets[:, -1])


def read_part(where: str, X: Any, y: Any, sample_weight: Any, **settings: Any) -> tuple[Block, Any]:
    """`read_block` of a part of a stream, as NumPy arrays; errors say `where` it is.

    They keep their precision: the same numbers in memory would be fitted in it, too.
    """
    with _told(where):
        block, layout = read_block(X, y, sample_weight, **settings)
    matrix = block.table.matrix
    table = block.table if matrix is None else replace(block.table, matrix=to_numpy(matrix))
    targets, weights = to_numpy(block.targets), to_numpy(block.weights)
    return Block(table=table, targets=targets, weights=weights), layout


def read_part_classes(where: str, X: Any, y: Any) -> np.ndarray:
    """`block_classes` of a part of a stream; errors say `where` it is."""
    with _told(where):
        return block_classes(X, y)


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Let errors begin with `where` they are."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{where}: {error}") from error


def _double(values: Any) -> np.ndarray:
    return to_numpy(values).astype(np.float64, copy=False)
