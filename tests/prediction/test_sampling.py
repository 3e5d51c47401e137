"""Draws of whole functions and of targets: their moments, coherence, and what noise adds.

Error bars: moments of draws are held to 5 standard errors, a false-alarm rate of 6e-7 for each
comparison and below 1e-4 for the 150 or fewer of any one test. Seeds are fixed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from bowtienet._arrays import with_ones
from bowtienet.distributions import gaussian
from bowtienet.model.model import BowTieModel
from bowtienet.outcomes import Binary
from bowtienet.posterior.factors import Posterior, network
from bowtienet.prediction.variational import (
    output_moments,
    output_noise,
    sample_functions,
    sample_layers,
)
from tests import builders

LIMIT = 5.0
PROBIT_ERROR = 2e-4
"""Allowance for the mixture of probits in closed forms, in deviations: 4.4e-5 for each gate."""
N_DRAWS = 3000


def random_network(
    rng: np.random.Generator, hidden: tuple[int, ...]
) -> tuple[BowTieModel, Posterior, np.ndarray]:
    """A network and six rows; the second of two, so that the first is not what is always drawn."""
    model, posterior = builders.noisy_network(rng, hidden, 0.1)
    return model, network(posterior, 1), rng.normal(0.0, 1.5, size=(6, 3))


def assert_moments(draws: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> None:
    centred = draws - draws.mean(axis=0)
    deviation, squares = draws.std(axis=0), centred**2
    bar = LIMIT * deviation / np.sqrt(len(draws)) + PROBIT_ERROR * deviation
    assert np.all(np.abs(draws.mean(axis=0) - mean) < bar)
    bar = LIMIT * squares.std(axis=0) / np.sqrt(len(draws)) + PROBIT_ERROR * deviation**2
    assert np.all(np.abs(squares.mean(axis=0) - variance) < bar)


def function_moments(
    model: BowTieModel, posterior: Posterior, inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of E[y | W] with one hidden layer, by the trapezium rule over z.

    With a = sigmoid(z/T) z: m'mu~ and mu~'B mu~ + Σ E[W²] Var[a].
    """
    hidden, output = (layer.weights for layer in posterior.layers)
    design = with_ones(inputs)
    u = np.linspace(-10.0, 10.0, 4001)
    share = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi) * (u[1] - u[0])
    spread = np.einsum("ni,dij,nj->nd", design, hidden.covariance[0], design)
    z = (design @ hidden.mean[0].T)[..., None] + np.sqrt(spread)[..., None] * u
    a = expit(z / model.temperature) * z
    first, second = a @ share, a**2 @ share
    means = with_ones(first)
    signal = np.einsum("ni,dij,nj->nd", means, output.covariance[0], means)
    signal += (second - first**2) @ gaussian.squares(output)[0, :, 1:].T
    return means @ output.mean[0].T, signal


def test_parameters_have_the_moments_of_q(rng):
    """Mean and covariance of a row of weights, mean and variance of the noise: 40 comparisons."""
    _, posterior, _ = random_network(rng, (3,))
    draws = [sample_layers(posterior, rng) for _ in range(N_DRAWS)]
    for index, layer in enumerate(posterior.layers):
        weights = np.stack([draw[index][0] for draw in draws])
        mean, covariance = layer.weights.mean[0], layer.weights.covariance[0]
        assert_moments(weights, mean, np.einsum("dii->di", covariance))
        products = np.einsum("sdi,sdj->sdij", weights - mean, weights - mean)
        bar = LIMIT * products.std(axis=0) / np.sqrt(N_DRAWS)
        assert np.all(np.abs(products.mean(axis=0) - covariance) < bar)
        a, b = layer.noise_variance.concentration[0], layer.noise_variance.scale[0]
        noise = np.stack([draw[index][1] for draw in draws])
        assert_moments(noise, b / (a - 1.0), b**2 / ((a - 1.0) ** 2 * (a - 2.0)))


@pytest.mark.parametrize("hidden", [(), (4,)], ids=str)
def test_targets_have_the_predictive_moments(hidden, rng):
    """Without or with one hidden layer closed forms are exact (up to the probits)."""
    model, posterior, inputs = random_network(rng, hidden)
    draws = sample_functions(model, posterior, inputs, N_DRAWS, rng, noise=True)
    assert draws.shape == (N_DRAWS, 6, 2)
    new = output_moments(model, posterior, inputs)
    noise = output_noise(model, posterior)
    assert_moments(draws, new.mean[0], (new.epistemic + new.chance + noise)[0])


def test_functions_have_the_moments_of_the_mean_response(rng):
    """Their variance is what the weights leave open."""
    model, posterior, inputs = random_network(rng, (4,))
    draws = sample_functions(model, posterior, inputs, N_DRAWS, rng, noise=False)
    mean, variance = function_moments(model, posterior, inputs)
    assert_moments(draws, mean, variance)
    new = output_moments(model, posterior, inputs)
    assert np.max(np.abs(mean - new.mean[0]) / np.sqrt(variance)) < PROBIT_ERROR
    np.testing.assert_allclose(new.epistemic[0], variance, rtol=PROBIT_ERROR)


def test_a_draw_is_a_single_function(rng):
    """Without hidden layers a straight line through all rows, another for every draw."""
    model, posterior, _ = random_network(rng, ())
    inputs = np.linspace(-1.0, 1.0, 9)[:, None] * np.array([1.0, -2.0, 0.5])
    draws = sample_functions(model, posterior, inputs, 5, rng, noise=False)
    np.testing.assert_allclose(np.diff(draws, n=2, axis=1), 0.0, atol=1e-13)
    assert np.unique(draws[:, 0, 0]).size == 5
    noisy = sample_functions(model, posterior, inputs, 5, rng, noise=True)
    assert np.min(np.abs(np.diff(noisy, n=2, axis=1)).max(axis=1)) > 1e-3
    binary = replace(model, outcome=Binary())
    labels = sample_functions(binary, posterior, inputs, 5, rng, noise=True)
    assert set(np.unique(labels)) == {0.0, 1.0}
