"""Rows that stay on the workers of a Dask scheduler, with their local factors; statistics travel.

A sweep is one task for each worker over the partitions that it owns, and a tree of sums. Local
factors are kept in a store of the worker's process and not as results of tasks: Dask would keep
those of every sweep, and repeat all sweeps when a worker dies. What died with a worker is built
anew by a forward pass.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Literal
from uuid import uuid4

import numpy as np

from bowtienet._validation import non_negative
from bowtienet.data.rows import Rows
from bowtienet.estimators.cluster.link import ANSWER, PATIENCE, TICK, Link, library, losses
from bowtienet.estimators.cluster.ownership import level_out, share_out
from bowtienet.estimators.cluster.worker import (
    Answer,
    Order,
    Shape,
    begin,
    carry,
    forget,
    measure,
    merge,
    sweep,
)
from bowtienet.inference.execution import Mapper
from bowtienet.inference.statistics import Statistics
from bowtienet.model.architecture import Architecture
from bowtienet.model.priors import BowTieModel, check_rows
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.selection import Selection

_MOST_DEATHS = 3
"""As often may the workers of a partition die in one pass; the next time it is not chance."""


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
    link = Link(client, PATIENCE)
    return link.collect(on_each(client, parts, function))


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
    data = on_each(client, parts, transform)
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
        self._link = Link(client, non_negative(patience, "patience"))
        shapes = self._link.collect(on_each(client, data, measure))
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
        self._run(begin, model, factors, None, version)
        self.rebuilt = False
        return version

    def local_pass(
        self, model: BowTieModel, factors: GlobalFactors, memory: Any, apply: Mapper = map
    ) -> tuple[Statistics, int]:
        """Update the local factors of all rows once, and add up their statistics."""
        start, end = memory if isinstance(memory, int) else None, next(self._versions)
        answer = self._run(sweep, model, factors, start, end)
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
            self._link.tell(partial(forget, self._fit.hex), self._link.ask("ncores"))

    def __enter__(self) -> ClusterRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(
        self,
        task: Callable[..., Answer],
        model: BowTieModel,
        factors: GlobalFactors,
        start: int | None,
        end: int,
    ) -> Answer:
        """One task for each worker and the sum of their answers, whoever dies meanwhile."""
        if not self._data:
            raise ValueError("these rows are closed: call cluster_rows again.")
        # At the beginning no partition has local factors that a move would cost.
        live = self._settle("all" if task is begin else "idle")
        # As a task of its own a megabyte of factors passes the scheduler once, not once for each
        # worker; workers then hand it on. It takes no longer than scattering, and cannot be lost.
        sent = self._client.submit(carry, (model, factors), pure=False)
        order = Order(fit=self._fit.hex, start=start, end=end, block_size=self.block_size)
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
        task: Callable[..., Answer],
        sent: Any,
        order: Order,
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

    def _answer(self, jobs: Sequence[_Job]) -> Answer | None:
        """The sum of the answers, or None as soon as one of them will not come."""
        total = _tree(self._client, [job.future for job in jobs])
        enough = ANSWER
        while True:
            if self._link.wait([total]):
                try:
                    return total.result(timeout=enough)
                except TimeoutError:
                    enough *= 2.0
                except (CancelledError, *losses()):  # type: ignore[misc]
                    self._after_loss()
                    return None
            live = self._link.workers()
            self._check_data()
            if any(_is_lost(job, live) for job in jobs):
                return None

    def _after_loss(self) -> None:
        """Let the scheduler tell what else is gone before it is asked for more."""
        time.sleep(TICK)
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
        before, self._owners = self._owners, share_out(self._sizes, holders, self._owners, live)
        if level is not None:
            self._owners = level_out(self._sizes, self._owners, live, all_may_take=level == "all")
        for number, owner in self._owners.items():
            if owner not in holders[number]:
                self._move(number, owner)
            if before.get(number, owner) != owner and before[number] in live:
                self._link.tell(partial(forget, self._fit.hex, number), [before[number]])
        return live

    def _move(self, number: int, owner: str) -> None:
        """Let the data of a partition be at its owner, under a key of which there is one copy.

        A mere copy Dask would soon remove, at the one place or at the other. Should the owner die,
        any other worker may compute it again.
        """
        self._data[number] = self._client.submit(
            carry, self._data[number], workers=[owner], allow_other_workers=True, pure=False
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


@dataclass(frozen=True, kw_only=True)
class _Job:
    """A task that is pinned to a worker."""

    worker: str
    order: Order
    future: Any


def _tree(client: Any, futures: Sequence[Any]) -> Any:
    """The sum of answers, added in pairs of neighbours where they are."""
    level = list(futures)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        left_over = level[len(level) - len(level) % 2 :]
        level = [*(client.submit(merge, *pair, pure=False) for pair in pairs), *left_over]
    return level[0]


def on_each(client: Any, parts: Sequence[Any], function: Callable[[Rows], Any]) -> list[Any]:
    """Futures of `function` for each partition; what it reads is not kept."""
    task = library("dask").delayed(function, pure=False, traverse=False)
    return list(client.compute([task(part) for part in parts]))


def _is_lost(job: _Job, live: Mapping[str, int]) -> bool:
    if job.worker not in live or job.future.cancelled():
        return True
    return job.future.status == "error" and isinstance(job.future.exception(), losses())


def _check_deaths(deaths: Counter[int]) -> None:
    often = sorted(number for number, times in deaths.items() if times > _MOST_DEATHS)
    if often:
        raise RuntimeError(
            f"{_names(often)} died with a worker {_MOST_DEATHS + 1} times in one pass, probably "
            "for want of memory: cut the table into more partitions, or use larger workers."
        )


def _common_columns(shapes: Sequence[Shape]) -> tuple[int, int]:
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
