"""Draws of whole functions and of targets: their moments, coherence, and what noise adds.

Error bars: moments of draws are held to 5 standard errors, a false-alarm rate of 6e-7 for each
comparison and below 1e-4 for the 150 or fewer of any one test. Seeds are fixed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from bowtienet._old import BowTieRegressor, FitOptions
from bowtienet._old.distributions import gaussian
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.prediction.predictive import predict
from bowtienet._old.prediction.sampling import sample_functions, sample_parameters
from tests._old import builders

EQUAL = FitOptions(weighting="equal")
LIMIT = 5.0
PROBIT_ERROR = 2e-4
"""Allowance for the mixture of probits in closed forms, in deviations: 4.4e-5 for each gate."""
N_DRAWS = 3000
tiny_fits = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def random_fit(hidden: tuple[int, ...], gate_temperature: float = 0.1, seed: int = 1) -> FitResult:
    """Random factors; the noise has four moments, so that averages of squares have error bars."""
    rng = np.random.default_rng(seed)
    model = builders.fixed_model(hidden, gate_temperature=gate_temperature)
    factors = builders.random_factors(rng, model)
    layers = []
    for layer in factors.layers:
        width = layer.weights.mean.shape[0]
        noise = InverseGamma(
            concentration=rng.uniform(9.0, 12.0, size=width),
            scale=rng.uniform(1.0, 3.0, size=width),
        )
        layers.append(replace(layer, noise_variance=noise))
    return FitResult(
        model=model,
        factors=replace(factors, layers=tuple(layers)),
        elbo_terms=None,
        elbo_history=(),
        n_sweeps=0,
        status=Status.CONVERGED,
    )


def rows(n: int = 6, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 1.5, size=(n, 3))


def assert_moments(draws: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> None:
    centred = draws - draws.mean(axis=0)
    deviation, squares = draws.std(axis=0), centred**2
    bar = LIMIT * deviation / np.sqrt(len(draws)) + PROBIT_ERROR * deviation
    assert np.all(np.abs(draws.mean(axis=0) - mean) < bar)
    bar = LIMIT * squares.std(axis=0) / np.sqrt(len(draws)) + PROBIT_ERROR * deviation**2
    assert np.all(np.abs(squares.mean(axis=0) - variance) < bar)


def function_moments(fitted: FitResult, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of E[y | W] with one hidden layer, by the trapezium rule over z.

    With a = sigmoid(z/T) z: m'mu~ and mu~'B mu~ + Σ E[W²] Var[a].
    """
    hidden, output = (layer.weights for layer in fitted.factors.layers)
    design = np.column_stack([np.ones(len(inputs)), inputs])
    u = np.linspace(-10.0, 10.0, 4001)
    share = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi) * (u[1] - u[0])
    spread = np.einsum("ni,dij,nj->nd", design, hidden.covariance, design)
    z = (design @ hidden.mean.T)[..., None] + np.sqrt(spread)[..., None] * u
    a = expit(z / fitted.model.gate_temperature) * z
    first, second = a @ share, a**2 @ share
    means = np.column_stack([np.ones(len(inputs)), first])
    signal = np.einsum("ni,dij,nj->nd", means, output.covariance, means)
    signal += (second - first**2) @ gaussian.squares(output)[:, 1:].T
    return means @ output.mean.T, signal


def test_parameters_have_the_moments_of_q() -> None:
    """Mean and covariance of a row of weights, mean and variance of the noise: 40 comparisons."""
    fitted = random_fit((3,))
    rng = np.random.default_rng(0)
    draws = [sample_parameters(fitted.factors, rng) for _ in range(N_DRAWS)]
    for index, layer in enumerate(fitted.factors.layers):
        weights = np.stack([draw.weights[index] for draw in draws])
        variance = np.einsum("dii->di", layer.weights.covariance)
        assert_moments(weights, layer.weights.mean, variance)
        centred = weights - layer.weights.mean
        products = np.einsum("sdi,sdj->sdij", centred, centred)
        bar = LIMIT * products.std(axis=0) / np.sqrt(N_DRAWS)
        assert np.all(np.abs(products.mean(axis=0) - layer.weights.covariance) < bar)
        a, b = layer.noise_variance.concentration, layer.noise_variance.scale
        noise = np.stack([draw.noise_variance[index] for draw in draws])
        assert_moments(noise, b / (a - 1.0), b**2 / ((a - 1.0) ** 2 * (a - 2.0)))


@pytest.mark.parametrize("hidden", [(), (4,)], ids=str)
def test_targets_have_the_predictive_moments(hidden: tuple[int, ...]) -> None:
    """Without or with one hidden layer closed forms are exact (up to the probits)."""
    fitted, inputs = random_fit(hidden), rows()
    draws = sample_functions(fitted, inputs, N_DRAWS, np.random.default_rng(3), noise=True)
    assert draws.shape == (N_DRAWS, 6, 2)
    new = predict(fitted.model, fitted.factors, inputs)
    assert_moments(draws, new.mean, new.signal_variance + new.noise_variance)


def test_functions_have_the_moments_of_the_mean_response() -> None:
    fitted, inputs = random_fit((4,)), rows()
    draws = sample_functions(fitted, inputs, N_DRAWS, np.random.default_rng(4), noise=False)
    mean, variance = function_moments(fitted, inputs)
    assert_moments(draws, mean, variance)
    new = predict(fitted.model, fitted.factors, inputs)
    deviation = np.sqrt(variance)
    assert np.max(np.abs(mean - new.mean) / deviation) < PROBIT_ERROR
    assert np.all(variance <= new.signal_variance * (1.0 + PROBIT_ERROR))


def test_a_draw_is_one_function() -> None:
    """Without hidden layers a straight line through all rows, another for every draw."""
    fitted = random_fit(())
    line = np.array([1.0, -2.0, 0.5])
    inputs = np.linspace(-1.0, 1.0, 9)[:, None] * line
    draws = sample_functions(fitted, inputs, 5, np.random.default_rng(6), noise=False)
    np.testing.assert_allclose(np.diff(draws, n=2, axis=1), 0.0, atol=1e-13)
    assert np.unique(draws[:, 0, 0]).size == 5
    noisy = sample_functions(fitted, inputs, 5, np.random.default_rng(6), noise=True)
    assert np.min(np.abs(np.diff(noisy, n=2, axis=1)).max(axis=1)) > 1e-3


def test_draws_are_repeatable_and_do_not_depend_on_other_rows() -> None:
    fitted, inputs = random_fit((4, 3)), rows()
    first = sample_functions(fitted, inputs, 3, np.random.default_rng(8), noise=False)
    again = sample_functions(fitted, inputs, 3, np.random.default_rng(8), noise=False)
    np.testing.assert_array_equal(first, again)
    other = sample_functions(fitted, inputs, 3, np.random.default_rng(9), noise=False)
    assert np.all(first != other)
    # The generator of parameters is asked once for each draw, whatever the rows.
    few = sample_functions(fitted, inputs[:2], 3, np.random.default_rng(8), noise=False)
    np.testing.assert_allclose(few, first[:, :2], rtol=1e-12)


@pytest.fixture(scope="module")
def regressor() -> BowTieRegressor:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-2.0, 2.0, size=(40, 3))
    targets = 5.0 + 3.0 * np.sin(2.0 * inputs[:, 0]) + 0.3 * rng.normal(size=40)
    model = BowTieRegressor((5,), n_estimators=2, max_iter=30, random_state=0, options=EQUAL)
    return model.fit(inputs, targets)


NEAR = np.array([[0.5, 0.3, -0.2], [0.5 + 1e-4, 0.3, -0.2], [-1.0, 0.4, 0.9]])


def draws_of(regressor: BowTieRegressor, **settings: Any) -> np.ndarray:
    """Draws (2000, 3) at two close rows and a third."""
    return regressor.sample_y(NEAR, 2000, random_state=1, **settings).T


@tiny_fits
@pytest.mark.parametrize("joint", [False, True])
def test_draws_have_the_estimator_s_moments(regressor: BowTieRegressor, joint: bool) -> None:
    mean, deviation = regressor.predict(NEAR, return_std=True)
    assert_moments(draws_of(regressor, joint=joint), mean, deviation**2)


@tiny_fits
def test_independent_draws_without_noise_have_the_epistemic_variance(
    regressor: BowTieRegressor,
) -> None:
    found = regressor.predict_components(NEAR)
    assert_moments(draws_of(regressor, noise=False), found.mean, found.epistemic_variance)


@tiny_fits
def test_joint_draws_are_coherent_and_others_are_not(regressor: BowTieRegressor) -> None:
    """Close rows have nearly the same function; independent draws are uncorrelated to 5/sqrt(n)."""
    joint = draws_of(regressor, joint=True, noise=False)
    spread = joint[:, 0].std()
    assert np.max(np.abs(joint[:, 0] - joint[:, 1])) < 0.02 * spread
    apart = draws_of(regressor, joint=False, noise=False)
    assert np.median(np.abs(apart[:, 0] - apart[:, 1])) > 0.3 * spread
    between = np.corrcoef(apart.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(between) < LIMIT / np.sqrt(len(apart)))


@pytest.fixture(scope="module")
def by_rows() -> dict[int, BowTieRegressor]:
    """The same problem seen in 60 rows and in 960."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-2.0, 2.0, size=(960, 3))
    targets = np.sin(2.0 * inputs[:, 0]) + inputs[:, 1] + 0.1 * rng.normal(size=960)
    settings: dict[str, Any] = {"n_estimators": 1, "max_iter": 60, "options": EQUAL}
    return {
        n: BowTieRegressor((8,), random_state=0, **settings).fit(inputs[:n], targets[:n])
        for n in (60, 960)
    }


@tiny_fits
def test_less_is_unknown_of_a_function_with_more_rows(by_rows: dict[int, BowTieRegressor]) -> None:
    """The epistemic variance is that of the function: 16 times the rows, a quarter of it at most.

    What no function explains does not shrink with rows: the noise of hidden layers, and gates.
    """
    new = np.random.default_rng(1).uniform(-1.5, 1.5, size=(20, 3))
    few, many = (by_rows[n].predict_components(new).epistemic_variance for n in (60, 960))
    assert np.median(many) < 0.25 * np.median(few)


@tiny_fits
@pytest.mark.parametrize("n", [60, 960])
def test_draws_without_noise_are_alike_joint_or_not(
    by_rows: dict[int, BowTieRegressor], n: int
) -> None:
    """Both are values of the function at a row: the same variance, to 5 standard errors of each.

    A variance of 2000 draws has an error of 3 %; 2 % are what closed forms may leave out.
    """
    joint, apart = (draws_of(by_rows[n], joint=joint, noise=False) for joint in (True, False))
    squares = (joint - joint.mean(axis=0)) ** 2
    bar = 2.0 * LIMIT * squares.std(axis=0) / np.sqrt(len(joint)) + 0.02 * joint.var(axis=0)
    assert np.all(np.abs(squares.mean(axis=0) - apart.var(axis=0)) < bar)
