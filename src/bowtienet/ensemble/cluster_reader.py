"""A Dask table as a fit sees it: read, surveyed, standardised and swept on the workers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet.data.dask_tables import DaskSource
from bowtienet.data.rows import Rows, join_rows
from bowtienet.data.tables import Block
from bowtienet.ensemble.cluster import ClusterRows
from bowtienet.ensemble.dask_client import on_each, release, running_client, survey_partitions
from bowtienet.model.architecture import Architecture
from bowtienet.representation.columns import Column
from bowtienet.representation.facts import TableFacts, gather_facts, merge_facts
from bowtienet.representation.learning import decide
from bowtienet.representation.representation import Representation, encoded_rows, network_rows
from bowtienet.representation.survey import PieceSurvey, Survey, survey_piece


class ClusterReader:
    """Reads a Dask table on the workers of the running scheduler.

    Partitions that were computed for the first answer stay there until the rows are standardised,
    so that none is read twice.
    """

    def __init__(self, source: DaskSource) -> None:
        self.client = running_client()
        self.parts = source.partitions()
        self.held: list[Any] = list(self.client.compute(self.parts))

    def columns(self, max_categories: int) -> tuple[Column, ...]:
        """What one reading tells of the columns."""
        found = [part for part in self._ask(_facts) if part is not None]
        if not found:
            raise ValueError("the source has no rows: at least two are needed.")
        return decide(merge_facts(*found), max_categories)

    def survey(self, columns: tuple[Column, ...], seed: int) -> Iterator[PieceSurvey]:
        """What one reading tells of the encoded rows, partition by partition."""
        return self._ask(partial(_survey, columns, seed))

    def rows(self, columns: tuple[Column, ...]) -> Rows:
        """All encoded rows, in memory."""
        found = list(self._ask(partial(_encoded, columns)))
        release(self.held)
        return join_rows([rows for rows in found if rows.inputs.shape[0]])

    def stream(
        self, survey: Survey, n_held_out: int, representation: Representation
    ) -> ClusterStream:
        """All rows, where they are."""
        assert n_held_out == 0
        return ClusterStream(
            client=self.client,
            parts=self.parts,
            held=self.held,
            total_weight=survey.total_weight,
            representation=representation,
        )

    def _ask(self, function: Any) -> Iterator[Any]:
        try:
            yield from survey_partitions(self.client, self.held, function)
        except BaseException:
            # A notebook keeps the traceback, and with it the futures of the whole table.
            release(self.held)
            raise


@dataclass(frozen=True, kw_only=True)
class ClusterStream:
    """The partitions of a Dask table as the networks see them."""

    client: Any
    parts: list[Any]
    """How to compute them."""
    held: list[Any]
    """Futures of those that are computed."""
    total_weight: float
    representation: Representation
    inputs: NDArray[np.intp] | None = None
    """The networks' inputs that are left; None for all."""
    made: dict[tuple[int, ...] | None, ClusterRows] = field(default_factory=dict)
    """Rows that wait on the workers, by their inputs; members share them."""

    def provider(self, architecture: Architecture) -> ClusterRows:
        """All rows, on their workers."""
        inputs = None if self.inputs is None else tuple(map(int, self.inputs))
        if inputs not in self.made:
            # Members are fitted one by one: when one needs other inputs, those before are done.
            self._forget()
            see = partial(_seen, self.representation, self.inputs)
            rows = on_each(self.client, self.held or self.parts, see)
            # Dask frees each partition when it is standardised, but can compute it again.
            self._release()
            self.made[inputs] = ClusterRows(self.client, rows)
        return self.made[inputs]

    def taking(self, kept: NDArray[np.intp] | None) -> ClusterStream:
        """The same rows for a member that has lost inputs."""
        return replace(self, inputs=kept)

    def close(self) -> None:
        """Let the workers forget the rows and their local factors."""
        self._release()
        self._forget()

    def _release(self) -> None:
        release(self.held)
        self.held.clear()

    def _forget(self) -> None:
        while self.made:
            self.made.popitem()[1].close()


# What runs on the workers.


def _facts(block: Block) -> TableFacts | None:
    return gather_facts(block.table, block.weights) if block.table.n_rows else None


def _survey(columns: tuple[Column, ...], seed: int, block: Block) -> PieceSurvey:
    """Seeded by the rows themselves: a partition does not know its number."""
    own = zlib.crc32(np.ascontiguousarray(block.targets).tobytes())
    return survey_piece([block] if block.table.n_rows else [], (seed, own), columns)


def _encoded(columns: tuple[Column, ...], block: Block) -> Rows:
    return encoded_rows(columns, block)[0]


def _seen(representation: Representation, inputs: NDArray[np.intp] | None, block: Block) -> Rows:
    rows = network_rows(representation, _encoded(representation.columns, block))
    return rows if inputs is None else replace(rows, inputs=rows.inputs[:, inputs])
