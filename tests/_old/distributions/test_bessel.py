"""log K_p(w) and its ratios against mpmath, the recurrence, and autodiff."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import kve

from bowtienet._old.distributions.bessel import bessel_k_ratios, log_bessel_k
from tests._old import autodiff

TOLERANCE = 1e-11
ORDERS = [0.0, 1e-3, 0.5, 1.0, 1.5, 2.0, 4.0, 10.0, 24.9, 25.0, 50.0, 200.0, 1e4, 1e6]
ARGUMENTS = np.geomspace(1e-8, 1e6, 15)


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


@pytest.mark.parametrize("order", ORDERS)
def test_log_and_ratios_agree_with_mpmath(order: float) -> None:
    log_k, upper, lower = log_and_ratios(order, ARGUMENTS)
    expected = np.array([reference(order, w) for w in ARGUMENTS]).T
    assert np.all(np.abs(log_k - expected[0]) <= TOLERANCE * np.maximum(1.0, np.abs(expected[0])))
    np.testing.assert_allclose(upper, expected[1], rtol=TOLERANCE)
    np.testing.assert_allclose(lower, expected[2], rtol=TOLERANCE)


@pytest.mark.parametrize(
    "order", [0.0, 1e-12, 0.3, 0.62, 0.74, 0.76, 1 - 1e-9, 1.0, 1.3, 3.0, 80.0]
)
def test_tiny_arguments_agree_with_mpmath(order: float) -> None:
    arguments = np.array([1e-100, 1e-20, 2e-9, 9.9e-9])
    log_k, upper, lower = log_and_ratios(order, arguments)
    expected = np.array([reference(order, w) for w in arguments]).T
    np.testing.assert_allclose(log_k, expected[0], rtol=TOLERANCE)
    np.testing.assert_allclose(upper, expected[1], rtol=TOLERANCE)
    np.testing.assert_allclose(lower, expected[2], rtol=TOLERANCE)


@pytest.mark.parametrize("order", [0.3, 1.0, 3.7, 24.9])
def test_agrees_with_scipy_on_a_dense_grid(order: float) -> None:
    """4000 arguments, so that every chunk and number of nodes is met."""
    w = np.geomspace(1e-3, 1e3, 4000)
    scaled = kve(order, w)
    log_k, upper, lower = log_and_ratios(order, w)
    np.testing.assert_allclose(log_k, np.log(scaled) - w, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(upper, kve(order + 1, w) / scaled, rtol=TOLERANCE)
    np.testing.assert_allclose(lower, kve(order - 1, w) / scaled, rtol=TOLERANCE)


@pytest.mark.parametrize("order", ORDERS)
def test_recurrence(order: float) -> None:
    """K_{p+1} - K_{p-1} = (2p/w) K_p; and K_{p+1}/K_p from the evaluation at p + 1."""
    upper, lower = bessel_k_ratios(order, ARGUMENTS)
    np.testing.assert_allclose(upper, lower + 2 * order / ARGUMENTS, rtol=TOLERANCE)
    _, lower_of_next = bessel_k_ratios(order + 1, ARGUMENTS)
    np.testing.assert_allclose(upper * lower_of_next, 1.0, rtol=TOLERANCE)


@pytest.mark.parametrize("order", [0.5, 1.0, 7.3, 500.0])
def test_negative_order_exchanges_the_ratios(order: float) -> None:
    upper, lower = bessel_k_ratios(order, ARGUMENTS)
    upper_of_negative, lower_of_negative = bessel_k_ratios(-order, ARGUMENTS)
    np.testing.assert_array_equal(upper_of_negative, lower)
    np.testing.assert_array_equal(lower_of_negative, upper)
    np.testing.assert_array_equal(log_bessel_k(-order, ARGUMENTS), log_bessel_k(order, ARGUMENTS))


@pytest.mark.parametrize("order", [0.0, -0.5, -1.0, 2.2, -1e4])
def test_jax_gradient_is_minus_the_mean_of_the_ratios(order: float) -> None:
    jax = pytest.importorskip("jax")
    arguments = np.concatenate([[1e-12, 1e-9], np.geomspace(1e-8, 1e5, 14)])
    compiled = autodiff.compile_gradient(lambda w: log_bessel_k(order, w).sum())
    gradient = compiled(jax.numpy.asarray(arguments))
    upper, lower = bessel_k_ratios(order, arguments)
    np.testing.assert_allclose(np.asarray(gradient), -0.5 * (upper + lower), rtol=1e-10)


def test_shapes_and_libraries() -> None:
    torch = pytest.importorskip("torch")
    w = np.geomspace(1e-3, 10.0, 6).reshape(2, 1, 3)
    expected = log_bessel_k(1.2, w)
    assert expected.shape == w.shape
    np.testing.assert_allclose(log_bessel_k(1.2, torch.asarray(w)).numpy(), expected, rtol=1e-12)
    assert log_bessel_k(1.2, np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("order", [0.0, 0.3, -0.5, -1.0, 2.2, -40.0])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_stays_none_and_spoils_no_other(order: float, bad: float) -> None:
    """An engine that has lost its numbers sees NaN, not an error."""
    mixed = np.concatenate([ARGUMENTS, [bad]])
    with np.errstate(invalid="ignore", divide="ignore"):
        found, alone = log_and_ratios(order, mixed), log_and_ratios(order, np.array([np.nan]))
    for part, expected, nothing in zip(found, log_and_ratios(order, ARGUMENTS), alone, strict=True):
        np.testing.assert_allclose(part[:-1], expected, rtol=1e-12)
        assert np.isnan(nothing).all() or order == -0.5
    if np.isnan(bad):
        assert np.isnan(found[0][-1])
