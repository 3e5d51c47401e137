"""Rows on the workers of a Dask scheduler: they and their local factors stay, statistics travel.

    parts = partitions(DaskSource(frame, "fare"))       a Dask table, checked on the workers
    moments = survey_partitions(client, parts, measure)
    with cluster_rows(client, parts, standardize) as rows:
        result = fit(model, rows, factors)

A sweep is one task for each worker over the partitions that it owns, and a tree of sums. Local
factors are kept in a store of the worker's process and not as results of tasks: Dask would keep
those of every sweep, and repeat all sweeps when a worker dies. What died with a worker is built
anew by a forward pass.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice
from typing import Any, Literal, NoReturn
from uuid import uuid4

import numpy as np

from bowtienet._validation import non_negative
from bowtienet.data.blocks import BLOCK_ROWS, Source, check_block, check_unique
from bowtienet.data.rows import Rows, split
from bowtienet.inference.execution import (
    Mapper,
    block_rows,
    initialize_memory,
    local_pass,
    workers,
)
from bowtienet.inference.statistics import Statistics, add
from bowtienet.model.architecture import Architecture
from bowtienet.model.priors import BowTieModel, check_rows
from bowtienet.posterior.factors import GlobalFactors, LocalMemory
from bowtienet.posterior.selection import Selection

PATIENCE = 30.0
"""Seconds to wait for a worker when none is left."""
_TICK = 0.5
"""Seconds between two looks at who is alive."""
_ANSWER = 5.0
"""Seconds in which a scheduler that is alive answers a small question, unless it is very busy."""
_ATTEMPTS = 3
"""So often is it asked."""
_MOST_DEATHS = 3
"""As often may the workers of a partition die in one pass; the next time it is not chance."""


def running_client() -> Any:
    """The client of this session."""
    try:
        return _library("distributed").default_client()
    except ValueError:
        raise ValueError(
            "Dask tables need a scheduler: start one with distributed.Client() first."
        ) from None


def survey_partitions(
    client: Any, parts: Sequence[Any], function: Callable[[Rows], Any]
) -> list[Any]:
    """What `function` answers for each partition, asked where its rows are.

    Parameters
    ----------
    client : distributed.Client
    parts : list of delayed or futures
        Each gives the `Rows` of a partition; see `partitions`.
    function : callable
        Can be pickled; its answers should be small.
    """
    link = _Link(client, PATIENCE)
    return link.collect(_on_each(client, parts, function))


def cluster_rows(
    client: Any,
    parts: Sequence[Any],
    transform: Callable[[Rows], Rows],
    *,
    block_size: int | None = None,
    patience: float = PATIENCE,
) -> ClusterRows:
    """Rows for a fit: `transform` of every partition, computed and kept on the workers.

    Parameters
    ----------
    client : distributed.Client
    parts : list of delayed or futures
        Each gives the `Rows` of a partition in the user's units; see `partitions`.
    transform : callable
        From those to rows on a scale of order 1; can be pickled.
    block_size, patience
        See `ClusterRows`.
    """
    data = _on_each(client, parts, transform)
    return ClusterRows(client, data, block_size=block_size, patience=patience)


class ClusterRows:
    """A keeper of rows whose partitions, with their local factors, stay on the workers of Dask.

    Each partition has an owner: a worker that has its data. Local factors take 8 bytes for each row
    and hidden unit (twice from the second layer on) for each of two sweeps; Dask counts them as
    unmanaged memory of its workers.

    A worker that dies costs the local factors of its partitions: others take these over, Dask
    computes their data again, and a forward pass the factors. A worker that joins is given
    partitions of the busiest ones, at the same price.

    Parameters
    ----------
    client : distributed.Client
    data : list of futures
        Standardised `Rows` (NumPy, float64) of each partition, computed by tasks: what was
        scattered is lost with its worker.
    block_size : int, optional
        Rows that a thread works on at a time; see `fit`.
    patience : float
        Seconds to wait for a worker when none is left.
    """

    def __init__(
        self,
        client: Any,
        data: Sequence[Any],
        *,
        block_size: int | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.block_size = block_size
        self.rebuilt = False
        self._client = client
        self._link = _Link(client, non_negative(patience, "patience"))
        shapes = self._link.collect(_on_each(client, data, _shape))
        self._columns = _common_columns(shapes)
        # Keys are the partitions' numbers: those without rows (a filter leaves such) play no part.
        self._sizes = {number: shape.n_rows for number, shape in enumerate(shapes) if shape.n_rows}
        self._data = {number: data[number] for number in self._sizes}
        self._owners: dict[int, str] = {}
        self.n_rows = sum(self._sizes.values())
        if self.n_rows == 0:
            raise ValueError("the partitions have no rows: at least one is needed.")
        if not any(shape.weight for shape in shapes):
            raise ValueError("weights are all zero: at least one row must have a positive weight.")
        self._fit = uuid4()
        # Versions of different keepers differ, so that a resumed fit never finds a wrong one.
        self._versions = count(self._fit.int >> 80)

    def check(self, architecture: Architecture) -> None:
        """Refuse rows that do not fit the architecture."""
        n_inputs, n_targets = self._columns
        none = Rows(
            inputs=np.empty((0, n_inputs)), targets=np.empty((0, n_targets)), weights=np.empty(0)
        )
        check_rows(architecture, none)

    def begin(self, model: BowTieModel, factors: GlobalFactors, apply: Mapper = map) -> int:
        """Memory of all rows from a forward pass; it stays on the workers, this is its version."""
        version = next(self._versions)
        self._run(_begin, model, factors, None, version)
        self.rebuilt = False
        return version

    def local_pass(
        self, model: BowTieModel, factors: GlobalFactors, memory: Any, apply: Mapper = map
    ) -> tuple[Statistics, int]:
        """Update the local factors of all rows once, and add up their statistics."""
        start, end = memory if isinstance(memory, int) else None, next(self._versions)
        answer = self._run(_sweep, model, factors, start, end)
        assert answer.statistics is not None
        self.rebuilt = bool(answer.rebuilt)
        return answer.statistics, end

    def shrunk(
        self, model: BowTieModel, factors: GlobalFactors, memory: Any, selection: Selection
    ) -> tuple[ClusterRows, int]:
        """The same partitions with memory from a forward pass of the smaller network."""
        return self, self.begin(model, factors)

    def close(self) -> None:
        """Free what the workers keep for this fit."""
        self._data.clear()
        with suppress(ConnectionError):
            self._link.tell(partial(_forget, self._fit.hex), self._link.ask("ncores"))

    def __enter__(self) -> ClusterRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(
        self,
        task: Callable[..., _Answer],
        model: BowTieModel,
        factors: GlobalFactors,
        start: int | None,
        end: int,
    ) -> _Answer:
        """One task for each worker and the sum of their answers, whoever dies meanwhile."""
        if not self._data:
            raise ValueError("these rows are closed: call cluster_rows again.")
        # At the beginning no partition has local factors that a move would cost.
        live = self._settle("all" if task is _begin else "idle")
        # As a task of its own a megabyte of factors passes the scheduler once, not once for each
        # worker; workers then hand it on. It takes no longer than scattering, and cannot be lost.
        sent = self._client.submit(_carry, (model, factors), pure=False)
        order = _Order(fit=self._fit.hex, start=start, end=end, block_size=self.block_size)
        submit = partial(self._submit, task, sent, order)
        jobs = submit(self._data, live)
        deaths: Counter[int] = Counter()
        try:
            while (answer := self._answer(jobs)) is None:
                live = self._settle()
                good = [job for job in jobs if not _is_lost(job, live)]
                # If no job is lost, the tree of sums is: then its loss counts for all.
                lost = set(self._data).difference(*(job.order.numbers for job in good))
                deaths.update(lost or self._data)
                _check_deaths(deaths)
                jobs = sorted([*good, *submit(lost, live)], key=lambda job: job.order.numbers)
            return answer
        except BaseException:
            self._link.cancel([job.future for job in jobs])
            raise

    def _submit(
        self,
        task: Callable[..., _Answer],
        sent: Any,
        order: _Order,
        numbers: Iterable[int],
        live: Mapping[str, int],
    ) -> list[_Job]:
        """A task for each worker over those of the numbered partitions that it owns."""
        by_owner: dict[str, list[int]] = {}
        for number in sorted(numbers):
            by_owner.setdefault(self._owners[number], []).append(number)
        jobs = []
        for owner, owned in by_owner.items():
            own = replace(order, numbers=tuple(owned), n_threads=live[owner])
            future = self._client.submit(
                task,
                own,
                sent,
                [self._data[number] for number in owned],
                workers=[owner],
                allow_other_workers=False,
                pure=False,
            )
            jobs.append(_Job(worker=owner, order=own, future=future))
        return jobs

    def _answer(self, jobs: Sequence[_Job]) -> _Answer | None:
        """The sum of the answers, or None as soon as one of them will not come."""
        total = _tree(self._client, [job.future for job in jobs])
        enough = _ANSWER
        while True:
            if self._link.wait([total]):
                try:
                    return total.result(timeout=enough)
                except TimeoutError:
                    enough *= 2.0
                except (CancelledError, *_losses()):  # type: ignore[misc]
                    self._after_loss()
                    return None
            live = self._link.workers()
            self._check_data()
            if any(_is_lost(job, live) for job in jobs):
                return None

    def _after_loss(self) -> None:
        """Let the scheduler tell what else is gone before it is asked for more."""
        time.sleep(_TICK)
        self._link.workers()
        self._check_data()

    def _settle(self, level: Literal["all", "idle"] | None = None) -> dict[str, int]:
        """Give every partition an owner that is alive and has its data; threads of who is alive.

        Owners may change for all workers to have the same to do, or for idle ones to have any.
        """
        live = self._link.workers()
        self._check_data()
        found = self._link.ask("who_has", keys=[future.key for future in self._data.values()])
        holders = {
            number: [worker for worker in sorted(found.get(future.key, ())) if worker in live]
            for number, future in self._data.items()
        }
        before, self._owners = self._owners, _owners(self._sizes, holders, self._owners, live)
        if level is not None:
            self._owners = _level(self._sizes, self._owners, live, all_may_take=level == "all")
        for number, owner in self._owners.items():
            if owner not in holders[number]:
                self._move(number, owner)
            if before.get(number, owner) != owner and before[number] in live:
                self._link.tell(partial(_forget, self._fit.hex, number), [before[number]])
        return live

    def _move(self, number: int, owner: str) -> None:
        """Let the data of a partition be at its owner, under a key of which there is one copy.

        A mere copy Dask would soon remove, at the one place or at the other. Should the owner die,
        any other worker may compute it again.
        """
        self._data[number] = self._client.submit(
            _carry, self._data[number], workers=[owner], allow_other_workers=True, pure=False
        )

    def _check_data(self) -> None:
        lost = [number for number, future in self._data.items() if future.cancelled()]
        if not lost:
            return
        if "scheduler-connection-lost" in str(self._data[lost[0]].exception()):
            self._link.refuse()
        raise RuntimeError(
            f"{_names(lost)} died with a worker and cannot be computed again, because the data "
            "were scattered or cancelled: give a collection that Dask can compute, such as one "
            "read from files."
        )


@dataclass(frozen=True)
class _Link:
    """Questions to a scheduler that end, with an answer or an error, also when it is gone."""

    client: Any
    patience: float

    def ask(self, question: str, **details: Any) -> Any:
        """Answer of the scheduler to a small question."""
        for _ in range(_ATTEMPTS):
            if self.client.status != "running":
                break
            # Among these errors are a timeout and a connection that was closed.
            with suppress(OSError, CancelledError):
                method = getattr(self.client.scheduler, question)
                return self.client.sync(method, callback_timeout=_ANSWER, **details)
        self.refuse()

    def refuse(self) -> NoReturn:
        """Say that the scheduler is gone."""
        address = getattr(self.client.scheduler, "address", "its address")
        raise ConnectionError(
            f"the Dask scheduler at {address} went away during the fit: start it again; a fit with "
            "checkpoint=... can be resumed."
        )

    def tell(self, function: Callable[[], None], addresses: Iterable[str]) -> None:
        """Call a function on workers; those that are gone need not hear it."""
        named = list(addresses)
        if named:  # to Dask an empty list means all
            with suppress(OSError):
                self.client.run(function, workers=named, on_error="ignore")

    def cancel(self, futures: Sequence[Any]) -> None:
        """Drop tasks of which nobody wants to know any more, if the scheduler still listens."""
        with suppress(Exception):
            self.client.cancel(list(futures))

    def workers(self) -> dict[str, int]:
        """Threads of every worker that is alive; waits with patience if there is none."""
        deadline = time.monotonic() + self.patience
        while not (live := dict(self.ask("ncores"))):
            if time.monotonic() > deadline:
                raise ConnectionError(
                    f"no worker is left at the Dask scheduler {self.client.scheduler.address}, and "
                    f"none came within {self.patience:g} seconds: start workers; a fit with "
                    "checkpoint=... can be resumed."
                )
            time.sleep(_TICK)
        return live

    def wait(self, futures: Sequence[Any]) -> bool:
        """Whether all are done, or one has failed, after at most a tick."""
        with self.client.as_current(), suppress(TimeoutError, CancelledError):
            _library("distributed").wait(futures, timeout=_TICK)
        states = {future.status for future in futures}
        return states == {"finished"} or "error" in states or "cancelled" in states

    def collect(self, futures: Sequence[Any]) -> list[Any]:
        """Answers of tasks that may run anywhere: Dask repeats what dies with a worker."""
        try:
            while not self.wait(futures):
                self.workers()
            for future in futures:
                if future.status == "error":
                    future.result()
            return self.client.gather(list(futures))
        except CancelledError as error:
            self.workers()
            raise RuntimeError(
                "partitions died with a worker and cannot be computed again: give a collection "
                "that Dask can compute, such as one read from files."
            ) from error
        except BaseException:
            self.cancel(futures)
            raise


@dataclass(frozen=True, kw_only=True)
class _Order:
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
class _Job:
    """A task that is pinned to a worker."""

    worker: str
    order: _Order
    future: Any


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What comes back from a worker, or from several."""

    statistics: Statistics | None
    rebuilt: tuple[int, ...] = ()
    """Partitions whose memory was not there."""


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """Size of a partition and sum of its weights."""

    n_rows: int
    n_inputs: int
    n_targets: int
    weight: float


# What runs on the workers.

_MEMORY: dict[str, dict[int, dict[int | None, list[LocalMemory]]]] = {}
"""The store of this process: by fit, partition and version, the memory of each block of rows."""


def _begin(order: _Order, sent: tuple[BowTieModel, GlobalFactors], rows: list[Rows]) -> _Answer:
    model, factors = sent
    kept = _MEMORY.setdefault(order.fit, {})
    size = block_rows(model.architecture, order.block_size)
    with workers(order.n_threads) as apply, np.errstate(all="ignore"):
        for number, part in zip(order.numbers, rows, strict=True):
            memory = initialize_memory(model, factors, split(part, size), apply)
            kept[number] = {order.end: memory}
    return _Answer(statistics=None)


def _sweep(order: _Order, sent: tuple[BowTieModel, GlobalFactors], rows: list[Rows]) -> _Answer:
    """Local step and statistics of some partitions; of their memory the last two versions stay."""
    model, factors = sent
    # Held by name: should the fit be closed meanwhile, what is written here vanishes with it.
    kept = _MEMORY.setdefault(order.fit, {})
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
    return _Answer(statistics=statistics, rebuilt=tuple(rebuilt))


def _merge(first: _Answer, second: _Answer) -> _Answer:
    rebuilt = (*first.rebuilt, *second.rebuilt)
    if first.statistics is None or second.statistics is None:
        return _Answer(statistics=None, rebuilt=rebuilt)
    return _Answer(statistics=add(first.statistics, second.statistics), rebuilt=rebuilt)


def _forget(fit: str, number: int | None = None) -> None:
    """Free the memory of a fit, or of one of its partitions."""
    if number is None:
        _MEMORY.pop(fit, None)
    else:
        _MEMORY.get(fit, {}).pop(number, None)


def _shape(rows: Rows) -> _Shape:
    return _Shape(
        n_rows=rows.inputs.shape[0],
        n_inputs=rows.inputs.shape[1],
        n_targets=rows.targets.shape[1],
        weight=float(np.sum(rows.weights)),
    )


def _carry(values: Any) -> Any:
    return values


# What runs at the client.


def _owners(
    sizes: Mapping[int, int],
    holders: Mapping[int, Sequence[str]],
    before: Mapping[int, str],
    live: Mapping[str, int],
) -> dict[int, str]:
    """Owners of the partitions: as before, or who has the data, or the one with least to do.

    What a worker has to do is counted in rows for each of its threads.
    """
    owners = {number: owner for number, owner in before.items() if owner in live}
    load = _load(sizes, owners, live)
    for number in sorted(set(sizes) - set(owners), key=lambda number: (-sizes[number], number)):
        size = sizes[number]
        able = holders[number] or sorted(live)
        owners[number] = min(able, key=lambda worker: (load[worker] + size) / live[worker])
        load[owners[number]] += size
    return owners


def _level(
    sizes: Mapping[int, int],
    owners: Mapping[int, str],
    live: Mapping[str, int],
    *,
    all_may_take: bool,
) -> dict[int, str]:
    """Owners after those who have nothing, or all, took partitions from those who have most to do.

    To move a partition costs a transfer, so the gain must be a tenth.
    """
    owners = dict(owners)
    load = _load(sizes, owners, live)
    takers = [worker for worker, rows in load.items() if all_may_take or rows == 0]
    while takers:
        busiest = max(load, key=lambda worker: load[worker] / live[worker])
        taker = min(takers, key=lambda worker: load[worker] / live[worker])
        limit = 0.9 * load[busiest] / live[busiest]
        fitting = [
            number
            for number, owner in sorted(owners.items())
            if owner == busiest and (load[taker] + sizes[number]) / live[taker] <= limit
        ]
        if not fitting:
            break
        taken = max(fitting, key=sizes.__getitem__)
        owners[taken] = taker
        load[busiest] -= sizes[taken]
        load[taker] += sizes[taken]
    return owners


def _load(
    sizes: Mapping[int, int], owners: Mapping[int, str], live: Mapping[str, int]
) -> dict[str, int]:
    load = dict.fromkeys(sorted(live), 0)
    for number, owner in owners.items():
        load[owner] += sizes[number]
    return load


def _tree(client: Any, futures: Sequence[Any]) -> Any:
    """The sum of answers, added in pairs of neighbours where they are."""
    level = list(futures)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        left_over = level[len(level) - len(level) % 2 :]
        level = [*(client.submit(_merge, *pair, pure=False) for pair in pairs), *left_over]
    return level[0]


def _on_each(client: Any, parts: Sequence[Any], function: Callable[[Rows], Any]) -> list[Any]:
    """Futures of `function` for each partition; what it reads is not kept."""
    task = _library("dask").delayed(function, pure=False, traverse=False)
    return list(client.compute([task(part) for part in parts]))


def _is_lost(job: _Job, live: Mapping[str, int]) -> bool:
    if job.worker not in live or job.future.cancelled():
        return True
    return job.future.status == "error" and isinstance(job.future.exception(), _losses())


def _losses() -> tuple[type[Exception], ...]:
    """Errors of tasks whose worker is gone."""
    scheduler = importlib.import_module("distributed.scheduler")
    names = ("KilledWorker", "NoValidWorkerError", "NoWorkerError")
    found = tuple(getattr(scheduler, name) for name in names if hasattr(scheduler, name))
    return (*found, importlib.import_module("distributed").comm.CommClosedError)


def _check_deaths(deaths: Counter[int]) -> None:
    often = sorted(number for number, times in deaths.items() if times > _MOST_DEATHS)
    if often:
        raise RuntimeError(
            f"{_names(often)} died with a worker {_MOST_DEATHS + 1} times in one pass, probably "
            "for want of memory: cut the table into more partitions, or use larger workers."
        )


def _common_columns(shapes: Sequence[_Shape]) -> tuple[int, int]:
    found = {(shape.n_inputs, shape.n_targets) for shape in shapes}
    if len(found) != 1:
        raise ValueError(
            "the partitions must all have the same numbers of inputs and targets, got "
            f"{sorted(found)}."
        )
    return found.pop()


def _names(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return f"partition{'s' * (len(numbers) > 1)} {shown}{more}"


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("Dask tables need Dask: pip install 'bowtienet[bigdata]'.") from error


# Dask tables as a source of rows.


def is_dask(values: Any) -> bool:
    """Whether `values` is a table or an array of Dask."""
    return type(values).__module__.split(".")[0] in ("dask", "dask_expr")


def partitions(source: DaskSource) -> list[Any]:
    """Delayed `Rows` of each partition in the user's units, checked where they are computed."""
    return list(source.parts)


class DaskSource(Source):
    """Rows of a Dask table; a piece is a partition, and messages count partitions from 0.

    Parameters
    ----------
    X : dask.array.Array (rows, columns) or dask.dataframe.DataFrame
        Lengths of chunks and partitions need not be known.
    y : name, list of names, Dask table or array, or array; optional
        The targets: names of columns if `X` is a data frame, or what has the same partitions as
        `X`, or an array in memory if the lengths of those are known.
    weights : name, Dask table or array, or array; optional
        How many times each row counts, in the same way; 1 by default.
    inputs : list of names, optional
        The columns of a data frame that are inputs; by default all others.
    """

    def __init__(
        self, X: Any, y: Any = None, weights: Any = None, *, inputs: Sequence[str] | None = None
    ) -> None:
        if hasattr(X, "columns"):
            X, names = _chosen(X, y, weights, inputs)
        else:
            X, names = _one_column_chunk(X), _Names()
        self.n_inputs = int(X.shape[1]) if names.inputs is None else len(names.inputs)
        if self.n_inputs == 0:
            raise ValueError("X has no columns left for inputs: give more columns.")
        y, weights = None if names.targets else y, None if names.weights else weights
        self.input_names = names.inputs
        self.target_names = names.targets or _column_names(y)
        self.n_targets = len(names.targets or ()) or _n_columns(y, "y", (1, 2))
        self.single_target = names.single or (y is not None and y.ndim == 1)
        _n_columns(weights, "weights", (1,))
        tables = [_delayed(X), _beside(X, y, "y"), _beside(X, weights, "weights")]
        names = replace(names, labels=self.target_names)
        build = _library("dask").delayed(partial(_build, names), pure=False, traverse=False)
        self.parts = [
            build(number, *parts) for number, parts in enumerate(zip(*tables, strict=True))
        ]
        self.n_pieces = len(self.parts)

    def read(self, piece: int) -> Iterator[Rows]:
        """The rows of a partition, computed anew."""
        yield from split(self.parts[piece].compute(), BLOCK_ROWS)

    def check_unchanged(self) -> None:
        """Dask has no means to tell; that partitions agree in length is checked while reading."""


@dataclass(frozen=True, kw_only=True)
class _Names:
    """Names of the columns of a data frame that are used, None for an array."""

    inputs: tuple[str, ...] | None = None
    targets: tuple[str, ...] | None = None
    weights: str | None = None
    single: bool = False
    """Whether the target was given as one name."""
    labels: tuple[str, ...] | None = None
    """What messages call the targets."""


def _chosen(X: Any, y: Any, weights: Any, inputs: Sequence[str] | None) -> tuple[Any, _Names]:
    """The columns of a data frame that are used, and what for."""
    known = {str(label): label for label in X.columns}
    check_unique([str(label) for label in X.columns], "X")
    targets = (y,) if isinstance(y, str) else tuple(y) if _is_names(y) else ()
    weight = (weights,) if isinstance(weights, str) else ()
    others = tuple(name for name in known if name not in (*targets, *weight))
    chosen = others if inputs is None else tuple(inputs)
    for purpose, names in (("y", targets), ("weights", weight), ("inputs", chosen)):
        for name in names:
            if name not in known:
                shown = ", ".join(map(repr, list(known)[:10])) + ", ..." * (len(known) > 10)
                raise ValueError(
                    f"X has no column {name!r}, which {purpose} names: its columns are {shown}."
                )
    used = (*chosen, *targets, *weight)
    check_unique(used, "the choice of inputs, y and weights")
    X = X[[known[name] for name in used]]
    _check_types(X)
    return X, _Names(
        inputs=chosen,
        targets=targets or None,
        weights=weight[0] if weight else None,
        single=isinstance(y, str),
    )


def _is_names(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(isinstance(name, str) for name in values)


def _check_types(frame: Any) -> None:
    """Refuse columns that cannot hold numbers; Python objects are looked at when they are there."""
    types = importlib.import_module("pandas").api.types
    bad = [
        f"{str(label)!r} ({dtype})"
        for label, dtype in zip(frame.columns, frame.dtypes, strict=True)
        if dtype != np.dtype(object)
        and (not types.is_numeric_dtype(dtype) or types.is_complex_dtype(dtype))
    ]
    if bad:
        raise ValueError(
            f"X must hold numbers, but these columns do not: {', '.join(bad)}; encode them as "
            "numbers first, or leave them out."
        )


def _one_column_chunk(X: Any) -> Any:
    """A Dask array (rows, columns) whose chunks have all columns."""
    if X.ndim != 2:
        raise ValueError(
            f"X must be a table of shape (rows, columns), got {tuple(X.shape)}: reshape it."
        )
    _check_dtype(X, "X")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _check_dtype(values: Any, name: str) -> None:
    if values.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be an array of real numbers, got dtype {values.dtype}: convert or "
            "encode it first."
        )


def _n_columns(values: Any, name: str, ranks: tuple[int, ...]) -> int:
    """Columns of targets or weights that are a table of their own; 0 for None."""
    if values is None:
        return 0
    if not hasattr(values, "ndim"):
        raise ValueError(
            f"{name} must be an array or a Dask table, or name columns if X is a data frame, got "
            f"{type(values).__name__}."
        )
    if values.ndim not in ranks:
        wanted = "(rows,)" + " or (rows, outputs)" * (2 in ranks)
        raise ValueError(f"{name} must have shape {wanted}, got {values.ndim} dimensions.")
    return 1 if values.ndim == 1 else int(values.shape[1])


def _column_names(values: Any) -> tuple[str, ...] | None:
    """Names of the columns of a Dask data frame or series, None if they have none."""
    if hasattr(values, "columns") and values.ndim == 2:
        return tuple(map(str, values.columns))
    name = getattr(values, "name", None)
    return (str(name),) if _is_frame(values) and name is not None else None


def _is_frame(values: Any) -> bool:
    return hasattr(values, "npartitions") and not hasattr(values, "chunks")


def _beside(X: Any, values: Any, name: str) -> list[Any]:
    """Partitions of targets or weights to go with those of `X`."""
    n_parts = X.npartitions
    if values is None:
        return [None] * n_parts
    lengths = None if _is_frame(X) else X.chunks[0]
    known = lengths is not None and not np.isnan(lengths).any()
    if not is_dask(values):
        return _cut(np.asarray(values), lengths if known else None, name)
    if not _is_frame(values):
        _check_dtype(values, name)
        if known and not np.isnan(values.chunks[0]).any():
            _check_lengths(values.shape[0], sum(lengths or ()), name)
            values = values.rechunk({0: lengths})
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
    if values.npartitions != n_parts:
        raise ValueError(
            f"{name} has {values.npartitions} partitions, but X has {n_parts}: give both the same, "
            "for example as columns of one Dask table."
        )
    return _delayed(values)


def _cut(values: np.ndarray, lengths: Sequence[int] | None, name: str) -> list[np.ndarray]:
    """An array in memory cut like `X`."""
    if lengths is None:
        raise ValueError(
            f"{name} is an array in memory, but the lengths of the partitions of X are not known: "
            "give the name of a column, or a Dask array with the same partitions."
        )
    _check_dtype(values, name)
    _check_lengths(values.shape[0], sum(lengths), name)
    return np.split(values, np.cumsum(lengths)[:-1])


def _check_lengths(found: int, wanted: int, name: str, where: str = "") -> None:
    if found != wanted:
        raise ValueError(
            f"{where}{name} has {found} rows, but X has {wanted}: the numbers must be equal."
        )


def _delayed(values: Any) -> list[Any]:
    """The partitions of a Dask collection."""
    return list(np.ravel(values.to_delayed()))


def _build(names: _Names, number: int, X: Any, y: Any, weights: Any) -> Rows:
    """Checked rows of a partition."""
    where = f"partition {number}"
    if names.inputs is not None:
        # By place: labels may be of any type, names are text.
        n_inputs, n_targets = len(names.inputs), len(names.targets or ())
        y = X.iloc[:, n_inputs : n_inputs + n_targets] if n_targets else y
        weights = X.iloc[:, n_inputs + n_targets] if names.weights else weights
        X = X.iloc[:, :n_inputs]
    n_rows = len(X)
    for values, name in ((y, "y"), (weights, "weights")):
        if values is not None:
            _check_lengths(len(values), n_rows, name, f"{where}: ")
    targets = np.empty((n_rows, 0)) if y is None else _floats(y, where)
    rows = Rows(
        inputs=_floats(X, where),
        targets=targets if targets.ndim == 2 else targets[:, None],
        weights=np.ones(n_rows) if weights is None else _floats(weights, where),
    )
    return check_block(rows, where, names.inputs, names.labels)


def _floats(values: Any, where: str) -> np.ndarray:
    """A table or column of a partition in double precision; missing values become NaN."""
    if hasattr(values, "columns"):
        found = np.empty(values.shape)
        for index in range(values.shape[1]):
            found[:, index] = _floats(values.iloc[:, index], where)
        return found
    if not hasattr(values, "iloc"):
        return np.asarray(values, dtype=np.float64)
    try:
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where}: column {str(values.name)!r} must hold numbers ({error}): encode it first."
        ) from None
