"""Ordinary networks trained side by side: penalised least squares by a vectorised L-BFGS.

    L_r = ( ½ Σ_n w_rn Σ_d (y_nd - f_rnd)² + ½ penalty_r Σ W² ) / Σ_n w_rn

for networks r = 1..R of one architecture, the objective of the start `relu_network`. All networks
see the same inputs, so their first layers are one product and its gradient another of the same
size. Rows are worked on in single precision, in blocks that stay in the cache; losses, weights and
steps are double. A network has its own history, step length and end; one that has ended takes no
further part in the products.

Units are rectifiers without a corner, h(z) = (z + sqrt(z² + t²)) / 2 with h'(z) = h / sqrt(z² + t²),
which cost a square root and a division. Unit 0 of a hidden layer is one at all times and carries
the biases of the next layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import map_arrays, slices, with_ones
from bowtienet.posterior.initialize import Floats, laplace_weights, random_weights, ridge

Singles = NDArray[np.float32]

SMOOTHING = 0.01
"""t: h differs from a ReLU by t/2 at the corner and by less than t²/4 beyond |z| = 1. Standardised
inputs give preactivations of about 1, and a square that single precision still adds to 1."""
BLOCK_ROWS = 1024
BLOCK_NUMBERS = 2**18
"""Activations of a block: 1 MB an array, so that the arrays of a block share a cache of 2 MB."""
PAIRS = 40
"""Moves and changes of the gradient that L-BFGS remembers."""
TRIALS = 12
"""Steps that a line search tries at most; each is at most half of the one before, or longer."""
SUFFICIENT_DECREASE = 1e-4
LEAST_CURVATURE = 1e-6
"""Cosine of move and change of the gradient below which single precision may have its sign wrong."""
STEEP = 0.9
"""A step is lengthened where the loss still falls by this part of its first slope."""
GROWTH = 4.0
TOLERANCE = 1e-7
"""A network has converged when a step lowers its loss by no more than this part of it: losses in
single precision tell no smaller differences."""


@dataclass(frozen=True, kw_only=True)
class Networks:
    """R networks of one architecture; layer l has weights (R, D_l, K_l + 1), bias first."""

    layers: tuple[Floats, ...]


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Rows as columns, with a leading one; weights of rows that add up to one for each network."""

    inputs: Singles  # (1 + D_0, n)
    targets: Floats  # (D_out, n)
    row_weights: Floats  # (R, n)
    penalties: Floats  # (R,), divided by the sum of the row weights
    penalised: Floats  # (P,), 1 for a weight and 0 for a bias
    shapes: tuple[tuple[int, int], ...]  # (D_l, K_l + 1)


@dataclass(frozen=True, kw_only=True)
class _Path:
    """Where the networks that have not ended are, and what L-BFGS knows of their curvature.

    The last three are written in place. A pair that was refused is zero in all of them.
    """

    networks: NDArray[np.intp]  # (A,)
    points: Floats  # (A, P)
    values: Floats  # (A,)
    gradients: Floats  # (A, P)
    directions: Floats  # (A, P)
    scale: Floats  # (A,): s'y / y'y of the last pair, 0 without history
    pairs: Singles  # (A, 2, PAIRS, P): moves s and changes y of the gradient, over |s|
    inverse: Floats  # (A, PAIRS, PAIRS): inverse of U, where U_ij = s_i'y_j for j not before i
    changes: Floats  # (A, PAIRS, PAIRS): y_i'y_j


def random_networks(
    hidden: Sequence[int],
    inputs: Floats,
    targets: Floats,
    row_weights: Floats,
    rng: np.random.Generator,
) -> Networks:
    """Networks to start from, one for each row of `row_weights` (R, n).

    Hidden weights are Laplace, knots lie inside the rows that the network sees, and the output
    layer is a ridge regression on the last hidden layer.
    """
    networks = []
    for weights in row_weights:
        seen = weights > 0.0
        values = inputs[seen]
        layers = random_weights(hidden, SMOOTHING, values, rng, laplace_weights)
        for layer in layers:
            values = _rectify(with_ones(values) @ layer.T)
        networks.append([*layers, ridge(values, targets[seen], weights[seen])])
    return Networks(layers=tuple(np.stack(layer) for layer in zip(*networks, strict=True)))


def fit_networks(
    inputs: Floats,
    targets: Floats,
    row_weights: Floats,
    start: Networks,
    penalties: Floats,
    *,
    lengths: Sequence[int],
) -> list[Networks]:
    """Networks after each of `lengths` L-BFGS steps on L_r; biases are not penalised.

    Parameters
    ----------
    inputs : array of shape (n, D_0)
        Standardised features, the same for all networks.
    targets : array of shape (n, D_out)
        Standardised targets.
    row_weights : array of shape (R, n)
        Weights of the rows for each network; 0 holds a row out.
    start : Networks
        R networks to start from.
    penalties : array of shape (R,)
        Ridge penalty of each network, on the scale of `init_penalty`.
    lengths : sequence of int
        Increasing numbers of steps.
    """
    shapes = tuple((layer.shape[1], layer.shape[2]) for layer in start.layers)
    totals = row_weights.sum(axis=1)
    problem = _Problem(
        inputs=np.ascontiguousarray(with_ones(inputs).T, dtype=np.float32),
        targets=np.ascontiguousarray(targets.T, dtype=np.float64),
        row_weights=row_weights / totals[:, None],
        penalties=penalties / totals,
        penalised=np.concatenate([np.tile(np.arange(k) > 0, d) for d, k in shapes]).astype(float),
        shapes=shapes,
    )
    points = np.concatenate([layer.reshape(len(totals), -1) for layer in start.layers], axis=1)
    found: list[Networks] = []
    steps = 0
    # A trial step may overflow; it is then refused.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        path = _begin(problem, points)
        for length in lengths:
            while steps < length and path.networks.size:
                path, ended = _step(problem, path, steps % PAIRS)
                points[path.networks] = path.points
                if ended.any():
                    path = map_arrays(lambda array, keep=~ended: array[keep], path)
                steps += 1
            found.append(Networks(layers=tuple(_split(points, shapes))))
    return found


def network_outputs(networks: Networks, inputs: Floats) -> Floats:
    """Outputs f (R, n, D_out) of the networks at `inputs` (n, D_0)."""
    columns = np.ascontiguousarray(with_ones(inputs).T, dtype=np.float32)
    count, width = networks.layers[-1].shape[:2]
    outputs = np.empty((count, columns.shape[1], width))
    for some, rows in _blocks([layer.shape[1] for layer in networks.layers], count, columns):
        weights = _single_weights([layer[some] for layer in networks.layers])
        below, _ = _forward(weights, columns[:, rows])
        outputs[some, rows] = below[-1].transpose(0, 2, 1)
    return outputs


def _rectify(z: Floats) -> Floats:
    return 0.5 * (z + np.sqrt(z * z + SMOOTHING**2))


def _split(points: Floats, shapes: Sequence[tuple[int, int]]) -> list[Floats]:
    """Weights (R, D, K + 1) of the layers, copied out of points (R, P)."""
    ends = np.cumsum([width * size for width, size in shapes])[:-1]
    parts = np.split(points, ends, axis=1)
    return [part.reshape(-1, *shape).copy() for part, shape in zip(parts, shapes, strict=True)]


def _blocks(widths: Sequence[int], count: int, columns: Singles) -> list[tuple[slice, slice]]:
    """Networks and rows that are worked on together."""
    rows = slices(columns.shape[1], BLOCK_ROWS)
    size = max(1, BLOCK_NUMBERS // ((1 + max(widths)) * rows[0].stop))
    return [(some, part) for some in slices(count, size) for part in rows]


def _single_weights(layers: Sequence[Floats]) -> list[Singles]:
    """Weights with the unit that is one before each hidden layer, for inputs 2 h.

    z = 1 - t²/4 gives h(z) = 1.
    """
    weights = []
    for index, layer in enumerate(layers):
        count, width, size = layer.shape
        constant = int(index + 1 < len(layers))
        padded = np.zeros((count, constant + width, size), dtype=np.float32)
        padded[:, :constant, 0] = 1.0 - 0.25 * SMOOTHING**2
        padded[:, constant:] = layer
        weights.append(padded if index == 0 else 0.5 * padded)
    return weights


def _forward(weights: list[Singles], columns: Singles) -> tuple[list[Singles], list[Singles]]:
    """2 h (R, 1 + D_l, n) of all hidden layers and the outputs; sqrt(z² + t²) of hidden layers."""
    count, _, size = weights[0].shape
    values = (weights[0].reshape(-1, size) @ columns).reshape(count, -1, columns.shape[1])
    above, roots = [values], []
    for layer in weights[1:]:
        root = values * values
        root += np.float32(SMOOTHING**2)
        np.sqrt(root, out=root)
        values += root
        values = layer @ values
        roots.append(root)
        above.append(values)
    return above, roots


def _backward(
    weights: list[Singles], columns: Singles, above: list[Singles], roots: list[Singles], e: Singles
) -> Singles:
    """Gradients (R, P), where e is the derivative by the outputs: by z_l it is (W' e) h'(z_l)."""
    gradients: list[Singles] = []
    for index in reversed(range(1, len(weights))):
        below, back = above[index - 1], weights[index].transpose(0, 2, 1)
        gradients.append(0.5 * (e @ below.transpose(0, 2, 1)))
        e = back * e if e.shape[1] == 1 else back @ e
        e *= below
        e /= roots[index - 1]
    first = e.reshape(-1, columns.shape[1]) @ columns.T
    gradients.append(first.reshape(weights[0].shape))
    count, last = len(e), gradients[0]
    hidden = [gradient[:, 1:] for gradient in gradients[:0:-1]]
    return np.concatenate([part.reshape(count, -1) for part in (*hidden, last)], axis=1)


def _evaluate(
    problem: _Problem, points: Floats, networks: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """L (A,) and its gradients (A, P) at points (A, P) of the networks (A,)."""
    shrunk = problem.penalties[networks, None] * problem.penalised * points
    values, gradients = 0.5 * np.einsum("rp,rp->r", shrunk, points), shrunk
    widths = [width for width, _ in problem.shapes]
    for some, rows in _blocks(widths, len(points), problem.inputs):
        weights = _single_weights(_split(points[some], problem.shapes))
        columns = problem.inputs[:, rows]
        above, roots = _forward(weights, columns)
        residuals = above[-1] - problem.targets[:, rows]
        weighted = problem.row_weights[networks[some], None, rows] * residuals
        values[some] += 0.5 * np.einsum("rdn,rdn->r", weighted, residuals)
        e = weighted.astype(np.float32)
        gradients[some] += _backward(weights, columns, above, roots, e)
    return values, gradients


def _begin(problem: _Problem, points: Floats) -> _Path:
    """The networks whose loss is finite, at their start and without history."""
    count, size = points.shape
    networks = np.arange(count)
    values, gradients = _evaluate(problem, points, networks)
    path = _Path(
        networks=networks,
        points=points,
        values=values,
        gradients=gradients,
        directions=_downhill(gradients),
        scale=np.zeros(count),
        pairs=np.zeros((count, 2, PAIRS, size), dtype=np.float32),
        inverse=np.zeros((count, PAIRS, PAIRS)),
        changes=np.zeros((count, PAIRS, PAIRS)),
    )
    keep = np.isfinite(values) & np.isfinite(_dot(gradients, gradients))
    return map_arrays(lambda array: array[keep], path)


def _step(problem: _Problem, path: _Path, slot: int) -> tuple[_Path, NDArray[np.bool_]]:
    """One step of every network on the path, and which of them end with it."""
    points, values, gradients = _search(problem, path)
    moved = values < path.values
    converged = moved & (path.values - values <= TOLERANCE * path.values)
    # No step: the history has misled, and is dropped. Along the gradient itself, it is the end.
    ended = converged | (~moved & (path.scale == 0.0))
    scale = _remember(path, slot, points - path.points, gradients - path.gradients)
    path = replace(path, points=points, values=values, gradients=gradients, scale=scale)
    directions = _directions(path)
    if not moved.all():
        directions[~moved], scale[~moved] = _downhill(gradients[~moved]), 0.0
        for history in (path.pairs, path.inverse, path.changes):
            history[~moved] = 0.0
    return replace(path, directions=directions), ended


def _downhill(gradients: Floats) -> Floats:
    """-g / |g|: without history a first step has length one."""
    length = np.sqrt(_dot(gradients, gradients))[:, None]
    return -np.divide(gradients, length, out=np.zeros_like(gradients), where=length > 0.0)


def _remember(path: _Path, slot: int, moves: Floats, changes: Floats) -> Floats:
    """Put the last pairs into the history in the place of the oldest; returns s'y / y'y.

    U loses its first row and column and gets a last column (c, s'y), so that U^{-1} loses the same
    and gets (-U^{-1} c, 1) / s'y. Without positive curvature H would not be definite.
    """
    curvature, length = _dot(moves, changes), np.sqrt(_dot(moves, moves))
    squares = _dot(changes, changes)
    keep = curvature > LEAST_CURVATURE * length * np.sqrt(squares)
    over = np.divide(1.0, length, out=np.zeros_like(length), where=keep)[:, None]
    path.pairs[:, 0, slot], path.pairs[:, 1, slot] = moves * over, changes * over
    products = _products(path, changes * over)
    path.inverse[:, slot] = 0.0
    path.inverse[:, :, slot] = 0.0
    pivot = np.divide(length**2, curvature, out=np.zeros_like(length), where=keep)[:, None]
    column = -pivot * (path.inverse @ products[:, 0, :, None])[:, :, 0]
    column[:, slot] = pivot[:, 0]
    path.inverse[:, :, slot] = column
    path.changes[:, slot] = path.changes[:, :, slot] = products[:, 1]
    return np.divide(curvature, squares, out=path.scale.copy(), where=keep)


def _directions(path: _Path) -> Floats:
    """-H g with the inverse Hessian of L-BFGS in its compact form (Byrd, Nocedal, Schnabel 1994).

    H g = γ g + S U^{-T} ((D + γ Y'Y) p - γ Y'g) - γ Y p with p = U^{-1} S'g and D the diagonal of U.
    """
    products, scale = _products(path, path.gradients), path.scale[:, None]
    p = (path.inverse @ products[:, 0, :, None])[:, :, 0]
    pivots = np.diagonal(path.inverse, axis1=1, axis2=2)
    inner = scale * ((path.changes @ p[:, :, None])[:, :, 0] - products[:, 1])
    inner += np.divide(p, pivots, out=np.zeros_like(p), where=pivots > 0.0)
    moves = (inner[:, None, :] @ path.inverse)[:, 0]
    parts = np.concatenate([moves, -scale * p], axis=1).astype(np.float32)
    pairs = path.pairs.reshape(len(parts), 2 * PAIRS, -1)
    return -scale * path.gradients - (parts[:, None, :] @ pairs)[:, 0]


def _products(path: _Path, vectors: Floats) -> Floats:
    """Inner products (A, 2, PAIRS) of the pairs with one vector (A, P) for each network."""
    pairs = path.pairs.reshape(len(vectors), 2 * PAIRS, -1)
    products = pairs @ vectors.astype(np.float32)[:, :, None]
    return products.reshape(-1, 2, PAIRS).astype(np.float64)


def _search(problem: _Problem, path: _Path) -> tuple[Floats, Floats, Floats]:
    """Points, losses and gradients after a line search; those of the path where none is lower.

    A step is shortened until the loss falls by a part of what the slope promises, or lengthened as
    long as that pays.
    """
    points, values, gradients = path.points.copy(), path.values.copy(), path.gradients.copy()
    slopes, steps = _dot(path.gradients, path.directions), np.ones(len(values))
    pending = np.flatnonzero(slopes < 0.0)
    for _ in range(TRIALS):
        if not pending.size:
            break
        step, slope, before = steps[pending], slopes[pending], path.values[pending]
        directions = path.directions[pending]
        trial = path.points[pending] + step[:, None] * directions
        value, gradient = _evaluate(problem, trial, path.networks[pending])
        new_slope = _dot(gradient, directions)
        enough = value <= before + SUFFICIENT_DECREASE * step * slope
        better = enough & (value < values[pending]) & np.isfinite(new_slope)
        first = values[pending] == before
        lower = pending[better]
        points[lower], values[lower] = trial[better], value[better]
        gradients[lower] = gradient[better]
        longer = better & (new_slope < STEEP * slope) & (step >= 1.0)
        shorter = _shorter(step, before, slope, value, new_slope)
        steps[pending] = np.where(better, GROWTH * step, shorter)
        pending = pending[longer | (~better & first)]
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
    """Inner products (R,) of the rows of x and y (R, P)."""
    return np.asarray(np.einsum("rp,rp->r", x, y), dtype=np.float64)
