"""Standardised rows: mean 0 and variance 1 in any unit, weights as repeated rows, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from bowtienet.tables.door import Table, open_features, open_rows
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
    scaled, plain = (
        standardize(learnt(unit * X), opened(unit * X)),
        standardize(learnt(X), opened(X)),
    )
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


def test_names_and_owners() -> None:
    X = pd.DataFrame(
        {
            "a": [1.0, None, 3.0],
            "b": [7.0] * 3,
            "c": list("xyz"),
            "d": pd.to_datetime(["2020-01-01", "2020-01-08", "2020-06-03"]),
        }
    )
    representation = learnt(X)
    season = ["d days", "d season sine", "d season cosine"]
    assert representation.names == ["a", "a missing", "c=x", "c=y", "c=z", *season]
    assert representation.owners.tolist() == [0, 0, 2, 2, 2, 3, 3, 3]
    assert standardize(representation, opened(X)).shape == (3, 8)
