"""What runs on a worker: passes over its partitions, whose local factors its process keeps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from bowtienet.data.rows import Rows, split
from bowtienet.inference.execution import (
    block_rows,
    initialize_memory,
    local_pass,
    workers,
)
from bowtienet.inference.statistics import Statistics, add
from bowtienet.model.priors import BowTieModel
from bowtienet.posterior.factors import GlobalFactors, LocalMemory

MEMORY: dict[str, dict[int, dict[int | None, list[LocalMemory]]]] = {}
"""The store of this process: by fit, partition and version, the memory of each block of rows."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a worker is asked to do."""

    fit: str
    start: int | None
    """Version of the memory to begin with."""
    end: int
    """Version of the memory that comes out."""
    block_size: int | None
    numbers: tuple[int, ...] = ()
    n_threads: int = 1


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What comes back from a worker, or from several."""

    statistics: Statistics | None
    rebuilt: tuple[int, ...] = ()
    """Partitions whose memory was not there."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Size of a partition and sum of its weights."""

    n_rows: int
    n_inputs: int
    n_targets: int
    weight: float


def begin(order: Order, sent: tuple[BowTieModel, GlobalFactors], rows: list[Rows]) -> Answer:
    """Memory of some partitions from a forward pass; versions before it are of no more use."""
    model, factors = sent
    kept = MEMORY.setdefault(order.fit, {})
    size = block_rows(model.architecture, order.block_size)
    with workers(order.n_threads) as apply, np.errstate(all="ignore"):
        for number, part in zip(order.numbers, rows, strict=True):
            memory = initialize_memory(model, factors, split(part, size), apply)
            kept[number] = {order.end: memory}
    return Answer(statistics=None)


def sweep(order: Order, sent: tuple[BowTieModel, GlobalFactors], rows: list[Rows]) -> Answer:
    """Local step and statistics of some partitions; of their memory the last two versions stay."""
    model, factors = sent
    # Held by name: should the fit be closed meanwhile, what is written here vanishes with it.
    kept = MEMORY.setdefault(order.fit, {})
    size = block_rows(model.architecture, order.block_size)
    blocks = [split(part, size) for part in rows]
    rebuilt = []
    before = []
    with workers(order.n_threads) as apply, np.errstate(all="ignore"):
        for number, part in zip(order.numbers, blocks, strict=True):
            memory = kept.get(number, {}).get(order.start)
            if memory is None:
                rebuilt.append(number)
                memory = initialize_memory(model, factors, part, apply)
            before.append(memory)
        statistics, updated = local_pass(
            model, factors, list(chain(*blocks)), list(chain(*before)), apply
        )
    after = iter(updated)
    for number, memory in zip(order.numbers, before, strict=True):
        kept[number] = {order.start: memory, order.end: list(islice(after, len(memory)))}
    return Answer(statistics=statistics, rebuilt=tuple(rebuilt))


def merge(first: Answer, second: Answer) -> Answer:
    """The sum of two answers."""
    rebuilt = (*first.rebuilt, *second.rebuilt)
    if first.statistics is None or second.statistics is None:
        return Answer(statistics=None, rebuilt=rebuilt)
    return Answer(statistics=add(first.statistics, second.statistics), rebuilt=rebuilt)


def forget(fit: str, number: int | None = None) -> None:
    """Free the memory of a fit, or of one of its partitions."""
    if number is None:
        MEMORY.pop(fit, None)
    else:
        MEMORY.get(fit, {}).pop(number, None)


def measure(rows: Rows) -> Shape:
    """Size and weight of a partition."""
    return Shape(
        n_rows=rows.inputs.shape[0],
        n_inputs=rows.inputs.shape[1],
        n_targets=rows.targets.shape[1],
        weight=float(np.sum(rows.weights)),
    )


def carry(values: Any) -> Any:
    """The values, as the result of a task: Dask moves such, and computes them again if lost."""
    return values
