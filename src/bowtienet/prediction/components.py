"""Gaussian components behind warps: moments of their mixtures, and the search for quantiles.

A component with z = g(u) ~ N(m, d²) has moments E[h(m + d ξ)] with ξ ~ N(0, 1) and h the inverse of
g: a sum over the nodes of Gauss and Hermite, or in closed form where g is a line. All is in a unit
in which targets are near one, so that squares are safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bowtienet._arrays import map_arrays
from bowtienet.tables.warp import Warp, forward_and_slopes, inverse, is_affine

Floats = NDArray[np.float64]
Evaluate = Callable[[Floats], tuple[Floats, Floats, Any]]

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
"""Standard deviations to about 1e-3, or 1e-2 where a component reaches over both ends of its warp,
where a slope changes; twice the nodes halve that."""


@dataclass(frozen=True, kw_only=True)
class Components:
    """Components k of rows r that have one warp, each (k, r)."""

    weights: Floats
    """(k, r), or (k, 1) where all rows have the same."""
    means: Floats
    epistemic: Floats
    noise: Floats
    warp: Warp | None
    """z = g(u), of fields () or (r,); None: z = u."""


def components_of(
    warp: Warp, weights: Floats, means: Floats, epistemic: Floats, noise: Floats
) -> Components:
    """Components in the unit of u: those of an affine warp are Gaussians of u."""
    if is_affine(warp):
        factor = warp.scale * warp.size
        means = warp.center + warp.scale * warp.shift + factor * means
        epistemic, noise = factor * epistemic, factor * noise
    return Components(
        weights=weights,
        means=means,
        epistemic=epistemic,
        noise=noise,
        warp=None if is_affine(warp) else warp,
    )


def mixture_moments(groups: Sequence[Components]) -> tuple[Floats, Floats, Floats]:
    """Mean, epistemic and noise standard deviation (r,), of all groups together.

    The variance of a warped component is parted in the ratio e² : s².
    """
    moments = [(group.weights, *_moments(group)) for group in groups]
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


def mixture_quantiles(groups: Sequence[Components], tail: float, *, upper: bool) -> Floats:
    """u (r,) below or above which this share lies, at most a half."""
    sign = -1.0 if upper else 1.0
    if tail == 0.0:
        return np.full(groups[0].means.shape[1], -sign * np.inf)
    low, high, x = _bracket(groups, float(ndtri(tail)), sign)
    left = np.arange(x.size)
    # Steps of all rows, of those that are left, and of those that are left then.
    for most in (2, 1, 100):
        part = groups if left.size == x.size else [_of_rows(group, left) for group in groups]
        x[left], low[left], high[left], ended = search(
            _tail_of(part, sign), low[left], high[left], x[left], tail, settled=1e-10, most=most
        )
        left = left[~ended]
        if not left.size:
            break
    return sign * x


def search(
    evaluate: Evaluate,
    low: Floats,
    high: Floats,
    x: Floats,
    tail: Any,
    *,
    settled: float,
    most: int = 100,
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """x with F(x) = tail, the bracket around it, and whether the search has ended.

    Newton's or Halley's method for G(x) = Φ^{-1}(F(x)), on which scale one Gaussian is a line, in a
    bracket that always shrinks; bisection alone narrows any to rounding in 60. `evaluate` gives F,
    √(2π) F' and F''/F', or None for Newton's.
    """
    target = ndtri(tail)
    infinite = ~(np.isfinite(low) & np.isfinite(high))
    still = infinite
    with np.errstate(all="ignore"):
        for count in range(most):
            reached, density, bending = evaluate(x)
            u = ndtri(reached)
            step = (target - u) * np.exp(-0.5 * u * u) / density
            there = done = np.abs(target - u) <= settled
            if bending is None:
                step = np.where(there, 0.0, step)
            else:
                turn = 0.5 * step * (bending + u * density * np.exp(0.5 * u * u))
                # One more of Halley's steps leads there, unless the slope changes on the way.
                done = there | (np.abs(target - u) <= 1e-5) & (np.abs(turn) <= 1e-2)
                # Beyond a factor of two neither method is to be trusted: the bracket decides.
                step = step / np.clip(1.0 + turn, 0.5, 2.0)
            low, high = np.where(reached < tail, x, low), np.where(reached < tail, high, x)
            new = x + step
            inside = (new >= low) & (new <= high)
            if count >= 20 and count % 2:
                # A narrow component between two points may throw the search to and fro: bisection
                # then is every other step. Few rows need half as many.
                inside &= still | done
            # x is an end of the bracket now, which a last step may pass by rounding.
            new = np.where(inside, new, np.where(there, x, 0.5 * low + 0.5 * high))
            done &= there | inside
            still = infinite | done | (np.abs(new - x) <= 4.0 * np.spacing(np.abs(x)))
            x = new
            if np.all(still):
                break
    return x, low, high, still


def _moments(group: Components) -> tuple[Floats, Floats, Floats]:
    """Mean, epistemic and noise variance of each component."""
    first, second = group.epistemic**2, group.noise**2
    if group.warp is None:
        return group.means, first, second
    deviations = np.sqrt(first + second)
    median = inverse(group.warp, group.means)
    mean, square = np.zeros_like(median), np.zeros_like(median)
    for node, weight in zip(NODES, NODE_WEIGHTS / NODE_WEIGHTS.sum(), strict=True):
        apart = inverse(group.warp, group.means + node * deviations) - median
        mean += weight * apart
        square += weight * apart * apart
    # No mean is further from the median than the standard deviation: one bit is lost.
    variance = np.maximum(square - mean**2, 0.0)
    share = first / (first + second)
    return median + mean, share * variance, (1.0 - share) * variance


def _bracket(
    groups: Sequence[Components], target: float, sign: float
) -> tuple[Floats, Floats, Floats]:
    """Least and largest quantile of a component, and the quantile of one with all their spread.

    All of sign · u, where the level is the lower tail. Were the components Gaussians of one
    standard deviation d, √(d² + Var[m]) would be that of the mixture.
    """
    lows, highs = [], []
    middle = center = square = np.zeros(groups[0].means.shape[1])
    for group in groups:
        ends, medians = (sign * _quantiles(group, sign * at) for at in (target, 0.0))
        lows.append(ends.min(axis=0))
        highs.append(ends.max(axis=0))
        middle = middle + _total(group.weights, ends)
        center = center + _total(group.weights, medians)
        square = square + _total(group.weights, medians**2)
    spread = np.maximum(square - center**2, 0.0) * target**2
    start = center - np.sqrt((middle - center) ** 2 + spread)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    return low, high, np.clip(start, low, high)


def _quantiles(group: Components, at: float) -> Floats:
    """h(m + d at)."""
    z = group.means + at * np.sqrt(group.epistemic**2 + group.noise**2)
    return z if group.warp is None else inverse(group.warp, z)


def _tail_of(groups: Sequence[Components], sign: float) -> Evaluate:
    """F, √(2π) F' and F''/F' of sign · u."""
    rates = [sign / np.sqrt(group.epistemic**2 + group.noise**2) for group in groups]

    def evaluate(x: Floats) -> tuple[Floats, Floats, Floats]:
        reached, density, change = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        for group, rate in zip(groups, rates, strict=True):
            u = sign * x
            g, slope, bending = u, np.ones(1), np.zeros(1)
            if group.warp is not None:
                g, slope, bending = forward_and_slopes(group.warp, u)
            z = (g - group.means) * rate
            reached += _total(group.weights, ndtr(z))
            bell = np.exp(-0.5 * z * z)
            bell *= rate
            part = sign * slope * _total(group.weights, bell)
            density += part
            z *= bell
            z *= rate
            change += sign * bending * part - slope**2 * _total(group.weights, z)
        return reached, density, change / density

    return evaluate


def _of_rows(group: Components, rows: NDArray[np.intp]) -> Components:
    """The components of some rows."""

    def taken(values: Any) -> Any:
        return values if np.shape(values)[-1:] in ((), (1,)) else values[..., rows]

    warp = None if group.warp is None else map_arrays(taken, group.warp)
    parts = {
        name: taken(getattr(group, name)) for name in ("weights", "means", "epistemic", "noise")
    }
    return replace(group, warp=warp, **parts)


def _total(weights: Floats, values: Floats) -> Floats:
    """Σ_k w_k x_k (r,)."""
    if weights.shape[1] == 1:
        return np.asarray(weights[:, 0] @ values)
    return np.einsum("kr,kr->r", weights, values)
