"""Scores against scoringrules, closed forms and sums over all counts; scorers in scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scoringrules
from scipy.stats import binom, kstest, norm
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.evaluation import (
    calibration_error,
    chance_band,
    coverage,
    crps,
    interval_score,
    log_score,
    neg_crps,
    neg_interval_score,
    pit,
)
from bowtienet.evaluation.scores import log_scores
from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.mixture import Mixture
from tests.evaluation.conftest import NAMES, Fitted


def gaussian(means: np.ndarray, deviations: np.ndarray) -> Mixture:
    parts = {"means": means[None], "epistemic": 0.0 * means[None], "noise": deviations[None]}
    return Mixture(weights=np.ones(1), **parts)


def counts_of(means: np.ndarray, dispersion: float = 0.0) -> CountMixture:
    return CountMixture(weights=np.ones(1), means=means[None], dispersion=np.array([dispersion]))


def test_crps_of_gaussians_and_mixtures(rng: np.random.Generator) -> None:
    y, means = rng.normal(size=(2, 50))
    deviations = rng.uniform(0.1, 3.0, size=50)
    exact = scoringrules.crps_normal(y, means, deviations)
    np.testing.assert_allclose(crps(y, gaussian(means, deviations)), exact, rtol=1e-2)
    assert np.mean(crps(y, gaussian(means, deviations))) == pytest.approx(exact.mean(), rel=1e-3)
    weights, centers, spread = np.array([0.3, 0.7]), rng.normal(0, 3, (2, 50)), np.ones((2, 50))
    mixture = Mixture(weights=weights, means=centers, epistemic=0.0 * spread, noise=spread)
    exact = scoringrules.crps_mixnorm(y, centers.T, spread.T, np.tile(weights, (50, 1)))
    np.testing.assert_allclose(crps(y, mixture), exact, rtol=1e-2)
    # Two targets of a row, and a column of one target, have the shape of the predictions.
    means, noise = centers.reshape(2, 25, 2), spread.reshape(2, 25, 2)
    pair = Mixture(weights=weights, means=means, epistemic=0.0 * noise, noise=noise)
    np.testing.assert_allclose(crps(y.reshape(25, 2), pair).ravel(), crps(y, mixture))
    np.testing.assert_array_equal(crps(y[:, None], mixture), crps(y, mixture))


def test_crps_of_counts_is_the_sum_over_all_counts(rng: np.random.Generator) -> None:
    means, dispersion = rng.uniform(0.1, 30.0, size=(2, 20)), np.array([0.1, 0.7])
    mixture = CountMixture(weights=np.array([0.4, 0.6]), means=means, dispersion=dispersion)
    y = np.concatenate([[0.0, 300.0], rng.poisson(10.0, size=18)])
    k = np.arange(2000)[:, None] * np.ones(20)
    exact = np.sum((mixture.cdf(k) - (k >= y)) ** 2, axis=0)
    np.testing.assert_allclose(crps(y, mixture), exact, rtol=0.02, atol=1e-3)
    size, mean = 1.0 / 0.7, 12.0
    known = scoringrules.crps_negbinom(y[2:6], size, size / (size + mean))
    single = counts_of(np.full(4, mean), 0.7)
    np.testing.assert_allclose(crps(y[2:6], single), known, rtol=1e-3)


def test_crps_of_many_counts_by_blocks() -> None:
    """A Poisson distribution of mean 10⁴ is a Gaussian."""
    y = np.array([9_700.0, 10_000.0, 10_250.0])
    exact = scoringrules.crps_normal(y, 1e4, 1e2)
    np.testing.assert_allclose(crps(y, counts_of(np.full(3, 1e4))), exact, rtol=5e-3)


def test_intervals_and_chance(rng: np.random.Generator) -> None:
    y, low = rng.normal(size=(2, 40))
    ends = np.stack([low, low + 1.0], axis=-1)
    known = scoringrules.interval_score(y, low, low + 1.0, 0.2)
    np.testing.assert_allclose(interval_score(y, ends, coverage=0.8), known)
    assert coverage(y, ends) == np.mean([a <= v <= b for v, (a, b) in zip(y, ends, strict=True)])
    assert coverage([0.0, 1.0, 3.0], [[0.0, 1.0]] * 3) == pytest.approx(2 / 3)
    for end, level in zip(chance_band([0.5, 0.9], 200), (0.025, 0.975), strict=True):
        np.testing.assert_allclose(end * 200, binom.ppf(level, 200, [0.5, 0.9]))


def test_logs(rng: np.random.Generator) -> None:
    y, means = rng.normal(size=(2, 30))
    found = log_scores(y, gaussian(means, np.full(30, 0.5)))
    np.testing.assert_allclose(found, norm.logpdf(y, means, 0.5))
    shares = rng.dirichlet(np.ones(3), size=4)
    classes, labels = np.array(["a", "b", "c"]), np.array(["b", "a", "c", "b"])
    np.testing.assert_allclose(
        log_scores(labels, shares, classes), np.log(shares[np.arange(4), [1, 0, 2, 1]])
    )
    assert np.isfinite(log_scores(["a"], [[0.0, 1.0, 0.0]], classes)).all()
    with pytest.raises(ValueError, match="'z'"):
        log_scores(["z"], shares[:1], classes)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        log_scores(np.ones(5), gaussian(np.zeros(4), np.ones(4)))


def test_pit_is_uniform_for_right_distributions(rng: np.random.Generator) -> None:
    """False alarms: one in 10⁴ for each of the two."""
    means = rng.normal(size=2000)
    y = rng.normal(means, 0.5)
    values = pit(y, gaussian(means, np.full(2000, 0.5)))
    np.testing.assert_allclose(values, norm.cdf(y, means, 0.5))
    rates = rng.uniform(0.2, 5.0, size=2000)
    poisson, counts = counts_of(rates), rng.poisson(rates)
    drawn = pit(counts, poisson)
    for each in (values, drawn):
        assert kstest(each, "uniform").pvalue > 1e-4
    assert np.all((poisson.cdf(counts - 1.0) <= drawn) & (drawn <= poisson.cdf(counts)))
    assert kstest(pit(y, gaussian(means, np.full(2000, 1.0))), "uniform").pvalue < 1e-4


def test_calibration_error_and_chance(rng: np.random.Generator) -> None:
    """Calibrated forecasts have on average what is expected by chance."""
    classes = np.arange(3)
    draws = [rng.dirichlet(np.ones(3), size=600) for _ in range(40)]
    targets = [np.array([rng.choice(3, p=p) for p in shares]) for shares in draws]
    pairs = zip(targets, draws, strict=True)
    errors, chances = zip(*(calibration_error(y, p, classes) for y, p in pairs), strict=True)
    # Three standard errors of the mean of forty.
    apart = abs(np.mean(errors) - np.mean(chances))
    assert apart < 3.0 * np.std(errors) / np.sqrt(40) + 0.02 * np.mean(chances)
    sure = np.tile([0.9, 0.05, 0.05], (600, 1))
    labels = np.repeat([0, 1], [300, 300])[rng.permutation(600)]
    error, by_chance = calibration_error(labels, sure, classes, bins=1)
    assert error == pytest.approx(0.4)
    assert by_chance == pytest.approx(np.sqrt(2 / np.pi * 0.9 * 0.1 / 600))


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_the_five_estimators(fitted: dict[str, Fitted], name: str) -> None:
    model, X, y = fitted[name]
    weights = np.arange(len(y)) % 3
    if hasattr(model, "predict_proba"):
        logs = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        for scorer in (neg_crps, neg_interval_score):
            with pytest.raises(TypeError, match="predict_dist"):
                scorer(model, X, y)
    else:
        distribution = model.predict_dist(X)
        logs = distribution.logpdf(y)
        assert neg_crps(model, X, y) == pytest.approx(-np.mean(crps(y, distribution)))
        found = neg_interval_score(model, X, y, weights, coverage=0.8)
        each = interval_score(y, model.predict_interval(X, 0.8), 0.8)
        assert found == pytest.approx(-np.average(each, weights=weights))
        assert log_score(model, X, y) == pytest.approx(model.log_score(X, y))
    assert log_score(model, X, y, weights) == pytest.approx(np.average(logs, weights=weights))


def test_inside_scikit_learn(fitted: dict[str, Fitted]) -> None:
    model, X, y = fitted["numbers"]
    folds = KFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(model, X, y, scoring=neg_crps, cv=folds)
    train, test = next(folds.split(X))
    again = clone(model).fit(X.iloc[train], y[train])
    assert scores[0] == pytest.approx(neg_crps(again, X.iloc[test], y[test]))
    grid = {"prior": ["gaussian", "student_t"]}
    search = GridSearchCV(BowTieRegressor((4,), effort="fast"), grid, scoring=log_score, cv=folds)
    search.fit(X, y)
    assert search.score(X, y) == log_score(search, X, y) == log_score(search.best_estimator_, X, y)
    lost = permutation_importance(model, X, y, scoring=log_score, n_repeats=2, random_state=0)
    assert X.columns[np.argmax(lost.importances_mean)] == "size"
    pipeline = make_pipeline(FunctionTransformer(), model)
    assert neg_crps(pipeline, X, y) == neg_crps(model, X, y)
