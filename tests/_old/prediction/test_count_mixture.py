"""Mixtures of negative binomial distributions against SciPy's and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import nbinom

from bowtienet._old.prediction.count_mixture import CountMixture, join_counts

WEIGHTS, DISPERSIONS = np.array([0.3, 0.7]), np.array([0.8, 25.0])


@pytest.fixture
def found() -> CountMixture:
    means = np.array([[0.02, 3.0, 40.0, 1e5], [0.5, 2.0, 90.0, 3e5]])
    return CountMixture(weights=WEIGHTS, means=means, dispersions=DISPERSIONS)


def components(found: CountMixture) -> list:
    return [nbinom(r, r / (r + m)) for r, m in zip(DISPERSIONS, found.means, strict=True)]


def test_probabilities_and_moments(found: CountMixture) -> None:
    parts = components(found)
    y = np.array([0.0, 4.0, 60.0, 2e5])
    pmf = sum(w * part.pmf(y) for w, part in zip(WEIGHTS, parts, strict=True))
    cdf = sum(w * part.cdf(y) for w, part in zip(WEIGHTS, parts, strict=True))
    np.testing.assert_allclose(found.pmf(y), pmf, rtol=1e-9)
    np.testing.assert_allclose(found.logpmf(y), np.log(pmf), rtol=1e-9)
    np.testing.assert_allclose(found.cdf(y), cdf, rtol=1e-9)
    np.testing.assert_allclose(found.sf(y), 1.0 - cdf, atol=1e-12)
    mean = sum(w * part.mean() for w, part in zip(WEIGHTS, parts, strict=True))
    square = sum(
        w * (part.var() + part.mean() ** 2) for w, part in zip(WEIGHTS, parts, strict=True)
    )
    np.testing.assert_allclose(found.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(found.var(), square - mean**2, rtol=1e-9)
    np.testing.assert_allclose(found.std() ** 2, found.var(), rtol=1e-12)


@pytest.mark.parametrize("level", [0.0, 1e-6, 0.05, 0.5, 0.95, 1.0 - 1e-9])
def test_quantiles_are_the_least_counts(found: CountMixture, level: float) -> None:
    y = found.ppf(level)
    assert np.all(y == np.floor(y))
    assert np.all(found.cdf(y) >= level * (1.0 - 1e-13))
    assert np.all((y == 0.0) | (found.cdf(y - 1.0) < level))


def test_quantiles_of_several_levels_and_intervals(found: CountMixture) -> None:
    levels = found.ppf([[0.1, 0.9], [0.5, 0.6]])
    assert levels.shape == (4, 2, 2)
    np.testing.assert_array_equal(levels[:, 0, 1], found.ppf(0.9))
    np.testing.assert_array_equal(found.ppf(1.0), np.inf)
    low, high = found.interval(0.8).T
    np.testing.assert_array_equal(low, levels[:, 0, 0])
    np.testing.assert_array_equal(high, levels[:, 0, 1])
    assert found.interval([0.5, 0.8]).shape == (4, 2, 2)
    held = found.cdf(high) - found.cdf(low - 1.0)
    assert np.all(held >= 0.8 - 1e-12)
    with pytest.raises(ValueError, match="between 0 and 1"):
        found.ppf(1.5)


def test_what_is_no_count_has_no_probability(found: CountMixture) -> None:
    np.testing.assert_array_equal(found.pmf([-1.0, 0.5, 2.5, -3.0]), 0.0)
    np.testing.assert_array_equal(found.cdf([-1.0] * 4), 0.0)
    np.testing.assert_allclose(found.cdf([0.7] * 4), found.cdf([0.0] * 4))


def test_draws_have_the_moments(found: CountMixture) -> None:
    """200,000 draws: five standard errors of the mean."""
    draws = found.rvs(200_000, random_state=500)
    assert draws.shape == (200_000, 4)
    error = found.std() / np.sqrt(200_000)
    assert np.all(np.abs(draws.mean(axis=0) - found.mean()) < 5.0 * error)


def test_rows_of_several_parts(found: CountMixture) -> None:
    joined = join_counts([found, found])
    y = np.arange(8.0)
    np.testing.assert_array_equal(joined.logpmf(y)[:4], found.logpmf(y[:4]))
    np.testing.assert_array_equal(joined.logpmf(y)[4:], found.logpmf(y[4:]))
