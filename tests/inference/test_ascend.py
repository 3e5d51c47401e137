"""Coordinate ascent: monotone, safe under any momentum, and an end for each network by itself."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._arrays import map_arrays
from bowtienet.inference import ascend as module
from bowtienet.inference.ascend import (
    ROUNDING,
    WINDOW,
    Ascent,
    Status,
    ascend,
    block_rows,
    build_blocks,
    is_converged,
    workers,
)
from bowtienet.inference.local_step import initialize_local, local_step
from bowtienet.model.model import BowTieModel, Rows
from bowtienet.outcomes import GAUSSIAN, Binary, Classes, Outcome, StudentT
from bowtienet.posterior.factors import Posterior, n_networks, network
from bowtienet.posterior.initialize import initialize
from tests import builders
from tests.oracle_bridge import assert_equal, assert_same

Problem = tuple[BowTieModel, Posterior, Rows]


def problem(
    hidden: tuple[int, ...] = (6,),
    prior: str = "student_t",
    *,
    count: int = 2,
    outcome: Outcome = GAUSSIAN,
) -> Problem:
    """Networks at random starts, and rows of a curved surface."""
    rng = np.random.default_rng(7)
    inputs = rng.uniform(-2.0, 2.0, size=(60, 2))
    targets = np.sin(2.0 * inputs[:, :1]) * inputs[:, 1:] + 0.1 * rng.normal(size=(60, 1))
    targets = targets if outcome.has_noise else (targets > 0.0) * 1.0
    rows = Rows(inputs=inputs, targets=targets, weights=rng.uniform(0.5, 1.5, size=60))
    model = builders.default_model(rows, hidden, prior, outcome)
    return model, initialize(model, rows, rng, count, "laplace"), rows


def alone(given: Problem, index: int) -> Problem:
    model, posterior, rows = given
    return model, network(posterior, index), rows


def assert_sound(result: Ascent) -> None:
    """No bound below the one before, and what is returned belongs to the last of them."""
    for history in result.elbo_history:
        bounds = np.asarray(history)
        assert np.all(np.diff(bounds) >= -ROUNDING * np.maximum(np.abs(bounds[:-1]), 1.0))
    last = [history[-1] for history in result.elbo_history]
    np.testing.assert_array_equal(result.elbo_terms.total, last)
    for layer in result.posterior.layers:
        assert np.all(np.isfinite(layer.weights.mean))
        assert np.all(np.diagonal(layer.weights.covariance, axis1=-2, axis2=-1) > 0.0)
        assert np.all(np.isfinite(layer.noise_variance.scale))


def assert_same_network(result: Ascent, index: int, expected: Ascent, rtol: float) -> None:
    """Network `index` is the only one that is expected."""
    assert result.status[index] is expected.status[0]
    assert result.n_sweeps[index] == expected.n_sweeps[0]
    assert_same(result.elbo_history[index], expected.elbo_history[0], rtol)
    assert_same(network(result.posterior, index), expected.posterior, rtol)
    assert_same(map_arrays(lambda x: x[[index]], result.elbo_terms), expected.elbo_terms, rtol)
    shrinkage = map_arrays(lambda x: x[[index]], result.model.global_shrinkage)
    assert_same(shrinkage, expected.model.global_shrinkage, rtol)


def assert_ended(result: Ascent, status: Status, expected: Ascent) -> None:
    """All networks have this status and, to the bit, the state of another fit."""
    assert result.status == (status,) * n_networks(result.posterior)
    assert result.elbo_history == expected.elbo_history
    assert_equal(result.posterior, expected.posterior)
    assert_equal(result.elbo_terms, expected.elbo_terms)


@pytest.fixture
def three_threads(monkeypatch) -> None:
    """Blocks of 16 rows on three threads, whatever the machine."""
    monkeypatch.setattr(module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)


def moved_by(monkeypatch: pytest.MonkeyPatch, momentum: float) -> None:
    """This momentum in place of k / (k + 2)."""
    original = module._extrapolated

    def extrapolated(now: Posterior, then: Posterior, amount: np.ndarray) -> Posterior:
        return original(now, then, np.where(amount > 0.0, momentum, 0.0))

    monkeypatch.setattr(module, "_extrapolated", extrapolated)


@pytest.mark.parametrize("hidden", [(6,), (5, 4)])
def test_acceleration_reaches_a_higher_bound_in_as_many_sweeps(hidden):
    for n_sweeps in (1, 60):  # the first has three rounds of global updates, but no momentum
        plain, fast = (
            ascend(*problem(hidden), max_iter=n_sweeps, tol=0.0, accelerate=accelerate)
            for accelerate in (False, True)
        )
        assert fast.n_sweeps == plain.n_sweeps == (n_sweeps, n_sweeps)
        assert np.all(fast.elbo_terms.total > plain.elbo_terms.total + 0.1)
    assert np.all(fast.elbo_terms.total > plain.elbo_terms.total + 1.0)


@pytest.mark.parametrize(("hidden", "amount"), [((6,), 3.0), ((5, 4), 1e3), ((6,), 1e200)])
def test_a_step_that_lowers_the_bound_is_undone(hidden, amount, monkeypatch):
    """Whatever the momentum: no exception, no warning, never below the accepted bound.

    Every pass over the data is counted, and the limit holds for all of them.
    """
    passes, original = [], module.sweep

    def counted(*arguments: Any, **settings: Any) -> Any:
        passes.append(1)
        return original(*arguments, **settings)

    monkeypatch.setattr(module, "sweep", counted)
    moved_by(monkeypatch, amount)
    result = ascend(*problem(hidden), max_iter=20, tol=0.0)
    assert_sound(result)
    assert result.status == (Status.ITERATION_LIMIT,) * 2
    assert result.n_sweeps == (20, 20)
    assert len(passes) == 20
    assert all(10 <= len(history) < 20 for history in result.elbo_history)


def test_momentum_goes_on_in_the_direction_of_the_last_move(rng):
    """m + r (m - m_before) and beta (beta / beta_before)^r, with an r of each network."""
    model = builders.fixed_model((4, 3))
    now, then = (builders.random_factors(rng, model) for _ in range(2))
    moved = module._extrapolated(now, then, np.array([0.0, 0.6]))
    assert_equal(network(moved, 0), network(now, 0))
    for layer, a, b in zip(moved.layers, now.layers, then.layers, strict=True):
        mean, before = a.weights.mean[1], b.weights.mean[1]
        np.testing.assert_allclose(layer.weights.mean[1], mean + 0.6 * (mean - before))
        scale, before = a.noise_variance.scale[1], b.noise_variance.scale[1]
        np.testing.assert_allclose(layer.noise_variance.scale[1], scale * (scale / before) ** 0.6)
        still = replace(layer, weights=a.weights, noise_variance=a.noise_variance)
        assert_equal(still, a)
        assert layer.weights.covariance is a.weights.covariance


def test_after_an_undone_step_the_fit_goes_on_as_if_it_was_not_taken(monkeypatch):
    """With every momentum step undone, the histories are those of plain sweeps."""
    moved_by(monkeypatch, 0.0)
    plain = ascend(*problem(), max_iter=8, tol=0.0)
    monkeypatch.undo()
    moved_by(monkeypatch, 1e3)
    rejected = ascend(*problem(), max_iter=14, tol=0.0)
    np.testing.assert_allclose(rejected.elbo_history, plain.elbo_history, rtol=1e-12)
    assert_same(rejected.posterior, plain.posterior, 1e-9)


def test_the_fit_is_deterministic_and_leaves_its_arguments_alone():
    model, posterior, rows = problem((5, 4))
    before = map_arrays(np.copy, posterior)
    first, again = (ascend(model, posterior, rows, max_iter=10) for _ in range(2))
    assert first.elbo_history == again.elbo_history
    assert_equal(first.posterior, again.posterior)
    assert_equal(posterior, before)


def climbing(gains: list[float], start: float = -500.0) -> list[float]:
    """A bound that gains so much in each window of sweeps, evenly."""
    steps = np.repeat(gains, WINDOW) / WINDOW
    return [start, *(start + np.cumsum(steps)).tolist()]


@pytest.mark.parametrize(
    ("history", "tol", "expected"),
    [
        # g_2 + g_2² / (g_1 - g_2) may still come: 2 here.
        (climbing([2.0, 1.0]), 2.01 / 497.0, True),
        (climbing([2.0, 1.0]), 1.99 / 497.0, False),
        # Gains that do not fade, however small, and those that grow.
        (climbing([1e-3, 1e-3]), 0.5, False),
        (climbing([1e-3, 2e-3]), 0.5, False),
        # What stands still to rounding has converged at any tolerance.
        (climbing([1.0, 0.0]), 0.0, True),
        (climbing([1.0, 1e-6]), 0.0, False),
        # Bounds near zero count as 1.
        (climbing([0.2, 0.1], start=-0.3), 0.21, True),
        (climbing([0.2, 0.1], start=-0.3), 0.19, False),
        # Two whole windows are needed.
        (climbing([1.0, 0.0])[1:], 1.0, False),
        ([-5.0], 1.0, False),
    ],
)
def test_convergence(history, tol, expected):
    assert is_converged(history, tol) is expected


def test_each_network_ends_where_its_history_says(monkeypatch):
    """As it would alone; a callback that answers true leaves those that have ended."""
    monkeypatch.setattr(module, "WINDOW", 10)
    given, settings = problem((4,), count=3), {"max_iter": 2000, "tol": 1e-2}
    result = ascend(*given, **settings)
    assert result.status == (Status.CONVERGED,) * 3
    first, last = min(result.n_sweeps), max(result.n_sweeps)
    stopped = ascend(*given, **settings, callback=lambda number, _: number == first)
    for index, (history, number) in enumerate(
        zip(result.elbo_history, result.n_sweeps, strict=True)
    ):
        assert is_converged(history, 1e-2)
        assert not any(is_converged(history[:length], 1e-2) for length in range(len(history)))
        assert_same_network(result, index, ascend(*alone(given, index), **settings), 1e-5)
        ended = number == first
        assert stopped.status[index] is (Status.CONVERGED if ended else Status.INTERRUPTED)
        assert stopped.elbo_history[index] == history[: len(stopped.elbo_history[index])]
    assert first < last
    tighter = ascend(*given, max_iter=2000, tol=1e-3)
    assert np.all(np.asarray(tighter.n_sweeps) > result.n_sweeps)


@pytest.mark.parametrize("max_iter", [1, 7])
def test_the_iteration_limit_is_honoured_and_callbacks_are_told(max_iter):
    """What a callback keeps does not change afterwards."""
    told: list[tuple[int, np.ndarray]] = []
    result = ascend(
        *problem(),
        max_iter=max_iter,
        tol=0.0,
        accelerate=False,
        callback=lambda *news: told.append(news),
    )
    assert result.status == (Status.ITERATION_LIMIT,) * 2
    assert result.n_sweeps == (max_iter, max_iter)
    assert [number for number, _ in told] == list(range(1, max_iter + 1))
    np.testing.assert_array_equal(np.transpose([bounds for _, bounds in told]), result.elbo_history)


def test_errors_of_a_callback_are_the_callers():
    """Also those of arithmetic, which in a sweep are a status."""
    with pytest.raises(ZeroDivisionError):
        ascend(*problem(), callback=lambda number, _: bool(1 // 0))


def failing(
    monkeypatch: pytest.MonkeyPatch, name: str, error: type[BaseException], *calls: int
) -> None:
    """A function of the module that fails when it is called for these times."""
    original, count = getattr(module, name), 0

    def function(*arguments: Any, **settings: Any) -> Any:
        nonlocal count
        count += 1
        if count in calls:
            raise error("no inverse")
        return original(*arguments, **settings)

    monkeypatch.setattr(module, name, function)


@pytest.mark.parametrize(("by_keyboard", "at"), [(False, 4), (True, 1)])
def test_a_callback_stops_the_fit_with_the_state_of_its_sweep(by_keyboard, at):
    """By a true answer, or by Ctrl-C while it runs."""

    def callback(number: int, bounds: np.ndarray) -> bool:
        if number == at and by_keyboard:
            raise KeyboardInterrupt
        return number == at

    result = ascend(*problem(), callback=callback)
    assert result.n_sweeps == (at, at)
    assert_ended(result, Status.INTERRUPTED, ascend(*problem(), max_iter=at))


@pytest.mark.parametrize(("part", "complete"), [("elbo", 4), ("_extrapolated", 6)])
def test_ctrl_c_in_a_sweep_keeps_the_last_accepted_state(part, complete, monkeypatch):
    """It is raised where there is none; momentum follows a sweep, from the second on."""
    failing(monkeypatch, part, KeyboardInterrupt, 5)
    result = ascend(*problem(), max_iter=20)
    monkeypatch.undo()
    assert result.n_sweeps == (complete, complete)
    assert_ended(result, Status.INTERRUPTED, ascend(*problem(), max_iter=complete))
    failing(monkeypatch, "global_step", KeyboardInterrupt, 1)
    with pytest.raises(KeyboardInterrupt):
        ascend(*problem(), max_iter=20)


def test_ctrl_c_between_blocks(monkeypatch, three_threads):
    """It comes while the third sweep adds up its blocks; no thread is left behind."""
    before = set(threading.enumerate())
    failing(monkeypatch, "add", KeyboardInterrupt, 8)
    result = ascend(*problem(), max_iter=20)
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert result.n_sweeps == (2, 2)
    assert not any(name.startswith("ThreadPoolExecutor") for name in left)


def spoil_second(monkeypatch: pytest.MonkeyPatch, at: int, factor: float) -> None:
    """From sweep `at` on the second network's update of the output's noise is wrong."""
    original, count = module.global_step, 0

    def wrong(*arguments: Any) -> Posterior:
        nonlocal count
        count += 1
        updated = original(*arguments)
        if count < at or n_networks(updated) == 1:
            return updated
        output = updated.layers[-1]
        scale = output.noise_variance.scale * np.array([[1.0], [factor]])
        output = replace(output, noise_variance=replace(output.noise_variance, scale=scale))
        return replace(updated, layers=(*updated.layers[:-1], output))

    monkeypatch.setattr(module, "global_step", wrong)


@pytest.mark.parametrize(
    ("factor", "status", "accelerate"),
    [(50.0, Status.DECREASED, True), (np.nan, Status.NON_FINITE, False)],
)
def test_a_failure_is_a_status_of_the_network_concerned(factor, status, accelerate, monkeypatch):
    """It keeps its better state; after momentum it is tried once more without."""
    settings = {"tol": 0.0, "accelerate": accelerate}
    whole = ascend(*problem(), max_iter=9, **settings)
    good = ascend(*problem(), max_iter=4, **settings)
    spoil_second(monkeypatch, 5, factor)
    result = ascend(*problem(), max_iter=9, **settings)
    assert result.status == (Status.ITERATION_LIMIT, status)
    assert result.n_sweeps == (9, 6 if accelerate else 5)
    assert result.elbo_history[1] == good.elbo_history[1]
    assert_equal(network(result.posterior, 1), network(good.posterior, 1))
    np.testing.assert_allclose(result.elbo_history[0], whole.elbo_history[0], rtol=1e-9)
    assert_same(network(result.posterior, 0), network(whole.posterior, 0), 1e-7)
    expected = [whole.elbo_terms.total[0], good.elbo_terms.total[1]]
    np.testing.assert_allclose(result.elbo_terms.total, expected, rtol=1e-9)


@pytest.mark.parametrize("at", [1, 4])
def test_an_error_of_arithmetic_keeps_the_last_good_state(at, monkeypatch):
    failing(monkeypatch, "global_step", np.linalg.LinAlgError, *range(at, 100))
    result = ascend(*problem(), max_iter=20, accelerate=False)
    monkeypatch.undo()
    assert result.n_sweeps == (at, at)
    if at > 1:
        expected = ascend(*problem(), max_iter=at - 1, accelerate=False)
        return assert_ended(result, Status.NON_FINITE, expected)
    assert result.status == (Status.NON_FINITE,) * 2
    assert result.elbo_history == ((), ())
    assert np.all(np.isnan(result.elbo_terms.total))


def test_an_error_of_arithmetic_by_momentum_is_tried_again_without(monkeypatch):
    failing(monkeypatch, "global_step", OverflowError, 5)
    result = ascend(*problem(), max_iter=9, tol=0.0)
    assert_sound(result)
    assert result.status == (Status.ITERATION_LIMIT,) * 2
    assert all(5 <= len(history) < 9 for history in result.elbo_history)


def with_far_start(given: Problem, factor: float) -> Problem:
    """The second network's first layer times a factor."""
    model, posterior, rows = given
    first = posterior.layers[0]
    mean = first.weights.mean * np.array([1.0, factor])[:, None, None]
    first = replace(first, weights=replace(first.weights, mean=mean))
    return model, replace(posterior, layers=(first, *posterior.layers[1:])), rows


@pytest.mark.parametrize(
    ("hidden", "prior", "factor"),
    [
        ((6,), "student_t", np.nan),
        ((5, 4), "gig", 1e200),
        ((6,), "horseshoe", np.inf),
    ],
    ids=str,
)
def test_a_start_without_a_finite_bound_stays(hidden, prior, factor):
    """It is the network's alone, without a warning; the one beside it goes on."""
    given = with_far_start(problem(hidden, prior), factor)
    result = ascend(*given, max_iter=5)
    expected = ascend(*alone(given, 0), max_iter=5)
    assert result.status == (Status.ITERATION_LIMIT, Status.NON_FINITE)
    assert result.n_sweeps == (5, 1)
    assert result.elbo_history[1] == ()
    assert np.isnan(result.elbo_terms.total[1])
    for index in range(len(hidden) + 1):
        first, second = (p.layers[index] for p in (result.posterior, given[1]))
        np.testing.assert_array_equal(first.weights.mean[1], second.weights.mean[1])
    np.testing.assert_allclose(result.elbo_history[0], expected.elbo_history[0], rtol=1e-9)
    assert_same(network(result.posterior, 0), expected.posterior, 1e-6)


@pytest.mark.parametrize(
    ("hidden", "outcome"),
    [((7,), GAUSSIAN), ((5, 4), StudentT()), ((6,), Binary())],
    ids=str,
)
def test_blocks_and_threads_change_nothing(hidden, outcome, monkeypatch, three_threads):
    """Threads not a bit, other blocks no more than rounding; nor whether squares are kept."""
    given = problem(hidden, outcome=outcome)
    threads = ascend(*given, max_iter=8, tol=0.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    thread = ascend(*given, max_iter=8, tol=0.0)
    assert threads.elbo_history == thread.elbo_history
    assert_equal(threads.posterior, thread.posterior)
    monkeypatch.setattr(module, "KEPT_BYTES", 0)
    without = ascend(*given, max_iter=8, tol=0.0)
    monkeypatch.undo()
    whole = ascend(*given, max_iter=8, tol=0.0)
    for other in (without, whole):
        assert_same(thread.elbo_history, other.elbo_history, 1e-10)
        assert_same(thread.posterior, other.posterior, 1e-7)


def test_blocks_hold_every_row_once_and_squares_if_there_is_room(monkeypatch):
    model, _, rows = problem()
    monkeypatch.setattr(module, "BLOCK_BYTES", 1)
    for room in (8 * 60 * 6, 8 * 60 * 6 - 1):
        monkeypatch.setattr(module, "KEPT_BYTES", room)
        blocks = build_blocks(rows, model, 2)
        assert [len(part.inputs) for part, _ in blocks] == [16, 16, 16, 12]
        for name in ("inputs", "targets", "weights"):
            parts = [getattr(part, name) for part, _ in blocks]
            np.testing.assert_array_equal(np.concatenate(parts), getattr(rows, name))
        assert all((second is not None) == (room == 2880) for _, second in blocks)


def test_tasks_run_at_a_time_and_overflow_without_a_warning(three_threads):
    """Momentum may overflow on any thread; warnings are errors in this suite."""
    meeting = threading.Barrier(2, timeout=20)

    def task(x: float) -> float:
        meeting.wait()
        return float(np.exp(np.float64(x)))

    with workers(2) as apply:
        assert list(apply(task, [1e3, -1e3])) == [np.inf, 0.0]
        assert np.exp(np.float64(1e3)) == np.inf


@pytest.mark.parametrize(
    ("n_inputs", "hidden", "outcome"),
    [
        (1, (50,), GAUSSIAN),
        (30, (20,), StudentT()),
        (5, (20, 12), GAUSSIAN),
        (5, (8, 20), StudentT()),
        (3, (20,), Classes(n_classes=2)),
    ],
    ids=str,
)
def test_no_array_of_a_block_is_large(n_inputs, hidden, outcome, rng, monkeypatch):
    """Local factors and moments of as many rows as a block may have."""
    monkeypatch.setattr(module, "BLOCK_BYTES", 400_000)
    model = builders.fixed_model(hidden, n_inputs=n_inputs, n_outputs=2, outcome=outcome)
    size = block_rows(model, builders.M)
    rows = builders.random_rows(rng, model, size)
    posterior = builders.random_factors(rng, model)
    memory = initialize_local(model, posterior, rows.inputs, rows.targets)
    held, sizes = local_step(model, posterior, rows.inputs, rows.targets, memory), []
    map_arrays(lambda x: sizes.append(x.nbytes), held)
    assert size > 16
    assert max(sizes) <= 400_000
    assert max(sizes) >= 50_000  # or blocks are needlessly small
