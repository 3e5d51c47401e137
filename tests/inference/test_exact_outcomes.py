"""Outcomes without hidden layers, where the evidence is an integral in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

from bowtienet.inference.ascend import Ascent, ascend
from bowtienet.model import Prior
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import BowTieModel, Rows, build_model
from bowtienet.outcomes import GAUSSIAN, Binary, Outcome, StudentT
from bowtienet.posterior.initialize import around, initialize

VARIANCE = 1.5
"""Of the prior of the weight; that of the bias is 1.3."""


def linear_model(outcome: Outcome, output_noise: tuple[float, float] = (2.0, 0.1)) -> BowTieModel:
    return build_model(
        build_architecture(1, (), 1),
        prior=Prior("gaussian", delta_global=VARIANCE**0.5, delta_local=1.0),
        bias_variance=1.3,
        output_noise=output_noise,
        outcome=outcome,
    )


def equal_rows(inputs: np.ndarray, targets: np.ndarray) -> Rows:
    return Rows(inputs=inputs, targets=targets, weights=np.ones(len(inputs)))


def fitted(model: BowTieModel, rows: Rows, rng: np.random.Generator, **settings: Any) -> Ascent:
    """Two networks, which must end at the same optimum."""
    ascent = ascend(
        model,
        initialize(model, rows, rng, 2, "laplace"),
        rows,
        max_iter=2000,
        tol=1e-12,
        **settings,
    )
    first, second = ascent.elbo_terms.total
    assert first == pytest.approx(second, rel=1e-7)
    return ascent


def log_evidence(likelihood: Any, x: np.ndarray) -> float:
    """log of the integral over (b, w) on a fine grid."""
    grid = np.linspace(-8.0, 8.0, 641)
    b, w = np.meshgrid(grid, grid, indexing="ij")
    logs = stats.norm(0.0, np.sqrt(1.3)).logpdf(b) + stats.norm(0.0, np.sqrt(VARIANCE)).logpdf(w)
    for n in range(len(x)):
        logs = logs + likelihood(b + w * x[n], n)
    return float(logsumexp(logs) + 2.0 * np.log(grid[1] - grid[0]))


@pytest.mark.parametrize(("n", "gap"), [(1, 0.1), (20, 0.4)])
def test_logistic_regression(n, gap, rng):
    """The bound is below the evidence, by less than `gap`.

    It is the integral of the parabolas in place of the likelihood, exactly: with
    A² = E[z²], log sigmoid(s z) >= s z / 2 - log 2 cosh(A/2) - tanh(A/2) / (4A) (z² - A²).
    """
    x = rng.normal(size=(n, 1))
    rows = equal_rows(x, (rng.random((n, 1)) < expit(0.3 + 1.2 * x)).astype(float))
    result = fitted(linear_model(Binary()), rows, rng)
    signs, x = 2.0 * rows.targets[:, 0] - 1.0, rows.inputs[:, 0]

    def likelihood(z: np.ndarray, row: int) -> np.ndarray:
        return -np.logaddexp(0.0, -signs[row] * z)

    weights = result.posterior.layers[0].weights
    mean, design = weights.mean[0, 0], np.column_stack([np.ones(n), x])
    second = weights.covariance[0, 0] + np.outer(mean, mean)
    tilt = np.sqrt(np.einsum("ni,ij,nj->n", design, second, design))

    def parabola(z: np.ndarray, row: int) -> np.ndarray:
        a = tilt[row]
        below = np.log(2.0 * np.cosh(a / 2.0)) + np.tanh(a / 2.0) / (4.0 * a) * (z**2 - a**2)
        return 0.5 * signs[row] * z - below

    bound, exact = float(result.elbo_terms.total[0]), log_evidence(likelihood, x)
    assert bound == pytest.approx(log_evidence(parabola, x), abs=1e-6)
    assert exact - gap < bound < exact


def test_students_noise_of_known_scale(rng, monkeypatch):
    """A tight prior of eta² holds it; the bound is below the evidence by less than 0.5."""
    monkeypatch.setattr(StudentT, "renewed", lambda self, *_: self)  # nu is known
    x = rng.normal(size=(15, 1))
    y = 0.4 + 0.8 * x + 0.5 * rng.standard_t(3.0, size=(15, 1))
    variance, certainty = 0.25, 1e8
    model = linear_model(StudentT(freedom=3.0), output_noise=(certainty, certainty * variance))
    result = fitted(model, equal_rows(x, y), rng)

    def likelihood(z: np.ndarray, row: int) -> np.ndarray:
        return stats.t(3.0, loc=z, scale=np.sqrt(variance)).logpdf(y[row, 0])

    exact = log_evidence(likelihood, x[:, 0])
    assert exact - 0.5 < float(result.elbo_terms.total[0]) < exact


def test_em_of_a_fit_finds_planted_degrees_of_freedom(rng):
    """Within 4 standard errors, which are those of nu with eta² unknown (false alarms 6e-5)."""
    planted, count, scale = 4.0, 3000, 0.3
    x = rng.normal(size=(count, 1))
    y = 0.2 + 0.7 * x + scale * rng.standard_t(planted, size=(count, 1))
    rows = equal_rows(x, y)
    freedom = fitted(linear_model(StudentT(freedom=30.0)), rows, rng).model.outcome.freedom

    def value(nu: float, log_scale: float) -> float:
        noise = y[:, 0] - 0.2 - 0.7 * x[:, 0]
        return float(stats.t(nu, scale=np.exp(log_scale)).logpdf(noise).sum())

    information = -hessian(value, np.array([planted, np.log(scale)]), np.array([0.05, 0.01]))
    error = np.sqrt(np.linalg.inv(information)[0, 0])
    assert error < 0.5
    assert np.all(np.abs(freedom - planted) < 4.0 * error)


def hessian(function: Any, at: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Second derivatives by central differences."""
    result = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            corners = [
                a * b * function(*(at + a * steps * np.eye(2)[i] + b * steps * np.eye(2)[j]))
                for a in (-1.0, 1.0)
                for b in (-1.0, 1.0)
            ]
            result[i, j] = sum(corners) / (4.0 * steps[i] * steps[j])
    return result


def test_outliers_pull_less_on_students_noise(rng):
    """Ten of a hundred rows are 20 standard deviations off on one side.

    A start around the line has the noise of its residuals, outliers included; it loses that soon.
    """
    x = rng.normal(size=(100, 1))
    y = 0.5 * x + 0.1 * rng.normal(size=(100, 1))
    y[:10] += 2.0
    rows, layers = equal_rows(x, y), [np.array([[[0.0, 0.5]]] * 2)]
    robust, gaussian = (
        fitted(linear_model(outcome), rows, rng) for outcome in (StudentT(), GAUSSIAN)
    )
    errors = [np.abs(r.posterior.layers[0].weights.mean[:, 0, 0]) for r in (robust, gaussian)]
    assert np.all(errors[0] < 0.05)
    assert np.all(errors[1] > 0.05)
    noise = robust.posterior.layers[0].noise_variance
    assert np.all(noise.scale / noise.concentration < 0.03)
    model = linear_model(StudentT())
    start = around(model, layers, rows, rng)
    noise = start.layers[0].noise_variance
    assert np.all(noise.scale / noise.concentration > 0.3)
    ascent = ascend(model, start, rows, max_iter=2000, tol=1e-12)
    np.testing.assert_allclose(ascent.elbo_terms.total, robust.elbo_terms.total, rtol=1e-7)
