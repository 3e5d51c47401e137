"""Moments, limits, samples and solvers of the generalized inverse Gaussian."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from tests._old import autodiff

FALSE_ALARM = 1e-6
DRAWS = 2000

CASES = [
    pytest.param(-1.5, 0.7, 0.0, id="inverse gamma"),
    pytest.param(-40.0, 3.0, 0.0, id="inverse gamma of many weights"),
    pytest.param(1.0, 0.0, 2.0, id="Laplace"),
    pytest.param(1.7, 0.0, 0.3, id="gamma"),
    pytest.param(-0.5, 0.4, 1.3, id="inverse Gaussian"),
    pytest.param(-1.0, 0.02, 1.3, id="weight under inverse Gaussian"),
    pytest.param(0.5, 1e-3, 2.0, id="weight under Laplace"),
    pytest.param(0.0, 1.0, 1.0, id="order zero"),
    pytest.param(2.3, 5.0, 0.1, id="positive order"),
    pytest.param(-60.0, 30.0, 0.5, id="many weights"),
]


def distribution(order: float, scale: float, rate: float) -> GeneralizedInverseGaussian:
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
def test_moments_agree_with_quadrature(order: float, scale: float, rate: float) -> None:
    q = distribution(order, scale, rate)
    log_z = exact_moment(q, 0)
    np.testing.assert_allclose(gig.log_normalizer(q), log_z, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gig.mean(q), np.exp(exact_moment(q, 1) - log_z), rtol=1e-9)
    np.testing.assert_allclose(gig.mean_inverse(q), np.exp(exact_moment(q, -1) - log_z), rtol=1e-9)


@pytest.mark.parametrize(
    ("order", "rate"), [(-1.5, 0.0), (-1.0, 0.6), (0.4, 1.1), (-0.5, 2.0), (-300.0, 0.5)]
)
def test_moments_are_gradients_of_the_log_normalizer(order: float, rate: float) -> None:
    """E[1/x] = -d log Z / ds and E[x] = -d log Z / dr."""
    jax = pytest.importorskip("jax")
    scale = np.array([1e-19, 1e-6, 0.3, 50.0])
    q = GeneralizedInverseGaussian(order=order, scale=scale, rate=rate)

    def log_z(s: object, r: object) -> object:
        return gig.log_normalizer(GeneralizedInverseGaussian(order=order, scale=s, rate=r)).sum()

    scales = jax.numpy.asarray(scale)
    by_scale = autodiff.compile_gradient(lambda s: log_z(s, rate))(scales)
    np.testing.assert_allclose(-np.asarray(by_scale), gig.mean_inverse(q), rtol=1e-9)
    if rate > 0:
        rates = jax.numpy.full(scale.shape, rate)
        by_rate = -np.asarray(autodiff.compile_gradient(lambda r: log_z(scales, r))(rates))
        # Both terms of d log Z / dr are order / rate, which cancel where E[x] is far smaller.
        np.testing.assert_allclose(by_rate, gig.mean(q), rtol=1e-9, atol=1e-13 * abs(order) / rate)


def test_array_with_tiny_scales_meets_the_gamma_limit() -> None:
    """Order 2.5: every moment of the gamma limit is finite."""
    limit = distribution(2.5, 0.0, 1.7)
    q = GeneralizedInverseGaussian(order=2.5, scale=np.array([0.0, 1e-300, 1e-20, 1e-13]), rate=1.7)
    for function in (gig.log_normalizer, gig.mean, gig.mean_inverse):
        np.testing.assert_allclose(function(q), np.full(4, function(limit)), rtol=1e-11)


@pytest.mark.parametrize("order", [-0.5, -1.0, 0.3, 1.0])
def test_moments_of_tiny_scales_are_finite_and_continuous(order: float) -> None:
    """Across w = 1e-8, where the quadrature hands over to the leading terms."""
    rate = 0.8
    edge = (0.5e-8) ** 2 / rate
    q = GeneralizedInverseGaussian(
        order=order, scale=edge * np.array([1 - 1e-9, 1 + 1e-9]), rate=rate
    )
    for function in (gig.log_normalizer, gig.mean, gig.mean_inverse):
        below, above = function(q)
        assert np.isfinite(below)
        np.testing.assert_allclose(below, above, rtol=1e-8)


def test_small_rate_meets_the_inverse_gamma_limit() -> None:
    scale = np.array([1e-3, 1.0, 20.0])
    limit = GeneralizedInverseGaussian(order=-3.5, scale=scale, rate=0.0)
    q = GeneralizedInverseGaussian(order=-3.5, scale=scale, rate=1e-22)
    for function in (gig.log_normalizer, gig.mean, gig.mean_inverse):
        np.testing.assert_allclose(function(q), function(limit), rtol=1e-11)


def test_numpy_zero_is_the_number_zero() -> None:
    for zero in (0, np.float64(0.0), np.float32(0.0), np.asarray(0.0)):
        q = GeneralizedInverseGaussian(order=-3.0, scale=np.ones(2), rate=zero)
        np.testing.assert_array_equal(gig.mean(q), np.full(2, 0.5))


def test_infinite_moments() -> None:
    inverse_gamma = GeneralizedInverseGaussian(order=-1.0, scale=np.ones(3), rate=0.0)
    np.testing.assert_array_equal(gig.mean(inverse_gamma), np.full(3, np.inf))
    assert gig.mean_inverse(distribution(1.0, 0.0, 2.0)) == np.inf
    assert gig.mean_inverse(distribution(0.2, 0.0, 2.0)) == np.inf


@pytest.mark.parametrize(("order", "scale", "rate"), CASES)
def test_density_agrees_with_scipy(order: float, scale: float, rate: float) -> None:
    q = distribution(order, scale, rate)
    x = np.array([0.05, 0.9, 4.0])
    if rate == 0:
        frozen = stats.invgamma(-order, scale=scale)
    elif scale == 0:
        frozen = stats.gamma(order, scale=1 / rate)
    else:
        frozen = stats.geninvgauss(order, 2 * np.sqrt(scale * rate), scale=np.sqrt(scale / rate))
    np.testing.assert_allclose(gig.log_density(q, x), frozen.logpdf(x), rtol=1e-9)


@pytest.mark.parametrize(("order", "scale", "rate"), CASES)
def test_samples_follow_the_distribution(order: float, scale: float, rate: float) -> None:
    """Kolmogorov-Smirnov against the integrated density, false alarm 1e-6.

    And the mean of log x over the draws within 5 of its standard errors, false alarm 6e-7.
    """
    q = distribution(order, scale, rate)
    draws = gig.sample(q, np.random.default_rng(0), (DRAWS,))
    assert draws.shape == (DRAWS,)
    log_x = np.linspace(np.log(draws.min()) - 12, np.log(draws.max()) + 12, 20001)
    weight = np.exp(gig.log_density(q, np.exp(log_x)) + log_x) * (log_x[1] - log_x[0])
    distribution_function = np.cumsum(weight) - 0.5 * weight
    result = stats.kstest(np.log(draws), lambda t: np.interp(t, log_x, distribution_function))
    assert result.pvalue > FALSE_ALARM
    expected = np.sum(weight * log_x)
    deviation = np.sqrt(np.sum(weight * log_x**2) - expected**2)
    assert abs(np.mean(np.log(draws)) - expected) < 5 * deviation / np.sqrt(DRAWS)


def test_samples_broadcast() -> None:
    scale = np.array([1e-3, 1.0, 1e3])
    q = GeneralizedInverseGaussian(order=-1.0, scale=scale, rate=1.0)
    draws = gig.sample(q, np.random.default_rng(0), (50, 3))
    assert draws.shape == (50, 3)
    assert np.all(np.diff(np.median(draws, axis=0)) > 0)


@pytest.mark.parametrize(
    ("q", "p"),
    [
        ((-2.0, 1.5, 0.0), (-1.5, 0.4, 0.0)),
        ((-1.0, 0.7, 1.2), (-0.5, 0.4, 1.2)),
        ((0.5, 0.2, 2.0), (1.0, 0.0, 2.0)),
        ((-30.0, 9.0, 0.4), (0.3, 0.5, 0.8)),
    ],
)
def test_expected_log_ratio_agrees_with_quadrature(
    q: tuple[float, float, float], p: tuple[float, float, float]
) -> None:
    """E_q[log p - log q] less (order_p - order_q) E_q[log x], on a fine grid of log x."""
    q_gig, p_gig = distribution(*q), distribution(*p)
    log_x = np.linspace(-25.0, 25.0, 40001)
    x = np.exp(log_x)
    log_q, log_p = gig.log_density(q_gig, x), gig.log_density(p_gig, x)
    weight = np.exp(log_q + log_x) * (log_x[1] - log_x[0])
    expected = np.sum(weight * (log_p - log_q - (p[0] - q[0]) * log_x))
    np.testing.assert_allclose(gig.expected_log_ratio(q_gig, p_gig), expected, rtol=1e-8)


def test_expected_log_ratio_leaves_out_moments_of_equal_parameters() -> None:
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
def test_with_mean_has_that_mean(order: float, rate: float) -> None:
    target = np.array([[0.3, 1.0, 7.0], [400.0, 0.9, 1e3]])
    q = gig.with_mean(order, rate, target)
    assert q.scale.shape == target.shape
    np.testing.assert_allclose(gig.mean(q), target, rtol=1e-9)


def test_with_mean_takes_small_means() -> None:
    target = np.array([1e-12, 1e-6])
    np.testing.assert_allclose(gig.mean(gig.with_mean(-1.0, 0.7, target)), target, rtol=1e-9)


def test_with_mean_where_no_scale_has_that_mean() -> None:
    q = gig.with_mean(2.0, 1.0, np.array([0.5, 1.5, 2.0, 2.5]))
    np.testing.assert_allclose(q.scale[:2], 1e-12 * np.array([0.5, 1.5]), rtol=1e-9)
    np.testing.assert_allclose(gig.mean(q), [2.0, 2.0, 2.0, 2.5], rtol=1e-9)


def test_with_mean_matches_the_inverse_where_the_mean_is_infinite() -> None:
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
def test_improper_priors_are_refused(order: float, scale: float, rate: float) -> None:
    with pytest.raises(ValueError, match="local_prior"):
        gig.check_proper(order, scale, rate, "local_prior")


@pytest.mark.parametrize(("order", "scale", "rate"), CASES)
def test_check_proper_accepts_proper_cases(order: float, scale: float, rate: float) -> None:
    gig.check_proper(order, scale, rate, "prior")


def test_torch_agrees_with_numpy() -> None:
    torch = pytest.importorskip("torch")
    scale = np.array([1e-20, 0.3, 4.0])
    for rate in (0.0, 0.7):
        q = GeneralizedInverseGaussian(order=-1.3, scale=scale, rate=rate)
        other = GeneralizedInverseGaussian(order=-1.3, scale=torch.asarray(scale), rate=rate)
        for function in (gig.log_normalizer, gig.mean, gig.mean_inverse):
            np.testing.assert_allclose(function(other).numpy(), function(q), rtol=1e-11)


@pytest.mark.parametrize(("order", "scale", "rate"), CASES)
def test_log_density_against_scipy(order: float, scale: float, rate: float) -> None:
    """SciPy's own families; its geninvgauss(p, b) is x^{p-1} exp(-b (x + 1/x) / 2)."""
    x = np.array([0.03, 0.5, 1.0, 4.0])
    if rate == 0.0:
        expected = stats.invgamma(-order, scale=scale)
    elif scale == 0.0:
        expected = stats.gamma(order, scale=1.0 / rate)
    else:
        expected = stats.geninvgauss(
            order, 2.0 * np.sqrt(scale * rate), scale=np.sqrt(scale / rate)
        )
    found = gig.log_density(distribution(order, scale, rate), x)
    np.testing.assert_allclose(found, expected.logpdf(x), rtol=1e-9)
