"""Coordinate ascent: monotone, and safe under any momentum. See test_iterate for how it ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.inference import coordinate_ascent as module
from bowtienet._old.inference import row_providers
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import initialize
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, build_model, default_model
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.prediction.predictive import predict

Problem = tuple[BowTieModel, Rows, GlobalFactors]


def toy_problem(hidden: tuple[int, ...] = (6,), n: int = 60, **settings: Any) -> Problem:
    rng = np.random.default_rng(7)
    inputs = rng.uniform(-2.0, 2.0, size=(n, 2))
    targets = np.sin(2.0 * inputs[:, 0]) * inputs[:, 1] + 0.1 * rng.normal(size=n)
    rows = build_rows(inputs, targets)
    model = default_model(build_architecture(2, hidden, 1), inputs, targets, **settings)
    return model, rows, initialize(model, rows, rng, start_iterations=50)


def slack(bound: float) -> float:
    """What the stopping rule calls rounding."""
    return 1e-9 * max(abs(bound), 1.0)


def assert_monotone(result: FitResult) -> None:
    assert all(after >= before - slack(before) for before, after in pairwise(result.elbo_history))


def assert_finite(result: FitResult) -> None:
    for layer in result.factors.layers:
        assert np.all(np.isfinite(layer.weights.mean))
        assert np.all(np.diagonal(layer.weights.covariance, axis1=-2, axis2=-1) > 0.0)
        assert np.all(np.isfinite(layer.noise_variance.scale))
    assert result.elbo_terms is not None
    assert np.isfinite(float(result.elbo_terms.total))


@pytest.mark.parametrize("hidden", [(), (6,), (5, 4)])
@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("empirical_bayes", [False, True])
def test_history_is_monotone_and_complete(
    hidden: tuple[int, ...], accelerate: bool, empirical_bayes: bool
) -> None:
    result = fit(
        *toy_problem(hidden),
        max_iter=40,
        accelerate=accelerate,
        empirical_bayes=empirical_bayes,
    )
    assert_monotone(result)
    assert_finite(result)
    assert result.n_sweeps <= 40
    assert float(result.elbo_terms.total) == result.elbo_history[-1]


def test_undone_sweeps_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass over the data is counted, and the limit holds for them all."""
    passes = 0
    original = row_providers.local_pass

    def counted(*arguments: Any) -> Any:
        nonlocal passes
        passes += 1
        return original(*arguments)

    monkeypatch.setattr(row_providers, "local_pass", counted)
    monkeypatch.setattr(module, "momentum", lambda age: 30.0)
    result = fit(*toy_problem(), max_iter=25, tol=0.0)
    assert passes == result.n_sweeps == 25
    assert len(result.elbo_history) < 25


@pytest.mark.parametrize("amount", [3.0, 1e3, 1e200])
@pytest.mark.parametrize("hidden", [(6,), (5, 4)])
def test_a_step_that_lowers_the_bound_is_undone(
    amount: float, hidden: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the momentum: no exception, no warning, and never below the accepted bound."""
    problem = toy_problem(hidden)
    monkeypatch.setattr(module, "momentum", lambda age: amount)
    result = fit(*problem, max_iter=20, tol=0.0)
    assert_monotone(result)
    assert_finite(result)
    assert result.n_sweeps == 20
    assert len(result.elbo_history) >= 10
    assert np.all(np.isfinite(predict(result.model, result.factors, problem[1].inputs).mean))


def test_after_an_undone_step_the_fit_goes_on_as_if_it_was_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With every momentum step undone, the history is that of plain sweeps."""
    problem = toy_problem()
    plain = fit(*problem, max_iter=8, tol=0.0, accelerate=False)
    monkeypatch.setattr(module, "momentum", lambda age: 1e3)
    rejected = fit(*problem, max_iter=14, tol=0.0)
    assert len(rejected.elbo_history) == 8
    np.testing.assert_allclose(rejected.elbo_history, plain.elbo_history, rtol=1e-12)


def test_momentum_begins_anew_after_an_undone_step(monkeypatch: pytest.MonkeyPatch) -> None:
    ages: list[int] = []

    def too_far_at_three(age: int) -> float:
        ages.append(age)
        return 1e3 if age == 3 else 0.1

    monkeypatch.setattr(module, "momentum", too_far_at_three)
    fit(*toy_problem(), max_iter=12, tol=0.0)
    assert ages == [1, 2, 3] * 3


@pytest.mark.parametrize(("hidden", "gain"), [((6,), 1.0), ((5, 4), 1.0)])
def test_acceleration_reaches_a_higher_bound_in_as_many_sweeps(
    hidden: tuple[int, ...], gain: float
) -> None:
    problem = toy_problem(hidden)
    plain, fast = (
        fit(*problem, max_iter=60, tol=0.0, accelerate=accelerate) for accelerate in (False, True)
    )
    assert fast.n_sweeps == plain.n_sweeps == 60
    assert fast.elbo_history[-1] > plain.elbo_history[-1] + gain


def test_a_looser_tolerance_stops_sooner_with_three_small_changes() -> None:
    problem = toy_problem()
    loose, tight = (fit(*problem, tol=tolerance) for tolerance in (1e-2, 1e-4))
    assert loose.status is tight.status is Status.CONVERGED
    assert loose.n_sweeps < tight.n_sweeps
    history = loose.elbo_history
    changes = [(b - a) / max(abs(a), 1.0) for a, b in pairwise(history)]
    assert all(abs(change) < 1e-2 for change in changes[-3:])
    assert len(changes) == 3 or any(abs(change) >= 1e-2 for change in changes[-4:-1])


def test_the_fit_is_deterministic_and_leaves_its_arguments_alone() -> None:
    model, rows, factors = toy_problem((5, 4))
    means = [layer.weights.mean.copy() for layer in factors.layers]
    first, again = (fit(model, rows, factors, max_iter=10) for _ in range(2))
    assert first.elbo_history == again.elbo_history
    for layer, mean in zip(factors.layers, means, strict=True):
        np.testing.assert_array_equal(layer.weights.mean, mean)


def test_without_empirical_bayes_the_model_stays() -> None:
    model, rows, factors = toy_problem()
    assert fit(model, rows, factors, max_iter=3, empirical_bayes=False).model == model
    moved = fit(model, rows, factors, max_iter=3).model
    assert moved.prior.global_shrinkage.scale != model.prior.global_shrinkage.scale
    assert moved.prior.local_shrinkage == model.prior.local_shrinkage


def test_a_decrease_is_a_status_and_the_better_state_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong update (the noise scale times 50 in the third sweep) is noticed and not accepted."""
    model, rows, factors = toy_problem()
    good = fit(model, rows, factors, max_iter=2, tol=0.0, accelerate=False)
    original, calls = module.global_step, 0

    def wrong(*arguments: Any) -> GlobalFactors:
        nonlocal calls
        calls += 1
        updated = original(*arguments)
        if calls < 3:
            return updated
        output = updated.layers[-1]
        noise = replace(output.noise_variance, scale=50.0 * output.noise_variance.scale)
        return replace(
            updated, layers=(*updated.layers[:-1], replace(output, noise_variance=noise))
        )

    monkeypatch.setattr(module, "global_step", wrong)
    result = fit(model, rows, factors, max_iter=20, accelerate=False)
    assert result.status is Status.DECREASED
    assert result.n_sweeps == 3
    assert result.elbo_history == good.elbo_history
    np.testing.assert_array_equal(
        result.factors.layers[0].weights.mean, good.factors.layers[0].weights.mean
    )


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[(name, 0) for name in ("max_iter", "repeats", "block_size", "n_threads")],
        ("tol", -1e-9),
    ],
)
def test_bad_settings_are_named(name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=name):
        fit(*toy_problem(n=10), **{"max_iter": 2, name: bad})


def test_rows_of_another_shape() -> None:
    model, _, factors = toy_problem(n=10)
    wider = build_rows(np.ones((4, 3)), np.ones(4))
    with pytest.raises(ValueError, match="inputs"):
        fit(model, wider, factors)


@pytest.mark.parametrize("hidden", [(5,), ()])
def test_factors_of_another_model(hidden: tuple[int, ...]) -> None:
    _, rows, factors = toy_problem((6,), n=10)
    other = build_model(build_architecture(2, hidden, 1))
    with pytest.raises(ValueError, match="factors"):
        fit(other, rows, factors)
