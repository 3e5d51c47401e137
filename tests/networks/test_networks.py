"""ReLU networks side by side: gradients against autodiff, outputs in plain loops, starts."""

from __future__ import annotations

from itertools import pairwise

import jax
import numpy as np
import pytest

from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import Rows, build_model
from bowtienet.networks.networks import (
    Networks,
    concatenate,
    count_of,
    outputs,
    preactivations,
    random_networks,
    take,
)
from bowtienet.networks.penalty import fit_networks
from bowtienet.networks.train import gradients
from bowtienet.outcomes import GAUSSIAN, Outcome
from bowtienet.posterior import initialize
from bowtienet.posterior.initialize import around
from bowtienet.prediction.push_forward import push_forward
from tests.networks.cases import (
    CASES,
    R,
    n_outputs_of,
    objective,
    planted,
    random_layers,
    random_targets,
)

# Gradients


@pytest.mark.parametrize(("hidden", "outcome"), CASES, ids=str)
def test_gradients_against_autodiff(
    hidden: tuple[int, ...], outcome: Outcome, rng: np.random.Generator
) -> None:
    layers = random_layers(rng, (3, *hidden, n_outputs_of(outcome)))
    x, y = rng.normal(size=(7, 3)), random_targets(rng, outcome, 7)
    weights = rng.uniform(0.2, 2.0, size=(R, 7)) * (rng.random((R, 7)) < 0.7)
    into = [np.full_like(layer, np.nan) for layer in layers]
    given = [layer.copy() for layer in layers]
    with_constant = np.column_stack([np.ones(7), x])
    losses = gradients(layers, with_constant, y, weights, outcome, into)
    for r in range(R):
        value, slopes = jax.value_and_grad(objective)(
            [layer[r] for layer in given], x, y, weights[r], outcome
        )
        assert losses[r] == pytest.approx(float(value), rel=1e-6)
        for slope, expected in zip(into, slopes, strict=True):
            np.testing.assert_allclose(slope[r], expected, rtol=1e-10, atol=1e-13)
    for layer, before in zip(layers, given, strict=True):
        np.testing.assert_array_equal(layer, before)


def test_a_network_without_rows_has_no_gradient(rng: np.random.Generator) -> None:
    layers, weights = random_layers(rng, (3, 4, 1), 2), np.array([[0.0] * 5, [1.0] * 5])
    into = [np.full_like(layer, np.nan) for layer in layers]
    losses = gradients(layers, rng.normal(size=(5, 4)), np.ones((5, 1)), weights, GAUSSIAN, into)
    assert losses[0] == 0.0
    assert all(np.all(slope[0] == 0.0) and np.any(slope[1] != 0.0) for slope in into)


# Networks


@pytest.mark.parametrize("hidden", [(), (4,), (5, 3), (2, 3, 4, 3)], ids=str)
def test_outputs_in_plain_loops(hidden: tuple[int, ...], rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 3))
    networks = random_networks(rng, x, hidden, 2, R)
    assert [layer.shape[:2] for layer in networks.layers] == [(R, w) for w in (*hidden, 2)]
    assert all(layer.dtype == np.float32 for layer in networks.layers)
    result = outputs(networks, x)
    assert result.shape == (R, 6, 2)
    for r, n in np.ndindex(R, 6):
        values = list(x[n])
        for index, layer in enumerate(networks.layers):
            rows = layer[r].astype(float)
            values = [
                row[0] + sum(w * v for w, v in zip(row[1:], values, strict=True)) for row in rows
            ]
            if index < len(hidden):
                values = [max(value, 0.0) for value in values]
        np.testing.assert_allclose(result[r, n], values, rtol=1e-4, atol=1e-5)


def test_every_unit_bends_at_a_row(rng: np.random.Generator) -> None:
    x = rng.normal(size=(40, 3)) * 7.0
    networks = random_networks(rng, x, (30, 20), 1, 2)
    values = x.T.astype(np.float32)[None]
    for layer in networks.layers[:-1]:
        z = preactivations(layer, values)
        assert np.all(np.abs(z).min(axis=2) < 1e-4)
        # Whatever the unit of the layer below, preactivations are near one.
        assert 0.3 < np.sqrt(np.mean(z**2)) < 3.0
        values = np.maximum(z, 0.0)
    assert np.abs(outputs(networks, x)).max() < 1.0


def test_networks_apart_and_next_to_each_other(rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 3))
    networks = random_networks(rng, x, (5, 4), 2, R)
    networks = Networks(layers=networks.layers, factors=rng.uniform(size=(R, 3)))
    apart = [take(networks, slice(0, 1)), take(networks, np.array([1, 2]))]
    assert [count_of(part) for part in apart] == [1, 2]
    joined = concatenate(apart)
    np.testing.assert_array_equal(joined.factors, networks.factors)
    np.testing.assert_array_equal(outputs(joined, x), outputs(networks, x))
    np.testing.assert_allclose(outputs(apart[1], x), outputs(networks, x)[1:], rtol=1e-6)


def test_a_linear_function_keeps_its_precision(rng: np.random.Generator) -> None:
    layer, x = rng.normal(size=(1, 1, 4)), rng.normal(size=(5, 3))
    result = outputs(Networks(layers=(layer,)), x)
    np.testing.assert_allclose(result[0, :, 0], layer[0, 0, 0] + x @ layer[0, 0, 1:], rtol=1e-14)


# The limit


@pytest.mark.parametrize("hidden", [(6,), (5, 4)], ids=str)
def test_a_bow_tie_network_at_temperature_zero(
    hidden: tuple[int, ...], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """q around a ReLU network's weights predicts what the network does, in the limit T -> 0."""
    x, y = planted(rng, 60, 0.1)
    networks = fit_networks(x, y, np.ones(60), hidden, np.full(2, 0.3), GAUSSIAN, rng)
    layers = [layer.astype(np.float64) for layer in networks.layers]
    rows, expected = Rows(inputs=x, targets=y, weights=np.ones(60)), outputs(networks, x)

    def error(temperature: float) -> float:
        model = build_model(
            build_architecture(2, hidden, 1),
            hidden_noise=(2.0, 1e-14),
            temperature=temperature,
            outcome=GAUSSIAN,
        )
        moments = push_forward(model, around(model, layers, rows, rng), x)
        return float(np.abs(moments.mean - expected).max())

    # Weights of variance 1e-6 blur the kinks by about their deviation.
    assert error(1e-6) < 5e-3
    monkeypatch.setattr(initialize, "NETWORK_VARIANCE", 1e-14)
    errors = [error(temperature) for temperature in (1.0, 0.1, 0.01, 1e-3, 1e-5)]
    assert errors[0] > 0.05
    assert all(after < 0.5 * before for before, after in pairwise(errors))
    assert errors[-1] < 2e-5  # the networks are in single precision
