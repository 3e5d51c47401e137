"""Section 3.6: the predictive distribution of an ensemble, a mixture of Gaussians for every row.

    p(y) = Σ_k w_k N(y | m_k, d_k²),   F(y) = Σ_k w_k Φ((y - m_k) / d_k).

The weights are shared by all rows; means and deviations belong to rows (and targets). Quantiles
solve F(y) = q between the smallest and the largest quantile of the components.

Members that were fitted to warped targets are Gaussian in z = g_k(y), each in its own:

    p(y) = Σ_k w_k N(g_k(y) | m_k, d_k²) g_k'(y),   F(y) = Σ_k w_k Φ((g_k(y) - m_k) / d_k),

with g_k(y) the warp of u = (y - origin) / unit; see `distributions.yeo_johnson`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from bowtienet._arrays import map_arrays, slices, to_numpy
from bowtienet._validation import whole
from bowtienet.distributions.yeo_johnson import (
    LARGEST_EXPONENT,
    LEAST_EXPONENT,
    Warp,
    from_warped,
    identity,
    log_slope,
    mean_and_deviation,
    to_warped,
)
from bowtienet.prediction.intervals import check_coverage
from bowtienet.prediction.quantiles import (
    block_quantiles,
    round_tail,
    warped_quantiles,
    weighted_sum,
)

_BLOCK = 2**17
"""Numbers in the largest temporary arrays, 1 MB each, however many rows there are."""
_SMALL = 2**13
"""Numbers in arrays that many steps go over while a core's cache holds them."""
_WEIGHT_ROUNDING = 1e-6
"""Weights computed in single precision sum to one within this."""
_LARGEST = 1e100
"""Warped numbers are of the size of one; those up to this cannot overflow on any way back."""
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Components(NamedTuple):
    """Components of some rows that have weight."""

    weights: np.ndarray
    """(K,)"""
    means: np.ndarray
    """(K, ...)"""
    deviations: np.ndarray
    """(K, ...)"""
    warp: Warp | None
    """Arrays (K, 1) or (K, 1, D)."""


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
    """w (K,), non-negative with sum one."""
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
        for rows, _ in _blocks((*result.shape, 1), self.weights.size):
            with np.errstate(over="ignore", under="ignore"):
                parts = _unwarped(self._components(rows))
                result[rows] = self._in_unit(weighted_sum(parts.weights, parts.means))
        return result

    def var(self) -> np.ndarray:
        """Var[y] = Σ w (d² + (m - E[y])²), of shape `base`; with a warp m and d are those of y."""
        with np.errstate(over="ignore", under="ignore"):
            return np.square(self.std())

    def std(self) -> np.ndarray:
        """√Var[y], of shape `base`, also where the variance would overflow or vanish."""
        result = np.empty(self.means.shape[1:])
        for rows, _ in _blocks((*result.shape, 1), self.weights.size):
            with np.errstate(over="ignore", under="ignore"):
                parts = self._components(rows)
                if self.unit is None:
                    result[rows] = _deviation(*parts[:3])
                else:
                    result[rows] = self.unit * _deviation(*_unwarped(parts)[:3])
        return result

    def pdf(self, y: Any) -> np.ndarray:
        """p(y) = Σ w N(g(y) | m, d²) g'(y), with the shape of the points."""
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(self.logpdf(y))

    def logpdf(self, y: Any) -> np.ndarray:
        """log p(y), with the shape of the points, finite as far out as a double can hold it."""
        found = self._evaluate(_log_density, y)
        if self.unit is None:
            return found
        shape = self.unit.shape if np.ndim(y) < self.means.ndim else (*self.unit.shape, 1)
        return found - np.log(self.unit).reshape(shape)

    def cdf(self, y: Any) -> np.ndarray:
        """F(y) = Σ w Φ((g(y) - m) / d), with the shape of the points."""
        return self._evaluate(_lower_tail, y)

    def sf(self, y: Any) -> np.ndarray:
        """1 - F(y) = Σ w Φ((m - g(y)) / d), with the shape of the points, without cancellation."""
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
            close; with a warp, where the rounding of g(y), some doubles of u, is that small.
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
        members, draws = np.flatnonzero(self.weights), result.reshape(-1)
        edges = np.cumsum(self.weights[members])[:-1]
        means, deviations = (a.reshape(a.shape[0], -1) for a in (self.means, self.deviations))
        # Every draw has the five numbers of its warp beside it.
        for part in slices(draws.size, _BLOCK if self.warp is None else max(1, _BLOCK // 4)):
            uniform = rng.random(part.stop - part.start)
            member = members[np.searchsorted(edges, uniform, side="right")]
            cell = np.arange(part.start, part.stop) % means.shape[1]
            draws[part] = means[member, cell] + deviations[member, cell] * draws[part]
            if self.warp is not None:
                draws[part] = self._unwarped_draws(draws[part], member, cell)
        return result

    def of_target(self, index: int) -> Mixture:
        """The mixtures (n,) of one of several targets."""
        parts = (self.means, self.deviations, self.warp, self.origin, self.unit)
        means, deviations, warp, origin, unit = map_arrays(lambda a: a[..., index], parts)
        return Mixture(
            weights=self.weights,
            means=means,
            deviations=deviations,
            warp=warp,
            origin=origin,
            unit=unit,
        )

    def _components(self, rows: slice) -> Components:
        """For some rows, the components that have weight."""
        members = np.flatnonzero(self.weights)
        means, deviations = self.means[:, rows], self.deviations[:, rows]
        if members.size == self.weights.size:
            return Components(self.weights, means, deviations, self.warp)
        warp = map_arrays(lambda a: a[members], self.warp)
        return Components(self.weights[members], means[members], deviations[members], warp)

    def _in_unit(self, u: np.ndarray) -> np.ndarray:
        """y = origin + unit u, for u (n,), (n, m) or (n, D)."""
        return _restored(u, *self._frame())

    def _frame(self) -> tuple[np.ndarray, np.ndarray]:
        """Origin and unit, which a mixture with warps has."""
        assert self.origin is not None
        assert self.unit is not None
        return self.origin, self.unit

    def _unwarped_draws(self, z: np.ndarray, member: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """y of draws z (N,), for the component and the cell of each."""
        origin, unit = (a.ravel() for a in self._frame())
        target = cell % unit.size
        warp = map_arrays(lambda a: a.reshape(len(a), -1)[member, target], self.warp)
        return _restored(from_warped(warp, z), origin[target], unit[target])

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
                    block = _standardized(block, *(a[..., None] for a in self._frame()))
                result[rows, ..., columns] = function(self._components(rows), block)
        return result[..., 0] if np.ndim(y) < result.ndim else result

    def _pieces(self, shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
        """Blocks of points (*base, m)."""
        return _blocks(shape, self.weights.size * (1 if self.warp is None else 2))

    def _quantiles(self, tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Quantiles (*base, m) with probability `tail` (m,) below them, or above if `upper`."""
        if self.warp is not None:
            return self._warped_quantiles(tail, upper)
        if np.count_nonzero(self.weights) == 1:
            return _gaussian_quantiles(self._components(slice(None)), tail, upper)
        levels = _rounded_levels(tail, upper)
        result = np.empty((*self.means.shape[1:], tail.size))
        for rows, columns in self._pieces(result.shape):
            with np.errstate(all="ignore"):
                block = block_quantiles(*self._components(rows)[:3], levels[:, columns])
            result[rows, ..., columns] = block
        return result

    def _warped_quantiles(self, tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Target by target, so that a component has one warp for all rows."""
        if self.means.ndim == 3:
            targets = [self.of_target(index) for index in range(self.means.shape[2])]
            return np.stack([one._warped_quantiles(tail, upper) for one in targets], axis=1)
        levels = _rounded_levels(tail, upper)
        # The rounding of g might bring quantiles of nearly equal levels out of their order.
        order = np.lexsort([np.where(upper, -tail, tail), upper])
        result = np.empty((*self.means.shape[1:], tail.size))
        for rows, columns in self._pieces(result.shape):
            parts = self._components(rows)
            with np.errstate(all="ignore"):
                assert parts.warp is not None
                if parts.weights.size == 1:
                    z = _gaussian_quantiles(parts, tail[columns], upper[columns])
                    block = from_warped(parts.warp, z)
                else:
                    block = warped_quantiles(*parts[:3], parts.warp, levels[:, columns])
                result[rows, columns] = self._in_unit(block)
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
    """Check and bring together weights (K,) with means and deviations (K, n) or (K, n, D).

    Parameters
    ----------
    weights : array (K,)
        Non-negative, with sum one to rounding.
    means, deviations : array (K, n) or (K, n, D)
        Finite numbers; deviations positive.
    warp : Warp, optional
        Arrays (K,) or (K, D): what each component calls z, in which it is Gaussian.
    origin, unit : float or array (D,), optional
        The warps are of u = (y - origin) / unit; 0 and 1 by default.
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
    found = Mixture(weights=weights / total, means=means, deviations=deviations)
    if warp is None:
        if origin is not None or unit is not None:
            raise ValueError("origin and unit are those of a warp: give warp too.")
        return found
    if max(-np.min(means), np.max(means), np.max(deviations)) > _LARGEST:
        raise ValueError(f"means and deviations must be at most {_LARGEST:g} where warps follow.")
    origin = _of_targets(0.0 if origin is None else origin, means, "origin", -np.inf)
    unit = _of_targets(1.0 if unit is None else unit, means, "unit", 0.0)
    return replace(found, warp=_of_components(warp, means), origin=origin, unit=unit)


def join_mixtures(parts: Sequence[Mixture]) -> Mixture:
    """Mixtures of consecutive rows as one; weights and warps are those of the first."""
    first = parts[0]
    found = build_mixture(
        first.weights,
        np.concatenate([part.means for part in parts], axis=1),
        np.concatenate([part.deviations for part in parts], axis=1),
    )
    return replace(found, warp=first.warp, origin=first.origin, unit=first.unit)


def pool_mixtures(parts: Sequence[Mixture]) -> Mixture:
    """p(y) = (1/M) Σ_m p_m(y): M forecasts of the same rows as one, with all their components."""
    warped = [part for part in parts if part.warp is not None]
    if warped:
        parts = [_warped_as(warped[0], part) for part in parts]
    found = build_mixture(
        np.concatenate([part.weights for part in parts]) / len(parts),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.deviations for part in parts]),
    )
    warp = map_arrays(lambda *a: np.concatenate(a), *(part.warp for part in parts))
    return replace(found, warp=warp, origin=parts[0].origin, unit=parts[0].unit)


def average_rows(mixture: Mixture, n_rows: int) -> Mixture:
    """p_v(y) = (1/R) Σ_r p_rv(y): R·V rows, value by value inside of R, as V mixtures.

    The mixture over rows of mixtures over components has K·R components.
    """
    base = mixture.means.shape[1:]
    shape = (-1, base[0] // n_rows, *base[1:])
    return replace(
        mixture,
        weights=np.repeat(mixture.weights / n_rows, n_rows),
        means=mixture.means.reshape(shape),
        deviations=mixture.deviations.reshape(shape),
        warp=map_arrays(lambda a: np.repeat(a, n_rows, axis=0), mixture.warp),
    )


def _warped_as(other: Mixture, mixture: Mixture) -> Mixture:
    """The mixture in the unit of the other, with warps that change nothing if it has none."""
    origin, unit = other._frame()
    if mixture.warp is None:
        shape = (len(mixture.means), 1, *mixture.means.shape[2:])
        means, deviations = (mixture.means - origin) / unit, mixture.deviations / unit
        warp = identity(shape)
        return Mixture(
            weights=mixture.weights,
            means=means,
            deviations=deviations,
            warp=warp,
            origin=origin,
            unit=unit,
        )
    if all(map(np.array_equal, mixture._frame(), (origin, unit))):
        return mixture
    raise ValueError("mixtures with warps must have one origin and one unit to be pooled.")


def _of_targets(values: Any, means: np.ndarray, name: str, lowest: float) -> np.ndarray:
    """Numbers for all targets as an array (1,) or (1, D)."""
    found, shape = np.asarray(to_numpy(values), dtype=np.float64), means.shape[2:]
    if found.shape not in ((), shape) or not _within(found, lowest):
        sort = "finite" if lowest < 0.0 else "positive and finite"
        raise ValueError(f"{name} must be {sort}, a number or {shape}, got {values!r}.")
    return np.broadcast_to(found, shape)[None].copy()


def _of_components(warp: Warp, means: np.ndarray) -> Warp:
    """The warp with arrays (K, 1) or (K, 1, D), if they are numbers that make sense."""
    shape = (len(means), *means.shape[2:])
    found: Warp = map_arrays(lambda a: np.asarray(to_numpy(a), dtype=np.float64), warp)
    for field in fields(found):
        values = getattr(found, field.name)
        if values.shape != shape or not np.all(np.abs(values) <= _LARGEST):
            raise ValueError(f"warp.{field.name} must be finite and {shape}, got {values.shape}.")
    if np.min(found.exponent) < LEAST_EXPONENT or np.max(found.exponent) > LARGEST_EXPONENT:
        raise ValueError("warp.exponent must lie between 0 and 2.")
    if np.min(found.scale) < 1.0 / _LARGEST or np.any(found.low > found.high):
        raise ValueError("warp.scale must be positive, and warp.low no more than warp.high.")
    expanded: Warp = map_arrays(lambda a: a[:, None], found)
    return expanded


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


def _standardized(y: np.ndarray, origin: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """u = (y - origin) / unit; halves, because the distance of two numbers may overflow."""
    return 2.0 * ((0.5 * y - 0.5 * origin) / unit)


def _restored(u: np.ndarray, origin: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """y = origin + unit u; halves, because the parts of the sum may overflow where y does not."""
    return 2.0 * (0.5 * origin + unit * (0.5 * u))


def _unwarped(parts: Components) -> Components:
    """The components of u with their means and deviations; linear warps need no quadrature."""
    warp = parts.warp
    assert warp is not None
    means, deviations = from_warped(warp, parts.means), parts.deviations * warp.scale
    bent = np.flatnonzero(np.any((warp.exponent != 1.0).reshape(len(means), -1), axis=1))
    for some in slices(bent.size, max(1, _SMALL // means[0].size)):
        own = bent[some]
        means[own], deviations[own] = mean_and_deviation(
            map_arrays(lambda a, own=own: a[own], warp), parts.means[own], parts.deviations[own]
        )
    return Components(parts.weights, means, deviations, None)


def _z_scores(parts: Components, x: np.ndarray) -> np.ndarray:
    """(g(x) - m) / d of the components, (K, ..., m), at points x (..., m)."""
    if parts.warp is not None:
        x = to_warped(_beside_points(parts.warp), x)
    # Halves, because the distance of two numbers near ±1e308 would overflow.
    half = (0.5 * x - 0.5 * parts.means[..., None]) / parts.deviations[..., None]
    return 2.0 * half


def _beside_points(warp: Warp) -> Warp:
    found: Warp = map_arrays(lambda a: a[..., None], warp)
    return found


def _log_density(parts: Components, x: np.ndarray) -> np.ndarray:
    z = _z_scores(parts, x)
    log_weights = np.log(parts.weights).reshape(-1, *[1] * (z.ndim - 1))
    constants = log_weights - np.log(parts.deviations)[..., None] - _LOG_ROOT_TWO_PI
    if parts.warp is not None:
        constants = constants + log_slope(_beside_points(parts.warp), x)
    return np.logaddexp.reduce(constants - 0.5 * z * z, axis=0)


def _lower_tail(parts: Components, x: np.ndarray) -> np.ndarray:
    return _tail(parts.weights, _z_scores(parts, x))


def _upper_tail(parts: Components, x: np.ndarray) -> np.ndarray:
    return _tail(parts.weights, -_z_scores(parts, x))


def _tail(weights: np.ndarray, z: np.ndarray) -> np.ndarray:
    return weighted_sum(weights, ndtr(z)) / np.cumsum(weights)[-1]


def _rounded_levels(tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Tails, slacks and signs (3, m) of quantiles; see `block_quantiles`."""
    tail, slack = round_tail(tail)
    # The median has one value, so that it parts those below from those above.
    return np.stack([tail, slack, np.where(upper & (tail < 0.5), -1.0, 1.0)])


def _gaussian_quantiles(parts: Components, tail: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """m + d Φ^{-1}(q), exactly, where one component has all the weight."""
    with np.errstate(over="ignore", under="ignore"):
        result = parts.deviations[0, ..., None] * np.where(upper, -1.0, 1.0)
        result *= _normal_quantiles(tail)
        result += parts.means[0, ..., None]
    return result


def _normal_quantiles(tail: np.ndarray) -> np.ndarray:
    """Φ^{-1}(tail), in the order of the tails: the library's may fall by a rounding error."""
    order, quantiles = np.argsort(tail), ndtri(tail)
    quantiles[order] = np.maximum.accumulate(quantiles[order])
    return quantiles
