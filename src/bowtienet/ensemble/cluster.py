"""Rows that stay on the workers of Dask with their local factors: only statistics travel.

    moments = survey_partitions(client, parts, measure)       small answers, one for each partition
    with ClusterRows(client, on_each(client, parts, standardize)) as rows:
        result = fit(model, rows, factors)

A sweep is one task for each partition, run where the partition is, and a tree of sums in the order
of the partitions; it does not matter for the result who computed what.

A partition is one object that Dask holds as the result of a task: rows, and the local factors that
the last two sweeps left in it. Local factors are no results themselves. Each would depend on the
one before, and Dask would repeat all sweeps when a worker dies. As it is, Dask computes the rows
again, and a sweep that does not find the local factors it asks for starts with a forward pass.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from itertools import count
from threading import Event
from typing import Any, NoReturn

import numpy as np

from bowtienet._arrays import slices
from bowtienet._validation import non_negative
from bowtienet.data.rows import Rows, split
from bowtienet.inference.execution import (
    Mapper,
    block_rows,
    initialize_memory,
    local_pass,
    workers,
)
from bowtienet.inference.pruning import shrink_memory
from bowtienet.inference.statistics import Statistics, add
from bowtienet.model.architecture import Architecture
from bowtienet.model.priors import BowTieModel, check_rows
from bowtienet.posterior.factors import GlobalFactors, LocalMemory
from bowtienet.posterior.selection import Selection

PATIENCE = 30.0
"""Seconds to wait for a worker when none is left."""
TICK = 0.5
"""Seconds between two looks at the list of workers."""
ANSWER = 10.0
"""Seconds in which a scheduler that is alive answers a small question."""
FAN_IN = 8
"""Statistics that one task adds up."""
MOST_DEATHS = 3
"""Workers of one partition that may die in a pass; a further death is not chance."""
GAIN = 0.9
"""A partition moves to another worker if that leaves at most this share of the largest load."""


def running_client() -> Any:
    """The Dask client of this session."""
    try:
        return _library("distributed").default_client()
    except ValueError:
        raise ValueError(
            "Dask tables need a scheduler: start one with distributed.Client() first."
        ) from None


def on_each(client: Any, parts: Sequence[Any], function: Callable[[Any], Any]) -> list[Any]:
    """Futures of `function` for each part; what it reads is not kept.

    Parameters
    ----------
    client : distributed.Client
    parts : list of delayed or futures
    function : callable
        Can be pickled.
    """
    task = _library("dask").delayed(function, pure=False, traverse=False)
    return list(client.compute([task(part) for part in parts]))


def survey_partitions(
    client: Any,
    parts: Sequence[Any],
    function: Callable[[Any], Any],
    *,
    patience: float = PATIENCE,
) -> Iterator[Any]:
    """What `function` answers for each part, in their order; answers wait on the workers.

    Parameters are those of `on_each`, and the seconds to wait for a worker when none is left.
    """
    futures = on_each(client, parts, function)
    try:
        for future in futures:
            yield _result(client, future, patience)
            future.release()
    finally:
        _release(futures)


class ClusterRows:
    """A row provider whose partitions, with their local factors, stay on the workers of Dask.

    Local factors take 8 bytes for each row and hidden unit (twice from the second layer on) for
    each of two sweeps; Dask counts them as unmanaged memory. A worker works on as many partitions
    at a time as it has threads.

    Partitions of a worker that dies lose their local factors; see `rebuilt`. A worker that joins
    takes partitions from the busiest ones, with their local factors.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of delayed or futures
        Each gives standardised `Rows` (NumPy, float64). Those that were scattered, and not computed
        by a task, are lost with their worker.
    block_size : int, optional
        Rows that a thread works on at a time; see `fit`.
    patience : float
        Seconds to wait for a worker when none is left.
    """

    def __init__(
        self,
        client: Any,
        partitions: Sequence[Any],
        *,
        block_size: int | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.block_size = block_size
        self.rebuilt = False
        self._client = client
        self._patience = non_negative(patience, "patience")
        self._versions = count()
        self._threads: dict[str, int] = {}
        self._homes: dict[int, str] = {}
        held = on_each(client, partitions, _Partition)
        try:
            shapes = list(survey_partitions(client, held, _shape, patience=patience))
            self._columns = _common_columns(shapes)
        except BaseException:
            _release(held)
            raise
        # Keys are the partitions' numbers: those without rows (a filter leaves such) play no part.
        self._sizes = {number: shape.n_rows for number, shape in enumerate(shapes) if shape.n_rows}
        self._held = {number: held[number] for number in self._sizes}
        self.n_rows = sum(self._sizes.values())

    def check(self, architecture: Architecture) -> None:
        """Refuse rows that do not fit the architecture."""
        n_inputs, n_targets = self._columns
        none = Rows(
            inputs=np.empty((0, n_inputs)), targets=np.empty((0, n_targets)), weights=np.empty(0)
        )
        check_rows(architecture, none)

    def begin(self, model: BowTieModel, factors: GlobalFactors, apply: Mapper = map) -> _Memory:
        """Memory of all rows from a forward pass, which the next local pass begins with."""
        return _Memory()

    def local_pass(
        self, model: BowTieModel, factors: GlobalFactors, memory: _Memory, apply: Mapper = map
    ) -> tuple[Statistics, _Memory]:
        """Update the local factors of all rows once, and add up their statistics."""
        renewed = _Memory(version=next(self._versions))
        answer = self._run(_Order(memory, renewed, self.block_size), (model, factors))
        self.rebuilt = answer.rebuilt
        return answer.statistics, renewed

    def shrunk(
        self, model: BowTieModel, factors: GlobalFactors, memory: _Memory, selection: Selection
    ) -> tuple[ClusterRows, _Memory]:
        """The same partitions; the next local pass shrinks what they remember."""
        return self, _Memory(version=memory.version, selection=selection)

    def close(self) -> None:
        """Free what the workers hold for this fit."""
        _release(self._held.values())
        self._held.clear()

    def __enter__(self) -> ClusterRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, order: _Order, network: tuple[BowTieModel, GlobalFactors]) -> _Answer:
        """The sum of a sweep over all partitions, whoever dies meanwhile."""
        if not self._held:
            raise ValueError("these rows are closed: build ClusterRows again.")
        self._find_homes(_live_workers(self._client, self._patience), level=True)
        # As a task of its own the network passes the scheduler once, not once for each partition.
        sent = self._client.submit(_itself, network, pure=False)
        sweeps: dict[int, Any] = {}
        sums: list[Any] = []
        deaths: Counter[int] = Counter()
        missing: Collection[int] = self._held
        answer = None
        try:
            while answer is None:
                sweeps |= {number: self._sweep(number, order, sent) for number in missing}
                sums += _tree(self._client, [sweeps[number] for number in self._held])
                needed = set(self._homes.values())
                answer = _result(self._client, sums[-1], self._patience, needed)
                if answer is None:
                    missing = self._after_death()
                    deaths.update(missing)
                    _check_deaths(deaths)
            return answer
        finally:
            _release([sent, *sweeps.values(), *sums])

    def _sweep(self, number: int, order: _Order, sent: Any) -> Any:
        """A task that only the home of a partition may run.

        Dask likes to give waiting tasks to idle workers. There a copy of the partition would learn
        the new local factors, and chance decides which of two copies Dask keeps.
        """
        held, home = self._held[number], self._homes[number]
        return self._client.submit(_sweep, held, order, sent, workers=[home], pure=False)

    def _after_death(self) -> list[int]:
        """Partitions whose home is gone; they have new ones now."""
        threads = _live_workers(self._client, self._patience)
        lost = [number for number, home in self._homes.items() if home not in threads]
        self._find_homes(threads, level=False)
        return lost

    def _find_homes(self, threads: dict[str, int], *, level: bool) -> None:
        """Give every partition a worker that is alive.

        It is the one before, or one that has the partition, or the one with the least to do.
        """
        if threads == self._threads:
            return
        self._homes = {n: home for n, home in self._homes.items() if home in threads}
        holders = _ask(self._client, "who_has", keys=[held.key for held in self._held.values()])
        load = self._load(threads)
        for number in sorted(self._held.keys() - self._homes.keys()):
            able = sorted(set(holders.get(self._held[number].key, ())) & set(threads))
            home = min(able or threads, key=load.__getitem__)
            self._settle(number, home, move=not able)
            load[home] += self._sizes[number] / threads[home]
        if level:
            self._level(threads)
            self._threads = threads

    def _level(self, threads: dict[str, int]) -> None:
        """Move partitions from the busiest worker to the least busy one while that helps."""
        while True:
            load = self._load(threads)
            busiest, idlest = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
            limit = (GAIN * load[busiest] - load[idlest]) * threads[idlest]
            fitting = [
                number
                for number, home in sorted(self._homes.items())
                if home == busiest != idlest and self._sizes[number] <= limit
            ]
            if not fitting:
                return
            self._settle(max(fitting, key=self._sizes.__getitem__), idlest, move=True)

    def _load(self, threads: dict[str, int]) -> dict[str, float]:
        """Rows of each worker for each of its threads."""
        rows = dict.fromkeys(sorted(threads), 0)
        for number, home in self._homes.items():
            rows[home] += self._sizes[number]
        return {worker: rows[worker] / threads[worker] for worker in rows}

    def _settle(self, number: int, home: str, *, move: bool) -> None:
        """Let a partition live at a worker; should that die, any other may compute it again.

        A partition moves under another key: of mere copies Dask would keep one, or the other.
        """
        self._homes[number] = home
        if move:
            self._held[number] = self._client.submit(
                _itself, self._held[number], workers=[home], allow_other_workers=True, pure=False
            )


# What runs on the workers.


@dataclass(eq=False)
class _Partition:
    """Rows, and the local factors that sweeps have left here: by version, for each block."""

    rows: Rows
    memory: dict[int | None, list[LocalMemory]] = field(default_factory=dict)

    def __sizeof__(self) -> int:
        """Bytes of the rows, for Dask, which asks once."""
        return int(self.rows.inputs.nbytes + self.rows.targets.nbytes + self.rows.weights.nbytes)


@dataclass(frozen=True, kw_only=True)
class _Memory:
    """Stands for the local factors of all rows, which are on the workers."""

    version: int | None = None
    """None if a forward pass is to find them."""
    selection: Selection | None = None
    """What is left of them."""


@dataclass(frozen=True)
class _Order:
    """What a sweep begins with, and what it leaves."""

    memory: _Memory
    renewed: _Memory
    block_size: int | None


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What comes back from some partitions."""

    statistics: Statistics
    rebuilt: bool


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """Size of a partition and sum of its weights."""

    n_rows: int
    columns: tuple[int, int]
    weight: float


def _shape(partition: _Partition) -> _Shape:
    rows = partition.rows
    return _Shape(
        n_rows=rows.inputs.shape[0],
        columns=(rows.inputs.shape[1], rows.targets.shape[1]),
        weight=float(np.sum(rows.weights)),
    )


def _sweep(
    partition: _Partition, order: _Order, network: tuple[BowTieModel, GlobalFactors]
) -> _Answer:
    """Local step and statistics of a partition, which remembers both ends of it."""
    model, factors = network
    blocks = split(partition.rows, block_rows(model.architecture, order.block_size))
    version, selection = order.memory.version, order.memory.selection
    known = partition.memory.get(version)
    with workers(1) as apply, np.errstate(all="ignore"):
        if known is None:
            memory = initialize_memory(model, factors, blocks, apply)
        elif selection is None:
            memory = known
        else:
            memory = list(shrink_memory(known, selection, [len(b.weights) for b in blocks]))
        statistics, renewed = local_pass(model, factors, blocks, memory, apply)
    before = {} if known is None else {version: known}
    partition.memory = before | {order.renewed.version: renewed}
    return _Answer(statistics=statistics, rebuilt=known is None and version is not None)


def _merge(answers: Sequence[_Answer]) -> _Answer:
    """The sum of neighbours, from left to right."""
    first, *others = answers
    statistics = first.statistics
    for other in others:
        statistics = add(statistics, other.statistics)
    return _Answer(statistics=statistics, rebuilt=any(answer.rebuilt for answer in answers))


def _itself(value: Any) -> Any:
    return value


# The connection to the scheduler.


def _result(client: Any, future: Any, patience: float, needed: Collection[str] = ()) -> Any:
    """Result of a future, or None as soon as one of the workers that it needs is gone.

    Dask itself repeats what dies with a worker, if other workers may run it.
    """
    done, enough = Event(), ANSWER
    future.add_done_callback(lambda _: done.set())
    while True:
        if done.wait(TICK):
            try:
                return future.result(timeout=enough)
            except CancelledError:
                _refuse_lost(client, patience)
            except OSError:
                # Either the task says so, or the worker that has the result does not answer.
                if future.status == "error":
                    raise
                enough *= 2.0
                time.sleep(TICK)
        if not _live_workers(client, patience).keys() >= set(needed):
            return None


def _live_workers(client: Any, patience: float) -> dict[str, int]:
    """Threads of every worker that is alive; waits with patience if there is none."""
    deadline = time.monotonic() + patience
    while not (threads := dict(_ask(client, "ncores"))):
        if time.monotonic() > deadline:
            raise ConnectionError(
                f"no worker is left at the Dask scheduler {client.scheduler.address}, and none "
                f"came within {patience:g} seconds: start workers and fit again."
            )
        time.sleep(TICK)
    return threads


def _ask(client: Any, question: str, **details: Any) -> Any:
    """Answer of the scheduler to a small question, or an error if it is gone."""
    address = getattr(client.scheduler, "address", "its address")
    try:
        if client.status == "running":
            method = getattr(client.scheduler, question)
            return client.sync(method, callback_timeout=ANSWER, **details)
    except (OSError, CancelledError):
        pass
    raise ConnectionError(
        f"the Dask scheduler at {address} went away: start it again and fit again."
    )


def _refuse_lost(client: Any, patience: float) -> NoReturn:
    _live_workers(client, patience)
    raise RuntimeError(
        "partitions died with a worker, or were cancelled, and cannot be computed again: give a "
        "collection that Dask can compute, such as one read from files."
    )


def _tree(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Sums of neighbours, sums of those, and so on; the last one is that of all."""
    sums, level = [], list(futures)
    while len(level) > 1:
        level = [
            client.submit(_merge, level[some], pure=False) for some in slices(len(level), FAN_IN)
        ]
        sums += level
    return sums or level


def _release(futures: Iterable[Any]) -> None:
    """Let go of results and of tasks, even if a traceback still knows them; does not wait."""
    for future in futures:
        future.release()


def _common_columns(shapes: Sequence[_Shape]) -> tuple[int, int]:
    found = {shape.columns for shape in shapes}
    if not any(shape.n_rows for shape in shapes):
        raise ValueError("the partitions have no rows: at least one is needed.")
    if not any(shape.weight for shape in shapes):
        raise ValueError("weights are all zero: at least one row must have a positive weight.")
    if len(found) > 1:
        raise ValueError(
            f"the partitions must have the same numbers of inputs and targets, got {sorted(found)}."
        )
    return found.pop()


def _check_deaths(deaths: Counter[int]) -> None:
    often = sorted(number for number, times in deaths.items() if times > MOST_DEATHS)
    if often:
        raise RuntimeError(
            f"workers died {MOST_DEATHS + 1} times in one pass over partition {often[0]}, probably "
            "for want of memory: cut the table into more partitions, or use larger workers."
        )


def _library(name: str) -> Any:
    """A module of Dask, which is imported only where a Dask table is used."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("Dask tables need Dask: pip install 'bowtienet[bigdata]'.") from error
