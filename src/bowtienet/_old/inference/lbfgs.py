"""L-BFGS for many functions of as many variables side by side.

Function r has its own history, step length and end, but all take their n-th step together, so that
functions that share work are evaluated in one call. One that has ended is evaluated no more. With
moves s, changes y of the gradient, U_ij = s_i'y_j for j not before i, D the diagonal of U and
γ = s'y / y'y of the last pair, the direction is -H g in its compact form (Byrd, Nocedal and
Schnabel, 1994),

    H g = γ g + S U^{-T} ((D + γ Y'Y) p - γ Y'g) - γ Y p,    p = U^{-1} S'g.

Gradients may be of single precision: the history is, points and losses are double.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import map_arrays, slices

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Evaluate = Callable[[Floats, Indices], tuple[Floats, Floats]]
"""Values (A,) and gradients (A, P) of the functions (A,) at points (A, P)."""

PAIRS = 20
"""Pairs that are remembered. On 834 rows and 50 units, 400 steps with 20 end at 0.6 to 0.8 of the
loss of 10. 40 go further still, and gain nothing on held-out rows."""
HISTORY_BYTES = 2**22
"""History that is worked on at a time: it is read twice, the second time from the cache."""
LEAST_CURVATURE = 1e-6
"""Cosine of s and y below which single precision may have its sign wrong."""
TRIALS = 12
"""Evaluations of a line search, at most."""
SUFFICIENT_DECREASE = 1e-4
STEEP = 0.9
"""A step is lengthened where the function still falls with this part of its first slope."""
GROWTH = 4.0
TOLERANCE = 1e-7
"""A step that lowers a function by no more than this part of its value is none: single precision
tells no smaller differences."""


@dataclass(frozen=True, kw_only=True)
class _History:
    """What the last moves tell of the curvature; written in place.

    A pair that was refused is zero in all of them.
    """

    pairs: NDArray[np.float32]  # (A, PAIRS, 2, P): s and y, both over |s|
    products: Floats  # (A, PAIRS, 2): of the pairs with the last gradient
    inverse: Floats  # (A, PAIRS, PAIRS): U^{-1}
    changes: Floats  # (A, PAIRS, PAIRS): Y'Y


@dataclass(frozen=True, kw_only=True)
class _Path:
    """Where the functions that have not ended are."""

    which: Indices  # (A,)
    points: Floats  # (A, P)
    values: Floats  # (A,)
    gradients: Floats  # (A, P)
    directions: Floats  # (A, P)
    scale: Floats  # (A,): γ, 0 without history
    history: _History


def minimize(evaluate: Evaluate, start: Floats, *, lengths: Sequence[int]) -> list[Floats]:
    """Points (R, P) after each of `lengths` steps, an increasing sequence.

    No function ends above its start; one that is not finite there stays there.
    """
    points = start.copy()
    found: list[Floats] = []
    steps = 0
    # A trial step may overflow; it is then refused.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        path = _begin(evaluate, start)
        for length in lengths:
            while steps < length and path.which.size:
                path, ended = _step(evaluate, path, steps)
                points[path.which] = path.points
                path = _select(path, ~ended)
                steps += 1
            found.append(points.copy())
    return found


def _begin(evaluate: Evaluate, start: Floats) -> _Path:
    count, size = start.shape
    which = np.arange(count)
    values, gradients = evaluate(start, which)
    path = _Path(
        which=which,
        points=start,
        values=values,
        gradients=gradients,
        directions=_downhill(gradients),
        scale=np.zeros(count),
        history=_History(
            pairs=np.zeros((count, PAIRS, 2, size), dtype=np.float32),
            products=np.zeros((count, PAIRS, 2)),
            inverse=np.zeros((count, PAIRS, PAIRS)),
            changes=np.zeros((count, PAIRS, PAIRS)),
        ),
    )
    return _select(path, np.isfinite(values) & np.isfinite(_dot(gradients, gradients)))


def _select(path: _Path, keep: NDArray[np.bool_]) -> _Path:
    return path if keep.all() else map_arrays(lambda array: array[keep], path)


def _step(evaluate: Evaluate, path: _Path, steps: int) -> tuple[_Path, NDArray[np.bool_]]:
    """One step of every function on the path, after `steps`, and which of them end with it."""
    points, values, gradients = _search(evaluate, path)
    stuck = ~(path.values - values > TOLERANCE * np.abs(path.values))
    # The history may have misled, and is dropped. Stuck along the gradient itself, it is the end.
    ended = stuck & (path.scale == 0.0)
    directions, scale = _turn(path, steps, points - path.points, gradients)
    if stuck.any():
        directions[stuck], scale[stuck] = _downhill(gradients[stuck]), 0.0
        map_arrays(lambda array: array.__setitem__(stuck, 0.0), path.history)
    path = replace(path, points=points, values=values, gradients=gradients)
    return replace(path, directions=directions, scale=scale), ended


def _downhill(gradients: Floats) -> Floats:
    """-g / |g|: without history, a step has length one."""
    length = np.sqrt(_dot(gradients, gradients))[:, None]
    return -np.divide(gradients, length, out=np.zeros_like(gradients), where=length > 0.0)


def _turn(path: _Path, steps: int, moves: Floats, gradients: Floats) -> tuple[Floats, Floats]:
    """New directions -H g and scales γ; the last pairs take the place of the oldest.

    Without positive curvature H would not be definite: such a pair is refused.
    """
    slot, known = steps % PAIRS, min(steps + 1, PAIRS)
    changes = gradients - path.gradients
    curvature, length = _dot(moves, changes), np.sqrt(_dot(moves, moves))
    squares = _dot(changes, changes)
    keep = curvature > LEAST_CURVATURE * length * np.sqrt(squares)
    over = np.divide(1.0, length, out=np.zeros_like(length), where=keep)[:, None]
    pairs = path.history.pairs
    np.multiply(moves, over, out=pairs[:, slot, 0], casting="same_kind")
    np.multiply(changes, over, out=pairs[:, slot, 1], casting="same_kind")
    own = np.stack([curvature, squares], axis=1) * over**2
    scale = np.divide(curvature, squares, out=path.scale.copy(), where=keep)
    directions = -scale[:, None] * gradients
    for some in slices(len(scale), max(1, HISTORY_BYTES // pairs[0].nbytes)):
        history = _part(path.history, some, known)
        _append(history, slot, gradients[some], over[some], own[some])
        parts = _parts(history, scale[some, None]).astype(np.float32).reshape(-1, 1, 2 * known)
        directions[some] -= (parts @ _flat(history.pairs))[:, 0]
    return directions, scale


def _append(history: _History, slot: int, gradients: Floats, over: Floats, own: Floats) -> None:
    """The last pair in U^{-1} and Y'Y; it has s'y and y'y in `own` (A, 2).

    Products of older pairs with y are differences of those with g. U loses its first row and
    column and gains the column (c, s'y); U^{-1} loses the same and gains (-U^{-1} c, 1) / s'y.
    """
    products = _flat(history.pairs) @ gradients.astype(np.float32)[:, :, None]
    products = products.reshape(history.products.shape)
    changed = (products - history.products) * over[:, :, None]
    changed[:, slot] = own
    history.products[...] = products
    history.inverse[:, slot] = history.inverse[:, :, slot] = 0.0
    pivot = np.divide(1.0, own[:, :1], out=np.zeros_like(over), where=over > 0.0)
    column = -pivot * _times(history.inverse, changed[..., 0])
    column[:, slot] = pivot[:, 0]
    history.inverse[:, :, slot] = column
    history.changes[:, slot] = history.changes[:, :, slot] = changed[..., 1]


def _part(history: _History, some: slice, known: int) -> _History:
    """The first `known` pairs of some functions; later ones have not been written yet."""
    return _History(
        pairs=history.pairs[some, :known],
        products=history.products[some, :known],
        inverse=history.inverse[some, :known, :known],
        changes=history.changes[some, :known, :known],
    )


def _flat(pairs: NDArray[np.float32]) -> NDArray[np.float32]:
    return pairs.reshape(len(pairs), -1, pairs.shape[-1])


def _parts(history: _History, scale: Floats) -> Floats:
    """Parts (A, pairs, 2) that S and Y have in H g, from their products with g."""
    p = _times(history.inverse, history.products[..., 0])
    pivots = np.diagonal(history.inverse, axis1=1, axis2=2)
    inner = np.divide(p, pivots, out=np.zeros_like(p), where=pivots > 0.0)
    inner += scale * (_times(history.changes, p) - history.products[..., 1])
    return np.stack([_times(history.inverse.transpose(0, 2, 1), inner), -scale * p], axis=-1)


def _search(evaluate: Evaluate, path: _Path) -> tuple[Floats, Floats, Floats]:
    """Points, values and gradients after a line search; those of the path where none is lower.

    A step is shortened until the value falls by a part of what the slope promises, or lengthened
    as long as that pays.
    """
    points, values, gradients = path.points.copy(), path.values.copy(), path.gradients.copy()
    slopes, steps = _dot(path.gradients, path.directions), np.ones(len(values))
    pending = np.flatnonzero(slopes < 0.0)
    for _ in range(TRIALS):
        if not pending.size:
            break
        step, slope, before = steps[pending], slopes[pending], path.values[pending]
        directions, first = _rows(path.directions, pending), values[pending] == before
        trial = _rows(path.points, pending) + step[:, None] * directions
        value, gradient = evaluate(trial, path.which[pending])
        new_slope = _dot(gradient, directions)
        lower = value < np.minimum(before + SUFFICIENT_DECREASE * step * slope, values[pending])
        lower &= np.isfinite(new_slope)
        best = pending[lower]
        points[best], values[best], gradients[best] = trial[lower], value[lower], gradient[lower]
        shorter = _shorter(step, before, slope, value, new_slope)
        steps[pending] = np.where(lower, GROWTH * step, shorter)
        longer = lower & (new_slope < STEEP * slope) & (step >= 1.0)
        pending = pending[longer | (~lower & first)]
    return points, values, gradients


def _rows(x: Floats, index: Indices) -> Floats:
    """Rows of `x`, or itself where that is all of them."""
    return x if len(index) == len(x) else x[index]


def _shorter(
    step: Floats, value: Floats, slope: Floats, new_value: Floats, new_slope: Floats
) -> Floats:
    """Lowest point of the cubic through both ends, between a tenth and half of the step."""
    bend = slope + new_slope + 3.0 * (value - new_value) / step
    root = np.sqrt(np.maximum(bend * bend - slope * new_slope, 0.0))
    part = 1.0 - (new_slope + root - bend) / (new_slope - slope + 2.0 * root)
    return step * np.clip(np.where(np.isfinite(part), part, 0.1), 0.1, 0.5)


def _dot(x: Floats, y: Floats) -> Floats:
    """Inner products (A,) of the rows of x and y (A, P)."""
    return np.asarray(np.einsum("rp,rp->r", x, y), dtype=np.float64)


def _times(matrices: Floats, vectors: Floats) -> Floats:
    """Products (A, M) of matrices (A, M, M) and vectors (A, M)."""
    return (matrices @ vectors[:, :, None])[:, :, 0]
