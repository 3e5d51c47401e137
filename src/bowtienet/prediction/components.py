"""Gaussian components behind warps: moments of their mixtures, and the search for quantiles.

A component with z = g(u) ~ N(m, e² + s²) has moments E[h(z)] with h the inverse of g: a sum over
the nodes of Gauss and Hermite, or in closed form where g is a line. All is in a unit in which
targets are near one, so that squares are safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bowtienet._arrays import map_arrays
from bowtienet.tables.warp import Warp, forward_and_slopes, inverse, is_affine

Floats = NDArray[np.float64]
Group: TypeAlias = tuple[Floats, Floats, Floats, Floats, Warp | None]
"""Weights, m, e and s (k, r) of components with one z = g(u), and that warp.

Weights may be (k, 1); fields of the warp are () or (r,), and None stands for z = u.
"""

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
"""Standard deviations to about 1e-3, or 1e-2 where a component reaches over both ends of its warp,
where a slope changes; twice the nodes halve that."""


def group_of(warp: Warp, weights: Floats, means: Floats, epistemic: Floats, noise: Floats) -> Group:
    """Components in the unit of u: those of an affine warp are Gaussians of u."""
    if not is_affine(warp):
        return weights, means, epistemic, noise, warp
    factor = warp.scale * warp.size
    means = warp.center + warp.scale * warp.shift + factor * means
    return weights, means, factor * epistemic, factor * noise, None


def mixture_moments(groups: Sequence[Group]) -> tuple[Floats, Floats, Floats]:
    """Mean, epistemic and noise standard deviation (r,), of all groups together.

    The variance of a warped component is parted in the ratio e² : s².
    """
    moments = [(w, *_moments(m, e, s, warp)) for w, m, e, s, warp in groups]
    mean = sum(_total(w, m) for w, m, _, _ in moments)
    epistemic = sum(_total(w, e + (m - mean) ** 2) for w, m, e, _ in moments)
    noise = sum(_total(w, s) for w, _, _, s in moments)
    return np.asarray(mean), np.sqrt(epistemic), np.sqrt(noise)


def checked_levels(q: Any) -> Floats:
    """Levels, a number or (m,)."""
    levels = np.asarray(q, dtype=float)
    if levels.ndim > 1 or not np.all((levels >= 0.0) & (levels <= 1.0)):
        raise ValueError(f"levels must be numbers from 0 to 1, got {q!r}.")
    return levels


def mixture_quantiles(
    groups: Sequence[Group], tails: Floats, upper: NDArray[np.bool_]
) -> Iterator[Floats]:
    """u (r,) below or above which each of these shares lies, at most a half."""
    parts = tuple((w, m, 1.0 / np.sqrt(e**2 + s**2), warp) for w, m, e, s, warp in groups)
    for tail, sign in zip(tails, np.where(upper, -1.0, 1.0), strict=True):
        yield sign * _quantiles(parts, tail, sign)


def _quantiles(parts: Any, tail: float, sign: float) -> Floats:
    """x = sign · u (r,) with F(x) = tail, of weights, means, 1/d and warps.

    Halley's method for G(x) = Φ^{-1}(F(x)), on which scale one Gaussian is a line, in a bracket
    that always shrinks; bisection alone narrows any to rounding in 60. Two steps with a rough Φ,
    half of the work, come first: then most rows need one.
    """
    if tail == 0.0:
        return np.full(parts[0][1].shape[1], -np.inf)
    target = ndtri(tail)
    low, high, x = _bracket(parts, target, sign)
    if np.array_equal(low, high):
        return x
    roots, left = np.empty_like(x), np.arange(x.size)
    with np.errstate(all="ignore"):
        for _ in range(2):
            new = x + _step(*_tail(parts, x, sign, rough=True), target)[0]
            x = np.where(np.isfinite(new), np.clip(new, low, high), x)
        for count in range(100):
            reached, density, bending = _tail(parts, x, sign, rough=False)
            step, away, turn = _step(reached, density, bending, target)
            there = away <= 1e-10
            # One more of Halley's steps leads there, unless the slope changes on the way.
            done = there | (away <= 1e-5) & (turn <= 1e-2)
            low, high = np.where(reached < tail, x, low), np.where(reached < tail, high, x)
            new = x + step
            inside = (new >= low) & (new <= high)
            if count >= 20 and count % 2:
                # A narrow component between two points may throw the search to and fro: bisection
                # then is every other step. Few rows need half as many.
                inside &= done
            # x is an end of the bracket now, which a last step may pass by rounding.
            new = np.where(inside, new, np.where(there, x, 0.5 * low + 0.5 * high))
            done &= there | inside
            done |= ~np.isfinite(high - low) | (np.abs(new - x) <= 4.0 * np.spacing(np.abs(x)))
            roots[left] = new
            if done.all():
                break
            parts = _of_rows(parts, ~done)
            left, x, low, high = left[~done], new[~done], low[~done], high[~done]
    return roots


def _step(
    reached: Floats, density: Floats, bending: Floats, target: float
) -> tuple[Floats, Floats, Floats]:
    """Halley's step, how far Φ^{-1}(F) is from its target, and how much the slope turns on it.

    F, √(2π) F' and F''/F' are given.
    """
    u = ndtri(reached)
    bell = np.exp(-0.5 * u * u)
    step = (target - u) * bell / density
    turn = 0.5 * step * (bending + u * density / bell)
    # Beyond a factor of two neither Newton's method nor Halley's is to be trusted.
    return step / np.clip(1.0 + turn, 0.5, 2.0), np.abs(target - u), np.abs(turn)


def _moments(
    means: Floats, epistemic: Floats, noise: Floats, warp: Warp | None
) -> tuple[Floats, Floats, Floats]:
    """Mean, epistemic and noise variance of each component."""
    first, second = epistemic**2, noise**2
    if warp is None:
        return means, first, second
    deviations = np.sqrt(first + second)
    median = inverse(warp, means)
    mean, square = np.zeros_like(median), np.zeros_like(median)
    for node, weight in zip(NODES, NODE_WEIGHTS / NODE_WEIGHTS.sum(), strict=True):
        apart = inverse(warp, means + node * deviations) - median
        mean += weight * apart
        square += weight * apart * apart
    # No mean is further from the median than the standard deviation: one bit is lost.
    variance = np.maximum(square - mean**2, 0.0)
    share = first / (first + second)
    return median + mean, share * variance, (1.0 - share) * variance


def _bracket(parts: Any, target: float, sign: float) -> tuple[Floats, Floats, Floats]:
    """Least and largest quantile of a component, and the quantile of one with all their spread.

    All of sign · u, where the level is the lower tail. Were the components Gaussians of one
    standard deviation d, √(d² + Var[m]) would be that of the mixture.
    """
    lows, highs = [], []
    middle = center = square = np.zeros(parts[0][1].shape[1])
    for weights, means, rates, warp in parts:
        ends, medians = means + sign * target / rates, means
        if warp is not None:
            ends, medians = inverse(warp, ends), inverse(warp, medians)
        ends, medians = sign * ends, sign * medians
        lows.append(ends.min(axis=0))
        highs.append(ends.max(axis=0))
        middle = middle + _total(weights, ends)
        center = center + _total(weights, medians)
        square = square + _total(weights, medians**2)
    spread = np.maximum(square - center**2, 0.0) * target**2
    start = center - np.sqrt((middle - center) ** 2 + spread)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    return low, high, np.clip(start, low, high)


def _tail(parts: Any, x: Floats, sign: float, *, rough: bool) -> tuple[Floats, Floats, Floats]:
    """F, √(2π) F' and F''/F' of sign · u."""
    reached, density, change = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for weights, means, rates, warp in parts:
        u = sign * x
        g, slope, bending = u, np.ones(1), np.zeros(1)
        if warp is not None:
            g, slope, bending = forward_and_slopes(warp, u)
        z = g - means
        z *= rates
        z *= sign
        bell = z * z
        bell *= -0.5
        np.exp(bell, out=bell)
        reached += _total(weights, _rough_ndtr(z, bell) if rough else ndtr(z))
        bell *= rates
        part = slope * _total(weights, bell)
        density += part
        z *= bell
        z *= rates
        change += sign * bending * part - slope**2 * _total(weights, z)
    return reached, density, change / density


def _rough_ndtr(z: Floats, bell: Floats) -> Floats:
    """Φ(z) to 7.5e-8 from e^{-z²/2}: Hastings' formula, 26.2.17 of Abramowitz and Stegun."""
    t = np.abs(z)
    t *= 0.2316419
    t += 1.0
    np.reciprocal(t, out=t)
    series = 0.530702714 * t
    for coefficient in (-0.726576013, 0.710706871, -0.142248368, 0.127414796):
        series += coefficient
        series *= t
    series *= bell
    return np.abs((z > 0.0) - series)


def _of_rows(parts: Any, rows: NDArray[np.bool_]) -> Any:
    """The components of some rows."""

    def taken(values: Any) -> Any:
        return values if np.shape(values)[-1:] in ((), (1,)) else values[..., rows]

    return map_arrays(taken, parts)


def _total(weights: Floats, values: Floats) -> Floats:
    """Σ_k w_k x_k (r,)."""
    if weights.shape[1] == 1:
        return np.asarray(weights[:, 0] @ values)
    return np.einsum("kr,kr->r", weights, values)
