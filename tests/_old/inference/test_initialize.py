"""Where the factors start: three schemes, their shapes, laws and errors."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.inference import start as module
from bowtienet._old.inference.start import INITS, initialize
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, build_model
from bowtienet._old.model.shrinkage import FAMILIES
from bowtienet._old.posterior import initialize as schemes
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.initialize import mean_activations

SIGMAS = 6.0
"""Bounds of 6 standard errors: a right program fails one with odds of 2e-9."""
FALSE_ALARM = 1e-6


def wavy_rows(
    rng: np.random.Generator, n: int = 120, n_inputs: int = 2, n_outputs: int = 1
) -> Rows:
    inputs = rng.uniform(-2.0, 2.0, size=(n, n_inputs))
    phases = np.arange(n_outputs)
    targets = np.sin(2.0 * inputs[:, :1] + phases) + 0.1 * rng.normal(size=(n, n_outputs))
    return build_rows(inputs, targets)


def model_for(rows: Rows, hidden: tuple[int, ...], **settings: Any) -> BowTieModel:
    architecture = build_architecture(rows.inputs.shape[1], hidden, rows.targets.shape[1])
    return build_model(architecture, **settings)


def training_error(model: BowTieModel, factors: GlobalFactors, rows: Rows) -> float:
    means = [layer.weights.mean for layer in factors.layers]
    features = mean_activations(means[:-1], rows.inputs, model.gate_temperature)
    fitted = means[-1][:, 0] + features @ means[-1][:, 1:].T
    return float(np.mean((fitted - rows.targets) ** 2))


@pytest.mark.parametrize("scheme", INITS)
@pytest.mark.parametrize("hidden", [(), (5,), (1, 4, 2)])
def test_shapes(scheme: str, hidden: tuple[int, ...], rng: np.random.Generator) -> None:
    rows = wavy_rows(rng, n=40, n_outputs=3)
    model = model_for(rows, hidden)
    factors = initialize(model, rows, rng, init=scheme, start_iterations=20)
    widths = model.architecture.widths
    assert len(factors.layers) == len(widths) - 1
    for layer, (fan_in, width) in zip(factors.layers, pairwise(widths), strict=True):
        assert layer.weights.mean.shape == (width, fan_in + 1)
        assert layer.weights.covariance.shape == (width, fan_in + 1, fan_in + 1)
        assert layer.noise_variance.concentration.shape == (width,)
        assert layer.noise_variance.scale.shape == (width,)
        assert layer.global_shrinkage.scale.shape == ()
        assert layer.local_shrinkage.scale.shape == (width, fan_in)
        assert layer.global_shrinkage.order == pytest.approx(-1.5 - width * fan_in / 2)
        assert layer.local_shrinkage.order == -2.0
        np.testing.assert_array_equal(
            layer.weights.covariance,
            np.broadcast_to(0.01 * np.eye(fan_in + 1), (width, fan_in + 1, fan_in + 1)),
        )
        assert np.all(np.isfinite(layer.weights.mean))
    if hidden:
        assert factors.shared_covariance is not None
        assert factors.shared_covariance.shape == (hidden[-1], hidden[-1])
    else:
        assert factors.shared_covariance is None


@pytest.mark.parametrize("scheme", INITS)
def test_same_seed_same_start(scheme: str, rng: np.random.Generator) -> None:
    rows = wavy_rows(rng)
    model = model_for(rows, (5, 3))
    first, again, other = (
        initialize(model, rows, np.random.default_rng(seed), init=scheme) for seed in (1, 1, 2)
    )
    for a, b in zip(first.layers, again.layers, strict=True):
        np.testing.assert_array_equal(a.weights.mean, b.weights.mean)
        np.testing.assert_array_equal(a.local_shrinkage.scale, b.local_shrinkage.scale)
        np.testing.assert_array_equal(a.global_shrinkage.scale, b.global_shrinkage.scale)
    assert not np.array_equal(first.layers[0].weights.mean, other.layers[0].weights.mean)


def test_noise_starts_at_its_prior(rng: np.random.Generator) -> None:
    rows = wavy_rows(rng, n_outputs=2)
    model = model_for(rows, (4,), hidden_noise=(2.5, 0.02), output_noise=(3.0, [0.1, 0.4]))
    hidden, output = initialize(model, rows, rng, init="laplace").layers
    np.testing.assert_array_equal(hidden.noise_variance.concentration, np.full(4, 2.5))
    np.testing.assert_array_equal(hidden.noise_variance.scale, np.full(4, 0.02))
    np.testing.assert_array_equal(output.noise_variance.concentration, [3.0, 3.0])
    np.testing.assert_array_equal(output.noise_variance.scale, [0.1, 0.4])


@pytest.mark.parametrize("scheme", ["laplace", "spike_slab"])
def test_units_bend_inside_the_data(scheme: str, rng: np.random.Generator) -> None:
    """One input: the knot -b/W is uniform over the range widened by 5 % on each side."""
    inputs = rng.uniform(-1.0, 3.0, size=(50, 1))
    rows = build_rows(inputs, inputs[:, 0])
    factors = initialize(model_for(rows, (1000,)), rows, rng, init=scheme)
    bias, slope = factors.layers[0].weights.mean.T
    knots = -bias[slope != 0.0] / slope[slope != 0.0]
    low, high = inputs.min(), inputs.max()
    margin = 0.05 * (high - low)
    assert np.all(knots >= low - margin - 1e-12)
    assert np.all(knots <= high + margin + 1e-12)
    law = stats.uniform(low - margin, high - low + 2.0 * margin)
    assert stats.kstest(knots, law.cdf).pvalue > FALSE_ALARM
    np.testing.assert_array_equal(bias[slope == 0.0], 0.0)


@pytest.mark.parametrize("scheme", ["laplace", "spike_slab"])
def test_hidden_units_of_every_layer_pass_through_their_box(
    scheme: str, rng: np.random.Generator
) -> None:
    """Each unit is zero somewhere in the widened box of the layer below: min <= 0 <= max there."""
    rows = wavy_rows(rng, n_inputs=3)
    model = model_for(rows, (30, 20))
    factors = initialize(model, rows, rng, init=scheme)
    values = rows.inputs
    for layer in factors.layers[:-1]:
        mean = layer.weights.mean
        low, high = values.min(axis=0), values.max(axis=0)
        margin = 0.05 * (high - low)
        ends = mean[:, None, 1:] * np.stack([low - margin, high + margin])
        assert np.all(mean[:, 0] + ends.min(axis=1).sum(axis=-1) <= 1e-9)
        assert np.all(mean[:, 0] + ends.max(axis=1).sum(axis=-1) >= -1e-9)
        values = mean_activations([mean], values, model.gate_temperature)


@pytest.mark.parametrize("fan_in", [1, 4, 9])
def test_spike_slab_law(fan_in: int, rng: np.random.Generator) -> None:
    """A share sqrt(D)/(1 + sqrt(D)) of zeros; the others N(0, 2/sqrt(D))."""
    inputs = rng.normal(size=(20, fan_in))
    rows = build_rows(inputs, inputs[:, 0])
    factors = initialize(model_for(rows, (1800 // fan_in,)), rows, rng, init="spike_slab")
    weights = factors.layers[0].weights.mean[:, 1:].ravel()
    share = np.sqrt(fan_in) / (1.0 + np.sqrt(fan_in))
    error = np.sqrt(share * (1.0 - share) / weights.size)
    assert abs(np.mean(weights == 0.0) - share) < SIGMAS * error
    slab = weights[weights != 0.0] / np.sqrt(2.0 / np.sqrt(fan_in))
    assert stats.kstest(slab, "norm").pvalue > FALSE_ALARM


@pytest.mark.parametrize("fan_in", [1, 8])
def test_laplace_law(fan_in: int, rng: np.random.Generator) -> None:
    inputs = rng.normal(size=(20, fan_in))
    rows = build_rows(inputs, inputs[:, 0])
    factors = initialize(model_for(rows, (2000 // fan_in,)), rows, rng, init="laplace")
    weights = factors.layers[0].weights.mean[:, 1:].ravel()
    law = stats.laplace(scale=np.sqrt(2.0 / fan_in))
    assert stats.kstest(weights, law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("hidden", [(10,), (10, 5)])
def test_warm_start_fits_clearly_better_than_random(
    hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    rows = wavy_rows(rng, n=200)
    model = model_for(rows, hidden, gate_temperature=0.01)
    error = {
        scheme: np.median(
            [
                training_error(
                    model, initialize(model, rows, np.random.default_rng(seed), init=scheme), rows
                )
                for seed in range(5)
            ]
        )
        for scheme in INITS
    }
    assert error["relu_network"] < 0.5 * min(error["laplace"], error["spike_slab"])
    assert error["relu_network"] < 0.05 * float(np.var(rows.targets))


def test_output_layer_is_a_ridge_regression_with_a_free_bias(rng: np.random.Generator) -> None:
    """Stationarity of ½ Σ w (y - W a - b)² + ½ Σ W² in W and b."""
    plain = wavy_rows(rng, n_outputs=2)
    rows = build_rows(plain.inputs, plain.targets, rng.uniform(0.1, 3.0, size=120))
    model = model_for(rows, (6,))
    hidden, output = (layer.weights.mean for layer in initialize(model, rows, rng).layers)
    features = mean_activations([hidden], rows.inputs, model.gate_temperature)
    residual = (rows.targets - output[:, 0] - features @ output[:, 1:].T) * rows.weights[:, None]
    np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(residual.T @ features, output[:, 1:], atol=1e-8)


def test_no_hidden_layer_starts_at_the_linear_fit(rng: np.random.Generator) -> None:
    inputs = rng.normal(size=(500, 2))
    rows = build_rows(inputs, 3.0 + inputs @ [2.0, -1.0])
    for scheme in INITS:
        (output,) = initialize(model_for(rows, ()), rows, rng, init=scheme).layers
        np.testing.assert_allclose(output.weights.mean, [[3.0, 2.0, -1.0]], atol=0.02)


@pytest.mark.parametrize("scheme", INITS)
def test_a_row_of_weight_zero_is_absent(scheme: str, rng: np.random.Generator) -> None:
    rows = wavy_rows(rng, n=40)
    inputs = np.vstack([rows.inputs, [[1e6, -1e6]]])
    extended = build_rows(inputs, np.vstack([rows.targets, [[1e6]]]), np.append(np.ones(40), 0.0))
    model = model_for(rows, (5,))
    first, second = (
        initialize(model, r, np.random.default_rng(0), init=scheme) for r in (rows, extended)
    )
    np.testing.assert_allclose(
        first.layers[0].weights.mean, second.layers[0].weights.mean, rtol=1e-12
    )
    np.testing.assert_allclose(
        first.layers[1].weights.mean, second.layers[1].weights.mean, rtol=1e-9
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_shrinkage_starts_with_the_mean_at_a_prior_draw(
    family: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Or at the least mean that a GIG of the final order has down to the smallest scale.

    Where the mean is infinite, 1 / E[1/x] is at the draw.
    """
    draws: list[np.ndarray] = []
    original = schemes.sample_shrinkage

    def spy(*arguments: Any) -> np.ndarray:
        draws.append(original(*arguments))
        return draws[-1]

    monkeypatch.setattr(schemes, "sample_shrinkage", spy)
    rows = wavy_rows(rng)
    model = model_for(rows, (5, 3), prior=family)
    factors = initialize(model, rows, rng, init="laplace")
    scales = [
        q for layer in factors.layers for q in (layer.global_shrinkage, layer.local_shrinkage)
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


def test_many_rows_are_thinned(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_ROWS", 50)
    rows = wavy_rows(rng, n=500)
    model = model_for(rows, (8,), gate_temperature=0.01)
    factors = initialize(model, rows, rng)
    assert training_error(model, factors, rows) < 0.5 * float(np.var(rows.targets))


@pytest.mark.parametrize(
    ("name", "bad"),
    [("init", "random"), ("init_penalty", -0.1), ("start_iterations", 0)],
)
def test_bad_settings_are_named(name: str, bad: Any, rng: np.random.Generator) -> None:
    rows = wavy_rows(rng)
    with pytest.raises(ValueError, match=name if name != "init" else "random"):
        initialize(model_for(rows, (4,)), rows, rng, **{name: bad})


def test_rows_must_belong_to_the_model(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="rows"):
        initialize(build_model(build_architecture(2, (4,), 1)), wavy_rows(rng, n_inputs=3), rng)
