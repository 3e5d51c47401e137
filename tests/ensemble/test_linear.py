"""The linear recipe against dense formulas, refits, the engine and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LassoCV, LogisticRegression, PoissonRegressor, Ridge

from bowtienet import BowTieNetwork
from bowtienet.ensemble import linear
from bowtienet.ensemble.linear import cross_fit_linear
from bowtienet.outcomes import GAUSSIAN, Counts, Outcome, Softmax, StudentT

N_FOLDS = 4


def fit(inputs: Any, targets: Any, outcome: Outcome = GAUSSIAN, prior: Any = "student_t") -> Any:
    """Layers (F+1, C, K+1) of rows of weight one; the last tenth is never held out."""
    n = len(inputs)
    folds = np.where(np.arange(n) < 0.9 * n, np.arange(n) % N_FOLDS, -1)
    return cross_fit_linear(inputs, targets, np.ones(n), folds, N_FOLDS, outcome, prior)


def table(rng: np.random.Generator, n: int, k: int, noise: float = 0.5, c: int = 1) -> Any:
    """Inputs and targets of a linear function whose slopes differ much in size."""
    inputs = rng.normal(size=(n, k))
    slopes = rng.normal(size=(c, k)) * np.exp(rng.normal(size=k))
    return inputs, 2.0 + inputs @ slopes.T + noise * rng.normal(size=(n, c))


def out_of_sample(layer: Any, inputs: Any, targets: Any) -> float:
    """RMSE of a layer (1, K+1) for one target."""
    return float(np.sqrt(np.mean((inputs @ layer[0, 1:] + layer[0, 0] - targets) ** 2)))


@pytest.mark.parametrize("prior", ["student_t", "gaussian", "laplace", "horseshoe"])
def test_sums_of_columns_equal_sums_of_rows(prior: str, rng: np.random.Generator) -> None:
    """(K, K) and (n, n) matrices give the same layers, with weights and several targets."""
    inputs, targets = table(rng, 30, 12, c=2)
    # Columns of zeros say nothing and take the same rows to the other side.
    padded = np.hstack([inputs, np.zeros((30, 30))])
    weights, folds = rng.uniform(0.2, 2.0, size=30), np.arange(30) % 3
    tall, wide = (
        cross_fit_linear(x, targets, weights, folds, 3, GAUSSIAN, prior) for x in (inputs, padded)
    )
    if prior == "gaussian":  # The others learn one tau for all columns, these included.
        np.testing.assert_allclose(wide[:, :, :13], tall, rtol=1e-8)
    np.testing.assert_array_equal(wide[:, :, 13:], 0.0)


def test_a_solution_is_the_exact_posterior(rng: np.random.Generator) -> None:
    """For fixed scales: mean, g = 1 - V_jj / d_j and squared residuals by dense formulas."""
    inputs, targets = table(rng, 40, 5)
    x, y = inputs - inputs.mean(axis=0), targets[:, 0] - targets.mean()
    d, noise = rng.uniform(0.01, 3.0, size=5), 0.4
    covariance = np.linalg.inv(x.T @ x / noise + np.diag(1.0 / d))
    m = covariance @ x.T @ y / noise
    zeros = np.zeros(5)
    for solve in (
        linear._primal(x.T @ x, x.T @ y, y @ y, zeros),
        linear._dual(x, y, np.ones((40, 1))),
    ):
        mean, used, square = solve(d, noise)
        np.testing.assert_allclose(mean, m, rtol=1e-9)
        np.testing.assert_allclose(used, 1.0 - np.diag(covariance) / d, rtol=1e-9)
        assert square == pytest.approx(np.sum((y - x @ m) ** 2), rel=1e-9)


def test_the_ridge_has_the_highest_evidence(rng: np.random.Generator) -> None:
    """tau and s² of "gaussian" are where log N(y | 0, s² I + tau X X') has its maximum."""
    inputs, targets = table(rng, 60, 8, noise=3.0)
    x, y = inputs - inputs.mean(axis=0), targets[:, 0] - targets.mean()
    layer = fit(inputs, targets, prior="gaussian")[-1, 0]
    values, vectors = np.linalg.eigh(x @ x.T)
    energy, values = (vectors.T @ y) ** 2, np.maximum(values, 0.0)

    def evidence(ratio: Any) -> Any:
        spread = values + ratio
        noise = np.sum(energy * ratio / spread) / 59 / ratio
        return -0.5 * np.sum(np.log(spread)) + 0.5 * np.log(ratio) - 0.5 * 59 * np.log(noise)

    ratios = np.exp(np.linspace(-3.0, 8.0, 2000))
    best = ratios[np.argmax([evidence(ratio) for ratio in ratios])]
    expected = Ridge(alpha=best).fit(inputs, targets[:, 0])
    np.testing.assert_allclose(layer[1:], expected.coef_, rtol=0.01, atol=0.01)
    assert layer[0] == pytest.approx(expected.intercept_, rel=0.01)


@pytest.mark.parametrize("k", [6, 60])
def test_fits_without_a_fold_are_refits(k: int, rng: np.random.Generator) -> None:
    inputs, targets = table(rng, 40, k, c=2)
    layers = fit(inputs, targets)
    folds = np.where(np.arange(40) < 36, np.arange(40) % N_FOLDS, -1)
    for fold in range(N_FOLDS):
        rest = folds != fold
        refit = fit(inputs[rest], targets[rest])[-1]
        np.testing.assert_allclose(layers[fold], refit, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("k", [6, 60])
def test_held_out_rows_have_no_influence(k: int, rng: np.random.Generator) -> None:
    """Nor have rows of weight zero, whatever they are."""
    inputs, targets = table(rng, 40, k)
    before = fit(inputs, targets)[1]
    inputs[1], targets[1] = 30.0, -50.0
    np.testing.assert_allclose(fit(inputs, targets)[1], before, rtol=0, atol=1e-10)
    weights, folds = np.ones(40), np.arange(40) % 4
    weights[1] = 0.0
    layer = cross_fit_linear(inputs, targets, weights, folds, 4, GAUSSIAN)[-1:]
    inputs[1], targets[1] = np.inf, np.nan
    again = cross_fit_linear(inputs, targets, weights, folds, 4, GAUSSIAN)[-1:]
    np.testing.assert_array_equal(again, layer)


def test_weights_are_repeated_rows(rng: np.random.Generator) -> None:
    inputs, targets = table(rng, 40, 5)
    weights = rng.integers(0, 4, size=40)
    folds = np.arange(40) % 4
    weighted = cross_fit_linear(inputs, targets, weights.astype(float), folds, 4, GAUSSIAN)
    rows = np.repeat(np.arange(40), weights)
    repeated = cross_fit_linear(
        inputs[rows], targets[rows], np.ones(len(rows)), folds[rows], 4, GAUSSIAN
    )
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)


def test_the_engine_without_hidden_layer_agrees(rng: np.random.Generator) -> None:
    """The same model but for the priors of tau and s²: within a fifth of a standard error."""
    inputs, targets = table(rng, 300, 5, noise=1.0)
    network = BowTieNetwork(hidden_layer_sizes=(), prior="student_t", random_state=0)
    network.fit(inputs, targets[:, 0])
    layer = fit(inputs, targets)[-1, 0]
    difference = inputs @ layer[1:] + layer[0] - network.predict(inputs)
    assert np.sqrt(np.mean(difference**2)) < 0.2 * np.sqrt(6 / 300)


@pytest.mark.parametrize(("k", "error"), [(1, 4e-9), (10, 4e-9), (400, 3e-7)])
def test_tiny_noise_keeps_its_digits(k: int, error: float, rng: np.random.Generator) -> None:
    """Within about six standard errors, but with 400 columns the scales are not yet at rest."""
    inputs = rng.normal(size=(300, k))
    targets = 3.0 * inputs[:, :1] + 1e-8 * rng.normal(size=(300, 1))
    layers = fit(inputs, targets)
    expected = np.zeros(k + 1)
    expected[1] = 3.0
    for layer in layers[:, 0]:
        np.testing.assert_allclose(layer, expected, rtol=0, atol=error)


@pytest.mark.slow
def test_three_of_two_thousand_columns(rng: np.random.Generator) -> None:
    """RMSE on new rows at most 1.2 times LassoCV's, on the average of three tables."""
    ratios = []
    for _ in range(3):
        inputs = rng.normal(size=(1270, 2000))
        targets = inputs[:, :3] @ [2.0, -1.5, 1.0] + rng.normal(size=1270)
        train, test = slice(0, 270), slice(270, None)
        lasso = LassoCV(cv=5).fit(inputs[train], targets[train])
        errors = lasso.predict(inputs[test]) - targets[test]
        layer = fit(inputs[train], targets[train, None])[-1]
        found = out_of_sample(layer, inputs[test], targets[test])
        ratios.append(found / np.sqrt(np.mean(errors**2)))
    assert np.mean(ratios) < 1.2


@pytest.mark.parametrize("k", [4, 60])
@pytest.mark.parametrize("outcome", [GAUSSIAN, StudentT()])
def test_repeated_and_constant_columns(k: int, outcome: Outcome, rng: np.random.Generator) -> None:
    """Repeated columns share what one has; constant columns and targets give no trouble."""
    inputs, targets = table(rng, 50, k, noise=1e-6, c=2)
    targets /= targets.std(axis=0)
    padded = np.hstack([inputs, inputs[:, :1], np.ones((50, 1)), np.zeros((50, 1))])
    layers = fit(padded, targets, outcome)
    assert np.all(np.isfinite(layers))
    layer = layers[-1]
    np.testing.assert_allclose(layer[:, 1], layer[:, k + 1], atol=1e-3)
    np.testing.assert_allclose(layer[:, k + 2 :], 0.0, atol=1e-4)
    if k == 4 and outcome is GAUSSIAN:
        errors = padded @ layer[:, 1:].T + layer[:, 0] - targets
        assert np.sqrt(np.mean(errors**2)) < 3e-6
    constant = fit(padded, np.full((50, 1), 7.0), outcome)[-1:]
    if outcome is GAUSSIAN:
        assert constant[0, 0, 0] == pytest.approx(7.0)
    np.testing.assert_allclose(constant[0, 0, 1:], 0.0, atol=1e-6)
    assert np.all(np.isfinite(fit(np.zeros((50, k)), targets, outcome)[-1:]))


def test_a_column_that_only_one_row_changes(rng: np.random.Generator) -> None:
    """The fit that leaves that row out has no slope; the others have that of the row."""
    row = (np.arange(7) == 1)[:, None] * 1.0
    inputs = (row - row.mean()) / row.std()  # differences from the mean are rounding without it
    for _ in range(8):
        layers = fit(inputs, row + 1e-6 * rng.normal(size=(7, 1)))
        assert layers[1, 0, 1] == 0.0
        np.testing.assert_allclose(np.delete(layers, 1, axis=0)[:, 0, 1], row.std(), atol=1e-5)


def test_a_single_row_has_no_slope(rng: np.random.Generator) -> None:
    """Each of two rows is left out once; all that the moments of the other hold is rounding."""
    folds = np.array([0, 1])
    for _ in range(30):
        weights = 10.0 ** rng.uniform(-6.0, 0.0, size=2)
        inputs, targets = rng.normal(size=(2, 2)), rng.normal(size=(2, 1))
        layers = cross_fit_linear(inputs, targets, weights, folds, 2, GAUSSIAN, "student_t")
        assert np.all(layers[:2, 0, 1:] == 0.0)
        np.testing.assert_allclose(layers[:2, 0, 0], targets[::-1, 0])


@pytest.mark.parametrize("k", [3, 60])
def test_softmax_is_logistic_regression(
    k: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "PENALTIES", (3.0,))
    inputs = rng.normal(size=(50, k))
    labels = np.argmax(inputs[:, :3] + rng.gumbel(size=(50, 3)), axis=1)
    layers = fit(inputs, labels[:, None].astype(float), Softmax(n_classes=3))
    expected = LogisticRegression(C=1.0 / 3.0, tol=1e-8, max_iter=5000).fit(inputs, labels)
    np.testing.assert_allclose(layers[-1, :, 1:], expected.coef_, atol=1e-3)
    bias, other = layers[-1, :, 0], expected.intercept_  # Up to a common constant.
    np.testing.assert_allclose(bias - bias.mean(), other - other.mean(), atol=1e-3)


def test_counts_are_poisson_regression(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dispersion, with exposures as weights of rates."""
    monkeypatch.setattr(linear, "PENALTIES", (3.0,))
    inputs, logs = rng.normal(size=(80, 3)), rng.normal(size=80)
    counts = rng.poisson(np.exp(0.5 * inputs[:, 0] + 1.0 + logs)).astype(float)
    layers = fit(inputs, np.column_stack([counts, logs]), Counts(dispersion=0.0))
    exposure = np.exp(logs)
    expected = PoissonRegressor(alpha=3.0 / exposure.sum(), tol=1e-9, max_iter=1000)
    expected.fit(inputs, counts / exposure, sample_weight=exposure)
    np.testing.assert_allclose(layers[-1, 0, 1:], expected.coef_, atol=1e-3)
    assert layers[-1, 0, 0] == pytest.approx(expected.intercept_, abs=1e-3)


def test_the_penalty_follows_held_out_loss(rng: np.random.Generator) -> None:
    """Weak where classes follow a column, the strongest where they follow none."""
    inputs = rng.normal(size=(400, 5))
    clear = (inputs[:, :1] + 0.3 * rng.normal(size=(400, 1)) > 0.0).astype(float)
    slopes = [
        np.abs(fit(inputs, labels, Softmax(n_classes=2))[-1, :, 1:]).max()
        for labels in (clear, rng.permutation(clear))
    ]
    assert slopes[0] > 1.0
    assert slopes[1] < 0.1
