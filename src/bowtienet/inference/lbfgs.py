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

from bowtienet._arrays import map_arrays

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Evaluate = Callable[[Floats, Indices], tuple[Floats, Floats]]
"""Values (A,) and gradients (A, P) of the functions (A,) at points (A, P)."""

PAIRS = 40
"""Pairs that are remembered. On 834 rows and 50 units, 400 steps with 40 end at 0.6 to 0.7 of the
loss of 20, and with 20 at 0.6 to 0.8 of that of 10; directions are a third of the time."""
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
class _Path:
    """Where the functions that have not ended are, and what is known of their curvature.

    `pairs`, `inverse` and `changes` are written in place; a pair that was refused is zero in them.
    """

    which: Indices  # (A,)
    points: Floats  # (A, P)
    values: Floats  # (A,)
    gradients: Floats  # (A, P)
    directions: Floats  # (A, P)
    scale: Floats  # (A,): γ, 0 without history
    pairs: NDArray[np.float32]  # (A, 2, PAIRS, P): s and y, both over |s|
    inverse: Floats  # (A, PAIRS, PAIRS): U^{-1}
    changes: Floats  # (A, PAIRS, PAIRS): Y'Y


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
                path, ended = _step(evaluate, path, steps % PAIRS)
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
        pairs=np.zeros((count, 2, PAIRS, size), dtype=np.float32),
        inverse=np.zeros((count, PAIRS, PAIRS)),
        changes=np.zeros((count, PAIRS, PAIRS)),
    )
    return _select(path, np.isfinite(values) & np.isfinite(_dot(gradients, gradients)))


def _select(path: _Path, keep: NDArray[np.bool_]) -> _Path:
    return path if keep.all() else map_arrays(lambda array: array[keep], path)


def _step(evaluate: Evaluate, path: _Path, slot: int) -> tuple[_Path, NDArray[np.bool_]]:
    """One step of every function on the path, and which of them end with it."""
    points, values, gradients = _search(evaluate, path)
    stuck = ~(path.values - values > TOLERANCE * np.abs(path.values))
    # The history may have misled, and is dropped. Stuck along the gradient itself, it is the end.
    ended = stuck & (path.scale == 0.0)
    directions, scale = _turn(path, slot, points - path.points, gradients)
    if stuck.any():
        directions[stuck], scale[stuck] = _downhill(gradients[stuck]), 0.0
        for history in (path.pairs, path.inverse, path.changes):
            history[stuck] = 0.0
    path = replace(path, points=points, values=values, gradients=gradients)
    return replace(path, directions=directions, scale=scale), ended


def _downhill(gradients: Floats) -> Floats:
    """-g / |g|: without history, a step has length one."""
    length = np.sqrt(_dot(gradients, gradients))[:, None]
    return -np.divide(gradients, length, out=np.zeros_like(gradients), where=length > 0.0)


def _turn(path: _Path, slot: int, moves: Floats, gradients: Floats) -> tuple[Floats, Floats]:
    """New directions -H g and scales γ; the last pairs take the place of the oldest.

    Without positive curvature H would not be definite: such a pair is refused.
    """
    changes = gradients - path.gradients
    curvature, length = _dot(moves, changes), np.sqrt(_dot(moves, moves))
    squares = _dot(changes, changes)
    keep = curvature > LEAST_CURVATURE * length * np.sqrt(squares)
    over = np.divide(1.0, length, out=np.zeros_like(length), where=keep)[:, None]
    path.pairs[:, 0, slot], path.pairs[:, 1, slot] = moves * over, changes * over
    vectors = np.stack([path.pairs[:, 1, slot], gradients.astype(np.float32)], axis=1)
    pairs = path.pairs.reshape(len(vectors), 2 * PAIRS, -1)
    products = (pairs @ vectors.transpose(0, 2, 1)).astype(np.float64).reshape(-1, 2, PAIRS, 2)
    pivot = np.divide(length**2, curvature, out=np.zeros_like(length), where=keep)
    _append(path, slot, products[..., 0], pivot[:, None])
    scale = np.divide(curvature, squares, out=path.scale.copy(), where=keep)
    parts = _parts(path, products[..., 1], scale[:, None]).astype(np.float32)
    return -scale[:, None] * gradients - (parts[:, None, :] @ pairs)[:, 0], scale


def _append(path: _Path, slot: int, products: Floats, pivot: Floats) -> None:
    """The last pair in U^{-1} and Y'Y, from its products S'y, Y'y (A, 2, PAIRS) and 1 / s'y.

    U loses its first row and column and gains the column (c, s'y); U^{-1} loses the same and gains
    (-U^{-1} c, 1) / s'y.
    """
    path.inverse[:, slot] = path.inverse[:, :, slot] = 0.0
    column = -pivot * _times(path.inverse, products[:, 0])
    column[:, slot] = pivot[:, 0]
    path.inverse[:, :, slot] = column
    path.changes[:, slot] = path.changes[:, :, slot] = products[:, 1]


def _parts(path: _Path, products: Floats, scale: Floats) -> Floats:
    """Parts (A, 2 PAIRS) that S and Y have in H g, from S'g and Y'g (A, 2, PAIRS)."""
    p = _times(path.inverse, products[:, 0])
    pivots = np.diagonal(path.inverse, axis1=1, axis2=2)
    inner = np.divide(p, pivots, out=np.zeros_like(p), where=pivots > 0.0)
    inner += scale * (_times(path.changes, p) - products[:, 1])
    return np.concatenate([_times(path.inverse.transpose(0, 2, 1), inner), -scale * p], axis=1)


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
        directions, first = path.directions[pending], values[pending] == before
        trial = path.points[pending] + step[:, None] * directions
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
