"""Predictive moments by variational propagation: shapes, parts, limits, and the truth on toys."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.distributions import inverse_gamma
from bowtienet._old.inference import execution
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.elbo import elbo
from bowtienet._old.inference.global_step import update_shared_covariance
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.local_step import initialize_local, local_step, settle
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.statistics import block_statistics
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import build_model, default_model
from bowtienet._old.posterior.factors import GlobalFactors, LocalMemory
from bowtienet._old.prediction import predictive
from bowtienet._old.prediction.predictive import without_targets

predict = partial(predictive.predict, propagation="variational")

NOISE = 0.1
ROUNDING = 1e-7
"""Blocks of other sizes round differently, and the iteration enlarges that: 3e-9 was seen."""


def truth(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(2.0 * x[:, 0]), 0.5 * np.abs(x[:, 0])])


def fitted(
    hidden: tuple[int, ...],
    n_outputs: int = 1,
    n: int = 150,
    start: int | None = None,
    **settings: Any,
) -> tuple[FitResult, Rows]:
    rng = np.random.default_rng(11)
    inputs = rng.uniform(-2.0, 2.0, size=(n, 1))
    targets = truth(inputs)[:, :n_outputs] + NOISE * rng.normal(size=(n, n_outputs))
    rows = build_rows(inputs, targets)
    settings = {"gate_temperature": 0.03, **settings}
    model = default_model(build_architecture(1, hidden, n_outputs), inputs, targets, **settings)
    factors = initialize(model, rows, rng if start is None else start)
    return fit(model, rows, factors, max_iter=60), rows


@pytest.fixture(scope="module", params=[(), (10,), (8, 5), (6, 4, 5)], ids=str)
def any_fit(request: pytest.FixtureRequest) -> FitResult:
    return fitted(request.param, n_outputs=2, n=60)[0]


@pytest.fixture(scope="module", params=[(15,), (10, 6)], ids=str)
def good_fit(request: pytest.FixtureRequest) -> tuple[FitResult, Rows]:
    return fitted(request.param)


@pytest.mark.parametrize("n", [1, 33])
def test_shapes_and_signs(any_fit: FitResult, n: int, rng: np.random.Generator) -> None:
    new = predict(any_fit.model, any_fit.factors, rng.normal(size=(n, 1)))
    for part in (new.mean, new.signal_variance, new.noise_variance):
        assert part.shape == (n, 2)
        assert np.all(np.isfinite(part))
    assert np.all(new.signal_variance > 0.0)
    assert np.all(new.noise_variance > 0.0)


def test_blocks_do_not_matter(
    any_fit: FitResult, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly for a fixed number of steps; a block's own stopping moves them within tolerance."""
    inputs = rng.normal(size=(40, 1))
    fixed: dict[str, Any] = {"tolerance": 0.0, "max_iterations": 7}
    whole = predict(any_fit.model, any_fit.factors, inputs, **fixed)
    settled = predict(any_fit.model, any_fit.factors, inputs)
    monkeypatch.setattr(execution, "BLOCK_BYTES", 1)  # blocks of 16 rows
    parts = predict(any_fit.model, any_fit.factors, inputs, **fixed)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(parts.signal_variance, whole.signal_variance, rtol=ROUNDING)
    own = predict(any_fit.model, any_fit.factors, inputs)
    assert np.max(np.abs(own.mean - settled.mean)) < 0.05


def test_rows_are_predicted_apart(any_fit: FitResult, rng: np.random.Generator) -> None:
    inputs, order = rng.normal(size=(20, 1)), rng.permutation(20)
    fixed: dict[str, Any] = {"tolerance": 0.0, "max_iterations": 7}
    first = predict(any_fit.model, any_fit.factors, inputs, **fixed)
    shuffled = predict(any_fit.model, any_fit.factors, inputs[order], **fixed)
    np.testing.assert_allclose(shuffled.mean, first.mean[order], rtol=1e-9, atol=1e-10)


def test_the_start_of_the_shared_covariance_does_not_matter(any_fit: FitResult) -> None:
    """Prediction puts its own in: what training left there must not leak into new rows."""
    if any_fit.factors.shared_covariance is None:
        return
    other = replace(any_fit.factors, shared_covariance=7.0 * any_fit.factors.shared_covariance)
    inputs = np.linspace(-1.0, 1.0, 5)[:, None]
    np.testing.assert_array_equal(
        predict(any_fit.model, any_fit.factors, inputs).mean,
        predict(any_fit.model, other, inputs).mean,
    )


def local_bounds(
    result: FitResult, factors: GlobalFactors, inputs: np.ndarray, steps: int
) -> tuple[list[float], np.ndarray]:
    """Bound of the local factors after each training-code step without targets, and E[y]."""
    memory = initialize_local(result.model, factors, inputs)
    bounds = []
    for _ in range(steps):
        local, moments = local_step(result.model, factors, inputs, None, memory)
        memory = LocalMemory(gate_probability=local.gate_probability, tilt=local.tilt[1:])
        statistics = block_statistics(
            local, moments, np.zeros((len(inputs), 2)), np.ones(len(inputs))
        )
        terms = elbo(result.model, factors, statistics)
        bounds.append(float(to_numpy(terms.activations + terms.gates + terms.polya_gamma)))
    return bounds, moments.inputs[-1] @ factors.layers[-1].weights.mean.T


def test_prediction_is_the_local_step_without_targets(any_fit: FitResult) -> None:
    inputs = np.linspace(-2.5, 2.5, 15)[:, None]
    bounds, mean = local_bounds(any_fit, without_targets(any_fit.factors), inputs, 6)
    assert all(b >= a - 1e-9 * max(1.0, abs(a)) for a, b in pairwise(bounds))
    new = predict(any_fit.model, any_fit.factors, inputs, tolerance=0.0, max_iterations=6)
    np.testing.assert_allclose(new.mean, mean, rtol=1e-10, atol=1e-12)


def test_no_message_is_the_limit_of_a_useless_output(any_fit: FitResult) -> None:
    """With an output noise of 1e12 the step with targets says the same as the one without."""
    if not any_fit.model.architecture.hidden:
        return
    inputs = np.linspace(-2.0, 2.0, 9)[:, None]
    output = any_fit.factors.layers[-1]
    noise = replace(output.noise_variance, scale=output.noise_variance.scale * 1e12)
    noisy = update_shared_covariance(
        replace(
            any_fit.factors,
            layers=(*any_fit.factors.layers[:-1], replace(output, noise_variance=noise)),
        )
    )
    memory = initialize_local(any_fit.model, noisy, inputs)
    _, with_targets = local_step(any_fit.model, noisy, inputs, np.ones((9, 2)), memory)
    silent = without_targets(any_fit.factors)
    _, without = local_step(any_fit.model, silent, inputs, None, memory)
    np.testing.assert_allclose(with_targets.inputs[-1], without.inputs[-1], rtol=1e-5, atol=1e-7)


def test_a_tighter_tolerance_is_nearer_to_the_fixed_point(any_fit: FitResult) -> None:
    inputs = np.linspace(-2.0, 2.0, 7)[:, None]
    factors = without_targets(any_fit.factors)
    _, last = settle(any_fit.model, factors, inputs, None, 0.0, 200)
    errors = []
    for tolerance in (1e-2, 1e-9):
        _, moments = settle(any_fit.model, factors, inputs, None, tolerance, 200)
        errors.append(float(np.max(np.abs(moments.inputs[-1] - last.inputs[-1]))))
    assert errors[1] <= errors[0]
    assert errors[1] < 1e-2


def test_the_mean_is_close_to_the_truth(good_fit: tuple[FitResult, Rows]) -> None:
    """Root mean squared error against the noiseless curve below the noise itself, 0.1.

    With 150 rows and some 20 effective parameters the error bar of the curve is about 0.04.
    """
    result, _ = good_fit
    inputs = np.linspace(-1.9, 1.9, 100)[:, None]
    new = predict(result.model, result.factors, inputs)
    error = np.sqrt(np.mean((new.mean - truth(inputs)[:, :1]) ** 2))
    assert error < NOISE


def test_the_total_variance_is_honest(good_fit: tuple[FitResult, Rows]) -> None:
    """New targets within two deviations: about 95 %; 400 of them, so 85 % is 9 sigma away."""
    result, _ = good_fit
    rng = np.random.default_rng(5)
    inputs = rng.uniform(-1.9, 1.9, size=(400, 1))
    targets = truth(inputs)[:, :1] + NOISE * rng.normal(size=(400, 1))
    new = predict(result.model, result.factors, inputs)
    deviation = np.sqrt(new.signal_variance + new.noise_variance)
    assert np.mean(np.abs(targets - new.mean) < 2.0 * deviation) > 0.85


@pytest.mark.parametrize("hidden", [(15,), (10, 6)], ids=str)
def test_less_is_known_far_from_the_data(hidden: tuple[int, ...]) -> None:
    """On the mean over five starts: a deep network whose units are all closed on one side is flat
    there, and which start ends so depends on rounding."""
    near, far = [], []
    for seed in range(5):
        result, _ = fitted(hidden, start=seed)
        inside = predict(result.model, result.factors, np.linspace(-1.5, 1.5, 30)[:, None])
        outside = predict(result.model, result.factors, np.array([[-12.0], [12.0]]))
        near.append(np.median(inside.signal_variance))
        far.append(outside.signal_variance)
    assert np.all(np.mean(far, axis=0) > 3.0 * np.mean(near))


def test_an_infinite_noise_mean_is_said_so() -> None:
    """E[eta²] does not exist for a concentration of at most 1."""
    model = build_model(build_architecture(1, (), 1), output_noise=(0.5, 1.0))
    rows = build_rows([[1.0]], [1.0])
    factors = initialize(model, rows, np.random.default_rng(0))
    assert np.all(np.isinf(inverse_gamma.mean(factors.layers[-1].noise_variance)))
    assert np.all(np.isinf(predict(model, factors, [[0.0]]).noise_variance))


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("inputs", np.ones((3, 2))),
        ("inputs", np.array([[np.nan]])),
        ("max_iterations", 0),
        ("n_threads", 1.5),
        ("tolerance", float("nan")),
        ("propagation", "sampling"),
    ],
)
def test_bad_arguments_are_named(name: str, bad: Any) -> None:
    result, rows = fitted((3,), n=10)
    with pytest.raises(ValueError, match=name):
        predict(result.model, result.factors, **{"inputs": rows.inputs, name: bad})


def test_factors_of_another_model() -> None:
    result, rows = fitted((3,), n=10)
    with pytest.raises(ValueError, match="factors"):
        predict(build_model(build_architecture(1, (4,), 1)), result.factors, rows.inputs)


def test_no_hidden_layer_in_closed_form(rng: np.random.Generator) -> None:
    """E[y] = m'x~ and Var[z] = x~'B x~."""
    result, _ = fitted((), n_outputs=2)
    inputs = rng.normal(size=(6, 1))
    design = np.column_stack([np.ones(6), inputs])
    weights = result.factors.layers[0].weights
    new = predict(result.model, result.factors, inputs)
    np.testing.assert_allclose(new.mean, design @ weights.mean.T, rtol=1e-12)
    for row, x in enumerate(design):
        for output in range(2):
            expected = x @ weights.covariance[output] @ x
            assert new.signal_variance[row, output] == pytest.approx(expected, rel=1e-10)
