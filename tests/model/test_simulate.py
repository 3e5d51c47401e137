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

from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import BowTieModel, Prior, build_model
from bowtienet.model.shrinkage import FAMILIES, ShrinkagePrior
from bowtienet.model.simulate import Parameters, sample_model, sample_prior
from bowtienet.outcomes import Binary

FALSE_ALARM = 1e-6
SIGMAS = 6.0


def law_of(prior: GeneralizedInverseGaussian | HalfCauchy) -> Any:
    """The same distribution from SciPy; of a half-Cauchy that of its square, an F(1, 1)."""
    if isinstance(prior, HalfCauchy):
        return stats.f(1, 1, scale=prior.scale)
    if prior.rate == 0.0:
        return stats.invgamma(-prior.order, scale=prior.scale)
    if prior.scale == 0.0:
        return stats.gamma(prior.order, scale=1.0 / prior.rate)
    product, ratio = prior.scale * prior.rate, prior.scale / prior.rate
    return stats.geninvgauss(prior.order, 2.0 * np.sqrt(product), scale=np.sqrt(ratio))


def assert_follows(draws: Any, prior: ShrinkagePrior) -> None:
    if isinstance(prior, PointMass):
        np.testing.assert_array_equal(draws, prior.value)
    else:
        assert stats.kstest(np.ravel(draws), law_of(prior).cdf).pvalue > FALSE_ALARM


def assert_normal(draws: Any) -> None:
    assert stats.kstest(np.ravel(draws), "norm").pvalue > FALSE_ALARM


def small_model(family: str = "student_t") -> BowTieModel:
    return build_model(
        build_architecture(3, (4, 2), 2),
        prior=Prior(family, slab=(3.0, 0.5)),
        hidden_noise=(2.0, 0.3),
        output_noise=(3.0, [0.1, 5.0]),
        bias_variance=4.0,
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_prior_draws_follow_the_prior(family, rng):
    model = small_model(family)
    prior = model.prior
    draws = [sample_prior(model, rng) for _ in range(150)]
    assert all(isinstance(tau, float) for tau in draws[0].global_shrinkage)
    assert_follows([d.global_shrinkage for d in draws], prior.global_shrinkage)
    hidden, output, biases, standard = [], [], [], []
    for layer, shape in enumerate([(4, 3), (2, 4), (2, 2)]):
        local = np.array([d.local_shrinkage[layer] for d in draws])
        assert local.shape == (150, *shape)
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
    assert_normal(np.concatenate(standard))
    assert_normal(np.concatenate(biases) / 2.0)
    flat = np.concatenate([v.ravel() for v in hidden])
    assert stats.kstest(flat, stats.invgamma(2.0, scale=0.3).cdf).pvalue > FALSE_ALARM
    for column, scale in enumerate([0.1, 5.0]):
        law = stats.invgamma(3.0, scale=scale)
        assert stats.kstest(output[0][:, column], law.cdf).pvalue > FALSE_ALARM


def fixed_parameters() -> Parameters:
    """One hidden layer of two units and one output on a single input."""
    return Parameters(
        weights=(np.array([[0.3, 1.0], [-0.2, -0.5]]), np.array([[1.0, 2.0, -3.0]])),
        noise_variance=(np.full(2, 0.04), np.full(1, 0.25)),
        global_shrinkage=(1.0, 1.0),
        local_shrinkage=(np.ones((2, 1)), np.ones((1, 2))),
    )


def preactivations(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    return weights[:, 0] + values @ weights[:, 1:].T


@pytest.mark.parametrize("temperature", [0.2, 1.0, 10.0])
def test_gates_open_with_the_sigmoid_of_the_preactivation(temperature, rng):
    parameters, n = fixed_parameters(), 20_000
    for x in (-1.0, 0.1, 0.8):
        gates = sample_model(parameters, temperature, np.full((n, 1), x), rng).gates[0]
        assert gates.shape == (n, 2)
        assert np.all((gates == 0.0) | (gates == 1.0))
        probability = expit(preactivations(parameters.weights[0], np.array([x])) / temperature)
        error = np.sqrt(probability * (1.0 - probability) / n)
        assert np.all(np.abs(gates.mean(axis=0) - probability) < SIGMAS * error)


def test_activations_and_targets_are_gaussian_given_the_layer_below(rng):
    parameters, inputs = fixed_parameters(), rng.normal(size=(4000, 1))
    drawn = sample_model(parameters, 0.5, inputs, rng)
    hidden, output = parameters.weights
    below = drawn.activations[0]
    assert_normal((below - drawn.gates[0] * preactivations(hidden, inputs)) / 0.2)
    assert_normal((drawn.targets - preactivations(output, below)) / 0.5)


@pytest.mark.parametrize("temperature", [1e-3, 1e-300])
def test_low_temperature_is_relu_without_overflow(temperature, rng):
    parameters, inputs = fixed_parameters(), np.linspace(-40.0, 41.0, 500)[:, None]
    drawn = sample_model(parameters, temperature, inputs, rng)
    z = preactivations(parameters.weights[0], inputs)
    clear = np.abs(z) > 40.0 * temperature
    np.testing.assert_array_equal(drawn.gates[0][clear], (z > 0.0)[clear])
    assert np.all(np.isfinite(drawn.targets))


def test_no_hidden_layer_and_another_outcome(rng):
    """Linear and logistic regression; the noise is not read where the outcome has none."""
    parameters = Parameters(
        weights=(np.array([[1.0, 2.0]]),),
        noise_variance=(np.array([0.09]),),
        global_shrinkage=(1.0,),
        local_shrinkage=(np.ones((1, 1)),),
    )
    inputs = rng.normal(size=(3000, 1))
    drawn = sample_model(parameters, 0.1, inputs, rng)
    assert drawn.activations == drawn.gates == ()
    assert_normal((drawn.targets - 1.0 - 2.0 * inputs) / 0.3)
    labels = sample_model(parameters, 0.1, inputs, rng, outcome=Binary()).targets
    assert set(np.unique(labels)) == {0.0, 1.0}
    chance = expit(1.0 + 2.0 * inputs)
    error = np.sqrt(np.sum(chance * (1.0 - chance)))
    assert abs(np.sum(labels - chance)) < SIGMAS * error
