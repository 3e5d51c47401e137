"""One fit: its start, its lengths, its held-out forecasts, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from bowtienet._old._arrays import like, map_arrays
from bowtienet._old.data.rows import Rows, build_rows, take_rows
from bowtienet._old.ensemble import member as module
from bowtienet._old.ensemble.cross_fit import runner
from bowtienet._old.ensemble.fold_networks import Candidate, further_networks, see
from bowtienet._old.ensemble.member import Task, last_bound, run_task
from bowtienet._old.ensemble.settings import AUTO_TEMPERATURE, Recipe, Settings
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import factors_of_network
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.initialize import join_networks
from bowtienet._old.prediction.predictive import predict
from bowtienet._old.representation.representation import PLAIN
from tests._old.ensemble.fits import RECIPE, SETTINGS, assert_same_fit, bent_rows, task

PARTS = {
    "rows": take_rows(bent_rows(), np.arange(15, 60)),
    "held_out": take_rows(bent_rows(), np.arange(15)),
}


def from_network(given: Task, recipe: Recipe, settings: Settings) -> Task:
    """The task with a network of its recipe to start from."""
    [seen] = see(given.rows, [PLAIN])
    [network] = further_networks(Candidate(recipe=recipe), seen, 1, settings, runner(1))
    joined = join_networks(list(zip(*network.layers, strict=True)))
    return replace(given, recipe=recipe, network=tuple(joined))


def test_a_task_is_repeatable_and_its_seed_matters() -> None:
    first = run_task(task(lengths=(5,)), SETTINGS).result
    assert_same_fit(run_task(task(lengths=(5,), n_threads=3), SETTINGS).result, first)
    other = run_task(task(lengths=(5,), recipe=replace(RECIPE, seed=4)), SETTINGS).result
    assert other.elbo_history != first.elbo_history


def test_a_task_follows_its_recipe() -> None:
    recipes = [RECIPE, replace(RECIPE, init_penalty=30.0)]
    results = [
        run_task(from_network(task(lengths=(5,)), recipe, SETTINGS), SETTINGS).result
        for recipe in recipes
    ]
    assert results[0].model.gate_temperature == RECIPE.gate_temperature
    plain, shrunk = (result.factors.layers[0].weights.mean[:, 1:] for result in results)
    assert np.sum(shrunk**2) < 0.5 * np.sum(plain**2)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[GlobalFactors]:
    """What fits of networks start from."""
    found: list[GlobalFactors] = []

    def note(*arguments: Any, **settings: Any) -> GlobalFactors:
        found.append(factors_of_network(*arguments, **settings))
        return found[-1]

    monkeypatch.setattr(module, "factors_of_network", note)
    return found


def test_a_task_starts_with_as_many_networks_as_its_recipe_says(
    starts: list[GlobalFactors],
) -> None:
    """Two of five units each have no weights between them."""
    wide = replace(SETTINGS, hidden_layer_sizes=(10, 10), max_iter=1)
    recipes = [replace(RECIPE, parts=parts, start_iterations=20) for parts in (2, 1)]
    for recipe in recipes:
        run_task(from_network(task(rows=bent_rows(20)), recipe, wide), wide)
    between = [start.layers[1].weights.mean[:5, 6:] for start in starts]
    np.testing.assert_array_equal(between[0], 0.0)
    assert np.all(between[1] != 0.0)


def test_a_task_starts_at_its_network_with_little_variance(starts: list[GlobalFactors]) -> None:
    """Its weights to the bit; variances of 1e-6, which the first sweeps do not forget."""
    one = from_network(task(lengths=(1,)), RECIPE, SETTINGS)
    assert one.network is not None
    outcome = run_task(one, SETTINGS)
    for layer, weights in zip(starts[0].layers, one.network, strict=True):
        np.testing.assert_array_equal(layer.weights.mean, weights)
        expected = np.broadcast_to(1e-6 * np.eye(weights.shape[1]), layer.weights.covariance.shape)
        np.testing.assert_array_equal(layer.weights.covariance, expected)
    np.testing.assert_array_equal(starts[0].shared_covariance, 1e-6 * np.eye(5))
    noise = outcome.result.model.prior.noise(0)
    assert (noise.concentration, noise.scale) == (2.0, 0.01)


def test_a_task_may_go_on_from_an_earlier_result() -> None:
    start = run_task(task(lengths=(10,)), SETTINGS).result
    on = run_task(task(lengths=(10,), start=start), SETTINGS).result
    expected = fit(start.model, bent_rows(), start.factors, max_iter=10, tol=0.0)
    assert_same_fit(on, expected)
    assert last_bound(on) > last_bound(start)


def test_a_length_that_was_chosen_does_not_cut_a_fit_short() -> None:
    short = task(lengths=(3,))
    assert run_task(short, SETTINGS).result.status is Status.ITERATION_LIMIT
    chosen = run_task(replace(short, chosen=True), SETTINGS).result
    assert (chosen.status, chosen.n_sweeps) == (Status.EARLY_STOPPED, 3)
    loose = replace(SETTINGS, tol=1e-2)
    finished = run_task(task(lengths=(2000,), chosen=True), loose).result
    assert finished.status is Status.CONVERGED


def test_a_fit_that_goes_on_keeps_its_ratio() -> None:
    plain = run_task(task(lengths=(4,)), SETTINGS).result
    assert plain.variance_ratio is None
    stretched = replace(plain, variance_ratio=np.array([1.7]))
    first, second = (
        run_task(task(start=start, lengths=(2,), recipe=None), SETTINGS).result
        for start in (plain, stretched)
    )
    assert first.variance_ratio is None
    assert second.variance_ratio.tolist() == [1.7]
    assert first.elbo_history == second.elbo_history


# Sharp gates


ROUNDING = 1e-9
"""Of the ELBO, as a part of it."""
FAR = 50.0
"""Standard deviations."""
SINGLE_BOUND, SINGLE_MEAN = 2e-4, 1e-3
"""Relative difference of the ELBO in float32, and that of predicted means, in deviations."""


def curved_rows(library: Any = np, dtype: str = "float64", *, outlier: bool = False) -> Rows:
    """Two targets of three columns; with an outlier, two rows far outside in all of them."""
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(80, 3))
    if outlier:
        inputs[:2] = [[FAR], [-FAR]]
    near = np.clip(inputs, -3.0, 3.0)
    targets = np.column_stack([np.abs(near[:, 0]) - 1.0, near[:, 1] * near[:, 2]])
    targets += 0.1 * rng.normal(size=(80, 2))
    kind = getattr(library, dtype)
    return build_rows(*(library.asarray(values, dtype=kind) for values in (inputs, targets)))


def sharp_task(rows: Rows, settings: Settings, **changes: Any) -> Task:
    """From a network, at the temperature of the default."""
    recipe = replace(RECIPE, gate_temperature=AUTO_TEMPERATURE, init_penalty=0.1, **changes)
    one = from_network(Task(rows=rows, n_threads=1), recipe, settings)
    assert one.network is not None
    return one


def far_away(rows: Rows) -> Any:
    """Inputs at all corners of a wide box, and on the way there."""
    corners = np.array(list(product((-1.0, 0.0, 1.0), repeat=3)))
    steps = np.concatenate([size * corners for size in (1.0, 5.0, 20.0, FAR)])
    return like(rows.inputs, steps)


def assert_finite(result: FitResult, rows: Rows) -> None:
    assert np.isfinite(result.elbo_history).all()
    map_arrays(lambda values: _assert_finite(np.asarray(values)), result.factors)
    for inputs in (rows.inputs, far_away(rows)):
        new = predict(result.model, result.factors, inputs)
        for values in (new.mean, new.signal_variance, new.noise_variance):
            _assert_finite(np.asarray(values))
        assert np.all(np.asarray(new.signal_variance) >= 0.0)
        assert np.all(np.asarray(new.noise_variance) > 0.0)


def _assert_finite(values: np.ndarray) -> None:
    assert np.isfinite(values).all()


@pytest.mark.parametrize("outlier", [False, True])
@pytest.mark.parametrize(
    ("hidden", "parts"), [((10,), 1), ((10,), 2), ((8, 6), 1), ((8, 6), 2), ((6, 5, 4), 1)]
)
def test_a_fit_with_sharp_gates_only_climbs_and_is_finite(
    hidden: tuple[int, ...], parts: int, outlier: bool
) -> None:
    """In every sweep, also with rows far outside; predictions at 50 standard deviations too."""
    rows = curved_rows(outlier=outlier)
    settings = replace(SETTINGS, hidden_layer_sizes=hidden)
    for seed in range(2):
        result = run_task(sharp_task(rows, settings, parts=parts, seed=seed), settings).result
        history = np.asarray(result.elbo_history)
        assert result.status is Status.ITERATION_LIMIT
        assert len(history) > 30
        assert np.all(np.diff(history) >= -ROUNDING * np.abs(history[:-1]))
        assert history[-1] > history[0] + 1.0
        assert_finite(result, rows)


@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.parametrize("hidden", [(10,), (8, 6)])
def test_a_fit_with_sharp_gates_in_single_precision(hidden: tuple[int, ...], name: str) -> None:
    """From the same network: nearly the same bounds and predictions, all of them finite."""
    library = pytest.importorskip(name)
    settings = replace(SETTINGS, hidden_layer_sizes=hidden, max_iter=6)
    single, double = curved_rows(library, "float32"), curved_rows()
    one = sharp_task(double, settings)
    result, exact = (
        run_task(replace(one, rows=rows), settings).result for rows in (single, double)
    )
    np.testing.assert_allclose(result.elbo_history, exact.elbo_history, rtol=SINGLE_BOUND)
    mean, expected = (
        np.asarray(predict(found.model, found.factors, rows.inputs).mean)
        for found, rows in ((result, single), (exact, double))
    )
    assert mean.dtype == np.float32
    assert np.max(np.abs(mean - expected)) < SINGLE_MEAN
    assert_finite(result, single)
    # Far outside, too, and for as long as a fit may take.
    rows = curved_rows(library, "float32", outlier=True)
    assert_finite(run_task(sharp_task(rows, SETTINGS), SETTINGS).result, rows)


# Held-out rows


def test_forecasts_are_those_of_the_rows_held_out() -> None:
    both = {
        name: replace(rows, targets=np.column_stack([rows.targets, rows.inputs[:, 1]]))
        for name, rows in PARTS.items()
    }
    outcome = run_task(task(lengths=(8,), **both), SETTINGS)
    assert outcome.forecasts is not None
    assert outcome.forecasts.shape == (2, 15, 2)
    held_out = both["held_out"]
    alone = run_task(task(rows=both["rows"], lengths=(8,)), SETTINGS).result
    assert_same_fit(outcome.result, alone)
    new = predict(alone.model, alone.factors, held_out.inputs)
    means, variances = outcome.forecasts
    np.testing.assert_array_equal(means, new.mean)
    np.testing.assert_array_equal(variances, new.signal_variance + new.noise_variance)


@pytest.mark.parametrize("most", [59, 60, 61, 150, None])
def test_a_fit_ends_when_it_has_visited_rows_enough(most: int | None) -> None:
    """Sixty rows a sweep: after the sweep that reaches the number, and not cut short by it."""
    found = run_task(task(most_rows=most, lengths=(6,)), SETTINGS).result
    assert found.n_sweeps == (6 if most is None else -(-most // 60))
    expected = Status.ITERATION_LIMIT if most is None else Status.EARLY_STOPPED
    assert found.status is expected


# Interruption


def at_third(answer: Callable[[], bool]) -> Callable[[Any], bool]:
    return lambda progress: answer() if progress.sweep == 3 else False


def ctrl_c() -> bool:
    raise KeyboardInterrupt


def test_ctrl_c_within_a_task() -> None:
    """The state reached so far; at a callback's own wish it is no interruption."""
    outcome = run_task(task(lengths=(20,)), SETTINGS, at_third(ctrl_c))
    assert outcome.interrupted
    assert outcome.result.status is Status.INTERRUPTED
    assert outcome.result.n_sweeps == 3
    asked = run_task(task(lengths=(20,)), SETTINGS, at_third(lambda: True))
    assert not asked.interrupted
    assert asked.result.n_sweeps == 3
