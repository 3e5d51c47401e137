"""Moments, entropy and samples of Gaussian rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bowtienet._old.distributions import gaussian
from bowtienet._old.distributions.gaussian import GaussianRows

FALSE_ALARM = 1e-6


@pytest.fixture
def rows() -> GaussianRows:
    """Three rows of four, standard deviations from 1e-6 to 1."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 4, 6)) * np.array([1.0, 1e-2, 1e-6, 0.5])[:, None]
    return GaussianRows(
        mean=rng.standard_normal((3, 4)), covariance=root @ np.swapaxes(root, -1, -2)
    )


def test_second_moments(rows: GaussianRows) -> None:
    moment = gaussian.second_moment(rows)
    assert moment.shape == (3, 4, 4)
    for d in range(3):
        expected = np.outer(rows.mean[d], rows.mean[d]) + rows.covariance[d]
        np.testing.assert_allclose(moment[d], expected)
        np.testing.assert_allclose(gaussian.squares(rows)[d], np.diag(expected))


def test_entropy_agrees_with_scipy(rows: GaussianRows) -> None:
    entropy = gaussian.entropy(rows)
    assert entropy.shape == (3,)
    for d in range(3):
        # scipy calls this covariance singular; scaling x by c adds log c to the entropy.
        scaling = np.array([1.0, 1e2, 1e6, 1.0])
        scaled = rows.covariance[d] * np.outer(scaling, scaling)
        expected = stats.multivariate_normal(cov=scaled).entropy() - np.sum(np.log(scaling))
        np.testing.assert_allclose(entropy[d], expected, rtol=1e-10)


def test_constant_entries_have_no_entropy(rows: GaussianRows) -> None:
    keep = [0, 2]
    covariance = np.zeros_like(rows.covariance)
    covariance[:, [[0], [2]], keep] = rows.covariance[:, [[0], [2]], keep]
    reduced = GaussianRows(mean=rows.mean[:, keep], covariance=rows.covariance[:, [[0], [2]], keep])
    padded = GaussianRows(mean=rows.mean, covariance=covariance)
    np.testing.assert_allclose(gaussian.entropy(padded), gaussian.entropy(reduced), rtol=1e-12)


def test_samples_have_the_covariance(rows: GaussianRows) -> None:
    """Whitened draws are standard: Σ z² over n draws is chi-squared, two-sided at 1e-6 per row."""
    draws = gaussian.sample(rows, np.random.default_rng(1), (2000,))
    assert draws.shape == (2000, 3, 4)
    for d in range(3):
        deviation = np.sqrt(np.diag(rows.covariance[d]))
        correlation = rows.covariance[d] / np.outer(deviation, deviation)
        standard = (draws[:, d] - rows.mean[d]) / deviation
        statistic = np.sum(standard * np.linalg.solve(correlation, standard.T).T)
        tail = stats.chi2(2000 * 4).cdf(statistic)
        assert FALSE_ALARM / 2 < tail < 1 - FALSE_ALARM / 2
        centre = 2000 * standard.mean(0) @ np.linalg.solve(correlation, standard.mean(0))
        assert stats.chi2(4).sf(centre) > FALSE_ALARM


def test_entry_without_variance_stays_at_its_mean(rows: GaussianRows) -> None:
    kept = np.array([1.0, 1.0, 0.0, 1.0])
    pruned = GaussianRows(mean=rows.mean, covariance=rows.covariance * np.outer(kept, kept))
    draw = gaussian.sample(pruned, np.random.default_rng(2))
    np.testing.assert_array_equal(draw[:, 2], rows.mean[:, 2])
    assert np.all(draw[:, 0] != rows.mean[:, 0])
