"""Section 3.6: the predictive distribution of an ensemble, a mixture of Gaussians for every row.

    p(y) = Σ_k w_k N(y | m_k, d_k²),   F(y) = Σ_k w_k Φ((y - m_k) / d_k).

The weights are shared by all rows; means and deviations belong to rows (and targets). Quantiles
solve F(y) = q between the smallest and the largest quantile of the components.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from bowtienet._arrays import Array, slices, to_numpy
from bowtienet._validation import whole
from bowtienet.prediction.intervals import check_coverage

_BLOCK = 2**17
"""Numbers in the largest temporary arrays, 1 MB each, however many rows there are."""
_WEIGHT_ROUNDING = 1e-6
"""Weights computed in single precision sum to one within this."""
_LEVEL_BITS = 48
"""Digits kept of a quantile's level; see `_round_tail`."""
_NEWTON_STEPS = 40
"""Iterations before bisection alone: most quantiles need five."""
_ALL_STEPS = _NEWTON_STEPS + 65
"""Bisection over the doubles themselves ends after 64 steps, whatever the distribution."""
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_EPSILON, _SMALLEST = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
_LOWEST_INTEGER = np.iinfo(np.int64).min

Components = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Weights (K,), means (K, ...) and deviations (K, ...) of some rows."""


@dataclass(frozen=True, kw_only=True)
class GaussianMixture:
    """p(y) = Σ_k w_k N(y | m_k, d_k²) for n rows, with the methods of a frozen SciPy distribution.

    `base` is the shape of the rows, (n,) or (n, D). Points `y` are broadcast against it, or have
    one axis more: (*base, m) holds m points for every row, and (1, m) the same for all n.

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
    """m (K, *base)."""
    deviations: np.ndarray
    """d (K, *base), positive."""

    def mean(self) -> np.ndarray:
        """E[y] = Σ w m, of shape `base`."""
        return _weighted_sum(self.weights, self.means)

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
        array (*base) or (*base, m)
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
        array (*base, 2) or (*base, 2, k)
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
        array (*base) or (size, *base)
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
        tail, slack = _round_tail(tail)
        # The median has one value, so that it parts those below from those above.
        levels = np.stack([tail, slack, np.where(upper & (tail < 0.5), -1.0, 1.0)])
        result = np.empty((*self.means.shape[1:], tail.size))
        for rows, columns in _blocks(result.shape, self.weights.size):
            with np.errstate(all="ignore"):
                block = _block_quantiles(*self._components(rows), levels[:, columns])
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


def build_mixture(weights: Any, means: Any, deviations: Any) -> GaussianMixture:
    """Check and bring together weights (K,) with means and deviations (K, n) or (K, n, D).

    Parameters
    ----------
    weights : array (K,)
        Non-negative, with sum one to rounding.
    means, deviations : array (K, n) or (K, n, D)
        Finite numbers; deviations positive.
    """
    weights, means, deviations = (
        _finite(values, name)
        for values, name in ((weights, "weights"), (means, "means"), (deviations, "deviations"))
    )
    if means.ndim not in (2, 3) or means.size == 0:
        raise ValueError(
            "means must have shape (components, rows) or (components, rows, targets) and hold at "
            f"least one of each, got {means.shape}."
        )
    if deviations.shape != means.shape:
        raise ValueError(
            f"deviations must have the shape of means, {means.shape}, got {deviations.shape}."
        )
    if weights.shape != means.shape[:1]:
        raise ValueError(
            f"weights must have shape {means.shape[:1]}, one for each component of means, "
            f"got {weights.shape}."
        )
    if np.min(deviations) <= 0.0:
        raise ValueError(f"deviations must be positive, got {np.min(deviations):g}.")
    return GaussianMixture(weights=_normalized(weights), means=means, deviations=deviations)


def _finite(values: Array, name: str) -> np.ndarray:
    array = np.ascontiguousarray(to_numpy(values), dtype=np.float64)
    if not all(np.all(np.isfinite(array.flat[part])) for part in slices(array.size, _BLOCK)):
        raise ValueError(f"{name} must be finite: they hold NaN or infinite values.")
    return array


def _normalized(weights: np.ndarray) -> np.ndarray:
    total = float(np.sum(weights))
    if np.min(weights) < 0.0:
        raise ValueError(f"weights must not be negative, got {np.min(weights):g}.")
    if abs(total - 1.0) > _WEIGHT_ROUNDING:
        raise ValueError(f"weights must sum to 1, got {total:g}: divide them by their sum.")
    return weights / total


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
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a non-negative whole number, or a NumPy Generator or "
            f"RandomState, got {random_state!r}."
        ) from None


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


def _weighted_sum(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Σ w v, added in the order of the components.

    A matrix product is no faster here, and rounds a row differently when its neighbours change.
    """
    total = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total += weight * value
    return total


def _deviation(weights: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """√Σ w (d² + (m - Σ w m)²) by hypotenuses: no square is ever formed."""
    distance = means - _weighted_sum(weights, means)
    roots = np.sqrt(weights).reshape(-1, *[1] * (means.ndim - 1))
    return np.hypot.reduce(roots * np.hypot(deviations, distance), axis=0)


def _log_density(weights: np.ndarray, deviations: np.ndarray, z: np.ndarray) -> np.ndarray:
    log_weights = np.log(weights).reshape(-1, *[1] * (z.ndim - 1))
    constants = log_weights - np.log(deviations)[..., None] - _LOG_ROOT_TWO_PI
    return np.logaddexp.reduce(constants - 0.5 * z * z, axis=0)


def _lower_tail(weights: np.ndarray, deviations: np.ndarray, z: np.ndarray) -> np.ndarray:
    return _weighted_sum(weights, ndtr(z)) / np.cumsum(weights)[-1]


def _upper_tail(weights: np.ndarray, deviations: np.ndarray, z: np.ndarray) -> np.ndarray:
    return _lower_tail(weights, deviations, -z)


def _normal_quantiles(tail: np.ndarray) -> np.ndarray:
    """Φ^{-1}(tail), in the order of the tails: the library's may fall by a rounding error."""
    order, quantiles = np.argsort(tail), ndtri(tail)
    quantiles[order] = np.maximum.accumulate(quantiles[order])
    return quantiles


def _round_tail(tail: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tails on a grid coarser than rounding errors, and the error allowed of F at a quantile.

    With z = (y - m)/d rounded, Φ(z) is uncertain by about (1 + z²) 2^-52 of itself, and z² grows
    like -log Φ. Steps of 2^-48 (1 - log2 tail) are several times that, so that quantiles of two
    different levels come out in their order, and those of one level equal, in whatever call.
    """
    mantissa, exponent = np.frexp(tail)
    bits = _LEVEL_BITS - np.ceil(np.log2(1.0 - exponent)).astype(exponent.dtype)
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    return rounded, np.ldexp(0.125, exponent - bits)


def _block_quantiles(
    weights: np.ndarray, means: np.ndarray, deviations: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """Quantiles (..., m) of components (K, ...) for levels (3, m): tail, slack and sign.

    A power of two brings each row to size one, which changes no digit. Quantiles above the median
    are negative ones of the mirrored mixture, whose small tail is exact.
    """
    sign = levels[2]
    exponent = np.frexp(np.maximum(np.abs(means), deviations).max(axis=0))[1]
    mirrored = np.ldexp(means, -exponent)[..., None] * sign
    # Less than 1e-308 of the row's size would be zero: that narrow is as good as a step.
    scaled = np.maximum(np.ldexp(deviations, -exponent), _SMALLEST)
    spread = np.repeat(scaled[..., None], sign.size, axis=-1)
    shape = mirrored.shape[1:]
    every = np.broadcast_to(levels.reshape(3, *[1] * len(exponent.shape), -1), (3, *shape))
    root = _solve(weights, *(a.reshape(a.shape[0], -1) for a in (mirrored, spread, every)))
    return np.ldexp(sign * root.reshape(shape), exponent[..., None])


def _solve(
    weights: np.ndarray, means: np.ndarray, deviations: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """x (N,) with Σ w Φ((x - m)/d) = tail <= ½, for components (K, N) and levels (3, N).

    Newton's method inside a bracket that always shrinks, on the scale of Φ^{-1}(F(x)), where one
    Gaussian is a straight line. A root that falls between two neighbouring doubles becomes the
    larger one of them, after the mirroring: hence `sign`.
    """
    tail, slack, sign = levels
    target = ndtri(tail)
    ends = means + deviations * target
    # What rounding may have taken from the ends of the bracket is given back.
    rounding = 8.0 * _EPSILON * (np.abs(means) - deviations * target).max(axis=0)
    low, high = ends.min(axis=0) - rounding, ends.max(axis=0) + rounding
    root, x = low.copy(), _weighted_sum(weights, ends)
    index, move, keep = np.arange(x.size), high - low, low < high
    for iteration in range(_ALL_STEPS):
        entries = (index, means, deviations, tail, slack, sign, target, low, high, x, move)
        index, means, deviations, tail, slack, sign, target, low, high, x, move = (
            entries if keep.all() else (entry[..., keep] for entry in entries)
        )
        if not index.size:
            break
        reached, step = _newton(weights, means, deviations, x, target)
        below = reached < tail
        low, high = np.where(below, x, low), np.where(below, high, x)
        met = np.abs(reached - tail) <= slack
        root[index] = np.where(met, x, np.where(sign < 0.0, low, high))
        keep = ~met & (np.nextafter(low, np.inf) < high)
        x, move = _next_point(x, step, low, high, move, iteration)
    return root


def _newton(
    weights: np.ndarray,
    means: np.ndarray,
    deviations: np.ndarray,
    x: np.ndarray,
    target: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """F(x), and the step (Φ^{-1}(tail) - u) φ(u) / F'(x) with u = Φ^{-1}(F(x))."""
    z = (x - means) / deviations
    reached = _weighted_sum(weights, ndtr(z))
    density = _weighted_sum(weights, np.exp(-0.5 * z * z) / deviations)
    u = ndtri(reached)
    return reached, (target - u) * np.exp(-0.5 * u * u) / density


def _next_point(
    x: np.ndarray,
    step: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    move: np.ndarray,
    iteration: int,
) -> tuple[np.ndarray, np.ndarray]:
    """x + step if that stays in the bracket and halves the last move, else a middle; and the move.

    Halving the bracket is quick when all numbers are of one size, halving the number of doubles in
    it when they are not: the two take turns.
    """
    new = x + step
    # A step too small to be seen asks whether the root lies before the next double.
    new = np.where(new == x, np.nextafter(x, np.where(x == low, np.inf, -np.inf)), new)
    # Steps of a few doubles are rounding errors, which need not shrink.
    short = np.abs(new - x) <= np.maximum(0.5 * move, 4.0 * np.spacing(np.abs(x)))
    trusted = (low < new) & (new < high) & short & (iteration < _NEWTON_STEPS)
    if not trusted.all():
        by_value = iteration % 2 == 0 and iteration < _NEWTON_STEPS
        middle = 0.5 * low + 0.5 * high if by_value else _middle_double(low, high)
        new = np.where(trusted, new, middle)
    return new, np.abs(new - x)


def _middle_double(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The double with as many doubles between it and `low` as between it and `high`."""
    first, second = _rank(low.view(np.int64)), _rank(high.view(np.int64))
    return _rank((first >> 1) + (second >> 1) + (first & second & 1)).view(np.float64)


def _rank(bits: np.ndarray) -> np.ndarray:
    """Doubles' bits as integers in the order of the doubles, and back again."""
    return np.where(bits < 0, _LOWEST_INTEGER - bits, bits)
