"""Section 3.6: the predictive distribution of an ensemble, a mixture of Gaussians for every row.

    p(y) = Σ_k w_k N(y | m_k, d_k²),   F(y) = Σ_k w_k Φ((y - m_k) / d_k).

The weights are shared by all rows; means and deviations belong to rows (and targets). Quantiles
solve F(y) = q between the smallest and the largest quantile of the components.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from bowtienet._arrays import slices, to_numpy
from bowtienet._validation import whole
from bowtienet.prediction.intervals import check_coverage
from bowtienet.prediction.quantiles import block_quantiles, round_tail, weighted_sum

_BLOCK = 2**17
"""Numbers in the largest temporary arrays, 1 MB each, however many rows there are."""
_WEIGHT_ROUNDING = 1e-6
"""Weights computed in single precision sum to one within this."""
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)

Components = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Weights (K,), means (K, ...) and deviations (K, ...) of some rows."""


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """p(y) = Σ_k w_k N(y | m_k, d_k²) for n rows, with the methods of a frozen SciPy distribution.

    `base` is the shape of the rows, (n,) or (n, D). Points `y` are broadcast against it, or have
    one axis more: ``(*base, m)`` holds m points for every row, and (1, m) the same for all n.

    Examples
    --------
    >>> mixture = build_mixture([0.5, 0.5], [[0.0, 1.0], [4.0, 1.0]], [[1.0, 2.0], [1.0, 2.0]])
    >>> mixture.mean()
    array([2., 1.])
    >>> mixture.interval(0.9).round(3)
    array([[-1.282,  5.282],
           [-2.29 ,  4.29 ]])
    """

    weights: np.ndarray
    """w (K,), non-negative with sum one."""
    means: np.ndarray
    """m, ``(K, *base)``."""
    deviations: np.ndarray
    """d, ``(K, *base)``, positive."""

    def mean(self) -> np.ndarray:
        """E[y] = Σ w m, of shape `base`."""
        return weighted_sum(self.weights, self.means)

    def var(self) -> np.ndarray:
        """Var[y] = Σ w (d² + (m - E[y])²), of shape `base`."""
        with np.errstate(over="ignore", under="ignore"):
            return np.square(self.std())

    def std(self) -> np.ndarray:
        """√Var[y], of shape `base`, also where the variance would overflow or vanish."""
        result = np.empty(self.means.shape[1:])
        for rows, _ in _blocks((*result.shape, 1), self.weights.size):
            with np.errstate(over="ignore", under="ignore"):
                result[rows] = _deviation(*self._components(rows))
        return result

    def pdf(self, y: Any) -> np.ndarray:
        """p(y) = Σ w N(y | m, d²), with the shape of the points."""
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(self.logpdf(y))

    def logpdf(self, y: Any) -> np.ndarray:
        """log p(y), with the shape of the points, finite as far out as a double can hold it."""
        return self._evaluate(_log_density, y)

    def cdf(self, y: Any) -> np.ndarray:
        """F(y) = Σ w Φ((y - m) / d), with the shape of the points."""
        return self._evaluate(_lower_tail, y)

    def sf(self, y: Any) -> np.ndarray:
        """1 - F(y) = Σ w Φ((m - y) / d), with the shape of the points, without cancellation."""
        return self._evaluate(_upper_tail, y)

    def ppf(self, q: Any) -> np.ndarray:
        """F^{-1}(q): quantiles that never cross.

        Parameters
        ----------
        q : float or list of m floats
            Levels in [0, 1]; 0 and 1 give -inf and inf.

        Returns
        -------
        array ``(*base)`` or ``(*base, m)``
            F at the result is q, to 1e-12 of min(q, 1 - q) where neighbouring doubles lie that
            close.
        """
        levels = _check_levels(q)
        upper = levels > 0.5
        quantiles = self._quantiles(np.where(upper, 1.0 - levels, levels).ravel(), upper.ravel())
        return quantiles.reshape(*self.means.shape[1:], *levels.shape)

    def interval(self, coverage: Any) -> np.ndarray:
        """[F^{-1}((1 - c)/2), F^{-1}((1 + c)/2)]: central intervals, nested as the coverage grows.

        Parameters
        ----------
        coverage : float or list of k floats
            Probabilities to hold, each strictly between 0 and 1.

        Returns
        -------
        array ``(*base, 2)`` or ``(*base, 2, k)``
            Lower and upper ends.
        """
        shares = check_coverage(coverage)
        tail = 0.5 * (1.0 - shares.ravel())
        upper = np.repeat([False, True], tail.size)
        ends = self._quantiles(np.tile(tail, 2), upper)
        return ends.reshape(*self.means.shape[1:], 2, *shares.shape)

    def rvs(self, size: int | None = None, random_state: Any = None) -> np.ndarray:
        """Draws y = m_k + d_k ε with k ~ w and ε ~ N(0, 1), anew for every row and target.

        Parameters
        ----------
        size : int, optional
            Number of draws; without it one, and no axis for it.
        random_state : int, numpy Generator or RandomState, optional
            Where the randomness comes from.

        Returns
        -------
        array ``(*base)`` or ``(size, *base)``
        """
        rng = _generator(random_state)
        base = self.means.shape[1:]
        result = rng.standard_normal(base if size is None else (whole(size, "size"), *base))
        members, draws = np.flatnonzero(self.weights), result.reshape(-1)
        edges = np.cumsum(self.weights[members])[:-1]
        means, deviations = (a.reshape(a.shape[0], -1) for a in (self.means, self.deviations))
        for part in slices(draws.size, _BLOCK):
            uniform = rng.random(part.stop - part.start)
            member = members[np.searchsorted(edges, uniform, side="right")]
            cell = np.arange(part.start, part.stop) % means.shape[1]
            draws[part] = means[member, cell] + deviations[member, cell] * draws[part]
        return result

    def of_target(self, index: int) -> Mixture:
        """The mixtures (n,) of one of several targets."""
        return Mixture(
            weights=self.weights,
            means=self.means[..., index],
            deviations=self.deviations[..., index],
        )

    def _components(self, rows: slice) -> Components:
        """Weights and, for some rows, means and deviations of the components that have weight."""
        members = np.flatnonzero(self.weights)
        if members.size == self.weights.size:
            return self.weights, self.means[:, rows], self.deviations[:, rows]
        means, deviations = self.means[:, rows][members], self.deviations[:, rows][members]
        return self.weights[members], means, deviations

    def _points(self, y: Any) -> np.ndarray:
        """`y` as a view (*base, m)."""
        base, points = self.means.shape[1:], np.asarray(y, dtype=np.float64)
        single = points.ndim <= len(base)
        try:
            spread = np.broadcast_to(points, base if single else (*base, points.shape[-1]))
        except ValueError:
            raise ValueError(
                f"y of shape {points.shape} does not fit rows of shape {base}: give one point for "
                "each, or m points for each along one axis more."
            ) from None
        return spread[..., None] if single else spread

    def _evaluate(self, function: Callable[..., np.ndarray], y: Any) -> np.ndarray:
        points = self._points(y)
        result = np.empty(points.shape)
        for rows, columns in _blocks(points.shape, self.weights.size):
            weights, means, deviations = self._components(rows)
            block = points[rows, ..., columns]
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                # Halves, because the distance of two numbers near ±1e308 would overflow.
                half = (0.5 * block - 0.5 * means[..., None]) / deviations[..., None]
                result[rows, ..., columns] = function(weights, deviations, 2.0 * half)
        return result[..., 0] if np.ndim(y) < result.ndim else result

    def _quantiles(self, tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Quantiles (*base, m) with probability `tail` (m,) below them, or above if `upper`."""
        if np.count_nonzero(self.weights) == 1:
            return self._gaussian_quantiles(tail, upper)
        tail, slack = round_tail(tail)
        # The median has one value, so that it parts those below from those above.
        levels = np.stack([tail, slack, np.where(upper & (tail < 0.5), -1.0, 1.0)])
        result = np.empty((*self.means.shape[1:], tail.size))
        for rows, columns in _blocks(result.shape, self.weights.size):
            with np.errstate(all="ignore"):
                block = block_quantiles(*self._components(rows), levels[:, columns])
            result[rows, ..., columns] = block
        return result

    def _gaussian_quantiles(self, tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """m + d Φ^{-1}(q), exactly, where one component has all the weight."""
        _, means, deviations = self._components(slice(None))
        with np.errstate(over="ignore", under="ignore"):
            result = deviations[0, ..., None] * np.where(upper, -1.0, 1.0)
            result *= _normal_quantiles(tail)
            result += means[0, ..., None]
        return result


def build_mixture(weights: Any, means: Any, deviations: Any) -> Mixture:
    """Check and bring together weights (K,) with means and deviations (K, n) or (K, n, D).

    Parameters
    ----------
    weights : array (K,)
        Non-negative, with sum one to rounding.
    means, deviations : array (K, n) or (K, n, D)
        Finite numbers; deviations positive.
    """
    weights, means, deviations = (
        np.ascontiguousarray(to_numpy(values), dtype=np.float64)
        for values in (weights, means, deviations)
    )
    if means.ndim not in (2, 3) or not _within(means, -np.inf):
        raise ValueError(f"means must be finite and (K, n) or (K, n, D), got {means.shape}.")
    if deviations.shape != means.shape or not _within(deviations, 0.0):
        raise ValueError("deviations must be positive, finite and of the shape of means.")
    total = float(np.sum(weights))
    fits = weights.shape == means.shape[:1] and np.min(weights) >= 0.0
    if not fits or not abs(total - 1.0) <= _WEIGHT_ROUNDING:
        raise ValueError(f"weights must be {len(means)} shares with sum 1, got {weights}.")
    return Mixture(weights=weights / total, means=means, deviations=deviations)


def join_mixtures(parts: Sequence[Mixture]) -> Mixture:
    """Mixtures of consecutive rows as one."""
    return build_mixture(
        parts[0].weights,
        np.concatenate([part.means for part in parts], axis=1),
        np.concatenate([part.deviations for part in parts], axis=1),
    )


def _within(values: np.ndarray, lowest: float) -> bool:
    """Whether there are values and all are finite and above `lowest`, without another array."""
    return values.size > 0 and bool(lowest < np.min(values) <= np.max(values) < np.inf)


def _check_levels(q: Any) -> np.ndarray:
    levels = np.asarray(q)
    if levels.dtype.kind not in "fiu" or levels.ndim > 1:
        raise ValueError(f"q must be a number or a list of numbers between 0 and 1, got {q!r}.")
    outside = levels[~((levels >= 0.0) & (levels <= 1.0))]
    if outside.size:
        raise ValueError(f"q must lie between 0 and 1, got {outside[0]:g}.")
    return levels.astype(np.float64)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def _blocks(shape: tuple[int, ...], n_components: int) -> Iterator[tuple[slice, slice]]:
    """Slices of the first and the last axis that keep temporary arrays below `_BLOCK` numbers.

    A search has some sixteen arrays without an axis of components, which count where those are few.
    """
    n_rows, *targets, n_points = shape
    size = max(1, _BLOCK // ((n_components + 16) * math.prod(targets)))
    width = max(1, min(n_points, size))
    for rows in slices(n_rows, max(1, size // width)):
        for columns in slices(n_points, width):
            yield rows, columns


def _deviation(weights: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """√Σ w (d² + (m - Σ w m)²) by hypotenuses: no square is ever formed."""
    distance = means - weighted_sum(weights, means)
    roots = np.sqrt(weights).reshape(-1, *[1] * (means.ndim - 1))
    return np.hypot.reduce(roots * np.hypot(deviations, distance), axis=0)


def _log_density(weights: np.ndarray, deviations: np.ndarray, z: np.ndarray) -> np.ndarray:
    log_weights = np.log(weights).reshape(-1, *[1] * (z.ndim - 1))
    constants = log_weights - np.log(deviations)[..., None] - _LOG_ROOT_TWO_PI
    return np.logaddexp.reduce(constants - 0.5 * z * z, axis=0)


def _lower_tail(weights: np.ndarray, deviations: np.ndarray, z: np.ndarray) -> np.ndarray:
    return weighted_sum(weights, ndtr(z)) / np.cumsum(weights)[-1]


def _upper_tail(weights: np.ndarray, deviations: np.ndarray, z: np.ndarray) -> np.ndarray:
    return _lower_tail(weights, deviations, -z)


def _normal_quantiles(tail: np.ndarray) -> np.ndarray:
    """Φ^{-1}(tail), in the order of the tails: the library's may fall by a rounding error."""
    order, quantiles = np.argsort(tail), ndtri(tail)
    quantiles[order] = np.maximum.accumulate(quantiles[order])
    return quantiles
