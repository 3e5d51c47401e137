"""Rows that are not in memory, as the networks see them: encoded, standardised, read again.

A reader knows where the rows are and what can be learnt of them; from its survey it makes the
stream that a fit reads.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import map_arrays, to_numpy
from bowtienet._old.data.canonical import take_columns
from bowtienet._old.data.chunks import chunk_rows, plain_rows, rechunk
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.random_rows import shuffled
from bowtienet._old.data.rows import Rows, join_rows, take_rows
from bowtienet._old.data.source import Source, in_order
from bowtienet._old.data.tables import Block
from bowtienet._old.inference.execution import block_rows
from bowtienet._old.inference.row_providers import RowProvider, StreamedRows
from bowtienet._old.inference.stochastic import Batches
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.representation.columns import Column, owners
from bowtienet._old.representation.learning import decide, facts_of_source
from bowtienet._old.representation.representation import (
    PLAIN,
    Representation,
    View,
    encoded_rows,
    network_rows,
    standardized_rows,
)
from bowtienet._old.representation.scaling import FARTHEST
from bowtienet._old.representation.survey import Survey, combine_surveys, survey_chunk

Indices = NDArray[np.intp]

OTHER_ROWS = (
    "X gave other rows than in the first pass, or the same in another order: let each pass be the "
    "same, without shuffling; batches are shuffled here."
)


@dataclass(frozen=True)
class SourceReader:
    """Reads a source in this process."""

    source: Source

    def columns(self, max_categories: int) -> tuple[tuple[Column, ...], int]:
        """What one reading tells of the columns, and the number of rows."""
        facts = facts_of_source(self.source)
        return decide(facts, max_categories), facts.n_read

    def count_rows(self) -> int:
        """The number of rows, by one reading."""
        return sum(block.table.n_rows for block in self._blocks())

    def survey(self, columns: tuple[Column, ...], seed: int, size: int) -> Survey:
        """What one reading tells of the encoded rows, with a sample of `size` of them."""
        chunk = chunk_rows(len(owners(columns)))
        places, checksum, alone = [0], 0, self.source.n_pieces == 1

        def encoded() -> Iterator[Rows]:
            nonlocal checksum
            for piece in range(self.source.n_pieces):
                count = 0
                for block in self.source.read(piece):
                    rows = plain_rows(encoded_rows(columns, block)[0])
                    checksum = zlib.crc32(rows.inputs.data, checksum) if alone else 0
                    count += rows.inputs.shape[0]
                    yield rows
                places.append(places[-1] + count)

        chunks = enumerate(rechunk(encoded(), chunk))
        survey = combine_surveys(survey_chunk(rows, chunk * n, seed, size) for n, rows in chunks)
        return replace(
            survey,
            first_rows=np.asarray(places[:-1], dtype=np.intp),
            checksum=checksum if alone else None,
        )

    def rows(self, columns: tuple[Column, ...]) -> Rows:
        """All encoded rows, in memory."""
        self.source.check_unchanged()
        return join_rows([encoded_rows(columns, block)[0] for block in self._blocks()])

    def stream(
        self, survey: Survey, n_held_out: int, representation: Representation
    ) -> SourceStream:
        """All rows; the first of the sample, which are held out, have weight 0."""
        lost = float(np.sum(survey.sample.rows.weights[:n_held_out]))
        assert survey.first_rows is not None
        return SourceStream(
            source=self.source,
            first_rows=survey.first_rows,
            n_rows=survey.n_rows,
            total_weight=survey.total_weight - lost,
            held_out=np.sort(survey.sample.positions[:n_held_out]),
            representation=representation,
            checksum=survey.checksum,
        )

    def close(self) -> None:
        """Nothing is held."""

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
        return map(self._seen, self._encoded(piece))

    def batches(self, batch_size: int, seed: int) -> Batches:
        """Minibatches in another order every epoch, the same for the same seed.

        Those of rows that are one pool do not depend on the pieces of the source.
        """
        return partial(self._epoch, batch_size, seed)

    def provider(self, model: BowTieModel) -> RowProvider:
        """All rows, read again for every sweep; those in memory are encoded once."""
        size = chunk_rows(len(self.representation.column_order))
        read: Callable[[], Iterable[Rows]] = partial(self._chunks, size)
        if self.source.in_memory:
            kept = list(read())
            read = partial(iter, kept)
        block_size = block_rows(model.architecture, outcome=model.outcome)
        return StreamedRows(read, self.n_rows, block_size, size)

    def seen_by(self, view: View, inputs: Indices | None) -> SourceStream:
        """The same rows as a member sees them, which may have lost inputs."""
        return replace(self, view=view, inputs=inputs)

    def close(self) -> None:
        """Nothing is held."""

    def _encoded(self, piece: int) -> Iterator[Rows]:
        """Blocks of one part, encoded; rows that are held out have weight 0."""
        start = int(self.first_rows[piece])
        checksum = 0
        for block in self.source.read(piece):
            rows = plain_rows(encoded_rows(self.representation.columns, block)[0])
            if self.checksum is not None:
                checksum = zlib.crc32(rows.inputs.data, checksum)
            stop = start + rows.inputs.shape[0]
            low, high = np.searchsorted(self.held_out, (start, stop))
            if high > low:
                weights = rows.weights.copy()
                weights[self.held_out[low:high] - start] = 0.0
                rows = replace(rows, weights=weights)
            yield rows
            start = stop
        if self.checksum is not None and self.checksum != checksum:
            raise ValueError(OTHER_ROWS)

    def _seen(self, encoded: Rows) -> Rows:
        return seen_rows(self.representation, self.view, self.inputs, encoded)

    def _epoch(self, batch_size: int, seed: int, epoch: int) -> Iterator[Rows]:
        self.source.check_unchanged()
        rng = np.random.default_rng((seed, epoch))
        for batch in shuffled(self, batch_size, rng, n_rows=self.n_rows):
            if batch.weights.any():
                yield batch

    def _chunks(self, size: int) -> Iterator[Rows]:
        """All rows in their order, cut by their positions before they are standardised."""
        self.source.check_unchanged()
        encoded = (rows for piece in range(self.n_pieces) for rows in self._encoded(piece))
        return map(self._seen, rechunk(encoded, size))


def seen_rows(
    representation: Representation, view: View, inputs: Indices | None, encoded: Rows
) -> Rows:
    """Encoded rows as a network sees them that may have lost inputs."""
    rows = network_rows(view, standardized_rows(representation, encoded))
    return plain_rows(rows if inputs is None else take_columns(rows, inputs))


def arriving(source: Source, representation: Representation, batch_size: int) -> Iterator[Rows]:
    """Standardised rows of a source in batches, cut by position; those of weight 0 are absent.

    Rows whose features had to be drawn in are left out, with a warning: a few of them would move
    the networks further than all rows before.
    """

    def present() -> Iterator[Rows]:
        for block in in_order(source):
            rows = map_arrays(to_numpy, encoded_rows(representation.columns, block)[0])
            yield take_rows(rows, np.flatnonzero(rows.weights > 0.0))

    for rows in rechunk(present(), batch_size):
        standardized = standardized_rows(representation, rows)
        near = np.flatnonzero(np.all(np.abs(standardized.inputs) <= FARTHEST, axis=1))
        n_far = standardized.inputs.shape[0] - near.size
        if n_far:
            warnings.warn(
                f"{n_far:,} rows have a value more than {FARTHEST:,.0f} deviations away from "
                "those of the fit, and are left out: fit anew if they are right.",
                UserWarning,
                stacklevel=2,
            )
            standardized = take_rows(standardized, near)
        if near.size:
            yield standardized
