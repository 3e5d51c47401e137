"""Cases in processes of their own, several at a time, each record kept as soon as it is there.

A process serves one method, so that libraries never meet in it, and has one thread, so that a fit
has a core for itself. It ends when its method has no more cases, when it crashes, and when the
process that started it ends in whatever way.
"""

from __future__ import annotations

import multiprocessing
import operator
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from bowtienet.evaluation.metrics import load_scoringrules
from bowtienet.experiments.cases import Case, lacks_data, run_case, unscored
from bowtienet.experiments.methods import missing
from bowtienet.experiments.records import DONE, FAILED, MISSING, Journal, Record
from bowtienet.inference.execution import usable_cores

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""What the processes of cases find in their environment."""
_READY = "ready"
_UNKNOWN_SECONDS = 10.0
"""A guess for cases of which nothing like them has been run."""

Runner = Callable[[Case], Record]


def run_cases(
    cases: Sequence[Case],
    journal: Journal,
    *,
    n_jobs: int = -1,
    again: bool = False,
    callback: Callable[[Record], None] | None = None,
    run: Runner = run_case,
) -> None:
    """Run the cases that the journal lacks, method by method, and add their records to it.

    Parameters
    ----------
    cases : sequence of Case
        All cases of the experiments.
    journal : Journal
        What is done already, and where records go.
    n_jobs : int
        Cases at the same time; -1 for all cores.
    again : bool
        Run those that failed once more.
    callback : callable, optional
        Called with each new record.
    run : callable
        From a case to its record; a function of a module, that other processes can import.
    """
    n_workers = _workers(n_jobs)
    waiting, lacking = [], _Lacking()
    for case in to_do(cases, journal.records, again=again):
        reason = lacking.reason(case)
        if reason is None:
            waiting.append(case)
        else:
            _keep(unscored(case, MISSING, reason), journal, callback)
    if waiting:
        load_scoringrules()  # without it every case would fail, and for no fault of its own
        with closing(_run_waiting(waiting, n_workers, run)) as records:
            for record in records:
                _keep(record, journal, callback)


def to_do(
    cases: Iterable[Case], records: Mapping[str, Record], *, again: bool = False
) -> list[Case]:
    """Cases to run, once each: by method in the order they come in, then by seed.

    A missing one is to do again when its method can run; a failed one if `again`.
    """
    left = [
        case
        for case in {case.key: case for case in cases}.values()
        if _is_left(case, records, again)
    ]
    order = {method: place for place, method in enumerate(dict.fromkeys(c.method for c in left))}
    return sorted(left, key=lambda case: (order[case.method], case.seed))


def seconds_left(cases: Iterable[Case], records: Iterable[Record], n_jobs: int = -1) -> float:
    """Σ_c t(c) / jobs, with the mean time of what is most like a case: its data set, its method.

    Parameters
    ----------
    cases : iterable of Case
        Those to do.
    records : iterable of Record
        From which times are known.
    n_jobs : int
        Cases at the same time; -1 for all cores.
    """
    known: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        if record.status == DONE:
            for kind in _kinds(record):
                known.setdefault(kind, []).append(record.wall_seconds + record.predict_seconds)
    means = {kind: float(np.nanmean(times)) for kind, times in known.items()}
    total = sum(
        next((means[kind] for kind in _kinds(case) if kind in means), _UNKNOWN_SECONDS)
        for case in cases
    )
    return total / _workers(n_jobs)


def _kinds(case: Case | Record) -> tuple[tuple[Any, ...], ...]:
    """What a case is an example of, the most special first."""
    sizes = (tuple(case.hidden), case.members)
    return (case.method, case.dataset, *sizes), (case.method, case.dataset), (case.method,), ()


def _is_left(case: Case, records: Mapping[str, Record], again: bool) -> bool:
    before = records.get(case.key)
    if before is None:
        return True
    if before.status == MISSING:
        return missing(case.method) is None
    return before.status == FAILED and again


class _Lacking:
    """What cannot be run here, and why: a data set is looked for once, which may download it."""

    def __init__(self) -> None:
        self._data: dict[str, str | None] = {}

    def reason(self, case: Case) -> str | None:
        """Why a case cannot be run, or None."""
        if case.dataset not in self._data:
            self._data[case.dataset] = lacks_data(case.dataset)
        return missing(case.method) or self._data[case.dataset]


def _keep(record: Record, journal: Journal, callback: Callable[[Record], None] | None) -> None:
    before = journal.records.get(record.key)
    if before is None or (before.status, before.note) != (MISSING, record.note):
        record = journal.append(record)
    if callback is not None:
        callback(record)


def _workers(n_jobs: Any) -> int:
    try:
        found = operator.index(n_jobs)
    except TypeError:
        found = 0
    if found < 1 and found != -1:
        raise ValueError(
            f"n_jobs must be a whole number of at least 1, or -1 for all cores, got {n_jobs!r}."
        )
    return usable_cores() if found == -1 else found


@dataclass
class _Worker:
    """A process that serves one method, and the case that it is at."""

    process: BaseProcess
    channel: Connection
    method: str
    case: Case | None = None
    is_ready: bool = False
    has_crashed: bool = False

    def can_serve(self, case: Case) -> bool:
        """Whether it is free for a case, and one of its method."""
        return self.case is None and not self.has_crashed and case.method == self.method

    def give(self, case: Case) -> None:
        """Run a case next; one that has crashed meanwhile is noticed when it is waited for."""
        self.case = case
        with suppress(OSError):
            self.channel.send(case)

    def end(self) -> None:
        """End it at once: it has nothing to tidy up, and libraries may hang when they do."""
        self.process.kill()
        self.channel.close()
        self.process.join()
        self.process.close()


def _run_waiting(
    cases: Sequence[Case], n_workers: int, run: Runner
) -> Generator[Record, None, None]:
    """Records in the order in which cases end; no process outlives this generator."""
    left = list(reversed(cases))
    workers: list[_Worker] = []
    try:
        while left or workers:
            while left and len(workers) < n_workers:
                _start(workers, left.pop(), run)
            for worker in _answering(workers):
                record = _answer(worker)
                if left and worker.can_serve(left[-1]):
                    worker.give(left.pop())
                elif worker.case is None:
                    workers.remove(worker)
                    worker.end()
                if record is not None:
                    yield record
    finally:
        for worker in workers:
            worker.end()


def _answering(workers: Sequence[_Worker]) -> list[_Worker]:
    """Workers that have something to say, or are dead; waits for the first."""
    heard = wait([worker.channel for worker in workers])
    return [worker for worker in workers if worker.channel in heard]


def _answer(worker: _Worker) -> Record | None:
    """The record of a case that is at its end, whichever; None if a worker is only ready."""
    case = worker.case
    assert case is not None
    try:
        found = worker.channel.recv()
    except (EOFError, OSError):
        worker.process.join()
        if not worker.is_ready:
            raise ChildProcessError(
                "a process for the cases could not start (exit code "
                f"{worker.process.exitcode}): run them from a program that can be imported."
            ) from None
        worker.case, worker.has_crashed = None, True
        return unscored(case, FAILED, _crash(worker.process.exitcode))
    if found == _READY:
        worker.is_ready = True
        return None
    worker.case = None
    return found


def _crash(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        return f"its process was ended by signal {name}"
    return f"its process ended with exit code {code}"


def _start(workers: list[_Worker], case: Case, run: Runner) -> None:
    """One worker more; it is among them before Ctrl-C can come between."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with ExitStack() as stack:
        stack.callback(theirs.close)
        stack.enter_context(_environment(ONE_THREAD))
        stack.enter_context(_deaf())
        process = context.Process(target=_serve, args=(theirs, run), name=case.method)
        process.start()
        workers.append(_Worker(process, ours, case.method))
        workers[-1].give(case)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables for processes that start meanwhile; this one has long read its own."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf() -> Iterator[None]:
    """Put off signals to end, which processes that start meanwhile must not hear half-made."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(channel: Connection, run: Runner) -> None:
    """The life of a worker: cases in, records out, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the process that started this one
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _silence()
    channel.send(_READY)
    while True:
        try:
            case = channel.recv()
        except (EOFError, OSError):
            return
        channel.send(run(case))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _silence() -> None:
    """What libraries print, also from below Python, is no part of a command's answer."""
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
