"""Which inputs matter, against loops over paths and against counting all cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.relevance import path_probability, path_strength
from bowtienet.posterior.selection import sign_error
from tests import builders

DEPTHS = ((), *builders.HIDDEN)


def random_network(
    rng: np.random.Generator, hidden: tuple[int, ...], density: float = 0.7
) -> tuple[GlobalFactors, list[np.ndarray]]:
    """Factors of a network with three inputs and two outputs, and some of its weights."""
    factors = builders.random_factors(rng, builders.fixed_model(hidden))
    shapes = [layer.weights.mean[:, 1:].shape for layer in factors.layers]
    return factors, [rng.random(shape) < density for shape in shapes]


def paths(connections: Sequence[np.ndarray], layer: int, unit: int) -> Iterator[list[int]]:
    """Units of the layers above that lie on the paths from a unit, output last."""
    if layer == len(connections):
        yield []
        return
    for above in np.flatnonzero(connections[layer][:, unit]):
        for rest in paths(connections, layer + 1, int(above)):
            yield [int(above), *rest]


def slow_probability(
    factors: GlobalFactors, connections: Sequence[np.ndarray], layer: int, unit: int, output: int
) -> float:
    """R_u = 1 - Π_v (1 - Q_uv R_v)."""
    if layer == len(connections):
        return float(unit == output)
    missing = 1.0
    for above in np.flatnonzero(connections[layer][:, unit]):
        sure = 1.0 - sign_error(factors.layers[layer].weights)[above, unit]
        reach = slow_probability(factors, connections, layer + 1, int(above), output)
        missing *= 1.0 - sure * reach
    return 1.0 - missing


@pytest.mark.parametrize("hidden", DEPTHS, ids=str)
def test_probability_against_its_recursion(
    hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    for density in (0.4, 0.7, 1.0):
        factors, connections = random_network(rng, hidden, density)
        found = path_probability(factors, connections)
        assert found.shape == (3, 2)
        for unit, output in np.ndindex(3, 2):
            expected = slow_probability(factors, connections, 0, unit, output)
            assert found[unit, output] == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_probability_of_one_hidden_layer_by_counting_all_cases(rng: np.random.Generator) -> None:
    """Every weight has the sign of its mean or not: 2^6 cases for each input and output."""
    factors, connections = random_network(rng, (3,), 0.8)
    found = path_probability(factors, connections)
    first, second = (
        np.where(mask, 1.0 - sign_error(layer.weights), 0.0)
        for layer, mask in zip(factors.layers, connections, strict=True)
    )
    for unit, output in np.ndindex(3, 2):
        sure = np.concatenate([first[:, unit], second[output]])
        total = 0.0
        for case in product([False, True], repeat=6):
            right = np.array(case)
            if (right[:3] & right[3:]).any():
                total += np.prod(np.where(right, sure, 1.0 - sure))
        assert found[unit, output] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("hidden", DEPTHS, ids=str)
def test_strength_against_a_loop_over_paths(
    hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    factors, connections = random_network(rng, hidden)
    expected = np.zeros((3, 2))
    for unit in range(3):
        for path in paths(connections, 0, unit):
            term, below = 1.0, unit
            for layer, above in zip(factors.layers, path, strict=True):
                term *= abs(layer.weights.mean[above, 1 + below])
                below = above
            expected[unit, path[-1]] += term
    assert expected.max() > 0.01
    np.testing.assert_allclose(path_strength(factors, connections), expected, rtol=1e-12)


@pytest.mark.parametrize("hidden", DEPTHS, ids=str)
def test_strength_bounds_what_an_input_can_do(
    hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    """No step of 1 moves the rectified network of mean weights by more, and lines by no less."""
    factors, connections = random_network(rng, hidden)
    strength = path_strength(factors, connections)
    means = [
        np.column_stack([layer.weights.mean[:, 0], layer.weights.mean[:, 1:] * mask])
        for layer, mask in zip(factors.layers, connections, strict=True)
    ]

    def network(values: np.ndarray) -> np.ndarray:
        for mean in means[:-1]:
            values = np.maximum(mean[:, 0] + values @ mean[:, 1:].T, 0.0)
        return means[-1][:, 0] + values @ means[-1][:, 1:].T

    inputs = rng.normal(0.0, 3.0, size=(500, 3))
    for unit in range(3):
        moved = np.abs(network(inputs + np.eye(3)[unit]) - network(inputs)).max(axis=0)
        assert np.all(moved <= strength[unit] * (1.0 + 1e-12))
        if not hidden:
            np.testing.assert_allclose(moved, strength[unit], rtol=1e-10)


def test_without_a_path_both_are_zero(rng: np.random.Generator) -> None:
    factors, connections = random_network(rng, (4, 3), 1.0)
    connections[0][:, 1] = False
    connections[2][1] = False
    for found in (path_probability, path_strength):
        values = found(factors, connections)
        np.testing.assert_array_equal(values == 0.0, [[False, True], [True, True], [False, True]])


def test_sure_weights_give_certainty_without_a_warning(rng: np.random.Generator) -> None:
    factors, connections = random_network(rng, (4, 3), 1.0)
    layers = tuple(
        replace(layer, weights=replace(layer.weights, mean=layer.weights.mean * 1e6))
        for layer in factors.layers
    )
    found = path_probability(replace(factors, layers=layers), connections)
    np.testing.assert_array_equal(found, 1.0)
