"""Runs the fits that an estimator asks for, and what it knows of itself when they are done."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from bowtienet.data.rows import Rows
from bowtienet.estimators.journal import Journal
from bowtienet.estimators.progress import Reporter
from bowtienet.estimators.tasks import Outcome, Settings, Stream, Task, last_bound, run_task
from bowtienet.inference.convergence import Status
from bowtienet.inference.iterate import FitResult, Progress
from bowtienet.prediction.ensemble import Ensemble
from bowtienet.prediction.weighting import effective_members

AUTO_BATCH = 4096
"""Rows of a minibatch, if there are many more."""
FEWEST_BATCHES = 5
"""Batches of an epoch, at least."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What a fit starts from."""

    rows: Rows
    """As the networks see them: all, or of a stream those to start from."""
    ensemble: Ensemble
    """Without members, unless they are to go on."""
    stream: Stream | None = None
    held_out: Rows | None = None
    solver: str = "cavi"
    n_rows: int
    identity: Callable[[], dict[str, Any]]
    """What tells these rows from others."""


class Runner:
    """Runs the fits of an estimator, one by one or through joblib."""

    def __init__(
        self,
        estimator: Any,
        sizes: tuple[int, ...],
        prepared: Prepared,
        table: dict[str, Any],
        reporter: Reporter,
        journal: Journal,
    ) -> None:
        self.estimator, self.prepared, self.reporter = estimator, prepared, reporter
        self.table, self.journal = table, journal
        self.interrupted = False
        self.settings = Settings(
            hidden=sizes,
            family=estimator.prior,
            scheme=estimator.init,
            max_sweeps=estimator.max_iter,
            tolerance=estimator.tol,
            propagation=estimator.predictive,
            n_threads=None,
            prune_every=estimator.prune_every,
            false_sign_rate=estimator.false_sign_rate,
            solver=prepared.solver,
            batch_size=batch_rows(estimator.batch_size, prepared.n_rows),
            forgetting_rate=estimator.forgetting_rate,
            step_delay=estimator.step_delay,
        )

    def __call__(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Outcomes in the order of the tasks, until the last one or an interruption."""
        self.reporter.expect(len(tasks))
        tasks = list(tasks)
        while tasks and (known := self.journal.next_recorded()) is not None:
            self.reporter.finished(last_bound(known.results[-1]))
            tasks.pop(0)
            yield known
        portable = all(task.stream is None or task.stream.portable for task in tasks)
        parallel = effective_n_jobs(self.estimator.n_jobs) > 1 and len(tasks) > 1 and portable
        try:
            for outcome in self._elsewhere(tasks) if parallel else self._here(tasks):
                self.interrupted = self.interrupted or outcome.interrupted
                if not outcome.interrupted:
                    self.journal.finished(outcome)
                yield outcome
                if outcome.interrupted or self.reporter.stopped:
                    return
        except KeyboardInterrupt:
            self.interrupted = True
            self.journal.close()

    def _here(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        for task in tasks:
            member = self.reporter.member(self._attributes)
            outcome = run_task(task, self._settings_of(task), member)
            member.close()
            yield outcome

    def _elsewhere(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        try:
            parallel = Parallel(n_jobs=self.estimator.n_jobs, return_as="generator")
        except ValueError:  # a backend that can only answer all at once
            parallel = Parallel(n_jobs=self.estimator.n_jobs)
        jobs = (
            delayed(run_task)(task, replace(self._settings_of(task), n_threads=1)) for task in tasks
        )
        answers = parallel(jobs)
        try:
            for outcome in answers:
                self.reporter.finished(last_bound(outcome.results[-1]))
                yield outcome
        finally:
            # After an early end joblib would warn of answers that nobody waits for any more.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                getattr(answers, "close", lambda: None)()

    def _settings_of(self, task: Task) -> Settings:
        """Trials on a sample of a stream are fits to rows in memory."""
        return self.settings if task.stream is not None else replace(self.settings, solver="cavi")

    def _attributes(self, progress: Progress) -> dict[str, Any]:
        """Attributes of an estimator as it would be if the fit had ended with this sweep."""
        member = FitResult(
            model=progress.model,
            factors=progress.factors,
            elbo_terms=progress.elbo_terms,
            elbo_history=(progress.elbo,),
            n_sweeps=progress.sweep,
            status=Status.INTERRUPTED,
            pruning=progress.pruning,
        )
        return fitted_attributes(
            self.prepared.ensemble, [member], np.ones(1), self.table, self.settings.solver
        )


def batch_rows(wanted: int | str, n_rows: int) -> int:
    """Rows of a minibatch: as many as wanted, or such that an epoch has batches enough."""
    if not isinstance(wanted, str):
        return int(wanted)
    return max(1, min(AUTO_BATCH, n_rows // FEWEST_BATCHES))


def fitted_attributes(
    ensemble: Ensemble,
    members: Sequence[FitResult],
    weights: np.ndarray,
    table: dict[str, Any],
    solver: str,
) -> dict[str, Any]:
    """What `fit` leaves behind, by name; `table` says what it knows of X and y."""
    heaviest = members[int(np.argmax(weights))]
    stopped = [member.status in (Status.CONVERGED, Status.EARLY_STOPPED) for member in members]
    return {
        **table,
        "ensemble_": replace(ensemble, members=tuple(members), weights=np.asarray(weights)),
        "member_weights_": np.asarray(weights),
        "n_effective_members_": effective_members(weights),
        "elbo_history_": np.asarray(heaviest.elbo_history),
        "elbo_": last_bound(heaviest),
        "elbo_terms_": heaviest.elbo_terms,
        "solver_": solver,
        "status_": heaviest.status,
        "converged_": bool(np.sum(np.asarray(weights)[stopped]) >= 0.5),
        "n_iter_": max(member.n_sweeps for member in members),
        "n_outputs_": heaviest.model.architecture.n_outputs,
        "_recent_densities": None,
    }
