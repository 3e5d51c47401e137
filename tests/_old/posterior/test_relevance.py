"""How strong inputs are, against loops over paths and against what networks do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.relevance import path_strength
from tests._old import builders

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


def test_without_a_path_there_is_no_strength(rng: np.random.Generator) -> None:
    factors, connections = random_network(rng, (4, 3), 1.0)
    connections[0][:, 1] = False
    connections[2][1] = False
    values = path_strength(factors, connections)
    np.testing.assert_array_equal(values == 0.0, [[False, True], [True, True], [False, True]])
