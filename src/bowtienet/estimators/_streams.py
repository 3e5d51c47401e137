"""Rows beyond memory: how fits read them again, and predictions batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from bowtienet.ensemble.streams import Chunk, StreamedRows
from bowtienet.inference.ascend import Block, RowProvider, block_rows
from bowtienet.inference.stochastic import Batches
from bowtienet.model.model import BowTieModel, Rows, split
from bowtienet.tables.door import TrainingTable, take_training
from bowtienet.tables.frames import separate
from bowtienet.tables.representation import Representation, standardize
from bowtienet.tables.sources import (
    Source,
    Stream,
    batches_of,
    keys_and_folds,
    mixed,
    partitions_of,
    reread,
    source_of,
)

Prepare: TypeAlias = Callable[[TrainingTable], TrainingTable]
"""From rows of the door to targets and weights as numbers, for each batch alike."""
Encode: TypeAlias = Callable[[TrainingTable], Rows]
"""From rows of the door to standardised rows of a bow tie network."""

MEMORY_BYTES = 1_000_000_000
"""Gate probabilities that coordinate ascent of a source may keep between sweeps."""


def client_of(source: Source) -> Any:
    """The Dask client whose cluster has the partitions; None for one machine."""
    if not partitions_of(source):
        return None
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def by_batches(X: Any, answer: Callable[[Any], Any]) -> Any:
    """Answers for a table, or for a source batch by batch, in its order."""
    source = source_of(X)
    if source is None:
        return answer(X)
    answers = [answer(batch) for batch, _ in batches_of(source)]
    if not answers:
        raise ValueError("the source has no rows: there is nothing to predict.")
    return joined(answers)


def column_of(X: Any, values: Any) -> tuple[Any, Any]:
    """Rows and their values, which may be the name of a column of a frame or a source."""
    source = source_of(X) if isinstance(values, str) else None
    if source is None:
        return separate(X, values)[:2]
    return X, np.concatenate([separate(batch, values)[1] for batch, _ in batches_of(source)])


def joined(answers: list[Any]) -> Any:
    """Arrays, or tuples of arrays, one below the other."""
    if isinstance(answers[0], tuple):
        return tuple(np.concatenate(each) for each in zip(*answers, strict=True))
    return np.concatenate(answers)


def streamed_rows(
    stream: Stream, representation: Representation, prepare: Prepare, growth: float
) -> StreamedRows:
    """All rows of a practical fit; `growth` is what `prepare` does to the weights."""
    client, facts, run = client_of(stream.source), stream.facts, None

    def encode(rows: TrainingTable, share: float = 1.0, rng: Any = None) -> Chunk:
        # Folds of a batch are known from all of its rows, as it was when the sample was drawn.
        folds = keys_and_folds(rows)[1]
        if rng is not None:
            chosen = rng.random(len(folds)) < share
            rows, folds = take_training(rows, chosen), folds[chosen]
        rows = prepare(rows)
        inputs = standardize(representation, rows.table).astype(np.float32)
        return inputs, rows.targets, rows.weights, folds

    def read(share: float, rng: np.random.Generator) -> Iterator[Chunk]:
        return (encode(rows, share, rng) for rows in reread(stream))

    if client is not None:
        from bowtienet import cluster

        read = partial(cluster.read, cluster.Chunks(cluster.encoded(client, stream, encode)))
        run = partial(cluster.run, client)
    weights = growth * facts.fold_weights
    return StreamedRows(
        read=read, n_rows=facts.n_rows, folds=facts.folds, fold_weights=weights, run=run
    )


def batches_of_stream(stream: Stream, encode: Encode, batch_size: int, seed: int) -> Batches:
    """Minibatches of stochastic inference, shuffled within buffers."""

    def pass_over(number: int) -> Iterator[Rows]:
        rng = np.random.default_rng((seed, number))
        chunks = (tuple(vars(encode(rows)).values()) for rows in reread(stream))
        for inputs, targets, weights in mixed(chunks, rng):
            yield from split(Rows(inputs=inputs, targets=targets, weights=weights), batch_size)

    return pass_over


def provider_of(stream: Stream, encode: Encode, model: BowTieModel, n_members: int) -> RowProvider:
    """Who has the rows of coordinate ascent: workers of a cluster, or files."""
    block_size = block_rows(model, n_members)

    def blocks(rows: TrainingTable) -> tuple[Block, ...]:
        return tuple((part, None) for part in split(encode(rows), block_size))

    client = client_of(stream.source)
    if client is not None:
        from bowtienet import cluster

        return cluster.ClusterProvider(client, cluster.encoded(client, stream, blocks))
    size = 8 * stream.facts.n_rows * n_members * sum(model.architecture.hidden)
    if size > MEMORY_BYTES:
        raise ValueError(
            f"coordinate ascent keeps {size / 1e9:.1f} GB of gate probabilities for these "
            f"{stream.facts.n_rows} rows: use solver='svi', which keeps none, or Dask workers."
        )
    return RowProvider(_Anew(lambda: chain.from_iterable(map(blocks, reread(stream)))))


class _Anew:
    """Blocks that are read anew whenever they are iterated."""

    def __init__(self, read: Callable[[], Iterator[Block]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Block]:
        return self._read()
