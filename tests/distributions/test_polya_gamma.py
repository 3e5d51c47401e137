"""Moments of the Polya-Gamma distribution PG(1, A)."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np

from bowtienet.distributions import polya_gamma

TILTS = np.array([0.0, 1e-8, 1e-4, 0.05, 0.199, 0.2001, 0.7, 1.9, 2.1, 10.0, 300.0, 1e8])


def exact(function: Callable[[mpmath.mpf], mpmath.mpf]) -> np.ndarray:
    """`function` of every tilt, in 40 digits."""
    with mpmath.workdps(40):
        return np.array([float(function(mpmath.mpf(a))) for a in TILTS])


def test_mean_agrees_with_high_precision():
    expected = exact(lambda a: mpmath.tanh(a / 2) / (2 * a) if a else 0.25)
    np.testing.assert_allclose(polya_gamma.mean(TILTS), expected, rtol=1e-14)


def test_mean_agrees_with_the_series_of_gamma_variables():
    """PG(1, A) = Σ_k Gamma(1) / (2π² ((k-½)² + A²/(4π²))); the tail after n is 1/(2π² n)."""
    k = np.arange(1, 200_001)[:, None]
    tilt = np.array([0.0, 0.3, 2.0, 8.0])
    series = np.sum(0.5 / (np.pi**2 * (k - 0.5) ** 2 + tilt**2 / 4), axis=0)
    tail = 0.5 / (np.pi**2 * k[-1, 0])
    np.testing.assert_allclose(polya_gamma.mean(tilt), series + tail, rtol=1e-10)


def test_log_ratio_agrees_with_high_precision():
    """The sum over units: one unit at a time, then all together, and very many."""
    expected = exact(
        lambda a: a / 4 * mpmath.tanh(a / 2) - a / 2 - mpmath.log1p(mpmath.exp(-a)) + mpmath.log(2)
    )
    mean, ratio = polya_gamma.mean_and_log_ratio(TILTS[:, None])
    np.testing.assert_array_equal(mean[:, 0], polya_gamma.mean(TILTS))
    np.testing.assert_allclose(ratio, expected, rtol=1e-13, atol=1e-15)
    _, total = polya_gamma.mean_and_log_ratio(TILTS[:-1])
    np.testing.assert_allclose(total, expected[:-1].sum(), rtol=1e-13)
    _, many = polya_gamma.mean_and_log_ratio(np.full((1, 5000), 2.1))
    np.testing.assert_allclose(many, 5000 * ratio[8], rtol=1e-13)
