"""Rows that stay on the workers of Dask with their local factors: only statistics travel.

    facts = survey_partitions(client, parts, gather)          small answers, one for each part
    with ClusterRows(client, on_each(client, parts, standardize)) as rows:
        result = fit(model, rows, factors)

A sweep is one task for each partition, run where the partition is, and a tree of sums in the order
of the partitions: the result does not depend on who computed what.

A partition is one object that Dask holds as the result of a task: rows, and the local factors that
the last two sweeps left in it. Local factors are no results themselves: Dask would hold those of
all sweeps. When a worker dies, Dask computes the rows of its partitions again, and a sweep that
does not find the local factors it asks for repeats the local steps that led to them, from the
networks of the sweeps before. They then have the bits that were lost, and the fit goes on as if
nothing had happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import count
from typing import Any

import numpy as np

from bowtienet._old._arrays import map_arrays, slices
from bowtienet._old.data.rows import Rows, split
from bowtienet._old.ensemble.dask_client import (
    ask,
    live_workers,
    on_each,
    release,
    result,
    survey_partitions,
)
from bowtienet._old.inference.execution import (
    Mapper,
    block_rows,
    initialize_memory,
    local_pass,
    workers,
)
from bowtienet._old.inference.local_step import local_memory, settle
from bowtienet._old.inference.statistics import FAN_IN, Statistics, add
from bowtienet._old.model.priors import BowTieModel, check_rows
from bowtienet._old.posterior.factors import GlobalFactors, LocalMemory

ATTEMPTS = 5
"""Times that a sweep is tried: again when a worker dies."""
HISTORY_BYTES = 1_000_000_000
"""Networks of earlier sweeps that are remembered: of larger ones lost local factors are settled."""
SETTLED, MOST_STEPS = 1e-10, 200
"""Largest move of local factors that are settled, and most steps until then."""
GAIN = 0.9
"""A partition moves if its new worker then has at most this share of the largest load."""


class ClusterRows:
    """A row provider whose partitions, with their local factors, stay on the workers of Dask.

    A worker works on as many partitions at a time as it has threads. Local factors take 8 bytes for
    each row and hidden unit (twice from the second layer on) for each of two sweeps; Dask counts
    them as unmanaged memory.

    Partitions of a worker that dies lose their local factors, and repeat the local steps that led
    to them. Should the networks of all sweeps take more than `HISTORY_BYTES`, they are settled
    beside the present network instead; see `rebuilt`. A worker that joins takes partitions from the
    busiest ones, with their local factors.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of delayed or futures
        Each gives standardised `Rows` (NumPy, float64). Rows that were scattered, not computed by
        a task, are lost with their worker.
    block_size : int, optional
        Rows that a thread works on at a time; see `fit`.
    """

    def __init__(
        self, client: Any, partitions: Sequence[Any], *, block_size: int | None = None
    ) -> None:
        self.block_size = block_size
        self.rebuilt = False
        self._client = client
        self._versions = count()
        self._threads: dict[str, int] = {}
        self._homes: dict[int, str] = {}
        held = on_each(client, partitions, _Partition)
        try:
            shapes = list(survey_partitions(client, held, _shape))
        except BaseException:
            release(held)
            raise
        # Partitions without rows (a filter leaves such) play no part.
        self._sizes = {number: n_rows for number, (n_rows, *_) in enumerate(shapes) if n_rows}
        self._columns = shapes[0][1:]
        self._held = {number: held[number] for number in self._sizes}
        self.n_rows = sum(self._sizes.values())

    def check(self, model: BowTieModel) -> None:
        """Refuse rows that do not fit the architecture and the outcome."""
        n_inputs, n_targets = self._columns
        none = Rows(
            inputs=np.empty((0, n_inputs)), targets=np.empty((0, n_targets)), weights=np.empty(0)
        )
        check_rows(model.architecture, none, model.outcome)

    def begin(self, model: BowTieModel, factors: GlobalFactors, apply: Mapper = map) -> _Memory:
        """Memory of all rows from a forward pass; the first local pass makes it on its way."""
        return _Memory()

    def local_pass(
        self, model: BowTieModel, factors: GlobalFactors, memory: _Memory, apply: Mapper = map
    ) -> tuple[Statistics, _Memory]:
        """Update the local factors of all rows once, and add up their statistics."""
        renewed = _Memory(
            version=next(self._versions), history=_longer(memory.history, (model, factors))
        )
        # As a task of its own the network passes the scheduler once, not once for each partition.
        network = self._client.submit(_itself, (model, factors), pure=False)
        try:
            statistics, self.rebuilt = self._sweep(network, memory, renewed.version)
        finally:
            network.release()
        return statistics, renewed

    def close(self) -> None:
        """Free what the workers hold for this fit."""
        release(self._held.values())
        self._held.clear()

    def __enter__(self) -> ClusterRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _sweep(self, network: Any, memory: _Memory, renewed: int | None) -> tuple[Statistics, bool]:
        """The sum over all partitions; after a death all of them begin again where they began."""
        details: dict[str, Any] = {
            "version": memory.version,
            "renewed": renewed,
            "block_size": self.block_size,
            "settles": memory.history is None,
        }
        history: Any = None
        n_failed = 0
        try:
            while n_failed < ATTEMPTS:
                steps = partial(_sweep, **details)
                answer: _Answer | None = self._on_all(steps, network=network, history=history)
                if answer is None:
                    n_failed += 1
                elif answer[0] is not None:
                    return answer[0], answer[1]
                else:
                    # Local factors are missing, which is rare: only then does the history travel.
                    history = self._client.submit(_itself, memory.history, pure=False)
        finally:
            release([] if history is None else [history])
        raise RuntimeError(
            f"a worker died or was paused in each of {ATTEMPTS} attempts at one sweep, for want of "
            "memory perhaps: use larger workers, or fewer hidden units."
        )

    def _on_all(self, function: Any, **details: Any) -> Any:
        """The sum of what a function of each partition answers; None if a worker was lost.

        Only its home may run the task of a partition. Dask likes to give waiting tasks to idle
        workers: there a copy of the partition would learn the new local factors, and chance
        decides which copy Dask keeps.
        """
        self._find_homes()
        tasks: dict[int, Any] = {}
        for home in set(self._homes.values()):
            here = [n for n in self._held if self._homes[n] == home]
            held = [self._held[n] for n in here]
            futures = self._client.map(function, held, workers=[home], pure=False, **details)
            tasks.update(zip(here, futures, strict=True))
        sums = _tree(self._client, [tasks[n] for n in self._held])
        try:
            return result(self._client, sums[-1], self._homes.values())
        finally:
            release([*tasks.values(), *sums])

    def _find_homes(self) -> None:
        """See that every partition is at a worker that is alive, and none has too much to do.

        A partition moves under another key: of mere copies Dask would keep one or the other. Should
        its home die, any worker may compute it again.
        """
        if not self._held:
            raise ValueError("these rows are closed: build ClusterRows again.")
        threads = live_workers(self._client)
        if threads == self._threads:
            return
        holders = ask(self._client, "who_has", keys=[held.key for held in self._held.values()])
        before: dict[int, str | None] = {}
        for n, held in self._held.items():
            able = [self._homes.get(n), *holders.get(held.key, ())]
            before[n] = next((worker for worker in able if worker in threads), None)
        self._homes = share_out(self._sizes, before, threads)
        for n, home in self._homes.items():
            if home != before[n]:
                self._held[n] = self._client.submit(
                    _itself, self._held[n], workers=[home], allow_other_workers=True, pure=False
                )
        self._threads = threads


def share_out(
    sizes: Mapping[int, int], homes: Mapping[int, str | None], threads: Mapping[str, int]
) -> dict[int, Any]:
    """Homes for partitions that have none; others leave the busiest worker while that helps.

    What a worker has to do is counted in rows for each of its threads.
    """
    homes = dict(homes)
    while True:
        rows: Counter[str | None] = Counter()
        for n, home in homes.items():
            rows[home] += sizes[n]
        load = {worker: rows[worker] / threads[worker] for worker in sorted(threads)}
        idlest, busiest = min(load, key=load.__getitem__), max(load, key=load.__getitem__)
        limit = (GAIN * load[busiest] - load[idlest]) * threads[idlest]
        movable = [n for n in homes if homes[n] is None] or [
            n for n in homes if homes[n] == busiest and sizes[n] <= limit
        ]
        if not movable:
            return homes
        homes[max(movable, key=sizes.__getitem__)] = idlest


# What runs on the workers.


@dataclass(eq=False)
class _Partition:
    """Rows, and the local factors that sweeps have left here: by version, for each block."""

    rows: Rows
    memory: dict[int | None, Sequence[LocalMemory]] = field(default_factory=dict)

    def __sizeof__(self) -> int:
        """Bytes of the rows, for Dask, which asks once."""
        return int(self.rows.inputs.nbytes + self.rows.targets.nbytes + self.rows.weights.nbytes)


_Network = tuple[BowTieModel, GlobalFactors]


@dataclass(frozen=True, kw_only=True)
class _Memory:
    """Stands for the local factors of all rows, which are on the workers."""

    version: int | None = None
    """None if a forward pass is to find them."""
    history: tuple[_Network, ...] | None = ()
    """The networks whose local steps led to them; None if these were too many to keep."""


_Answer = tuple[Statistics | None, bool]
"""What comes back from some partitions: sums, or None if local factors are missing, and whether
some were settled anew."""


def _longer(history: tuple[_Network, ...] | None, network: _Network) -> tuple[_Network, ...] | None:
    """The history with one more network, unless that would be too much to keep."""
    sizes: list[int] = []
    map_arrays(lambda x: sizes.append(np.asarray(x).nbytes), network[1])
    if history is None or (len(history) + 1) * sum(sizes) > HISTORY_BYTES:
        return None
    return (*history, network)


def _shape(partition: _Partition) -> tuple[int, int, int]:
    """Numbers of rows, inputs and targets."""
    n_rows, n_inputs = partition.rows.inputs.shape
    return n_rows, n_inputs, partition.rows.targets.shape[1]


def _sweep(
    partition: _Partition,
    *,
    network: _Network,
    history: Sequence[_Network] | None,
    version: int | None,
    renewed: int | None,
    block_size: int | None,
    settles: bool,
) -> _Answer:
    """Local step and statistics of a partition, which remembers both ends of it.

    Local factors that it has lost come back by the steps that led to them, if it is told these.
    """
    before = partition.memory.get(version)
    lost = before is None and version is not None
    if lost and settles:
        before = _settled(partition, network, block_size)
    elif lost and history is None:
        return None, False
    elif lost and history is not None:
        for one in history:
            _, before = _step(partition, one, before, block_size)
    statistics, after = _step(partition, network, before, block_size)
    kept = {} if before is None else {version: before}
    partition.memory = kept | {renewed: after}
    return statistics, lost and settles


def _step(
    partition: _Partition,
    network: _Network,
    memory: Sequence[LocalMemory] | None,
    block_size: int | None,
) -> tuple[Statistics, Sequence[LocalMemory]]:
    """A local step from these local factors, or from a forward pass."""
    model, factors = network
    blocks = _blocks(partition, model, block_size)
    with workers(1) as apply, np.errstate(all="ignore"):
        if memory is None:
            memory = initialize_memory(model, factors, blocks, apply)
        return local_pass(model, factors, blocks, memory, apply)


def _settled(
    partition: _Partition, network: _Network, block_size: int | None
) -> Sequence[LocalMemory]:
    """Local factors that a network leads to if it stays what it is."""
    model, factors = network
    with workers(1), np.errstate(all="ignore"):
        return [
            local_memory(model, settle(model, factors, b.inputs, b.targets, SETTLED, MOST_STEPS)[0])
            for b in _blocks(partition, model, block_size)
        ]


def _blocks(partition: _Partition, model: BowTieModel, block_size: int | None) -> list[Rows]:
    return split(partition.rows, block_rows(model.architecture, block_size, model.outcome))


def _merge(answers: Sequence[_Answer]) -> _Answer:
    """The sum of neighbours, from left to right; None if one is missing."""
    sums = [own for own, _ in answers if own is not None]
    whole = reduce(add, sums) if len(sums) == len(answers) else None
    return whole, any(rebuilt for _, rebuilt in answers)


def _itself(value: Any) -> Any:
    return value


def _tree(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Sums of neighbours, sums of those, and so on; the last one is that of all."""
    sums: list[Any] = []
    level = list(futures)
    while len(level) > 1 or not sums:
        groups = [level[some] for some in slices(len(level), FAN_IN)]
        level = client.map(_merge, groups, pure=False)
        sums += level
    return sums
