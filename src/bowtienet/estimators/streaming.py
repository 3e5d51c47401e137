"""Rows that are not in memory: one reading for their scale, then as many as a fit asks for.

The first reading gives the scaling of all columns and a uniform sample of rows. A part of the
sample is held out to weigh the members; from the rest they start.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bowtienet.data.rows import Rows, join_rows
from bowtienet.data.scaling import (
    ColumnMoments,
    Scaling,
    column_moments,
    combine_moments,
    scaling_from,
    standardize,
)
from bowtienet.data.sources import RowSample, Source, in_order, shuffled
from bowtienet.estimators.members import FEWEST_ROWS, FOLDS, Run, weigh
from bowtienet.estimators.tasks import Floats, Task
from bowtienet.inference.execution import block_rows
from bowtienet.inference.iterate import FitResult
from bowtienet.inference.row_providers import RowProvider, StreamedRows
from bowtienet.inference.stochastic import Batches
from bowtienet.model.architecture import Architecture
from bowtienet.posterior.initialize import START_ROWS
from bowtienet.prediction.ensemble import Ensemble
from bowtienet.prediction.weighting import equal_weights

Indices = NDArray[np.intp]

HELD_OUT_ROWS = 5_000
"""Most rows of a stream that are held out."""
FOLDED = 100
"""Blocks whose moments are put together before the next are read."""
LEAST_WEIGHT = 1e-3
"""Members of less weight are left out: they cost time and say nothing."""


@dataclass(frozen=True, kw_only=True)
class PieceSurvey:
    """What one reading of a piece tells."""

    n_rows: int
    n_counted: int
    """Rows of positive weight."""
    checksum: int
    """Of the inputs, in their order."""
    inputs: ColumnMoments | None
    """None if the piece has no rows, as below."""
    targets: ColumnMoments | None
    sample: RowSample


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What one reading of all rows tells."""

    first_rows: Indices
    """Position of the first row of every piece."""
    n_rows: int
    n_counted: int
    checksum: int | None
    """Of the inputs, if they are all in one piece."""
    total_weight: float
    input_scaling: Scaling
    target_scaling: Scaling
    sample: RowSample
    """Rows in the user's units, in random order."""


def survey_piece(blocks: Iterable[Rows], seed: Sequence[int]) -> PieceSurvey:
    """Moments and a sample of the rows of a piece."""
    sample = RowSample(START_ROWS + HELD_OUT_ROWS, np.random.default_rng(seed))
    inputs: list[ColumnMoments] = []
    targets: list[ColumnMoments] = []
    n_rows = n_counted = checksum = 0
    for block in blocks:
        for moments, values in ((inputs, block.inputs), (targets, block.targets)):
            moments.append(column_moments(values, block.weights))
            if len(moments) == FOLDED:  # blocks may be many
                moments[:] = [combine_moments(moments)]
        sample.add(block, n_rows)
        n_rows += block.inputs.shape[0]
        n_counted += int(np.count_nonzero(block.weights))
        checksum = zlib.crc32(np.ascontiguousarray(block.inputs).data, checksum)
    return PieceSurvey(
        n_rows=n_rows,
        n_counted=n_counted,
        checksum=checksum,
        inputs=combine_moments(inputs) if n_rows else None,
        targets=combine_moments(targets) if n_rows else None,
        sample=sample,
    )


def combine_surveys(pieces: Iterable[PieceSurvey]) -> Survey:
    """What is known of all rows from what is known of their pieces."""
    sizes: list[int] = []
    checksums: list[int] = []
    n_rows = n_counted = 0
    inputs: list[ColumnMoments] = []
    targets: list[ColumnMoments] = []
    sample: RowSample | None = None
    for piece in pieces:
        if piece.inputs is not None and piece.targets is not None:
            inputs.append(piece.inputs)
            targets.append(piece.targets)
            if sample is None:
                sample = RowSample(piece.sample.size, np.random.default_rng())
            sample.merge(piece.sample, n_rows)
        sizes.append(piece.n_rows)
        checksums.append(piece.checksum)
        n_rows, n_counted = n_rows + piece.n_rows, n_counted + piece.n_counted
    if sample is None:
        raise ValueError("the source has no rows: at least two are needed.")
    all_inputs, all_targets = combine_moments(inputs), combine_moments(targets)
    if not float(all_inputs.weight) > 0.0:
        raise ValueError("the weights are all zero: at least one row must have a positive weight.")
    return Survey(
        first_rows=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp),
        n_rows=n_rows,
        n_counted=n_counted,
        checksum=checksums[0] if len(checksums) == 1 else None,
        total_weight=float(all_inputs.weight),
        input_scaling=scaling_from(all_inputs),
        target_scaling=scaling_from(all_targets),
        sample=sample,
    )


@dataclass(frozen=True, kw_only=True)
class Standardize:
    """Rows in the user's units to rows as the networks know them."""

    input_scaling: Scaling
    target_scaling: Scaling
    columns: Indices

    @classmethod
    def like(cls, ensemble: Ensemble) -> Standardize:
        """As the networks of an ensemble know them."""
        return cls(
            input_scaling=ensemble.input_scaling,
            target_scaling=ensemble.target_scaling,
            columns=ensemble.column_order,
        )

    def taking(self, kept: Indices | None) -> Standardize:
        """The same for a network that has lost inputs."""
        return self if kept is None else replace(self, columns=self.columns[kept])

    def __call__(self, rows: Rows) -> Rows:
        """The rows, standardised and with the columns of the networks."""
        return Rows(
            inputs=standardize(self.input_scaling, rows.inputs)[:, self.columns],
            targets=standardize(self.target_scaling, rows.targets),
            weights=rows.weights,
        )


@dataclass(frozen=True, kw_only=True)
class SourceStream:
    """A source as the networks see it: standardised, rows that are held out with weight 0."""

    source: Source
    first_rows: Indices
    n_rows: int
    total_weight: float
    held_out: Indices
    """Their positions, in order."""
    standardize: Standardize
    checksum: int | None = None
    """Of the user's inputs, if they come in one piece: their places must stay."""
    portable: bool = True

    @property
    def n_pieces(self) -> int:
        """Parts that can be read in any order."""
        return self.source.n_pieces

    def read(self, piece: int) -> Iterator[Rows]:
        """Blocks of one part."""
        start = int(self.first_rows[piece])
        checksum = 0
        for block in self.source.read(piece):
            if self.checksum is not None:
                checksum = zlib.crc32(np.ascontiguousarray(block.inputs).data, checksum)
            rows = self.standardize(block)
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

    def _epoch(self, batch_size: int, seed: int, epoch: int) -> Iterator[Rows]:
        self.source.check_unchanged()
        for batch in shuffled(self, batch_size, np.random.default_rng((seed, epoch))):
            if batch.weights.any():
                yield batch

    def keeper(self, architecture: Architecture) -> RowProvider:
        """All rows, read again for every sweep."""
        return StreamedRows(self._in_order, self.n_rows, block_rows(architecture))

    def _in_order(self) -> Iterator[Rows]:
        self.source.check_unchanged()
        return in_order(self)

    def taking(self, kept: Indices | None) -> SourceStream:
        """The same for a member that has lost inputs."""
        return replace(self, standardize=self.standardize.taking(kept))

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class SourceReader:
    """Reads a source in this process."""

    source: Source

    def survey(self, seed: int) -> Iterator[PieceSurvey]:
        """What one reading tells, piece by piece."""
        for piece in range(self.source.n_pieces):
            yield survey_piece(self.source.read(piece), (seed, piece))

    def stream(self, survey: Survey, n_held_out: int, ensemble: Ensemble) -> SourceStream:
        """All rows but those held out, which are the first of the sample."""
        lost = float(np.sum(survey.sample.rows.weights[:n_held_out]))
        return SourceStream(
            source=self.source,
            first_rows=survey.first_rows,
            n_rows=survey.n_rows,
            total_weight=survey.total_weight - lost,
            held_out=np.sort(survey.sample.positions[:n_held_out]),
            standardize=Standardize.like(ensemble),
            checksum=survey.checksum,
        )


def hold_out(survey: Survey) -> int:
    """How many rows of the sample are held out: a fifth at most, and none of very few."""
    n_rows = int(survey.sample.positions.size)
    return 0 if n_rows < FEWEST_ROWS else min(HELD_OUT_ROWS, survey.n_counted // FOLDS)


def gathered(source: Source) -> Rows:
    """All rows of a source in memory."""
    return join_rows(list(in_order(source)))


def fit_streamed(tasks: Sequence[Task], run: Run) -> tuple[list[FitResult], Floats]:
    """Members of given tasks, stacked by the rows held out; equal if there are none."""
    outcomes = list(run(tasks))
    members = [outcome.results[-1] for outcome in outcomes]
    if not members:
        return [], np.empty(0)
    complete = len(outcomes) == len(tasks) and not outcomes[-1].interrupted
    held_out = tasks[0].held_out
    if held_out is None or not complete:
        return members, equal_weights(len(members))
    last = [outcome.forecasts[:, -1:] for outcome in outcomes if outcome.forecasts is not None]
    row_weights = np.asarray(held_out.weights, dtype=float)
    weights, ratios = (found[:, 0] for found in weigh(np.stack(last, 1), row_weights, len(members)))
    kept = np.flatnonzero(weights >= LEAST_WEIGHT)
    chosen = [replace(members[index], variance_ratio=ratios[index]) for index in kept]
    return chosen, weights[kept] / weights[kept].sum()
