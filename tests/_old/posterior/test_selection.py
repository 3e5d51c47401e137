"""Which weights are kept, against sorting and counting; which survive, against taking units out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.selection import (
    check_rate,
    largest_doubt,
    on_paths,
    select,
    sign_error,
)
from tests._old import builders

Masks = list[np.ndarray]
RATES = (0.003, 0.01, 0.05, 0.1, 0.2, 0.35)
DEPTHS = ((), *builders.HIDDEN)
few_examples = settings(max_examples=200, deadline=None, derandomize=True)


def random_posterior(
    rng: np.random.Generator, hidden: tuple[int, ...], sureness: float = 1.0
) -> tuple[BowTieModel, GlobalFactors]:
    """Weights of which some are sure and some are not; the larger `sureness`, the more are."""
    model = builders.fixed_model(hidden)
    factors = builders.random_factors(rng, model)
    layers = tuple(
        replace(layer, weights=replace(layer.weights, mean=sureness * layer.weights.mean))
        for layer in factors.layers
    )
    return model, replace(factors, layers=layers)


# ------------------------------------------------------------------------------------------------
# The obvious versions
# ------------------------------------------------------------------------------------------------


def slow_choice(
    factors: GlobalFactors, present: Sequence[np.ndarray], rate: float
) -> tuple[Masks, float]:
    """Sort by Q, add weights one by one while the mean of 1 - Q stays below the rate."""
    found = []
    for index, layer in enumerate(factors.layers):
        for d, k in np.argwhere(present[index]):
            mean = layer.weights.mean[d, 1 + k]
            deviation = np.sqrt(layer.weights.covariance[d, 1 + k, 1 + k])
            doubt = norm.sf(abs(mean) / deviation)
            found.append((float(doubt), index, int(d), int(k)))
    found.sort()
    chosen = [np.zeros_like(mask) for mask in present]
    threshold = 1.0
    for count in range(1, len(found) + 1):
        if np.mean([doubt for doubt, *_ in found[:count]]) < rate:
            doubt, index, d, k = found[count - 1]
            chosen[index][d, k] = True
            threshold = 1.0 - doubt
    return chosen, threshold


def slow_removal(chosen: Sequence[np.ndarray]) -> Masks:
    """Take out units without weights on one side until nothing changes."""
    masks = [mask.copy() for mask in chosen]
    changed = True
    while changed:
        changed = False
        for lower, upper in pairwise(masks):
            for unit in range(len(lower)):
                if lower[unit].any() and not upper[:, unit].any():
                    lower[unit] = False
                    changed = True
                if upper[:, unit].any() and not lower[unit].any():
                    upper[:, unit] = False
                    changed = True
    return masks


def slow_varying(chosen: Sequence[np.ndarray]) -> Masks:
    """Units that some input reaches, by walking from every input."""
    reached = [np.zeros(len(mask), dtype=bool) for mask in chosen]
    open_ = [(0, unit) for unit in range(chosen[0].shape[1])]
    while open_:
        layer, unit = open_.pop()
        if layer == len(chosen):
            continue
        for above in range(len(chosen[layer])):
            if chosen[layer][above, unit] and not reached[layer][above]:
                reached[layer][above] = True
                open_.append((layer + 1, above))
    return reached[:-1]


def all_of(factors: GlobalFactors) -> Masks:
    return [np.ones(layer.weights.mean[:, 1:].shape, dtype=bool) for layer in factors.layers]


def assert_masks(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == bool
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------------------------------------
# The choice
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("hidden", DEPTHS, ids=str)
def test_choice_against_sorting_and_counting(
    hidden: tuple[int, ...], rate: float, rng: np.random.Generator
) -> None:
    counts = []
    for sureness in (0.1, 1.0, 3.0):
        model, factors = random_posterior(rng, hidden, sureness)
        chosen, _ = slow_choice(factors, all_of(factors), rate)
        found = select(model, factors, rate)
        assert_masks(found.connections, slow_removal(chosen))
        assert_masks(found.varying, slow_varying(chosen))
        counts.append(sum(mask.sum() for mask in found.connections))
    assert counts[-1] > counts[0]  # or every case is the same


def test_missing_weights_are_neither_counted_nor_kept(rng: np.random.Generator) -> None:
    for _ in range(20):
        model, factors = random_posterior(rng, (4, 3))
        present = [rng.random(mask.shape) < 0.6 for mask in all_of(factors)]
        model = replace(model, connections=tuple(present))
        chosen, _ = slow_choice(factors, present, 0.1)
        assert_masks(select(model, factors, 0.1).connections, slow_removal(chosen))


def test_sign_error(rng: np.random.Generator) -> None:
    weights = random_posterior(rng, (4,))[1].layers[0].weights
    weights.mean[0, 1], weights.mean[1, 2], weights.mean[2, 3] = 0.0, 3.0, -30.0
    weights.covariance[1, 2, :] = weights.covariance[1, :, 2] = 0.0  # a weight that is not there
    found = sign_error(weights)
    assert found.shape == (4, 3)
    assert found[0, 0] == 0.5
    assert found[1, 1] == 0.5
    assert 0.0 <= found[2, 2] < 1e-100
    for d, k in [(0, 1), (3, 2)]:
        z = abs(weights.mean[d, k + 1]) / np.sqrt(weights.covariance[d, k + 1, k + 1])
        assert found[d, k] == pytest.approx(norm.sf(z), rel=1e-12)


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.999])
def test_from_a_half_on_all_are_kept(rate: float, rng: np.random.Generator) -> None:
    for sureness in (1e-3, 1.0):
        model, factors = random_posterior(rng, (4, 3), sureness)
        found = select(model, factors, rate)
        assert_masks(found.connections, all_of(factors))
        assert found.inputs.all()
        assert all(unit.all() for unit in (*found.units, *found.varying))


@pytest.mark.parametrize("hidden", DEPTHS, ids=str)
def test_nothing_survives(hidden: tuple[int, ...], rng: np.random.Generator) -> None:
    model, factors = random_posterior(rng, hidden, 1e-3)
    found = select(model, factors, 0.3)
    assert not any(mask.any() for mask in found.connections)
    assert not any(unit.any() for unit in (*found.units, *found.varying, found.inputs))
    assert [len(unit) for unit in found.units] == list(hidden)


def test_sure_weights_without_a_path_do_not_survive(rng: np.random.Generator) -> None:
    """The first layer is sure and the second is not: chosen weights, none of them of use."""
    model, factors = random_posterior(rng, (4,), 100.0)
    output = factors.layers[1]
    doubtful = replace(output.weights, mean=1e-5 * output.weights.mean)
    factors = replace(factors, layers=(factors.layers[0], replace(output, weights=doubtful)))
    found = select(model, factors, 0.01)
    assert not any(mask.any() for mask in found.connections)
    assert found.varying[0].all()


@pytest.mark.parametrize("rate", [0, 1.0, np.nan, "0.01", True, None])
def test_rates_that_are_none(rate: Any) -> None:
    with pytest.raises(ValueError, match="false_sign_rate"):
        check_rate(rate)


# ------------------------------------------------------------------------------------------------
# Order and ties
# ------------------------------------------------------------------------------------------------


def permuted(factors: GlobalFactors, orders: Sequence[np.ndarray]) -> GlobalFactors:
    """The same network with its inputs, units and outputs in other orders."""
    layers = []
    for layer, (below, above) in zip(factors.layers, pairwise(orders), strict=True):
        columns = np.concatenate([[0], 1 + below])
        weights = GaussianRows(
            mean=layer.weights.mean[np.ix_(above, columns)],
            covariance=layer.weights.covariance[np.ix_(above, columns, columns)],
        )
        layers.append(replace(layer, weights=weights))
    return replace(factors, layers=tuple(layers))


def with_few_values(rng: np.random.Generator, factors: GlobalFactors) -> GlobalFactors:
    """Weights whose |m| / sd takes four values only."""
    layers = []
    for layer in factors.layers:
        shape = layer.weights.mean.shape
        mean = rng.choice([0.25, 1.0, 1.75, 2.5], size=shape) * rng.choice([-1.0, 1.0], size=shape)
        identity = np.broadcast_to(np.eye(shape[1]), (*shape, shape[1])).copy()
        weights = GaussianRows(mean=mean, covariance=identity)
        layers.append(replace(layer, weights=weights))
    return replace(factors, layers=tuple(layers))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("hidden", DEPTHS, ids=str)
def test_the_order_of_units_and_inputs_has_no_part(
    hidden: tuple[int, ...], ties: bool, rng: np.random.Generator
) -> None:
    sizes = set()
    for rate in np.linspace(0.005, 0.25, 30):
        model, factors = random_posterior(rng, hidden)
        factors = with_few_values(rng, factors) if ties else factors
        orders = [rng.permutation(width) for width in model.architecture.widths]
        there = select(model, permuted(factors, orders), float(rate))
        here = select(model, factors, float(rate))
        moved = [
            mask[np.ix_(above, below)]
            for mask, (below, above) in zip(here.connections, pairwise(orders), strict=True)
        ]
        assert_masks(there.connections, moved)
        varying = [unit[order] for unit, order in zip(here.varying, orders[1:-1], strict=True)]
        assert_masks(there.varying, varying)
        sizes.add(sum(int(mask.sum()) for mask in here.connections))
    assert len(sizes) > 2


def test_ties_at_the_edge_go_together() -> None:
    doubts = np.array([0.02, 0.001, 0.02, 0.02])
    # One of the three would still be below 0.012, all three are not.
    assert largest_doubt(doubts, 0.012) == 0.001
    assert largest_doubt(doubts, 0.016) == 0.02
    assert largest_doubt(doubts[[0, 2, 3]], 0.02) < 0.0
    assert largest_doubt(np.zeros(0), 0.5) < 0.0
    assert largest_doubt(np.zeros(3), 0.01) == 0.0


@given(
    numerators=st.lists(st.integers(0, 32), min_size=1, max_size=20),
    rate=st.integers(1, 63),
)
@few_examples
def test_the_largest_set_of_whole_groups(numerators: list[int], rate: int) -> None:
    """Doubts and rates in 64ths, so that sums are exact."""
    doubts = np.array(numerators) / 64.0
    edge = largest_doubt(doubts, rate / 64.0)
    kept = doubts[doubts <= edge]
    if kept.size:
        assert edge in doubts
        assert 64 * kept.sum() < rate * kept.size
    if kept.size < doubts.size:
        group = doubts[doubts <= doubts[doubts > edge].min()]
        assert 64 * group.sum() >= rate * group.size


# ------------------------------------------------------------------------------------------------
# Paths
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_hidden", range(5))
def test_paths_against_taking_units_out_one_by_one(n_hidden: int, rng: np.random.Generator) -> None:
    removed = kept = 0
    for _ in range(100):
        widths = rng.integers(1, 5, size=n_hidden + 2)
        density = rng.uniform(0.1, 0.9)
        chosen = [rng.random((above, below)) < density for below, above in pairwise(widths)]
        before = [mask.copy() for mask in chosen]
        connections, varying = on_paths(chosen)
        expected = slow_removal(chosen)
        assert_masks(connections, expected)
        assert_masks(varying, slow_varying(chosen))
        assert_masks(chosen, before)
        removed += sum(int(mask.sum()) for mask in chosen)
        kept += sum(int(mask.sum()) for mask in connections)
    assert kept > 50
    assert removed > kept or n_hidden == 0
