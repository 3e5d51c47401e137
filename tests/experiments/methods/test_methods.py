"""Each method on a signal that all can find, and each against the same model fitted by hand."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import StandardScaler

from bowtienet import BowTieRegressor
from bowtienet.evaluation.methods import Forecast, gaussian_process
from bowtienet.experiments.methods import METHODS, boosting, missing
from bowtienet.experiments.methods.standardized import Fitted, standardized

QUICK_NETWORK = {"combine": "equal", "max_iter": 10}
QUICK: dict[str, dict[str, Any]] = {
    "single": QUICK_NETWORK,
    "ensemble": QUICK_NETWORK | {"n_estimators": 2},
    "svi": QUICK_NETWORK,
    "svi_ensemble": QUICK_NETWORK | {"n_estimators": 2},
    "gaussian": QUICK_NETWORK,
    "pruned": QUICK_NETWORK,
    "lasso": {},
    "gpr": {"max_rows": 60},
    "ngboost": {"stages": 60, "learning_rate": 0.1},
    "stochtree": {"draws": 15, "thinning": 2, "warm_starts": 5, "chains": 2},
    "bde": {"n_members": 2, "epochs": 100, "warmup_steps": 100, "n_samples": 50, "n_thinning": 5},
}
NAMES = list(QUICK)
pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 20.0] + [0.0, 300.0]
    return X, 50.0 + 10.0 * X[:, 0] - 0.5 * (X[:, 1] - 300.0) + 2.0 * rng.normal(size=n)


TRAIN = rows(100, seed=300)
NEW = rows(200, seed=301)


def fitted(name: str, seed: int = 3, unit: float = 1.0, **changes: Any) -> Forecast:
    if (reason := missing(name)) is not None:
        pytest.skip(reason)
    method = METHODS[name].make(hidden=(4,), **QUICK[name] | changes)
    return method.fit(TRAIN[0], unit * TRAIN[1], seed, 0.95)(NEW[0])


@cache
def forecast(name: str, seed: int = 3) -> Forecast:
    return fitted(name, seed)


@pytest.fixture(params=NAMES)
def found(request: pytest.FixtureRequest) -> tuple[str, Forecast]:
    return request.param, forecast(request.param)


def test_a_method_finds_the_signal(found: tuple[str, Forecast]) -> None:
    error = np.sqrt(np.mean((found[1].distribution.mean() - NEW[1]) ** 2))
    assert error < 0.5 * np.std(NEW[1])


def test_intervals_hold_about_what_they_say(found: tuple[str, Forecast]) -> None:
    low, high = found[1].intervals.T
    assert 0.8 <= np.mean((low <= NEW[1]) & (NEW[1] <= high)) <= 1.0
    assert np.all(high - low < 4.0 * np.std(NEW[1]))


def test_intervals_are_central(found: tuple[str, Forecast]) -> None:
    distribution, (low, high) = found[1].distribution, found[1].intervals.T
    np.testing.assert_allclose(distribution.cdf(low), 0.025, rtol=1e-6)
    np.testing.assert_allclose(distribution.sf(high), 0.025, rtol=1e-6)


def test_the_same_seed_gives_the_same_forecast_and_nothing_else_matters(
    found: tuple[str, Forecast],
) -> None:
    """The global random state is neither read nor changed."""
    name, first = found
    np.random.seed(7)  # noqa: NPY002 - a method that listens to it would differ
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    second = fitted(name)
    np.testing.assert_array_equal(first.distribution.means, second.distribution.means)
    np.testing.assert_array_equal(first.intervals, second.intervals)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("name", [name for name in NAMES if METHODS[name].stochastic])
def test_another_seed_gives_another_forecast(name: str) -> None:
    first, second = (forecast(name, seed).distribution.means for seed in (3, 4))
    assert not np.intersect1d(first[:, 0], second[:, 0]).size  # no draw or member twice


@pytest.mark.parametrize("name", [name for name in NAMES if not METHODS[name].stochastic])
def test_a_method_without_chance_does_not_care_for_the_seed(name: str) -> None:
    settings = {"max_rows": 200} if name == "gpr" else {}
    first, second = (fitted(name, seed, **settings).distribution.means for seed in (3, 4))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["lasso", "ngboost", "stochtree", "bde"])
def test_forecasts_are_in_the_unit_of_the_targets(name: str) -> None:
    """Exactly so for powers of two, which change no digit of a standardised target."""
    small, large = forecast(name), fitted(name, unit=1024.0)
    np.testing.assert_array_equal(large.distribution.means, 1024.0 * small.distribution.means)
    np.testing.assert_array_equal(
        large.distribution.deviations, 1024.0 * small.distribution.deviations
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("single", {"n_estimators": 1}),
        ("ensemble", {"n_estimators": 2}),
        ("svi", {"n_estimators": 1, "solver": "svi"}),
        ("svi_ensemble", {"n_estimators": 2, "solver": "svi"}),
        ("gaussian", {"n_estimators": 1, "prior": "gaussian"}),
    ],
)
def test_ours_are_the_estimator_with_these_settings(name: str, settings: dict[str, Any]) -> None:
    model = BowTieRegressor((4,), random_state=3, **QUICK_NETWORK, **settings).fit(*TRAIN)
    ours = forecast(name)
    np.testing.assert_array_equal(ours.distribution.means, model.predict_dist(NEW[0]).means)
    np.testing.assert_array_equal(ours.intervals, model.predict_interval(NEW[0], coverage=0.95))


def test_the_ensemble_has_the_members_of_the_default() -> None:
    method = METHODS["ensemble"].make(hidden=(2,), combine="equal", max_iter=2)
    found = method.fit(*TRAIN, 3, 0.95)(NEW[0][:2])
    assert len(found.distribution.weights) == BowTieRegressor().n_estimators


def test_the_pruned_network_says_how_much_is_left() -> None:
    model = BowTieRegressor((4,), n_estimators=1, random_state=3, **QUICK_NETWORK).fit(*TRAIN)
    smaller = model.prune(false_sign_rate=0.01)
    found = forecast("pruned")
    np.testing.assert_array_equal(found.distribution.means, smaller.predict_dist(NEW[0]).means)
    kept = int(smaller.sparsity_.weights_after.sum())
    assert kept < 12  # two inputs, four hidden units, one output
    assert found.note == f"{kept} of 12 weights kept ({100 * kept / 12:.0f} %)"


def test_lasso_is_lassocv_with_an_unbiased_residual_deviation() -> None:
    scaler = StandardScaler().fit(TRAIN[0])
    y = (TRAIN[1] - TRAIN[1].mean()) / TRAIN[1].std()
    model = LassoCV(max_iter=10_000).fit(scaler.transform(TRAIN[0]), y)
    residuals = TRAIN[1].std() * (y - model.predict(scaler.transform(TRAIN[0])))
    deviation = np.sqrt(np.sum(residuals**2) / (100 - 3))
    mean = TRAIN[1].mean() + TRAIN[1].std() * model.predict(scaler.transform(NEW[0]))
    found = forecast("lasso")
    np.testing.assert_allclose(found.distribution.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(found.distribution.std(), deviation, rtol=1e-12)
    np.testing.assert_allclose(found.intervals[:, 1], mean + norm.ppf(0.975) * deviation)


def test_lasso_without_signal_has_the_deviation_of_the_targets() -> None:
    rng = np.random.default_rng(302)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    # One penalty, too large for any weight to differ from zero.
    found = METHODS["lasso"].make(alphas=[10.0]).fit(X, y, 3, 0.95)(X)
    np.testing.assert_allclose(found.distribution.mean(), y.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.distribution.std(), y.std(ddof=1), rtol=1e-12)


def test_the_gaussian_process_is_that_of_compare() -> None:
    theirs = gaussian_process(60).fit(*TRAIN, 3, 0.95)(NEW[0])
    found = forecast("gpr")
    np.testing.assert_array_equal(found.distribution.means, theirs.distribution.means)
    assert found.note == theirs.note


class Booster:
    """Remembers how it is fitted; the third stage is its best."""

    made: ClassVar[list[Booster]] = []

    def __init__(self, stages: int, learning_rate: float, seed: int) -> None:
        self.stages, self.best_val_loss_itr, self.rows = stages, 2, (0, 0)
        Booster.made.append(self)

    def fit(self, X: np.ndarray, y: np.ndarray, X_val: Any = (), **rest: Any) -> Booster:
        self.rows = (len(X), len(X_val))
        return self

    def pred_dist(self, X: np.ndarray) -> Any:
        return SimpleNamespace(params={"loc": np.zeros(len(X)), "scale": np.ones(len(X))})


def test_ngboost_chooses_stages_by_a_fifth_and_fits_all_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boosting, "_booster", Booster)
    monkeypatch.setattr(Booster, "made", [])
    found = METHODS["ngboost"].make(stages=40).fit(*TRAIN, 3, 0.95)(NEW[0])
    assert [(one.stages, one.rows) for one in Booster.made] == [(40, (80, 20)), (3, (100, 0))]
    np.testing.assert_allclose(found.distribution.mean(), TRAIN[1].mean())
    np.testing.assert_allclose(found.distribution.std(), TRAIN[1].std())


def test_bart_mixes_the_draws_of_all_chains() -> None:
    found = forecast("stochtree").distribution
    assert found.means.shape == found.deviations.shape == (30, 200)
    np.testing.assert_allclose(found.weights, 1.0 / 30.0)
    # One noise for each draw, and not the same for all.
    assert np.all(np.ptp(found.deviations, axis=1) == 0.0)
    assert np.ptp(found.deviations[:, 0]) > 0.0


def test_a_bayesian_deep_ensemble_mixes_the_draws_of_all_members() -> None:
    found = forecast("bde").distribution
    assert found.means.shape == found.deviations.shape == (2 * 50 // 5, 200)


def test_a_bayesian_deep_ensemble_is_quiet_and_leaves_the_precision_of_jax_alone(
    capfd: pytest.CaptureFixture[str],
) -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    fitted("bde")
    assert jax.config.jax_enable_x64 == before
    assert capfd.readouterr() == ("", "")


def test_rows_are_standardised_and_forecasts_are_not(rng: np.random.Generator) -> None:
    seen: list[np.ndarray] = []

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        seen.extend([x, y, np.array(seed)])

        def components(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            seen.append(new)
            return np.stack([new[:, 0], -new[:, 0]]), np.full((2, len(new)), 0.5)

        return Fitted(components, note="a note")

    X = np.column_stack([rng.normal(5.0, 3.0, size=50), np.full(50, 7.0)])
    y = rng.normal(-20.0, 4.0, size=50)
    found = standardized("some", fit).fit(X, y, 11, 0.5)(X[:4])
    np.testing.assert_allclose(seen[0].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(seen[0].std(axis=0), [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose([seen[1].mean(), seen[1].std()], [0.0, 1.0], atol=1e-12)
    assert seen[2] == 11
    means = y.mean() + y.std() * (X[:4, 0] - X[:, 0].mean()) / X[:, 0].std()
    np.testing.assert_allclose(found.distribution.means[0], means)
    np.testing.assert_allclose(found.distribution.deviations, 0.5 * y.std())
    np.testing.assert_allclose(found.intervals, found.distribution.interval(0.5))
    assert found.note == "a note"
    seen.clear()
    standardized("some", fit, np.float32).fit(X, y, 11, 0.5)(X[:4])
    assert [seen[place].dtype for place in (0, 1, 3)] == [np.float32] * 3
