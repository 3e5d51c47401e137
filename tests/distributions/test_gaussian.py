"""Moments, entropy and samples of Gaussian rows of two networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bowtienet.distributions import gaussian
from bowtienet.distributions.gaussian import GaussianRows

FALSE_ALARM = 1e-6
ROWS = tuple(np.ndindex(2, 3))
N_DRAWS = 2000


@pytest.fixture
def rows(rng) -> GaussianRows:
    """Two networks with three rows of four, standard deviations from 1e-6 to 1."""
    root = rng.standard_normal((2, 3, 4, 6)) * np.array([1.0, 1e-2, 1e-6, 0.5])[:, None]
    return GaussianRows(
        mean=rng.standard_normal((2, 3, 4)), covariance=root @ np.swapaxes(root, -1, -2)
    )


def test_second_moments(rows):
    moment, squares = gaussian.second_moment(rows), gaussian.squares(rows)
    assert moment.shape == (2, 3, 4, 4)
    for d in ROWS:
        expected = np.outer(rows.mean[d], rows.mean[d]) + rows.covariance[d]
        np.testing.assert_allclose(moment[d], expected)
        np.testing.assert_allclose(squares[d], np.diag(expected))


def test_entropy_agrees_with_scipy(rows):
    entropy = gaussian.entropy(rows)
    assert entropy.shape == (2, 3)
    for d in ROWS:
        # SciPy calls this covariance singular; scaling x by c adds log c to the entropy.
        scaling = np.array([1.0, 1e2, 1e6, 1.0])
        scaled = rows.covariance[d] * np.outer(scaling, scaling)
        expected = stats.multivariate_normal(cov=scaled).entropy() - np.sum(np.log(scaling))
        np.testing.assert_allclose(entropy[d], expected, rtol=1e-10)


def test_constant_entries_have_no_entropy_and_stay_at_their_mean(rows, rng):
    keep = [0, 2]
    reduced = GaussianRows(
        mean=rows.mean[..., keep], covariance=rows.covariance[..., keep, :][..., keep]
    )
    kept = np.array([1.0, 0.0, 1.0, 0.0])
    padded = GaussianRows(mean=rows.mean, covariance=rows.covariance * np.outer(kept, kept))
    np.testing.assert_allclose(gaussian.entropy(padded), gaussian.entropy(reduced), rtol=1e-12)
    draw = gaussian.sample(padded, rng)
    np.testing.assert_array_equal(draw == padded.mean, np.broadcast_to(kept == 0.0, draw.shape))


def test_samples_have_the_covariance(rows, rng):
    """Whitened draws are standard: Σ z² over n draws is chi-squared, two-sided at 1e-6 per row."""
    draws = gaussian.sample(rows, rng, (N_DRAWS,))
    assert draws.shape == (N_DRAWS, 2, 3, 4)
    for d in ROWS:
        deviation = np.sqrt(np.diag(rows.covariance[d]))
        correlation = rows.covariance[d] / np.outer(deviation, deviation)
        standard = (draws[(slice(None), *d)] - rows.mean[d]) / deviation
        statistic = np.sum(standard * np.linalg.solve(correlation, standard.T).T)
        tail = stats.chi2(N_DRAWS * 4).cdf(statistic)
        assert FALSE_ALARM / 2 < tail < 1 - FALSE_ALARM / 2
        centre = N_DRAWS * standard.mean(0) @ np.linalg.solve(correlation, standard.mean(0))
        assert stats.chi2(4).sf(centre) > FALSE_ALARM
