"""Shapley values against all orders of few columns, and the plans that they follow."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from bowtienet._old.ensemble import shapley
from bowtienet._old.ensemble.ensemble import Ensemble, mean_and_deviation
from bowtienet._old.ensemble.shapley import plan_coalitions, shapley_values
from bowtienet._old.representation.background import Background
from tests._old.ensemble.fits import viewed_ensemble

COLUMNS = np.arange(3)


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    """Of three columns that have to do with each other, with warps and bins."""
    rng = np.random.default_rng(500)
    X = rng.normal(size=(80, 3))
    y = np.exp(0.5 * X[:, 0] * X[:, 1] + 0.3 * X[:, 2]) + 0.1 * rng.normal(size=80)
    return viewed_ensemble((X, y), max_iter=3)


@pytest.fixture(scope="module")
def background() -> Background:
    rng = np.random.default_rng(501)
    return Background(features=rng.normal(size=(4, 3)), weights=rng.uniform(0.5, 2.0, size=4))


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(502).normal(size=(4, 3))


def value(
    ensemble: Ensemble, x: np.ndarray, background: Background, inside: set[int]
) -> np.ndarray:
    """v(S), one background row after the other."""
    total = np.zeros(2)
    for b, weight in zip(background.features, background.weights, strict=True):
        mixed = np.array([x[j] if j in inside else b[j] for j in range(3)])
        found = mean_and_deviation(ensemble, mixed[None, :])
        total += weight * np.array([found[0][0, 0], found[1][0, 0]])
    return total / background.weights.sum()


def test_values_are_the_average_over_all_orders(
    ensemble: Ensemble, background: Background, rows: np.ndarray
) -> None:
    plan = plan_coalitions(3, 2, np.random.default_rng(0))
    base, found, errors = shapley_values(ensemble, rows, background, COLUMNS, plan)
    assert errors is None
    np.testing.assert_allclose(base[:, 0], value(ensemble, rows[0], background, set()), rtol=1e-9)
    for n, x in enumerate(rows[:2]):
        expected = np.zeros((2, 3))
        for order in permutations(range(3)):
            inside: set[int] = set()
            for column in order:
                before = value(ensemble, x, background, inside)
                inside = inside | {column}
                expected[:, column] += (value(ensemble, x, background, inside) - before) / 6.0
        np.testing.assert_allclose(found[:, n, :, 0], expected, rtol=1e-7, atol=1e-10)


def test_values_add_up_to_the_prediction_whatever_the_plan(
    ensemble: Ensemble,
    background: Background,
    rows: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = np.stack(mean_and_deviation(ensemble, rows))
    for exact, chunk in ((8, 32_768), (0, 32_768), (8, 5)):
        monkeypatch.setattr(shapley, "MOST_EXACT", exact)
        monkeypatch.setattr(shapley, "CHUNK_ROWS", chunk)
        plan = plan_coalitions(3, 2, np.random.default_rng(0))
        base, found, errors = shapley_values(ensemble, rows, background, COLUMNS, plan)
        assert (errors is None) == (exact == 8)
        np.testing.assert_allclose(base[:, None] + found.sum(axis=2), expected, rtol=1e-9)


def test_random_orders_are_right_on_average_and_know_their_error(
    ensemble: Ensemble,
    background: Background,
    rows: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100 plans of 4 pairs: differences of 4 errors of their mean are allowed."""
    exact = shapley_values(
        ensemble, rows, background, COLUMNS, plan_coalitions(3, 2, np.random.default_rng(0))
    )[1]
    monkeypatch.setattr(shapley, "MOST_EXACT", 0)
    drawn, errors = [], []
    for seed in range(100):
        plan = plan_coalitions(3, 4, np.random.default_rng(seed))
        _, found, error = shapley_values(ensemble, rows, background, COLUMNS, plan)
        assert error is not None
        drawn.append(found)
        errors.append(error)
    spread = np.std(drawn, axis=0)
    assert np.all(np.abs(np.mean(drawn, axis=0) - exact) < 4.0 * spread / 10.0 + 1e-9)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.maximum(spread, 1e-12)
    assert np.all((ratio > 0.6) & (ratio < 1.6))


@pytest.mark.parametrize("n_players", [1, 2, 5, 8, 9])
def test_plans_are_fair(n_players: int) -> None:
    """What players get is the value of all less that of none, for any values of coalitions."""
    rng = np.random.default_rng(500)
    plan = plan_coalitions(n_players, 3, rng)
    assert len(plan.factors) == (1 if n_players <= 8 else 3)
    assert len(np.unique(plan.coalitions, axis=0)) == len(plan.coalitions)
    values = rng.normal(size=len(plan.coalitions))
    everybody, nobody = plan.coalitions.all(axis=1), ~plan.coalitions.any(axis=1)
    shared = (plan.factors @ values).sum(axis=1)
    surplus = float((values[everybody] - values[nobody])[0])
    np.testing.assert_allclose(shared, np.full(len(shared), surplus), rtol=1e-9)
    # A player that adds the same to every coalition gets that.
    added = plan.coalitions @ np.arange(n_players)
    np.testing.assert_allclose((plan.factors @ added)[0], np.arange(n_players), atol=1e-9)


def test_groups_play_as_one_and_unseen_ones_not_at_all(
    ensemble: Ensemble, background: Background, rows: np.ndarray
) -> None:
    together = np.array([0, 1, 0])
    plan = plan_coalitions(2, 2, np.random.default_rng(0))
    _, found, _ = shapley_values(ensemble, rows, background, together, plan)
    none, other = (value(ensemble, rows[0], background, s) for s in (set(), {1}))
    rest, everything = (value(ensemble, rows[0], background, s) for s in ({0, 2}, {0, 1, 2}))
    expected = 0.5 * (rest - none) + 0.5 * (everything - other)
    np.testing.assert_allclose(found[:, 0, 0, 0], expected, rtol=1e-7, atol=1e-10)
