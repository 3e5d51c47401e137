"""Tasks one by one and through joblib: the same bits in the same order, also after Ctrl-C."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import joblib
import pytest

from bowtienet._old.ensemble import jobs as module
from bowtienet._old.ensemble.checkpoint import Checkpoint
from bowtienet._old.ensemble.jobs import Jobs
from bowtienet._old.ensemble.member import Task, TaskResult, last_bound, run_task
from tests._old.ensemble.fits import (
    RECIPE,
    SETTINGS,
    Watching,
    assert_same_ensemble,
    assert_same_fit,
    bent_table,
    cut_in,
    fit,
    small,
    task,
)

TASKS = [task(recipe=replace(RECIPE, seed=seed), lengths=(2,)) for seed in range(4)]


def run(
    tasks: list[Task], watch: Watching | None = None, n_jobs: int | None = None
) -> tuple[list[TaskResult], Jobs]:
    settings = replace(SETTINGS, n_jobs=n_jobs)
    jobs = Jobs(settings, Checkpoint(None, 0, resume=False), watch or Watching())
    with joblib.parallel_config(backend="threading"):
        return list(jobs(tasks)), jobs


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_outcomes_come_in_the_order_of_the_tasks(n_jobs: int | None) -> None:
    watch = Watching()
    outcomes, jobs = run(TASKS, watch, n_jobs)
    for one, outcome in zip(TASKS, outcomes, strict=True):
        assert_same_fit(outcome.result, run_task(one, SETTINGS).result)
    assert not jobs.interrupted
    assert watch.expected == [4]
    if n_jobs is None:
        assert (watch.n_members, watch.n_closed, watch.n_sweeps) == (4, 4, 8)
    else:
        assert watch.bounds == [last_bound(outcome.result) for outcome in outcomes]


def test_a_watch_may_want_no_further_task() -> None:
    def stop(watch: Watching, progress: Any) -> bool:
        watch.stopped = watch.n_members == 2
        return watch.stopped

    outcomes, jobs = run(TASKS, Watching(stop))
    assert [outcome.result.n_sweeps for outcome in outcomes] == [2, 1]
    assert not jobs.interrupted


def test_ctrl_c_in_a_sweep_keeps_what_was_reached() -> None:
    outcomes, jobs = run(TASKS, cut_in(3, 1, KeyboardInterrupt))
    assert jobs.interrupted
    assert [outcome.interrupted for outcome in outcomes] == [False, False, True]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_ctrl_c_before_a_sweep_keeps_what_is_finished(
    n_jobs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watching()

    def interrupted(one: Task, *arguments: Any, **settings: Any) -> TaskResult:
        if one.recipe.seed != 2:
            return run_task(one, *arguments, **settings)
        deadline = time.monotonic() + 20.0
        while n_jobs and len(watch.bounds) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_task", interrupted)
    outcomes, jobs = run(TASKS, watch, n_jobs)
    assert jobs.interrupted
    assert len(outcomes) == 2


@pytest.mark.parametrize("changes", [{}, {"solver": "svi"}, {"weighting": "elbo"}], ids=str)
def test_a_fit_through_joblib_has_the_same_bits(changes: dict[str, Any]) -> None:
    expected = fit(bent_table(), small(**changes))
    with joblib.parallel_config(backend="threading"):
        found = fit(bent_table(), small(n_jobs=2, **changes))
    assert_same_ensemble(found.ensemble, expected.ensemble)


@pytest.mark.process
@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_a_fit_in_other_processes_has_the_same_bits(solver: str) -> None:
    settings = small(solver=solver)
    expected = fit(bent_table(), settings)
    found = fit(bent_table(), replace(settings, n_jobs=2))
    assert_same_ensemble(found.ensemble, expected.ensemble)
