"""Squares of half-Cauchy variables: density, draws, the joint update with nu, and its bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions import half_cauchy
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.half_cauchy import HalfCauchy

SCALES = (1e-8, 0.3, 1.0, 1e6)
COUNTS = (0, 1, 2, 7, 5000)


@pytest.mark.parametrize("scale", SCALES)
def test_density(scale: float) -> None:
    """x / A² is an F(1, 1)."""
    x = scale * np.array([1e-6, 0.1, 1.0, 5.0, 1e6])
    expected = stats.f(1, 1, scale=scale).logpdf(x)
    np.testing.assert_allclose(
        half_cauchy.log_density(HalfCauchy(scale=scale), x), expected, rtol=1e-11
    )


def test_draws() -> None:
    """Kolmogorov-Smirnov at the level 1e-6."""
    draws = half_cauchy.sample(HalfCauchy(scale=0.3), np.random.default_rng(0), (20_000,))
    assert stats.kstest(draws, stats.f(1, 1, scale=0.3).cdf).pvalue > 1e-6
    two = HalfCauchy(scale=np.array([0.3, 100.0]))
    draws = half_cauchy.sample(two, np.random.default_rng(0), (20_000, 2))
    assert stats.kstest(draws[:, 1], stats.f(1, 1, scale=100.0).cdf).pvalue > 1e-6


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("scale", SCALES)
def test_the_update_is_where_both_updates_meet(scale: float, count: int) -> None:
    """q(x) = IG(½ + count/2, E[1/nu] + h) and q(nu) = IG(1, 1/A² + E[1/x])."""
    half_squares = scale * np.array([1e-12, 1e-3, 0.4, 3.0, 1e5, 1e12])
    q = half_cauchy.update(HalfCauchy(scale=scale), count, half_squares)
    assert (q.order, q.rate) == (-0.5 - 0.5 * count, 0.0)
    inverse_nu = 1.0 / (1.0 / scale + gig.mean_inverse(q))
    np.testing.assert_allclose(q.scale, inverse_nu + half_squares, rtol=1e-11)


@pytest.mark.parametrize("count", COUNTS[1:])
def test_the_update_maximises_the_bound(count: int) -> None:
    prior, half_squares = HalfCauchy(scale=0.7), np.array([1e-9, 0.02, 1.0, 300.0])
    q = half_cauchy.update(prior, count, half_squares)

    def bound(factor: float) -> np.ndarray:
        moved = GeneralizedInverseGaussian(order=q.order, scale=factor * q.scale, rate=0.0)
        ratio = half_cauchy.expected_log_ratio(moved, prior)
        return ratio - half_squares * gig.mean_inverse(moved)

    step = 1e-4
    slope = (bound(1.0 + step) - bound(1.0 - step)) / (2.0 * step)
    np.testing.assert_allclose(slope, 0.0, atol=1e-5 * (1.0 + count))
    for factor in (0.2, 0.8, 1.2, 5.0):
        assert np.all(bound(factor) < bound(1.0))


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("concentration", [1.0, 3.5])
def test_the_bound_by_quadrature(scale: float, concentration: float) -> None:
    """E[log p(x | nu) p(nu) - log q(x) q(nu)], where E[log x] has the factor of its own count.

    What the function leaves out is (concentration - ½) E[log x].
    """
    q = GeneralizedInverseGaussian(order=-concentration, scale=0.8, rate=0.0)
    law = stats.invgamma(concentration, scale=0.8)
    nu = stats.invgamma(1.0, scale=1.0 / scale + concentration / 0.8)

    def over_both(inner: float, outer: float) -> float:
        x, n = law.ppf(inner), nu.ppf(outer)
        log_p = stats.invgamma(0.5, scale=1.0 / n).logpdf(x)
        log_p += stats.invgamma(0.5, scale=1.0 / scale).logpdf(n)
        return float(log_p - law.logpdf(x) - nu.logpdf(n))

    nodes, weights = np.polynomial.legendre.leggauss(60)
    # Nodes in t with u = t³ (10 - 15 t + 6 t²): the logarithms at the ends are smooth then.
    t = 0.5 * (nodes + 1.0)
    u, slope = t**3 * (10.0 - 15.0 * t + 6.0 * t**2), 30.0 * t**2 * (1.0 - t) ** 2
    weights = 0.5 * weights * slope
    total = sum(
        a * b * over_both(x, y)
        for a, x in zip(weights, u, strict=True)
        for b, y in zip(weights, u, strict=True)
    )
    mean_log = law.expect(np.log)
    found = float(half_cauchy.expected_log_ratio(q, HalfCauchy(scale=scale)))
    assert found == pytest.approx(total - (concentration - 0.5) * mean_log, abs=1e-5)


def test_the_bound_lies_below_the_one_without_nu() -> None:
    """E[log p(x) - log q(x)] of the density itself, for one weight: the cost of q(x) q(nu)."""
    prior = HalfCauchy(scale=0.7)
    for half_square in (0.01, 0.5, 20.0):
        q = half_cauchy.update(prior, 1, np.asarray(half_square))
        law = stats.invgamma(1.0, scale=float(q.scale))
        log_p = law.expect(lambda x: float(half_cauchy.log_density(prior, x)))
        exact = log_p + law.entropy()
        found = float(half_cauchy.expected_log_ratio(q, prior)) + 0.5 * law.expect(np.log)
        assert exact - 0.5 < found < exact


@pytest.mark.parametrize("count", COUNTS)
def test_extreme_squares_stay_finite(count: int) -> None:
    half_squares = np.array([0.0, 5e-324, 1e-300, 1e-160, 1.0, 1e160, 1e300])
    with np.errstate(all="raise", under="ignore"):
        q = half_cauchy.update(HalfCauchy(scale=1.0), count, half_squares)
        ratio = half_cauchy.expected_log_ratio(q, HalfCauchy(scale=1.0))
        local = half_cauchy.update(HalfCauchy(scale=1.0), 1, half_squares)
        products = gig.mean_inverse(q)[:, None] * gig.mean_inverse(local)
    assert np.all(np.diff(q.scale) >= 0.0)
    assert np.all(q.scale > 0.0)
    for values in (products, ratio):
        assert np.all(np.isfinite(values))


def test_networks_on_a_leading_axis() -> None:
    """A scale for each of them."""
    scales, half_squares = np.array([0.2, 3.0]), np.array([0.5, 40.0])
    together = half_cauchy.update(HalfCauchy(scale=scales), 6, half_squares)
    ratio = half_cauchy.expected_log_ratio(together, HalfCauchy(scale=scales))
    for i in range(2):
        own = half_cauchy.update(HalfCauchy(scale=float(scales[i])), 6, half_squares[i])
        assert float(own.scale) == pytest.approx(together.scale[i], rel=1e-14)
        alone = half_cauchy.expected_log_ratio(own, HalfCauchy(scale=float(scales[i])))
        assert float(alone) == pytest.approx(ratio[i], rel=1e-13)


def test_horseshoe_of_a_weight_has_a_pole_at_zero_and_heavy_tails() -> None:
    """∫ N(w | 0, x) p(x) dx between ½K log(1 + 4/w²) and K log(1 + 2/w²), K = 1/sqrt(2π³)."""
    prior = HalfCauchy(scale=1.0)
    for w in (0.01, 0.5, 3.0):

        def product(log_x: float, w: float = w) -> float:
            x = np.exp(log_x)
            density = np.exp(float(half_cauchy.log_density(prior, x)))
            return float(stats.norm(0.0, np.sqrt(x)).pdf(w) * density * x)

        density = integrate.quad(product, -60.0, 60.0, points=[2.0 * np.log(w)], limit=400)[0]
        constant = 1.0 / np.sqrt(2.0 * np.pi**3)
        assert constant / 2.0 * np.log1p(4.0 / w**2) < density < constant * np.log1p(2.0 / w**2)
