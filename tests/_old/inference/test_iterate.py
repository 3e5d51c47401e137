"""The one loop: both solvers end, stop and fail in the same ways."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.rows import Rows, build_rows, split
from bowtienet._old.inference import coordinate_ascent, stochastic
from bowtienet._old.inference import global_step as global_updates
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.global_step import update_shared_covariance
from bowtienet._old.inference.iterate import FitResult, Progress
from bowtienet._old.inference.row_providers import StreamedRows
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.stochastic import fit_stochastic
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, default_model
from bowtienet._old.posterior.factors import GlobalFactors

N, BATCH = 60, 20
Problem = tuple[BowTieModel, Rows, GlobalFactors]
Run = Callable[..., FitResult]


def problem(hidden: tuple[int, ...] = (6,), prior: str = "student_t") -> Problem:
    rng = np.random.default_rng(7)
    inputs = rng.uniform(-2.0, 2.0, size=(N, 2))
    targets = np.sin(2.0 * inputs[:, 0]) * inputs[:, 1] + 0.1 * rng.normal(size=N)
    rows = build_rows(inputs, targets)
    model = default_model(build_architecture(2, hidden, 1), inputs, targets, prior=prior)
    return model, rows, initialize(model, rows, rng, start_iterations=50)


def readings(rows: Rows, absent: int | None) -> Callable[..., Iterator[Rows]]:
    """All rows in batches whenever asked; a file is gone in the reading number `absent`."""
    count = 0

    def read(*_: int) -> Iterator[Rows]:
        nonlocal count
        count += 1
        yield from split(rows, BATCH)[: 2 if count == absent else None]
        if count == absent:
            raise FileNotFoundError("part-3.parquet")

    return read


def ascend(model: BowTieModel, rows: Rows, factors: GlobalFactors, **settings: Any) -> FitResult:
    """Coordinate ascent on rows that are read anew."""
    read = readings(rows, settings.pop("absent", None))
    return fit(model, StreamedRows(read, N, BATCH), factors, **settings)


def take_in(model: BowTieModel, rows: Rows, factors: GlobalFactors, **settings: Any) -> FitResult:
    """Stochastic steps, three in a pass."""
    read = readings(rows, settings.pop("absent", None))
    return fit_stochastic(model, read, factors, n_rows=float(N), **settings)


SOLVERS = pytest.mark.parametrize(
    ("run", "module", "steps"),
    [(ascend, coordinate_ascent, 1), (take_in, stochastic, 3)],
    ids=["coordinate ascent", "stochastic"],
)
"""How to run it, where it is, and the steps of a pass over the rows."""


def stopping(at: int, seen: list[Progress]) -> Callable[[Progress], bool]:
    def callback(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == at

    return callback


def assert_same(first: FitResult, second: FitResult) -> None:
    """To the bit."""
    map_arrays(np.testing.assert_array_equal, first.factors, second.factors)
    map_arrays(np.testing.assert_array_equal, first.statistics, second.statistics)
    assert first.elbo_history == second.elbo_history
    assert (first.status, first.n_sweeps) == (second.status, second.n_sweeps)


@SOLVERS
@pytest.mark.parametrize("max_iter", [1, 7])
def test_the_iteration_limit_is_honoured_and_named(
    run: Run, module: Any, steps: int, max_iter: int
) -> None:
    seen: list[Progress] = []
    result = run(*problem(), max_iter=max_iter, tol=0.0, callback=seen.append)
    assert result.status is Status.ITERATION_LIMIT
    assert result.n_sweeps == steps * max_iter
    sweeps = [progress.sweep for progress in seen]
    assert sweeps == sorted(set(sweeps))
    assert len(sweeps) == len(result.elbo_history)
    assert np.isfinite([progress.elbo for progress in seen]).all()
    assert seen[-1].factors is result.factors
    assert seen[-1].model is result.model
    assert seen[-1].elbo_terms is result.elbo_terms
    assert seen[-1].n_visited == seen[-1].sweep * N // steps
    assert {progress.n_at_most for progress in seen} == {max_iter * N}


@SOLVERS
@pytest.mark.parametrize("at", [1, 4])
def test_a_callback_that_answers_true_stops_the_fit(
    run: Run, module: Any, steps: int, at: int
) -> None:
    seen: list[Progress] = []
    result = run(*problem(), max_iter=20, callback=stopping(at, seen))
    assert result.status is Status.INTERRUPTED
    assert len(seen) == len(result.elbo_history) == at
    assert seen[-1].factors is result.factors


@SOLVERS
@pytest.mark.parametrize("at", [1, 3])
def test_ctrl_c_in_the_callback_keeps_the_step(run: Run, module: Any, steps: int, at: int) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.sweep >= at:
            raise KeyboardInterrupt

    found = run(*problem(), max_iter=20, callback=interrupt)
    assert_same(found, run(*problem(), max_iter=20, callback=lambda p: p.sweep >= at))


@SOLVERS
@pytest.mark.parametrize("part", ["global_step", "elbo"])
@pytest.mark.parametrize("at", [1, 5])
def test_ctrl_c_in_a_step_keeps_the_one_before(
    run: Run, module: Any, steps: int, part: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first step is complete there is nothing to return; after it there is."""
    calls, original, seen = 0, getattr(module, part), []

    def interrupted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return original(*arguments)

    start = problem()
    monkeypatch.setattr(module, part, interrupted)
    if at == 1:
        with pytest.raises(KeyboardInterrupt):
            run(*start, max_iter=20)
        return
    found = run(*start, max_iter=20, callback=seen.append)
    monkeypatch.undo()
    assert found.n_sweeps == at - 1
    assert_same(found, run(*start, max_iter=20, callback=stopping(len(seen), [])))


@SOLVERS
def test_errors_are_the_callers(run: Run, module: Any, steps: int) -> None:
    def callback(progress: Progress) -> None:
        raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        run(*problem(), callback=callback)
    with pytest.raises(FileNotFoundError, match=r"part-3"):
        run(*problem(), absent=4, max_iter=20)


@SOLVERS
def test_arithmetic_of_those_who_give_rows_is_their_own(
    run: Run, module: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def divided(*_: Any) -> Any:
        raise ZeroDivisionError("in the caller's reader")

    monkeypatch.setattr(sys.modules[__name__], "split", divided)
    with pytest.raises(ZeroDivisionError, match="reader"):
        run(*problem(), max_iter=20)


@SOLVERS
@pytest.mark.parametrize("error", [np.linalg.LinAlgError, OverflowError, FloatingPointError])
@pytest.mark.parametrize("at", [1, 4])
def test_a_breakdown_is_a_status_and_keeps_the_last_good_state(
    run: Run, module: Any, steps: int, error: type, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step from one on fails: those before it are the result."""
    start, seen = problem(), []
    original, calls = global_updates.update_local_shrinkage, 0

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= at:
            raise error("no inverse")
        return original(*arguments)

    monkeypatch.setattr(global_updates, "update_local_shrinkage", failing)
    found = run(*start, max_iter=20, repeats=1, callback=seen.append)
    monkeypatch.undo()
    assert found.status is Status.NON_FINITE
    assert len(found.elbo_history) == len(seen) == at - 1
    if at > 1:
        stopped = run(*start, max_iter=20, repeats=1, callback=stopping(at - 1, []))
        map_arrays(np.testing.assert_array_equal, found.factors, stopped.factors)
        assert found.elbo_history == stopped.elbo_history


@SOLVERS
def test_a_breakdown_by_momentum_is_tried_again_without(
    run: Run, module: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = global_updates.update_local_shrinkage, 0

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise np.linalg.LinAlgError("no inverse")
        return original(*arguments)

    monkeypatch.setattr(global_updates, "update_local_shrinkage", failing)
    settings = {} if steps == 1 else {"momentum": 0.5}
    found = run(*problem(), max_iter=9, tol=0.0, repeats=1, **settings)
    assert found.status is Status.ITERATION_LIMIT
    assert 5 <= len(found.elbo_history) < 9 * steps


@SOLVERS
@pytest.mark.parametrize("prior", ["student_t", "laplace", "normal_inverse_gaussian", "gig"])
@pytest.mark.parametrize("hidden", [(6,), (5, 4)])
@pytest.mark.parametrize("factor", [float("nan"), float("inf"), 1e200])
def test_a_fit_without_a_finite_bound_has_none_to_show(
    run: Run, module: Any, steps: int, prior: str, hidden: tuple[int, ...], factor: float
) -> None:
    model, rows, factors = problem(hidden, prior)
    first = factors.layers[0]
    far = replace(first, weights=replace(first.weights, mean=first.weights.mean * factor))
    factors = update_shared_covariance(replace(factors, layers=(far, *factors.layers[1:])))
    told: list[Progress] = []
    result = run(model, rows, factors, max_iter=5, callback=told.append)
    assert result.status is Status.NON_FINITE
    assert (result.elbo_terms, result.elbo_history, told) == (None, (), [])
    map_arrays(np.testing.assert_array_equal, result.factors, factors)
