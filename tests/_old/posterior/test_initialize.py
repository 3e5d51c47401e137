"""Factors around given weights, and networks that are joined to one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, build_model
from bowtienet._old.posterior import initialize as module
from bowtienet._old.posterior.initialize import build_factors, join_networks


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


def outputs(layers: Sequence[np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """A ReLU network, layer by layer."""
    values = inputs
    for mean in layers[:-1]:
        values = np.maximum(mean[:, 0] + values @ mean[:, 1:].T, 0.0)
    return layers[-1][:, 0] + values @ layers[-1][:, 1:].T


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("hidden", [(), (4,), (3, 5), (2, 4, 3)])
def test_joined_networks_are_their_mean(
    hidden: tuple[int, ...], count: int, rng: np.random.Generator
) -> None:
    """Also where they have different widths, or no hidden units."""
    inputs = 3.0 * rng.normal(size=(40, 3))
    networks = []
    for part in range(count):
        widths = (3, *(width + part for width in hidden), 2)
        networks.append([rng.normal(size=(w, k + 1)) for k, w in pairwise(widths)])
    joined = join_networks(networks)
    together = [count * width + count * (count - 1) // 2 for width in hidden]
    shapes = [(w, k + 1) for k, w in pairwise((3, *together, 2))]
    assert [layer.shape for layer in joined] == shapes
    expected = np.mean([outputs(network, inputs) for network in networks], axis=0)
    np.testing.assert_allclose(outputs(joined, inputs), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("hidden", [(4,), (3, 5), (2, 4, 3)])
def test_joined_networks_have_no_weights_between_them(
    hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    """The first network alone, then the second, side by side; outputs have half of each."""
    first, second = (
        [rng.normal(size=(w, k + 1)) for k, w in pairwise((3, *hidden, 2))] for _ in range(2)
    )
    joined = join_networks([first, second])
    for index, mean in enumerate(joined[:-1]):
        top, left = first[index].shape
        np.testing.assert_array_equal(mean[:top, :left], first[index])
        np.testing.assert_array_equal(mean[top:, 0], second[index][:, 0])
        if index == 0:
            np.testing.assert_array_equal(mean[top:], second[index])
            continue
        np.testing.assert_array_equal(mean[top:, left:], second[index][:, 1:])
        np.testing.assert_array_equal(mean[:top, left:], 0.0)
        np.testing.assert_array_equal(mean[top:, 1:left], 0.0)
    halves = [0.5 * first[-1][:, 1:], 0.5 * second[-1][:, 1:]]
    np.testing.assert_array_equal(joined[-1][:, 1:], np.column_stack(halves))


def test_one_network_joined_is_itself(rng: np.random.Generator) -> None:
    network = [rng.normal(size=(w, k + 1)) for k, w in pairwise((3, 9, 5, 2))]
    for one, other in zip(join_networks([network]), network, strict=True):
        np.testing.assert_array_equal(one, other)


def test_factors_have_the_variance_that_is_asked_for(rng: np.random.Generator) -> None:
    rows = wavy_rows(rng, n=20)
    model = model_for(rows, (4, 3))
    means = [rng.normal(size=(w, k + 1)) for k, w in pairwise(model.architecture.widths)]
    for variance in (module.START_VARIANCE, 1e-4):
        factors = build_factors(model, means, np.random.default_rng(0), variance=variance)
        for layer, mean in zip(factors.layers, means, strict=True):
            np.testing.assert_array_equal(layer.weights.mean, mean)
            for covariance in layer.weights.covariance:
                np.testing.assert_array_equal(covariance, variance * np.eye(mean.shape[1]))
        np.testing.assert_array_equal(factors.shared_covariance, variance * np.eye(3))
