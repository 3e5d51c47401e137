"""Moments, limits, samples and solvers of the generalized inverse Gaussian."""

from __future__ import annotations

import jax
import mpmath
import numpy as np
import pytest
from scipy import stats

from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from tests import autodiff
from tests.builders import log_density

FALSE_ALARM = 1e-6
DRAWS = 2000
MOMENTS = (gig.log_normalizer, gig.mean, gig.mean_inverse)
CASES = [
    pytest.param(-1.5, 0.7, 0.0, id="inverse gamma"),
    pytest.param(-0.7, 0.4, 0.0, id="inverse gamma without a mean"),
    pytest.param(-40.0, 3.0, 0.0, id="inverse gamma of many weights"),
    pytest.param(1.0, 0.0, 2.0, id="Laplace"),
    pytest.param(1.7, 0.0, 0.3, id="gamma"),
    pytest.param(0.2, 0.0, 2.0, id="gamma without a mean inverse"),
    pytest.param(-0.5, 0.4, 1.3, id="inverse Gaussian"),
    pytest.param(-1.0, 0.02, 1.3, id="weight under inverse Gaussian"),
    pytest.param(0.5, 1e-3, 2.0, id="weight under Laplace"),
    pytest.param(0.0, 1.0, 1.0, id="order zero"),
    pytest.param(2.3, 5.0, 0.1, id="positive order"),
    pytest.param(-60.0, 30.0, 0.5, id="many weights"),
]


def distribution(order: float, scale: object, rate: object) -> GeneralizedInverseGaussian:
    return GeneralizedInverseGaussian(order=order, scale=scale, rate=rate)


def exact_moment(q: GeneralizedInverseGaussian, power: int) -> float:
    """log ∫ x^{power + p - 1} exp(-s/x - r x) dx by quadrature over log x; inf if it diverges."""
    order = q.order + power
    if (q.rate == 0 and order >= 0) or (q.scale == 0 and order <= 0):
        return np.inf
    with mpmath.workdps(25):
        p, s, r = mpmath.mpf(order), mpmath.mpf(q.scale), mpmath.mpf(q.rate)
        peak = mpmath.log((p + mpmath.sqrt(p * p + 4 * s * r)) / (2 * r) if r else -s / p)
        height = p * peak - s * mpmath.exp(-peak) - r * mpmath.exp(peak)
        points = [peak + x for x in (-150, -30, -10, -3, -1, 0, 1, 3, 10, 30, 150)]
        integral = mpmath.quad(
            lambda t: mpmath.exp(p * t - s * mpmath.exp(-t) - r * mpmath.exp(t) - height), points
        )
        return float(height + mpmath.log(integral))


@pytest.mark.parametrize(("order", "scale", "rate"), CASES)
def test_moments_agree_with_quadrature(order, scale, rate):
    q = distribution(order, scale, rate)
    log_z = exact_moment(q, 0)
    np.testing.assert_allclose(gig.log_normalizer(q), log_z, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gig.mean(q), np.exp(exact_moment(q, 1) - log_z), rtol=1e-9)
    np.testing.assert_allclose(gig.mean_inverse(q), np.exp(exact_moment(q, -1) - log_z), rtol=1e-9)
    gig.check_proper(order, scale, rate, "prior")


@pytest.mark.parametrize(
    ("order", "rate"), [(-1.5, 0.0), (-1.0, 0.6), (0.4, 1.1), (-0.5, 2.0), (-300.0, 0.5)]
)
def test_moments_are_gradients_of_the_log_normalizer(order, rate):
    """E[1/x] = -d log Z / ds and E[x] = -d log Z / dr."""
    scale = np.array([1e-19, 1e-6, 0.3, 50.0])
    q = distribution(order, scale, rate)
    scales = jax.numpy.asarray(scale)
    by_scale = autodiff.compile_gradient(
        lambda s: gig.log_normalizer(distribution(order, s, rate)).sum()
    )
    np.testing.assert_allclose(-np.asarray(by_scale(scales)), gig.mean_inverse(q), rtol=1e-9)
    if rate > 0:
        by_rate = autodiff.compile_gradient(
            lambda r: gig.log_normalizer(distribution(order, scales, r)).sum()
        )
        slope = -np.asarray(by_rate(jax.numpy.full(scale.shape, rate)))
        # Both terms of d log Z / dr are order / rate, which cancel where E[x] is far smaller.
        np.testing.assert_allclose(slope, gig.mean(q), rtol=1e-9, atol=1e-13 * abs(order) / rate)


@pytest.mark.parametrize(
    ("q", "limit"),
    [
        (
            distribution(2.5, np.array([0.0, 1e-300, 1e-20, 1e-13]), 1.7),
            distribution(2.5, 0.0, 1.7),
        ),
        (
            distribution(-3.5, np.array([1e-3, 1.0, 20.0]), 1e-22),
            distribution(-3.5, np.array([1e-3, 1.0, 20.0]), 0.0),
        ),
    ],
    ids=["gamma", "inverse gamma"],
)
def test_tiny_parameters_meet_the_limits(q, limit):
    for function in MOMENTS:
        expected = np.broadcast_to(function(limit), q.scale.shape)
        np.testing.assert_allclose(function(q), expected, rtol=1e-11)


@pytest.mark.parametrize("order", [-0.5, -1.0, 0.3, 1.0])
def test_moments_of_tiny_scales_are_finite_and_continuous(order):
    """Across w = 1e-8, where the quadrature hands over to the leading terms."""
    rate = 0.8
    edge = (0.5e-8) ** 2 / rate
    q = distribution(order, edge * np.array([1 - 1e-9, 1 + 1e-9]), rate)
    for function in MOMENTS:
        below, above = function(q)
        assert np.isfinite(below)
        np.testing.assert_allclose(below, above, rtol=1e-8)


@pytest.mark.parametrize(("order", "scale", "rate"), CASES)
def test_density_agrees_with_scipy(order, scale, rate):
    """SciPy's own families; its geninvgauss(p, b) is x^{p-1} exp(-b (x + 1/x) / 2)."""
    x = np.array([0.03, 0.5, 1.0, 4.0])
    if rate == 0:
        law = stats.invgamma(-order, scale=scale)
    elif scale == 0:
        law = stats.gamma(order, scale=1 / rate)
    else:
        law = stats.geninvgauss(order, 2 * np.sqrt(scale * rate), scale=np.sqrt(scale / rate))
    found = log_density(distribution(order, scale, rate), x)
    np.testing.assert_allclose(found, law.logpdf(x), rtol=1e-9)


@pytest.mark.parametrize(("order", "scale", "rate"), CASES)
def test_samples_follow_the_distribution(order, scale, rate, rng):
    """Kolmogorov-Smirnov against the integrated density, false alarm 1e-6.

    And the mean of log x over the draws within 5 of its standard errors, false alarm 6e-7.
    """
    q = distribution(order, scale, rate)
    draws = gig.sample(q, rng, (DRAWS,))
    assert draws.shape == (DRAWS,)
    log_x = np.linspace(np.log(draws.min()) - 12, np.log(draws.max()) + 12, 20001)
    weight = np.exp(log_density(q, np.exp(log_x)) + log_x) * (log_x[1] - log_x[0])
    distribution_function = np.cumsum(weight) - 0.5 * weight
    result = stats.kstest(np.log(draws), lambda t: np.interp(t, log_x, distribution_function))
    assert result.pvalue > FALSE_ALARM
    expected = np.sum(weight * log_x)
    deviation = np.sqrt(np.sum(weight * log_x**2) - expected**2)
    assert abs(np.mean(np.log(draws)) - expected) < 5 * deviation / np.sqrt(DRAWS)


@pytest.mark.parametrize(
    ("q", "p"),
    [
        ((-2.0, 1.5, 0.0), (-1.5, 0.4, 0.0)),
        ((-1.0, 0.7, 1.2), (-0.5, 0.4, 1.2)),
        ((0.5, 0.2, 2.0), (1.0, 0.0, 2.0)),
        ((-30.0, 9.0, 0.4), (0.3, 0.5, 0.8)),
    ],
)
def test_expected_log_ratio_agrees_with_quadrature(q, p):
    """E_q[log p - log q] less (order_p - order_q) E_q[log x], on a fine grid of log x."""
    q_gig, p_gig = distribution(*q), distribution(*p)
    log_x = np.linspace(-25.0, 25.0, 40001)
    x = np.exp(log_x)
    log_q, log_p = log_density(q_gig, x), log_density(p_gig, x)
    weight = np.exp(log_q + log_x) * (log_x[1] - log_x[0])
    expected = np.sum(weight * (log_p - log_q - (p[0] - q[0]) * log_x))
    np.testing.assert_allclose(gig.expected_log_ratio(q_gig, p_gig), expected, rtol=1e-8)


def test_expected_log_ratio_leaves_out_moments_of_equal_parameters():
    """Here E[x] is infinite, and its coefficient zero; likewise E[1/x] for gammas."""
    q, p = distribution(-1.0, 0.8, 0.0), distribution(-0.5, 0.3, 0.0)
    assert np.isfinite(gig.expected_log_ratio(q, p))
    q, p = distribution(1.0, 0.0, 2.0), distribution(1.0, 0.0, 3.0)
    np.testing.assert_allclose(gig.expected_log_ratio(q, p), np.log(1.5) - 0.5, rtol=1e-12)
    assert float(gig.expected_log_ratio(q, q)) == 0.0


@pytest.mark.parametrize(
    ("order", "rate"),
    [(-1.5, 0.0), (-1.0, 0.7), (-0.5, 2.0), (0.0, 1.0), (0.8, 3.0), (-500.0, 0.1)],
)
def test_with_mean_has_that_mean(order, rate):
    target = np.array([[0.3, 1.0, 7.0], [400.0, 0.9, 1e3]])
    q = gig.with_mean(order, rate, target)
    assert q.scale.shape == target.shape
    np.testing.assert_allclose(gig.mean(q), target, rtol=1e-9)


def test_with_mean_where_it_is_small_or_out_of_reach_or_infinite():
    target = np.array([1e-12, 1e-6])
    np.testing.assert_allclose(gig.mean(gig.with_mean(-1.0, 0.7, target)), target, rtol=1e-9)
    q = gig.with_mean(2.0, 1.0, np.array([0.5, 1.5, 2.0, 2.5]))
    np.testing.assert_allclose(q.scale[:2], 1e-12 * np.array([0.5, 1.5]), rtol=1e-9)
    np.testing.assert_allclose(gig.mean(q), [2.0, 2.0, 2.0, 2.5], rtol=1e-9)
    target = np.array([0.2, 3.0])
    np.testing.assert_allclose(gig.mean_inverse(gig.with_mean(-0.7, 0.0, target)), 1 / target)


@pytest.mark.parametrize(
    ("order", "scale", "rate"),
    [
        (0.0, 1.0, 0.0),
        (2.0, 1.0, 0.0),
        (-1.0, 0.0, 0.0),
        (0.0, 0.0, 1.0),
        (-1.0, 0.0, 1.0),
        (-1.0, -2.0, 1.0),
        (1.0, 0.0, -1.0),
        (float("nan"), 1.0, 1.0),
        (1.0, float("inf"), 1.0),
    ],
)
def test_improper_priors_are_refused(order, scale, rate):
    with pytest.raises(ValueError, match="local_prior"):
        gig.check_proper(order, scale, rate, "local_prior")
