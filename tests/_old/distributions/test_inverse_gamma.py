"""Moments, samples and the expected log ratio of inverse gamma distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from bowtienet._old.distributions import inverse_gamma
from bowtienet._old.distributions.inverse_gamma import InverseGamma

FALSE_ALARM = 1e-6
DRAWS = 4000


@pytest.mark.parametrize(("concentration", "scale"), [(2.0, 1e-4), (3.5, 2.0), (501.0, 40.0)])
def test_moments_agree_with_scipy(concentration: float, scale: float) -> None:
    q = InverseGamma(concentration=concentration, scale=scale)
    frozen = stats.invgamma(concentration, scale=scale)
    inverse = stats.gamma(concentration, scale=1 / scale)
    np.testing.assert_allclose(inverse_gamma.mean(q), frozen.mean(), rtol=1e-12)
    np.testing.assert_allclose(inverse_gamma.mean_inverse(q), inverse.mean(), rtol=1e-12)
    expected = -quad(lambda x: np.log(x) * inverse.pdf(x), *inverse.ppf([1e-14, 1 - 1e-14]))[0]
    np.testing.assert_allclose(inverse_gamma.mean_log(q), expected, rtol=1e-7)
    x = inverse_gamma.mean_inverse(q)
    log_density = -(concentration + 1) * np.log(x) - scale / x - inverse_gamma.log_normalizer(q)
    np.testing.assert_allclose(log_density, frozen.logpdf(x), rtol=1e-12)


def test_mean_is_infinite_up_to_concentration_one() -> None:
    q = InverseGamma(concentration=np.array([0.5, 1.0, 3.0]), scale=2.0)
    np.testing.assert_array_equal(inverse_gamma.mean(q), [np.inf, np.inf, 1.0])


def test_expected_log_ratio_agrees_with_quadrature() -> None:
    q, p = InverseGamma(concentration=5.0, scale=3.0), InverseGamma(concentration=2.0, scale=0.1)
    frozen_q, frozen_p = stats.invgamma(5.0, scale=3.0), stats.invgamma(2.0, scale=0.1)
    expected = quad(
        lambda x: frozen_q.pdf(x) * (frozen_p.logpdf(x) - frozen_q.logpdf(x)), 1e-3, 400, limit=200
    )[0]
    np.testing.assert_allclose(inverse_gamma.expected_log_ratio(q, p), expected, rtol=1e-6)
    assert float(inverse_gamma.expected_log_ratio(q, q)) == 0.0


def test_samples_follow_the_distribution() -> None:
    """Kolmogorov-Smirnov against the exact distribution function, false alarm 1e-6."""
    q = InverseGamma(concentration=np.array([2.5, 7.0]), scale=3.0)
    draws = inverse_gamma.sample(q, np.random.default_rng(0), (DRAWS, 2))
    for column, concentration in enumerate([2.5, 7.0]):
        frozen = stats.invgamma(concentration, scale=3.0)
        assert stats.kstest(draws[:, column], frozen.cdf).pvalue > FALSE_ALARM


def test_torch_keeps_double_precision_beside_a_number() -> None:
    torch = pytest.importorskip("torch")
    scale = np.array([0.3, 4.0])
    p = InverseGamma(concentration=2.0, scale=1.0)
    q = InverseGamma(concentration=3.7, scale=torch.asarray(scale))
    expected = inverse_gamma.expected_log_ratio(InverseGamma(concentration=3.7, scale=scale), p)
    ratio = inverse_gamma.expected_log_ratio(q, p)
    np.testing.assert_allclose(ratio.numpy(), expected, rtol=1e-12)
