"""Pushing the generative process forward: against quadrature, draws, and what is exact.

Error bars: a comparison with draws is a z-score with a limit of 5 standard errors, a false-alarm
rate of 6e-7 for each comparison and below 5e-5 for the 80 or fewer of any one test. Seeds are
fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, ndtr

from bowtienet._arrays import with_ones
from bowtienet.distributions import gated, gaussian, inverse_gamma
from bowtienet.distributions.gated import gated_moments
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.inference import ascend as ascending
from bowtienet.model.model import BowTieModel
from bowtienet.posterior.factors import Posterior, network
from bowtienet.prediction.push_forward import (
    Moments,
    activation_moments,
    preactivation_moments,
    push_forward,
)
from bowtienet.prediction.variational import output_moments
from tests import builders

LIMIT = 5.0
PROBIT_ERROR = 4.4e-5
"""Largest distance of the mixture of probits from the sigmoid."""
BEYOND_DOUBT = 1e-9
"""What is left out where a gate is open or shut beyond doubt, in units of |z|."""
TEMPERATURES = (1e-6, 1e-2, 0.3, 1.0, 30.0, 1e4)
VARIANCES = (0.0, 1e-12, 1e-4, 0.5, 40.0, 1e6)
MEANS = (0.0, 1e-7, 2e-3, -2e-3, 0.4, -0.4, 3.0, -3.0, 50.0, -50.0, 1e4, -1e4, 1e8, -1e8)
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(40)
N_DRAWS = 50_000


def probits(x: np.ndarray) -> np.ndarray:
    return sum((weight * ndtr(slope * x) for weight, slope in gated.PROBITS), np.zeros_like(x))


def integrals(
    gate: Callable[[np.ndarray], np.ndarray], mean: float, variance: float, temperature: float
) -> tuple[float, float]:
    """E[gate(z/T) z] and E[gate(z/T) z²], z ~ N(mean, variance), by Gauss-Legendre in panels.

    Panels are narrow about the gate's bend and about the peak of the density.
    """
    if variance == 0.0:
        opened = float(gate(np.array(mean / temperature)))
        return opened * mean, opened * mean**2
    deviation = np.sqrt(variance)
    bends = temperature * np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    edges = np.concatenate([np.arange(-12.0, 12.5), (np.append(bends, -bends) - mean) / deviation])
    edges = np.unique(edges[np.abs(edges) <= 12.0])
    half = 0.5 * np.diff(edges)[:, None]
    u = edges[:-1, None] + half * (1.0 + NODES)
    z = mean + deviation * u
    density = half * NODE_WEIGHTS * np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi)
    products = gate(z / temperature) * density
    return float(np.sum(products * z)), float(np.sum(products * z**2))


def draw_preactivations(
    model: BowTieModel, posterior: Posterior, inputs: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    """z (draws, M, rows, units) of every layer: weights and noise from q, gates, activations."""
    values = np.broadcast_to(
        inputs, (N_DRAWS, len(posterior.layers[0].weights.mean), *inputs.shape)
    )
    drawn = []
    for layer in posterior.layers:
        weights = gaussian.sample(layer.weights, rng, (N_DRAWS,))
        z = with_ones(values) @ np.swapaxes(weights, -1, -2)
        gate = rng.random(size=z.shape) < expit(z / model.temperature)
        noise = inverse_gamma.sample(layer.noise_variance, rng, weights.shape[:3])
        values = gate * z + np.sqrt(noise)[:, :, None, :] * rng.standard_normal(z.shape)
        drawn.append(z)
    return drawn


def variance_of(moments: Moments) -> np.ndarray:
    """Both kinds together."""
    return moments.epistemic + moments.chance


def first_and_second(
    mean: np.ndarray, variance: np.ndarray, temperature: float
) -> tuple[np.ndarray, np.ndarray]:
    """E[gate(z/T) z] and E[gate(z/T) z²] = Var[g] + E[g]² + E[gate (1 - gate) z²]."""
    first, varied, gates = gated_moments(mean, variance, temperature)
    return first, varied + gates + first**2


def assert_moments(mean: np.ndarray, variance: np.ndarray, draws: np.ndarray) -> None:
    """Both within `LIMIT` standard errors of those of the draws, and the error of the probits."""
    root_n, centre = np.sqrt(draws.shape[0]), draws.mean(axis=0)
    squares = (draws - centre) ** 2
    slack = 3.0 * PROBIT_ERROR
    error = np.abs(mean - centre) - slack * draws.std(axis=0)
    assert np.all(error < LIMIT * draws.std(axis=0) / root_n)
    error = np.abs(variance - squares.mean(axis=0)) - slack * squares.mean(axis=0)
    assert np.all(error < LIMIT * squares.std(axis=0) / root_n)


def test_the_mixture_of_probits_is_the_sigmoid():
    x = np.concatenate([np.linspace(-40.0, 40.0, 400_001), [-1e300, -1e4, 1e4, 1e300]])
    assert np.max(np.abs(probits(x) - expit(x))) < PROBIT_ERROR
    assert sum(weight for weight, _ in gated.PROBITS) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_gated_moments_against_quadrature(temperature):
    """The closed forms for the probits to rounding; for the sigmoid to the probits' error."""
    mean, variance = (grid.ravel() for grid in np.meshgrid(MEANS, VARIANCES))
    first, second = first_and_second(mean, variance, temperature)
    for gate, error in ((probits, BEYOND_DOUBT), (expit, PROBIT_ERROR + BEYOND_DOUBT)):
        exact = np.array(
            [integrals(gate, m, v, temperature) for m, v in zip(mean, variance, strict=True)]
        )
        square = mean**2 + variance
        assert np.all(np.abs(first - exact[:, 0]) <= error * np.sqrt(square))
        assert np.all(np.abs(second - exact[:, 1]) <= error * square)


def test_an_open_gate_passes_the_variance_on(rng):
    """As it is, not as a difference of squares, which would lose six digits with |m| = 1e3 sd."""
    model, posterior = builders.noisy_network(rng, (1,), 0.1, n_inputs=1)
    weights = GaussianRows(
        mean=np.tile([30.0, 0.0], (2, 1, 1)), covariance=np.tile(1e-3 * np.eye(2), (2, 1, 1, 1))
    )
    layer = replace(posterior.layers[0], weights=weights)
    before = preactivation_moments(weights, np.ones((1, 1)), None)
    after = activation_moments(layer, before, model.temperature)
    np.testing.assert_array_equal(after.mean, np.full((2, 1, 1), 30.0))
    np.testing.assert_allclose(after.epistemic, 2e-3, rtol=1e-12)
    noise = inverse_gamma.mean(layer.noise_variance)
    np.testing.assert_allclose(after.chance[:, 0], noise, rtol=1e-12)


@pytest.mark.parametrize(("hidden", "temperature"), [((3,), 0.7), ((6,), 0.02)])
def test_an_only_hidden_layer_against_draws(hidden, temperature, rng):
    """Exact up to the probits: 24 comparisons each of mean and variance.

    That of the function alone, Var[E[y | W]], is compared in `test_sampling`.
    """
    model, posterior = builders.noisy_network(rng, hidden, temperature)
    inputs = rng.normal(0.0, 1.5, size=(6, 3))
    moments = push_forward(model, posterior, inputs)
    draws = draw_preactivations(model, posterior, inputs, rng)[-1]
    assert_moments(moments.mean, variance_of(moments), draws)


@pytest.mark.parametrize("temperature", [0.7, 0.02])
def test_two_hidden_layers_against_draws(temperature, rng):
    """The second preactivation is exact: units of the first are independent given the inputs.

    Of the output the mean is within 0.05 deviations, the variance within a third: that
    preactivation is taken for a Gaussian, which it is not (products of Gaussians, and a bend), and
    units of the second layer for uncorrelated, which share the first layer. The error bars of the
    draws are 0.004 deviations and 1 %.
    """
    model, posterior = builders.noisy_network(rng, (4, 3), temperature)
    inputs = rng.normal(size=(4, 3))
    _, second, output = draw_preactivations(model, posterior, inputs, rng)
    layer = posterior.layers[0]
    below = activation_moments(
        layer, preactivation_moments(layer.weights, inputs, None), temperature
    )
    before = preactivation_moments(posterior.layers[1].weights, inputs, below)
    assert_moments(before.mean, variance_of(before), second)
    moments, deviation = push_forward(model, posterior, inputs), output.std(axis=0)
    assert np.max(np.abs(moments.mean - output.mean(axis=0)) / deviation) < 0.05
    ratio = variance_of(moments) / deviation**2
    assert 0.67 < ratio.min() < ratio.max() < 1.33


@pytest.mark.parametrize("n_outputs", [2, 7])
def test_no_hidden_layer_is_bayesian_linear_regression(n_outputs, rng):
    """m'x~ and x~'B x~, by either way of summing squares (few outputs or many)."""
    model, posterior = builders.noisy_network(rng, (), 0.1, n_outputs=n_outputs)
    inputs = rng.normal(size=(5, 3))
    moments, weights = push_forward(model, posterior, inputs), posterior.layers[0].weights
    for m, row, output in np.ndindex(2, 5, n_outputs):
        x = np.array([1.0, *inputs[row]])
        assert moments.mean[m, row, output] == pytest.approx(weights.mean[m, output] @ x, rel=1e-12)
        expected = x @ weights.covariance[m, output] @ x
        assert moments.epistemic[m, row, output] == pytest.approx(expected, rel=1e-12)
        assert moments.chance[m, row, output] == 0.0


@pytest.mark.parametrize("hidden", [(), (6,), (5, 4)], ids=str)
def test_blocks_of_rows_and_networks_side_by_side(hidden, rng, monkeypatch):
    model, posterior = builders.noisy_network(rng, hidden, 0.1)
    inputs = rng.normal(size=(50, 3))
    whole = push_forward(model, posterior, inputs)
    monkeypatch.setattr(ascending, "BLOCK_BYTES", 1)  # blocks of 16 rows
    parts = output_moments(model, posterior, inputs)
    singles = [push_forward(model, network(posterior, m), inputs) for m in range(2)]
    for name, expected in vars(whole).items():
        bar = {"rtol": 1e-12, "atol": 1e-13} if name == "mean" else {"rtol": 1e-11}
        np.testing.assert_allclose(getattr(parts, name), expected, **bar)
        together = np.concatenate([getattr(single, name) for single in singles])
        np.testing.assert_allclose(together, expected, **bar)


@pytest.mark.parametrize(("covariance", "n_outputs"), [(0.0, 6), (1e-30, 1), (1e-30, 6), (1.0, 1)])
def test_the_variance_is_never_negative(covariance, n_outputs, rng):
    """Weights known (nearly) exactly and noise next to nothing: differences round both ways."""
    model, posterior = builders.noisy_network(rng, (7, 6), 1e-3, n_outputs=n_outputs)
    layers = tuple(
        replace(
            layer,
            weights=replace(layer.weights, covariance=covariance * layer.weights.covariance),
            noise_variance=replace(layer.noise_variance, scale=1e-30 * layer.noise_variance.scale),
        )
        for layer in posterior.layers
    )
    inputs = rng.normal(size=(300, 3)) * 10.0 ** rng.uniform(-3.0, 6.0, size=(300, 1))
    before = preactivation_moments(layers[0].weights, inputs, None)
    first = activation_moments(layers[0], before, model.temperature)
    output = push_forward(model, replace(posterior, layers=layers), inputs)
    for part in (first.epistemic, first.chance, output.epistemic, output.chance):
        assert np.all((part >= 0.0) & np.isfinite(part))
