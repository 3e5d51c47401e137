"""Dask: facts, local steps, sums and trainings where the partitions are.

All tasks are pure, and what goes into them are results of tasks or small constants: what a dead
worker held is computed again by Dask, gate probabilities by the local steps of all sweeps before,
whose posteriors are results of tasks too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import itemgetter
from typing import Any

import numpy as np
from distributed import Client, Future, get_client, secede

from bowtienet._arrays import Array, map_arrays, one_blas_thread
from bowtienet.ensemble.streams import Chunk, Training
from bowtienet.inference.ascend import Block, RowProvider, block_pass
from bowtienet.inference.local_step import FactorsForRows, for_rows, initialize_local
from bowtienet.inference.statistics import Statistics, add
from bowtienet.model.model import BowTieModel
from bowtienet.networks.networks import Networks
from bowtienet.posterior.factors import LocalMemory, Posterior
from bowtienet.tables import sources
from bowtienet.tables.door import TrainingTable
from bowtienet.tables.sources import (
    Facts,
    Reader,
    Source,
    Stream,
    collect,
    has_rows,
    merge,
    partitions_of,
)


def facts_of_partitions(client: Client, source: Source, reader: Reader) -> Facts:
    """One pass over the partitions, where they are."""
    size = sources.SAMPLE
    facts = _submit(client, partial(_collect, reader, size), _partitions(client, source))
    return result(tree(client, partial(merge, size=size), facts))


def encoded(client: Client, stream: Stream, encode: Callable[[TrainingTable], Any]) -> list[Future]:
    """Rows of each partition as a fit wants them, kept by the workers; None of empty ones."""
    step = partial(_encode, stream.reader, encode)
    return _submit(client, step, _partitions(client, stream.source))


def run(client: Client, trainings: Sequence[Training]) -> list[Networks]:
    """Networks of each training, a task each."""
    return [result(future) for future in _submit(client, _train, trainings)]


class ClusterProvider(RowProvider):
    """Blocks and their memory are with the workers."""

    def __init__(self, client: Client, blocks: Sequence[Future]) -> None:
        self._client, self._futures = client, blocks

    def initialize(self, model: BowTieModel, posterior: Posterior) -> list[Future]:
        """As of `RowProvider`."""
        shared = self._client.submit(for_rows, posterior, pure=False)
        return _submit(self._client, partial(_initialize, model), self._futures, shared=shared)

    def local_pass(
        self, model: BowTieModel, posterior: Posterior, memory: list[Future]
    ) -> tuple[Statistics, list[Future]]:
        """As of `RowProvider`."""
        client = self._client
        shared = client.submit(for_rows, posterior, pure=False)
        pairs = _submit(client, partial(_pass, model), self._futures, memory, shared=shared)
        sums, renewed = (_submit(client, itemgetter(index), pairs) for index in (0, 1))
        return result(tree(client, partial(reduce, add), sums)), renewed

    def choose(
        self, choose: Callable[[Array, Array], Array], first: list[Future], second: list[Future]
    ) -> list[Future]:
        """As of `RowProvider`."""
        return _submit(self._client, partial(map_arrays, choose), first, second)


class Chunks:
    """Results that tasks ask for one after the other; the fit holds on to them, a task does not."""

    def __init__(self, futures: Sequence[Future]) -> None:
        self._futures = futures
        self.keys = [future.key for future in futures]

    def __getstate__(self) -> dict[str, Any]:
        return {"keys": self.keys}


def read(chunks: Chunks, share: float, rng: np.random.Generator) -> Iterator[Chunk]:
    """Inside a task, rows of all chunks in random order, each drawn where the chunk is."""
    client = get_client()
    for index in rng.permutation(len(chunks.keys)):
        chunk: Future = Future(chunks.keys[index], client)
        seed = int(rng.integers(2**63))
        drawn = client.submit(_draw, chunk, share, seed, pure=False).result()
        if drawn is not None:
            yield drawn


def tree(client: Client, join: Callable[[Sequence[Any]], Any], futures: list[Future]) -> Future:
    """`join` of all results that there are, a few at a time."""
    while len(futures) > 1:
        groups = [futures[i : i + 8] for i in range(0, len(futures), 8)]
        futures = [client.submit(_join, join, *group, pure=False) for group in groups]
    return futures[0]


def result(future: Future) -> Any:
    """What a task has computed; one sentence where the cluster is gone."""
    try:
        return future.result()
    except Exception as error:
        is_killed = type(error).__name__ == "KilledWorker"
        if future.status == "error" and not is_killed:
            raise
        reason = "the scheduler is gone, so start it and fit again"
        if is_killed:
            reason = "several workers died of the same task, so give them more memory"
        raise RuntimeError(f"the fit was lost with its cluster: {reason}.") from error


def _submit(client: Client, step: Callable[..., Any], *items: Any, **shared: Any) -> list[Future]:
    """A task for each item."""
    return [client.submit(step, *each, **shared, pure=False) for each in zip(*items, strict=True)]


def _partitions(client: Client, source: Source) -> list[Future]:
    """The partitions with their targets as results of tasks."""
    from dask.delayed import delayed

    pairs = [delayed(lambda *pair: pair, pure=False)(*part) for part in partitions_of(source)]
    return list(client.compute(pairs))


def _collect(reader: Reader, size: int, batch: tuple[Any, Any]) -> Facts | None:
    return collect([reader(*batch)] if has_rows(batch) else [], size)


def _encode(reader: Reader, encode: Callable[[TrainingTable], Any], batch: tuple[Any, Any]) -> Any:
    rows = reader(*batch)[0] if has_rows(batch) else None
    return rows and encode(rows)


def _join(join: Callable[[Sequence[Any]], Any], *parts: Any) -> Any:
    present = [part for part in parts if part is not None]
    return join(present) if present else None


def _draw(chunk: Chunk | None, share: float, seed: int) -> Chunk | None:
    if chunk is None or share == 1.0:
        return chunk
    inputs, targets, weights, folds = chunk
    drawn = np.random.default_rng(seed).random(len(inputs)) < share
    return inputs[drawn], targets[drawn], weights[drawn], folds[drawn]


def _train(training: Training) -> Networks:
    # Its thread is free for the tasks that it waits for.
    secede()
    with one_blas_thread():
        return training()


def _initialize(
    model: BowTieModel, blocks: Sequence[Block] | None, shared: FactorsForRows
) -> tuple[LocalMemory, ...]:
    with np.errstate(all="ignore"):
        return tuple(
            initialize_local(model, shared, rows.inputs, rows.targets) for rows, _ in blocks or ()
        )


def _pass(
    model: BowTieModel,
    blocks: Sequence[Block] | None,
    memory: Sequence[LocalMemory],
    shared: FactorsForRows,
) -> tuple[Statistics | None, tuple[LocalMemory, ...]]:
    with one_blas_thread(), np.errstate(all="ignore"):
        each = zip(blocks or (), memory, strict=True)
        pairs = [block_pass(model, shared, block, kept) for block, kept in each]
    sums = _join(partial(reduce, add), *(each for each, _ in pairs))
    return sums, tuple(remembered for _, remembered in pairs)
