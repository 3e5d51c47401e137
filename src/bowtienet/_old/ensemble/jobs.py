"""Runs the tasks of a fit, one by one or through joblib, and keeps what is finished."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from joblib import Parallel, delayed, effective_n_jobs

from bowtienet._old.ensemble.checkpoint import Checkpoint
from bowtienet._old.ensemble.cluster_reader import ClusterStream
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.ensemble.member import Task, TaskResult, last_bound, run_task
from bowtienet._old.ensemble.settings import Settings
from bowtienet._old.inference.iterate import Progress
from bowtienet._old.representation.representation import View


class Watch(Protocol):
    """Is told how far a fit is: of each member's fit `begin_fit`, its sweeps, and `end_fit`."""

    stopped: bool
    """Whether no further task is wanted."""

    def begin(self, ensemble: Ensemble, solver: str) -> None:
        """Rows are read: an ensemble of this representation is fitted."""

    def say(self, text: str, share: float | None = None, left: float | None = None) -> None:
        """Something about the whole fit: what it is at, the share done, and the seconds to come."""

    def expect(self, n_fits: int) -> None:
        """More fits are to come."""

    def begin_fit(self, view: View) -> None:
        """The next of them begins here, of a network that sees the rows through this view."""

    def __call__(self, progress: Progress) -> bool:
        """A sweep is done; a true answer stops its fit."""

    def end_fit(self) -> None:
        """It is over."""

    def finished(self, elbo: float | None) -> None:
        """A fit that ran elsewhere came back."""


class Jobs:
    """Runs tasks; `interrupted` says whether Ctrl-C ended them early."""

    def __init__(self, settings: Settings, checkpoint: Checkpoint, watch: Watch) -> None:
        self.settings, self.checkpoint, self.watch = settings, checkpoint, watch
        self.interrupted = False

    def __call__(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        """Outcomes in the order of the tasks, until the last one or an interruption."""
        self.watch.expect(len(tasks))
        tasks = list(tasks)
        while tasks and (known := self.checkpoint.next_recorded(tasks[0])) is not None:
            self.watch.finished(last_bound(known.result))
            tasks.pop(0)
            yield known
        several = effective_n_jobs(self.settings.n_jobs) > 1 and len(tasks) > 1
        # The futures of a cluster belong to this process.
        several = several and not any(isinstance(task.stream, ClusterStream) for task in tasks)
        elsewhere = self._elsewhere(tasks) if several else None
        try:
            for task in tasks:
                outcome = next(elsewhere) if elsewhere is not None else self._here(task)
                self.interrupted = self.interrupted or outcome.interrupted
                if not outcome.interrupted:
                    self.checkpoint.finished(outcome)
                yield outcome
                if outcome.interrupted or self.watch.stopped:
                    return
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            if elsewhere is not None:
                elsewhere.close()

    def _here(self, task: Task) -> TaskResult:
        self.watch.begin_fit(task.view)
        outcome = run_task(
            task,
            self.settings,
            self.watch,
            after_pass=self.checkpoint.passed if self.checkpoint.path is not None else None,
            resume=self.checkpoint.take_under_way(task) if task.stochastic else None,
        )
        self.watch.end_fit()
        return outcome

    def _elsewhere(self, tasks: Sequence[Task]) -> Generator[TaskResult]:
        try:
            parallel = Parallel(n_jobs=self.settings.n_jobs, return_as="generator")
        except ValueError:  # a backend that can only answer all at once
            parallel = Parallel(n_jobs=self.settings.n_jobs)
        alone = [replace(task, n_threads=1) for task in tasks]
        answers: Any = parallel(delayed(run_task)(task, self.settings) for task in alone)
        try:
            for outcome in answers:
                self.watch.finished(last_bound(outcome.result))
                yield outcome
        finally:
            # After an early end joblib would warn of answers that nobody waits for any more.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                getattr(answers, "close", lambda: None)()
