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
from bowtienet.model import Prior, simulate
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import BowTieModel, build_model
from bowtienet.model.shrinkage import FAMILIES, ShrinkagePrior
from bowtienet.model.simulate import Layer, sample_model, sample_prior
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
def test_prior_draws_follow_the_prior(family, rng, monkeypatch):
    model, original, scales = small_model(family), simulate.sample_scales, []

    def spy(*arguments: Any) -> Any:
        scales.append(original(*arguments))
        return scales[-1]

    monkeypatch.setattr(simulate, "sample_scales", spy)
    draws = [sample_prior(model, rng) for _ in range(150)]
    assert all(isinstance(tau, float) for tau, *_ in scales)
    assert_follows([tau for tau, *_ in scales], model.global_shrinkage)
    hidden, output, biases, standard = [], [], [], []
    for layer, shape in enumerate([(4, 3), (2, 4), (2, 2)]):
        tau, local, slab = (np.array(values) for values in zip(*scales[layer::3], strict=True))
        assert local.shape == (150, *shape)
        assert_follows(local, model.local_shrinkage[layer])
        weights, noise = (np.array(v) for v in zip(*(d[layer] for d in draws), strict=True))
        precision = 1.0 / (tau[:, None, None] * local)
        if model.slab is not None:
            assert_follows(slab, GeneralizedInverseGaussian(order=-1.5, scale=0.375, rate=0.0))
            precision = precision + 1.0 / slab
        standard.append((weights[:, :, 1:] * np.sqrt(precision)).ravel())
        biases.append(weights[:, :, 0].ravel())
        (output if layer == 2 else hidden).append(noise)
    assert_normal(np.concatenate(standard))
    assert_normal(np.concatenate(biases) / 2.0)
    flat = np.concatenate([v.ravel() for v in hidden])
    assert stats.kstest(flat, stats.invgamma(2.0, scale=0.3).cdf).pvalue > FALSE_ALARM
    for column, scale in enumerate([0.1, 5.0]):
        law = stats.invgamma(3.0, scale=scale)
        assert stats.kstest(output[0][:, column], law.cdf).pvalue > FALSE_ALARM


HIDDEN = np.array([[0.3, 1.0], [-0.2, -0.5]])
OUTPUT = np.array([[1.0, 2.0, -3.0]])
LAYERS: list[Layer] = [(HIDDEN, np.full(2, 0.04)), (OUTPUT, np.full(1, 0.25))]
"""One hidden layer of two units and one output on a single input."""


def preactivations(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    return weights[:, 0] + values @ weights[:, 1:].T


@pytest.mark.parametrize("temperature", [0.2, 1.0, 10.0])
def test_gates_open_with_the_sigmoid_of_the_preactivation(temperature, rng):
    n = 20_000
    for x in (-1.0, 0.1, 0.8):
        _, _, [gates] = sample_model(LAYERS, temperature, np.full((n, 1), x), rng)
        assert gates.shape == (n, 2)
        assert np.all((gates == 0.0) | (gates == 1.0))
        probability = expit(preactivations(HIDDEN, np.array([x])) / temperature)
        error = np.sqrt(probability * (1.0 - probability) / n)
        assert np.all(np.abs(gates.mean(axis=0) - probability) < SIGMAS * error)


def test_activations_and_targets_are_gaussian_given_the_layer_below(rng):
    inputs = rng.normal(size=(4000, 1))
    targets, [below], [gates] = sample_model(LAYERS, 0.5, inputs, rng)
    assert_normal((below - gates * preactivations(HIDDEN, inputs)) / 0.2)
    assert_normal((targets - preactivations(OUTPUT, below)) / 0.5)


@pytest.mark.parametrize("temperature", [1e-3, 1e-300])
def test_low_temperature_is_relu_without_overflow(temperature, rng):
    inputs = np.linspace(-40.0, 41.0, 500)[:, None]
    targets, _, [gates] = sample_model(LAYERS, temperature, inputs, rng)
    z = preactivations(HIDDEN, inputs)
    clear = np.abs(z) > 40.0 * temperature
    np.testing.assert_array_equal(gates[clear], (z > 0.0)[clear])
    assert np.all(np.isfinite(targets))


def test_no_hidden_layer_and_another_outcome(rng):
    """Linear and logistic regression; the noise is not read where the outcome has none."""
    layers = [(np.array([[1.0, 2.0]]), np.array([0.09]))]
    inputs = rng.normal(size=(3000, 1))
    targets, *latent = sample_model(layers, 0.1, inputs, rng)
    assert latent == [[], []]
    assert_normal((targets - 1.0 - 2.0 * inputs) / 0.3)
    labels, *_ = sample_model(layers, 0.1, inputs, rng, outcome=Binary())
    assert set(np.unique(labels)) == {0.0, 1.0}
    chance = expit(1.0 + 2.0 * inputs)
    error = np.sqrt(np.sum(chance * (1.0 - chance)))
    assert abs(np.sum(labels - chance)) < SIGMAS * error
