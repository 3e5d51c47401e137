"""Prediction, pruning and files of networks whose outcome is not Gaussian."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bowtienet._old.data.rows import Rows
from bowtienet._old.distributions import inverse_gamma
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.pruning import prune
from bowtienet._old.inference.start import initialize
from bowtienet._old.model.outcomes import StudentT
from bowtienet._old.model.simulate import sample_model, sample_prior
from bowtienet._old.persistence import load, save
from bowtienet._old.prediction.predictive import predict, without_targets
from tests._old import builders

all_outcomes = pytest.mark.parametrize("name", builders.OUTCOMES)


@cache
def fitted(hidden: tuple[int, ...], name: str) -> tuple[FitResult, Rows]:
    rng = np.random.default_rng(9)
    outcome, n_outputs = builders.OUTCOMES[name]
    model = builders.fixed_model(hidden, outcome=outcome, n_outputs=n_outputs, gate_temperature=0.3)
    rows = builders.random_rows(rng, model, 60)
    factors = initialize(model, rows, rng, init="laplace")
    return fit(model, rows, factors, max_iter=30), rows


@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)], ids=str)
@all_outcomes
def test_predictions_of_the_output(name: str, hidden: tuple[int, ...]) -> None:
    """Both routes, near each other; noise where the outcome has some."""
    result, rows = fitted(hidden, name)
    n_outputs = builders.OUTCOMES[name][1]
    found = {
        route: predict(result.model, result.factors, rows.inputs, propagation=route)
        for route in ("push_forward", "variational")
    }
    spread = np.std(found["push_forward"].mean, axis=0).max() + 0.1
    difference = found["push_forward"].mean - found["variational"].mean
    assert np.sqrt(np.mean(difference**2)) < 0.5 * spread
    for each in found.values():
        assert each.mean.shape == (60, n_outputs)
        assert np.all(each.signal_variance > 0.0)
        noise = inverse_gamma.mean(result.factors.layers[-1].noise_variance)
        if isinstance(result.model.outcome, StudentT):
            expected: Any = noise * result.model.outcome.variance_ratio
        else:
            expected = np.zeros(n_outputs)
        np.testing.assert_allclose(each.noise_variance, np.tile(expected, (60, 1)), rtol=1e-12)


@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
def test_without_targets_there_is_a_shared_covariance(hidden: tuple[int, ...]) -> None:
    result, _ = fitted(hidden, "binary")
    assert result.factors.shared_covariance is None
    precision = inverse_gamma.mean_inverse(result.factors.layers[-2].noise_variance)
    found = without_targets(result.factors).shared_covariance
    np.testing.assert_allclose(found, np.diag(1.0 / precision), rtol=1e-12)


@all_outcomes
def test_a_pruned_network_keeps_its_outcome_and_can_be_fitted_on(name: str) -> None:
    result, rows = fitted((4,), name)
    model, factors, pruning = prune(result.model, result.factors, false_sign_rate=0.4)
    assert model.outcome == result.model.outcome
    assert factors.shared_covariance is None
    kept = replace(rows, inputs=rows.inputs[:, pruning.inputs])
    again = fit(model, kept, factors, max_iter=10, tol=0.0)
    assert np.all(np.diff(again.elbo_history) >= -1e-9 * abs(again.elbo_history[0]))
    if not model.outcome.has_noise:
        before, after = (f.layers[-1].noise_variance.scale for f in (result.factors, factors))
        np.testing.assert_array_equal(before, after)


@all_outcomes
def test_a_pruned_network_predicts_nearly_the_same(name: str) -> None:
    """At a rate that takes little out; what goes of an output without noise goes to its bias."""
    result, rows = fitted((4,), name)
    model, factors, pruning = prune(result.model, result.factors, false_sign_rate=0.45)
    inputs = rows.inputs[:, pruning.inputs]
    before = predict(result.model, result.factors, rows.inputs).mean
    after = predict(model, factors, inputs).mean
    assert np.sqrt(np.mean((before - after) ** 2)) < 0.5 * (np.std(before) + 0.1)


@all_outcomes
def test_files(name: str, tmp_path: Path) -> None:
    result, rows = fitted((4,), name)
    save(tmp_path / "fit", "example", result)
    back = load(tmp_path / "fit", "example")
    assert back.model.outcome == result.model.outcome
    first, second = (predict(r.model, r.factors, rows.inputs).mean for r in (result, back))
    np.testing.assert_array_equal(first, second)
    again = [fit(r.model, rows, r.factors, max_iter=2).elbo_history for r in (result, back)]
    assert again[0] == again[1]


@all_outcomes
def test_simulated_targets(name: str, rng: np.random.Generator) -> None:
    """From the prior: of the outcome's shape and kind, and such that a fit can begin."""
    outcome, n_outputs = builders.OUTCOMES[name]
    model = builders.fixed_model((4,), outcome=outcome, n_outputs=n_outputs)
    inputs = rng.normal(size=(50, 3))
    drawn = sample_model(sample_prior(model, rng), 0.7, inputs, rng, outcome=outcome).targets
    assert drawn.shape == (50, outcome.n_columns(n_outputs))
    if not outcome.has_noise:
        np.testing.assert_array_equal(drawn, np.round(drawn))
        assert np.all(drawn[:, 0] >= 0.0)
