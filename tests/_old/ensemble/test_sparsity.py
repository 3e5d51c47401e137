"""Sizes of networks, and how strong the user's columns are in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet._old.ensemble.ensemble import Ensemble, check_ensemble
from bowtienet._old.ensemble.settings import Settings
from bowtienet._old.ensemble.sparsity import (
    FeatureRelevance,
    column_strength,
    sparsity,
)
from bowtienet._old.posterior.relevance import path_strength
from bowtienet._old.posterior.selection import existing
from bowtienet._old.representation.columns import owners
from tests._old.ensemble.fits import fit
from tests._old.sign_pruning import prune_members

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
    return prune_members(whole, 1e-4)


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
    assert f"96 -> {after.weights_after.sum()}" in str(after)


# Columns


@pytest.mark.parametrize("when", ["before", "after"])
def test_columns_that_matter(when: str, whole: Ensemble, pruned: Ensemble) -> None:
    strength = column_strength(whole if when == "before" else pruned)
    assert strength.shape == (5, 1)
    assert sorted(np.argsort(strength[:, 0])[-2:]) == RELEVANT


def test_relevance_is_the_mean_over_members_in_the_users_order(whole: Ensemble) -> None:
    """By loops; weights of the members are unequal."""
    ensemble = replace(whole, weights=np.array([0.25, 0.75]))
    expected = np.zeros(5)
    for weight, member in zip(ensemble.weights, ensemble.members, strict=True):
        surviving = existing(member.model, member.factors)
        for place, column in enumerate(ensemble.representation.column_order):
            strength = path_strength(member.factors, surviving)[place, 0]
            expected[column] += weight * strength
    found = column_strength(ensemble)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_encoded_parts_of_a_column_are_one_group() -> None:
    """The sum of strengths; a column that is left out has none."""
    ensemble = fitted((FRAME, COLORED), n_estimators=1)
    columns = ensemble.representation.columns
    assert owners(columns).tolist() == [0, 1, 1, 1, 1, 2]
    [member] = ensemble.members
    surviving = existing(member.model, member.factors)
    parts = np.zeros(6)
    order = ensemble.representation.column_order
    parts[order] = path_strength(member.factors, surviving)[:, 0]
    strength = column_strength(ensemble)[:, 0]
    np.testing.assert_allclose(strength, [parts[0], parts[1:5].sum(), parts[5], 0.0])
    assert np.count_nonzero(parts[1:5]) > 1
    assert min(strength[:2]) > 5.0 * strength[2]


def test_the_strongest_of_several_targets() -> None:
    strength = column_strength(fitted((X, BOTH)))
    assert strength.shape == (5, 2)
    names = np.array(list("abcde"))
    table = FeatureRelevance(name=names, strength=strength, p_value=np.full(5, np.nan))
    found = table.strongest()
    np.testing.assert_array_equal(found.strength, strength.max(axis=1))
    assert pd.DataFrame(found._asdict()).shape == (5, 3)
    one = table._replace(strength=strength[:, 0])
    np.testing.assert_array_equal(one.strongest().strength, strength[:, 0])
