"""Standardised rows: mean 0 and variance 1 in any unit; quantiles; weights as repeated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from bowtienet.tables.door import Table, open_features, open_rows
from bowtienet.tables.quantiles import weighted_quantiles
from bowtienet.tables.representation import (
    FARTHEST,
    Representation,
    fit_scaling,
    learn_representation,
    standardize,
    to_scale,
)


def opened(X: Any) -> Table:
    return open_features(BaseEstimator(), X, reset=True)


def learnt(X: Any, weights: Any = None) -> Representation:
    rows = open_rows(BaseEstimator(), X, np.zeros(len(X)), weights)
    return learn_representation(rows, 30)[0]


def test_mean_and_variance_of_training(rng: np.random.Generator) -> None:
    X = rng.gamma(1.0, [2.0, 30.0], size=(50, 2)) + np.array([0.0, 1e4])
    weights = rng.uniform(0.2, 3.0, size=50)
    values = standardize(learnt(X, weights), opened(X))
    np.testing.assert_allclose(np.average(values, axis=0, weights=weights), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.average(values**2, axis=0, weights=weights), 1.0, rtol=1e-10)
    new = X[:5] + rng.uniform(size=(5, 2))
    mean = np.average(X, axis=0, weights=weights)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    expected = (new - mean) / deviation
    np.testing.assert_allclose(standardize(learnt(X, weights), opened(new)), expected, rtol=1e-9)


def test_a_row_of_weight_two_is_two_rows(rng: np.random.Generator) -> None:
    counts = 1 + np.arange(30) % 3
    X = pd.DataFrame({"a": rng.normal(size=30), "b": rng.choice(list("xyz"), size=30)})
    X.loc[::7, "a"] = np.nan
    weighted, repeated = learnt(X, counts.astype(float)), learnt(X.loc[X.index.repeat(counts)])
    assert weighted.columns == repeated.columns
    for a, b in zip(weighted.scaling, repeated.scaling, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e-3, 1e150, 1e300, 1.7e308 / 10.0])
def test_units_do_not_matter(unit: float, rng: np.random.Generator) -> None:
    X = rng.uniform(-3.0, 3.0, size=(20, 2)) + np.array([0.0, 7.0])
    scaled = standardize(learnt(unit * X), opened(unit * X))
    plain = standardize(learnt(X), opened(X))
    np.testing.assert_allclose(scaled, plain, rtol=1e-11)


def test_far_values_are_held() -> None:
    X = np.array([[0.0], [1.0], [2.0]])
    with pytest.warns(UserWarning, match="far outside.*'x0'"):
        values = standardize(learnt(X), opened(np.array([[1e300], [-1e9], [3.0]])))
    assert values[:2, 0].tolist() == [FARTHEST, -FARTHEST]
    assert values[2, 0] == pytest.approx(2.0 / np.sqrt(2.0 / 3.0))


@pytest.mark.parametrize("value", [0.0, 5.0, 0.1, -1e200, -51_224.35352388])
def test_a_constant_column_is_zero_exactly_whatever_the_weights(value: float) -> None:
    values = np.full((20, 1), value)
    scaling = fit_scaling(values, np.linspace(1e-4, 1e-3, 20))
    assert scaling[1][0] == (abs(value) or 1.0)
    np.testing.assert_array_equal(to_scale(scaling, values), 0.0)


# Quantiles of weighted values


LEVELS = np.arange(17.0) / 16.0  # exact, so that NumPy does not miss the borders of rows


def by_numpy(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The middle of the two values that part the rows exactly, or that at the step."""
    return np.quantile(values, levels, method="averaged_inverted_cdf")


def test_quantiles_of_weighted_values(rng: np.random.Generator) -> None:
    """A weight of two is two rows, in any order, with ties; of weight one as NumPy has it."""
    for n in (1, 2, 3, 12, 101):
        values, counts = rng.integers(0, 8, size=n).astype(float), rng.integers(1, 5, size=n)
        repeated = rng.permutation(np.repeat(values, counts))
        quantiles = weighted_quantiles(values, counts.astype(float), LEVELS)
        np.testing.assert_array_equal(quantiles, by_numpy(repeated, LEVELS))
        values = rng.normal(size=n)
        quantiles = weighted_quantiles(values, np.ones(n), LEVELS)
        np.testing.assert_allclose(quantiles, by_numpy(values, LEVELS), rtol=1e-15)


@pytest.mark.parametrize("unit", [1e-300, 1.0 / 3.0, 0.1, 1e300])
def test_units_of_weights_do_not_matter(unit: float) -> None:
    """Also where a level falls on the border of two rows: sums of tenths are rounded."""
    values, counts = np.arange(10.0), np.array([1.0, 2, 1, 3, 1, 2, 2, 1, 4, 3])
    levels = np.arange(21.0) / 20.0
    expected = weighted_quantiles(values, counts, levels)
    np.testing.assert_array_equal(weighted_quantiles(values, unit * counts, levels), expected)


def test_quantiles_of_large_values_do_not_overflow() -> None:
    values, weights = np.array([-1.7e308, 1.6e308, 1.7e308]), np.array([1.0, 1.0, 2.0])
    quantiles = weighted_quantiles(values, weights, np.array([0.25, 0.5]))
    assert np.isfinite(quantiles).all()
    np.testing.assert_allclose(quantiles[1], 1.65e308, rtol=1e-15)
