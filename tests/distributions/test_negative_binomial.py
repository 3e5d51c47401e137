"""The negative binomial distribution against mpmath, from tiny to huge means and dispersions."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from bowtienet.distributions.negative_binomial import log_probability, tail

POISSON = 1e-30


@pytest.mark.parametrize("alpha", [POISSON, 1e-12, 1e-6, 0.2, 5.0, 1e3])
@pytest.mark.parametrize("mean", [1e-9, 0.3, 20.0, 1e4, 1e9, 1e12])
def test_log_probability_in_many_digits(mean, alpha):
    far = np.floor(mean + 4.0 * np.sqrt(mean + alpha * mean**2))
    with mpmath.workdps(80):
        m, r = mpmath.mpf(mean), 1 / mpmath.mpf(alpha)
        for y in {0.0, 1.0, 7.0, np.floor(mean), far}:
            exact = mpmath.loggamma(y + r) - mpmath.loggamma(r) - mpmath.loggamma(y + 1)
            exact += y * mpmath.log(m / (r + m)) - r * mpmath.log1p(m / r)
            found = log_probability(np.array([y]), np.array([mean]), np.array([alpha]))
            np.testing.assert_allclose(found, float(exact), rtol=1e-12, atol=1e-10)


def test_mean_zero_is_no_count():
    logs = log_probability(np.array([0.0, 1.0]), np.zeros(2), np.array([0.5, 0.5]))
    np.testing.assert_array_equal(logs, [0.0, -np.inf])


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("alpha", [POISSON, 1e-3, 0.2, 5.0, 1e3])
def test_tails_are_sums_of_probabilities(alpha, upper):
    means, counts = np.array([[1e-6], [0.5], [30.0]]), np.arange(2000.0)
    inside = np.exp(log_probability(counts, means, np.array([alpha])))
    below = np.cumsum(inside, axis=1)
    if upper:
        above = tail(np.array(1999.0), means, np.array([alpha]), upper=True)
        below = np.cumsum(inside[:, ::-1], axis=1)[:, ::-1] - inside + above
    found = tail(counts, means, np.array([alpha]), upper=upper)
    np.testing.assert_allclose(found, below, rtol=1e-9, atol=1e-60)


@pytest.mark.parametrize("mean", [1.0, 1e4, 1e9])
def test_poisson_limit(mean):
    k = np.floor(mean + np.array([-1.0, 0.0, 3.0]) * np.sqrt(mean))
    poisson = stats.poisson(mean)
    arguments = (np.array([mean]), np.array([POISSON]))
    near = 1e-9 if mean < 1e9 else 1e-7  # of SciPy 1.13; later ones have more digits
    np.testing.assert_allclose(tail(k, *arguments, upper=False), poisson.cdf(k), rtol=near)
    np.testing.assert_allclose(tail(k, *arguments, upper=True), poisson.sf(k), rtol=near)
