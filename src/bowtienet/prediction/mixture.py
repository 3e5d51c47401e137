"""The predictive distribution of numbers: a mixture of Gaussians for every row.

    p(y) = Σ_k w_k N(y | m_k, d_k²),   F(y) = Σ_k w_k Φ((y - m_k) / d_k),   d_k² = e_k² + s_k²,

with e the epistemic part (what the weights leave open) and s the noise. Deviations are stored, not
variances, so that no square of a target's unit is ever formed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bowtienet._arrays import slices

Floats = NDArray[np.float64]

_STEPS = 100
"""Most iterations of a quantile; bisection alone narrows any bracket to rounding in 60."""
_SETTLED = 1e-14
"""Distance of Φ^{-1}(F(x)) from where it should be, at which a quantile is known to rounding."""
_BLOCK = 2**18
"""Numbers in the largest temporary array of a quantile, 2 MB."""


@dataclass(frozen=True, kw_only=True)
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
    """w (K,), non-negative with sum one."""
    means: Floats
    """m ``(K, *base)``."""
    epistemic: Floats
    """e ``(K, *base)``: standard deviation that the weights leave open."""
    noise: Floats
    """s ``(K, *base)``: standard deviation of the noise; e and s are not both zero."""

    @property
    def deviations(self) -> Floats:
        """d = √(e² + s²)."""
        return np.asarray(np.hypot(self.epistemic, self.noise))

    def mean(self) -> Floats:
        """E[y] = Σ w m."""
        return self._sum(self.means)

    def std(self) -> Floats:
        """√Var[y]."""
        return np.asarray(np.hypot(*self.parts()))

    def parts(self) -> tuple[Floats, Floats]:
        """Epistemic and noise standard deviation: the former with the spread of the means.

        Var[y] = Σ w (e² + (m - E[y])²) + Σ w s².
        """
        apart = np.hypot(self.epistemic, self.means - self.mean())
        return self._root_of_squares(apart), self._root_of_squares(self.noise)

    def pdf(self, y: Any) -> Floats:
        """p(y)."""
        return np.exp(self.logpdf(y))

    def logpdf(self, y: Any) -> Floats:
        """log p(y)."""
        z = self._standardized(y)
        with np.errstate(divide="ignore", over="ignore"):
            logs = np.log(_like(self.weights, z))
            terms = logs - 0.5 * z * z - np.log(self.deviations)[:, *self._between(z)]
            peak = terms.max(axis=0)
            # Too far out for a double the density is 0, and -inf - (-inf) is no number.
            peak = np.where(np.isneginf(peak), 0.0, peak)
            total = np.log(np.sum(np.exp(terms - peak), axis=0)) + peak
        return np.asarray(total - 0.5 * math.log(2.0 * math.pi))

    def cdf(self, y: Any) -> Floats:
        """F(y)."""
        return self._sum(ndtr(self._standardized(y)))

    def sf(self, y: Any) -> Floats:
        """1 - F(y), without cancellation."""
        return self._sum(ndtr(-self._standardized(y)))

    def ppf(self, q: Any) -> Floats:
        """Quantiles at a level (the shape of the rows) or at levels (m,): ``(m, *base)``."""
        levels = np.asarray(q, dtype=float)
        if levels.ndim > 1 or not np.all((levels >= 0.0) & (levels <= 1.0)):
            raise ValueError(f"levels must be numbers from 0 to 1, got {q!r}.")
        base = self.means.shape[1:]
        means = self.means.reshape(len(self.weights), -1)
        deviations = self.deviations.reshape(means.shape)
        flat = np.atleast_1d(levels)
        found = np.empty((flat.size, means.shape[1]))
        for part in slices(means.shape[1], max(1, _BLOCK // (len(means) * max(flat.size, 1)))):
            found[:, part] = _quantiles(
                self.weights[:, None, None],
                means[:, None, part],
                deviations[:, None, part],
                flat[:, None],
            )
        return found.reshape(*levels.shape, *base)

    def interval(self, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Lower and upper end of the central interval that holds this share."""
        low, high = self.ppf([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
        return low, high

    def rvs(self, size: int, rng: np.random.Generator) -> Floats:
        """Draws ``(size, *base)``, each row for itself."""
        base = self.means.shape[1:]
        flat = self.means.reshape(len(self.weights), -1)
        chosen = rng.choice(len(self.weights), p=self.weights, size=(size, flat.shape[1]))
        columns = np.arange(flat.shape[1])
        deviations = self.deviations.reshape(flat.shape)
        draws = flat[chosen, columns] + deviations[chosen, columns] * rng.standard_normal(
            chosen.shape
        )
        return np.asarray(draws.reshape(size, *base))

    def _sum(self, values: Floats) -> Floats:
        """Σ_k w_k x_k."""
        return np.asarray(np.tensordot(self.weights, values, axes=1))

    def _root_of_squares(self, values: Floats) -> Floats:
        """√Σ w x² by hypotenuses: no square of the unit is formed."""
        return np.asarray(np.hypot.reduce(np.sqrt(_like(self.weights, values)) * values, axis=0))

    def _standardized(self, y: Any) -> Floats:
        """(y - m) / d, ``(K, *points)``."""
        points = np.asarray(y, dtype=float)
        extra = (slice(None), *[None] * max(points.ndim - (self.means.ndim - 1), 0))
        with np.errstate(over="ignore"):
            return np.asarray((points - self.means[extra]) / self.deviations[extra])

    def _between(self, z: Floats) -> tuple[Any, ...]:
        return (None,) * (z.ndim - self.means.ndim)


def _like(weights: Floats, values: Floats) -> Floats:
    return weights.reshape(-1, *[1] * (values.ndim - 1))


def _quantiles(weights: Floats, means: Floats, deviations: Floats, levels: Floats) -> Floats:
    """x with Σ w Φ((x - m)/d) = q, by Newton's method inside a bracket that always shrinks.

    It works on the scale of Φ^{-1}(F(x)), where one Gaussian is a straight line; components are
    (K, 1, n), levels (m, 1). Upper levels are those of the mirrored mixture, whose small tail is
    exact.
    """
    sign = np.where(levels > 0.5, -1.0, 1.0)
    tail = np.where(levels > 0.5, 1.0 - levels, levels)
    target = ndtri(tail)
    means = sign * means
    with np.errstate(invalid="ignore"):
        ends = means + deviations * target
    used = weights > 0.0
    low = np.min(np.where(used, ends, np.inf), axis=0)
    high = np.max(np.where(used, ends, -np.inf), axis=0)
    x = 0.5 * low + 0.5 * high
    finite = np.isfinite(low) & np.isfinite(high)
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            z = (x - means) / deviations
            reached = np.sum(weights * ndtr(z), axis=0)
            density = np.sum(weights * np.exp(-0.5 * z * z) / deviations, axis=0)
            u = ndtri(reached)
            step = (target - u) * np.exp(-0.5 * u * u) / density
            low, high = np.where(reached < tail, x, low), np.where(reached < tail, high, x)
            new = x + step
            new = np.where((new >= low) & (new <= high), new, 0.5 * low + 0.5 * high)
            # What is reached stays: x is an end of the bracket now, which rounding may step over.
            new = np.where(np.abs(target - u) <= _SETTLED, x, new)
            still = np.abs(new - x) <= 4.0 * np.spacing(np.abs(x))
            x = new
            if np.all(still | ~finite):
                break
    return np.asarray(sign * np.where(finite, x, np.where(target < 0.0, -np.inf, np.inf)))
