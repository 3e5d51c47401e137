"""Stochastic steps against coordinate ascent, and their statistics against those of all rows."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from bowtienet._arrays import map_arrays
from bowtienet.inference import ascend as ascent_module
from bowtienet.inference import stochastic as module
from bowtienet.inference.ascend import Ascent, RowProvider, Status, ascend, build_blocks, sweep
from bowtienet.inference.elbo import elbo
from bowtienet.inference.global_step import update_noise, update_weights
from bowtienet.inference.local_step import for_rows, initialize_local
from bowtienet.inference.statistics import Statistics, add
from bowtienet.inference.stochastic import (
    WINDOW,
    ascend_stochastic,
    begin,
    minibatches,
    step_size,
    stochastic_step,
)
from bowtienet.model.model import BowTieModel, Rows, take_rows
from bowtienet.outcomes import GAUSSIAN, Binary, Classes, Outcome, StudentT
from bowtienet.posterior.factors import Posterior, network
from bowtienet.posterior.initialize import around, initialize, mean_activations, ridge
from bowtienet.prediction.variational import output_moments, output_noise
from tests import builders
from tests.oracle_bridge import assert_equal, assert_same

Problem = tuple[BowTieModel, Posterior, Rows]


def bent_rows(n: int, seed: int = 0, outcome: Outcome = GAUSSIAN) -> Rows:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, 3))
    targets = np.maximum(inputs[:, 0], 0.0) - 0.5 * inputs[:, 1] + 0.2 * rng.normal(size=n)
    if not outcome.has_noise:
        targets = np.digitize(targets, [0.2] if isinstance(outcome, Binary) else [-0.2, 0.6])
    return Rows(inputs=inputs, targets=1.0 * targets[:, None], weights=np.ones(n))


def problem(
    n: int,
    hidden: tuple[int, ...] = (4,),
    *,
    prior: str = "student_t",
    outcome: Outcome = GAUSSIAN,
    count: int = 2,
    **settings: Any,
) -> Problem:
    rows = bent_rows(n, outcome=outcome)
    model = builders.default_model(rows, hidden, prior, outcome, **settings)
    return model, initialize(model, rows, np.random.default_rng(1), count, "laplace"), rows


def settled(model: BowTieModel, posterior: Posterior, rows: Rows) -> Statistics:
    """Statistics of rows whose local factors stand still."""
    return module._settled(model, for_rows(posterior), 1e-4, 30, rows)


def assert_close(first: object, second: object, rtol: float) -> None:
    map_arrays(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-10), first, second)


@pytest.mark.parametrize(
    ("hidden", "prior", "outcome"),
    [
        ((), "student_t", GAUSSIAN),
        ((5,), "horseshoe", GAUSSIAN),
        ((4, 3), "student_t", GAUSSIAN),
        ((3, 4, 2), "regularized_horseshoe", GAUSSIAN),
        ((5,), "laplace", StudentT()),
        ((4, 3), "student_t", Classes(n_classes=3)),
        ((4,), "gaussian", Binary()),
    ],
    ids=str,
)
def test_all_rows_and_a_whole_step_are_a_sweep(hidden, prior, outcome, monkeypatch):
    model, posterior, rows = problem(40, hidden, prior=prior, outcome=outcome)
    for changed in (module, ascent_module):
        monkeypatch.setattr(changed, "block_rows", lambda *_: 16)
    state = begin(model, posterior)
    blocks = build_blocks(rows, model, 2)
    memory = [initialize_local(model, state.posterior, b.inputs, b.targets) for b, _ in blocks]
    expected = sweep(state.model, state.posterior, RowProvider(blocks), memory)
    step = partial(stochastic_step, tolerance=0.0, most_steps=1)
    after, noisy = step(state, rows, 40.0, 1.0)
    assert len(blocks) == 3
    assert_close(after.posterior, expected.posterior, 1e-9)
    assert_close(after.model.global_shrinkage, expected.model.global_shrinkage, 1e-9)
    assert_close(after.model.outcome, expected.model.outcome, 1e-9)
    np.testing.assert_allclose(noisy.total, expected.elbo_terms.total, rtol=1e-10)
    # Whatever was remembered is forgotten by a whole step.
    again, _ = step(replace(state, statistics=after.statistics), rows, 40.0, 1.0)
    assert_close(again.posterior, expected.posterior, 1e-9)
    assert after.step == again.step == 1


@pytest.mark.parametrize(("hidden", "outcome"), [((5,), GAUSSIAN), ((4, 3), StudentT())], ids=str)
def test_statistics_of_batches_add_up_to_those_of_all_rows(hidden, outcome):
    """So that of a batch drawn at random is unbiased."""
    model, posterior, rows = problem(50, hidden, outcome=outcome)
    state = begin(model, posterior)
    parts = [settled(state.model, state.posterior, b) for b in minibatches(rows, 7, 3)(0)]
    assert len(parts) == 8
    assert_close(reduce(add, parts), settled(state.model, state.posterior, rows), 1e-8)


def test_natural_parameters_and_the_noise_scale_are_blended():
    """Erratum 6: the scale of the noise itself, not its inverse."""
    state = begin(*problem(60)[:2])
    model, posterior, rows = state.model, state.posterior, bent_rows(60)
    halves = [take_rows(rows, np.arange(30)), take_rows(rows, np.arange(30, 60))]
    first, second = (
        map_arrays(lambda x: 2.0 * x, settled(model, posterior, half)) for half in halves
    )
    stepped, _ = stochastic_step(
        replace(state, statistics=first), halves[1], 60.0, 0.3, tolerance=1e-4, most_steps=30
    )
    blended = map_arrays(lambda a, b: 0.7 * a + 0.3 * b, first, second)
    assert_close(stepped.statistics, blended, 1e-10)
    by_weights = [update_weights(model, posterior, s) for s in (first, second, blended)]
    by_noise = [update_noise(model, posterior, s) for s in (first, second, blended)]
    for index in range(2):
        precision = [np.linalg.inv(p.layers[index].weights.covariance) for p in by_weights]
        linear = [
            (matrix @ p.layers[index].weights.mean[..., None])[..., 0]
            for matrix, p in zip(precision, by_weights, strict=True)
        ]
        scale = [p.layers[index].noise_variance.scale for p in by_noise]
        for a, b, c in (precision, linear, scale):
            np.testing.assert_allclose(c, 0.7 * a + 0.3 * b, rtol=1e-7, atol=1e-7)


def test_the_bound_of_a_batch_is_that_of_its_rows_alone():
    model, posterior, rows = problem(60)
    state, batch = begin(model, posterior), take_rows(rows, np.arange(20))
    memory = settled(state.model, state.posterior, rows)
    after, noisy = stochastic_step(
        replace(state, statistics=memory), batch, 60.0, 0.2, tolerance=1e-4, most_steps=30
    )
    sums = map_arrays(lambda x: 3.0 * x, settled(state.model, state.posterior, batch))
    expected = elbo(after.model, after.posterior, sums)
    np.testing.assert_allclose(noisy.total, expected.total, rtol=1e-12)


def test_passes_hold_every_row_once_in_an_order_of_their_own():
    rows = bent_rows(25)
    batches = minibatches(rows, 10, 0)
    passes = [np.concatenate([b.inputs for b in batches(number)]) for number in (0, 1, 0)]
    assert [len(b.inputs) for b in batches(0)] == [10, 10, 5]
    for inputs in passes:
        np.testing.assert_array_equal(
            inputs[np.lexsort(inputs.T)], rows.inputs[np.lexsort(rows.inputs.T)]
        )
    assert not np.array_equal(passes[0], passes[1])
    np.testing.assert_array_equal(passes[0], passes[2])


def run(given: Problem, batch_size: int, seed: int = 0, **settings: Any) -> Ascent:
    model, posterior, rows = given
    batches = minibatches(rows, batch_size, seed)
    n_rows = float(rows.weights.sum())
    return ascend_stochastic(begin(model, posterior), batches, n_rows, **settings)[0]


def held_out(model: BowTieModel, posterior: Posterior, rows: Rows) -> np.ndarray:
    """Mean log density of new targets under each network."""
    moments = output_moments(model, posterior, rows.inputs)
    variance = moments.epistemic + moments.chance + output_noise(model, posterior)
    return norm(moments.mean, np.sqrt(variance)).logpdf(rows.targets).mean(axis=(1, 2))


def rough_start(model: BowTieModel, rows: Rows) -> Posterior:
    """Units that bend roughly as the targets do, and an output fitted to few rows."""
    rng, networks = np.random.default_rng(0), []
    for _ in range(2):
        bends = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
        layers = []
        for below, width in pairwise(model.architecture.widths[:-1]):
            layers.append(0.05 * rng.normal(size=(width, below + 1)))
            layers[-1][:3, 1:4] += bends
            bends = np.eye(3)
        features = mean_activations(layers, rows.inputs, model.temperature)
        networks.append([*layers, ridge(features, rows.targets, rows.weights)])
    together = [np.stack(means) for means in zip(*networks, strict=True)]
    return around(model, together, rows, rng)


@pytest.mark.parametrize(
    ("hidden", "passes"), [((10,), 15), pytest.param((6, 5), 30, marks=pytest.mark.slow)], ids=str
)
def test_as_good_as_coordinate_ascent_on_new_rows(hidden, passes):
    model, _, rows = problem(2000, hidden, temperature=0.05)
    posterior, new = rough_start(model, take_rows(rows, np.arange(50))), bent_rows(1000, seed=1)
    whole = ascend(model, posterior, rows, max_iter=150, tol=0.0)
    result = run((model, posterior, rows), 100, max_iter=passes)
    expected = held_out(model, whole.posterior, new)
    assert np.all(held_out(model, posterior, new) < expected - 0.05)
    assert np.all(held_out(model, result.posterior, new) > expected - 0.03)
    for history in result.elbo_history:
        assert np.mean(history[-20:]) > np.mean(history[:20])


def test_networks_side_by_side_step_as_one_by_one():
    model, posterior, rows = problem(120, (4, 3), outcome=StudentT())
    settings = {"max_iter": 3, "forgetting_rate": 0.8}
    result = run((model, posterior, rows), 40, **settings)
    for index in range(2):
        expected = run((model, network(posterior, index), rows), 40, **settings)
        assert_same(result.elbo_history[index], expected.elbo_history[0], 1e-9)
        assert_same(network(result.posterior, index), expected.posterior, 1e-7)
        np.testing.assert_allclose(
            result.model.outcome.freedom[index], expected.model.outcome.freedom[0], rtol=1e-7
        )


def test_a_seed_repeats_a_fit_whatever_the_threads(monkeypatch):
    monkeypatch.setattr(module, "block_rows", lambda *_: 16)
    given, fits = problem(150), []
    for seed, cores in ((3, {0}), (3, {0, 1, 2}), (4, {0})):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, c=cores: c, raising=False)
        fits.append(run(given, 50, seed, max_iter=2))
    first, second, other = fits
    assert_equal(first.posterior, second.posterior)
    assert first.elbo_history == second.elbo_history != other.elbo_history


def amounts_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Rows and step size of all steps to come."""
    seen: list[tuple[int, float]] = []
    original = module.stochastic_step

    def spy(state: Any, batch: Rows, n_rows: float, amount: float, **settings: Any) -> Any:
        seen.append((len(batch.inputs), amount))
        return original(state, batch, n_rows, amount, **settings)

    monkeypatch.setattr(module, "stochastic_step", spy)
    return seen


def test_steps_are_whole_while_the_bound_rises_and_shrink_after(monkeypatch):
    """The history holds the bounds that the callback is told, and ends where it stands still."""
    amounts, told = amounts_of(monkeypatch), []
    result = run(problem(200), 20, max_iter=200, callback=lambda *news: told.append(news))
    assert result.status == (Status.CONVERGED,) * 2
    sizes = np.asarray([amount for _, amount in amounts])
    turned = int(np.flatnonzero(sizes < 1.0)[0]) - 1  # the first of those that shrink is whole
    assert turned >= (1 + 3) * WINDOW
    shrinking = [step_size(t, 0.7, 1.0) for t in range(len(sizes) - turned)]
    np.testing.assert_allclose(sizes[turned:], shrinking)
    assert len(shrinking) >= 3 * WINDOW
    assert result.n_sweeps == (len(sizes),) * 2
    assert [number for number, _ in told] == list(range(1, len(sizes) + 1))
    history = np.transpose(result.elbo_history)
    np.testing.assert_array_equal([bounds for _, bounds in told], history)
    np.testing.assert_array_equal(result.elbo_terms.total, history[-1])


def test_steps_of_the_paper_and_a_small_last_batch(monkeypatch):
    """A batch with half the rows of the others takes half their step."""
    amounts = amounts_of(monkeypatch)
    result = run(problem(50), 20, max_iter=3, forgetting_rate=0.8, step_delay=2.0)
    assert result.status == (Status.ITERATION_LIMIT,) * 2
    assert result.n_sweeps == (9, 9)
    assert [n for n, _ in amounts] == [20, 20, 10] * 3
    expected = (np.arange(9) + 2.0) ** -0.8 * np.tile([1.0, 1.0, 0.5], 3)
    np.testing.assert_allclose([amount for _, amount in amounts], expected)
    amounts.clear()
    run(problem(50), 20, max_iter=2)
    assert [amount for _, amount in amounts] == [1.0, 1.0, 0.5] * 2


def test_a_fit_goes_on_from_the_state_it_returned():
    model, posterior, rows = problem(50)
    batches, settings = minibatches(rows, 20, 0), {"forgetting_rate": 0.7, "n_rows": 50.0}
    whole, _ = ascend_stochastic(begin(model, posterior), batches, max_iter=5, **settings)
    first, state = ascend_stochastic(begin(model, posterior), batches, max_iter=2, **settings)
    second, state = ascend_stochastic(state, lambda n: batches(n + 2), max_iter=3, **settings)
    assert state.step == 15
    for index in range(2):
        joined = first.elbo_history[index] + second.elbo_history[index]
        assert joined == whole.elbo_history[index]
    assert_equal(second.posterior, whole.posterior)
    assert second.n_sweeps == (9, 9)


@pytest.mark.parametrize("part", ["callback", "elbo"])
def test_ctrl_c_keeps_the_last_complete_step(part, monkeypatch):
    """It is raised where there is none; a true answer of the callback stops a fit too."""
    given, calls, original = problem(60), [], module.elbo

    def interrupted(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(*arguments) if part == "elbo" else None

    if part == "elbo":
        monkeypatch.setattr(module, "elbo", interrupted)
    complete, callback = (4, None) if part == "elbo" else (5, interrupted)
    result = run(given, 20, max_iter=9, callback=callback)
    monkeypatch.undo()
    stopped = run(given, 20, max_iter=9, callback=lambda number, _: number == complete)
    assert result.status == stopped.status == (Status.INTERRUPTED,) * 2
    assert result.n_sweeps == stopped.n_sweeps == (complete,) * 2
    assert result.elbo_history == stopped.elbo_history
    assert_equal(result.posterior, stopped.posterior)
    assert_equal(result.elbo_terms, stopped.elbo_terms)
    monkeypatch.setattr(module, "elbo", interrupted)
    calls[:] = [1] * 4
    if part == "elbo":
        with pytest.raises(KeyboardInterrupt):
            run(given, 20)


@pytest.mark.parametrize("at", [1, 4])
def test_a_bound_that_is_not_finite_ends_the_fit_at_the_step_before(at, monkeypatch):
    """Batches of rows that overflow."""
    model, posterior, rows = problem(60)

    def batches(number: int) -> list[Rows]:
        good = list(minibatches(rows, 20, 0)(number))
        bad = [replace(batch, inputs=1e200 * batch.inputs) for batch in good]
        return [bad[i] if 3 * number + i + 1 >= at else good[i] for i in range(3)]

    result, _ = ascend_stochastic(begin(model, posterior), batches, 60.0, max_iter=9)
    assert result.status == (Status.NON_FINITE,) * 2
    assert result.n_sweeps == (at - 1,) * 2
    assert [len(history) for history in result.elbo_history] == [at - 1] * 2
    if at == 1:
        assert np.all(np.isnan(result.elbo_terms.total))
        assert_equal(result.posterior, begin(model, posterior).posterior)
        return
    expected = run((model, posterior, rows), 20, max_iter=1)
    assert_equal(result.posterior, expected.posterior)


@pytest.mark.parametrize(
    ("means", "tol", "counts"),
    [
        ([100.0, 110.0, 120.0], 0.0, [0, 0, 0]),
        ([100.0, 100.0, 100.0, 100.0], 0.0, [0, 1, 2, 3]),
        # Noise of a difference of means: sqrt((1 + 1) / 4).
        ([100.0, 100.6, 101.4, 102.2], 0.0, [0, 1, 0, 0]),
        ([100.0, 101.0, 102.0, 103.0, 104.0], 0.025, [0, 1, 2, 0, 1]),
        ([100.0, 50.0, 40.0, 30.0], 0.0, [0, 1, 2, 3]),
    ],
    ids=["rising", "standing still", "within noise", "slow gains add up", "falling"],
)
def test_windows_that_stand_still(means, tol, counts):
    """Of the mean of the networks, at the end of each window of four steps around these means."""
    history: list[np.ndarray] = []
    still, counted = 0, []
    for mean in means:
        for noise in (1.0, -1.0, 1.0, -1.0):
            history.append(mean + noise + np.array([-30.0, 30.0]))
            before, still = still, module._count_still(still, history, 4, tol)
            assert still == before or len(history) % 4 == 0
        counted.append(still)
    assert counted == counts
