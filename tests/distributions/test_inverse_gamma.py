"""Moments, samples and the expected log ratio of inverse gamma distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from bowtienet.distributions import inverse_gamma
from bowtienet.distributions.inverse_gamma import InverseGamma

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(("concentration", "scale"), [(2.0, 1e-4), (3.5, 2.0), (501.0, 40.0)])
def test_moments_agree_with_scipy(concentration, scale):
    q = InverseGamma(concentration=concentration, scale=scale)
    law = stats.invgamma(concentration, scale=scale)
    inverse = stats.gamma(concentration, scale=1 / scale)
    np.testing.assert_allclose(inverse_gamma.mean(q), law.mean(), rtol=1e-12)
    np.testing.assert_allclose(inverse_gamma.mean_inverse(q), inverse.mean(), rtol=1e-12)
    expected = -quad(lambda x: np.log(x) * inverse.pdf(x), *inverse.ppf([1e-14, 1 - 1e-14]))[0]
    np.testing.assert_allclose(inverse_gamma.mean_log(q), expected, rtol=1e-7)
    x = inverse_gamma.mean_inverse(q)
    log_density = -(concentration + 1) * np.log(x) - scale / x - inverse_gamma.log_normalizer(q)
    np.testing.assert_allclose(log_density, law.logpdf(x), rtol=1e-12)


def test_mean_is_infinite_up_to_concentration_one():
    q = InverseGamma(concentration=np.array([0.5, 1.0, 3.0]), scale=2.0)
    np.testing.assert_array_equal(inverse_gamma.mean(q), [np.inf, np.inf, 1.0])


def test_expected_log_ratio_agrees_with_quadrature():
    """Of two networks, a number for the prior of both."""
    q = InverseGamma(concentration=np.array([5.0, 3.0]), scale=np.array([3.0, 0.8]))
    p = InverseGamma(concentration=2.0, scale=0.1)
    ratio = inverse_gamma.expected_log_ratio(q, p)
    prior = stats.invgamma(2.0, scale=0.1)
    for m, end in enumerate((400.0, 4000.0)):
        law = stats.invgamma(q.concentration[m], scale=q.scale[m])

        def difference(x: float, law: stats.rv_continuous = law) -> float:
            return law.pdf(x) * (prior.logpdf(x) - law.logpdf(x))

        expected = quad(difference, 1e-3, end, points=[0.1, 1.0, 10.0], limit=400)[0]
        np.testing.assert_allclose(ratio[m], expected, rtol=1e-6)
    np.testing.assert_array_equal(inverse_gamma.expected_log_ratio(q, q), 0.0)


def test_samples_follow_the_distribution(rng):
    """Kolmogorov-Smirnov against the exact distribution function, false alarm 1e-6."""
    q = InverseGamma(concentration=np.array([2.5, 7.0]), scale=3.0)
    draws = inverse_gamma.sample(q, rng, (4000, 2))
    for column, concentration in enumerate([2.5, 7.0]):
        law = stats.invgamma(concentration, scale=3.0)
        assert stats.kstest(draws[:, column], law.cdf).pvalue > FALSE_ALARM
