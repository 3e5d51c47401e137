"""Rows that are not in memory, as the networks see them: encoded, standardised, read again.

A reader knows where the rows are and what can be learnt of them; from its survey it makes the
stream that a fit reads.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import map_arrays, to_numpy
from bowtienet.data.canonical import take_columns
from bowtienet.data.in_memory import InMemory
from bowtienet.data.random_rows import shuffled
from bowtienet.data.rows import Rows, join_rows, split, take_rows
from bowtienet.data.source import Source, in_order
from bowtienet.data.tables import Block
from bowtienet.inference.execution import block_rows
from bowtienet.inference.row_providers import RowProvider, StreamedRows
from bowtienet.inference.stochastic import Batches
from bowtienet.model.priors import BowTieModel
from bowtienet.representation.columns import Column
from bowtienet.representation.learning import learn_columns
from bowtienet.representation.representation import (
    PLAIN,
    Representation,
    View,
    encoded_rows,
    network_rows,
    standardized_rows,
)
from bowtienet.representation.survey import PieceSurvey, Survey, survey_piece

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class SourceReader:
    """Reads a source in this process."""

    source: Source

    def columns(self, max_categories: int) -> tuple[Column, ...]:
        """What one reading tells of the columns."""
        return learn_columns(self.source, max_categories=max_categories)

    def survey(self, columns: tuple[Column, ...], seed: int) -> Iterator[PieceSurvey]:
        """What one reading tells of the encoded rows, piece by piece."""
        for piece in range(self.source.n_pieces):
            yield survey_piece(self.source.read(piece), (seed, piece), columns)

    def rows(self, columns: tuple[Column, ...]) -> Rows:
        """All encoded rows, in memory."""
        return join_rows([encoded_rows(columns, block)[0] for block in self._blocks()])

    def stream(
        self, survey: Survey, n_held_out: int, representation: Representation
    ) -> SourceStream:
        """All rows; the first of the sample, which are held out, have weight 0."""
        lost = float(np.sum(survey.sample.rows.weights[:n_held_out]))
        return SourceStream(
            source=self.source,
            first_rows=survey.first_rows,
            n_rows=survey.n_rows,
            total_weight=survey.total_weight - lost,
            held_out=np.sort(survey.sample.positions[:n_held_out]),
            representation=representation,
            checksum=survey.checksum,
        )

    def _blocks(self) -> Iterable[Block]:
        """All rows; a table in memory is one block."""
        return [self.source.block] if isinstance(self.source, InMemory) else in_order(self.source)


@dataclass(frozen=True, kw_only=True)
class SourceStream:
    """A source as the networks see it; rows that are held out have weight 0."""

    source: Source
    first_rows: Indices
    n_rows: int
    total_weight: float
    held_out: Indices
    """Their positions, in order."""
    representation: Representation
    view: View = PLAIN
    inputs: Indices | None = None
    """The network's inputs that are left; None for all."""
    checksum: int | None = None
    """Of the encoded rows, if they come in one piece: their places must stay."""

    @property
    def n_pieces(self) -> int:
        """Parts that can be read in any order."""
        return self.source.n_pieces

    def read(self, piece: int) -> Iterator[Rows]:
        """Blocks of one part."""
        start = int(self.first_rows[piece])
        checksum = 0
        for block in self.source.read(piece):
            encoded, _ = encoded_rows(self.representation.columns, block)
            if self.checksum is not None:
                checksum = zlib.crc32(np.ascontiguousarray(encoded.inputs).data, checksum)
            rows = self._seen(encoded)
            stop = start + rows.inputs.shape[0]
            low, high = np.searchsorted(self.held_out, (start, stop))
            if high > low:
                weights = rows.weights.copy()
                weights[self.held_out[low:high] - start] = 0.0
                rows = replace(rows, weights=weights)
            yield rows
            start = stop
        if self.checksum is not None and self.checksum != checksum:
            raise ValueError(
                "X gave other rows than in the first pass, or the same in another order: let each "
                "pass be the same, without shuffling; batches are shuffled here."
            )

    def batches(self, batch_size: int, seed: int) -> Batches:
        """Minibatches in another order every epoch, the same for the same seed."""
        return partial(self._epoch, batch_size, seed)

    def provider(self, model: BowTieModel) -> RowProvider:
        """All rows, read again for every sweep."""
        return StreamedRows(
            self._in_order, self.n_rows, block_rows(model.architecture, outcome=model.outcome)
        )

    def seen_by(self, view: View, inputs: Indices | None) -> SourceStream:
        """The same rows as a member sees them, which may have lost inputs."""
        return replace(self, view=view, inputs=inputs)

    def close(self) -> None:
        """Nothing is held."""

    def _seen(self, encoded: Rows) -> Rows:
        rows = network_rows(self.view, standardized_rows(self.representation, encoded))
        return rows if self.inputs is None else take_columns(rows, self.inputs)

    def _epoch(self, batch_size: int, seed: int, epoch: int) -> Iterator[Rows]:
        self.source.check_unchanged()
        for batch in shuffled(self, batch_size, np.random.default_rng((seed, epoch))):
            if batch.weights.any():
                yield batch

    def _in_order(self) -> Iterator[Rows]:
        self.source.check_unchanged()
        for piece in range(self.n_pieces):
            yield from self.read(piece)


def arriving(source: Source, representation: Representation, batch_size: int) -> Iterator[Rows]:
    """Standardised rows of a source in batches; those of weight 0 are absent."""
    for block in in_order(source):
        rows = map_arrays(to_numpy, encoded_rows(representation.columns, block)[0])
        present = np.flatnonzero(rows.weights > 0.0)
        if present.size:
            present_rows = standardized_rows(representation, take_rows(rows, present))
            yield from split(present_rows, batch_size)
