"""Each method on a signal that all can find, and some against the same model fitted by hand."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import StandardScaler

from benchmarks._old.paper.methods import METHODS, boosting, missing, ours, scikit, trees
from benchmarks._old.paper.methods.common import Components, Fitted, standardized
from benchmarks._old.paper.methods.mlp_piecewise import Choice
from bowtienet._old.evaluation import gaussian_process
from bowtienet._old.prediction.mixture import Mixture, build_mixture

QUICK_NETWORK = {"weighting": "equal", "max_iter": 10}
QUICK: dict[str, dict[str, Any]] = {
    "single": QUICK_NETWORK,
    "ensemble": QUICK_NETWORK | {"n_estimators": 2},
    "svi": QUICK_NETWORK,
    "svi_ensemble": QUICK_NETWORK | {"n_estimators": 2},
    "gaussian": QUICK_NETWORK,
    "pruned": QUICK_NETWORK | {"n_estimators": 1},
    "pruned_signs": QUICK_NETWORK,
    "lasso": {},
    "gpr": {},
    "ngboost": {"stages": 60, "learning_rate": 0.1},
    "catboost": {"stages": 200, "models": 2},
    "hist_quantiles": {"min_samples_leaf": 5},
    "stochtree": {"draws": 15, "thinning": 2, "warm_starts": 5, "chains": 2},
    "bde": {"n_members": 2, "epochs": 100, "warmup_steps": 100, "n_samples": 50, "n_thinning": 5},
    "mean_field": {"n_steps": 1500, "n_draws": 200},
    "nuts": {"n_warmup": 60, "n_draws": 60, "max_tree_depth": 5},
    "nuts_deep": {"n_warmup": 10, "n_draws": 10},
    "horseshoe": {"n_steps": 4000, "learning_rate": 0.03, "n_draws": 200},
    "backprop": {"epochs": 300, "draws": 50},
    "deep_ensemble": {"networks": 2, "epochs": 150},
    "laplace": {"epochs": 200, "every": 20, "rounds": 5},
    "mlp_piecewise": {
        "grid": (Choice(0, (8,), 0.01, 0.0), Choice(4, (8,), 0.01, 0.1)),
        "networks": 2,
        "epochs": 150,
    },
    "tabpfn": {},
    "tabicl": {},
}
pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 20.0] + [0.0, 300.0]
    return X, 50.0 + 10.0 * X[:, 0] - 0.5 * (X[:, 1] - 300.0) + 2.0 * rng.normal(size=n)


TRAIN, NEW = rows(100, seed=300), rows(200, seed=301)


def fitted(name: str, seed: int = 3, unit: float = 1.0) -> Fitted:
    if reason := missing(name):
        pytest.skip(reason)
    return METHODS[name].make((4,), **QUICK[name])(TRAIN[0], unit * TRAIN[1], seed)


@cache
def predicted(name: str, seed: int = 3) -> Mixture:
    return fitted(name, seed).predict(NEW[0])


@pytest.mark.parametrize("name", METHODS)
def test_a_method_finds_the_signal_and_its_noise(name):
    found = predicted(name)
    error = np.sqrt(np.mean((found.mean() - NEW[1]) ** 2))
    assert error < 0.5 * np.std(NEW[1])
    low, high = found.interval(0.95).T
    assert np.mean((low <= NEW[1]) & (NEW[1] <= high)) >= 0.8
    assert np.all(high - low < 4.0 * np.std(NEW[1]))


@pytest.mark.parametrize("name", METHODS)
def test_seeds_decide_and_nothing_else_does(name):
    """The global random state is neither read nor changed."""
    first = predicted(name)
    np.random.seed(7)  # noqa: NPY002 - a method that listens to it would differ
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    second = fitted(name).predict(NEW[0])
    np.testing.assert_array_equal(first.means, second.means)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    other = predicted(name, 4)
    if name in ("lasso", "gpr", "hist_quantiles"):
        np.testing.assert_array_equal(first.means, other.means)
    else:
        assert not np.intersect1d(first.means[:, 0], other.means[:, 0]).size  # no draw twice


@pytest.mark.parametrize(
    "name", ["lasso", "ngboost", "catboost", "stochtree", "bde", "deep_ensemble"]
)
def test_forecasts_are_in_the_unit_of_the_targets(name):
    """Exactly so for powers of two, which change no digit of a standardised target."""
    small, large = predicted(name), fitted(name, unit=1024.0).predict(NEW[0])
    np.testing.assert_array_equal(large.means, 1024.0 * small.means)
    np.testing.assert_array_equal(large.deviations, 1024.0 * small.deviations)


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
def test_ours_are_the_estimator_with_these_settings(name, settings):
    model = ours.regressor((4,), random_state=3, **QUICK_NETWORK, **settings).fit(*TRAIN)
    np.testing.assert_array_equal(predicted(name).means, model.predict_dist(NEW[0]).means)


def test_the_network_pruned_by_signs_says_how_much_is_left():
    model = ours.regressor((4,), n_estimators=1, random_state=3, **QUICK_NETWORK).fit(*TRAIN)
    smaller = ours.prune_by_signs(model, 0.01)
    found = fitted("pruned_signs")
    np.testing.assert_array_equal(found.predict(NEW[0]).means, smaller.predict_dist(NEW[0]).means)
    kept = int(smaller.sparsity_.weights_after.sum())
    assert found.note == f"{kept} of 12 weights kept ({100 * kept / 12:.0f} %)"


def test_the_pruned_network_is_that_of_prune():
    given = {"n_estimators": 1, "random_state": 3, **QUICK_NETWORK}
    smaller = ours.regressor((4,), **given).fit(*TRAIN).prune(*TRAIN)
    found = fitted("pruned")
    np.testing.assert_array_equal(found.predict(NEW[0]).means, smaller.predict_dist(NEW[0]).means)
    units, weights = smaller.pruning_.units_after, smaller.pruning_.weights_after
    assert found.note == f"2 of 2 columns, {units} units and {weights} weights kept"


def test_methods_without_code_say_why():
    for name in ("tabpfn", "tabicl"):
        assert "downloaded" in missing(name)
        with pytest.raises(NotImplementedError, match="downloaded"):
            METHODS[name].make((4,))


def test_quantiles_become_a_distribution_with_these_quantiles():
    """Of a normal distribution: bins are narrow, so little is lost between them."""
    exact = norm.ppf(boosting.LEVELS)[:, None] * [1.0, 3.0]
    found = build_mixture(*boosting.bins(exact, 1e-3))
    np.testing.assert_allclose(found.weights.sum(), 1.0)
    np.testing.assert_allclose(found.mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.ppf(list(boosting.LEVELS)), exact.T, atol=0.15)
    flat = build_mixture(*boosting.bins(np.zeros((len(boosting.LEVELS), 1)), 1e-3))
    assert np.isfinite(flat.logpdf(0.0)).all()


def test_point_predictions_of_squared_error_are_scored():
    found = fitted("hist_quantiles")
    model = HistGradientBoostingRegressor(min_samples_leaf=5, random_state=3).fit(*TRAIN)
    np.testing.assert_array_equal(found.mean(NEW[0]), model.predict(NEW[0]))
    assert not np.allclose(found.mean(NEW[0]), found.predict(NEW[0]).mean())


def test_lasso_is_lassocv_with_an_unbiased_residual_deviation():
    scaler = StandardScaler().fit(TRAIN[0])
    y = (TRAIN[1] - TRAIN[1].mean()) / TRAIN[1].std()
    model = LassoCV(max_iter=10_000).fit(scaler.transform(TRAIN[0]), y)
    residuals = TRAIN[1].std() * (y - model.predict(scaler.transform(TRAIN[0])))
    mean = TRAIN[1].mean() + TRAIN[1].std() * model.predict(scaler.transform(NEW[0]))
    found = predicted("lasso")
    np.testing.assert_allclose(found.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(found.std(), np.sqrt(np.sum(residuals**2) / 97), rtol=1e-12)
    # One penalty, too large for any weight to differ from zero: the deviation of the targets.
    found = scikit.lasso(alphas=[1e9])(*TRAIN, 3).predict(NEW[0])
    np.testing.assert_allclose(found.std(), TRAIN[1].std(ddof=1), rtol=1e-12)


def test_the_gaussian_process_is_that_of_compare():
    theirs = gaussian_process().fit(*TRAIN, 3, 0.95)(NEW[0]).distribution
    np.testing.assert_array_equal(predicted("gpr").means, theirs.means)


class Booster:
    """Remembers how it is fitted; the third stage is its best."""

    made: ClassVar[list[Booster]] = []
    best_val_loss_itr = 2

    def __init__(self, stages: int, learning_rate: float, seed: int) -> None:
        self.stages, self.rows = stages, (0, 0)
        Booster.made.append(self)

    def fit(self, X: np.ndarray, y: np.ndarray, X_val: Any = (), **rest: Any) -> Booster:
        self.rows = (len(X), len(X_val))
        return self

    def pred_dist(self, X: np.ndarray) -> Any:
        return SimpleNamespace(params={"loc": np.zeros(len(X)), "scale": np.ones(len(X))})


def test_ngboost_chooses_stages_by_a_fifth_and_fits_all_rows(monkeypatch):
    monkeypatch.setattr(trees, "booster", Booster)
    monkeypatch.setattr(Booster, "made", [])
    found = trees.ngboost(stages=40)(*TRAIN, 3).predict(NEW[0])
    assert [(one.stages, one.rows) for one in Booster.made] == [(40, (80, 20)), (3, (100, 0))]
    np.testing.assert_allclose(found.std(), TRAIN[1].std())


def test_rows_are_standardised_and_forecasts_are_not(rng):
    seen = []

    def fit(x, y, seed):
        seen.extend([x, y, seed])
        return Components(lambda new: (np.stack([new[:, 0], -new[:, 0]]), np.full((2, 4), 0.5)))

    X = np.column_stack([rng.normal(5.0, 3.0, size=50), np.full(50, 7.0)])
    y = rng.normal(-20.0, 4.0, size=50)
    found = standardized(fit, np.float32)(X, y, 11).predict(X[:4])
    assert (seen[0].dtype, seen[1].dtype, seen[2]) == (np.float32, np.float32, 11)
    np.testing.assert_allclose(seen[0].std(axis=0), [1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose([seen[1].mean(), seen[1].std()], [0.0, 1.0], atol=1e-6)
    means = y.mean() + y.std() * (X[:4, 0] - X[:, 0].mean()) / X[:, 0].std()
    np.testing.assert_allclose(found.means[0], means, rtol=1e-5)
    np.testing.assert_allclose(found.deviations, 0.5 * y.std())
