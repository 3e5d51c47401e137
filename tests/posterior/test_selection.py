"""Which weights are kept, against sorting and counting; which survive, against taking units out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bowtienet.model.model import BowTieModel
from bowtienet.posterior.factors import Posterior, network
from bowtienet.posterior.selection import largest_doubt, on_paths, select
from tests import builders

Masks = list[np.ndarray]
RATES = (0.003, 0.01, 0.05, 0.1, 0.2, 0.35)
DEPTHS = ((), *builders.HIDDEN)


def random_network(
    rng: np.random.Generator, hidden: tuple[int, ...], sureness: float = 1.0
) -> tuple[BowTieModel, Posterior]:
    """Weights of which some are sure and some are not; the larger `sureness`, the more are."""
    model = builders.fixed_model(hidden)
    posterior = network(builders.random_factors(rng, model), 1)
    layers = tuple(
        replace(layer, weights=replace(layer.weights, mean=sureness * layer.weights.mean))
        for layer in posterior.layers
    )
    return model, replace(posterior, layers=layers)


def slow_choice(
    posterior: Posterior, present: Sequence[np.ndarray], rate: float
) -> tuple[Masks, list[float]]:
    """Sort by Q, add weights one by one while the mean of 1 - Q stays below the rate."""
    weights = []
    for index, layer in enumerate(posterior.layers):
        for d, k in np.argwhere(present[index]):
            mean = layer.weights.mean[0, d, 1 + k]
            deviation = np.sqrt(layer.weights.covariance[0, d, 1 + k, 1 + k])
            weights.append((float(norm.sf(abs(mean) / deviation)), index, int(d), int(k)))
    weights.sort()
    chosen = [np.zeros_like(mask) for mask in present]
    doubts = []
    for count, (doubt, index, d, k) in enumerate(weights, start=1):
        if np.mean([doubt for doubt, *_ in weights[:count]]) < rate:
            chosen[index][d, k] = True
            doubts.append(doubt)
    return chosen, doubts


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


def all_of(posterior: Posterior) -> Masks:
    return [np.ones(layer.weights.mean[0, :, 1:].shape, dtype=bool) for layer in posterior.layers]


def assert_masks(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == bool
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("hidden", DEPTHS, ids=str)
def test_choice_against_sorting_and_counting(hidden, missing, rng):
    """Missing weights are neither counted nor kept."""
    counts = np.zeros((len(RATES), 3), dtype=int)
    for row, rate in enumerate(RATES):
        for column, sureness in enumerate((0.1, 1.0, 3.0)):
            model, posterior = random_network(rng, hidden, sureness)
            present = all_of(posterior)
            if missing:
                present = [rng.random(mask.shape) < 0.8 for mask in present]
                model = replace(model, connections=tuple(present))
            chosen, doubts = slow_choice(posterior, present, rate)
            selection = select(model, posterior, rate)
            connections, varying = slow_removal(chosen), slow_varying(chosen)
            assert_masks(selection.connections, connections)
            assert_masks(selection.varying, varying)
            assert_masks(selection.units, [mask.any(axis=1) for mask in connections[:-1]])
            assert_masks([selection.inputs], [connections[0].any(axis=0)])
            assert selection.keep_threshold == pytest.approx(1.0 - max(doubts, default=0.0))
            assert selection.estimated_rate == pytest.approx(np.mean(doubts) if doubts else 0.0)
            assert selection.estimated_rate < rate
            counts[row, column] = sum(mask.sum() for mask in connections)
    assert np.all(np.diff(counts.sum(axis=0)) > 0)  # or every case is the same
    assert counts[-1, -1] > counts[0, -1]


@pytest.mark.parametrize("rate", [0, 1.0, np.nan, "0.01", True, None])
def test_rates_that_are_none(rate, rng):
    with pytest.raises(ValueError, match="false_discovery_rate"):
        select(*random_network(rng, (4,)), rate)


@given(
    numerators=st.lists(st.integers(0, 32), max_size=20),
    rate=st.integers(1, 63),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_largest_set_of_whole_groups(numerators, rate):
    """Doubts and rates in 64ths, so that sums are exact; equal doubts go together."""
    doubts = np.array(numerators) / 64.0
    edge = largest_doubt(doubts, rate / 64.0)
    kept = doubts[doubts <= edge]
    assert kept.size or edge < 0.0
    if kept.size:
        assert edge in doubts
        assert 64 * kept.sum() < rate * kept.size
    if kept.size < doubts.size:
        group = doubts[doubts <= doubts[doubts > edge].min()]
        assert 64 * group.sum() >= rate * group.size


@pytest.mark.parametrize("n_hidden", [0, 1, 4])
def test_paths_against_taking_units_out_one_by_one(n_hidden, rng):
    removed = kept = 0
    for _ in range(100):
        widths = rng.integers(1, 5, size=n_hidden + 2)
        density = rng.uniform(0.1, 0.9)
        chosen = [rng.random((above, below)) < density for below, above in pairwise(widths)]
        before = [mask.copy() for mask in chosen]
        connections, varying = on_paths(chosen)
        assert_masks(connections, slow_removal(chosen))
        assert_masks(varying, slow_varying(chosen))
        assert_masks(chosen, before)
        removed += sum(int(mask.sum()) for mask in chosen)
        kept += sum(int(mask.sum()) for mask in connections)
    assert kept > 50
    assert removed > kept or n_hidden == 0
