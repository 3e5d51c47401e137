"""Stacking: the objective in loops, its optimum, and planted weights, levels and gates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import norm

from bowtienet.ensemble.stacking import (
    GATE_PENALTY,
    LEVEL_PRIOR,
    LEVELS,
    Stack,
    log_gates_of,
    stack,
    stack_likelihoods,
)

Case = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Errors (R, m), variances (R,), log slopes (R, m), row weights and gate inputs (m, G)."""


def noisy(rng: np.random.Generator, m: int, n_recipes: int = 3) -> Case:
    """Recipes that share most of their errors, whose size a gate input tells."""
    gate_inputs = rng.normal(size=(m, 2))
    shared = np.exp(0.5 * gate_inputs[:, 0]) * rng.normal(size=m)
    errors = shared + 0.5 * rng.normal(size=(n_recipes, m))
    slopes = 0.2 * rng.normal(size=(n_recipes, m))
    return errors, np.mean(errors**2, axis=1), slopes, rng.uniform(0.5, 2.0, size=m), gate_inputs


def read(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `stack` reads of the errors."""
    errors, variances, slopes, weights, _ = case
    variances = variances[:, None]
    return errors**2 / variances, slopes - 0.5 * np.log(2.0 * math.pi * variances), weights


def density_in_loops(case: Case, found: Stack) -> float:
    """Σ_n c_n log Σ_r w_r Σ_k π_k N(e | 0, v s_k) g', from the formula."""
    errors, variances, slopes, weights, gate_inputs = case
    total = 0.0
    for n, row in enumerate(gate_inputs):
        scores = [column[0] + column[1:] @ row for column in found.gates.T]
        gates = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
        density = 0.0
        for r, w in enumerate(found.weights):
            for gate, level in zip(gates, found.levels, strict=True):
                scale = math.sqrt(variances[r] * level)
                density += w * gate * norm.pdf(errors[r, n], 0.0, scale) * math.exp(slopes[r, n])
        total += weights[n] * math.log(density)
    return total


def objective_in_loops(case: Case, found: Stack) -> float:
    """With the priors: of a level, like rows of error one; of gates, a ridge."""
    priors = sum(0.5 * LEVEL_PRIOR * (-math.log(level) - 1.0 / level) for level in found.levels)
    return (
        density_in_loops(case, found) + priors - 0.5 * GATE_PENALTY * np.sum(found.gates[1:] ** 2)
    )


def levels_of(n_levels: int) -> tuple[float, ...]:
    return LEVELS[:n_levels] if n_levels > 1 else (1.0,)


def run(case: Case, steps: int, n_levels: int = 3) -> Stack:
    """After so many steps of EM."""
    return stack(*read(case), case[4], levels_of(n_levels), steps, -np.inf)


@pytest.mark.parametrize("n_levels", [1, 2, 3])
def test_no_step_lowers_the_objective(n_levels: int, rng: np.random.Generator) -> None:
    case = noisy(rng, 25)
    values = [
        objective_in_loops(case, run(case, steps, n_levels)) for steps in (1, 2, 3, 4, 6, 9, 15, 30)
    ]
    assert np.diff(values).min() > -1e-9
    assert values[1] > values[0] + 1e-3


@pytest.mark.parametrize("n_levels", [1, 3])
def test_the_end_is_an_optimum(n_levels: int, rng: np.random.Generator) -> None:
    """SciPy finds nothing from there that is better by more than 0.001 a row."""
    case = noisy(rng, 40)
    (squares, constants, row_weights), gate_inputs = read(case), case[4]

    def loss(x: np.ndarray) -> float:
        log_weights, log_levels = log_softmax(x[:3]), x[3 : 3 + n_levels]
        gates = x[3 + n_levels :].reshape(3, n_levels)
        logs = log_weights[:, None, None] + constants[:, :, None]
        logs = logs + log_softmax(gates[0] + gate_inputs @ gates[1:], axis=1)
        logs = logs - 0.5 * log_levels - 0.5 * squares[:, :, None] * np.exp(-log_levels)
        density = row_weights @ np.logaddexp.reduce(logs, axis=(0, 2))
        priors = 0.5 * LEVEL_PRIOR * np.sum(log_levels + np.exp(-log_levels))
        return priors + 0.5 * GATE_PENALTY * np.sum(gates[1:] ** 2) - density

    found = run(case, 2_000, n_levels)
    weights = np.log(np.maximum(found.weights, 1e-12))
    start = np.concatenate([weights, np.log(found.levels), found.gates.ravel()])
    assert loss(start) == pytest.approx(-objective_in_loops(case, found), abs=1e-6)
    best = minimize(loss, start, options={"maxiter": 50})
    assert best.fun > loss(start) - 0.001 * case[3].sum()
    rough = stack(*read(case), gate_inputs, levels_of(n_levels))
    assert objective_in_loops(case, rough) < -loss(start) + 1e-6


def test_log_density_is_that_of_the_result(rng: np.random.Generator) -> None:
    """In the user's unit, with the slopes of the warps; a last step may come behind it."""
    case = noisy(rng, 50)
    for levels in ((1.0,), LEVELS):
        found = stack(*read(case), case[4], levels)
        expected = density_in_loops(case, found) / case[3].sum()
        assert found.log_density == pytest.approx(expected, abs=1e-4)


def test_a_row_weight_is_a_number_of_rows(rng: np.random.Generator) -> None:
    errors, variances, slopes, _, gate_inputs = noisy(rng, 40)
    counts = rng.integers(1, 4, size=40)
    many = np.repeat(np.arange(40), counts)
    weighted = (errors, variances, slopes, counts.astype(float), gate_inputs)
    repeated = (errors[:, many], variances, slopes[:, many], np.ones(len(many)), gate_inputs[many])
    a, b = stack(*read(weighted), gate_inputs), stack(*read(repeated), gate_inputs[many])
    for name in ("weights", "levels", "gates", "log_density"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-9)


# Planted


def test_levels_are_recovered(rng: np.random.Generator) -> None:
    """To five standard errors of a variance from half the rows, √(2/2,000) of it each.

    The gate input tells almost all rows' level; the ridge penalty draws its chance to one half.
    """
    m, levels = 4_000, np.array([0.1, 1.0])
    sign = rng.choice([-1.0, 1.0], size=m)
    second = rng.random(m) < 1.0 / (1.0 + np.exp(-4.0 * sign))
    errors = np.sqrt(levels[second.astype(int)]) * rng.normal(size=(1, m))
    case = (errors, np.ones(1), np.zeros((1, m)), np.ones(m), sign[:, None])
    found = stack(*read(case), sign[:, None], LEVELS[:2])
    order = np.argsort(found.levels)
    bar = 5.0 * math.sqrt(2.0 / 2_000.0)
    np.testing.assert_allclose(found.levels[order], levels, rtol=bar)
    np.testing.assert_array_equal(found.weights, 1.0)
    chance = np.exp(log_gates_of(found, np.array([[-1.0], [1.0]])))[:, order[1]]
    np.testing.assert_allclose(chance, [0.018, 0.982], atol=0.1)


def test_gates_find_the_column_that_tells_the_noise(rng: np.random.Generator) -> None:
    """Of five columns the third; noise is five times as large on one side of it."""
    m = 1_500
    columns = rng.normal(size=(m, 5))
    errors = np.where(columns[:, 2] > 0.0, 1.5, 0.3) * rng.normal(size=(1, m))
    case = (errors, np.mean(errors**2, axis=1), np.zeros((1, m)), np.ones(m), columns)
    found = stack(*read(case), columns)
    slopes = np.abs(
        found.gates[1:, np.argmax(found.levels)] - found.gates[1:, np.argmin(found.levels)]
    )
    assert np.argmax(slopes) == 2
    assert np.delete(slopes, 2).max() < 0.2 * slopes[2]
    variance = np.exp(log_gates_of(found, columns)) @ found.levels * case[1]
    assert np.median(variance[columns[:, 2] > 0.5]) > 10.0 * np.median(
        variance[columns[:, 2] < -0.5]
    )


def test_likelihoods_against_a_grid(rng: np.random.Generator) -> None:
    logs, weights = -rng.gamma(1.0, size=(2, 150)), rng.uniform(0.5, 2.0, size=150)
    found = stack_likelihoods(logs, weights, max_iter=5_000, tol=1e-12)
    grid = np.linspace(0.0, 1.0, 2_001)[1:-1]
    mixed = np.logaddexp(logs[0] + np.log(grid)[:, None], logs[1] + np.log1p(-grid)[:, None])
    values = mixed @ weights / weights.sum()
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights[0] == pytest.approx(grid[np.argmax(values)], abs=1e-3)
    assert found.log_density == pytest.approx(values.max(), abs=1e-6)


def test_a_recipe_that_is_never_right_has_no_weight(rng: np.random.Generator) -> None:
    logs = np.stack([-rng.gamma(1.0, size=80), np.full(80, -50.0), np.full(80, -2_000.0)])
    found = stack_likelihoods(logs, np.ones(80))
    np.testing.assert_allclose(found.weights, [1.0, 0.0, 0.0], atol=1e-12)
    assert found.log_density == pytest.approx(np.mean(logs[0]))
