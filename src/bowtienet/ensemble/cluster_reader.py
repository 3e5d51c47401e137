"""A Dask table as a fit sees it: read, surveyed, standardised and swept on the workers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet.data.canonical import take_columns
from bowtienet.data.dask_tables import DaskSource
from bowtienet.data.rows import Rows, join_rows
from bowtienet.data.tables import Block
from bowtienet.ensemble.cluster import ClusterRows
from bowtienet.ensemble.dask_client import on_each, release, running_client, survey_partitions
from bowtienet.model.priors import BowTieModel
from bowtienet.representation.columns import Column
from bowtienet.representation.facts import TableFacts, gather_facts, merge_facts
from bowtienet.representation.learning import decide
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


class ClusterReader:
    """Reads a Dask table on the workers of the running scheduler.

    Partitions that were computed for the first answer stay there until the rows are standardised,
    so that none is read twice.
    """

    def __init__(self, source: DaskSource) -> None:
        self.client = running_client()
        self.parts = source.partitions()
        self.held: list[Any] = list(self.client.compute(self.parts))
        self._rows: ClusterRows | None = None
        self._shown: tuple[View, list[int] | None] | None = None

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
        return ClusterStream(reader=self, representation=representation)

    def provider(
        self, representation: Representation, view: View, inputs: Indices | None
    ) -> ClusterRows:
        """All rows as networks with these inputs see them; members with the same share them."""
        kept = None if inputs is None else inputs.tolist()
        known = self._shown is not None and self._shown[0] is view and self._shown[1] == kept
        if self._rows is None or not known:
            see = partial(_seen, representation, view, inputs)
            rows = on_each(self.client, self.held or self.parts, see)
            # Dask frees each partition when it is standardised, but can compute it again. And
            # members are fitted one by one: when one needs other inputs, those before are done.
            self.close()
            self._rows, self._shown = ClusterRows(self.client, rows), (view, kept)
        return self._rows

    def close(self) -> None:
        """Let the workers forget the rows and their local factors."""
        release(self.held)
        self.held.clear()
        if self._rows is not None:
            self._rows.close()
            self._rows = None

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

    reader: ClusterReader
    representation: Representation
    view: View = PLAIN
    inputs: Indices | None = None
    """The network's inputs that are left; None for all."""

    def provider(self, model: BowTieModel) -> ClusterRows:
        """All rows, on their workers."""
        return self.reader.provider(self.representation, self.view, self.inputs)

    def seen_by(self, view: View, inputs: Indices | None) -> ClusterStream:
        """The same rows as a member sees them, which may have lost inputs."""
        return replace(self, view=view, inputs=inputs)

    def close(self) -> None:
        """Let the workers forget the rows and their local factors."""
        self.reader.close()


# What runs on the workers.


def _facts(block: Block) -> TableFacts | None:
    return gather_facts(block.table, block.weights) if block.table.n_rows else None


def _survey(columns: tuple[Column, ...], seed: int, block: Block) -> PieceSurvey:
    """Seeded by the rows themselves: a partition does not know its number."""
    own = zlib.crc32(np.ascontiguousarray(block.targets).tobytes())
    return survey_piece([block] if block.table.n_rows else [], (seed, own), columns)


def _encoded(columns: tuple[Column, ...], block: Block) -> Rows:
    return encoded_rows(columns, block)[0]


def _seen(representation: Representation, view: View, inputs: Indices | None, block: Block) -> Rows:
    rows = standardized_rows(representation, _encoded(representation.columns, block))
    rows = network_rows(view, rows)
    return rows if inputs is None else take_columns(rows, inputs)
