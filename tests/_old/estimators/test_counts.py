"""Counts: predictive distributions of whole numbers, exposures, scores, files and streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from bowtienet._old import BowTieRegressor, load, open_source
from tests._old.estimators.models import assert_same, small, stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 300
DISPERSION = 4.0


def rates(X: np.ndarray) -> np.ndarray:
    return np.exp(0.5 + 0.8 * np.abs(X[:, 0]) - 0.5 * X[:, 1])


def rows(n: int, seed: int, *, poisson: bool = False) -> tuple[np.ndarray, ...]:
    """Features, counts and exposures; the last column has no part in the rate."""
    rng = np.random.default_rng(seed)
    X, exposure = rng.uniform(-2.0, 2.0, size=(n, 3)), rng.uniform(0.5, 3.0, size=n)
    mean = exposure * rates(X)
    noise = np.ones(n) if poisson else rng.gamma(DISPERSION, 1.0 / DISPERSION, size=n)
    return X, rng.poisson(mean * noise), exposure


X, Y, EXPOSURE = rows(N, 520)
NEW, NEW_Y, NEW_EXPOSURE = rows(4000, 521)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(calls=Y, hours=EXPOSURE)


def counts(**changes: Any) -> BowTieRegressor:
    return stacked(**({"outcome": "counts", "effort": "fast"} | changes))


@pytest.fixture(scope="module")
def fitted() -> BowTieRegressor:
    return counts().fit(X, Y, exposure=EXPOSURE)


# Distributions


def standard_error(share: float, n: int) -> float:
    return float(np.sqrt(share * (1.0 - share) / n))


@pytest.mark.parametrize("poisson", [False, True])
@pytest.mark.parametrize("method", ["central", "highest_density"])
def test_intervals_hold_at_least_their_share(poisson: bool, method: str) -> None:
    """Whole numbers hold more than asked for. 0.03: an ensemble of 300 rows; then four errors."""
    model = counts().fit(*rows(N, 522, poisson=poisson)[:2])
    table, y, _ = rows(2000, 523, poisson=poisson)
    for share in (0.5, 0.9):
        ends = model.predict_interval(table, share, method=method, n_samples=500)
        held = np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))
        assert held > share - 0.03 - 4.0 * standard_error(share, len(y))
        assert_array_equal(ends, np.floor(ends))
        assert (ends >= 0.0).all()


def test_the_distribution_is_near_the_planted_one(fitted: BowTieRegressor) -> None:
    """0.1 nats a row below the truth is what 300 rows leave open."""
    mean = NEW_EXPOSURE * rates(NEW)
    truth = stats.nbinom(DISPERSION, DISPERSION / (DISPERSION + mean)).logpmf(NEW_Y).mean()
    constant = stats.poisson(NEW_EXPOSURE * Y.sum() / EXPOSURE.sum()).logpmf(NEW_Y).mean()
    found = fitted.log_score(NEW, NEW_Y, exposure=NEW_EXPOSURE)
    assert truth - 0.1 < found < truth + 0.02
    assert found > constant + 0.5


def test_quantiles_are_whole_and_agree_with_the_distribution(fitted: BowTieRegressor) -> None:
    some, hours = NEW[:200], NEW_EXPOSURE[:200]
    found = fitted.predict_quantiles(some, (0.1, 0.5, 0.9), exposure=hours)
    assert found.shape == (200, 3)
    assert_array_equal(found, np.floor(found))
    assert (np.diff(found, axis=1) >= 0.0).all()
    own = fitted.predict_dist(some, exposure=hours)
    for level, values in zip((0.1, 0.5, 0.9), found.T, strict=True):
        assert (own.cdf(values) >= level).all()
        assert (own.cdf(values - 1.0) < level).all()


def test_scores_are_those_of_the_distribution(fitted: BowTieRegressor) -> None:
    weights = np.random.default_rng(524).integers(0, 3, size=len(NEW)).astype(float)
    own = fitted.predict_dist(NEW, exposure=NEW_EXPOSURE)
    logs = np.average(own.logpmf(NEW_Y), weights=weights)
    assert_allclose(fitted.log_score(NEW, NEW_Y, weights, exposure=NEW_EXPOSURE), logs)
    mean = fitted.predict(NEW, exposure=NEW_EXPOSURE)
    missed = np.average((NEW_Y - mean) ** 2, weights=weights)
    spread = np.average((NEW_Y - np.average(NEW_Y, weights=weights)) ** 2, weights=weights)
    r2 = fitted.score(NEW, NEW_Y, weights, exposure=NEW_EXPOSURE)
    assert_allclose(r2, 1.0 - missed / spread)


def test_components_add_up_to_the_variance(fitted: BowTieRegressor) -> None:
    found = fitted.predict_components(NEW, exposure=NEW_EXPOSURE)
    mean, std = fitted.predict(NEW, return_std=True, exposure=NEW_EXPOSURE)
    assert_allclose(found.mean, mean)
    assert_allclose(found.epistemic_variance + found.noise_variance, std**2)
    assert (found.noise_variance >= mean).all()
    assert (found.epistemic_variance > 0.0).all()


@pytest.mark.parametrize("joint", [False, True])
def test_draws_have_the_moments_of_the_distribution(fitted: BowTieRegressor, joint: bool) -> None:
    some, hours, n = NEW[:20], NEW_EXPOSURE[:20], 4000
    draws = fitted.sample_y(some, n, joint=joint, exposure=hours)
    assert draws.shape == (20, n)
    assert_array_equal(draws, np.floor(draws))
    assert (draws >= 0.0).all()
    mean, std = fitted.predict(some, return_std=True, exposure=hours)
    # The push-forward of whole networks is a normal approximation.
    error = 5.0 * std / np.sqrt(n) + (0.1 * mean if joint else 0.0)
    assert (np.abs(draws.mean(axis=1) - mean) < error).all()
    assert_allclose(draws.std(axis=1), std, rtol=0.35 if joint else 0.15)
    smooth = fitted.sample_y(some, n, joint=joint, noise=False, exposure=hours)
    assert (smooth.std(axis=1) < draws.std(axis=1)).all()


# Exposure


def test_twice_the_exposure_is_twice_the_mean(fitted: BowTieRegressor) -> None:
    once, twice = (fitted.predict(NEW, exposure=k * NEW_EXPOSURE) for k in (1.0, 2.0))
    assert_allclose(twice, 2.0 * once, rtol=1e-12)
    assert_array_equal(fitted.predict(NEW), fitted.predict(NEW, exposure=np.ones(len(NEW))))
    assert np.corrcoef(np.log(fitted.predict(NEW)), np.log(rates(NEW)))[0, 1] > 0.95


def test_exposure_by_name_and_from_files(fitted: BowTieRegressor, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=100)
    for table in (FRAME, path, [FRAME[:100], FRAME[100:]]):
        model = counts().fit(table, "calls", exposure="hours")
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        assert_same(model, fitted)
        own = model.predict(table, exposure="hours")
        assert_allclose(own, fitted.predict(X, exposure=EXPOSURE), rtol=1e-12)
        assert_allclose(
            model.log_score(table, "calls", exposure="hours"),
            fitted.log_score(X, Y, exposure=EXPOSURE),
        )


def test_streams(tmp_path: Path) -> None:
    batches = [FRAME[:150], FRAME[150:]]
    model = counts(solver="svi", batch_size=80, max_iter=3).fit(batches, "calls", exposure="hours")
    assert model.solver_ == "svi"
    found = model.log_score(NEW_FRAME, NEW_Y, exposure=NEW_EXPOSURE)
    constant = stats.poisson(NEW_EXPOSURE * Y.sum() / EXPOSURE.sum()).logpmf(NEW_Y).mean()
    assert found > constant + 0.3


NEW_FRAME = pd.DataFrame(NEW, columns=["a", "b", "c"])


def test_what_is_no_count_is_named(fitted: BowTieRegressor) -> None:
    for bad, word in ((-1.0, "-1.0"), (0.5, "0.5")):
        with pytest.raises(ValueError, match=rf"whole numbers from 0 on, but row 3 has {word}"):
            counts().fit(X, np.where(np.arange(N) == 3, bad, Y))
    with pytest.raises(ValueError, match="2 columns, but counts are one"):
        counts().fit(X, np.column_stack([Y, Y]))
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="exposure must be positive and finite, but row 3"):
            counts().fit(X, Y, exposure=np.where(np.arange(N) == 3, bad, 1.0))
    with pytest.raises(ValueError, match="counts have no return_cov"):
        fitted.predict(X, return_cov=True)
    with pytest.raises(ValueError, match="conformal intervals are for continuous targets"):
        fitted.predict_interval(X, method="conformal")
    with pytest.raises(ValueError, match="not for outcome='counts'"):
        fitted.prune(X, Y)


def test_only_counts_have_exposures() -> None:
    model = small().fit(X, Y)
    for ask in (model.predict, model.predict_components, model.sample_y, model.predict_interval):
        with pytest.raises(ValueError, match="exposure is for outcome='counts'"):
            ask(X, exposure=EXPOSURE)
    for fit in (model.fit, model.score):
        with pytest.raises(ValueError, match="exposure"):
            fit(X, Y, exposure=EXPOSURE)


# The rest of an estimator


@pytest.mark.parametrize("y", [np.zeros(40, dtype=int), np.arange(40) // 39, np.full(40, 7)])
def test_targets_that_hardly_vary(y: np.ndarray) -> None:
    model = counts().fit(X[:40], y)
    found = model.predict(X[:40])
    assert np.isfinite(found).all()
    assert_allclose(found.mean(), y.mean(), atol=0.5)
    assert np.isfinite(model.predict_interval(X[:40])).all()


def test_files_keep_counts(fitted: BowTieRegressor, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.btn")
    again = load(tmp_path / "model.btn")
    assert again.outcome == "counts"
    for ask in (again.predict, again.predict_interval, again.sample_y):
        own = getattr(fitted, ask.__name__)
        assert_array_equal(
            ask(NEW[:50], exposure=3.0 * np.ones(50)), own(NEW[:50], exposure=3.0 * np.ones(50))
        )


def test_rows_that_arrive() -> None:
    model = counts().partial_fit(X[:150], Y[:150], exposure=EXPOSURE[:150])
    before = model.log_score(NEW, NEW_Y, exposure=NEW_EXPOSURE)
    model.partial_fit(X[150:], Y[150:], exposure=EXPOSURE[150:])
    assert model.log_score(NEW, NEW_Y, exposure=NEW_EXPOSURE) > before - 0.05


def test_columns_that_matter(fitted: BowTieRegressor) -> None:
    """The exposure is no target, though it stands beside the counts; nor is it a column."""
    exposed = open_source(X, Y, target="count", exposure=EXPOSURE)
    assert_array_equal(fitted.structure(exposed).selected, [True, True, False])
    found = fitted.importance(exposed)
    assert_allclose(found.log_density, fitted.log_score(X, Y, exposure=EXPOSURE))
    assert "log probability" in repr(found)
    assert "RMSE" in repr(found)
    assert np.argmin(found.log_density_drop) == 2
    assert np.argmin(fitted.feature_importances_) == 2
    explained = fitted.explain(X[:3])
    mean, std = fitted.predict(X[:3], return_std=True)
    assert_allclose(explained.base_mean + explained.mean_contributions.sum(axis=1), mean)
    assert_allclose(explained.base_std + explained.std_contributions.sum(axis=1), std)


def test_a_column_that_says_the_exposure_does_not_matter() -> None:
    """Its counts follow it; its rates do not."""
    rng = np.random.default_rng(525)
    table, hours = rng.uniform(-2.0, 2.0, size=(400, 2)), rng.uniform(0.2, 4.0, size=400)
    table[:, 1] = hours
    y = rng.poisson(hours * np.exp(table[:, 0]))
    model = counts().fit(table, y, exposure=hours)
    found = model.structure(open_source(table, y, target="count", exposure=hours))
    assert_array_equal(found.selected, [True, False])
