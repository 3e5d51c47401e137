"""Stochastic steps against coordinate ascent, and their statistics against those of all rows."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.rows import Rows, build_rows, take_rows
from bowtienet._old.inference import execution, stochastic
from bowtienet._old.inference.acceleration import extrapolate
from bowtienet._old.inference.convergence import FEWEST_STEPS, Status, window_steps
from bowtienet._old.inference.coordinate_ascent import State, fit, sweep
from bowtienet._old.inference.elbo import elbo
from bowtienet._old.inference.execution import settled_pass
from bowtienet._old.inference.global_step import update_noise, update_shared_covariance, update_weights
from bowtienet._old.inference.iterate import FitResult, Progress
from bowtienet._old.inference.row_providers import HeldRows
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.statistics import add
from bowtienet._old.inference.stochastic import (
    FADING,
    PassSnapshot,
    StochasticState,
    fit_stochastic,
    loosened,
    minibatches,
    step_size,
    stochastic_step,
)
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, default_model
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.prediction.predictive import log_density, predict

Problem = tuple[BowTieModel, Rows, GlobalFactors]


def bent_rows(n: int, seed: int = 0, outputs: int = 2) -> Rows:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, 3))
    targets = np.stack(
        [np.maximum(inputs[:, 0], 0.0) - 0.5 * inputs[:, 1], np.abs(inputs[:, 2])], axis=1
    )
    return build_rows(inputs, targets[:, :outputs] + 0.2 * rng.normal(size=(n, outputs)))


def start(rows: Rows, hidden: tuple[int, ...], **settings: Any) -> Problem:
    architecture = build_architecture(3, hidden, rows.targets.shape[1])
    model = default_model(architecture, rows.inputs, rows.targets, **settings)
    return model, rows, update_shared_covariance(initialize(model, rows, 1))


def begin(model: BowTieModel, factors: GlobalFactors) -> StochasticState:
    return StochasticState(model=model, factors=factors, statistics=None, step=0)


def assert_close(first: object, second: object, rtol: float) -> None:
    map_arrays(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-10), first, second)


@pytest.mark.parametrize(
    ("hidden", "prior"),
    [
        *((hidden, "student_t") for hidden in [(), (5,), (4, 3), (3, 4, 2)]),
        *(((5,), prior) for prior in ("horseshoe", "regularized_horseshoe")),
    ],
    ids=str,
)
def test_all_rows_and_a_whole_step_are_a_sweep(
    hidden: tuple[int, ...], prior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows, factors = start(bent_rows(40), hidden, prior=prior)
    monkeypatch.setattr(execution, "BLOCK_BYTES", 1)  # blocks of 16 rows
    kept = HeldRows(rows, model.architecture)
    state = State(model=model, factors=factors, memory=kept.begin(model, factors))
    expected, bound = sweep(state, kept, repeats=3, empirical_bayes=True)
    before = begin(model, factors)
    found, noisy = stochastic_step(before, rows, 40.0, amount=1.0, tolerance=0.0, max_iterations=1)
    assert_close(found.factors, expected.factors, 1e-9)
    assert_close(found.model.prior.global_shrinkage, expected.model.prior.global_shrinkage, 1e-9)
    np.testing.assert_allclose(float(noisy.total), float(bound.total), rtol=1e-10)
    # Whatever was remembered is forgotten by a whole step.
    again, _ = stochastic_step(
        replace(before, statistics=found.statistics),
        rows,
        40.0,
        amount=1.0,
        tolerance=0.0,
        max_iterations=1,
    )
    assert_close(again.factors, expected.factors, 1e-9)


@pytest.mark.parametrize("hidden", [(5,), (4, 3)], ids=str)
def test_statistics_of_batches_add_up_to_those_of_all_rows(hidden: tuple[int, ...]) -> None:
    model, rows, factors = start(bent_rows(50), hidden)
    parts = [
        settled_pass(model, factors, [batch], 1e-4, 30) for batch in minibatches(rows, 7, 3)(0)
    ]
    assert len(parts) == 8
    whole = settled_pass(model, factors, [rows], 1e-4, 30)
    assert_close(reduce(add, parts), whole, 1e-8)


def test_natural_parameters_and_the_noise_scale_are_blended() -> None:
    """Erratum 6: the scale of the noise itself, not its inverse."""
    model, rows, factors = start(bent_rows(60), (4,))
    halves = [take_rows(rows, np.arange(30)), take_rows(rows, np.arange(30, 60))]
    first, second = (
        map_arrays(lambda x: 2.0 * x, settled_pass(model, factors, [half], 1e-4, 30))
        for half in halves
    )
    state = replace(begin(model, factors), statistics=first)
    stepped, _ = stochastic_step(
        state, halves[1], 60.0, amount=0.3, tolerance=1e-4, max_iterations=30
    )
    blended = map_arrays(lambda a, b: 0.7 * a + 0.3 * b, first, second)
    assert_close(stepped.statistics, blended, 1e-10)
    by_weights = [update_weights(model, factors, s) for s in (first, second, blended)]
    by_noise = [update_noise(model, factors, s) for s in (first, second, blended)]
    for index in range(2):
        precision = [np.linalg.inv(f.layers[index].weights.covariance) for f in by_weights]
        linear = [
            (p @ f.layers[index].weights.mean[:, :, None])[:, :, 0]
            for p, f in zip(precision, by_weights, strict=True)
        ]
        scale = [f.layers[index].noise_variance.scale for f in by_noise]
        for a, b, c in (precision, linear, scale):
            np.testing.assert_allclose(c, 0.7 * a + 0.3 * b, rtol=1e-7, atol=1e-7)


def test_step_sizes() -> None:
    sizes = [step_size(t, 0.7, 1.0) for t in range(200)]
    assert sizes[0] == 1.0
    assert np.all(np.diff(sizes) < 0.0)
    np.testing.assert_allclose(sizes[9], 10.0**-0.7)
    assert step_size(0, 0.7, 0.0) == 1.0


def held_out(result: FitResult, rows: Rows) -> float:
    return float(
        log_density(predict(result.model, result.factors, rows.inputs), rows.targets).mean()
    )


@pytest.mark.parametrize("hidden", [(10,), pytest.param((6, 5), marks=pytest.mark.slow)], ids=str)
def test_as_good_as_coordinate_ascent_on_new_rows(hidden: tuple[int, ...]) -> None:
    model, rows, factors = start(bent_rows(2000, outputs=1), hidden, gate_temperature=0.05)
    new = bent_rows(1000, seed=1, outputs=1)
    expected = held_out(fit(model, rows, factors, max_iter=150), new)
    found = fit_stochastic(model, minibatches(rows, 100, 0), factors, n_rows=2000.0, max_iter=8)
    assert found.status in (Status.CONVERGED, Status.ITERATION_LIMIT)
    assert held_out(found, new) > expected - 0.03
    late, early = np.mean(found.elbo_history[-20:]), np.mean(found.elbo_history[:20])
    assert late > early


def test_a_seed_repeats_a_fit_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "BLOCK_BYTES", 1)  # blocks of 16 rows
    model, rows, factors = start(bent_rows(300), (6,))
    settings = {"n_rows": 300.0, "max_iter": 2}
    first, second, other = (
        fit_stochastic(model, minibatches(rows, 50, seed), factors, n_threads=n, **settings)
        for seed, n in ((3, 1), (3, 2), (4, 1))
    )
    map_arrays(np.testing.assert_array_equal, first.factors, second.factors)
    assert first.elbo_history == second.elbo_history != other.elbo_history


def test_epochs_hold_every_row_once_in_an_order_of_their_own() -> None:
    rows = bent_rows(25)
    batches = minibatches(rows, 10, 0)
    epochs = [np.concatenate([b.inputs for b in batches(epoch)]) for epoch in (0, 1, 0)]
    assert [len(b.inputs) for b in batches(0)] == [10, 10, 5]
    for epoch in epochs:
        np.testing.assert_array_equal(
            epoch[np.lexsort(epoch.T)], rows.inputs[np.lexsort(rows.inputs.T)]
        )
    assert not np.array_equal(epochs[0], epochs[1])
    np.testing.assert_array_equal(epochs[0], epochs[2])


def test_a_row_of_weight_two_is_two_rows() -> None:
    model, rows, factors = start(bent_rows(30), (4,))
    twice = take_rows(rows, np.concatenate([np.arange(30), np.arange(10)]))
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    found = [
        stochastic_step(begin(model, factors), batch, 400.0, amount=1.0)[0]
        for batch in (twice, replace(rows, weights=weights))
    ]
    assert_close(found[0].factors, found[1].factors, 1e-9)


def test_the_history_is_the_mean_of_the_noisy_bounds_and_ends_where_it_stands_still() -> None:
    model, rows, factors = start(bent_rows(200), (4,))
    seen: list[Progress] = []
    result = fit_stochastic(
        model, minibatches(rows, 20, 0), factors, n_rows=200.0, max_iter=200, callback=seen.append
    )
    assert result.status is Status.CONVERGED
    assert result.n_sweeps == len(seen) < 2000
    bounds = [progress.elbo for progress in seen]
    assert bounds[-1] == float(result.elbo_terms.total)
    expected = [np.mean(bounds[max(0, i - FEWEST_STEPS + 1) : i + 1]) for i in range(len(bounds))]
    np.testing.assert_allclose(result.elbo_history, expected, rtol=1e-9)


def test_the_bound_of_a_batch_is_that_of_its_rows_alone() -> None:
    model, rows, factors = start(bent_rows(60), (4,))
    batch = take_rows(rows, np.arange(20))
    state = replace(
        begin(model, factors), statistics=settled_pass(model, factors, [rows], 1e-3, 20)
    )
    found, noisy = stochastic_step(state, batch, 60.0, amount=0.2)
    alone = map_arrays(lambda x: 3.0 * x, settled_pass(model, factors, [batch], 1e-3, 20))
    expected = elbo(found.model, found.factors, alone)
    np.testing.assert_allclose(float(noisy.total), float(expected.total), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("forgetting_rate", 0.5),
        ("momentum", 1.0),
        *[(name, -1) for name in ("step_delay", "max_iter", "n_rows", "tol", "n_threads")],
    ],
)
def test_bad_settings_are_named(name: str, bad: object) -> None:
    model, rows, factors = start(bent_rows(20), (2,))
    with pytest.raises(ValueError, match=name):
        fit_stochastic(model, minibatches(rows, 5, 0), factors, **{"n_rows": 20.0, name: bad})


# Momentum, whole steps and resuming


def test_momentum_moves_where_the_next_batch_is_looked_at() -> None:
    model, rows, factors = start(bent_rows(60), (4,))
    first, _ = stochastic_step(begin(model, factors), rows, 60.0, amount=1.0, momentum=0.9)
    assert first.ahead is None  # nothing to go on from yet
    second, _ = stochastic_step(first, rows, 60.0, amount=0.5, momentum=0.9)
    assert_close(second.ahead, extrapolate(second.factors, first.factors, 0.9), 1e-12)
    plain, _ = stochastic_step(first, rows, 60.0, amount=0.5)
    map_arrays(np.testing.assert_array_equal, plain.factors, second.factors)
    moved, _ = stochastic_step(second, rows, 60.0, amount=0.5)
    there = replace(second, factors=second.ahead, ahead=None)
    expected, _ = stochastic_step(there, rows, 60.0, amount=0.5)
    map_arrays(np.testing.assert_array_equal, moved.factors, expected.factors)


def test_momentum_climbs_faster() -> None:
    model, rows, factors = start(bent_rows(400, outputs=1), (8,))
    plain, fast = (
        fit_stochastic(
            model,
            minibatches(rows, 100, 0),
            loosened(factors),
            n_rows=400.0,
            max_iter=15,
            adaptive=True,
            momentum=momentum,
        )
        for momentum in (0.0, 0.9)
    )
    assert fast.elbo_history[-1] > plain.elbo_history[-1]


def amounts_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Rows and step size of all steps to come."""
    seen: list[tuple[int, float]] = []
    genuine = stochastic.stochastic_step

    def spy(state: StochasticState, batch: Rows, *, amount: float, **settings: Any) -> Any:
        seen.append((batch.inputs.shape[0], amount))
        return genuine(state, batch, amount=amount, **settings)

    monkeypatch.setattr(stochastic, "stochastic_step", spy)
    return seen


def test_steps_are_whole_while_the_bound_rises_and_shrink_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    amounts = amounts_of(monkeypatch)
    model, rows, factors = start(bent_rows(200), (4,))
    result = fit_stochastic(
        model, minibatches(rows, 20, 0), factors, n_rows=200.0, max_iter=100, adaptive=True
    )
    assert result.status is Status.CONVERGED
    sizes = np.asarray([amount for _, amount in amounts])
    turned = int(np.flatnonzero(sizes < 1.0)[0]) - 1  # the first of those that shrink is whole
    assert turned >= 2 * window_steps(200.0, 20.0)
    shrinking = [step_size(t, 0.7, 1.0) for t in range(len(sizes) - turned)]
    np.testing.assert_allclose(sizes[turned:], shrinking)
    assert len(shrinking) >= max(FEWEST_STEPS, FADING * turned)


def test_steps_shrink_in_the_last_epochs_at_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    amounts = amounts_of(monkeypatch)
    model, rows, factors = start(bent_rows(200), (4,))
    result = fit_stochastic(
        model, minibatches(rows, 50, 0), factors, n_rows=200.0, max_iter=6, adaptive=True
    )
    assert result.status is Status.ITERATION_LIMIT
    sizes = [amount for _, amount in amounts]
    assert len(sizes) == 24
    assert sizes[:20] == [1.0] * 20  # five sixths of the rows it may visit
    np.testing.assert_allclose(sizes[20:], [step_size(t, 0.7, 1.0) for t in range(4)])


def test_a_small_last_batch_counts_less(monkeypatch: pytest.MonkeyPatch) -> None:
    amounts = amounts_of(monkeypatch)
    model, rows, factors = start(bent_rows(50), (4,))
    settings: dict[str, Any] = {"n_rows": 50.0, "max_iter": 6, "adaptive": True}
    fit_stochastic(model, minibatches(rows, 20, 0), factors, **settings)
    assert [n for n, _ in amounts] == [20, 20, 10] * 6
    assert [amount for _, amount in amounts][:6] == [1.0, 1.0, 0.5] * 2
    assert amounts[-1][1] < 0.5


def test_loosened_factors_have_more_hidden_noise_and_are_else_the_same() -> None:
    _, _, factors = start(bent_rows(30), (4, 3))
    loose = loosened(factors, 7.0)
    assert len(loose.layers) == len(factors.layers)
    for now, before in zip(loose.layers[:-1], factors.layers[:-1], strict=True):
        np.testing.assert_allclose(now.noise_variance.scale, 7.0 * before.noise_variance.scale)
        assert now.noise_variance.concentration is before.noise_variance.concentration
        assert now.weights is before.weights
    assert loose.layers[-1] is factors.layers[-1]


def test_momentum_that_overflows_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same batch is taken again without it, and the fit goes on."""
    genuine, looked = stochastic.stochastic_step, []

    def far(now: GlobalFactors, before: GlobalFactors, amount: float) -> GlobalFactors:
        return extrapolate(now, before, 1e200 if len(looked) == 4 else amount)

    def spy(state: StochasticState, batch: Rows, **settings: Any) -> Any:
        looked.append((batch.inputs[0, 0], state.ahead is not None))
        return genuine(state, batch, **settings)

    monkeypatch.setattr(stochastic, "extrapolate", far)
    monkeypatch.setattr(stochastic, "stochastic_step", spy)
    model, rows, factors = start(bent_rows(100), (4,))
    settings: dict[str, Any] = {"n_rows": 100.0, "max_iter": 2, "momentum": 0.5}
    result = fit_stochastic(model, minibatches(rows, 10, 0), factors, **settings)
    assert (result.status, result.n_sweeps) == (Status.ITERATION_LIMIT, 20)
    assert np.isfinite(result.elbo_history).all()
    assert len(looked) == 21
    assert looked[4][0] == looked[5][0]
    assert [ahead for _, ahead in looked[:7]] == [False, False, True, True, True, False, True]


@pytest.mark.parametrize("max_iter", [9, 90])
@pytest.mark.parametrize("adaptive", [True, False])
def test_a_fit_goes_on_from_every_pass_with_the_same_bits(adaptive: bool, max_iter: int) -> None:
    """Whether it ends by itself or at the limit; from the last pass there is nothing left to do."""
    model, rows, factors = start(bent_rows(55), (4,))
    settings: dict[str, Any] = {"n_rows": 55.0, "max_iter": max_iter, "adaptive": adaptive}
    settings |= {"momentum": 0.9 if adaptive else 0.0, "tol": 0.0 if max_iter == 9 else 1e-2}
    batches = minibatches(rows, 10, 0)
    kept: list[PassSnapshot] = []
    whole = fit_stochastic(model, batches, factors, after_pass=kept.append, **settings)
    ended = whole.status is Status.ITERATION_LIMIT
    assert ended == (max_iter == 9)
    assert len(kept) == (9 if ended else (whole.n_sweeps - 1) // 6)
    assert [snapshot.position.n_passes for snapshot in kept] == list(range(1, len(kept) + 1))
    assert (kept[-1].position.turned is not None) == adaptive
    for snapshot in (kept[0], kept[len(kept) // 2], kept[-1]):
        again = fit_stochastic(model, batches, factors, resume=snapshot, **settings)
        map_arrays(np.testing.assert_array_equal, whole.factors, again.factors)
        map_arrays(np.testing.assert_array_equal, whole.statistics, again.statistics)
        assert whole.elbo_history == again.elbo_history
        assert (whole.status, whole.n_sweeps) == (again.status, again.n_sweeps)


def test_a_pass_without_rows_is_an_error() -> None:
    """As when the batches are an iterator that can be used once."""
    model, rows, factors = start(bent_rows(20), (2,))
    once = iter([rows])
    with pytest.raises(ValueError, match=r"batches\(1\)"):
        fit_stochastic(model, lambda _: once, factors, n_rows=20.0)
