"""A Dask table as a fit sees it: surveyed, standardised and swept on the workers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bowtienet.data.rows import Rows
from bowtienet.estimators.cluster import (
    ClusterRows,
    DaskSource,
    cluster_rows,
    partitions,
    running_client,
    survey_partitions,
)
from bowtienet.estimators.streaming import PieceSurvey, Standardize, Survey, survey_piece
from bowtienet.model.architecture import Architecture
from bowtienet.prediction.ensemble import Ensemble


class ClusterReader:
    """Reads a Dask table on the workers of the running scheduler."""

    def __init__(self, source: DaskSource) -> None:
        self.client = running_client()
        self.parts = partitions(source)

    def survey(self, seed: int) -> Iterator[PieceSurvey]:
        """What one reading tells, partition by partition."""
        yield from survey_partitions(self.client, self.parts, partial(_survey, seed))

    def stream(self, survey: Survey, n_held_out: int, ensemble: Ensemble) -> ClusterStream:
        """All rows, where they are."""
        assert n_held_out == 0
        return ClusterStream(
            client=self.client,
            parts=self.parts,
            total_weight=survey.total_weight,
            standardize=Standardize.like(ensemble),
        )


@dataclass(frozen=True, kw_only=True)
class ClusterStream:
    """The partitions of a Dask table as the networks see them."""

    client: Any
    parts: list[Any]
    total_weight: float
    standardize: Standardize
    portable: bool = False
    made: list[ClusterRows] = field(default_factory=list)
    """Rows that wait on the workers; all members share them."""

    def batches(self, batch_size: int, seed: int) -> NoReturn:
        """Minibatches are read by this process; see `SourceStream`."""
        raise NotImplementedError("on a cluster there are no minibatches")

    def keeper(self, architecture: Architecture) -> ClusterRows:
        """All rows, on their workers."""
        if not self.made:
            self.made.append(cluster_rows(self.client, self.parts, self.standardize))
        return self.made[0]

    def taking(self, kept: NDArray[np.intp] | None) -> ClusterStream:
        """The same for a member that has lost inputs."""
        if kept is None:
            return self
        return replace(self, standardize=self.standardize.taking(kept), made=[])

    def close(self) -> None:
        """Let the workers forget the rows and their local factors."""
        for rows in self.made:
            rows.close()


def _survey(seed: int, rows: Rows) -> PieceSurvey:
    """Seeded by the rows themselves: a partition does not know its number."""
    own = zlib.crc32(np.ascontiguousarray(rows.inputs).tobytes())
    return survey_piece([rows] if rows.inputs.shape[0] else [], (seed, own))
