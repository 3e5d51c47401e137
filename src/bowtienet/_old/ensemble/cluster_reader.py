"""A Dask table as a fit sees it: read, surveyed, standardised and swept on the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._old.data.chunks import chunk_rows, overlaps, plain_rows
from bowtienet._old.data.dask_tables import DaskSource
from bowtienet._old.data.rows import Rows, join_rows
from bowtienet._old.data.tables import Block, slice_block
from bowtienet._old.ensemble.cluster import ClusterRows
from bowtienet._old.ensemble.dask_client import (
    delayed,
    on_each,
    release,
    running_client,
    survey_partitions,
)
from bowtienet._old.ensemble.streams import seen_rows
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.representation.columns import Column, owners
from bowtienet._old.representation.facts import TableFacts, gather_facts, merge_facts
from bowtienet._old.representation.learning import decide
from bowtienet._old.representation.representation import PLAIN, Representation, View, encoded_rows
from bowtienet._old.representation.survey import (
    ChunkSurvey,
    Survey,
    combine_surveys,
    key_limit,
    survey_chunk,
)

Indices = NDArray[np.intp]


class ClusterReader:
    """Reads a Dask table on the workers of the running scheduler.

    Partitions that were computed for the first answer stay there until they are cut into chunks,
    and these until the rows are standardised, so that none is read twice.
    """

    def __init__(self, source: DaskSource) -> None:
        self.client = running_client()
        self.parts = source.partitions()
        self.held: list[Any] = list(self.client.compute(self.parts))
        self._sizes: list[tuple[int, int]] | None = None
        self._chunks: list[Any] = []
        self._rows: ClusterRows | None = None
        self._shown: tuple[View, list[int] | None] | None = None

    def columns(self, max_categories: int) -> tuple[tuple[Column, ...], int]:
        """What one reading tells of the columns, and the number of rows."""
        n_rows = self.count_rows()
        starts = np.cumsum([0, *(size for size, _ in self._counts())])[:-1].tolist()
        found = [part for part in self._ask(self.held, _facts, starts) if part is not None]
        if not found:
            raise ValueError("the source has no rows: at least two are needed.")
        if not any(part.n_rows for part in found):
            raise ValueError("the source has no rows of positive weight: at least one is needed.")
        return decide(merge_facts(*found), max_categories), n_rows

    def count_rows(self) -> int:
        """The number of rows."""
        return sum(size for size, _ in self._counts())

    def survey(self, columns: tuple[Column, ...], seed: int, size: int) -> Survey:
        """What one reading tells of the encoded rows, with a sample of `size` of them."""
        self._chunks = list(self.client.compute(self._cut(self.held, columns)))
        release(self.held)
        self.held.clear()
        chunk = chunk_rows(len(owners(columns)))
        limit = key_limit(size, sum(counted for _, counted in self._counts()))
        ask = partial(_survey, seed=seed, size=size, limit=limit)
        starts = [chunk * number for number in range(len(self._chunks))]
        return combine_surveys(self._ask(self._chunks, ask, starts))

    def rows(self, columns: tuple[Column, ...]) -> Rows:
        """All encoded rows, in memory."""
        found = list(self._ask(self.held, partial(_encode, columns)))
        self.close()
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
            see = partial(seen_rows, representation, view, inputs)
            chunks = self._chunks or self._cut(self.parts, representation.columns)
            rows = on_each(self.client, chunks, see)
            # Dask frees each chunk when it is standardised, but can compute it again. And members
            # are fitted one by one: when one needs other inputs, those before are done.
            self.close()
            self._rows, self._shown = ClusterRows(self.client, rows), (view, kept)
        return self._rows

    def close(self) -> None:
        """Let the workers forget the rows and their local factors."""
        for futures in (self.held, self._chunks):
            release(futures)
            futures.clear()
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def _counts(self) -> list[tuple[int, int]]:
        """Of each partition all rows, and those of positive weight."""
        if self._sizes is None:
            self._sizes = list(self._ask(self.held, _count))
        return self._sizes

    def _cut(self, parts: Sequence[Any], columns: tuple[Column, ...]) -> list[Any]:
        """Encoded rows cut by their position: a delayed chunk for each.

        Rows are cut out where their partition is, so that no more of it travels.
        """
        encode, join = delayed(partial(_encode, columns)), delayed(_join)
        sizes = [size for size, _ in self._counts()]
        chunks = overlaps(sizes, chunk_rows(len(owners(columns))))
        return [join(*(encode(parts[part], rows) for part, rows in cuts)) for cuts in chunks]

    def _ask(self, parts: Sequence[Any], function: Any, *others: Sequence[Any]) -> Iterator[Any]:
        try:
            yield from survey_partitions(self.client, parts, function, *others)
        except BaseException:
            # A notebook keeps the traceback, and with it the futures of the whole table.
            self.close()
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


def _count(block: Block) -> tuple[int, int]:
    return block.table.n_rows, int(np.count_nonzero(block.weights))


def _facts(block: Block, start: int) -> TableFacts | None:
    return gather_facts(block.table, block.weights, start) if block.table.n_rows else None


def _survey(rows: Rows, start: int, *, seed: int, size: int, limit: float) -> ChunkSurvey:
    return survey_chunk(rows, start, seed, size, limit)


def _encode(columns: tuple[Column, ...], block: Block, rows: slice | None = None) -> Rows:
    """All rows of a partition, or some of them, encoded."""
    return encoded_rows(columns, block if rows is None else slice_block(block, rows))[0]


def _join(*parts: Rows) -> Rows:
    return plain_rows(join_rows(parts))
