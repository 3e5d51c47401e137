"""Weights of members and variances of forecasts: their limits, and against direct optimisers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp
from scipy.stats import norm

from bowtienet._old.ensemble.stacking import (
    LARGEST_RATIO,
    NEVER,
    PRIOR_ROWS,
    Forecasts,
    effective_members,
    elbo_weights,
    equal_weights,
    normal_log_densities,
    stack_with_levels,
    stacking_weights,
    variance_ratio,
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


def test_members_that_are_good_at_half_of_the_rows_share() -> None:
    table = np.full((10, 3), -50.0)
    table[:6, 0] = table[6:, 2] = 0.0
    np.testing.assert_allclose(stacking_weights(table, np.ones(10)), [0.6, 0.0, 0.4], atol=1e-12)


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


# The variance that rows held out ask for


def random_forecasts(
    seed: int, n_members: int = 4, n: int = 60, n_targets: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors and variances (K, n, D) of members that are too sure or not sure enough."""
    rng = np.random.default_rng(seed)
    variances = rng.gamma(4.0, 0.25, size=(n_members, n, n_targets))
    wrong = np.exp(rng.normal(0.0, 0.7, size=(n_members, 1, n_targets)))
    common = rng.normal(size=(1, n, n_targets))
    own = rng.normal(size=variances.shape)
    errors = wrong * np.sqrt(variances) * (0.6 * common + 0.8 * own)
    return errors, variances, rng.uniform(0.2, 3.0, size=n)


def test_a_ratio_by_hand() -> None:
    """Squares 4 / 2 and 9 / 3 with weights 1 and 3, two rows of prior: (2 + 9 + 2) / (4 + 2)."""
    errors, variances = np.array([[-2.0], [3.0]]), np.array([[2.0], [3.0]])
    found = variance_ratio(errors, variances, np.array([1.0, 3.0]), prior_rows=2.0)
    np.testing.assert_allclose(found, [13.0 / 6.0], rtol=1e-15)


@pytest.mark.parametrize("prior_rows", [0.0, PRIOR_ROWS])
@pytest.mark.parametrize("seed", range(3))
def test_the_ratio_is_the_one_of_highest_density(seed: int, prior_rows: float) -> None:
    """Without prior of the rows; with it of so many more rows whose squares are as they should."""
    errors, variances, counts = random_forecasts(seed, n_members=1, n_targets=1)
    e, v = errors[0, :, 0], variances[0, :, 0]

    def loss(logarithm: float) -> float:
        ratio = np.exp(logarithm)
        rows = counts @ norm.logpdf(e, 0.0, np.sqrt(ratio * v))
        return -float(rows + prior_rows * norm.logpdf(1.0, 0.0, np.sqrt(ratio)))

    best = minimize_scalar(loss, bounds=(-6.0, 6.0), options={"xatol": 1e-10})
    assert best.success
    found = variance_ratio(errors[0], variances[0], counts, prior_rows=prior_rows)
    np.testing.assert_allclose(found, [np.exp(best.x)], rtol=1e-6)


def test_each_target_has_its_own_ratio() -> None:
    errors, variances, counts = random_forecasts(2, n_members=1, n_targets=3)
    together = variance_ratio(errors[0], variances[0], counts)
    assert together.shape == (3,)
    for target in range(3):
        part = slice(target, target + 1)
        alone = variance_ratio(errors[0][:, part], variances[0][:, part], counts)
        np.testing.assert_allclose(together[part], alone, rtol=1e-13)


def test_forecasts_without_an_answer_leave_a_finite_ratio() -> None:
    """NaN says nothing, what is infinitely wrong as much as the largest ratio."""
    errors, variances = np.ones((4, 1)), np.ones((4, 1))
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = errors.copy()
        spoilt[1] = bad
        found = variance_ratio(spoilt, variances, np.ones(4), prior_rows=0.0)
        np.testing.assert_allclose(found, 0.75 if np.isnan(bad) else (3.0 + LARGEST_RATIO) / 4.0)
    none = variance_ratio(errors, np.zeros((4, 1)), np.ones(4), prior_rows=0.0)
    np.testing.assert_array_equal(none, [LARGEST_RATIO])
    unknown = variance_ratio(errors, np.full((4, 1), np.nan), np.ones(4), prior_rows=0.0)
    np.testing.assert_array_equal(unknown, [1.0 / LARGEST_RATIO])


def test_a_ratio_has_its_limits() -> None:
    far = variance_ratio(np.full((3, 1), 1e100), np.ones((3, 1)), np.ones(3))
    np.testing.assert_array_equal(far, [LARGEST_RATIO])
    sure = variance_ratio(np.full((3, 1), 1e-200), np.ones((3, 1)), np.ones(3), prior_rows=0.0)
    np.testing.assert_array_equal(sure, [1.0 / LARGEST_RATIO])


def test_log_densities_of_several_targets_add_up() -> None:
    errors, variances, _ = random_forecasts(4, n_targets=3)
    expected = norm.logpdf(errors, 0.0, np.sqrt(variances)).sum(axis=-1)
    np.testing.assert_allclose(normal_log_densities(errors, variances), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("error", "variance"),
    [(np.nan, 1.0), (np.inf, 1.0), (1.0, np.nan), (1.0, 0.0), (1.0, -1.0), (1.0, np.inf)],
)
def test_a_log_density_is_finite(error: float, variance: float) -> None:
    found = normal_log_densities(np.array([[error, 0.0]]), np.array([[variance, 1.0]]))
    np.testing.assert_array_equal(found, [NEVER])


# Stacking of forecasts: weights and one factor


def stack_forecasts(
    errors: np.ndarray, variances: np.ndarray, row_weights: np.ndarray, **limits: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and the one level of forecasts (R, n, D), without warps and gates."""
    forecasts = Forecasts(
        errors=errors,
        variances=variances,
        log_slopes=np.zeros(errors.shape[:2]),
        row_weights=row_weights,
    )
    ones = np.ones((errors.shape[1], 1))
    weights, scale, gates = stack_with_levels(forecasts, ones, 1, **limits)
    assert gates.shape == (0, 1, errors.shape[2])
    [factor] = scale
    return weights, factor


def stacked_objective(
    weights: np.ndarray,
    factor: np.ndarray,
    errors: np.ndarray,
    variances: np.ndarray,
    counts: np.ndarray,
) -> float:
    """Σ c log Σ w N(e | 0, s v), and the prior rows that find s = 1 right, for each of them."""
    spread = factor * variances
    logs = -0.5 * (np.log(2.0 * np.pi * spread) + errors**2 / spread).sum(axis=-1)
    with np.errstate(divide="ignore"):
        mixed = logsumexp(logs + np.log(weights)[:, None], axis=0)
    prior = -0.5 * PRIOR_ROWS * np.sum(np.log(2.0 * np.pi * factor) + 1.0 / factor)
    return float((counts @ mixed + prior) / (counts.sum() + PRIOR_ROWS))


def stacked_directly(
    errors: np.ndarray, variances: np.ndarray, counts: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same maximum over logarithms by quasi-Newton steps."""
    n_members = len(errors)

    def parts(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logs = flat[:n_members]
        return np.exp(logs - logsumexp(logs)), np.exp(flat[n_members:])

    found = minimize(
        lambda flat: -stacked_objective(*parts(flat), errors, variances, counts),
        start,
        method="L-BFGS-B",
        bounds=[(-30.0, 30.0)] * n_members + [(-8.0, 8.0)] * errors.shape[2],
        options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9, "maxfun": 100_000},
    )
    return parts(found.x)


@pytest.mark.parametrize("seed", range(4))
def test_stacked_forecasts_against_a_direct_optimiser(seed: int) -> None:
    """From where EM begins. To the end no lower; where it stops 1e-3 per row are left."""
    errors, variances, counts = random_forecasts(seed, n_members=2 + seed, n_targets=1 + seed % 2)
    start = np.zeros(len(errors) + errors.shape[2])
    best = stacked_directly(errors, variances, counts, start)
    highest = stacked_objective(*best, errors, variances, counts)
    weights, factor = stack_forecasts(errors, variances, counts, **TO_THE_END)
    found = stacked_objective(weights, factor, errors, variances, counts)
    assert found >= highest - 1e-9
    assert found == pytest.approx(highest, abs=1e-6)
    np.testing.assert_allclose(weights, best[0], atol=1e-3)
    np.testing.assert_allclose(factor, best[1], rtol=1e-3)
    usual = stack_forecasts(errors, variances, counts)
    assert stacked_objective(*usual, errors, variances, counts) > highest - 1e-3
    for result in (weights, usual[0]):
        assert np.all(result >= 0.0)
        assert np.sum(result) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_no_step_of_stacked_forecasts_lowers_the_objective(seed: int) -> None:
    errors, variances, counts = random_forecasts(seed, n_members=5)
    bounds = [
        stacked_objective(
            *stack_forecasts(errors, variances, counts, max_iterations=steps, tolerance=0.0),
            errors,
            variances,
            counts,
        )
        for steps in range(40)
    ]
    start = stacked_objective(equal_weights(5), np.ones(2), errors, variances, counts)
    assert bounds[0] == pytest.approx(start)
    assert all(after >= before - 1e-13 for before, after in pairwise(bounds))
    assert bounds[-1] > bounds[0] + 1e-3


def test_one_forecaster_gets_its_own_ratio() -> None:
    errors, variances, counts = random_forecasts(5, n_members=1)
    weights, factor = stack_forecasts(errors, variances, counts)
    np.testing.assert_array_equal(weights, [1.0])
    np.testing.assert_allclose(factor, variance_ratio(errors[0], variances[0], counts), rtol=1e-12)


def test_members_that_disagree_ask_for_less() -> None:
    """Each alone has the variance it needs; where each is right in half of the rows, less does."""
    errors = np.array([[0.1, 2.0], [2.0, 0.1]])[:, np.arange(100) % 2, None]
    variances = np.ones_like(errors)
    ratios = np.stack([variance_ratio(e, np.ones_like(e), np.ones(100)) for e in errors])
    weights, factor = stack_forecasts(errors, ratios[:, None] * variances, np.ones(100))
    np.testing.assert_allclose(weights, 0.5, atol=1e-6)
    assert np.all(factor < 0.5)


def test_forecasts_best_in_some_rows_share_by_their_number() -> None:
    """Right in three fifths of the rows and in two; nothing to gain from other variances."""
    right = np.arange(100) % 5 < 3
    errors = np.stack([np.where(right, 1.0, 60.0), np.where(right, 60.0, 1.0)])[..., None]
    weights, factor = stack_forecasts(errors, np.ones_like(errors), np.ones(100))
    np.testing.assert_allclose(weights, [0.6, 0.4], rtol=1e-10)
    np.testing.assert_allclose(factor, [1.0], rtol=1e-10)


def test_rows_of_weight_zero_are_not_stacked() -> None:
    """Whatever they hold, even what only one member can explain."""
    errors, variances, counts = random_forecasts(7)
    expected = stack_forecasts(errors[:, 10:], variances[:, 10:], counts[10:])
    counts[:10] = 0.0
    wild = errors.copy()
    wild[:, :5] = np.nan
    wild[1:, 5:10] = 1e9
    for found, right in zip(stack_forecasts(wild, variances, counts), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)


def test_a_repeated_row_is_stacked_by_its_weight() -> None:
    errors, variances, _ = random_forecasts(8)
    counts = np.random.default_rng(1).integers(0, 4, size=60)
    weighted = stack_forecasts(errors, variances, counts.astype(float))
    repeated = stack_forecasts(
        np.repeat(errors, counts, axis=1),
        np.repeat(variances, counts, axis=1),
        np.ones(counts.sum()),
    )
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["errors", "variances"])
def test_a_forecaster_that_broke_down_has_no_weight(bad: float, where: str) -> None:
    """And changes nothing for the others."""
    errors, variances, counts = random_forecasts(11)
    spoilt = {"errors": errors.copy(), "variances": variances.copy()}
    spoilt[where][1] = bad
    weights, factor = stack_forecasts(**spoilt, row_weights=counts, **TO_THE_END)
    others = [0, 2, 3]
    expected = stack_forecasts(errors[others], variances[others], counts, **TO_THE_END)
    assert weights[1] == 0.0
    np.testing.assert_allclose(weights[others], expected[0], atol=1e-8)
    np.testing.assert_allclose(factor, expected[1], rtol=1e-8)


def test_forecasters_that_all_broke_down_count_alike() -> None:
    errors = np.full((3, 10, 2), np.nan)
    weights, factor = stack_forecasts(errors, errors, np.ones(10))
    np.testing.assert_allclose(weights, 1.0 / 3.0, rtol=1e-14)
    assert np.all((factor > 0.0) & np.isfinite(factor))
