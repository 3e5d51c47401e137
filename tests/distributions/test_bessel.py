"""log K_p(w) and its ratios against mpmath, SciPy and autodiff."""

from __future__ import annotations

import jax
import mpmath
import numpy as np
import pytest
from scipy.special import kve

from bowtienet.distributions.bessel import bessel_k_ratios, log_bessel_k
from tests import autodiff

TOLERANCE = 1e-11
ARGUMENTS = np.geomspace(1e-8, 1e6, 15)
TINY = np.array([1e-100, 1e-20, 2e-9, 9.9e-9])


def log_and_ratios(order: float, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return log_bessel_k(order, w), *bessel_k_ratios(order, w)


def reference(order: float, argument: float) -> tuple[float, float, float]:
    """(log K_p, K_{p+1}/K_p, K_{p-1}/K_p) to 30 digits."""
    with mpmath.workdps(30):
        p, w = mpmath.mpf(order), mpmath.mpf(argument)
        if order > 300:
            return _reference_of_high_order(p, w)
        middle = mpmath.besselk(p, w)
        upper, lower = mpmath.besselk(p + 1, w), mpmath.besselk(p - 1, w)
        return float(mpmath.log(middle)), float(upper / middle), float(lower / middle)


def _reference_of_high_order(p: mpmath.mpf, w: mpmath.mpf) -> tuple[float, float, float]:
    """Plain trapezoidal rule of ½ ∫ exp(p t - w cosh t) dt around its peak, 30 digits.

    mpmath's own series do not return at such orders. The integrand is written as in the textbook,
    so the rearrangements of the tested code are not repeated here.
    """
    peak = mpmath.asinh(p / w)
    height = p * peak - w * mpmath.cosh(peak)
    half_width = 1.3 * mpmath.sqrt(2 * 80 / mpmath.sqrt(p * p + w * w))
    t = [peak + half_width * j / 80 for j in range(-80, 81)]
    with mpmath.workdps(50):  # p t - w cosh t loses the digits of its height
        weights = [mpmath.exp(p * x - w * mpmath.cosh(x) - height) for x in t]
    total = mpmath.fsum(weights)
    upper = mpmath.fsum(a * mpmath.exp(x) for a, x in zip(weights, t, strict=True)) / total
    lower = mpmath.fsum(a * mpmath.exp(-x) for a, x in zip(weights, t, strict=True)) / total
    return float(height + mpmath.log(total * half_width / 160)), float(upper), float(lower)


@pytest.mark.parametrize(
    ("orders", "arguments"),
    [
        ((0.0, 1e-3, 0.5, 1.0, 1.5, 2.0, 4.0, 10.0, 24.9, 25.0, 50.0, 200.0, 1e4, 1e6), ARGUMENTS),
        ((0.0, 1e-12, 0.3, 0.62, 0.74, 0.76, 1 - 1e-9, 1.0, 1.3, 3.0, 80.0), TINY),
    ],
    ids=["usual", "tiny"],
)
def test_log_and_ratios_agree_with_mpmath(orders, arguments):
    for order in orders:
        log_k, upper, lower = log_and_ratios(order, arguments)
        expected = np.array([reference(order, w) for w in arguments]).T
        bound = TOLERANCE * np.maximum(1.0, np.abs(expected[0]))
        assert np.all(np.abs(log_k - expected[0]) <= bound), order
        np.testing.assert_allclose(upper, expected[1], rtol=TOLERANCE, err_msg=f"{order}")
        np.testing.assert_allclose(lower, expected[2], rtol=TOLERANCE, err_msg=f"{order}")


@pytest.mark.parametrize("order", [0.3, 1.0, 24.9])
def test_agrees_with_scipy_on_a_dense_grid(order):
    """4000 arguments, so that every chunk and number of nodes is met, on several axes."""
    w = np.geomspace(1e-3, 1e3, 4000).reshape(2, 1, 2000)
    scaled = kve(order, w)
    log_k, upper, lower = log_and_ratios(order, w)
    np.testing.assert_allclose(log_k, np.log(scaled) - w, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(upper, kve(order + 1, w) / scaled, rtol=TOLERANCE)
    np.testing.assert_allclose(lower, kve(order - 1, w) / scaled, rtol=TOLERANCE)
    assert log_bessel_k(order, np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("order", [0.5, 7.3, 500.0])
def test_negative_order_exchanges_the_ratios(order):
    log_k, upper, lower = log_and_ratios(order, ARGUMENTS)
    for x, y in zip(log_and_ratios(-order, ARGUMENTS), (log_k, lower, upper), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("order", [0.0, -0.5, -1.0, 2.2, -1e4])
def test_gradient_is_minus_the_mean_of_the_ratios(order):
    arguments = np.concatenate([[1e-12, 1e-9], np.geomspace(1e-8, 1e5, 14)])
    compiled = autodiff.compile_gradient(lambda w: log_bessel_k(order, w).sum())
    gradient = compiled(jax.numpy.asarray(arguments))
    upper, lower = bessel_k_ratios(order, arguments)
    np.testing.assert_allclose(np.asarray(gradient), -0.5 * (upper + lower), rtol=1e-10)


@pytest.mark.parametrize("order", [0.0, 0.3, -0.5, 2.2, -40.0])
def test_what_is_no_number_stays_none_and_spoils_no_other(order):
    """An engine that has lost its numbers sees NaN, not an error."""
    mixed = np.concatenate([ARGUMENTS, [np.inf, np.nan]])
    with np.errstate(invalid="ignore", divide="ignore"):
        values, alone = log_and_ratios(order, mixed), log_and_ratios(order, np.array([np.nan]))
    expected = log_and_ratios(order, ARGUMENTS)
    for value, usual, nothing in zip(values, expected, alone, strict=True):
        np.testing.assert_allclose(value[:-2], usual, rtol=1e-12)
        assert np.isnan(nothing).all() or order == -0.5
    assert np.isnan(values[0][-1])
