"""Weights of members: their limits, and stacking against a direct optimiser."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from bowtienet.prediction.weighting import (
    effective_members,
    elbo_weights,
    equal_weights,
    stacking_weights,
)

TO_THE_END = {"max_iterations": 100_000, "tolerance": 1e-12}
"""EM nears its limit slowly where two members are much alike."""


def objective(
    weights: np.ndarray, table: np.ndarray, counts: np.ndarray, prior_rows: float = 0.0
) -> float:
    """Σ c log Σ w p + (prior_rows / K) Σ log w, for each row that counts."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    value = counts @ logsumexp(table + logs, axis=1)
    if prior_rows:
        value += prior_rows * np.mean(logs)
    return float(value / (counts.sum() + prior_rows))


def direct(table: np.ndarray, counts: np.ndarray, prior_rows: float = 0.0) -> np.ndarray:
    """The same maximum by sequential quadratic programming on the simplex."""
    n_members = table.shape[1]
    densities = np.exp(table - table.max(axis=1, keepdims=True))
    total = counts.sum() + prior_rows

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        mixed = densities @ weights
        value = counts @ np.log(mixed) + prior_rows * np.mean(np.log(weights))
        slope = densities.T @ (counts / mixed) + prior_rows / (n_members * weights)
        return -value / total, -slope / total

    found = minimize(
        loss,
        np.full(n_members, 1.0 / n_members),
        jac=True,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * n_members,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1.0},
        options={"maxiter": 500, "ftol": 1e-15},
    )
    assert found.success
    return found.x / found.x.sum()


def random_table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Log densities of members that differ little, moderately or much, and weights of rows."""
    rng = np.random.default_rng(seed)
    n, n_members = int(rng.integers(20, 150)), int(rng.integers(2, 12))
    spread = (0.1, 1.0, 6.0)[seed % 3]
    table = spread * rng.normal(size=(n, n_members)) + rng.normal(0.0, 0.3, size=n_members)
    return table, rng.uniform(0.2, 3.0, size=n)


def test_elbo_weights_are_a_softmax() -> None:
    elbos = np.array([-120.0, -100.0, -140.0])
    expected = np.exp(0.05 * (elbos + 100.0))
    np.testing.assert_allclose(elbo_weights(elbos, 0.05), expected / expected.sum(), rtol=1e-13)
    np.testing.assert_allclose(
        elbo_weights(elbos + 1e6, 0.05), elbo_weights(elbos, 0.05), rtol=1e-8
    )


def test_limits_of_the_tempering() -> None:
    elbos = np.array([-5e5, -2e5, -9e5])
    np.testing.assert_array_equal(elbo_weights(elbos, 0.0), equal_weights(3))
    np.testing.assert_array_equal(elbo_weights(elbos, 1.0), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(elbo_weights(np.full(4, 1e300), 1.0), equal_weights(4))


def test_a_bound_that_is_not_finite_has_no_weight() -> None:
    np.testing.assert_array_equal(elbo_weights([np.nan, -100.0, -np.inf], 0.01), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(elbo_weights([-np.inf, np.nan], 0.01), [0.5, 0.5])
    np.testing.assert_allclose(elbo_weights([-np.inf, -5.0, -5.0], 0.0), [0.0, 0.5, 0.5])


@pytest.mark.parametrize("n_members", [1, 3, 50])
def test_equal_weights(n_members: int) -> None:
    weights = equal_weights(n_members)
    assert weights.shape == (n_members,)
    assert np.sum(weights) == pytest.approx(1.0, abs=1e-15)
    assert effective_members(weights) == pytest.approx(n_members, rel=1e-12)


def test_effective_members() -> None:
    assert effective_members(np.array([0.0, 1.0, 0.0])) == 1.0
    assert effective_members(np.array([0.5, 0.5, 0.0, 0.0])) == 2.0
    assert effective_members(np.array([0.5, 0.25, 0.25])) == pytest.approx(8.0 / 3.0)


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("prior_rows", [0.0, 7.0])
def test_stacking_against_a_direct_optimiser(seed: int, prior_rows: float) -> None:
    """To the end within 1e-9 per row and 1e-5 in weight; as it is called within 1e-4 per row."""
    table, counts = random_table(seed)
    best = direct(table, counts, prior_rows)
    highest = objective(best, table, counts, prior_rows)
    patient = stacking_weights(table, counts, prior_rows=prior_rows, **TO_THE_END)
    assert objective(patient, table, counts, prior_rows) == pytest.approx(highest, abs=1e-9)
    np.testing.assert_allclose(patient, best, atol=1e-5)
    usual = stacking_weights(table, counts, prior_rows=prior_rows)
    assert objective(usual, table, counts, prior_rows) > highest - 1e-4
    for weights in (patient, usual):
        assert np.all(weights >= 0.0)
        assert np.sum(weights) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_the_maximum_is_stationary(seed: int) -> None:
    """Σ c p_k / Σ_j w_j p_j is the number of rows for every member with weight, at most else."""
    table, counts = random_table(seed)
    weights = stacking_weights(table, counts, **TO_THE_END)
    shares = np.exp(table - logsumexp(table + np.log(np.maximum(weights, 1e-300)), axis=1)[:, None])
    slope = counts @ shares / counts.sum()
    np.testing.assert_allclose(slope[weights > 1e-6], 1.0, atol=1e-5)
    assert np.all(slope < 1.0 + 1e-5)


def test_all_weight_to_the_one_good_member(rng: np.random.Generator) -> None:
    table = rng.normal(size=(40, 5))
    table[:, 3] += 30.0
    weights = stacking_weights(table, np.ones(40))
    assert weights[3] > 1.0 - 1e-9


def test_members_that_are_good_at_half_of_the_rows_share() -> None:
    table = np.full((10, 3), -50.0)
    table[:6, 0] = table[6:, 2] = 0.0
    np.testing.assert_allclose(stacking_weights(table, np.ones(10)), [0.6, 0.0, 0.4], atol=1e-12)


@pytest.mark.parametrize("prior_rows", [0.0, 5.0])
def test_identical_members_count_alike(prior_rows: float, rng: np.random.Generator) -> None:
    table = np.tile(rng.normal(size=(30, 1)), (1, 4))
    weights = stacking_weights(table, rng.uniform(0.5, 2.0, size=30), prior_rows=prior_rows)
    np.testing.assert_allclose(weights, 0.25, rtol=1e-13)


def test_copies_of_a_member_share_its_weight(rng: np.random.Generator) -> None:
    table = rng.normal(size=(50, 3))
    alone = stacking_weights(table, np.ones(50), **TO_THE_END)
    copied = stacking_weights(table[:, [0, 1, 2, 0]], np.ones(50), **TO_THE_END)
    np.testing.assert_allclose(copied[0], copied[3], rtol=1e-12)
    np.testing.assert_allclose([copied[0] + copied[3], *copied[1:3]], alone, atol=1e-6)


def test_the_prior_pulls_towards_equal_weights(rng: np.random.Generator) -> None:
    """By the more the larger it is: from the maximum without it to equality."""
    table = rng.normal(size=(40, 4)) + np.array([0.0, 0.5, 1.0, 2.0])
    distances = [
        np.abs(stacking_weights(table, np.ones(40), prior_rows=rows, **TO_THE_END) - 0.25).max()
        for rows in (0.0, 1.0, 10.0, 100.0, 1e5)
    ]
    assert all(after < before for before, after in pairwise(distances))
    assert distances[-1] < 1e-3
    assert distances[0] > 0.3


def test_the_prior_is_worth_so_many_rows() -> None:
    """60 rows for the first member, 30 rows of prior over three: (60 + 10) / 90 and 10 / 90."""
    table = np.full((60, 3), -1e3)
    table[:, 0] = 0.0
    weights = stacking_weights(table, np.ones(60), prior_rows=30.0)
    np.testing.assert_allclose(weights, [7.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0], rtol=1e-12)


@pytest.mark.parametrize("prior_rows", [0.0, 3.0])
def test_a_weight_is_a_repetition(prior_rows: float, rng: np.random.Generator) -> None:
    table, counts = rng.normal(size=(30, 4)), rng.integers(1, 4, size=30)
    weighted = stacking_weights(table, counts.astype(float), prior_rows=prior_rows)
    repeated = stacking_weights(
        np.repeat(table, counts, axis=0), np.ones(counts.sum()), prior_rows=prior_rows
    )
    np.testing.assert_allclose(weighted, repeated, rtol=1e-10)


def test_a_row_of_weight_zero_is_absent(rng: np.random.Generator) -> None:
    table, counts = rng.normal(size=(30, 4)), np.ones(30)
    counts[:8] = 0.0
    np.testing.assert_allclose(
        stacking_weights(table, counts), stacking_weights(table[8:], np.ones(22)), rtol=1e-10
    )


def test_even_a_row_of_weight_zero_that_only_one_member_can_explain() -> None:
    """Its member loses all weight, and 0/0 must not come of it."""
    table = np.array([[0.0, -1e5], [-1e5, 0.0]])
    np.testing.assert_array_equal(stacking_weights(table, np.array([1.0, 0.0])), [1.0, 0.0])


def test_a_constant_per_row_does_not_matter(rng: np.random.Generator) -> None:
    """Units of the targets, and densities too large or too small for a float."""
    table, counts = random_table(4)
    shifts = 1e4 * rng.normal(size=(len(table), 1))
    np.testing.assert_allclose(
        stacking_weights(table + shifts, counts), stacking_weights(table, counts), atol=1e-9
    )


def test_the_order_of_rows_and_members_does_not_matter(rng: np.random.Generator) -> None:
    table, counts = random_table(5)
    rows, members = rng.permutation(table.shape[0]), rng.permutation(table.shape[1])
    weights = stacking_weights(table[rows][:, members], counts[rows])
    np.testing.assert_allclose(weights, stacking_weights(table, counts)[members], atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prior_rows", [0.0, 2.0])
def test_no_step_lowers_the_objective(seed: int, prior_rows: float) -> None:
    table, counts = random_table(seed)
    bounds = [
        objective(
            stacking_weights(
                table, counts, prior_rows=prior_rows, max_iterations=steps, tolerance=0.0
            ),
            table,
            counts,
            prior_rows,
        )
        for steps in range(40)
    ]
    assert bounds[0] == pytest.approx(
        objective(equal_weights(table.shape[1]), table, counts, prior_rows)
    )
    assert all(after >= before - 1e-13 for before, after in pairwise(bounds))
    assert bounds[-1] > bounds[0]


def test_one_member_has_all_weight(rng: np.random.Generator) -> None:
    weights = stacking_weights(rng.normal(size=(5, 1)), np.ones(5), prior_rows=2.0)
    np.testing.assert_array_equal(weights, [1.0])


@pytest.mark.parametrize("bad", [-np.inf, -1e6])
def test_a_member_that_broke_down_has_no_weight(bad: float, rng: np.random.Generator) -> None:
    table = rng.normal(size=(20, 3))
    table[4, 1] = bad
    weights = stacking_weights(table, np.ones(20))
    assert np.all(np.isfinite(weights))
    table[:, 1] = bad
    np.testing.assert_allclose(
        stacking_weights(table, np.ones(20))[[0, 2]],
        stacking_weights(table[:, [0, 2]], np.ones(20)),
        atol=1e-5,
    )
