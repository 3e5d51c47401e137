"""Runs the fits that an estimator asks for, and what it knows of itself when they are done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from bowtienet.estimators.members import Outcome, Settings, Task, last_bound, run_task
from bowtienet.estimators.progress import Reporter
from bowtienet.inference.convergence import Status
from bowtienet.inference.coordinate_ascent import FitResult, Progress
from bowtienet.prediction.ensemble import Ensemble
from bowtienet.prediction.weighting import effective_members


class Runner:
    """Runs the fits of an estimator, one by one or through joblib."""

    def __init__(
        self,
        estimator: Any,
        sizes: tuple[int, ...],
        ensemble: Ensemble,
        table: dict[str, Any],
        reporter: Reporter,
    ) -> None:
        self.estimator, self.ensemble, self.reporter = estimator, ensemble, reporter
        self.table = table
        self.interrupted = False
        self.settings = Settings(
            hidden=sizes,
            family=estimator.prior,
            scheme=estimator.init,
            max_sweeps=estimator.max_iter,
            tolerance=estimator.tol,
            route=estimator.predictive,
            n_threads=None,
            prune_every=estimator.prune_every,
            false_discovery_rate=estimator.false_discovery_rate,
        )

    def __call__(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Outcomes in the order of the tasks, until the last one or an interruption."""
        self.reporter.expect(len(tasks))
        parallel = effective_n_jobs(self.estimator.n_jobs) > 1 and len(tasks) > 1
        try:
            for outcome in self._elsewhere(tasks) if parallel else self._here(tasks):
                self.interrupted = self.interrupted or outcome.interrupted
                yield outcome
                if outcome.interrupted or self.reporter.stopped:
                    return
        except KeyboardInterrupt:
            self.interrupted = True

    def _here(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        for task in tasks:
            member = self.reporter.member(self._attributes)
            outcome = run_task(task, self.settings, member)
            member.close()
            yield outcome

    def _elsewhere(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        settings = replace(self.settings, n_threads=1)
        try:
            parallel = Parallel(n_jobs=self.estimator.n_jobs, return_as="generator")
        except ValueError:  # a backend that can only answer all at once
            parallel = Parallel(n_jobs=self.estimator.n_jobs)
        for outcome in parallel(delayed(run_task)(task, settings) for task in tasks):
            self.reporter.finished(last_bound(outcome.results[-1]))
            yield outcome

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
        return fitted_attributes(self.ensemble, [member], np.ones(1), self.table)


def fitted_attributes(
    ensemble: Ensemble, members: Sequence[FitResult], weights: np.ndarray, table: dict[str, Any]
) -> dict[str, Any]:
    """What `fit` leaves behind, by name; `table` says what it knows of X and y."""
    heaviest = members[int(np.argmax(weights))]
    stopped = [member.status in (Status.CONVERGED, Status.HELD_OUT) for member in members]
    return {
        **table,
        "ensemble_": replace(ensemble, members=tuple(members), weights=np.asarray(weights)),
        "member_weights_": np.asarray(weights),
        "n_effective_members_": effective_members(weights),
        "elbo_history_": np.asarray(heaviest.elbo_history),
        "elbo_": last_bound(heaviest),
        "elbo_terms_": heaviest.elbo_terms,
        "status_": heaviest.status,
        "converged_": bool(np.sum(np.asarray(weights)[stopped]) >= 0.5),
        "n_iter_": max(member.n_sweeps for member in members),
        "n_outputs_": heaviest.model.architecture.n_outputs,
    }
