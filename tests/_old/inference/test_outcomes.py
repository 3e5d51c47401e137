"""The engine with every outcome: stationary updates, a rising bound, and its invariances.

The local factors of the outcomes themselves are compared with free ones, whose derivatives vanish,
in `test_outcomes_against_oracle`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.inference import together
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import State, fit, sweep
from bowtienet._old.inference.execution import block_rows, initialize_memory, local_pass
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.row_providers import HeldRows, StreamedRows
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.stochastic import (
    StochasticState,
    fit_stochastic,
    minibatches,
    stochastic_step,
)
from bowtienet._old.inference.together import sweep_together
from bowtienet._old.model.outcomes import GAUSSIAN, Classes, Counts, StudentT
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors
from tests._old import builders
from tests._old.autodiff import outcome_gradient

TOLERANCE = 1e-10
"""Largest gradient after an update, relative to 1 + the largest before it."""
ROUNDING = 1e-9
HIDDEN = ((), (4,), (4, 3))

all_outcomes = pytest.mark.parametrize("name", builders.OUTCOMES)
all_hidden = pytest.mark.parametrize("hidden", HIDDEN, ids=str)


def random_point(rng: np.random.Generator, hidden: tuple[int, ...], name: str) -> builders.Point:
    outcome, n_outputs = builders.OUTCOMES[name]
    return builders.random_point(rng, hidden, n=5, outcome=outcome, n_outputs=n_outputs)


def problem(
    hidden: tuple[int, ...], name: str, n: int = 40
) -> tuple[BowTieModel, Rows, GlobalFactors]:
    rng = np.random.default_rng(7)
    outcome, n_outputs = builders.OUTCOMES[name]
    model = builders.fixed_model(hidden, outcome=outcome, n_outputs=n_outputs, gate_temperature=0.3)
    rows = builders.random_rows(rng, model, n)
    return model, rows, initialize(model, rows, rng, init="laplace")


def numbers(container: Any) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    map_arrays(found.append, container)
    return found


def assert_same(first: Any, second: Any, rtol: float = 1e-9) -> None:
    pairs = list(zip(numbers(first), numbers(second), strict=True))
    assert pairs
    for a, b in pairs:
        size = float(np.max(np.abs(b), initial=0.0))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * size)


# ------------------------------------------------------------------------------------------------
# Stationarity and ascent
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
@all_outcomes
def test_updates_are_stationary(
    name: str, hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    point = random_point(rng, hidden, name)
    names = ("activations", "weights", "noise")
    slopes = outcome_gradient(point, names)
    before, has_noise = slopes(point), point.model.outcome.has_noise
    for update in names:
        after = slopes(builders.UPDATES[update](point))[update]
        for key, values in before[update].items():
            scale, left = np.abs(values).max(), np.abs(after[key]).max()
            if update == "noise" and key.endswith(f" {len(hidden)}") and not has_noise:
                assert scale == left == 0.0, f"{key} has no part in the bound"
                continue
            assert scale > 1e-4, f"{key} starts at its optimum"
            assert left <= TOLERANCE * (1.0 + scale), f"{key}: {left} of {scale} left"


@all_hidden
@all_outcomes
def test_no_single_update_lowers_the_bound(
    name: str, hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    point = random_point(rng, hidden, name)
    names = list(builders.UPDATES)
    start = before = float(builders.bound_of(point).total)
    for step, update in enumerate([*rng.permutation(names), *rng.choice(names, size=40)]):
        point = builders.UPDATES[update](point)
        after = float(builders.bound_of(point).total)
        assert after >= before - ROUNDING * max(1.0, abs(before)), f"{update}, step {step}"
        before = after
    assert before > start + 1.0


@pytest.mark.parametrize("accelerate", [False, True])
@all_hidden
@all_outcomes
def test_a_fit_only_climbs(name: str, hidden: tuple[int, ...], accelerate: bool) -> None:
    """EM of the outcome's own parameters included, which move from sweep to sweep."""
    model, rows, factors = problem(hidden, name)
    result = fit(model, rows, factors, max_iter=40, tol=0.0, accelerate=accelerate, block_size=15)
    history = np.asarray(result.elbo_history)
    assert result.status is Status.ITERATION_LIMIT
    assert len(history) > 15
    assert np.all(np.diff(history) >= -ROUNDING * np.abs(history[:-1]))
    moves = isinstance(model.outcome, (StudentT, Counts))
    assert (result.model.outcome != model.outcome) == moves


@pytest.mark.parametrize("name", ["student_t", "counts"])
def test_only_empirical_bayes_moves_the_outcome(name: str) -> None:
    model, rows, factors = problem((4,), name)
    still = fit(model, rows, factors, max_iter=5, tol=0.0, empirical_bayes=False)
    assert still.model.outcome == model.outcome
    if isinstance(model.outcome, StudentT):
        held = replace(model, outcome=replace(model.outcome, free=False))
        found = fit(held, rows, factors, max_iter=5, tol=0.0).model.outcome
        assert found == held.outcome


@pytest.mark.parametrize("name", ["student_t", "counts"])
@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
def test_the_bound_rises_with_em_from_any_parameter(name: str, hidden: tuple[int, ...]) -> None:
    """Parameters far from their place: what a memory holds must move along with them."""
    for factor in (0.2, 5.0):
        model, rows, factors = problem(hidden, name)
        outcome: Any = model.outcome
        if isinstance(outcome, StudentT):
            outcome = replace(outcome, freedom=factor * outcome.freedom)
        else:
            outcome = replace(outcome, dispersion=factor * outcome.dispersion)
        model = replace(model, outcome=outcome)
        history = fit(model, rows, factors, max_iter=60, tol=0.0, accelerate=False).elbo_history
        assert np.all(np.diff(history) >= -ROUNDING * np.abs(history[:-1]))


# ------------------------------------------------------------------------------------------------
# Invariances
# ------------------------------------------------------------------------------------------------


@all_hidden
@all_outcomes
def test_blocks_streams_and_the_order_of_rows_change_nothing(
    name: str, hidden: tuple[int, ...]
) -> None:
    model, rows, factors = problem(hidden, name)
    settings: dict[str, Any] = {"max_iter": 4, "tol": 0.0}
    whole = fit(model, rows, factors, **settings)
    parts = fit(model, rows, factors, block_size=7, n_threads=2, **settings)
    streamed = fit(model, StreamedRows(lambda: iter([rows]), 40, 9), factors, **settings)
    order = np.random.default_rng(1).permutation(40)
    shuffled = fit(model, map_arrays(lambda x: x[order], rows), factors, **settings)
    for other in (parts, streamed, shuffled):
        assert_same(other.factors, whole.factors, 1e-8)
        assert_same(other.elbo_terms, whole.elbo_terms, 1e-8)


@all_outcomes
def test_a_weight_of_two_is_a_row_twice(name: str) -> None:
    model, rows, factors = problem((4,), name)
    twice = map_arrays(lambda x: np.concatenate([x, x]), rows)
    heavy = replace(rows, weights=2.0 * rows.weights)
    results = [fit(model, table, factors, max_iter=4, tol=0.0) for table in (twice, heavy)]
    assert_same(results[0].factors, results[1].factors, 1e-8)


@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
@all_outcomes
def test_the_order_of_units_changes_nothing(name: str, hidden: tuple[int, ...]) -> None:
    model, rows, factors = problem(hidden, name)
    order = np.random.default_rng(2).permutation(hidden[-1])
    *below, last, output = factors.layers
    inputs = np.concatenate([[0], 1 + order])
    last = map_arrays(lambda x: x[order] if np.ndim(x) else x, last)
    output = replace(
        output,
        weights=replace(
            output.weights,
            mean=output.weights.mean[:, inputs],
            covariance=output.weights.covariance[:, inputs][:, :, inputs],
        ),
        local_shrinkage=replace(
            output.local_shrinkage, scale=output.local_shrinkage.scale[:, order]
        ),
    )
    other = replace(factors, layers=(*below, last, output))
    results = [fit(model, rows, start, max_iter=4, tol=0.0) for start in (factors, other)]
    assert results[1].elbo_terms.total == pytest.approx(results[0].elbo_terms.total, rel=1e-9)


@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
def test_the_order_of_classes_changes_nothing(hidden: tuple[int, ...]) -> None:
    model, rows, factors = problem(hidden, "classes")
    order = np.array([2, 0, 1])  # new class c is old class order[c]
    output = map_arrays(lambda x: x[order] if np.ndim(x) else x, factors.layers[-1])
    targets = np.argsort(order)[rows.targets.astype(int)].astype(float)
    noise = replace(model.prior.output_noise, scale=0.5)
    model = replace(model, prior=replace(model.prior, output_noise=noise))
    first = fit(model, rows, factors, max_iter=4, tol=0.0)
    other = replace(factors, layers=(*factors.layers[:-1], output))
    second = fit(model, replace(rows, targets=targets), other, max_iter=4, tol=0.0)
    assert second.elbo_terms.total == pytest.approx(first.elbo_terms.total, rel=1e-9)
    found, expected = (r.factors.layers[-1].weights.mean for r in (second, first))
    np.testing.assert_allclose(found, expected[order], rtol=1e-7, atol=1e-9)


def test_classes_swap_with_the_sign_of_the_output() -> None:
    """Binary: y -> 1 - y, z -> -z."""
    model, rows, factors = problem((4,), "binary")
    output = factors.layers[-1]
    flipped = replace(output, weights=replace(output.weights, mean=-output.weights.mean))
    other = replace(factors, layers=(*factors.layers[:-1], flipped))
    first = fit(model, rows, factors, max_iter=4, tol=0.0)
    second = fit(model, replace(rows, targets=1.0 - rows.targets), other, max_iter=4, tol=0.0)
    assert second.elbo_terms.total == pytest.approx(first.elbo_terms.total, rel=1e-10)


def test_exposures_are_shifts_of_the_output() -> None:
    """Counts: a constant exposure e is an offset of log e."""
    model, rows, factors = problem((4,), "counts")
    targets = np.column_stack([rows.targets[:, 0], np.full(40, 0.7)])
    none = np.column_stack([rows.targets[:, 0], np.zeros(40)])
    shifted = replace(model, outcome=Counts(dispersion=2.3, offset=0.4 + 0.7))
    first = fit(model, replace(rows, targets=targets), factors, max_iter=4, tol=0.0)
    second = fit(shifted, replace(rows, targets=none), factors, max_iter=4, tol=0.0)
    assert_same(first.factors, second.factors, 1e-8)


def test_many_degrees_of_freedom_are_gaussian_noise() -> None:
    """Sweep by sweep: with one round of global updates S_L is renewed at the same places."""
    model, rows, factors = problem((4,), "student_t")
    gaussian = replace(model, outcome=GAUSSIAN)
    settings: dict[str, Any] = {"max_iter": 6, "tol": 0.0, "repeats": 1, "accelerate": False}
    expected = fit(gaussian, rows, factors, **settings).factors.layers
    errors = []
    for freedom in (1e3, 1e5, 1e7):
        outcome = StudentT(freedom=freedom, free=False)
        found = fit(replace(model, outcome=outcome), rows, factors, **settings).factors.layers
        pairs = zip(numbers(found), numbers(expected), strict=True)
        errors.append(max(np.max(np.abs(a - b) / (1.0 + np.abs(b))) for a, b in pairs))
    assert errors[0] < 0.02
    assert errors[1] < 0.02 * errors[0]
    assert errors[2] < 0.02 * errors[1]


# ------------------------------------------------------------------------------------------------
# The other solvers
# ------------------------------------------------------------------------------------------------


@all_hidden
@all_outcomes
def test_networks_side_by_side_are_fits_of_their_own(
    name: str, hidden: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "group_rows", lambda *_: 17)
    model, rows, first = problem(hidden, name)
    starts = [first, initialize(model, rows, 3, init="laplace"), first]
    weights = np.random.default_rng(5).uniform(0.0, 2.0, size=(3, 40))
    weights[0, :7] = 0.0
    found = sweep_together(model, rows, weights, starts, lengths=[1, 5])
    for index, start in enumerate(starts):
        own = replace(rows, weights=weights[index])
        expected = fit(model, own, start, max_iter=5, tol=0.0, accelerate=False)
        result = found[1][index]
        assert_same(result.factors, expected.factors, 1e-6)
        assert result.elbo_history[1] == pytest.approx(expected.elbo_history[4], rel=1e-8)
        assert result.elbo_history[0] == pytest.approx(expected.elbo_history[0], rel=1e-8)
        assert_outcomes(result, expected)


def assert_outcomes(result: FitResult, expected: FitResult) -> None:
    """The same class with the same numbers, each a plain one."""
    first, second = result.model.outcome, expected.model.outcome
    assert type(first) is type(second)
    for key, value in vars(first).items():
        assert type(value) is type(vars(second)[key])
        assert value == pytest.approx(vars(second)[key], rel=1e-6)


@all_hidden
@all_outcomes
def test_a_full_stochastic_step_is_a_sweep(name: str, hidden: tuple[int, ...]) -> None:
    model, rows, factors = problem(hidden, name)
    held = HeldRows(rows, model.architecture)
    start = State(model=model, factors=factors, memory=held.begin(model, factors))
    expected, bound = sweep(start, held, repeats=3, empirical_bayes=True)
    state = StochasticState(model=model, factors=factors, statistics=None, step=0)
    count = float(rows.weights.sum())
    found, terms = stochastic_step(state, rows, count, amount=1.0, max_iterations=1)
    assert_same(found.factors, expected.factors, 1e-12)
    assert terms.total == pytest.approx(bound.total, rel=1e-12)
    assert found.model.outcome == expected.model.outcome


@all_outcomes
def test_stochastic_steps_climb_too(name: str) -> None:
    model, rows, factors = problem((4,), name, n=80)
    count = float(rows.weights.sum())
    best = fit(model, rows, factors, max_iter=80).elbo_history
    result = fit_stochastic(
        model, minibatches(rows, 40, 0), factors, n_rows=count, max_iter=30, tol=0.0
    )
    assert best[0] < result.elbo_history[-1] < best[-1] + 1.0


@pytest.mark.parametrize(
    ("library", "hidden", "name"),
    [
        *product(("torch", "array_api_strict"), ((4,), (4, 3)), builders.OUTCOMES),
        *product(("jax.numpy",), ((4,),), ("binary", "student_t")),
        # ten seconds of compiling each
        *(
            pytest.param("jax.numpy", hidden, name, marks=pytest.mark.slow)
            for hidden, name in (((4,), "classes"), ((4,), "counts"), ((4, 3), "student_t"))
        ),
    ],
)
def test_array_libraries(library: str, hidden: tuple[int, ...], name: str) -> None:
    xp = pytest.importorskip(library)
    model, rows, factors = problem(hidden, name)
    other = build_rows(*(xp.asarray(x) for x in (rows.inputs, rows.targets, rows.weights)))
    settings: dict[str, Any] = {"max_iter": 3, "tol": 0.0, "block_size": 15}
    found, expected = (fit(model, table, factors, **settings) for table in (other, rows))
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=1e-9)
    assert_same(found.factors, expected.factors, 1e-6)


@pytest.mark.parametrize("name", ["student_t of one", "counts"])
def test_parameters_of_networks_side_by_side_in_other_libraries(name: str) -> None:
    torch = pytest.importorskip("torch")
    model, rows, factors = problem((4,), name)
    other = build_rows(*(torch.asarray(x) for x in (rows.inputs, rows.targets, rows.weights)))
    weights = np.random.default_rng(5).uniform(0.5, 2.0, size=(2, 40))
    found, expected = (
        sweep_together(model, table, w, [factors, factors], lengths=[4])[0]
        for table, w in ((other, torch.asarray(weights)), (rows, weights))
    )
    for a, b in zip(found, expected, strict=True):
        assert a.elbo_history == pytest.approx(b.elbo_history, rel=1e-9)
        assert_outcomes(a, b)


@all_outcomes
def test_single_precision(name: str) -> None:
    model, rows, factors = problem((4,), name)
    single = map_arrays(lambda x: x.astype(np.float32), rows)
    found, expected = (fit(model, t, factors, max_iter=6, tol=0.0) for t in (single, rows))
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=2e-3)


# ------------------------------------------------------------------------------------------------
# What is held
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kept"), [("binary", 2), ("counts", 4), ("classes", 2)])
def test_what_is_remembered(name: str, kept: int) -> None:
    """p and k, with intercepts and slopes where a parameter moves them."""
    model, rows, factors = problem((4,), name)
    memory = initialize_memory(model, factors, [rows])
    _, memory = local_pass(model, factors, [rows], memory)
    shapes = [np.shape(x) for x in memory[0].outcome]
    assert shapes == [(40, model.architecture.n_outputs)] * kept
    assert factors.shared_covariance is None


def test_blocks_of_rows_with_matrices_of_their_own_are_smaller() -> None:
    model, _, _ = problem((4,), "classes")
    wide = replace(model.architecture, hidden=(100,))
    with_matrices = block_rows(wide, None, Classes(n_classes=3))
    assert with_matrices * 100 * 100 * 8 <= 4_000_000
    assert block_rows(wide) > with_matrices
    assert block_rows(wide, None, StudentT()) == with_matrices
    one = replace(wide, n_outputs=1)
    assert block_rows(one, None, StudentT()) == block_rows(one)


@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
def test_no_rows_with_weight_leave_the_prior(hidden: tuple[int, ...]) -> None:
    model, rows, factors = problem(hidden, "binary")
    none = replace(rows, weights=0.0 * rows.weights)
    step = partial(sweep, repeats=1, empirical_bayes=False)
    held = HeldRows(none, model.architecture)
    state = State(model=model, factors=factors, memory=held.begin(model, factors))
    found, terms = step(state, held)
    assert float(terms.likelihood) == 0.0
    np.testing.assert_array_equal(found.factors.layers[-1].weights.mean, 0.0)


def test_targets_of_another_outcome_are_refused() -> None:
    model, rows, factors = problem((4,), "counts")
    wrong = replace(rows, targets=rows.targets[:, :1])
    with pytest.raises(ValueError, match="1 targets, but the architecture has 3 and 2"):
        fit(model, wrong, factors)
