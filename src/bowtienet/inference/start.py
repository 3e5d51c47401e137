"""Ordinary networks trained side by side: penalised least squares by a vectorised L-BFGS.

    L_r = ( ½ Σ_n w_rn Σ_d (y_nd - f_rnd)² + ½ penalty_r Σ W² ) / Σ_n w_rn

for networks r = 1..R of one architecture, the objective of the start `relu_network`. All networks
see the same inputs, so their first layers are one product and its gradient another of the same
size. Rows are worked on in single precision, in blocks that stay in the cache; losses, weights and
steps are double. A network has its own history, step length and end; one that has ended takes no
further part in the products.

Units are rectifiers without a corner, h(z) = (z + s) / 2 with s = sqrt(z² + t²) and h'(z) = h / s:
a square root and a division. Unit 0 of a hidden layer is one at all times and carries the biases of
the next layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import slices, with_ones
from bowtienet.inference.lbfgs import Indices, minimize
from bowtienet.posterior.initialize import Floats, laplace_weights, random_weights, ridge

Singles = NDArray[np.float32]

SMOOTHING = 0.01
"""t: h differs from a ReLU by t/2 at the corner and by less than t²/4 beyond |z| = 1. Standardised
inputs give preactivations of about 1, and a square that single precision still adds to 1."""
BLOCK_ROWS = 1024
BLOCK_NUMBERS = 2**18
"""Activations of a block, 1 MB: larger blocks leave the cache, smaller ones have small products."""


@dataclass(frozen=True, kw_only=True)
class Networks:
    """R networks of one architecture; layer l has weights (R, D_l, K_l + 1), bias first."""

    layers: tuple[Floats, ...]


@dataclass(frozen=True, kw_only=True)
class _Workspace:
    """Memory of a block, written again and again: to allocate it costs as much as to fill it."""

    group: int  # networks that are worked on together
    rooms: tuple[Singles, ...]  # (3, group, 1 + D_l, rows): 2 h, sqrt(z² + t²), derivative by z


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Rows as columns, with a leading one; weights of rows that add up to one for each network."""

    inputs: Singles  # (1 + D_0, n)
    targets: Floats  # (D_out, n)
    row_weights: Floats  # (R, n)
    penalties: Floats  # (R,), divided by the sum of the row weights
    penalised: Floats  # (P,), 1 for a weight and 0 for a bias
    shapes: tuple[tuple[int, int], ...]  # (D_l, K_l + 1)
    workspace: _Workspace


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
        workspace=_workspace([width for width, _ in shapes], *row_weights.shape),
    )
    flat = [layer.reshape(len(totals), -1) for layer in start.layers]
    points = np.concatenate(flat, axis=1, dtype=np.float64)
    found = minimize(partial(_evaluate, problem), points, lengths=lengths)
    return [Networks(layers=tuple(_split(each, shapes))) for each in found]


def network_outputs(networks: Networks, inputs: Floats) -> Floats:
    """Outputs f (R, n, D_out) of the networks at `inputs` (n, D_0)."""
    columns = np.ascontiguousarray(with_ones(inputs).T, dtype=np.float32)
    count, width = networks.layers[-1].shape[:2]
    outputs = np.empty((count, columns.shape[1], width))
    workspace = _workspace([layer.shape[1] for layer in networks.layers], *outputs.shape[:2])
    for some in slices(count, workspace.group):
        weights = _single_weights([layer[some] for layer in networks.layers])
        for rows in slices(columns.shape[1], BLOCK_ROWS):
            above, _ = _forward(weights, columns[:, rows], workspace.rooms)
            outputs[some, rows] = above[-1].transpose(0, 2, 1)
    return outputs


def _rectify(z: Floats) -> Floats:
    return 0.5 * (z + np.sqrt(z * z + SMOOTHING**2))


def _split(points: Floats, shapes: Sequence[tuple[int, int]]) -> list[Floats]:
    """Weights (R, D, K + 1) of the layers, copied out of points (R, P)."""
    ends = np.cumsum([width * size for width, size in shapes])[:-1]
    parts = np.split(points, ends, axis=1)
    return [part.reshape(-1, *shape).copy() for part, shape in zip(parts, shapes, strict=True)]


def _workspace(widths: Sequence[int], count: int, n_rows: int) -> _Workspace:
    rows = max(1, min(n_rows, BLOCK_ROWS))
    group = min(count, max(1, BLOCK_NUMBERS // ((1 + max(widths)) * rows)))
    rooms = [np.empty((3, group, 1 + width, rows), dtype=np.float32) for width in widths[:-1]]
    return _Workspace(group=group, rooms=tuple(rooms))


def _single_weights(layers: Sequence[Floats]) -> list[Singles]:
    """Weights with the unit that is one before each hidden layer, for inputs 2 h.

    z = 1 - t²/4 gives h(z) = 1.
    """
    weights: list[Singles] = []
    for index, layer in enumerate(layers):
        count, width, size = layer.shape
        constant = int(index + 1 < len(layers))
        padded = np.zeros((count, constant + width, size), dtype=np.float32)
        padded[:, :constant, 0] = 1.0 - 0.25 * SMOOTHING**2
        padded[:, constant:] = layer
        padded *= np.float32(0.5 if index else 1.0)
        weights.append(padded)
    return weights


def _forward(
    weights: list[Singles], columns: Singles, rooms: Sequence[Singles]
) -> tuple[list[Singles], list[Singles]]:
    """2 h (R, 1 + D_l, n) of all hidden layers and the outputs; sqrt(z² + t²) of hidden layers."""
    above, roots = [columns], []
    for layer, room in zip(weights[:-1], rooms, strict=True):
        values, root, _ = room[:, : len(layer), :, : columns.shape[1]]
        _product(layer, above[-1], values)
        np.multiply(values, values, out=root)
        root += np.float32(SMOOTHING**2)
        np.sqrt(root, out=root)
        values += root
        above.append(values)
        roots.append(root)
    outputs = np.empty((*weights[-1].shape[:2], columns.shape[1]), dtype=np.float32)
    return [*above[1:], _product(weights[-1], above[-1], outputs)], roots


def _product(layer: Singles, values: Singles, out: Singles) -> Singles:
    """Weights of a layer (R, D, K) times values (R, K, n), or (K, n) that all networks share."""
    if values.ndim == 2:
        np.matmul(layer.reshape(-1, len(values)), values, out=out.reshape(-1, values.shape[1]))
    else:
        np.matmul(layer, values, out=out)
    return out


def _backward(
    weights: list[Singles],
    columns: Singles,
    above: list[Singles],
    roots: list[Singles],
    e: Singles,
    rooms: Sequence[Singles],
) -> Singles:
    """Gradients (R, P), where e is the derivative by the outputs: by z_l it is (W' e) h'(z_l)."""
    gradients: list[Singles] = []
    for index in reversed(range(1, len(weights))):
        below, back = above[index - 1], weights[index].transpose(0, 2, 1)
        gradients.append(0.5 * (e @ below.transpose(0, 2, 1)))
        room = rooms[index - 1][2, : len(e), :, : e.shape[2]]
        # A product over one output is an outer product, which BLAS is slow at.
        e = np.multiply(back, e, out=room) if e.shape[1] == 1 else np.matmul(back, e, out=room)
        e *= below
        e /= roots[index - 1]
    first = e.reshape(-1, columns.shape[1]) @ columns.T
    gradients.append(first.reshape(weights[0].shape))
    count, last = len(e), gradients[0]
    hidden = [gradient[:, 1:] for gradient in gradients[:0:-1]]
    return np.concatenate([part.reshape(count, -1) for part in (*hidden, last)], axis=1)


def _evaluate(problem: _Problem, points: Floats, networks: Indices) -> tuple[Floats, Floats]:
    """L (A,) and its gradients (A, P) at points (A, P) of the networks (A,)."""
    shrunk = problem.penalties[networks, None] * problem.penalised * points
    values, gradients = 0.5 * np.einsum("rp,rp->r", shrunk, points), shrunk
    rooms = problem.workspace.rooms
    for some in slices(len(points), problem.workspace.group):
        weights = _single_weights(_split(points[some], problem.shapes))
        for rows in slices(problem.inputs.shape[1], BLOCK_ROWS):
            columns = problem.inputs[:, rows]
            above, roots = _forward(weights, columns, rooms)
            residuals = above[-1] - problem.targets[:, rows]
            weighted = problem.row_weights[networks[some], None, rows] * residuals
            values[some] += 0.5 * np.einsum("rdn,rdn->r", weighted, residuals)
            e = weighted.astype(np.float32)
            gradients[some] += _backward(weights, columns, above, roots, e, rooms)
    return values, gradients
