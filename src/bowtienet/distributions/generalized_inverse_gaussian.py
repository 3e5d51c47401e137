"""Generalized inverse Gaussian (GIG), density x^{order-1} exp(-scale/x - rate x) / Z.

With p = order, s = scale, r = rate and w = 2 sqrt(s r) (nu, δ²/2 and λ²/2 in the paper):

    s, r > 0             Z = 2 (s/r)^{p/2} K_p(w)    E[x] = sqrt(s/r) K_{p+1}/K_p
                                                     E[1/x] = sqrt(r/s) K_{p-1}/K_p
    r = 0, inverse gamma Z = Γ(-p) s^p               E[x] = s / (-p-1)     E[1/x] = -p / s
    s = 0, gamma         Z = Γ(p) r^-p               E[x] = p / r          E[1/x] = r / (p-1)

The two limits are chosen when `rate` or `scale` is the number 0, which is known before any array
is looked at: an array of scales with rate 0.0 is inverse gamma. Arrays with tiny entries stay in
the Bessel case, which `bessel` carries down to any w > 0 and which meets the limits continuously.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bowtienet._arrays import Array, as_arrays, is_number, namespace
from bowtienet.distributions import bessel


@dataclass(frozen=True, kw_only=True)
class GeneralizedInverseGaussian:
    """GIG distributions of one `order`, with `scale` and `rate` broadcast together."""

    order: float
    scale: Array | float
    rate: Array | float


def mean(q: GeneralizedInverseGaussian) -> Array:
    """E[x]; infinite for an inverse gamma with order >= -1."""
    p, (scale, rate) = q.order, as_arrays(q.scale, q.rate)
    xp = namespace(scale, rate)
    if is_zero(q.rate):
        return scale / (-p - 1.0) if p < -1.0 else xp.full_like(scale, math.inf)
    if is_zero(q.scale):
        return p / rate
    scale, argument = _bessel_arguments(scale, rate)
    upper, _ = bessel.bessel_k_ratios(p, argument)
    return xp.sqrt(scale / rate) * upper


def mean_inverse(q: GeneralizedInverseGaussian) -> Array:
    """E[1/x]; infinite for a gamma with order <= 1.

    The ratio K_{p-1}/K_p is used as it is, not K_{p+1}/K_p - 2p/w, which cancels.
    """
    p, (scale, rate) = q.order, as_arrays(q.scale, q.rate)
    xp = namespace(scale, rate)
    if is_zero(q.rate):
        return -p / scale
    if is_zero(q.scale):
        return rate / (p - 1.0) if p > 1.0 else xp.full_like(rate, math.inf)
    scale, argument = _bessel_arguments(scale, rate)
    _, lower = bessel.bessel_k_ratios(p, argument)
    return xp.sqrt(rate / scale) * lower


def log_normalizer(q: GeneralizedInverseGaussian) -> Array:
    """log Z = log ∫ x^{p-1} exp(-s/x - r x) dx."""
    p, (scale, rate) = q.order, as_arrays(q.scale, q.rate)
    xp = namespace(scale, rate)
    if is_zero(q.rate):
        return math.lgamma(-p) + p * xp.log(scale)
    if is_zero(q.scale):
        return math.lgamma(p) - p * xp.log(rate)
    scale, argument = _bessel_arguments(scale, rate)
    log_k = bessel.log_bessel_k(p, argument)
    return math.log(2.0) + 0.5 * p * (xp.log(scale) - xp.log(rate)) + log_k


def expected_log_ratio(q: GeneralizedInverseGaussian, p: GeneralizedInverseGaussian) -> Array:
    """log Z_q - log Z_p + (s_q - s_p) E_q[1/x] + (r_q - r_p) E_q[x].

    This is E_q[log p(x) - log q(x)] without its term (order_p - order_q) E_q[log x], which would
    need the derivative of K in its order. In the bound that term cancels exactly against the
    E[log x] of the weights' Gaussian prior, whose variance x is, because the order of q is that
    of p less half the number of weights. With equal orders the value is exact.

    A difference that is known to be zero is left out with its moment, which may be infinite.
    """
    ratio = log_normalizer(q) - log_normalizer(p)
    if not (is_number(q.scale) and is_number(p.scale) and q.scale == p.scale):
        ratio = ratio + (q.scale - p.scale) * mean_inverse(q)
    if not (is_number(q.rate) and is_number(p.rate) and q.rate == p.rate):
        ratio = ratio + (q.rate - p.rate) * mean(q)
    return ratio


def sample(
    q: GeneralizedInverseGaussian, rng: np.random.Generator, shape: tuple[int, ...]
) -> np.ndarray:
    """Draws of the given shape, to which the parameters broadcast."""
    scale, rate = q.scale, q.rate
    if is_zero(q.rate):
        return np.asarray(scale / rng.gamma(-q.order, size=shape))
    if is_zero(q.scale):
        return np.asarray(rng.gamma(q.order, size=shape) / rate)
    from scipy import stats  # heavy to load, and needed here alone

    standard = stats.geninvgauss.rvs(
        q.order, 2.0 * np.sqrt(scale * rate), size=shape, random_state=rng
    )
    return np.asarray(np.sqrt(scale / rate) * standard)


def with_mean(order: float, rate: Array | float, mean: Array) -> GeneralizedInverseGaussian:
    """The GIG with this order and rate whose scale makes E[x] equal to `mean`, elementwise.

    rate 0, order < -1: scale = (-order - 1) mean. rate 0, -1 <= order < 0: E[x] is infinite for
    every scale, so E[1/x] = 1/mean is matched instead, scale = -order mean.

    rate > 0: E[x] grows with the scale from order/rate (0 for order <= 0), so a mean below that
    limit, or one that needs a smaller scale, gets the smallest scale, 1e-12 mean. The scale that
    puts the mode at `mean` bounds the root from above, since the mode lies below the mean.
    """
    (target,) = as_arrays(mean)
    if is_zero(rate):
        return GeneralizedInverseGaussian(
            order=order, scale=(-order - 1.0 if order < -1.0 else -order) * target, rate=rate
        )
    xp = namespace(target)
    lowest = 1e-12 * target
    highest = xp.maximum(rate * target * target + (1.0 - order) * target, lowest)
    log_scale = _solve_log_scale(order, rate, target, xp.log(lowest), xp.log(highest))
    return GeneralizedInverseGaussian(order=order, scale=xp.exp(log_scale), rate=rate)


def is_zero(value: Array | float) -> bool:
    """Whether `value` is the number 0, which no array is: see the module's docstring."""
    return is_number(value) and bool(value == 0)


def check_proper(order: float, scale: float, rate: float, name: str) -> None:
    """Raise ValueError, naming the argument `name`, unless (order, scale, rate) is a proper GIG."""
    finite = all(math.isfinite(value) for value in (order, scale, rate))
    integrable = (scale > 0 or (scale == 0 and order > 0)) and (
        rate > 0 or (rate == 0 and order < 0)
    )
    if not finite or not integrable:
        raise ValueError(
            f"{name} has order={order}, scale={scale}, rate={rate}, which is not a proper prior: "
            "scale must be positive, or 0 with a positive order; rate positive, or 0 with a "
            "negative order."
        )


def _solve_log_scale(
    order: float, rate: Array | float, target: Array, low: Array, high: Array
) -> Array:
    """Root of log E[x] = log target in log scale, between `low` and `high`.

    Newton steps with d E[x]/ds = -Cov(x, 1/x) = E[x] E[1/x] - 1; a step that leaves the bracket is
    replaced by bisection, so the bracket always shrinks. Elements that have arrived stay, and
    where E[x] exceeds the target already at `low`, that is the answer.
    """
    xp = namespace(target)
    excess, _ = _excess_and_slope(order, rate, target, low)
    t = high = xp.where(excess >= 0.0, low, high)
    # Newton's steps usually need 10; bisection alone narrows any bracket to rounding in 60.
    for _ in range(100):
        excess, slope = _excess_and_slope(order, rate, target, t)
        arrived = (xp.abs(excess) < 1e-12) | (high <= low)
        if bool(xp.all(arrived)):
            break
        low = xp.where(excess > 0.0, low, t)
        high = xp.where(excess > 0.0, t, high)
        newton = t - excess / xp.where(slope > 0.0, slope, xp.ones_like(slope))
        inside = (slope > 0.0) & (newton > low) & (newton < high)
        t = xp.where(arrived, t, xp.where(inside, newton, 0.5 * (low + high)))
    return t


def _excess_and_slope(
    order: float, rate: Array | float, target: Array, log_scale: Array
) -> tuple[Array, Array]:
    """log E[x] - log target and its derivative in log scale."""
    xp = namespace(target)
    scale, argument = _bessel_arguments(*as_arrays(xp.exp(log_scale), rate))
    upper, lower = bessel.bessel_k_ratios(order, argument)
    current = xp.sqrt(scale / rate) * upper
    return xp.log(current / target), scale * (upper * lower - 1.0) / current


def _bessel_arguments(scale: Array, rate: Array) -> tuple[Array, Array]:
    """(s, w = 2 sqrt(s r)).

    Scales that underflowed to 0 inside an array are lifted to the smallest normal number, where
    the Bessel case equals its gamma limit to rounding.
    """
    xp = namespace(scale, rate)
    smallest = float(xp.finfo(scale.dtype).smallest_normal)
    scale = xp.maximum(scale, smallest)
    return scale, 2.0 * xp.sqrt(scale) * xp.sqrt(rate)
