"""Moments of the Polya-Gamma distribution PG(1, A)."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from bowtienet.distributions import polya_gamma

TILTS = np.array([0.0, 1e-8, 1e-4, 0.05, 0.199, 0.2001, 0.7, 1.9, 2.1, 10.0, 300.0, 1e8])


def exact(function: object) -> np.ndarray:
    """`function` of every tilt, in 40 digits."""
    with mpmath.workdps(40):
        return np.array([float(function(mpmath.mpf(a))) for a in TILTS])  # type: ignore[operator]


def test_mean_agrees_with_high_precision() -> None:
    expected = exact(lambda a: mpmath.tanh(a / 2) / (2 * a) if a else 0.25)
    np.testing.assert_allclose(polya_gamma.mean(TILTS), expected, rtol=1e-14)


def test_mean_agrees_with_the_series_of_gamma_variables() -> None:
    """PG(1, A) = Σ_k Gamma(1) / (2π² ((k-½)² + A²/(4π²))); the tail after n is 1/(2π² n)."""
    k = np.arange(1, 200_001)[:, None]
    tilt = np.array([0.0, 0.3, 2.0, 8.0])
    series = np.sum(0.5 / (np.pi**2 * (k - 0.5) ** 2 + tilt**2 / 4), axis=0)
    tail = 0.5 / (np.pi**2 * k[-1, 0])
    np.testing.assert_allclose(polya_gamma.mean(tilt), series + tail, rtol=1e-10)


def test_mean_is_the_derivative_of_log_cosh() -> None:
    """E[ω] = d log cosh(A/2) / d(A²/2) = (d log cosh(A/2) / dA) / A."""
    jax = pytest.importorskip("jax")
    tilt = TILTS[1:]
    slope = jax.grad(lambda a: polya_gamma.log_cosh_half(a).sum())(jax.numpy.asarray(tilt))
    np.testing.assert_allclose(np.asarray(slope) / tilt, polya_gamma.mean(tilt), rtol=1e-13)


def test_gradient_of_the_mean_near_zero() -> None:
    """d E[ω] / dA = -A/24 + O(A³), where the closed form cancels."""
    jax = pytest.importorskip("jax")
    tilt = np.array([0.0, 1e-9, 1e-5])
    slope = jax.grad(lambda a: polya_gamma.mean(a).sum())(jax.numpy.asarray(tilt))
    np.testing.assert_allclose(np.asarray(slope), -tilt / 24, rtol=1e-9)


def test_log_cosh_and_log_ratio_agree_with_high_precision() -> None:
    log_cosh = exact(lambda a: a / 2 + mpmath.log1p(mpmath.exp(-a)) - mpmath.log(2))
    np.testing.assert_allclose(polya_gamma.log_cosh_half(TILTS), log_cosh, rtol=1e-14)
    np.testing.assert_array_equal(
        polya_gamma.log_cosh_half(-TILTS), polya_gamma.log_cosh_half(TILTS)
    )
    ratio = exact(
        lambda a: a / 4 * mpmath.tanh(a / 2) - a / 2 - mpmath.log1p(mpmath.exp(-a)) + mpmath.log(2)
    )
    np.testing.assert_allclose(polya_gamma.log_ratio(TILTS), ratio, rtol=1e-13, atol=1e-15)


def test_log_ratio_is_its_definition() -> None:
    tilt = np.array([0.0, 0.5, 3.0, 40.0])
    definition = 0.5 * tilt**2 * polya_gamma.mean(tilt) - np.log(np.cosh(tilt / 2))
    np.testing.assert_allclose(polya_gamma.log_ratio(tilt), definition, rtol=1e-13, atol=1e-15)
