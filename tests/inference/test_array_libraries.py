"""A fit and a prediction give the same on every array library, and nearly the same in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet.data.rows import build_rows
from bowtienet.inference.coordinate_ascent import FitResult, fit
from bowtienet.posterior.initialize import initialize
from bowtienet.prediction.predictive import Predictive, predict
from tests import builders

LIBRARIES = ("numpy", "jax.numpy", "torch", "array_api_strict")
HIDDEN = ((), (6,), (4, 3))
SINGLE_BOUND = 2e-3
"""Relative difference of the bound in float32: sums of squares lose seven digits of their terms."""
SINGLE_MEAN = 5e-3
"""Difference of predictive means in float32, in units of the targets' standard deviation."""


def fitted(library: Any, hidden: tuple[int, ...], dtype: str) -> tuple[FitResult, Predictive]:
    """A short fit from the same start and its predictions, with arrays of `library`."""
    rng = np.random.default_rng(3)
    model = builders.fixed_model(hidden, temperature=0.3)
    table = builders.random_rows(rng, model, 40)
    kind = getattr(library, dtype)
    arrays = (
        library.asarray(values, dtype=kind)
        for values in (table.inputs, table.targets, table.weights)
    )
    rows = build_rows(*arrays)
    factors = initialize(model, rows, 5, scheme="laplace")
    result = fit(model, rows, factors, max_sweeps=6, tolerance=0.0, block_size=15)
    return result, predict(result.model, result.factors, rows.inputs, max_iterations=5)


@pytest.mark.parametrize("name", LIBRARIES[1:])
@pytest.mark.parametrize("hidden", HIDDEN)
def test_double_precision(name: str, hidden: tuple[int, ...]) -> None:
    library = pytest.importorskip(name)
    result, new = fitted(library, hidden, "float64")
    expected, expected_new = fitted(np, hidden, "float64")
    np.testing.assert_allclose(result.elbo_history, expected.elbo_history, rtol=1e-9)
    assert type(new.mean) is type(library.asarray([0.0]))
    np.testing.assert_allclose(np.asarray(new.mean), expected_new.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        np.asarray(new.signal_variance), expected_new.signal_variance, rtol=1e-6
    )


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_single_precision(name: str, hidden: tuple[int, ...]) -> None:
    library = pytest.importorskip(name)
    result, new = fitted(library, hidden, "float32")
    expected, expected_new = fitted(np, hidden, "float64")
    bounds, exact = np.array(result.elbo_history), np.array(expected.elbo_history)
    assert np.max(np.abs(bounds - exact) / np.maximum(np.abs(exact), 1.0)) < SINGLE_BOUND
    assert np.asarray(new.mean).dtype == np.float32
    assert np.max(np.abs(np.asarray(new.mean) - expected_new.mean)) < SINGLE_MEAN


def test_factors_stay_in_double_precision() -> None:
    result, _ = fitted(np, (4, 3), "float32")
    for layer in result.factors.layers:
        assert layer.weights.mean.dtype == np.float64
        assert layer.noise_variance.scale.dtype == np.float64
