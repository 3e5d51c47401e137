"""Pruned ensembles, their sizes, and which of the user's columns matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet.ensemble.ensemble import Ensemble, check_ensemble, mean_and_deviation
from bowtienet.ensemble.settings import Settings
from bowtienet.ensemble.structure import (
    FeatureRelevance,
    is_constant,
    prune_ensemble,
    relevance,
    sparsity,
    with_whole_noise,
)
from bowtienet.posterior.relevance import path_probability, path_strength
from bowtienet.posterior.selection import select
from bowtienet.representation.columns import owners
from tests.ensemble.fits import fit

RNG = np.random.default_rng(5)
X = RNG.normal(3.0, 2.0, size=(100, 5))
Y = np.abs(X[:, 3] - 3.0) + 0.7 * X[:, 1] + 0.2 * RNG.normal(size=100)
BOTH = np.column_stack([Y, 5.0 - X[:, 0] + 0.2 * RNG.normal(size=100)])
RELEVANT = [1, 3]
COLORS = np.array(["red", "green", "blue", "grey"])[RNG.integers(0, 4, size=100)]
FRAME = pd.DataFrame({"size": X[:, 0], "color": COLORS, "luck": X[:, 1], "same": 1.0})
COLORED = np.where(COLORS == "red", 3.0, np.where(COLORS == "blue", -2.0, 0.0)) + X[:, 0]
FAST = {"hidden_layer_sizes": (8,), "n_estimators": 2, "weighting": "equal"}
FAST |= {"max_iter": 60, "tol": 1e-4, "init_penalty": 1.0}


def fitted(rows: Any = (X, Y), **changes: Any) -> Ensemble:
    return fit(rows, Settings(**(FAST | changes))).ensemble


@pytest.fixture(scope="module")
def whole() -> Ensemble:
    return fitted()


@pytest.fixture(scope="module")
def pruned(whole: Ensemble) -> Ensemble:
    return prune_ensemble(whole, 1e-4)


def with_ratio(ensemble: Ensemble, ratio: Any) -> Ensemble:
    """The members with the variances that held-out rows might have asked for."""
    ratios = None if ratio is None else np.atleast_1d(ratio)
    members = tuple(replace(member, variance_ratio=ratios) for member in ensemble.members)
    return replace(ensemble, members=members)


# Size


def test_sizes_before_and_after(whole: Ensemble, pruned: Ensemble) -> None:
    check_ensemble(pruned, 5, 1)
    before, after = sparsity(whole), sparsity(pruned)
    for name, count in (("inputs", 5), ("nodes", 8), ("weights", 48)):
        for size in (before, after):
            np.testing.assert_array_equal(getattr(size, f"{name}_before"), [count, count])
        np.testing.assert_array_equal(getattr(before, f"{name}_after"), [count, count])
        left = getattr(after, f"{name}_after")
        assert np.all(left <= count)
        assert left.sum() < 2 * count
    for index, member in enumerate(pruned.members):
        connections = member.model.connections
        assert after.weights_after[index] == sum(mask.sum() for mask in connections)
        assert after.nodes_after[index] == connections[0].shape[0]
        assert after.inputs_after[index] == connections[0].shape[1]
        assert (member.elbo_terms, member.elbo_history, member.statistics) == (None, (), None)
    assert np.isnan(before.keep_threshold).all()
    assert np.isnan(before.false_sign_rate).all()
    assert np.all((after.keep_threshold > 0.9) & (after.false_sign_rate < 0.002))
    assert f"96 -> {after.weights_after.sum()}" in str(after)
    rate = np.average(after.false_sign_rate, weights=after.weights_after)
    assert f"{rate:.4f}" in str(after)
    assert "rate" not in str(before)


def test_a_stricter_rate_leaves_less(whole: Ensemble) -> None:
    left = [sparsity(prune_ensemble(whole, rate)).weights_after for rate in (0.5, 0.1, 1e-60)]
    assert left[0].sum() > left[1].sum() > left[2].sum()


def test_pruned_twice(whole: Ensemble) -> None:
    """Places are those of the first network, and what is sure stays."""
    first = prune_ensemble(whole, 0.2)
    twice = prune_ensemble(first, 1e-4)
    size = sparsity(twice)
    np.testing.assert_array_equal(size.weights_before, [48, 48])
    assert np.all(size.weights_after < sparsity(first).weights_after)
    for one, other in zip(twice.members, first.members, strict=True):
        assert set(one.pruning.units[0]) <= set(other.pruning.units[0])
        assert set(one.pruning.inputs) <= set(other.pruning.inputs)
    again = prune_ensemble(twice, 0.9)
    np.testing.assert_array_equal(mean_and_deviation(again, X), mean_and_deviation(twice, X))


def test_units_that_went_during_a_fit_say_nothing_of_weights() -> None:
    size = sparsity(fitted(hidden_layer_sizes=(20,), prune_every=5))
    np.testing.assert_array_equal(size.nodes_before, [20, 20])
    assert np.all(size.nodes_after < 20)
    np.testing.assert_array_equal(size.weights_after, 6 * size.nodes_after)
    assert np.isnan(size.false_sign_rate).all()


def test_nothing_survives() -> None:
    """What the network knew is not known any more: a constant with the spread of the targets."""
    targets = Y + RNG.normal(size=100)
    before = fitted((X, targets))
    assert not is_constant(before)
    for ratio in (None, 0.1, 6.0):
        constant = prune_ensemble(with_ratio(before, ratio), 1e-290)
        assert is_constant(constant)
        mean, deviation = mean_and_deviation(constant, X)
        assert np.ptp(mean) < 1e-9
        assert abs(mean[0, 0] - targets.mean()) < 0.3 * targets.std()
        assert 0.8 * targets.std() < deviation[0, 0] < 1.5 * targets.std()
        np.testing.assert_array_equal(relevance(constant, 0.01)[0], 0.0)


# Variances that held-out rows asked for


def noise_of(member: Any) -> np.ndarray:
    found = member.factors.layers[-1].noise_variance
    return found.scale / (found.concentration - 1.0)


@pytest.mark.parametrize("rate", [0.9, 0.01, 0.001])
@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
def test_noise_that_came_by_pruning_is_not_stretched(
    ratio: float, rate: float, whole: Ensemble
) -> None:
    """r (noise before) + what it has grown by, in the unit of the targets."""
    assert [m.variance_ratio for m in prune_ensemble(whole, rate).members] == [None, None]
    wide = with_ratio(whole, ratio)
    for before, after in zip(wide.members, prune_ensemble(wide, rate).members, strict=True):
        old, new = noise_of(before), noise_of(after)
        assert new >= old
        np.testing.assert_allclose(after.variance_ratio * new, ratio * old + new - old, rtol=1e-12)
        if rate == 0.9:
            np.testing.assert_allclose(after.variance_ratio, [ratio], rtol=1e-12)


def test_each_target_has_noise_of_its_own() -> None:
    wide = with_ratio(fitted((X, BOTH), max_iter=10, n_estimators=1), [3.0, 0.5])
    [before], [after] = wide.members, prune_ensemble(wide, 0.001).members
    old, new = noise_of(before), noise_of(after)
    assert np.all(new > old)
    expected = (np.array([3.0, 0.5]) * old + new - old) / new
    np.testing.assert_allclose(after.variance_ratio, expected, rtol=1e-12)


def test_members_that_are_fitted_again_have_their_whole_ratio(whole: Ensemble) -> None:
    wide = with_ratio(whole, 4.0)
    small = prune_ensemble(wide, 0.001)
    assert all(1.0 < member.variance_ratio < 4.0 for member in small.members)
    again = with_whole_noise(small, wide)
    assert [member.variance_ratio.tolist() for member in again.members] == [[4.0], [4.0]]
    refitted = fit((X, Y), Settings(**FAST), before=again, as_long_again=True).ensemble
    assert [member.variance_ratio.tolist() for member in refitted.members] == [[4.0], [4.0]]
    np.testing.assert_array_equal(sparsity(refitted).weights_after, sparsity(small).weights_after)
    for fresh, old in zip(refitted.members, small.members, strict=True):
        assert noise_of(fresh) < noise_of(old)


# Columns


@pytest.mark.parametrize("when", ["before", "after"])
def test_columns_that_matter(when: str, whole: Ensemble, pruned: Ensemble) -> None:
    probability, strength = relevance(whole if when == "before" else pruned, 0.001)
    assert probability.shape == strength.shape == (5, 1)
    assert sorted(np.argsort(strength[:, 0])[-2:]) == RELEVANT
    assert np.all(probability[RELEVANT] > 0.9)
    assert np.all((probability >= 0.0) & (probability <= 1.0))
    np.testing.assert_array_equal(probability > 0.0, strength > 0.0)


def test_relevance_is_the_mean_over_members_in_the_users_order(whole: Ensemble) -> None:
    """By loops, from the weights that survive at the rate; weights of the members are unequal."""
    ensemble = replace(whole, weights=np.array([0.25, 0.75]))
    expected = np.zeros((2, 5))
    for weight, member in zip(ensemble.weights, ensemble.members, strict=True):
        surviving = select(member.model, member.factors, 0.01).connections
        for place, column in enumerate(ensemble.representation.column_order):
            probability = path_probability(member.factors, surviving)[place, 0]
            strength = path_strength(member.factors, surviving)[place, 0]
            expected[:, column] += weight * np.array([probability, strength])
    found = np.stack(relevance(ensemble, 0.01))[..., 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_encoded_parts_of_a_column_are_one_group() -> None:
    """The largest probability and the sum of strengths; a column that is left out has none."""
    ensemble = fitted((FRAME, COLORED), n_estimators=1)
    columns = ensemble.representation.columns
    assert owners(columns).tolist() == [0, 1, 1, 1, 1, 2]
    [member] = ensemble.members
    surviving = select(member.model, member.factors, 0.01).connections
    parts = np.zeros((2, 6))
    order = ensemble.representation.column_order
    parts[0, order] = path_probability(member.factors, surviving)[:, 0]
    parts[1, order] = path_strength(member.factors, surviving)[:, 0]
    probability, strength = (found[:, 0] for found in relevance(ensemble, 0.01))
    np.testing.assert_allclose(probability, [parts[0, 0], parts[0, 1:5].max(), parts[0, 5], 0.0])
    np.testing.assert_allclose(strength, [parts[1, 0], parts[1, 1:5].sum(), parts[1, 5], 0.0])
    assert np.count_nonzero(parts[1, 1:5]) > 1
    assert min(strength[:2]) > 5.0 * strength[2]


def test_the_strongest_of_several_targets() -> None:
    probability, strength = relevance(fitted((X, BOTH)), 0.01)
    assert probability.shape == (5, 2)
    names = np.array(list("abcde"))
    table = FeatureRelevance(name=names, probability=probability, strength=strength)
    found = table.strongest()
    np.testing.assert_array_equal(found.probability, probability.max(axis=1))
    np.testing.assert_array_equal(found.strength, strength.max(axis=1))
    assert pd.DataFrame(found._asdict()).shape == (5, 3)
    one = table._replace(probability=probability[:, 0], strength=strength[:, 0])
    np.testing.assert_array_equal(one.strongest().strength, strength[:, 0])
