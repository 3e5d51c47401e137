"""Legal but awkward data: every fit is finite, and so is every prediction, without a warning."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import INITS, initialize
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import default_model
from bowtienet._old.model.shrinkage import FAMILIES
from bowtienet._old.prediction.predictive import Predictive, predict
from bowtienet._old.representation.scaling import (
    fit_scaling,
    restore_deviation,
    restore_mean,
    standardize,
)

Table = tuple[np.ndarray, np.ndarray, np.ndarray | None]
settings_of_a_fit = pytest.mark.parametrize(
    ("family", "hidden"),
    [("laplace", (4,)), ("regularized_horseshoe", (4,)), ("student_t", (4, 3))],
    ids=str,
)
GOOD = {Status.CONVERGED, Status.ITERATION_LIMIT}


def smooth(rng: np.random.Generator, n: int = 20, n_inputs: int = 2) -> Table:
    inputs = rng.normal(size=(n, n_inputs))
    return inputs, np.sin(inputs[:, 0]) + 0.1 * rng.normal(size=n), None


def constant_columns(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng)
    return np.column_stack([inputs, np.full(20, 7.0), np.zeros(20)]), targets, None


def only_constant_columns(rng: np.random.Generator) -> Table:
    return np.full((20, 2), 3.0), rng.normal(size=20), None


def duplicated_columns(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng)
    return np.hstack([inputs, inputs, inputs]), targets, None


def nearly_duplicated_columns(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng)
    return np.hstack([inputs, inputs + 1e-9 * rng.normal(size=inputs.shape)]), targets, None


def one_row(rng: np.random.Generator) -> Table:
    return np.array([[1.0, -2.0]]), np.array([0.7]), None


def two_identical_rows(rng: np.random.Generator) -> Table:
    return np.array([[1.0, -2.0]] * 2), np.array([0.7, 0.7]), None


def two_rows_that_disagree(rng: np.random.Generator) -> Table:
    return np.array([[1.0, -2.0]] * 2), np.array([0.7, -5.0]), None


def more_inputs_than_rows(rng: np.random.Generator) -> Table:
    return smooth(rng, n=5, n_inputs=20)


def constant_target(rng: np.random.Generator) -> Table:
    return rng.normal(size=(20, 2)), np.full(20, 4.0), None


def single_column(rng: np.random.Generator) -> Table:
    return smooth(rng, n_inputs=1)


def binary_inputs(rng: np.random.Generator) -> Table:
    inputs = rng.integers(0, 2, size=(20, 3)).astype(float)
    return inputs, inputs[:, 0] * inputs[:, 1], None


def binary_target(rng: np.random.Generator) -> Table:
    inputs = rng.normal(size=(20, 2))
    return inputs, (inputs[:, 0] > 0.0).astype(float), None


def exact_line(rng: np.random.Generator) -> Table:
    inputs = rng.normal(size=(20, 2))
    return inputs, 1.0 + inputs @ [2.0, -1.0], None


def huge_outlier(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng)
    targets[3] = 1e12
    return inputs, targets, None


def outlying_input(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng)
    inputs[5, 0] = -1e12
    return inputs, targets, None


def weights_of_all_sizes(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng)
    return inputs, targets, np.logspace(-8, 8, 20)


def a_single_weighted_row(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng)
    return inputs, targets, np.eye(20)[4]


def of_size(unit: float) -> Callable[[np.random.Generator], Table]:
    def table(rng: np.random.Generator) -> Table:
        inputs, targets, _ = smooth(rng)
        return inputs * unit, targets * unit, None

    table.__name__ = f"values_of_size_{unit:g}"
    return table


def mixed_sizes(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng, n_inputs=3)
    return inputs * [1e-150, 1.0, 1e150], targets * 1e150, None


def two_outputs_one_constant(rng: np.random.Generator) -> Table:
    inputs, targets, _ = smooth(rng)
    return inputs, np.column_stack([targets, np.full(20, -3.0)]), None


CASES: list[Callable[[np.random.Generator], Table]] = [
    constant_columns,
    only_constant_columns,
    duplicated_columns,
    one_row,
    two_identical_rows,
    more_inputs_than_rows,
    constant_target,
    single_column,
    binary_inputs,
    huge_outlier,
    weights_of_all_sizes,
    of_size(1e-150),
    of_size(1e150),
    nearly_duplicated_columns,
    two_rows_that_disagree,
    binary_target,
    exact_line,
    outlying_input,
    a_single_weighted_row,
    mixed_sizes,
    two_outputs_one_constant,
]


def scaled_rows(table: Table) -> tuple[Rows, Any]:
    """The table standardised as a user would, and the scaling of its targets."""
    inputs, targets, weights = table
    targets = targets.reshape(len(targets), -1)
    raw = build_rows(inputs, targets, weights)
    inputs_scaling = fit_scaling(raw.inputs, raw.weights)
    targets_scaling = fit_scaling(raw.targets, raw.weights)
    rows = build_rows(
        standardize(inputs_scaling, raw.inputs),
        standardize(targets_scaling, raw.targets),
        raw.weights,
    )
    return rows, targets_scaling


def run(
    rows: Rows,
    hidden: tuple[int, ...],
    rng: np.random.Generator,
    scheme: str = "relu_network",
    max_iter: int = 30,
    **settings: Any,
) -> tuple[FitResult, Predictive]:
    architecture = build_architecture(rows.inputs.shape[1], hidden, rows.targets.shape[1])
    model = default_model(architecture, rows.inputs, rows.targets, **settings)
    start = initialize(model, rows, rng, init=scheme, start_iterations=50)
    result = fit(model, rows, start, max_iter=max_iter)
    elsewhere = np.vstack([rows.inputs, 10.0 * rows.inputs, np.zeros_like(rows.inputs[:1])])
    return result, predict(result.model, result.factors, elsewhere)


def assert_sound(result: FitResult, new: Predictive) -> None:
    history = result.elbo_history
    assert result.status in GOOD
    assert len(history) >= 1
    assert np.all(np.isfinite(history))
    assert all(b >= a - 1e-9 * max(abs(a), 1.0) for a, b in pairwise(history))
    for layer in result.factors.layers:
        assert np.all(np.isfinite(layer.weights.mean))
        assert np.all(np.isfinite(layer.weights.covariance))
        assert np.all(np.diagonal(layer.weights.covariance, axis1=-2, axis2=-1) > 0.0)
        assert np.all(np.isfinite(layer.noise_variance.scale))
        assert np.all(layer.noise_variance.scale > 0.0)
        for shrinkage in (layer.global_shrinkage, layer.local_shrinkage):
            scale = getattr(shrinkage, "scale", 1.0)
            assert np.all(np.isfinite(scale))
            assert np.all(np.asarray(scale) > 0.0)
    if result.factors.shared_covariance is not None:
        assert np.all(np.diagonal(result.factors.shared_covariance) > 0.0)
    for part in (new.mean, new.signal_variance, new.noise_variance):
        assert np.all(np.isfinite(part))
    assert np.all(new.signal_variance > 0.0)
    assert np.all(new.noise_variance > 0.0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@settings_of_a_fit
def test_the_fit_is_finite(
    case: Callable[[np.random.Generator], Table],
    family: str,
    hidden: tuple[int, ...],
    rng: np.random.Generator,
) -> None:
    rows, scaling = scaled_rows(case(rng))
    result, new = run(rows, hidden, rng, prior=family)
    assert_sound(result, new)
    assert np.all(np.isfinite(restore_mean(scaling, new.mean)))
    deviation = restore_deviation(scaling, np.sqrt(new.signal_variance + new.noise_variance))
    assert np.all(np.isfinite(deviation))
    assert np.all(deviation > 0.0)


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"student_t", "laplace"}))
@pytest.mark.parametrize(
    "case", [constant_target, one_row, duplicated_columns], ids=lambda case: case.__name__
)
def test_the_other_families(
    family: str, case: Callable[[np.random.Generator], Table], rng: np.random.Generator
) -> None:
    rows, _ = scaled_rows(case(rng))
    assert_sound(*run(rows, (4, 3), rng, prior=family, max_iter=10))


@pytest.mark.parametrize("gate_temperature", [1e-8, 1e-3, 10.0, 1e4])
@settings_of_a_fit
@pytest.mark.parametrize("case", [smooth, huge_outlier], ids=lambda case: case.__name__)
def test_low_and_high_temperatures(
    case: Callable[[np.random.Generator], Table],
    gate_temperature: float,
    family: str,
    hidden: tuple[int, ...],
    rng: np.random.Generator,
) -> None:
    rows, _ = scaled_rows(case(rng))
    assert_sound(*run(rows, hidden, rng, prior=family, gate_temperature=gate_temperature))


@pytest.mark.parametrize("family", ["student_t", "gaussian"])
@pytest.mark.parametrize("hidden", [(), (1,), (1, 1), (5, 1)])
def test_layers_of_width_one(
    hidden: tuple[int, ...], family: str, rng: np.random.Generator
) -> None:
    rows, _ = scaled_rows(smooth(rng, n_inputs=1))
    assert_sound(*run(rows, hidden, rng, prior=family))


@pytest.mark.parametrize("scheme", sorted(set(INITS) - {"relu_network"}))
@pytest.mark.parametrize(
    "case",
    [only_constant_columns, one_row, constant_target, weights_of_all_sizes, huge_outlier],
    ids=lambda case: case.__name__,
)
def test_random_starts(
    scheme: str, case: Callable[[np.random.Generator], Table], rng: np.random.Generator
) -> None:
    rows, _ = scaled_rows(case(rng))
    assert_sound(*run(rows, (4, 3), rng, scheme=scheme))


@pytest.mark.parametrize(
    "family", ["student_t", "laplace", "horseshoe", "regularized_horseshoe", "gaussian"]
)
def test_a_long_fit_to_nothing_stays_finite(family: str, rng: np.random.Generator) -> None:
    """All weights shrink towards zero and EM follows them: neither may run to 0 or NaN."""
    rows, _ = scaled_rows(constant_target(rng))
    result, new = run(rows, (4,), rng, prior=family, max_iter=300)
    assert_sound(result, new)


def test_more_layers_and_wider_than_the_data(rng: np.random.Generator) -> None:
    rows, _ = scaled_rows(smooth(rng, n=6))
    assert_sound(*run(rows, (30, 10, 5), rng, max_iter=10))


def test_the_unit_of_the_data_does_not_matter(rng: np.random.Generator) -> None:
    """1e-150, 1 and 1e150 are the same rows after scaling, hence the same fit."""
    table = smooth(rng)
    bounds = []
    for unit in (1e-150, 1.0, 1e150):
        rows, _ = scaled_rows((table[0] * unit, table[1] * unit, None))
        bounds.append(run(rows, (4,), np.random.default_rng(0), max_iter=5)[0].elbo_history[-1])
    np.testing.assert_allclose(bounds, bounds[1], rtol=1e-6)
