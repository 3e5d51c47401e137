"""Draws from the prior and from the model against what they should be distributed as.

Kolmogorov-Smirnov tests at the level 1e-6 and bounds of 6 standard errors (2e-9 each): with seeded
generators they cannot flicker, and a right program would have failed with less than these odds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.half_cauchy import HalfCauchy
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, build_model
from bowtienet._old.model.shrinkage import FAMILIES, ShrinkagePrior
from bowtienet._old.model.simulate import Parameters, sample_model, sample_prior

FALSE_ALARM = 1e-6
SIGMAS = 6.0


def frozen(prior: GeneralizedInverseGaussian | HalfCauchy) -> Any:
    """The same distribution from SciPy; of a half-Cauchy that of its square, an F(1, 1)."""
    if isinstance(prior, HalfCauchy):
        return stats.f(1, 1, scale=prior.scale)
    if prior.rate == 0.0:
        return stats.invgamma(-prior.order, scale=prior.scale)
    if prior.scale == 0.0:
        return stats.gamma(prior.order, scale=1.0 / prior.rate)
    return stats.geninvgauss(
        prior.order,
        2.0 * np.sqrt(prior.scale * prior.rate),
        scale=np.sqrt(prior.scale / prior.rate),
    )


def assert_follows(draws: Any, prior: ShrinkagePrior) -> None:
    if isinstance(prior, PointMass):
        np.testing.assert_array_equal(draws, prior.value)
    else:
        assert stats.kstest(np.ravel(draws), frozen(prior).cdf).pvalue > FALSE_ALARM


def small_model(**settings: Any) -> BowTieModel:
    return build_model(build_architecture(3, (5, 4), 2), **settings)


@pytest.mark.parametrize("family", FAMILIES)
def test_shapes_of_prior_draws(family: str, rng: np.random.Generator) -> None:
    parameters = sample_prior(small_model(prior=family), rng)
    assert [w.shape for w in parameters.weights] == [(5, 4), (4, 6), (2, 5)]
    assert [v.shape for v in parameters.noise_variance] == [(5,), (4,), (2,)]
    assert [v.shape for v in parameters.local_shrinkage] == [(5, 3), (4, 5), (2, 4)]
    assert all(isinstance(tau, float) and tau > 0.0 for tau in parameters.global_shrinkage)
    assert len(parameters.global_shrinkage) == 3


@pytest.mark.parametrize("family", FAMILIES)
def test_prior_draws_follow_the_prior(family: str, rng: np.random.Generator) -> None:
    model = build_model(
        build_architecture(3, (4, 2), 2),
        prior=family,
        hidden_noise=(2.0, 0.3),
        output_noise=(3.0, [0.1, 5.0]),
        bias_variance=4.0,
        slab=(3.0, 0.5),
    )
    prior = model.prior
    draws = [sample_prior(model, rng) for _ in range(150)]
    assert_follows([d.global_shrinkage for d in draws], prior.global_shrinkage)
    hidden, output, biases, standard = [], [], [], []
    for layer in range(3):
        local = np.array([d.local_shrinkage[layer] for d in draws])
        assert_follows(local, prior.local_shrinkage[layer])
        weights = np.array([d.weights[layer] for d in draws])
        tau = np.array([d.global_shrinkage[layer] for d in draws])[:, None, None]
        precision = 1.0 / (tau * local)
        if prior.slab is not None:
            slab = np.array([d.slab_variance[layer] for d in draws])
            assert_follows(slab, GeneralizedInverseGaussian(order=-1.5, scale=0.375, rate=0.0))
            precision = precision + 1.0 / slab
        standard.append((weights[:, :, 1:] * np.sqrt(precision)).ravel())
        biases.append(weights[:, :, 0].ravel())
        noise = np.array([d.noise_variance[layer] for d in draws])
        (output if layer == 2 else hidden).append(noise)
    assert stats.kstest(np.concatenate(standard), "norm").pvalue > FALSE_ALARM
    assert stats.kstest(np.concatenate(biases) / 2.0, "norm").pvalue > FALSE_ALARM
    flat = np.concatenate([v.ravel() for v in hidden])
    assert stats.kstest(flat, stats.invgamma(2.0, scale=0.3).cdf).pvalue > FALSE_ALARM
    for column, scale in enumerate([0.1, 5.0]):
        law = stats.invgamma(3.0, scale=scale)
        assert stats.kstest(output[0][:, column], law.cdf).pvalue > FALSE_ALARM


def fixed_parameters(hidden_noise: float = 0.04, output_noise: float = 0.25) -> Parameters:
    """One hidden layer of two units and one output on a single input."""
    return Parameters(
        weights=(np.array([[0.3, 1.0], [-0.2, -0.5]]), np.array([[1.0, 2.0, -3.0]])),
        noise_variance=(np.full(2, hidden_noise), np.full(1, output_noise)),
        global_shrinkage=(1.0, 1.0),
        local_shrinkage=(np.ones((2, 1)), np.ones((1, 2))),
    )


def test_shapes_of_model_draws(rng: np.random.Generator) -> None:
    parameters = sample_prior(small_model(), rng)
    simulation = sample_model(parameters, 0.1, rng.normal(size=(7, 3)), rng)
    assert simulation.targets.shape == (7, 2)
    assert [a.shape for a in simulation.activations] == [(7, 5), (7, 4)]
    assert [g.shape for g in simulation.gates] == [(7, 5), (7, 4)]
    assert all(np.all((g == 0.0) | (g == 1.0)) for g in simulation.gates)


@pytest.mark.parametrize("gate_temperature", [0.2, 1.0, 10.0])
def test_gates_open_with_the_sigmoid_of_the_preactivation(
    gate_temperature: float, rng: np.random.Generator
) -> None:
    parameters, n = fixed_parameters(), 20_000
    for x in (-1.0, 0.1, 0.8):
        gates = sample_model(parameters, gate_temperature, np.full((n, 1), x), rng).gates[0]
        z = parameters.weights[0][:, 0] + parameters.weights[0][:, 1] * x
        probability = expit(z / gate_temperature)
        error = np.sqrt(probability * (1.0 - probability) / n)
        assert np.all(np.abs(gates.mean(axis=0) - probability) < SIGMAS * error)


def test_activations_and_targets_are_gaussian_given_the_layer_below(
    rng: np.random.Generator,
) -> None:
    parameters = fixed_parameters()
    inputs = rng.normal(size=(4000, 1))
    drawn = sample_model(parameters, 0.5, inputs, rng)
    hidden, output = parameters.weights
    z = hidden[:, 0] + inputs @ hidden[:, 1:].T
    residual = (drawn.activations[0] - drawn.gates[0] * z) / 0.2
    assert stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM
    residual = (drawn.targets - output[:, 0] - drawn.activations[0] @ output[:, 1:].T) / 0.5
    assert stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM


def test_moments_of_the_targets(rng: np.random.Generator) -> None:
    """E[y] and Var[y] at one input, from the mixture of the two gates, in closed form."""
    parameters, n, gate_temperature, x = fixed_parameters(), 40_000, 0.7, 0.4
    hidden, output = parameters.weights
    z = hidden[:, 0] + hidden[:, 1] * x
    probability = expit(z / gate_temperature)
    mean = output[0, 0] + output[0, 1:] @ (probability * z)
    spread = probability * (1.0 - probability) * z**2 + 0.04
    variance = output[0, 1:] ** 2 @ spread + 0.25
    targets = sample_model(parameters, gate_temperature, np.full((n, 1), x), rng).targets[:, 0]
    assert abs(targets.mean() - mean) < SIGMAS * np.sqrt(variance / n)
    fourth = np.mean((targets - targets.mean()) ** 4)
    assert abs(targets.var() - variance) < SIGMAS * np.sqrt((fourth - variance**2) / n)


@pytest.mark.parametrize("gate_temperature", [1e-3, 1e-12, 1e-300])
def test_low_temperature_is_relu_without_overflow(
    gate_temperature: float, rng: np.random.Generator
) -> None:
    parameters = fixed_parameters()
    inputs = np.linspace(-40.0, 41.0, 500)[:, None]
    drawn = sample_model(parameters, gate_temperature, inputs, rng)
    z = parameters.weights[0][:, 0] + inputs @ parameters.weights[0][:, 1:].T
    clear = np.abs(z) > 40.0 * gate_temperature
    np.testing.assert_array_equal(drawn.gates[0][clear], (z > 0.0)[clear])
    assert np.all(np.isfinite(drawn.targets))


def test_no_hidden_layer_is_linear_regression(rng: np.random.Generator) -> None:
    parameters = Parameters(
        weights=(np.array([[1.0, 2.0]]),),
        noise_variance=(np.array([0.09]),),
        global_shrinkage=(1.0,),
        local_shrinkage=(np.ones((1, 1)),),
    )
    inputs = rng.normal(size=(3000, 1))
    drawn = sample_model(parameters, 0.1, inputs, rng)
    assert drawn.activations == drawn.gates == ()
    residual = (drawn.targets - 1.0 - 2.0 * inputs) / 0.3
    assert stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM


def test_same_seed_same_draws() -> None:
    model = small_model()
    draws = [sample_prior(model, np.random.default_rng(seed)) for seed in (3, 3, 4)]
    for first, again in zip(draws[0].weights, draws[1].weights, strict=True):
        np.testing.assert_array_equal(first, again)
    assert not np.array_equal(draws[0].weights[0], draws[2].weights[0])
    inputs = np.ones((6, 3))
    first, again, other = (
        sample_model(draws[0], 0.1, inputs, np.random.default_rng(seed)).targets
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_settings_are_checked(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="gate_temperature"):
        sample_model(fixed_parameters(), 0.0, np.ones((2, 1)), rng)
    with pytest.raises(ValueError, match="inputs"):
        sample_model(fixed_parameters(), 0.1, np.ones((2, 3)), rng)
