"""Section 3.6: the predictive distribution of an ensemble, a mixture of Gaussians for every row.

    p(y) = Σ_k w_k N(y | m_k, d_k²),   F(y) = Σ_k w_k Φ((y - m_k) / d_k).

Means and deviations belong to rows (and targets); weights are shared by all rows, or belong to rows
too. Quantiles solve F(y) = q between the smallest and the largest quantile of the components.

Members that were fitted to warped targets are Gaussian in z = g_k(y), each in its own:

    p(y) = Σ_k w_k N(g_k(y) | m_k, d_k²) g_k'(y),   F(y) = Σ_k w_k Φ((g_k(y) - m_k) / d_k),

with g_k(y) the warp of u = (y - origin) / unit; see `distributions.yeo_johnson`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bowtienet._old._arrays import map_arrays, slices
from bowtienet._old._validation import whole
from bowtienet._old.distributions.yeo_johnson import Warp, from_warped
from bowtienet._old.prediction.components import (
    Components,
    components_with_weight,
    log_density,
    lower_tail,
    quantiles_of,
    restored,
    standard_deviation,
    standardized,
    unwarped,
    upper_tail,
)
from bowtienet._old.prediction.intervals import check_coverage
from bowtienet._old.prediction.mixture_checks import (
    check_components,
    check_levels,
    check_size,
    values_of_targets,
    warp_of_components,
)
from bowtienet._old.prediction.quantiles import normal_quantiles, rounded_levels, weighted_sum

_BLOCK = 2**17
"""Numbers in the largest temporary arrays, 1 MB each, however many rows there are."""


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """p(y) = Σ_k w_k N(g_k(y) | m_k, d_k²) g_k'(y) for n rows, with methods as SciPy has them.

    Without a warp g_k(y) = y, and these are mixtures of Gaussians. Whatever the warps, all methods
    take and give y in the user's unit, and are those of a frozen SciPy distribution.

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
    """w (K,), or ``(K, *base)`` where rows have their own; non-negative, with sum one over K."""
    means: np.ndarray
    """m, ``(K, *base)``."""
    deviations: np.ndarray
    """d, ``(K, *base)``, positive."""
    warp: Warp | None = None
    """g of each component, arrays (K, 1) or (K, 1, D); without it m and d are in the unit of y."""
    origin: np.ndarray | None = None
    """Of the targets, (1,) or (1, D): what is warped is u = (y - origin) / unit."""
    unit: np.ndarray | None = None

    def mean(self) -> np.ndarray:
        """E[y] = Σ w m, of shape `base`; with a warp Σ w E_k[y], each by quadrature."""
        if self.warp is None:
            return weighted_sum(self.weights, self.means)
        result = np.empty(self.means.shape[1:])
        for rows, _ in _blocks((*result.shape, 1), len(self.weights)):
            with np.errstate(over="ignore", under="ignore"):
                parts = unwarped(self.components(rows))
                result[rows] = self._in_unit(weighted_sum(parts.weights, parts.means))
        return result

    def var(self) -> np.ndarray:
        """Var[y] = Σ w (d² + (m - E[y])²), of shape `base`; with a warp m and d are those of y.

        Infinite or 0 where no double can hold it: `std` can.
        """
        with np.errstate(over="ignore", under="ignore"):
            return np.square(self.std())

    def std(self) -> np.ndarray:
        """√Var[y], of shape `base`, also where the variance would overflow or vanish."""
        result = np.empty(self.means.shape[1:])
        for rows, _ in _blocks((*result.shape, 1), len(self.weights)):
            with np.errstate(over="ignore", under="ignore"):
                parts = self.components(rows)
                if self.unit is None:
                    result[rows] = standard_deviation(parts)
                else:
                    result[rows] = self.unit * standard_deviation(unwarped(parts))
        return result

    def pdf(self, y: Any) -> np.ndarray:
        """p(y) = Σ w N(g(y) | m, d²) g'(y), with the shape of the points."""
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(self.logpdf(y))

    def logpdf(self, y: Any) -> np.ndarray:
        """log p(y), with the shape of the points, finite as far out as a double can hold it."""
        found = self._evaluate(log_density, y)
        if self.unit is None:
            return found
        shape = self.unit.shape if np.ndim(y) < self.means.ndim else (*self.unit.shape, 1)
        return found - np.log(self.unit).reshape(shape)

    def cdf(self, y: Any) -> np.ndarray:
        """F(y) = Σ w Φ((g(y) - m) / d), with the shape of the points."""
        return self._evaluate(lower_tail, y)

    def sf(self, y: Any) -> np.ndarray:
        """1 - F(y) = Σ w Φ((m - g(y)) / d), with the shape of the points, without cancellation."""
        return self._evaluate(upper_tail, y)

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
            close; with a warp, where the rounding of g(y), some doubles of u, is that small.
        """
        levels = check_levels(q)
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
        """Draws g_k(y) = m_k + d_k ε with k ~ w and ε ~ N(0, 1), anew for every row and target.

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
        draws = result.reshape(-1)
        means, deviations = (a.reshape(a.shape[0], -1) for a in (self.means, self.deviations))
        # Every draw has the five numbers of its warp beside it.
        for part in slices(draws.size, _BLOCK if self.warp is None else max(1, _BLOCK // 4)):
            uniform = rng.random(part.stop - part.start)
            cell = np.arange(part.start, part.stop) % means.shape[1]
            member = _drawn_components(self.weights, uniform, cell)
            draws[part] = means[member, cell] + deviations[member, cell] * draws[part]
            if self.warp is not None:
                draws[part] = self._unwarped_draws(draws[part], member, cell)
        return result

    def of_target(self, index: int) -> Mixture:
        """The mixtures (n,) of one of several targets."""
        parts = (self.means, self.deviations, self.warp, self.origin, self.unit)
        means, deviations, warp, origin, unit = map_arrays(lambda a: a[..., index], parts)
        return Mixture(
            weights=self.weights if self.weights.ndim == 1 else self.weights[..., index],
            means=means,
            deviations=deviations,
            warp=warp,
            origin=origin,
            unit=unit,
        )

    def of_rows(self, rows: slice) -> Mixture:
        """The mixtures of some of the rows."""
        weights = self.weights if self.weights.ndim == 1 else self.weights[:, rows]
        means, deviations = self.means[:, rows], self.deviations[:, rows]
        return replace(self, weights=weights, means=means, deviations=deviations)

    def components(self, rows: slice) -> Components:
        """For some rows, the components that have weight."""
        part = self.of_rows(rows)
        return components_with_weight(part.weights, part.means, part.deviations, part.warp)

    def _in_unit(self, u: np.ndarray) -> np.ndarray:
        """y = origin + unit u, for u (n,), (n, m) or (n, D)."""
        return restored(u, *self.frame())

    def frame(self) -> tuple[np.ndarray, np.ndarray]:
        """Origin and unit, which a mixture with warps has."""
        assert self.origin is not None
        assert self.unit is not None
        return self.origin, self.unit

    def _unwarped_draws(self, z: np.ndarray, member: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """y of draws z (N,), for the component and the cell of each."""
        origin, unit = (a.ravel() for a in self.frame())
        target = cell % unit.size
        warp = map_arrays(lambda a: a.reshape(len(a), -1)[member, target], self.warp)
        return restored(from_warped(warp, z), origin[target], unit[target])

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
        for rows, columns in self._pieces(points.shape):
            block = points[rows, ..., columns]
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                if self.warp is not None:
                    block = standardized(block, *(a[..., None] for a in self.frame()))
                result[rows, ..., columns] = function(self.components(rows), block)
        return result[..., 0] if np.ndim(y) < result.ndim else result

    def _pieces(self, shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
        """Blocks of points (*base, m)."""
        return _blocks(shape, len(self.weights) * (1 if self.warp is None else 2))

    def _quantiles(self, tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Quantiles (*base, m) with probability `tail` (m,) below them, or above if `upper`.

        With warps target by target, so that a component has one warp for all rows.
        """
        if self.warp is not None and self.means.ndim == 3:
            targets = [self.of_target(index) for index in range(self.means.shape[2])]
            return np.stack([one._quantiles(tail, upper) for one in targets], axis=1)
        normal, levels = normal_quantiles(tail, upper), rounded_levels(tail, upper)
        result = np.empty((*self.means.shape[1:], tail.size))
        for rows, columns in self._pieces(result.shape):
            with np.errstate(all="ignore"):
                found = quantiles_of(self.components(rows), normal[columns], levels[:, columns])
                result[rows, ..., columns] = found if self.warp is None else self._in_unit(found)
        if self.warp is not None:
            # The rounding of g might bring quantiles of nearly equal levels out of their order.
            order = np.lexsort([np.where(upper, -tail, tail), upper])
            for rows in slices(len(result), max(1, _BLOCK // tail.size)):
                result[rows, order] = np.maximum.accumulate(result[rows, order], axis=1)
        return result


def build_mixture(
    weights: Any,
    means: Any,
    deviations: Any,
    *,
    warp: Warp | None = None,
    origin: Any = None,
    unit: Any = None,
) -> Mixture:
    """Check and bring together weights with means and deviations (K, n) or (K, n, D).

    Parameters
    ----------
    weights : array (K,), or of the shape of means
        Non-negative, with sum one to rounding: of all rows, or of each row (and target) its own.
    means, deviations : array (K, n) or (K, n, D)
        Finite numbers; deviations positive.
    warp : Warp, optional
        Arrays (K,) or (K, D): what each component calls z, in which it is Gaussian.
    origin, unit : float or array (D,), optional
        The warps are of u = (y - origin) / unit; 0 and 1 by default.
    """
    weights, means, deviations = check_components(weights, means, deviations)
    found = Mixture(weights=weights, means=means, deviations=deviations)
    if warp is None:
        if origin is not None or unit is not None:
            raise ValueError("origin and unit are those of a warp: give warp too.")
        return found
    check_size(means, deviations)
    return replace(
        found,
        warp=warp_of_components(warp, means),
        origin=values_of_targets(0.0 if origin is None else origin, means, "origin", -np.inf),
        unit=values_of_targets(1.0 if unit is None else unit, means, "unit", 0.0),
    )


def _drawn_components(weights: np.ndarray, uniform: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """k with w_1 + ... + w_(k-1) <= u < w_1 + ... + w_k, for u (N,) of cells (N,)."""
    if weights.ndim == 1:
        members = np.flatnonzero(weights)
        edges = np.cumsum(weights[members])[:-1]
        return members[np.searchsorted(edges, uniform, side="right")]
    member, edge = np.zeros(cell.size, dtype=np.intp), np.zeros(cell.size)
    for k, weight in enumerate(weights.reshape(len(weights), -1)):
        # Where rounding leaves u above the sum of all, the last one that has weight is drawn.
        own = weight[cell]
        np.copyto(member, k, where=(own > 0.0) & (uniform >= edge))
        edge += own
    return member


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
