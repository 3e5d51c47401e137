"""A Dask table as a fit sees it: surveyed, standardised and swept on the workers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import slices
from bowtienet.data.rows import Rows
from bowtienet.estimators.cluster.link import PATIENCE, Link, running_client
from bowtienet.estimators.cluster.rows import ClusterRows, on_each, survey_partitions
from bowtienet.estimators.cluster.source import DaskSource, partitions
from bowtienet.estimators.streaming import PieceSurvey, Standardize, Survey, survey_piece
from bowtienet.model.architecture import Architecture
from bowtienet.prediction.ensemble import Ensemble

SURVEYED = 64
"""Partitions whose surveys are at the client at the same time: each may be 15,000 rows."""


class ClusterReader:
    """Reads a Dask table on the workers of the running scheduler.

    What was computed for the survey is held there until the rows are standardised, so that no
    partition is read twice.
    """

    def __init__(self, source: DaskSource) -> None:
        self.client = running_client()
        self.parts = partitions(source)
        self.held: list[Any] = list(self.client.compute(self.parts))

    def survey(self, seed: int) -> Iterator[PieceSurvey]:
        """What one reading tells, partition by partition."""
        ask = partial(_survey, seed)
        try:
            for some in slices(len(self.held), SURVEYED):
                yield from survey_partitions(self.client, self.held[some], ask)
        except BaseException:
            # A notebook keeps the traceback, and with it the futures of the whole table.
            Link(self.client, PATIENCE).cancel(self.held)
            raise

    def stream(self, survey: Survey, n_held_out: int, ensemble: Ensemble) -> ClusterStream:
        """All rows, where they are."""
        assert n_held_out == 0
        return ClusterStream(
            client=self.client,
            parts=self.parts,
            held=self.held,
            total_weight=survey.total_weight,
            standardize=Standardize.like(ensemble),
        )


@dataclass(frozen=True, kw_only=True)
class ClusterStream:
    """The partitions of a Dask table as the networks see them."""

    client: Any
    parts: list[Any]
    """How to compute them."""
    held: list[Any]
    """Futures of those that the survey has computed."""
    total_weight: float
    standardize: Standardize
    portable: bool = False
    made: dict[tuple[int, ...], ClusterRows] = field(default_factory=dict)
    """Rows that wait on the workers, by their columns; members share them."""

    def batches(self, batch_size: int, seed: int) -> NoReturn:
        """Minibatches are read by this process; see `SourceStream`."""
        raise NotImplementedError("on a cluster there are no minibatches")

    def keeper(self, architecture: Architecture) -> ClusterRows:
        """All rows, on their workers."""
        columns = tuple(map(int, self.standardize.columns))
        if columns not in self.made:
            # Members are fitted one by one: when one needs other columns, those before are done.
            self._forget()
            transform = partial(_standardized, self.standardize)
            data = on_each(self.client, self.held or self.parts, transform)
            # Dask now frees each partition when it is standardised, but can compute it again.
            self._release()
            self.made[columns] = ClusterRows(self.client, data)
        return self.made[columns]

    def taking(self, kept: NDArray[np.intp] | None) -> ClusterStream:
        """The same for a member that has lost inputs."""
        return self if kept is None else replace(self, standardize=self.standardize.taking(kept))

    def close(self) -> None:
        """Let the workers forget the rows and their local factors."""
        self._release()
        self._forget()

    def _release(self) -> None:
        """Let go of what the survey has computed, even if a traceback still knows it."""
        while self.held:
            self.held.pop().release()

    def _forget(self) -> None:
        while self.made:
            self.made.popitem()[1].close()


def _survey(seed: int, rows: Rows) -> PieceSurvey:
    """Seeded by the rows themselves: a partition does not know its number."""
    own = zlib.crc32(np.ascontiguousarray(rows.inputs).tobytes())
    return survey_piece([rows] if rows.inputs.shape[0] else [], (seed, own))


def _standardized(standardize: Standardize, rows: Rows) -> Rows:
    """A function, because it names the task: of other callables Dask takes the whole text."""
    return standardize(rows)
