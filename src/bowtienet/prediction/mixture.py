"""The predictive distribution of numbers: a mixture of Gaussians for every row.

    p(y) = Σ_k w_k N(g_k(y) | m_k, d_k²) g_k'(y),   F(y) = Σ_k w_k Φ((g_k(y) - m_k) / d_k),

with d_k² = e_k² + s_k²: e is the epistemic part (what the weights leave open) and s the noise.
Without warps g(y) = y. Deviations are stored, not variances, so that no square of a target's unit
is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bowtienet._arrays import map_arrays, slices
from bowtienet.prediction.components import (
    Group,
    checked_levels,
    group_of,
    mixture_moments,
    mixture_quantiles,
)
from bowtienet.tables.warp import Warp, forward_and_slopes, inverse

Floats = NDArray[np.float64]

_CACHED = 2**16
"""Numbers in the largest temporary array, 512 kB: many passes over what stays in the cache."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Mixture:
    """Mixtures of K Gaussians for rows of shape `base`, (n,) or (n, targets).

    Points `y` and results have that shape, or one axis more in front for several points of a row.

    Examples
    --------
    >>> import numpy as np
    >>> means, deviations = np.array([[0.0], [4.0]]), np.ones((2, 1))
    >>> mixture = Mixture(
    ...     weights=np.array([0.5, 0.5]), means=means, epistemic=0.0 * means, noise=deviations
    ... )
    >>> mixture.mean(), mixture.std().round(3)
    (array([2.]), array([2.236]))
    >>> mixture.ppf([0.05, 0.5]).round(3)
    array([[-1.282],
           [ 2.   ]])
    """

    weights: Floats
    """w (K,) or, where rows differ, ``(K, *base)``: non-negative with sum one over K."""
    means: Floats
    """m ``(K, *base)``, of z = g(y)."""
    epistemic: Floats
    """e ``(K, *base)``: standard deviation that the weights leave open."""
    noise: Floats
    """s ``(K, *base)``: standard deviation of the noise; e and s are not both zero."""
    warps: tuple[Warp, ...] = ()
    """Different g, of one target for rows (n,); none: all is in the unit of y."""
    warp_of: tuple[int, ...] = ()
    """The warp of each component."""

    def __repr__(self) -> str:
        return f"<Mixture of {len(self.weights)} components, shape {self.means.shape[1:]}>"

    @property
    def deviations(self) -> Floats:
        """d = √(e² + s²)."""
        return np.asarray(np.hypot(self.epistemic, self.noise))

    def mean(self) -> Floats:
        """E[y], Σ w m without warps."""
        return self._moments[0]

    def std(self) -> Floats:
        """√Var[y]."""
        return np.asarray(np.hypot(*self.parts()))

    def parts(self) -> tuple[Floats, Floats]:
        """Epistemic and noise standard deviation: the former with the spread of the means.

        Var[y] = Σ w (e² + (m - E[y])²) + Σ w s². The variance of a warped component is parted in
        the ratio e² : s².
        """
        return self._moments[1:]

    def pdf(self, y: Any) -> Floats:
        """p(y)."""
        return np.exp(self.logpdf(y))

    def logpdf(self, y: Any) -> Floats:
        """log p(y)."""
        z, log_slopes = self._standardized(y)
        with np.errstate(divide="ignore", over="ignore"):
            logs = np.log(_like(self.weights, z))
            terms = logs - 0.5 * z * z - np.log(_like(self.deviations, z)) + log_slopes
            peak = terms.max(axis=0)
            # Too far out for a double the density is 0, and -inf - (-inf) is no number.
            peak = np.where(np.isneginf(peak), 0.0, peak)
            total = np.log(np.sum(np.exp(terms - peak), axis=0)) + peak
        return np.asarray(total - 0.5 * math.log(2.0 * math.pi))

    def cdf(self, y: Any) -> Floats:
        """F(y)."""
        return self._sum(ndtr(self._standardized(y)[0]))

    def sf(self, y: Any) -> Floats:
        """1 - F(y), without cancellation."""
        return self._sum(ndtr(-self._standardized(y)[0]))

    def ppf(self, q: Any) -> Floats:
        """Quantiles at a level (the shape of the rows) or at levels (m,): ``(m, *base)``."""
        levels = checked_levels(q)
        upper = levels > 0.5
        return self._cut_off(np.where(upper, 1.0 - levels, levels), upper)

    def isf(self, q: Any) -> Floats:
        """Points y with P(> y) = q, precise for the smallest levels; shapes are those of `ppf`."""
        levels = checked_levels(q)
        upper = levels <= 0.5
        return self._cut_off(np.where(upper, levels, 1.0 - levels), upper)

    def interval(self, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Lower and upper end of the central interval that holds this share."""
        low, high = self.ppf([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
        return low, high

    def rvs(self, size: int, rng: int | np.random.Generator | None = None) -> Floats:
        """Draws ``(size, *base)``, each row for itself."""
        rng = np.random.default_rng(rng)
        base = self.means.shape[1:]
        flat = self.means.reshape(len(self.weights), -1)
        shape, columns = (size, flat.shape[1]), np.arange(flat.shape[1])
        if self.weights.ndim == 1:
            chosen = rng.choice(len(self.weights), p=self.weights, size=shape)
        else:
            bounds = np.cumsum(self.weights.reshape(flat.shape), axis=0)
            level = rng.random(shape) * bounds[-1]
            chosen = np.sum([level >= bound for bound in bounds[:-1]], axis=0, dtype=int)
        deviations = self.deviations.reshape(flat.shape)
        draws = flat[chosen, columns] + deviations[chosen, columns] * rng.standard_normal(shape)
        draws, chosen = draws.reshape(size, *base), chosen.reshape(size, *base)
        images = [inverse(warp, draws) for warp in self._warps_of_base()]
        return np.asarray(np.choose(np.take(self.warp_of, chosen), images) if images else draws)

    def _sum(self, values: Floats) -> Floats:
        """Σ_k w_k x_k."""
        if self.weights.ndim > 1:
            return np.asarray(np.sum(_like(self.weights, values) * values, axis=0))
        return np.asarray(np.tensordot(self.weights, values, axes=1))

    def _standardized(self, y: Any) -> tuple[Floats, Any]:
        """(g(y) - m) / d and log g'(y), ``(K, *points)``."""
        points = np.asarray(y, dtype=float)
        log_slopes: Any = 0.0
        extra = (slice(None), *[None] * max(points.ndim - (self.means.ndim - 1), 0))
        if self.warps:
            points = np.broadcast_to(
                points, np.broadcast_shapes(points.shape, self.means.shape[1:])
            )
            images = [forward_and_slopes(warp, points) for warp in self._warps_of_base()]
            log_slopes = np.log([images[warp][1] for warp in self.warp_of])
            points = np.stack([images[warp][0] for warp in self.warp_of])
        with np.errstate(over="ignore"):
            return np.asarray((points - self.means[extra]) / self.deviations[extra]), log_slopes

    def _warps_of_base(self) -> list[Warp]:
        """Warps whose fields stand against rows: numbers for rows (n,)."""
        if self.means.ndim > 2:
            return list(self.warps)
        return [map_arrays(lambda values: values[0], warp) for warp in self.warps]

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, Floats]:
        """Mean, epistemic and noise standard deviation."""
        found = np.empty((3, self.means[0].size))
        for part, center, scale, groups in self._parts_of_rows():
            mean, epistemic, noise = mixture_moments(groups)
            found[:, part] = center + scale * mean, scale * epistemic, scale * noise
        mean, epistemic, noise = found.reshape(3, *self.means.shape[1:])
        return mean, epistemic, noise

    def _cut_off(self, tails: Floats, upper: NDArray[np.bool_]) -> Floats:
        """Points that cut off these lower or upper tails, at most a half."""
        found = np.empty((tails.size, self.means[0].size))
        for part, center, scale, groups in self._parts_of_rows():
            quantiles = mixture_quantiles(groups, tails.ravel(), upper.ravel())
            for points, u in zip(found, quantiles, strict=True):
                points[part] = center + scale * u
        return found.reshape(*tails.shape, *self.means.shape[1:])

    def _line(self) -> Warp:
        """z = y, in a unit near the largest deviation; a power of two rounds nothing."""
        largest = max(np.max(self.epistemic, initial=0.0), np.max(self.noise, initial=0.0))
        unit = np.ldexp(np.ones(1), np.frexp(largest)[1])
        zero, one = np.zeros(1), np.ones(1)
        return Warp(
            center=zero, scale=unit, exponent=one, low=-one, high=one, shift=zero, size=one / unit
        )

    def _parts_of_rows(self) -> Iterator[tuple[slice, Any, Any, list[Group]]]:
        """Blocks of flat rows with u = (y - center) / scale and their components in that unit."""
        count, warp_of = len(self.weights), self.warp_of or (0,) * len(self.weights)
        warps = self.warps or (self._line(),)
        n_targets = len(warps[0].center)
        arrays = [self.weights, self.means, self.epistemic, self.noise]
        arrays = [values.reshape(count, -1) for values in arrays]
        members = [np.flatnonzero(np.array(warp_of) == i) for i in range(len(warps))]
        size = max(1, _CACHED // (count * n_targets)) * n_targets
        for part in slices(self.means[0].size, size):
            repeats = (part.stop - part.start) // n_targets
            # Numbers for one target, and else one for each row.
            fields = [
                map_arrays(lambda x, n=repeats: x[0] if len(x) == 1 else np.tile(x, n), warp)
                for warp in warps
            ]
            center, scale = fields[0].center, fields[0].scale
            groups = []
            for warp, of in zip(fields, members, strict=True):
                rebased = replace(
                    warp, center=(warp.center - center) / scale, scale=warp.scale / scale
                )
                columns = [x[:, part if x.shape[1] > 1 else slice(None)][of] for x in arrays]
                if of.size:
                    groups.append(group_of(rebased, *columns))
            yield part, center, scale, groups


def _like(values: Floats, points: Floats) -> Floats:
    """Values (K,) or ``(K, *base)`` that stand against ``(K, *points)``."""
    if values.ndim == 1:
        return values.reshape(-1, *[1] * (points.ndim - 1))
    return values[:, *[None] * (points.ndim - values.ndim)]
