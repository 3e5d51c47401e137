"""Ordinary networks trained side by side, which say where variational fits begin.

    L_r = ( ½ Σ_n w_rn Σ_d (y_nd - f_rnd)² + ½ penalty_r Σ W² ) / Σ_n w_rn

for networks r = 1..R of one architecture, the objective of the start `relu_network`. All networks
see the same rows, which are read once for all of them: by a vectorised L-BFGS, or by Adam on
batches of many rows. Rows may be arrays of any library: products are done there, on their device
and in single precision, and the optimiser's small vectors live on the host. A network has its own
history, step length and end; one that has ended takes no further part in the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from bowtienet._arrays import Array, to_numpy, with_ones
from bowtienet.inference.lbfgs import Indices, minimize
from bowtienet.inference.network_loss import (
    SMOOTHING,
    Batch,
    Errors,
    outputs_of,
    split,
    squared_errors,
)
from bowtienet.posterior.initialize import Floats, laplace_weights, random_weights, ridge


@dataclass(frozen=True, kw_only=True)
class Networks:
    """R networks of one architecture; layer l has weights (R, D_l, K_l + 1), bias first."""

    layers: tuple[Floats, ...]


@dataclass(frozen=True, kw_only=True)
class _Problem:
    errors: Errors  # with weights of rows that add up to one for each network
    penalties: Floats  # (R,), divided by the sum of the row weights
    penalised: Floats  # (P,), 1 for a weight and 0 for a bias


def random_networks(
    hidden: Sequence[int],
    inputs: Array,
    targets: Array,
    row_weights: Floats,
    rng: np.random.Generator,
) -> Networks:
    """Networks to start from, one for each row of `row_weights` (R, n).

    Hidden weights are Laplace, knots lie inside the rows that the network sees, and the output
    layer is a ridge regression on the last hidden layer.
    """
    inputs, targets = to_numpy(inputs), to_numpy(targets)
    networks = []
    for weights in row_weights:
        seen = weights > 0.0
        values = inputs[seen]
        layers = random_weights(hidden, SMOOTHING, values, rng, laplace_weights)
        for layer in layers:
            z = with_ones(values) @ layer.T
            values = 0.5 * (z + np.sqrt(z * z + SMOOTHING**2))
        networks.append([*layers, ridge(values, targets[seen], weights[seen])])
    return Networks(layers=tuple(np.stack(layer) for layer in zip(*networks, strict=True)))


def fit_networks(
    inputs: Array,
    targets: Array,
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
        Standardised features, the same for all networks, in any array library.
    targets : array of shape (n, D_out)
        Standardised targets, in the same library.
    row_weights : array of shape (R, n)
        Weights of the rows for each network; 0 holds a row out.
    start : Networks
        R networks to start from.
    penalties : array of shape (R,)
        Ridge penalty of each network, on the scale of `init_penalty`.
    lengths : sequence of int
        Increasing numbers of steps.
    """
    shapes = _shapes(start)
    totals = row_weights.sum(axis=1)
    batch = Batch(inputs=inputs, targets=targets, row_weights=row_weights / totals[:, None])
    problem = _Problem(
        errors=squared_errors(batch, shapes),
        penalties=penalties / totals,
        penalised=_penalised(shapes),
    )
    found = minimize(partial(_evaluate, problem), _points(start), lengths=lengths)
    return [_networks(points, shapes) for points in found]


def network_outputs(networks: Networks, inputs: Array) -> Floats:
    """Outputs f (R, n, D_out) of the networks at `inputs` (n, D_0) of any array library."""
    return outputs_of(networks.layers, inputs)


def _evaluate(problem: _Problem, points: Floats, networks: Indices) -> tuple[Floats, Floats]:
    """L (A,) and its gradients (A, P) at points (A, P) of the networks (A,)."""
    shrunk = problem.penalties[networks, None] * problem.penalised * points
    values, gradients = problem.errors(points, networks)
    values += 0.5 * np.einsum("rp,rp->r", shrunk, points)
    shrunk += gradients
    return values, shrunk


def _shapes(networks: Networks) -> tuple[tuple[int, int], ...]:
    return tuple((layer.shape[1], layer.shape[2]) for layer in networks.layers)


def _penalised(shapes: Sequence[tuple[int, int]]) -> Floats:
    return np.concatenate([np.tile(np.arange(k) > 0, d) for d, k in shapes]).astype(float)


def _points(networks: Networks) -> Floats:
    """Weights (R, P) of all layers, one after the other."""
    flat = [layer.reshape(len(layer), -1) for layer in networks.layers]
    return np.concatenate(flat, axis=1, dtype=np.float64)


def _networks(points: Floats, shapes: tuple[tuple[int, int], ...]) -> Networks:
    return Networks(layers=tuple(layer.copy() for layer in split(points, shapes)))
