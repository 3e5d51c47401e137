"""Squares of half-Cauchy variables: draws, the joint update with nu, and its bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions import half_cauchy
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy

SCALES = (1e-8, 0.3, 1.0, 1e6)
COUNTS = (0, 1, 2, 7, 5000)


def test_draws(rng):
    """x / A² is an F(1, 1): Kolmogorov-Smirnov at the level 1e-6."""
    scales = np.array([0.3, 100.0])
    draws = half_cauchy.sample(HalfCauchy(scale=scales), rng, (20_000, 2))
    for m, scale in enumerate(scales):
        assert stats.kstest(draws[:, m], stats.f(1, 1, scale=scale).cdf).pvalue > 1e-6


@pytest.mark.parametrize("count", COUNTS)
def test_the_update_is_where_both_updates_meet(count):
    """q(x) = IG(½ + count/2, E[1/nu] + h) and q(nu) = IG(1, 1/A² + E[1/x]); a scale for each."""
    scale = np.array(SCALES)[:, None]
    half_squares = scale * np.array([1e-12, 1e-3, 0.4, 3.0, 1e5, 1e12])
    q = half_cauchy.update(HalfCauchy(scale=scale), count, half_squares)
    assert (q.order, q.rate) == (-0.5 - 0.5 * count, 0.0)
    inverse_nu = 1.0 / (1.0 / scale + gig.mean_inverse(q))
    np.testing.assert_allclose(q.scale, inverse_nu + half_squares, rtol=1e-11)


@pytest.mark.parametrize("count", COUNTS[1:])
def test_the_update_maximises_the_bound(count):
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


@pytest.mark.parametrize(("scale", "concentration"), [(0.3, 1.0), (2.0, 3.5)])
def test_the_bound_by_quadrature(scale, concentration):
    """E[log p(x | nu) p(nu) - log q(x) q(nu)], where E[log x] has the factor of its own count.

    What the function leaves out is (concentration - ½) E[log x].
    """
    q = GeneralizedInverseGaussian(order=-concentration, scale=0.8, rate=0.0)
    law = stats.invgamma(concentration, scale=0.8)
    nu_law = stats.invgamma(1.0, scale=1.0 / scale + concentration / 0.8)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    # Nodes in t with u = t³ (10 - 15 t + 6 t²): the logarithms at the ends are smooth then.
    t = 0.5 * (nodes + 1.0)
    u, slope = t**3 * (10.0 - 15.0 * t + 6.0 * t**2), 30.0 * t**2 * (1.0 - t) ** 2
    weights = 0.5 * weights * slope
    x, nu = law.ppf(u)[:, None], nu_law.ppf(u)[None, :]
    log_p = stats.invgamma.logpdf(x, 0.5, scale=1.0 / nu)
    log_p = log_p + stats.invgamma.logpdf(nu, 0.5, scale=1.0 / scale)
    total = weights @ (log_p - law.logpdf(x) - nu_law.logpdf(nu)) @ weights
    ratio = float(half_cauchy.expected_log_ratio(q, HalfCauchy(scale=scale)))
    expected = total - (concentration - 0.5) * law.expect(np.log)
    assert ratio == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("count", COUNTS)
def test_extreme_squares_stay_finite(count):
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
