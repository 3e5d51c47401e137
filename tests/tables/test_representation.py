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

UNITS = [1e-300, 1e-150, 1e-3, 1e150, 1e300]


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
    for name in ("center", "scale"):
        a, b = getattr(weighted.scaling, name), getattr(repeated.scaling, name)
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("unit", UNITS)
def test_units_do_not_matter(unit: float, rng: np.random.Generator) -> None:
    X, weights = rng.uniform(-3.0, 3.0, size=(20, 2)), rng.uniform(0.1, 1.0, size=20)
    X[:, 1] += 7.0
    scaling, plain = fit_scaling(unit * X, weights), fit_scaling(X, weights)
    np.testing.assert_allclose(scaling.center, unit * plain.center, rtol=1e-12)
    np.testing.assert_allclose(scaling.scale, unit * plain.scale, rtol=1e-12)
    np.testing.assert_allclose(to_scale(scaling, unit * X), to_scale(plain, X), rtol=1e-11)
    np.testing.assert_allclose(
        standardize(learnt(unit * X), opened(unit * X)),
        standardize(learnt(X), opened(X)),
        rtol=1e-11,
    )


def test_the_largest_doubles() -> None:
    most = np.finfo(float).max
    shape = np.array([[-1.0], [1.0], [1.0], [0.9]])
    values = standardize(learnt(most * shape), opened(most * shape))
    np.testing.assert_allclose(values, (shape - shape.mean()) / shape.std(), rtol=1e-12)


def test_far_values_are_held() -> None:
    X = np.array([[0.0], [1.0], [2.0]])
    with pytest.warns(UserWarning, match="far outside.*'x0'"):
        values = standardize(learnt(X), opened(np.array([[1e300], [-1e9], [3.0]])))
    assert values[:2, 0].tolist() == [FARTHEST, -FARTHEST]
    assert values[2, 0] == pytest.approx(2.0 / np.sqrt(2.0 / 3.0))


@pytest.mark.parametrize("value", [0.0, 5.0, 0.1, -1e200])
def test_a_constant_column_is_zero(value: float) -> None:
    scaling = fit_scaling(np.full((7, 1), value), np.linspace(0.1, 1.0, 7))
    np.testing.assert_allclose(scaling.center, value, rtol=1e-15)
    assert scaling.scale[0] == (abs(value) or 1.0)
    np.testing.assert_allclose(to_scale(scaling, np.full((2, 1), value)), 0.0, atol=1e-15)


def test_a_constant_column_is_zero_exactly_whatever_the_weights() -> None:
    values, weights = np.full((20, 1), -51_224.35352388), np.linspace(1e-4, 1e-3, 20)
    np.testing.assert_array_equal(to_scale(fit_scaling(values, weights), values), 0.0)


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


def test_a_missing_value_is_the_typical_row(rng: np.random.Generator) -> None:
    X = rng.normal(size=(21, 2))
    representation = learnt(X)
    row = np.array([[np.nan, 0.3]])
    typical = np.array([[np.median(X[:, 0]), 0.3]])
    np.testing.assert_array_equal(
        standardize(representation, opened(row)), standardize(representation, opened(typical))
    )
