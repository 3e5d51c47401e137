"""Quantiles of weighted values: against repeated rows, and against NumPy where it has the same."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.tables.quantiles import weighted_quantiles

LEVELS = np.arange(17.0) / 16.0  # exact, so that NumPy does not miss the borders of rows


def by_numpy(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The middle of the two values that part the rows exactly, or that at the step."""
    return np.quantile(values, levels, method="averaged_inverted_cdf")


@pytest.mark.parametrize("n", [1, 2, 3, 12, 101])
def test_rows_that_count_once_against_numpy(n: int, rng: np.random.Generator) -> None:
    values = rng.normal(size=n)
    quantiles = weighted_quantiles(values, np.ones(n), LEVELS)
    np.testing.assert_allclose(quantiles, by_numpy(values, LEVELS), rtol=1e-15)


def test_a_weight_of_two_is_two_rows(rng: np.random.Generator) -> None:
    """In any order, with ties among the values."""
    for _ in range(5):
        values, counts = rng.integers(0, 8, size=20).astype(float), rng.integers(1, 5, size=20)
        repeated = rng.permutation(np.repeat(values, counts))
        quantiles = weighted_quantiles(values, counts.astype(float), LEVELS)
        np.testing.assert_array_equal(quantiles, by_numpy(repeated, LEVELS))


@pytest.mark.parametrize("unit", [1e-300, 1.0 / 3.0, 0.1, 1e300])
def test_the_unit_of_the_weights_does_not_matter(unit: float) -> None:
    """Also where a level falls on the border of two rows: sums of tenths are rounded."""
    values, counts = np.arange(10.0), np.array([1.0, 2, 1, 3, 1, 2, 2, 1, 4, 3])
    levels = np.arange(21.0) / 20.0
    expected = weighted_quantiles(values, counts, levels)
    np.testing.assert_array_equal(weighted_quantiles(values, unit * counts, levels), expected)


def test_the_middle_of_large_values_does_not_overflow() -> None:
    values, weights = np.array([-1.7e308, 1.6e308, 1.7e308]), np.array([1.0, 1.0, 2.0])
    quantiles = weighted_quantiles(values, weights, np.array([0.25, 0.5]))
    assert np.isfinite(quantiles).all()
    np.testing.assert_allclose(quantiles[1], 1.65e308, rtol=1e-15)
