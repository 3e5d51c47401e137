"""A fit and a prediction give the same on every array library, and nearly the same in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet._old.data.rows import build_rows
from bowtienet._old.inference import execution
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import initialize
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import default_model
from bowtienet._old.prediction.predictive import Predictive, predict
from tests._old import builders

HIDDEN = ((), (6,), (4, 3))
SINGLE_BOUND = 2e-3
"""Relative difference of the bound in float32: sums of squares lose seven digits of their terms."""
SINGLE_MEAN = 5e-3
"""Difference of predictive means in float32, in units of the targets' standard deviation."""


def fitted(
    library: Any, hidden: tuple[int, ...], dtype: str, family: str = "student_t"
) -> tuple[FitResult, Predictive]:
    """A short fit from the same start and its predictions, with arrays of `library`."""
    rng = np.random.default_rng(3)
    model = builders.fixed_model(hidden, family, gate_temperature=0.3)
    table = builders.random_rows(rng, model, 40)
    kind = getattr(library, dtype)
    arrays = (
        library.asarray(values, dtype=kind)
        for values in (table.inputs, table.targets, table.weights)
    )
    rows = build_rows(*arrays)
    factors = initialize(model, rows, 5, init="laplace")
    result = fit(model, rows, factors, max_iter=6, tol=0.0, block_size=15)
    return result, predict(
        result.model, result.factors, rows.inputs, propagation="variational", max_iterations=5
    )


@pytest.mark.parametrize(
    ("name", "hidden", "family"),
    [
        *(
            (name, hidden, "student_t")
            for name in ("torch", "array_api_strict")
            for hidden in HIDDEN
        ),
        *((name, (6,), "regularized_horseshoe") for name in ("torch", "jax.numpy")),
        ("jax.numpy", (6,), "student_t"),
        # half a minute of compiling
        pytest.param("jax.numpy", (4, 3), "student_t", marks=pytest.mark.slow),
    ],
)
def test_double_precision(name: str, hidden: tuple[int, ...], family: str) -> None:
    library = pytest.importorskip(name)
    result, new = fitted(library, hidden, "float64", family)
    expected, expected_new = fitted(np, hidden, "float64", family)
    np.testing.assert_allclose(result.elbo_history, expected.elbo_history, rtol=1e-9)
    assert type(new.mean) is type(library.asarray([0.0]))
    np.testing.assert_allclose(np.asarray(new.mean), expected_new.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        np.asarray(new.signal_variance), expected_new.signal_variance, rtol=1e-6
    )


@pytest.mark.parametrize(
    "name", ["numpy", "torch", pytest.param("jax.numpy", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("hidden", [(6,), (4, 3)])
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


def test_a_long_fit_in_single_precision_rises() -> None:
    """Sums in single precision would lower the bound within a dozen sweeps of such a fit."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1.7, 1.7, size=(300, 2))
    targets = np.sin(2.0 * inputs[:, :1]) + rng.normal(0.0, 0.1, size=(300, 1))
    model = default_model(build_architecture(2, (20,), 1), inputs, targets)
    start = initialize(model, build_rows(inputs, targets), 0)
    results = []
    for kind in (np.float32, np.float64):
        rows = build_rows(inputs.astype(kind), targets.astype(kind))
        results.append(fit(model, rows, start, max_iter=150, tol=0.0))
    single, double = results
    assert single.status is Status.ITERATION_LIMIT
    assert single.elbo_history[-1] == pytest.approx(double.elbo_history[-1], rel=SINGLE_BOUND)


def test_jax_without_double_precision_is_refused() -> None:
    jax = pytest.importorskip("jax")
    execution._compiled_block_pass.cache_clear()
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ValueError, match="jax_enable_x64"):
            fitted(jax.numpy, (6,), "float32")
    finally:
        jax.config.update("jax_enable_x64", True)
