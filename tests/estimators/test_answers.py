"""Answers of the three estimators of numbers: they agree, are of the same distribution, repeat."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

from bowtienet import BowTieCountRegressor, BowTieNetwork, BowTieRegressor
from bowtienet.estimators import _ensemble

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MODELS: dict[str, Any] = {
    "network": BowTieNetwork((10,), n_members=2, random_state=0),
    "numbers": BowTieRegressor((8,), effort="fast", random_state=0),
    "counts": BowTieCountRegressor((8,), effort="fast", random_state=0),
}


def wave(X: np.ndarray) -> np.ndarray:
    return np.sin(1.2 * X[:, 0]) + 3.0


def rows(name: str, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    y = rng.poisson(2.0 * wave(X)) if name == "counts" else wave(X) + 0.1 * rng.normal(size=n)
    return X, y.astype(float)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request: pytest.FixtureRequest) -> tuple[Any, np.ndarray, np.ndarray]:
    """A model, and rows that it has not seen."""
    model = MODELS[request.param].fit(*rows(request.param, 0, 100))
    return model, *rows(request.param, 1, 300)


@pytest.fixture(scope="module", params=["network", "numbers"])
def several(request: pytest.FixtureRequest) -> Any:
    X, y = rows(request.param, 0, 100)
    model = type(MODELS[request.param])(**MODELS[request.param].get_params())
    return model.fit(X, np.column_stack([y, -5.0 * X[:, 1]]))


@pytest.mark.filterwarnings("ignore:rows lie far outside")
def test_they_learn_a_smooth_function(fitted: tuple[Any, np.ndarray, np.ndarray]) -> None:
    """Coverage of 300 rows has an error of 0.017: four of them, and a little for the fit."""
    model, X, y = fitted
    mean, std = model.predict(X, return_std=True)
    low, high = model.predict_interval(X, 0.9).T
    is_network = isinstance(model, BowTieNetwork)
    slack = 0.07 if is_network else 0.08
    assert 0.9 - slack < np.mean((low <= y) & (y <= high)) < 0.9 + slack
    assert model.predict_components(10.0 * X).epistemic.mean() > 5.0 * std.mean()
    if not isinstance(model, BowTieCountRegressor):
        least, most, error = (0.07, 0.4, 0.1) if is_network else (0.06, 0.3, 0.08)
        assert np.sqrt(np.mean((mean - wave(X)) ** 2)) < error
        assert np.all((std > least) & (std < most))


@pytest.mark.parametrize("name", ["numbers", "counts"])
def test_slices_and_threads_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the rounding of single precision; each slice has its exposures."""
    X, y = rows(name, 0, 100)
    model, known = MODELS[name].fit(X, y), {}
    if name == "counts":
        known = {"exposure": np.linspace(0.5, 4.0, 100)}

    def answers() -> tuple[np.ndarray, ...]:
        intervals = model.predict_interval(X, method="conformal", **known)
        return model.predict(X, **known), intervals

    whole = answers()
    monkeypatch.setattr(_ensemble, "CHUNK", 30)
    for jobs in (1, 3):
        model.set_params(n_jobs=jobs)
        for found, expected in zip(answers(), whole, strict=True):
            assert_allclose(found, expected, rtol=1e-5)


def test_answers_agree(fitted: tuple[Any, np.ndarray, np.ndarray]) -> None:
    """All of them are of one distribution, and no question changes the model."""
    model, X, y = fitted
    before = pickle.dumps(model)
    mean, std = model.predict(X, return_std=True)
    mixture, found = model.predict_dist(X), model.predict_components(X)
    assert_allclose(mixture.mean(), mean)
    assert len(repr(mixture)) < 80
    assert mixture.rvs(2, 0).shape == (2, 300)
    assert_allclose(mixture.std(), std)
    assert_array_equal(found.mean, mean)
    assert_allclose(found.epistemic**2 + found.noise**2, std**2)
    low, high = model.predict_interval(X, 0.8).T
    quantiles = model.predict_quantiles(X, np.linspace(0.01, 0.99, 25))
    if isinstance(model, BowTieCountRegressor):
        assert np.all(mixture.cdf(high) - mixture.cdf(low - 1.0) >= 0.8)
        assert_array_equal(quantiles, np.round(quantiles))
        assert np.all(np.diff(quantiles) >= 0.0)
    else:
        assert_allclose(mixture.cdf(high) - mixture.cdf(low), 0.8)
        assert_array_equal(model.predict_quantiles(X, [0.1, 0.9]), np.column_stack([low, high]))
        assert_allclose(mixture.cdf(model.predict_quantiles(X)[:, 1]), 0.5)
        assert np.all(np.diff(quantiles) > 0.0)
    assert model.score(X, y) == pytest.approx(r2_score(y, mean))
    logs, weights = mixture.logpdf(y), np.arange(300.0)
    assert model.log_score(X, y) == pytest.approx(logs.mean())
    assert model.log_score(X, y, weights) == pytest.approx(np.average(logs, weights=weights))
    model.sample_y(X, joint=True), model.summary()
    if isinstance(model, BowTieRegressor):
        model.predict(X[:5], return_cov=True)
    if isinstance(model, BowTieNetwork):
        with pytest.warns(UserWarning, match="rate"):
            model.prune(0.3)
    assert pickle.dumps(model) == before


def test_draws(fitted: tuple[Any, np.ndarray, np.ndarray]) -> None:
    """4,000 draws: the mean is good to 0.016 deviations, the deviation to 1.1 %; 4.5 of these.

    Joint draws are functions: equal rows have equal values, and mean and spread are what the
    weights leave open.
    """
    model, X, _ = fitted
    table = np.concatenate([X[:20], X[:1] + 1e-9])
    mean, std = model.predict(table, return_std=True)
    draws = model.sample_y(table, 4000)
    assert_allclose(draws.mean(axis=1), mean, atol=4.5 * 0.016 * std.max())
    is_network = isinstance(model, BowTieNetwork)
    assert_allclose(draws.std(axis=1), std, rtol=0.05 if is_network else 0.06)
    assert abs(np.corrcoef(draws[0], draws[-1])[0, 1]) < 0.08
    functions = model.sample_y(table, 2000, joint=True)
    assert_allclose(functions[0], functions[-1], rtol=1e-5)
    found = model.predict_components(table)
    if isinstance(model, BowTieCountRegressor):
        assert_array_equal(draws, np.round(draws))
        assert_allclose(functions.mean(axis=1), mean, rtol=0.02)
    else:
        assert_allclose(functions.mean(axis=1), found.mean, atol=0.02 if is_network else 0.03)
        assert_allclose(functions.std(axis=1), found.epistemic, rtol=0.3, atol=0.01)
    for joint in (False, True):
        draw = [model.sample_y(X[:50], 3, seed, joint=joint) for seed in (0, 0, 1)]
        assert_array_equal(draw[0], draw[1])
        assert np.any(draw[0] != draw[2])


def test_several_targets(several: Any) -> None:
    X = rows("numbers", 1, 300)[0]
    mean, std = several.predict(X, return_std=True)
    assert mean.shape == std.shape == several.predict_components(X).noise.shape == (300, 2)
    assert several.predict_interval(X).shape == (300, 2, 2)
    assert several.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (300, 2, 3)
    for joint in (False, True):
        assert several.sample_y(X, 4, joint=joint).shape == (300, 2, 4)
    slack = 0.2 if isinstance(several, BowTieNetwork) else 0.15
    assert np.sqrt(np.mean((mean[:, 0] - wave(X)) ** 2)) < slack
    assert np.sqrt(np.mean((mean[:, 1] + 5.0 * X[:, 1]) ** 2)) < slack
    logs = several.predict_dist(X).logpdf(mean).sum(axis=1).mean()
    assert several.log_score(X, mean) == pytest.approx(logs)
    if isinstance(several, BowTieRegressor):
        assert several.predict_interval(X, method="conformal").shape == (300, 2, 2)
        assert "of y0, y1" in several.summary()
        _, covariance = several.predict(X[:9], return_cov=True)
        assert covariance.shape == (9, 9, 2)
        assert_allclose(np.sqrt(covariance[np.arange(9), np.arange(9)]), std[:9])


@pytest.mark.parametrize("name", ["network", "numbers"])
def test_one_target_in_two_axes(name: str) -> None:
    X, y = rows(name, 0, 100)
    flat = MODELS[name].fit(X, y).predict(X), MODELS[name].predict_interval(X)
    MODELS[name].fit(X, y[:, None])
    assert_array_equal(MODELS[name].predict(X), flat[0][:, None])
    assert_array_equal(MODELS[name].predict_interval(X), flat[1][:, None])


@pytest.mark.parametrize(
    ("name", "changes"), [("network", {}), ("network", {"init": "laplace"}), ("numbers", {})]
)
def test_the_same_seed_gives_the_same_bits(name: str, changes: dict[str, Any]) -> None:
    X, y = rows(name, 0, 100)
    cls, settings = type(MODELS[name]), {**MODELS[name].get_params(), **changes}
    seeds = [3, 3, 4, *(np.random.RandomState(5) for _ in range(2))]
    means = [cls(**{**settings, "random_state": seed}).fit(X, y).predict(X) for seed in seeds]
    assert_array_equal(means[0], means[1])
    assert_array_equal(means[3], means[4])
    assert np.any(means[0] != means[2])


@pytest.mark.parametrize("name", MODELS)
def test_columns_of_targets_and_weights_by_name(name: str, tmp_path: Path) -> None:
    """They are in no prediction, whether of a frame or of a file."""
    X, y = rows(name, 0, 100)
    features, w = pd.DataFrame(X, columns=["a", "b"]), 1.0 + np.arange(100) % 2
    frame, path = features.assign(y=y, w=w), tmp_path / "rows.parquet"
    frame.to_parquet(path)
    model = MODELS[name].fit(frame, "y", sample_weight="w")
    for table in (frame, path):
        assert_allclose(model.predict(table), model.predict(features))
        assert model.score(table, "y", "w") == pytest.approx(model.score(features, y, w))
    assert model.log_score(frame, "y", "w") == pytest.approx(model.log_score(features, y, w))
    with pytest.raises(ValueError, match="shape"):
        model.log_score(features, y[:5])
    if name != "network":
        ask, pairs = model.predict_interval, ((frame, "y"), (features, y))
        assert_array_equal(*(ask(features, 0.8, "conformal", known) for known in pairs))


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, np.nan, "0.9"])
def test_bad_questions_are_named(fitted: tuple[Any, np.ndarray, np.ndarray], coverage: Any) -> None:
    model, X, _ = fitted
    methods = [{}] if isinstance(model, BowTieNetwork) else [{}, {"method": "conformal"}]
    for method in methods:
        with pytest.raises(ValueError, match="coverage"):
            model.predict_interval(X, coverage, **method)
    with pytest.raises(ValueError, match="n_samples"):
        model.sample_y(X, 0)
    with pytest.raises(ValueError, match="levels"):
        model.predict_quantiles(X, [0.1, 1.1])
    for ask in (type(model)().summary, lambda: type(model)().predict(X)):
        with pytest.raises(NotFittedError):
            ask()
