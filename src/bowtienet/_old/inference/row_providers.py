"""Row providers: the rows of a fit and their local factors, in memory or read again for each pass.

Coordinate ascent asks its row provider for sums over all rows and never sees a row. Whatever can
add up statistics can be a row provider: workers of a cluster are one too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from bowtienet._old._arrays import Array
from bowtienet._old.data.chunks import CHUNK_ROWS, rechunk
from bowtienet._old.data.rows import Rows, split
from bowtienet._old.inference.execution import (
    Block,
    Mapper,
    block_rows,
    build_blocks,
    initialize_memory,
    local_pass,
)
from bowtienet._old.inference.statistics import Statistics
from bowtienet._old.model.architecture import Architecture
from bowtienet._old.model.outcomes import GAUSSIAN, Outcome
from bowtienet._old.model.priors import BowTieModel, check_rows
from bowtienet._old.posterior.factors import GlobalFactors, LocalMemory


class RowProvider(Protocol):
    """Rows cut into blocks for an architecture, and passes over them.

    What `begin` and `local_pass` answer as memory stands for the local factors of all rows; only
    the provider looks into it, and an older one stays good until the pass after the next, because
    a sweep may be undone.
    """

    n_rows: int
    """Rows that a pass visits."""
    rebuilt: bool
    """Whether local factors were lost and built anew in the last pass: its bound may fall."""

    def check(self, model: BowTieModel) -> None:
        """Refuse rows that do not fit the architecture and the outcome."""

    def begin(self, model: BowTieModel, factors: GlobalFactors, apply: Mapper) -> Any:
        """Memory of all rows from a forward pass."""

    def local_pass(
        self, model: BowTieModel, factors: GlobalFactors, memory: Any, apply: Mapper
    ) -> tuple[Statistics, Any]:
        """Update the local factors of all rows once, and add up their statistics."""


class _Blocks:
    """Passes over blocks of rows that this process works on itself."""

    reference: Array | None = None
    """Library and precision of the rows; None to look at the first block."""
    rebuilt = False
    blocks_of_chunk: int | None = None
    """Blocks that are summed before others; None for one sum of all."""

    @property
    def blocks(self) -> Iterable[Rows]:
        """All rows, cut into blocks."""
        raise NotImplementedError

    def check(self, model: BowTieModel) -> None:
        """Refuse rows that do not fit the architecture and the outcome."""
        check_rows(model.architecture, next(iter(self.blocks)), model.outcome)

    def begin(
        self, model: BowTieModel, factors: GlobalFactors, apply: Mapper = map
    ) -> Sequence[LocalMemory]:
        """Memory of all rows from a forward pass."""
        return initialize_memory(model, factors, self.blocks, apply, self.reference)

    def local_pass(
        self,
        model: BowTieModel,
        factors: GlobalFactors,
        memory: Sequence[LocalMemory],
        apply: Mapper = map,
    ) -> tuple[Statistics, Sequence[LocalMemory]]:
        """Update the local factors of all rows once, and add up their statistics."""
        return local_pass(
            model, factors, self.blocks, memory, apply, self.reference, self.blocks_of_chunk
        )


class HeldRows(_Blocks):
    """Rows and local factors in the memory of this process."""

    def __init__(
        self,
        rows: Rows,
        architecture: Architecture,
        block_size: int | None = None,
        outcome: Outcome = GAUSSIAN,
    ) -> None:
        self.rows, self.block_size = rows, block_size
        self.n_rows = int(rows.inputs.shape[0])
        size = block_rows(architecture, block_size, outcome)
        self._blocks = build_blocks(rows, architecture, size)

    @property
    def blocks(self) -> list[Block]:
        """All rows, cut into blocks once."""
        return self._blocks


class StreamedRows(_Blocks):
    """Rows that are read anew for every pass; their local factors stay in memory.

    Rows are cut into chunks by their position, and these into blocks: how they come in parts
    changes no bit of the sums. Local factors take 8 bytes for each row and hidden unit (twice from
    the second layer on), and as much again while a pass replaces them.

    Parameters
    ----------
    read : callable
        All rows in parts, the same every time: NumPy arrays in double precision.
    n_rows : int
        How many there are.
    block_size : int
        Rows worked on at a time.
    chunk_size : int
        Rows whose statistics are summed before those of others.
    """

    reference = np.empty(0)

    def __init__(
        self,
        read: Callable[[], Iterable[Rows]],
        n_rows: int,
        block_size: int,
        chunk_size: int = CHUNK_ROWS,
    ) -> None:
        self.read, self.n_rows, self.block_size = read, n_rows, block_size
        self.chunk_size = chunk_size
        self.blocks_of_chunk = math.ceil(chunk_size / block_size)

    @property
    def blocks(self) -> Iterator[Rows]:
        """All rows, read once more."""
        chunks = rechunk(self.read(), self.chunk_size)
        return (block for rows in chunks for block in split(rows, self.block_size))
