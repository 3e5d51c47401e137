"""Logarithm and ratios of the modified Bessel function K_p(w), any real order, without overflow.

The moments of a generalized inverse Gaussian need log K_p(w) and K_{p±1}(w) / K_p(w) for orders
up to the number of weights of a layer, where K itself is far outside floating point. One rule
serves every order. With p = |order|, g = sqrt(p² + w²) and t* = asinh(p / w), the integral
K_p(w) = ½ ∫ exp(p t - w cosh t) dt, centred at its peak, is

    K_p(w) = ½ exp(p t* - g) ∫ e^{-f(u)} du,      f(u) = 2 (g-p) sinh²(u/2) + p (e^u - 1 - u),
    K_{p-1}(w) / K_p(w) = e^{-t*} ∫ e^{-u-f(u)} du / ∫ e^{-f(u)} du,
    K_{p+1}(w) / K_p(w) = K_{p-1}(w) / K_p(w) + 2 p / w.

Both terms of f are non-negative, and so are both terms of the last line, hence nothing cancels;
g - p = w² / (g + p). The trapezoidal rule converges like exp(-π²/h) because e^{-f} is analytic
for |Im u| < π/2. The two terms of f also give limits in closed form, see `_limits`: no root
finding is needed and the result does not depend on them, so derivatives pass through.
"""

from __future__ import annotations

import math

import numpy as np

from bowtienet._arrays import Array, namespace, slices

_SMALLEST_QUADRATURE_ARGUMENT = 1e-8
"""Below it the leading terms of the series at 0 are exact to rounding, see `_small_argument`."""


def log_bessel_k(order: float, argument: Array) -> Array:
    """log K_order(argument), elementwise, for argument > 0."""
    return _log_and_lower_ratio(abs(float(order)), argument)[0]


def bessel_k_ratios(order: float, argument: Array) -> tuple[Array, Array]:
    """(K_{order+1} / K_order, K_{order-1} / K_order) at `argument` > 0, elementwise.

    K_{-p} = K_p, so a negative order exchanges the two ratios of the positive one.
    """
    p = abs(float(order))
    lower = _log_and_lower_ratio(p, argument)[1]
    upper = lower + 2.0 * p / argument
    return (upper, lower) if order >= 0 else (lower, upper)


def _log_and_lower_ratio(p: float, argument: Array) -> tuple[Array, Array]:
    """log K_p and K_{p-1} / K_p for p >= 0."""
    xp = namespace(argument)
    if p == 0.5:
        return 0.5 * xp.log(0.5 * math.pi / argument) - argument, xp.ones_like(argument)
    flat = xp.reshape(argument, (-1,))
    # The temporaries (elements, nodes) of such blocks stay in the processor's cache.
    blocks = slices(flat.shape[0], 512) or [slice(0, 0)]
    parts = [_log_and_lower_ratio_of_vector(p, flat[block]) for block in blocks]
    log_k, lower = (xp.concat(part) for part in zip(*parts, strict=True))
    return xp.reshape(log_k, argument.shape), xp.reshape(lower, argument.shape)


def _log_and_lower_ratio_of_vector(p: float, w: Array) -> tuple[Array, Array]:
    """Quadrature, and the leading terms at 0 for arguments too small for it."""
    xp = namespace(w)
    edge = _SMALLEST_QUADRATURE_ARGUMENT
    small = w < edge
    # Each branch sees only arguments it can take, so that neither makes infinities nor, under
    # autodiff, infinite derivatives times zero.
    log_k, lower = _quadrature(p, xp.where(small, xp.full_like(w, edge), w))
    tiny = xp.where(small, w, xp.full_like(w, edge))
    log_k_tiny = _small_argument(p, tiny)
    lower_tiny = xp.exp(_small_argument(abs(p - 1.0), tiny) - log_k_tiny)
    return xp.where(small, log_k_tiny, log_k), xp.where(small, lower_tiny, lower)


def _quadrature(p: float, w: Array) -> tuple[Array, Array]:
    """Trapezoidal rule of the module's integrals, for a vector of arguments."""
    xp = namespace(w)
    g = xp.hypot(w, xp.full_like(w, p))
    peak_ratio = w / (g + p)  # e^{-t*}
    g_minus_p = w * peak_ratio
    left, right = _limits(p, g, g_minus_p)
    # Traced arrays have no values to look at; they get the nodes that serve every argument.
    smallest = _SMALLEST_QUADRATURE_ARGUMENT
    if isinstance(w, np.ndarray):
        # NaN stays NaN, and has no say in the nodes of the others.
        smallest = float(np.min(w[np.isfinite(w)], initial=math.inf))
    count = _n_nodes(p, smallest)
    step = (left + right) / (count - 1)
    u = np.arange(count) * step[:, None] - left[:, None]
    exp_u = xp.exp(u)
    exp_minus_u, growth = 1.0 / exp_u, exp_u - 1.0
    # 4 sinh²(u/2) = (e^u - 1)² e^-u keeps full accuracy at the peak, where e^u + e^-u - 2 does not.
    exponent = 0.5 * g_minus_p[:, None] * (growth * growth * exp_minus_u) + p * (growth - u)
    weight = xp.exp(-exponent)
    total = xp.sum(weight, axis=-1)
    shifted = xp.sum(weight * exp_minus_u, axis=-1)
    log_k = xp.log(0.5 * step * total) - p * xp.log(peak_ratio) - g
    return log_k, peak_ratio * (shifted / total)


def _n_nodes(p: float, smallest: float) -> int:
    """Nodes: the longest interval, that of the smallest argument, over the step.

    The step makes exp(-π²/h) negligible at p = 0 and is 0.6 widths of the peak, 1/sqrt(p), for
    high orders; 48 nodes resolve the peak of a large argument.
    """
    if smallest == math.inf:
        return 48
    g = np.asarray(math.hypot(p, smallest))
    left, right = _limits(p, g, smallest * (smallest / (g + p)))
    step = 0.3 / math.sqrt(1.0 + 0.25 * p)
    return max(48, math.ceil(float(left + right) / step))


def _limits(p: float, g: Array, g_minus_p: Array) -> tuple[Array, Array]:
    """Distances left and right of the peak beyond which the integrands are negligible.

    They are cut where they are below e^-35 = 6e-16 of their peak.
    Right: f(u) >= 2 g sinh²(u/2). Left, with v = -u: f >= 2 (g-p) sinh²(v/2), and
    f >= p (v - 1 + e^{-v}) >= p v² / (2 + v); whichever reaches the cut first is a limit, at which
    f is at most twice the cut. The integrand of K_{p-1} has another factor e^v, so the second
    bound is used with p - 1; where p is hardly above 1 it never binds.
    """
    xp = namespace(g)
    cut = 35.0
    right = 2.0 * xp.asinh(xp.sqrt(0.5 * cut / g))
    left = 2.0 * xp.asinh(xp.sqrt(0.5 * cut / g_minus_p))
    if p > 1.1:
        c = cut / (p - 1.0)
        left = xp.minimum(left, xp.full_like(left, 0.5 * (c + math.sqrt(c * c + 8.0 * c))))
    return left, right


def _small_argument(p: float, w: Array) -> Array:
    """log K_p(w) for 0 < w <= 1e-8 from the leading terms at 0, with x = w/2.

        K_p = ½ (Γ(p) x^-p + Γ(-p) x^p) = e^{(a+b)/2} sinh((a-b)/2) / p,
        a = log Γ(1+p) - p log x,  b = log Γ(1-p) + p log x   (K_0 = -log x - 0.5772...).

    The next terms are x² times these. From p = 0.75 on the second term is below 1e-11 of the
    first, and is left out because near p = 1 it cancels against the next one.
    """
    xp = namespace(w)
    log_x = xp.log(0.5 * w)
    if p >= 0.75:
        return math.lgamma(p) - math.log(2.0) - p * log_x
    if p < 1e-9:
        # sinh((a-b)/2) / p to rounding, as p log x stays below 1e-6.
        return xp.log(-log_x - float(np.euler_gamma))
    half_sum = 0.5 * (math.lgamma(1.0 + p) + math.lgamma(1.0 - p))
    half_difference = 0.5 * (math.lgamma(1.0 + p) - math.lgamma(1.0 - p)) - p * log_x
    log_sinh = half_difference + xp.log(-0.5 * xp.expm1(-2.0 * half_difference))
    return half_sum + log_sinh - math.log(p)
