"""Mixtures of classes and of counts: against SciPy, sums of probabilities, and draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bowtienet.prediction.discrete import ClassMixture, CountMixture

LEVELS = np.array([0.0, 1e-12, 0.01, 0.25, 0.5, 0.75, 0.95, 1.0 - 1e-9])


def counts(rng: np.random.Generator, by_row: bool = False) -> CountMixture:
    return CountMixture(
        weights=rng.dirichlet(np.ones(3)),
        means=np.exp(rng.normal(1.5, 1.0, size=(3, 6))),
        dispersion=rng.uniform(0.05, 2.0, size=(3, 6) if by_row else 3),
    )


def single(mean: float, dispersion: float) -> CountMixture:
    return CountMixture(
        weights=np.ones(1), means=np.array([[mean]]), dispersion=np.array([dispersion])
    )


# Classes


def test_entropy_of_classes_in_two_parts(rng):
    mixture = ClassMixture(
        weights=rng.dirichlet(np.ones(4)), probabilities=rng.dirichlet(np.ones(3), size=(4, 5))
    )
    epistemic, noise = mixture.parts()
    for row in range(5):
        each, mean = mixture.probabilities[:, row], mixture.mean()[row]
        np.testing.assert_allclose(mean, mixture.weights @ each)
        inside = mixture.weights @ [stats.entropy(p) for p in each]
        np.testing.assert_allclose(noise[row], inside)
        np.testing.assert_allclose(epistemic[row], stats.entropy(mean) - inside, atol=1e-14)
    labels = np.array([0, 2, 1, 1, 0])
    expected = np.log(mixture.mean()[np.arange(5), labels])
    np.testing.assert_array_equal(mixture.logpdf(labels), expected)


def test_members_that_are_sure_and_disagree():
    """All entropy is epistemic; and none, where they agree."""
    chances = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    mixture = ClassMixture(weights=np.array([0.5, 0.5]), probabilities=chances)
    np.testing.assert_allclose(mixture.parts(), [[np.log(2.0), 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(mixture.logpdf([0, 1]), [np.log(0.5), -np.inf])


# Counts


@pytest.mark.parametrize("by_row", [False, True])
def test_counts_against_scipy(by_row, rng):
    mixture = counts(rng, by_row)
    r = 1.0 / np.broadcast_to(mixture.dispersion.reshape(3, -1), (3, 6))
    each = stats.nbinom(r, 1.0 / (1.0 + mixture.means / r))
    w, y = mixture.weights, rng.integers(0, 30, size=(4, 6)).astype(float)
    for name, expected in {
        "cdf": [w @ each.cdf(k) for k in y],
        "sf": [w @ each.sf(k) for k in y],
        "logpdf": [np.log(w @ each.pmf(k)) for k in y],
    }.items():
        np.testing.assert_allclose(getattr(mixture, name)(y), expected, rtol=1e-10)
        np.testing.assert_allclose(getattr(mixture, name)(y[1]), expected[1], rtol=1e-10)
    mean = w @ each.mean()
    np.testing.assert_allclose(mixture.mean(), mean)
    epistemic, noise = mixture.parts()
    np.testing.assert_allclose(epistemic**2, w @ (each.mean() - mean) ** 2)
    np.testing.assert_allclose(noise**2, w @ each.var())
    np.testing.assert_allclose(mixture.std() ** 2, epistemic**2 + noise**2)


def test_what_is_no_count(rng):
    mixture = counts(rng)
    for y in (-1.0, 2.5, np.inf, np.nan):
        np.testing.assert_array_equal(mixture.logpdf(y), -np.inf)
    np.testing.assert_array_equal(mixture.cdf(-0.5), 0.0)
    np.testing.assert_array_equal(mixture.sf(-0.5), 1.0)
    np.testing.assert_array_equal(mixture.cdf(2.5), mixture.cdf(2.0))
    with pytest.raises(ValueError, match="levels"):
        mixture.ppf(1.1)


def test_quantiles_are_the_least_counts_of_their_level(rng):
    """By the definition, among all whole numbers."""
    for by_row in (False, True):
        mixture = counts(rng, by_row)
        table = mixture.cdf(np.arange(4000.0)[:, None] * np.ones(6))
        quantiles = mixture.ppf(LEVELS)
        for level, found in zip(LEVELS, quantiles, strict=True):
            np.testing.assert_array_equal(found, np.argmax(table >= level * (1 - 1e-14), axis=0))
        low, high = mixture.interval(0.5)
        np.testing.assert_array_equal([low, high], quantiles[[3, 5]])
        np.testing.assert_array_equal(mixture.ppf(1.0), np.inf)
        k = np.arange(8.0)
        reached = mixture.cdf(k[:, None] * np.ones(6))
        for row in range(6):
            np.testing.assert_array_equal(mixture.ppf(reached[:, row])[:, row], k)


@pytest.mark.parametrize("dispersion", [0.0, 1e-12, 0.3])
@pytest.mark.parametrize("mean", [0.0, 1e-9, 3.0, 1e9])
def test_large_and_small_means(mean, dispersion):
    mixture = single(mean, dispersion)
    for level in LEVELS:
        k = mixture.ppf(level)
        assert k == np.floor(k)
        assert mixture.cdf(k) >= level - 1e-12
        assert (k == 0.0) or (mixture.cdf(k - 1.0) < level)
    if dispersion == 0.0:
        np.testing.assert_array_equal(mixture.ppf(0.3), stats.poisson(mean).ppf(0.3))
    np.testing.assert_allclose(mixture.std() ** 2, mean + dispersion * mean**2)


def test_upper_quantiles_far_out(rng):
    mixture = counts(rng)
    for level in (1e-200, 1e-30, 0.01, 0.5, 0.9):
        k = mixture.isf(level)
        assert np.all(mixture.sf(k) <= level)
        assert np.all((k == 0.0) | (mixture.sf(k - 1.0) > level))
    np.testing.assert_array_equal(mixture.isf([0.0, 1.0])[:, 0], [np.inf, 0.0])


def test_draws(rng):
    """Chi-squared against the probabilities in every row, and the moments of a huge mean."""
    mixture = counts(rng)
    draws = mixture.rvs(5000, rng)
    edges = mixture.ppf(np.array([0.1, 0.3, 0.5, 0.7, 0.9]))
    for row in range(6):
        ends = np.unique(edges[:, row])
        expected = np.diff([0.0, *(mixture.cdf(end)[row] for end in ends), 1.0])
        found = np.bincount(np.searchsorted(ends, draws[:, row]), minlength=len(ends) + 1)
        assert stats.chisquare(found, 5000 * expected).pvalue > 1e-4
    poisson = single(1e9, 0.0).rvs(2000, rng)
    assert abs(poisson.mean() - 1e9) < 5.0 * np.sqrt(1e9 / 2000)
    assert poisson.std() == pytest.approx(np.sqrt(1e9), rel=0.08)
