"""What the estimators do with rows beyond memory: open, learn from a sample, read again, answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import starmap
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from bowtienet.ensemble.streams import Chunk, Read, StreamedRows
from bowtienet.inference.ascend import Block, RowProvider, block_rows
from bowtienet.inference.stochastic import Batches, minibatches
from bowtienet.model.model import BowTieModel, Rows, split
from bowtienet.tables import sources
from bowtienet.tables.door import TrainingTable, open_rows, take_training
from bowtienet.tables.representation import Representation, Scaling, standardize
from bowtienet.tables.sources import (
    Stream,
    collect,
    facts_of,
    keys_and_folds,
    mixed,
    reader_of,
    reread,
    source_of,
)

Floats = NDArray[np.float64]
Prepare: TypeAlias = Callable[[TrainingTable], TrainingTable]
"""From rows of the door to targets and weights as numbers, for each batch alike."""

Encode: TypeAlias = Callable[[TrainingTable], Rows]
"""From rows of the door to standardised rows of a bow tie network."""

MEMORY_BYTES = 1_000_000_000
"""Gate probabilities that coordinate ascent of a source may keep between sweeps."""


def open_training(
    estimator: Any, X: Any, y: Any, weight: Any, *, labels: bool = False, exposure: Any = None
) -> tuple[TrainingTable, Stream | None]:
    """All rows of a fit, or a sample of them and how all of them are read."""
    source = source_of(X, y)
    if source is None:
        return open_rows(estimator, X, y, weight, exposure, labels=labels), None
    if exposure is not None:
        raise ValueError(
            "exposure is for rows in memory: load them into a frame, or a sample of them."
        )
    reader = reader_of(estimator, source, weight, labels=labels)
    client = client_of(source)
    if client is None:
        batches = starmap(reader, sources.batches_of(source))
        facts: Any = collect(batches, sources.SAMPLE)
    else:
        from bowtienet import cluster

        facts = cluster.facts_of_partitions(client, source, reader)
    if facts.n_without_target:
        warnings.warn(
            f"{facts.n_without_target} rows without a target are left out.",
            UserWarning,
            stacklevel=3,
        )
    is_all = facts.n_rows == len(facts.keys)
    return facts.sample, None if is_all else Stream(source=source, reader=reader, facts=facts)


def client_of(source: sources.Source) -> Any:
    """The Dask client whose cluster has the partitions; None for one machine."""
    if not sources.partitions_of(source):
        return None
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def sample_of(rows: TrainingTable) -> TrainingTable:
    """The rows that a fit starts from: of many those with the smallest keys, in their order."""
    if len(rows.weights) <= sources.SAMPLE:
        return rows
    return facts_of(rows, sources.SAMPLE).sample


def as_numbers(rows: TrainingTable) -> TrainingTable:
    """Targets that are numbers already."""
    return rows


def check_classes(rows: TrainingTable, classes: NDArray[Any]) -> None:
    """Two classes at least, as labels."""
    check_classification_targets(rows.targets)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class, {classes.tolist()[0]!r}: a classifier needs two at least."
        )


def classes_of(
    rows: TrainingTable, stream: Stream | None
) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """All classes, sorted, and how many rows each has."""
    if stream is None:
        return np.unique(rows.targets, return_counts=True)
    labels = stream.facts.labels
    classes = np.unique(np.array(list(labels), dtype=rows.targets.dtype))
    return classes, np.array([labels[label] for label in classes.tolist()])


def numbered(classes: NDArray[Any], by_class: Floats, rows: TrainingTable) -> TrainingTable:
    """Numbers of classes for targets, and weights times those of the classes."""
    numbers = np.searchsorted(classes, rows.targets)
    return replace(
        rows,
        targets=numbers.astype(np.float64)[:, None],
        weights=rows.weights * by_class[numbers],
        is_single=True,
    )


# The practical wing


def streamed_rows(
    stream: Stream, representation: Representation, prepare: Prepare, growth: float
) -> StreamedRows:
    """All rows of a practical fit; `growth` is what `prepare` does to the weights."""
    client, facts = client_of(stream.source), stream.facts
    weights = growth * facts.fold_weights
    read: Read = partial(_read_chunks, stream, representation, prepare)
    run = None
    if client is not None:
        from bowtienet import cluster

        chunk = partial(_chunk, representation, prepare, None)
        read = partial(cluster.read, cluster.Chunks(cluster.encoded(client, stream, chunk)))
        run = partial(cluster.run, client)
    return StreamedRows(
        read=read, n_rows=facts.n_rows, folds=facts.folds, fold_weights=weights, run=run
    )


def _read_chunks(
    stream: Stream,
    representation: Representation,
    prepare: Prepare,
    share: float,
    rng: np.random.Generator,
) -> Iterator[Chunk]:
    for rows in reread(stream):
        chosen = rng.random(len(rows.weights)) < share
        yield _chunk(representation, prepare, chosen, rows)


def _chunk(
    representation: Representation,
    prepare: Prepare,
    chosen: NDArray[np.bool_] | None,
    rows: TrainingTable,
) -> Chunk:
    # Folds of a batch are known from all of its rows, as it was when the sample was drawn.
    _, folds = keys_and_folds(rows)
    if chosen is not None:
        rows, folds = take_training(rows, chosen), folds[chosen]
    rows = prepare(rows)
    inputs = standardize(representation, rows.table).astype(np.float32)
    return inputs, rows.targets, rows.weights, folds


# The paper's wing


def rows_of(training: TrainingTable, inputs: Floats, scaling: Scaling) -> Rows:
    """Standardised rows from prepared ones, whose inputs are standardised already."""
    center, scale = scaling
    targets = (training.targets - center) / scale
    return Rows(inputs=inputs, targets=targets, weights=training.weights)


def encode_rows(
    prepare: Prepare, representation: Representation, scaling: Scaling, rows: TrainingTable
) -> Rows:
    """Standardised rows."""
    return rows_of(prepare(rows), standardize(representation, rows.table), scaling)


def batches_of(data: Rows | Stream, encode: Encode, batch_size: int, seed: int) -> Batches:
    """Minibatches of stochastic inference; those of a stream are shuffled within buffers."""
    if isinstance(data, Rows):
        return minibatches(data, batch_size, seed)

    def pass_over(number: int) -> Iterator[Rows]:
        rng = np.random.default_rng((seed, number))
        chunks = (tuple(vars(encode(rows)).values()) for rows in reread(data))
        for inputs, targets, weights in mixed(chunks, rng):
            yield from split(Rows(inputs=inputs, targets=targets, weights=weights), batch_size)

    return pass_over


def provider_of(
    data: Rows | Stream, encode: Encode, model: BowTieModel, count: int
) -> Rows | RowProvider:
    """Who has the rows of coordinate ascent: this process, workers of a cluster, or files."""
    if isinstance(data, Rows):
        return data
    blocks = partial(_blocks, encode, block_rows(model, count))
    client = client_of(data.source)
    if client is not None:
        from bowtienet import cluster

        return cluster.ClusterProvider(client, cluster.encoded(client, data, blocks))
    size = 8 * data.facts.n_rows * count * sum(model.architecture.hidden)
    if size > MEMORY_BYTES:
        raise ValueError(
            f"coordinate ascent keeps {size / 1e9:.1f} GB of gate probabilities for these "
            f"{data.facts.n_rows} rows: use solver='svi', which keeps none, or Dask workers."
        )
    return RowProvider(BlocksOfStream(data, blocks))


class BlocksOfStream:
    """Blocks of rows that are read anew whenever they are iterated."""

    def __init__(
        self, stream: Stream, blocks: Callable[[TrainingTable], tuple[Block, ...]]
    ) -> None:
        self._stream, self._blocks = stream, blocks

    def __iter__(self) -> Iterator[Block]:
        for rows in reread(self._stream):
            yield from self._blocks(rows)


def _blocks(encode: Encode, size: int, rows: TrainingTable) -> tuple[Block, ...]:
    return tuple((part, None) for part in split(encode(rows), size))


# Answers


def by_batches(X: Any, answer: Callable[[Any], Any]) -> Any:
    """Answers for a table, or for a source batch by batch, in its order."""
    source = source_of(X)
    if source is None:
        return answer(X)
    answers = [answer(batch) for batch, _ in sources.batches_of(source)]
    if not answers:
        raise ValueError("the source has no rows: there is nothing to predict.")
    return joined(answers)


def joined(answers: list[Any]) -> Any:
    """Arrays, or tuples of arrays, one below the other."""
    if isinstance(answers[0], tuple):
        return tuple(np.concatenate(each) for each in zip(*answers, strict=True))
    return np.concatenate(answers)
