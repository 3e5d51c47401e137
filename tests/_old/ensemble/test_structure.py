"""Which columns matter: regressions, draws of columns, tests, and what they say together."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from bowtienet._old.ensemble.conditional_columns import build_columns, draw_column, fit_conditional
from bowtienet._old.ensemble.left_out_ridge import PENALTIES, fit_ridge, without_fit
from bowtienet._old.ensemble.randomization_test import (
    ENOUGH_LARGE,
    Effects,
    false_discoveries_controlled,
    randomization_p_value,
    steps_of,
)
from bowtienet._old.ensemble.screened_regression import build_shapes, regress_without
from bowtienet._old.ensemble.structure import Structure, at_rate, check_structure, find_structure

RNG = np.random.default_rng(500)
ROWS, COLUMNS = 150, 6
X = RNG.normal(size=(ROWS, COLUMNS))
Y = np.sin(2.0 * X[:, 1]) + X[:, 2] * X[:, 4] + 0.3 * RNG.normal(size=ROWS)


def found(x: np.ndarray = X, y: np.ndarray = Y, rate: float = 0.05, **changes: object) -> Structure:
    names = [f"x{place}" for place in range(x.shape[1])]
    settings = {"owners": range(x.shape[1]), "weights": np.ones(len(x)), "names": names, "seed": 0}
    settings |= changes
    return find_structure(x, targets=y.reshape(len(x), -1), false_discovery_rate=rate, **settings)


# Ridge regression


@pytest.mark.parametrize("n_features", [3, 40])
def test_left_out_errors_are_those_of_regressions_without_the_row(n_features: int) -> None:
    features = RNG.normal(size=(25, n_features))
    targets = features[:, :1] + RNG.normal(size=(25, 1))
    ridge = fit_ridge(features, targets)
    # The penalty that was chosen, back from the shrinkage of the largest direction.
    largest = np.linalg.eigvalsh((features - features.mean(0)).T @ (features - features.mean(0)))[
        -1
    ]
    penalty = largest * (1.0 / ridge.shrinkage.max() - 1.0)
    assert np.min(np.abs(penalty / (25 * PENALTIES) - 1.0)) < 1e-6
    design = np.column_stack([np.ones(25), features])
    shrink = np.diag([0.0] + [penalty] * n_features)
    for row in (0, 11):
        kept = np.arange(25) != row
        # Centred on all rows, as the closed form is.
        centred = design - np.concatenate([[0.0], features.mean(axis=0)])
        a, t = centred[kept], targets[kept]
        coefficients = np.linalg.solve(a.T @ a + shrink, a.T @ t)
        error = targets[row] - centred[row] @ coefficients
        assert_allclose(ridge.left_out_errors[row], error, rtol=1e-6)


def test_what_a_regression_leaves_of_its_own_target_is_its_residual() -> None:
    features, targets = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 1))
    targets -= targets.mean()
    ridge = fit_ridge(features, targets)
    assert_allclose(without_fit(ridge, targets[:, 0]), (targets - ridge.fitted)[:, 0])


# Regressions without a column


def test_a_column_that_is_not_chosen_could_as_well_not_exist() -> None:
    columns = build_columns(X, range(COLUMNS), COLUMNS)
    shapes, target = build_shapes(columns), Y - Y.mean()
    whole = regress_without(columns, shapes, target)
    assert {1, 2, 4} <= set(whole.chosen)
    for column in set(range(COLUMNS)) - set(whole.chosen):
        again = regress_without(columns, shapes, target, left_out=column)
        assert again.chosen == whole.chosen
        assert_array_equal(again.predicted, whole.predicted)


def test_a_column_that_is_left_out_has_no_part() -> None:
    columns = build_columns(X, range(COLUMNS), COLUMNS)
    other = X.copy()
    other[:, 1] = RNG.normal(size=ROWS)
    changed = build_columns(other, range(COLUMNS), COLUMNS)
    first, second = (
        regress_without(some, build_shapes(some), Y - Y.mean(), left_out=1)
        for some in (columns, changed)
    )
    assert first.chosen == second.chosen
    assert_array_equal(first.predicted, second.predicted)


# Draws


def test_draws_of_a_number_have_its_conditional_mean_and_spread() -> None:
    x = RNG.normal(size=(2000, 3))
    x[:, 2] = 0.8 * x[:, 0] + 0.6 * RNG.normal(size=2000)
    columns = build_columns(x, range(3), 3)
    drawn = draw_column(fit_conditional(columns, 2), 1, 400, np.random.default_rng(0))[0]
    # Deviations: of the regression 0.6 / sqrt(2000) = 0.013 for each of three coefficients, of the
    # mean of 400 draws 0.03; four of them in all rows together would be rare.
    assert np.max(np.abs(drawn.mean(axis=0) - 0.8 * columns.scores[:, 0])) < 0.25
    assert drawn.std(axis=0).mean() == pytest.approx(0.6, abs=0.04)


def test_draws_of_categories_have_their_shares_and_come_together() -> None:
    group = RNG.integers(0, 2, size=1000)
    level = np.where(RNG.random(1000) < 0.8, group, 2)
    x = np.column_stack([group, *(level == value for value in range(3))]).astype(float)
    columns = build_columns(x, [0, 1, 1, 1], 2)
    drawn = draw_column(fit_conditional(columns, 1), 3, 200, np.random.default_rng(0))
    is_level = drawn > 0.0
    assert_array_equal(is_level.sum(axis=0), 1)
    # Standard error of a share over 200 x 500 draws: 0.0013, of its regression 0.02.
    assert is_level[1][:, group == 1].mean() == pytest.approx(0.8, abs=0.08)
    assert is_level[0][:, group == 1].mean() == pytest.approx(0.0, abs=0.02)


def test_missing_values_are_drawn_with_the_numbers() -> None:
    number, other = RNG.normal(size=800), RNG.normal(size=800)
    missing = RNG.random(800) < 0.25
    x = np.column_stack([other, np.where(missing, 0.0, number + other), missing]).astype(float)
    columns = build_columns(x, [0, 1, 1], 2)
    drawn = draw_column(fit_conditional(columns, 1), 2, 300, np.random.default_rng(0))
    absent = drawn[1] > 0.0
    assert absent.mean() == pytest.approx(missing.mean(), abs=0.01)
    assert np.unique(drawn[0][absent]).size == 1
    assert np.unique(drawn[0][~absent]).size > 1000


# p-values


def test_p_values_of_columns_without_effect_are_uniform() -> None:
    """400 tests, a Kolmogorov distance that chance exceeds once in a thousand times; p-values are
    discrete, and conservative by at most a tenth where draws end early."""
    residuals = RNG.standard_t(3.0, size=60)
    effects = Effects(steps=(steps_of(RNG.normal(size=60)),), partners=RNG.normal(size=(60, 4)))

    def draw(count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((1, count, 60), dtype=np.float32)

    p_values = [
        randomization_p_value(
            draw(1, np.random.default_rng((1, seed)))[:, 0],
            draw,
            residuals - residuals.mean(),
            effects,
            np.random.default_rng((2, seed)),
            most_draws=400,
        )
        for seed in range(400)
    ]
    assert stats.kstest(p_values, "uniform", alternative="greater").pvalue > 1e-3
    assert np.mean(p_values) < 0.62


def test_a_strong_effect_has_the_smallest_p_value() -> None:
    values = RNG.normal(size=100)
    p_value = randomization_p_value(
        values[None].astype(np.float32),
        lambda count, rng: rng.standard_normal((1, count, 100), dtype=np.float32),
        values**2 - np.mean(values**2),
        Effects(steps=(steps_of(values),), partners=np.empty((100, 0))),
        np.random.default_rng(0),
        most_draws=1000,
    )
    assert p_value == pytest.approx(1.0 / 1001.0)
    assert ENOUGH_LARGE > 1


def test_discoveries_are_those_of_benjamini_and_hochberg() -> None:
    p_values = np.array([0.6, 0.001, 0.03, 0.012, 0.9])
    for rate in (0.01, 0.05, 0.2):
        expected = stats.false_discovery_control(p_values) <= rate
        assert_array_equal(false_discoveries_controlled(p_values, rate), expected)


# All together


def test_waves_and_products_are_found_and_named() -> None:
    structure = found()
    assert set(structure.selected_names) == {"x1", "x2", "x4"}
    assert_array_equal(structure.variance_share > 0.05, [False, True, True, False, True, False])
    text = str(structure)
    assert "3 of 6 columns matter, false discovery rate at most 0.05" in text
    assert "conditional randomisation" in text
    assert all(f"\n{name}" in text for name in structure.selected_names)


def test_one_seed_gives_the_same_answer() -> None:
    assert_array_equal(found().p_values, found().p_values)


def test_another_rate_needs_no_other_tests() -> None:
    structure = found(rate=0.05)
    changed = at_rate(structure, 0.9)
    assert changed.false_discovery_rate == 0.9
    assert changed.selected.sum() >= structure.selected.sum()
    assert_array_equal(changed.p_values, structure.p_values)


def test_a_column_that_never_varies_is_not_selected() -> None:
    x = np.column_stack([X, np.ones(ROWS)])
    structure = found(x)
    assert structure.p_values[-1] == 1.0
    assert set(structure.selected_names) == {"x1", "x2", "x4"}


def test_of_several_targets_one_is_enough() -> None:
    structure = found(y=np.column_stack([X[:, 0] + 0.1 * Y, X[:, 5] + RNG.normal(size=ROWS)]))
    assert {"x0", "x5"} <= set(structure.selected_names)


@pytest.mark.parametrize("target", [np.ones(ROWS), np.arange(ROWS) % 2.0])
def test_nothing_is_found_in_targets_without_columns(target: np.ndarray) -> None:
    assert found(y=target, rate=0.01).selected_names == ()


def test_one_column_alone_can_be_tested() -> None:
    assert found(X[:, 1:2]).selected_names == ("x0",)


def test_a_structure_of_other_columns_is_refused() -> None:
    structure = found()
    check_structure(structure, COLUMNS)
    with pytest.raises(ValueError, match="not one of 5 columns"):
        check_structure(structure, 5)
