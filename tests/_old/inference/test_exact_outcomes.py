"""Outcomes without hidden layers, where the evidence is an integral in one or two dimensions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import factors_of_network, initialize
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.outcomes import Binary, Counts, Outcome, StudentT
from bowtienet._old.model.priors import BowTieModel, build_model

VARIANCE = 1.5
"""Of the prior of the weight; that of the bias is 1.3."""


def linear_model(outcome: Outcome, output_noise: tuple[float, float] = (2.0, 0.1)) -> BowTieModel:
    return build_model(
        build_architecture(1, (), 1),
        prior="gaussian",
        global_parameters={"variance": VARIANCE},
        local_parameters={"variance": 1.0},
        bias_variance=1.3,
        output_noise=output_noise,
        outcome=outcome,
    )


def fitted(model: BowTieModel, rows: Rows, **settings: Any) -> FitResult:
    factors = initialize(model, rows, 0)
    return fit(model, rows, factors, max_iter=2000, tol=1e-12, **settings)


def log_evidence(likelihood: Any, x: np.ndarray) -> float:
    """log of the integral over (b, w) on a fine grid."""
    grid = np.linspace(-8.0, 8.0, 641)
    b, w = np.meshgrid(grid, grid, indexing="ij")
    logs = stats.norm(0.0, np.sqrt(1.3)).logpdf(b) + stats.norm(0.0, np.sqrt(VARIANCE)).logpdf(w)
    for n in range(len(x)):
        logs = logs + likelihood(b + w * x[n], n)
    return float(logsumexp(logs) + 2.0 * np.log(grid[1] - grid[0]))


def binary_rows(n: int, seed: int = 500) -> Rows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    return build_rows(x, (rng.random((n, 1)) < expit(0.3 + 1.2 * x)).astype(float))


@pytest.mark.parametrize(("n", "gap"), [(1, 0.1), (20, 0.4)])
def test_logistic_regression(n: int, gap: float) -> None:
    """The bound is below the evidence, by less than `gap`.

    It is the integral of the parabolas in place of the likelihood, exactly: with
    A² = E[z²], log sigmoid(s z) >= s z / 2 - log 2 cosh(A/2) - tanh(A/2) / (4A) (z² - A²).
    """
    rows = binary_rows(n)
    result = fitted(linear_model(Binary()), rows)
    signs, x = 2.0 * rows.targets[:, 0] - 1.0, rows.inputs[:, 0]

    def likelihood(z: np.ndarray, row: int) -> np.ndarray:
        return -np.logaddexp(0.0, -signs[row] * z)

    weights = result.factors.layers[0].weights
    design = np.column_stack([np.ones(n), x])
    second = weights.covariance[0] + np.outer(weights.mean[0], weights.mean[0])
    tilt = np.sqrt(np.einsum("ni,ij,nj->n", design, second, design))

    def parabola(z: np.ndarray, row: int) -> np.ndarray:
        a = tilt[row]
        below = np.log(2.0 * np.cosh(a / 2.0)) + np.tanh(a / 2.0) / (4.0 * a) * (z**2 - a**2)
        return 0.5 * signs[row] * z - below

    bound, exact = float(result.elbo_terms.total), log_evidence(likelihood, x)
    assert bound == pytest.approx(log_evidence(parabola, x), abs=1e-6)
    assert exact - gap < bound < exact


def test_one_count() -> None:
    """Counts, in one dimension of z = b + w x with variance 1.3 + 1.5 x²: a gap below 0.1."""
    x, y, exposure, r = 0.7, 3.0, 0.4, 2.0
    rows = build_rows(np.array([[x]]), np.array([[y, exposure]]))
    model = linear_model(Counts(dispersion=r, offset=0.3))
    result = fitted(model, rows, empirical_bayes=False)
    z = np.linspace(-12.0, 12.0, 20_001)
    prior = stats.norm(0.0, np.sqrt(1.3 + VARIANCE * x * x)).logpdf(z)
    chance = expit(-(z + exposure + 0.3))
    exact = logsumexp(prior + stats.nbinom(r, chance).logpmf(y)) + np.log(z[1] - z[0])
    assert exact - 0.1 < float(result.elbo_terms.total) < exact


def test_students_noise_of_known_scale() -> None:
    """A tight prior of eta² holds it; the bound is below the evidence by less than 0.5."""
    rng = np.random.default_rng(501)
    x = rng.normal(size=(15, 1))
    y = 0.4 + 0.8 * x + 0.5 * rng.standard_t(3.0, size=(15, 1))
    variance, certainty = 0.25, 1e8
    model = linear_model(StudentT(freedom=3.0), output_noise=(certainty, certainty * variance))
    result = fitted(model, build_rows(x, y), empirical_bayes=False)

    def likelihood(z: np.ndarray, row: int) -> np.ndarray:
        return stats.t(3.0, loc=z, scale=np.sqrt(variance)).logpdf(y[row, 0])

    exact = log_evidence(likelihood, x[:, 0])
    assert exact - 0.5 < float(result.elbo_terms.total) < exact


def test_em_of_a_fit_finds_planted_degrees_of_freedom() -> None:
    """Within 4 standard errors, which are those of nu with eta² unknown (false alarms 6e-5)."""
    rng = np.random.default_rng(502)
    planted, count, scale = 4.0, 3000, 0.3
    x = rng.normal(size=(count, 1))
    y = 0.2 + 0.7 * x + scale * rng.standard_t(planted, size=(count, 1))
    found = fitted(linear_model(StudentT(freedom=30.0)), build_rows(x, y)).model.outcome

    def value(nu: float, log_scale: float) -> float:
        noise = y[:, 0] - 0.2 - 0.7 * x[:, 0]
        return float(stats.t(nu, scale=np.exp(log_scale)).logpdf(noise).sum())

    information = -hessian(value, np.array([planted, np.log(scale)]), np.array([0.05, 0.01]))
    error = np.sqrt(np.linalg.inv(information)[0, 0])
    assert error < 0.5
    assert abs(found.freedom - planted) < 4.0 * error


def test_em_of_a_fit_finds_a_planted_dispersion() -> None:
    """The same for counts with a linear predictor, exposures included."""
    rng = np.random.default_rng(503)
    planted, count = 1.7, 3000
    x, exposure = rng.normal(size=(count, 1)), rng.normal(0.0, 0.5, size=(count, 1))
    log_mean = 1.0 + 0.5 * x + exposure
    y = rng.poisson(rng.gamma(planted, np.exp(log_mean) / planted)).astype(float)
    rows = build_rows(x, np.hstack([y, exposure]))
    found = fitted(linear_model(Counts(dispersion=10.0)), rows).model.outcome

    def value(r: float, level: float) -> float:
        mean = np.exp(log_mean[:, 0] + level)
        return float(stats.nbinom(r, r / (r + mean)).logpmf(y[:, 0]).sum())

    information = -hessian(value, np.array([planted, 0.0]), np.array([0.02, 0.02]))
    error = np.sqrt(np.linalg.inv(information)[0, 0])
    assert error < 0.2
    assert abs(found.dispersion - planted) < 4.0 * error


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


def test_outliers_pull_less_on_students_noise() -> None:
    """Ten of a hundred rows are 20 standard deviations off on one side."""
    rng = np.random.default_rng(504)
    x = rng.normal(size=(100, 1))
    y = 0.5 * x + 0.1 * rng.normal(size=(100, 1))
    y[:10] += 2.0
    rows = build_rows(x, y)
    robust = fitted(linear_model(StudentT()), rows)
    gaussian = fitted(build_linear_gaussian(), rows)
    errors = [abs(r.factors.layers[0].weights.mean[0, 0]) for r in (robust, gaussian)]
    assert errors[0] < 0.05 < errors[1]
    noise = robust.factors.layers[0].noise_variance
    assert noise.scale[0] / noise.concentration[0] < 0.03


def build_linear_gaussian() -> BowTieModel:
    model = linear_model(StudentT())
    return replace(model, outcome=build_model(build_architecture(1, (), 1)).outcome)


def test_noise_of_a_start_is_robust() -> None:
    """The noise around a given network: outliers count little, and no noise stays the prior's."""
    rng = np.random.default_rng(505)
    x = rng.normal(size=(400, 1))
    y = 0.5 * x + 0.1 * rng.normal(size=(400, 1))
    y[:20] += 3.0
    network = [np.array([[0.0, 0.5]])]
    rows = build_rows(x, y)
    variances = []
    for model in (linear_model(StudentT()), build_linear_gaussian()):
        noise = factors_of_network(model, network, rows, rng).layers[-1].noise_variance
        variances.append(float(noise.scale[0] / noise.concentration[0]))
    assert variances[0] < 0.02 < 0.3 < variances[1]
    binary = linear_model(Binary())
    labels = replace(rows, targets=(y > 0.0).astype(float))
    noise = factors_of_network(binary, network, labels, rng).layers[-1].noise_variance
    assert float(noise.scale[0]) == binary.prior.output_noise.scale
