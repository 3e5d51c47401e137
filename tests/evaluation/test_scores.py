"""Scores against scoringrules, closed forms and sums over all counts."""

from __future__ import annotations

import numpy as np
import pytest
import scoringrules
from scipy.stats import binom, kstest, norm

from bowtienet.evaluation import (
    calibration_error,
    chance_band,
    coverage,
    crps,
    interval_score,
    pit,
)
from bowtienet.evaluation.scores import log_scores
from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.mixture import Mixture


def gaussian(means: np.ndarray, deviations: np.ndarray) -> Mixture:
    parts = {"means": means[None], "epistemic": 0.0 * means[None], "noise": deviations[None]}
    return Mixture(weights=np.ones(1), **parts)


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
    single = CountMixture(
        weights=np.ones(1), means=np.full((1, 4), mean), dispersion=np.array([0.7])
    )
    known = scoringrules.crps_negbinom(y[2:6], size, size / (size + mean))
    np.testing.assert_allclose(crps(y[2:6], single), known, rtol=1e-3)


def test_crps_of_many_counts_by_blocks() -> None:
    """A Poisson distribution of mean 10⁴ is a Gaussian."""
    mean = 1e4
    poisson = CountMixture(weights=np.ones(1), means=np.full((1, 3), mean), dispersion=np.zeros(1))
    y = np.array([9_700.0, 10_000.0, 10_250.0])
    exact = scoringrules.crps_normal(y, mean, np.sqrt(mean))
    np.testing.assert_allclose(crps(y, poisson), exact, rtol=5e-3)


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


def test_pit_is_uniform_for_right_distributions(rng: np.random.Generator) -> None:
    """False alarms: one in 10⁴ for each of the two."""
    means = rng.normal(size=2000)
    y = rng.normal(means, 0.5)
    values = pit(y, gaussian(means, np.full(2000, 0.5)))
    np.testing.assert_allclose(values, norm.cdf(y, means, 0.5))
    rates = rng.uniform(0.2, 5.0, size=2000)
    poisson = CountMixture(weights=np.ones(1), means=rates[None], dispersion=np.zeros(1))
    counts = rng.poisson(rates)
    drawn = pit(counts, poisson)
    for each in (values, drawn):
        assert kstest(each, "uniform").pvalue > 1e-4
    assert np.all((poisson.cdf(counts - 1.0) <= drawn) & (drawn <= poisson.cdf(counts)))
    assert kstest(pit(y, gaussian(means, np.full(2000, 1.0))), "uniform").pvalue < 1e-4


def test_calibration_error_and_chance(rng: np.random.Generator) -> None:
    """Calibrated forecasts have on average what is expected by chance."""
    classes = np.arange(3)
    errors, chances = [], []
    for _ in range(40):
        shares = rng.dirichlet(np.ones(3), size=600)
        y = np.array([rng.choice(3, p=p) for p in shares])
        error, by_chance = calibration_error(y, shares, classes)
        errors.append(error)
        chances.append(by_chance)
    # Three standard errors of the mean of forty.
    apart = abs(np.mean(errors) - np.mean(chances))
    assert apart < 3.0 * np.std(errors) / np.sqrt(40) + 0.02 * np.mean(chances)
    sure = np.tile([0.9, 0.05, 0.05], (600, 1))
    labels = np.repeat([0, 1], [300, 300])[rng.permutation(600)]
    error, by_chance = calibration_error(labels, sure, classes, bins=1)
    assert error == pytest.approx(0.4)
    assert by_chance == pytest.approx(np.sqrt(2 / np.pi * 0.9 * 0.1 / 600))
