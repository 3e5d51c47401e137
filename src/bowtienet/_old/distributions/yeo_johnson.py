"""Targets that are Gaussian after a warp: Yeo and Johnson's power transform, tamed at its ends.

For a standardised target u, with the power p = λ above zero and p = 2 - λ below,

    g(u) = sign(u) ((1 + |u|)^p - 1) / p     for low <= u <= high,   λ in [0, 2],
    z    = (g(u) - center) / scale,

and g goes on linearly outside, with the slope it has at the end. So g is increasing and smooth, its
inverse h exists everywhere and grows no faster than a line there: no quantile, draw or moment can
overflow. λ = 1 is no warp; λ < 1 is for a long upper tail and λ > 1 for a long lower one.

If z ~ N(m, v), then u has the density N(g(u); m, v) g'(u), quantiles h(m + √v Φ^{-1}(q)), and
moments by Gauss-Hermite quadrature, E[h(m + √v ξ)] with ξ ~ N(0, 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, like, namespace

Floats = NDArray[np.float64]

LEAST_EXPONENT, LARGEST_EXPONENT = 0.0, 2.0
"""Between these the inverse exists everywhere and moments are finite."""
MARGIN = 0.5
"""How far beyond the targets of training the warp bends, in shares of their range."""
NODES = 20
"""Points of the quadrature for moments."""
TERMS = 8
"""Of Mehler's series, the constant one included, that `signal_variance` takes apart."""
_LEAST_POWER = 1e-20
"""((1 + a)^p - 1) / p at this power is log(1 + a) to rounding."""


@dataclass(frozen=True, kw_only=True)
class Warp:
    """z = (g(u) - center) / scale, target by target; arrays of one shape, such as (D_out,)."""

    exponent: Array
    """λ of g."""
    low: Array
    """Where g begins to bend, and below which it is a line."""
    high: Array
    center: Array
    """Of g(u), so that z is standardised."""
    scale: Array


def fit_warp(targets: Floats, weights: Floats) -> Warp:
    """λ by maximum likelihood, -½ log Var[g(u)] + E[log g'(u)], for each column of targets (n, D).

    Targets are standardised, and row weights (n,) positive.
    """
    share = weights / np.sum(weights)
    exponent = np.array([_best_exponent(column, share) for column in targets.T])
    least, largest = targets.min(axis=0), targets.max(axis=0)
    margin = MARGIN * (largest - least)
    plain = Warp(
        exponent=exponent,
        low=least - margin,
        high=largest + margin,
        center=np.zeros_like(exponent),
        scale=np.ones_like(exponent),
    )
    values = to_warped(plain, targets)
    center = share @ values
    spread = np.sqrt(share @ (values - center) ** 2)
    # Of equal values the spread is rounding, and not zero where sums are formed in another order.
    scale = np.where(largest > least, spread, 1.0)
    scale = np.where(scale > 0.0, scale, 1.0)
    return Warp(exponent=exponent, low=plain.low, high=plain.high, center=center, scale=scale)


def identity(shape: int | tuple[int, ...]) -> Warp:
    """z = u, to the last bit: lines of slope one from u = 0 on, to both sides."""
    zeros, ones = np.zeros(shape), np.ones(shape)
    return Warp(exponent=ones, low=zeros, high=zeros, center=zeros, scale=ones)


def to_warped(warp: Warp, values: Array) -> Array:
    """z of u; the warp's arrays are broadcast against the values."""
    return warped_and_slope(warp, values)[0]


def warped_and_slope(warp: Warp, values: Array) -> tuple[Array, Array]:
    """z and dz/du = (1 + |u|)^(p - 1) / scale, for little more than z alone."""
    exponent, low, high, center, scale = _beside(values, warp)
    inside = _clip(values, low, high)
    bent, slope = _bend(inside, exponent)
    return (bent + slope * (values - inside) - center) / scale, slope / scale


def from_warped(warp: Warp, values: Array) -> Array:
    """u of z, the inverse of `to_warped`."""
    exponent, low, high, center, scale = _beside(values, warp)
    values = values * scale + center
    bent = _clip(values, _bend(low, exponent)[0], _bend(high, exponent)[0])
    inside, slope = _unbend(bent, exponent)
    return inside + (values - bent) / slope


def log_slope(warp: Warp, values: Array) -> Array:
    """log dz/du = (p - 1) log(1 + |u|) - log scale, at the end it had where u lies outside."""
    xp = namespace(values)
    exponent, low, high, _, scale = _beside(values, warp)
    inside = _clip(values, low, high)
    return (_power(inside, exponent) - 1.0) * xp.log1p(xp.abs(inside)) - xp.log(scale)


def moments(warp: Warp, mean: Array, variance: Array) -> tuple[Array, Array]:
    """E[u] and Var[u] for z ~ N(mean, variance), to about 1e-3 of √Var[u] and of Var[u].

    Exact for λ = 1, and far closer where z is unlikely to pass an end of the warp.
    """
    center, deviation = mean_and_deviation(warp, mean, namespace(mean).sqrt(variance))
    return center, deviation**2


def mean_and_deviation(warp: Warp, mean: Array, deviation: Array) -> tuple[Array, Array]:
    """E[u] and √Var[u] for z = mean + deviation ξ, also where the variance would be no double.

    Sums are of r = (u - median) / deviation. No mean is further from the median than the standard
    deviation, so E[r²] - E[r]² loses no more than one bit.
    """
    xp = namespace(mean)
    median = from_warped(warp, mean)
    # Less than this is as good as a step, where every u is the median.
    unit = xp.maximum(deviation, like(deviation, xp.finfo(deviation.dtype).smallest_normal))
    first, second = xp.zeros_like(median), xp.zeros_like(median)
    for point, weight in zip(*_rule(NODES), strict=True):
        distance = (from_warped(warp, mean + point * deviation) - median) / unit
        first = first + weight * distance
        second = second + weight * distance**2
    spread = xp.maximum(second - first**2, xp.zeros_like(second))
    return median + first * deviation, xp.sqrt(spread) * deviation


def signal_variance(warp: Warp, mean: Array, epistemic: Array, noise: Array) -> Array:
    """Var_f[E[u | f]] for f ~ N(mean, epistemic), z = f + N(0, noise): what more rows would tell.

    Two z of one f have the correlation ρ = epistemic / (epistemic + noise), so that this is
    Cov[u, u'] = Σ_k ρ^k c_k², with the c_k of `hermite_coefficients`; terms after the first few
    count as one. The rest of Var[u] is E_f[Var[u | f]], by the law of total variance.
    """
    xp = namespace(mean)
    variance = epistemic + noise
    # Where there is no variance at all there is none to share.
    share = epistemic / xp.where(variance > 0.0, variance, xp.ones_like(variance))
    deviation, median = xp.sqrt(variance), from_warped(warp, mean)
    square, terms = xp.zeros_like(median), [xp.zeros_like(median) for _ in range(TERMS)]
    for point, weight in zip(*_rule(NODES), strict=True):
        distance = from_warped(warp, mean + point * deviation) - median
        square = square + weight * distance**2
        for k, polynomial in enumerate(_hermite(point, TERMS)):
            terms[k] = terms[k] + (weight * polynomial) * distance
    rest = square - terms[0] ** 2
    found, power = xp.zeros_like(median), share
    for term in terms[1:]:
        found = found + power * term**2
        rest, power = rest - term**2, power * share
    return found + power * xp.maximum(rest, xp.zeros_like(rest))


def hermite_coefficients(warp: Warp, mean: Floats, deviation: Floats, n_terms: int) -> Floats:
    """c_k = E[h(m + d ξ) He_k(ξ)] / √k!, for k = 1 ... n_terms, (n_terms, *shape of mean).

    For z, z' jointly Gaussian with correlation ρ, Cov[h(z), h'(z')] = Σ_k ρ^k c_k c'_k (Mehler).
    """
    points, weights = _rule(2 * NODES)
    found = np.zeros((n_terms, *np.shape(mean)))
    for point, weight in zip(points, weights, strict=True):
        value = weight * from_warped(warp, mean + point * deviation)
        for k, polynomial in enumerate(_hermite(point, n_terms + 1)[1:]):
            found[k] += polynomial * value
    return found


def _best_exponent(values: Floats, share: Floats) -> float:
    from scipy.optimize import minimize_scalar  # heavy to load

    sizes = np.log1p(np.abs(values))
    direction = float(share @ np.copysign(sizes, values))
    if not np.ptp(values) > 0.0:
        return 1.0

    def loss(exponent: float) -> float:
        bent, _ = _bend(values, np.float64(exponent))
        return 0.5 * np.log(share @ (bent - share @ bent) ** 2) - (exponent - 1.0) * direction

    limits = (LEAST_EXPONENT, LARGEST_EXPONENT)
    found = minimize_scalar(loss, bounds=limits, method="bounded", options={"xatol": 1e-4})
    # The search comes near the limits but never there.
    return min((float(found.x), *limits), key=loss)


def _beside(values: Array, warp: Warp) -> tuple[Array, ...]:
    parts: tuple[Any, ...] = (warp.exponent, warp.low, warp.high, warp.center, warp.scale)
    return tuple(like(values, part) for part in parts)


def _clip(values: Array, low: Array, high: Array) -> Array:
    xp = namespace(values)
    return xp.minimum(xp.maximum(values, low), high)


def _power(values: Array, exponent: Array) -> Array:
    xp = namespace(values)
    least = like(exponent, _LEAST_POWER)
    return xp.where(values < 0.0, xp.maximum(2.0 - exponent, least), xp.maximum(exponent, least))


def _bend(values: Array, exponent: Array) -> tuple[Array, Array]:
    """g(u) and g'(u) = (1 + |u|)^p / (1 + |u|), without ends."""
    xp = namespace(values)
    power, size = _power(values, exponent), xp.abs(values)
    grown = xp.expm1(power * xp.log1p(size))
    return xp.sign(values) * (grown / power), (1.0 + grown) / (1.0 + size)


def _unbend(values: Array, exponent: Array) -> tuple[Array, Array]:
    """u of g(u), and g'(u) as in `_bend`."""
    xp = namespace(values)
    power = _power(values, exponent)
    grown = power * xp.abs(values)
    size = xp.expm1(xp.log1p(grown) / power)
    return xp.sign(values) * size, (1.0 + grown) / (1.0 + size)


@cache
def _rule(n_nodes: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Points and weights with Σ w f(ξ) = E[f(ξ)] for ξ ~ N(0, 1) and polynomials f."""
    points, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return tuple(points.tolist()), tuple((weights / np.sum(weights)).tolist())


@cache
def _hermite(point: float, n_terms: int) -> tuple[float, ...]:
    """He_k(ξ) / √k! for k = 0 ... n_terms - 1, by √(k+1) P_{k+1} = ξ P_k - √k P_{k-1}."""
    found = [1.0, point]
    for k in range(1, n_terms):
        found.append((point * found[k] - math.sqrt(k) * found[k - 1]) / math.sqrt(k + 1.0))
    return tuple(found[:n_terms])
