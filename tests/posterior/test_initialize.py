"""Where networks start: the random schemes' shapes and laws, and networks around given weights."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.point_mass import PointMass
from bowtienet.inference.ascend import ascend
from bowtienet.inference.global_step import (
    update_global_shrinkage,
    update_local_shrinkage,
    update_slab,
)
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import BowTieModel, Rows, build_model
from bowtienet.model.shrinkage import FAMILIES
from bowtienet.outcomes import GAUSSIAN, Binary, Classes
from bowtienet.posterior import initialize as module
from bowtienet.posterior.factors import Posterior, n_networks, network
from bowtienet.posterior.initialize import (
    NETWORK_VARIANCE,
    START_VARIANCE,
    around,
    build_posterior,
    initialize,
    mean_activations,
    stacked,
)
from bowtienet.prediction.variational import output_moments
from tests.oracle_bridge import assert_equal, assert_same

INITS = ("laplace", "spike_slab")
SIGMAS = 6.0
"""Bounds of 6 standard errors: a right program fails one with odds of 2e-9."""
FALSE_ALARM = 1e-6


def wavy_rows(
    rng: np.random.Generator, n: int = 120, n_inputs: int = 2, n_outputs: int = 1
) -> Rows:
    inputs = rng.uniform(-2.0, 2.0, size=(n, n_inputs))
    phases = np.arange(n_outputs)
    targets = np.sin(2.0 * inputs[:, :1] + phases) + 0.1 * rng.normal(size=(n, n_outputs))
    return Rows(inputs=inputs, targets=targets, weights=rng.uniform(0.1, 3.0, size=n))


def model_for(rows: Rows, hidden: tuple[int, ...], **settings: Any) -> BowTieModel:
    outputs = rows.targets.shape[1]
    if isinstance(settings.get("outcome"), Classes):
        outputs = settings["outcome"].n_classes
    return build_model(build_architecture(rows.inputs.shape[1], hidden, outputs), **settings)


def random_layers(rng: np.random.Generator, model: BowTieModel, count: int) -> list[np.ndarray]:
    """Weights (M, D, K+1) of each layer."""
    widths = model.architecture.widths
    return [rng.normal(size=(count, above, below + 1)) for below, above in pairwise(widths)]


@pytest.mark.parametrize(
    ("init", "hidden"), [("laplace", (1, 4, 2)), ("spike_slab", (5,)), ("laplace", ())], ids=str
)
def test_shapes_and_where_noise_and_covariances_start(init, hidden, rng):
    rows = wavy_rows(rng, n=40, n_outputs=3)
    model = model_for(rows, hidden, hidden_noise=(2.5, 0.02), output_noise=(3.0, [0.1, 0.4, 0.2]))
    posterior = initialize(model, rows, rng, 2, init)
    widths = model.architecture.widths
    assert len(posterior.layers) == len(widths) - 1
    assert n_networks(posterior) == 2
    for index, layer in enumerate(posterior.layers):
        below, width = widths[index : index + 2]
        assert layer.weights.mean.shape == (2, width, below + 1)
        for covariance in layer.weights.covariance.reshape(-1, below + 1, below + 1):
            np.testing.assert_array_equal(covariance, START_VARIANCE * np.eye(below + 1))
        concentration, scale = (3.0, [0.1, 0.4, 0.2]) if index == len(hidden) else (2.5, 0.02)
        noise = layer.noise_variance
        np.testing.assert_array_equal(noise.concentration, np.full((2, width), concentration))
        np.testing.assert_array_equal(noise.scale, np.ones((2, width)) * scale)
        assert layer.global_shrinkage.scale.shape == (2,)
        assert layer.local_shrinkage.scale.shape == (2, width, below)


@pytest.mark.parametrize("init", INITS)
def test_a_seed_repeats_a_start_and_networks_are_drawn_one_by_one(init, rng):
    rows = wavy_rows(rng)
    model = model_for(rows, (5, 3), prior="regularized_horseshoe")
    first, again, other = (
        initialize(model, rows, np.random.default_rng(seed), 2, init) for seed in (1, 1, 2)
    )
    assert_equal(first, again)
    stream = np.random.default_rng(1)
    for index in range(2):
        assert_equal(network(first, index), initialize(model, rows, stream, 1, init))
    means = [p.layers[0].weights.mean[i] for p in (first, other) for i in range(2)]
    assert all(not np.array_equal(a, b) for a, b in pairwise(means))


@pytest.mark.parametrize("init", INITS)
def test_units_bend_inside_the_data(init, rng):
    """One input: the knot -b/W is uniform over the range widened by 5 % on each side."""
    inputs = rng.uniform(-1.0, 3.0, size=(50, 1))
    rows = Rows(inputs=inputs, targets=inputs, weights=np.ones(50))
    posterior = initialize(model_for(rows, (500,)), rows, rng, 2, init)
    bias, slope = posterior.layers[0].weights.mean.reshape(-1, 2).T
    knots = -bias[slope != 0.0] / slope[slope != 0.0]
    low, high = inputs.min(), inputs.max()
    margin = 0.05 * (high - low)
    assert np.all(knots >= low - margin - 1e-12)
    assert np.all(knots <= high + margin + 1e-12)
    assert np.any(knots < low)
    assert np.any(knots > high)
    law = stats.uniform(low - margin, high - low + 2.0 * margin)
    assert stats.kstest(knots, law.cdf).pvalue > FALSE_ALARM
    np.testing.assert_array_equal(bias[slope == 0.0], 0.0)


@pytest.mark.parametrize("n_inputs", [1, 4, 9])
def test_laws_of_the_weights(n_inputs, rng):
    """Laplace(0, sqrt(2/D)); a share sqrt(D)/(1 + sqrt(D)) of zeros, the others N(0, 2/sqrt(D))."""
    inputs = rng.normal(size=(20, n_inputs))
    rows = Rows(inputs=inputs, targets=inputs[:, :1], weights=np.ones(20))
    model = model_for(rows, (900 // n_inputs,))
    laplace, spiked = (
        initialize(model, rows, rng, 2, init).layers[0].weights.mean[..., 1:].ravel()
        for init in INITS
    )
    law = stats.laplace(scale=np.sqrt(2.0 / n_inputs))
    assert stats.kstest(laplace, law.cdf).pvalue > FALSE_ALARM
    share = np.sqrt(n_inputs) / (1.0 + np.sqrt(n_inputs))
    error = np.sqrt(share * (1.0 - share) / spiked.size)
    assert abs(np.mean(spiked == 0.0) - share) < SIGMAS * error
    slab = spiked[spiked != 0.0] / np.sqrt(2.0 / np.sqrt(n_inputs))
    assert stats.kstest(slab, "norm").pvalue > FALSE_ALARM


@pytest.mark.parametrize("outcome", [GAUSSIAN, Binary(), Classes(n_classes=3)], ids=str)
def test_output_layer_is_a_ridge_regression_with_a_free_bias(outcome, rng):
    """Stationarity of ½ Σ w (y - W a - b)² + ½ Σ W² in W and b; classes are ±2 there."""
    rows = wavy_rows(rng)
    if not outcome.has_noise:
        edges = [0.0] if isinstance(outcome, Binary) else [-0.5, 0.5]
        labels = np.digitize(rows.targets, edges)
        rows = Rows(inputs=rows.inputs, targets=1.0 * labels, weights=rows.weights)
    targets = rows.targets
    if isinstance(outcome, Binary):
        targets = 4.0 * labels - 2.0
    elif isinstance(outcome, Classes):
        targets = 4.0 * (labels == np.arange(3)) - 2.0
    model = model_for(rows, (6,), outcome=outcome)
    posterior = initialize(model, rows, rng, 2, "laplace")
    for index in range(2):
        hidden, output = (layer.weights.mean[index] for layer in posterior.layers)
        features = mean_activations([hidden], rows.inputs, model.temperature)
        residual = targets - output[:, 0] - features @ output[:, 1:].T
        residual *= rows.weights[:, None]
        np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=1e-8)
        np.testing.assert_allclose(residual.T @ features, output[:, 1:], atol=1e-8)


def test_a_row_of_weight_zero_is_absent(rng):
    rows = wavy_rows(rng, n=40)
    extended = Rows(
        inputs=np.vstack([rows.inputs, [[1e6, -1e6]]]),
        targets=np.vstack([rows.targets, [[1e6]]]),
        weights=np.append(rows.weights, 0.0),
    )
    model = model_for(rows, (5,))
    first, second = (
        initialize(model, r, np.random.default_rng(0), 2, "laplace") for r in (rows, extended)
    )
    assert_equal(first, second)


@pytest.mark.parametrize("family", FAMILIES)
def test_shrinkage_starts_with_the_mean_at_a_prior_draw(family, monkeypatch, rng):
    """Or at the least mean that a GIG of the final order has down to the smallest scale.

    Where the mean is infinite, 1 / E[1/x] is at the draw. A slab starts at its update.
    """
    draws: list[np.ndarray] = []
    original = module.sample_shrinkage

    def spy(*arguments: Any) -> np.ndarray:
        draws.append(original(*arguments))
        return draws[-1]

    monkeypatch.setattr(module, "sample_shrinkage", spy)
    rows = wavy_rows(rng)
    model = model_for(rows, (5, 3), prior=family)
    posterior = initialize(model, rows, rng, 1, "laplace")
    assert_equal(update_slab(model, posterior), posterior)
    scales = [
        q for layer in posterior.layers for q in (layer.global_shrinkage, layer.local_shrinkage)
    ]
    if family == "gaussian":
        assert all(isinstance(q, PointMass) for q in scales)
        return
    assert len(draws) == len(scales)
    for q, draw in zip(scales, draws, strict=True):
        assert isinstance(q, GeneralizedInverseGaussian)
        assert np.all(q.scale > 0.0)
        smallest = GeneralizedInverseGaussian(order=q.order, scale=1e-12 * draw, rate=q.rate)
        least = gig.mean(smallest) if q.rate > 0.0 else np.zeros_like(draw)
        center = 1.0 / gig.mean_inverse(q) if q.rate == 0.0 and q.order >= -1.0 else gig.mean(q)
        np.testing.assert_allclose(center, np.maximum(draw, least), rtol=1e-6)


@pytest.mark.parametrize(
    ("family", "hidden", "outcome"),
    [
        ("student_t", (4, 3), GAUSSIAN),
        ("regularized_horseshoe", (4,), Classes(n_classes=3)),
        ("gig", (5,), GAUSSIAN),
        ("gaussian", (), GAUSSIAN),
    ],
    ids=str,
)
def test_around_given_weights(family, hidden, outcome, rng):
    """psi then tau are at their updates, the output's noise is that of the residuals."""
    rows = wavy_rows(rng, n=30, n_outputs=1 if outcome.by_row else 2)
    model = model_for(rows, hidden, prior=family, outcome=outcome)
    layers = random_layers(rng, model, 2)
    stream = np.random.default_rng(3)
    posterior = around(model, layers, rows, np.random.default_rng(3))
    networks = [
        build_posterior(model, means, stream, variance=NETWORK_VARIANCE)
        for means in zip(*layers, strict=True)
    ]
    expected = update_local_shrinkage(model, stacked(networks))
    expected = update_global_shrinkage(model, expected).layers
    names = ("weights", "global_shrinkage", "local_shrinkage", "slab_variance", "noise_variance")
    for layer, known in zip(posterior.layers, expected, strict=True):
        is_last = layer is posterior.layers[-1]
        for name in names[: len(names) - (is_last and outcome.has_noise)]:
            assert_same(getattr(layer, name), getattr(known, name), 1e-12, name)
    if not outcome.has_noise:
        return
    noise, prior = posterior.layers[-1].noise_variance, model.output_noise
    np.testing.assert_allclose(noise.concentration, prior.concentration + 0.5 * rows.weights.sum())
    for index, means in enumerate(zip(*layers, strict=True)):
        features = mean_activations(means[:-1], rows.inputs, model.temperature)
        errors = rows.targets - means[-1][:, 0] - features @ means[-1][:, 1:].T
        squares = rows.weights @ errors**2
        np.testing.assert_allclose(noise.scale[index], prior.scale + 0.5 * squares, rtol=1e-12)


def test_sweeps_do_not_forget_the_network_that_is_given(rng):
    """A network without noise: it is still known after sweeps from its tight start, not else."""
    rows = wavy_rows(rng, n=200)
    model = model_for(rows, (5,), temperature=0.01, output_noise=(2.0, 1e-4))
    layers = random_layers(rng, model, 2)
    for index in range(2):
        means = [layer[index] for layer in layers]
        targets = mean_activations(means[:-1], rows.inputs, 0.01) @ means[-1][:, 1:].T
        given = Rows(inputs=rows.inputs, targets=targets + means[-1][:, 0], weights=rows.weights)

        def error(posterior: Posterior, given: Rows = given) -> float:
            result = ascend(model, posterior, given, max_iter=5, accelerate=False)
            fitted = output_moments(result.model, result.posterior, given.inputs).mean[0]
            return float(np.mean((fitted - given.targets) ** 2) / np.var(given.targets))

        tight = error(around(model, [mean[None] for mean in means], given, rng))
        assert tight < 1e-3
        assert tight < 0.1 * error(build_posterior(model, means, rng))
