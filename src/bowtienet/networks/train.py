"""One trainer: R networks side by side on the same minibatches, by Adam in single precision.

    minimise Σ_n c_rn l(y_n, f_rn) / Σ_n c_rn + ½ λ_r Σ W² / Σ_n c_rn

for every network r; biases are not penalised. A row held out by a network has weight 0 for it. The
rate warms up, then falls to zero along a cosine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bowtienet.networks.column_scales import Columns, relative_penalties
from bowtienet.networks.networks import Networks, Single
from bowtienet.outcomes import Outcome

LEARNING_RATE = 0.1
"""Highest step of a weight, for a layer with one input; with K inputs it is over sqrt(K)."""
WARM_UP = 0.05
"""Share of the steps in which the rate rises."""
DECAYED = 1e-12
"""Weights below it are zero; gradients of units that are alive have normal squares."""
UPDATES = 40
"""How many times local scales follow the weights, and a training tells its progress."""
FEW_ROWS = 400
"""Below it minibatches are a third of the rows, and there are ten folds in place of five."""

Batch: TypeAlias = tuple[Single, Single, Single]
"""Inputs (b, K+1) with the constant first, targets (b, C) and row weights (R, b)."""


def train(
    networks: Networks,
    batches: Iterable[Batch],
    *,
    outcome: Outcome,
    penalties: NDArray[np.floating],
    total_weights: NDArray[np.floating],
    n_steps: int,
    learning_rate: float = LEARNING_RATE,
    columns: Columns | None = None,
    progress: Callable[[], None] | None = None,
) -> Networks:
    """The networks after `n_steps` minibatches.

    `penalties` (R,) are the λ and `total_weights` (R,) the Σ_n c_rn over all rows. With `columns`
    local scales follow the weights in closed form; without them relative penalties stay.
    `progress` is called some dozen times on the way.
    """
    points, layers = _flat(networks.layers)
    slopes, into = _flat([np.zeros_like(layer) for layer in networks.layers])
    mean, square, scratch, shrink = (np.zeros_like(points) for _ in range(4))
    strength = (penalties / total_weights).astype(np.float32)
    decay, parts = _views(shrink, layers), _views(scratch, layers)
    factors = networks.factors
    _set_penalties(decay, strength, factors)
    rates = [1.0 / math.sqrt(max(layer.shape[2] - 1, 1)) for layer in layers]
    every = max(1, n_steps // UPDATES)
    momentum, squares = 0.9, 0.99
    for step, (inputs, targets, row_weights) in enumerate(islice(batches, n_steps)):
        if step % every == 0 and step > WARM_UP * n_steps:
            _forget(points, mean, square)
            if columns is not None:
                factors = relative_penalties(columns, layers[0][:, :, 1:])
                _set_penalties(decay[:1], strength, factors)
            if progress is not None:
                progress()
        gradients(layers, inputs, targets, row_weights, outcome, into)
        # In place, and with as few passes as there can be: at some hundred rows this is the cost.
        # m and v are sums, so that their factors 1 - beta go into the rate.
        np.multiply(shrink, points, out=scratch)
        slopes += scratch
        mean *= momentum
        mean += slopes
        square *= squares
        np.multiply(slopes, slopes, out=scratch)
        square += scratch
        np.sqrt(square, out=scratch)
        # Below 1e-6 the root of a mean squared gradient is rounding.
        scratch += 1e-6 / math.sqrt(1.0 - squares)
        np.divide(mean, scratch, out=scratch)
        unbiased = math.sqrt(1.0 - squares ** (step + 1)) / (1.0 - momentum ** (step + 1))
        unbiased *= (1.0 - momentum) / math.sqrt(1.0 - squares)
        size = learning_rate * _schedule((step + 1) / n_steps) * unbiased
        for rate, part in zip(rates, parts, strict=True):
            part *= size * rate
        points -= scratch
    return Networks(layers=tuple(layer.copy() for layer in layers), factors=factors)


def gradients(
    layers: Sequence[Single],
    inputs: Single,
    targets: Single,
    row_weights: Single,
    outcome: Outcome,
    into: Sequence[Single],
) -> NDArray[np.float32]:
    """Losses L_r = Σ_n c_rn l(y_n, f_rn) / Σ_n c_rn (R,); their gradients are written to `into`.

    All networks see the same rows, whose first products are one matrix product for all of them; a
    row with c_rn = 0 has no influence on network r, to the bit.
    Rows (b, K+1) have the leading constant 1; `row_weights` (R, b) are c, where 0 holds a row out.
    """
    count, width, size = layers[0].shape
    first = layers[0].reshape(count * width, size) @ inputs.T
    z = first.reshape(count, width, len(inputs))
    activations: list[Single] = []
    for layer in layers[1:]:
        activations.append(np.maximum(z, 0.0, out=z))
        z = layer[:, :, 1:] @ activations[-1]
        z += layer[:, :, :1]
    losses, slopes = outcome.loss(targets, np.swapaxes(z, 1, 2))
    total = row_weights.sum(axis=1)
    share = row_weights / np.where(total > 0.0, total, 1.0)[:, None]
    back = np.swapaxes(slopes, 1, 2) * share[:, None, :]
    for index in range(len(layers) - 1, 0, -1):
        below = activations[index - 1]
        np.matmul(back, np.swapaxes(below, 1, 2), out=into[index][:, :, 1:])
        np.sum(back, axis=2, out=into[index][:, :, 0])
        weights = np.swapaxes(layers[index][:, :, 1:], 1, 2)
        # With one output the product is an outer one, which matmul is slow at.
        back = weights * back if back.shape[1] == 1 else weights @ back
        np.multiply(back, below > 0.0, out=back)
    flat = back.reshape(count * width, len(inputs))
    np.matmul(flat, inputs, out=into[0].reshape(count * width, size))
    return np.asarray(np.sum(share * losses, axis=1), dtype=np.float32)


def minibatches(
    inputs: NDArray[np.floating],
    targets: NDArray[np.floating],
    row_weights: NDArray[np.floating],
    size: int,
    rng: np.random.Generator,
    folds: NDArray[np.integer] | None = None,
    held_out: NDArray[np.integer] | None = None,
) -> Iterator[Batch]:
    """Endless minibatches of rows in memory, in another random order every epoch.

    With the fold of each row (n,) and the fold that each network holds out (R,), the weights of
    its held-out rows are 0.
    """
    with_constant = np.column_stack([np.ones(len(inputs), np.float32), inputs.astype(np.float32)])
    targets, row_weights = targets.astype(np.float32), row_weights.astype(np.float32)
    while True:
        order = rng.permutation(len(inputs))
        for begin in range(0, len(order) - size + 1, size):
            rows = order[begin : begin + size]
            weights = row_weights[None, rows]
            if folds is not None and held_out is not None:
                weights = weights * (folds[rows] != held_out[:, None])
            yield with_constant[rows], targets[rows], weights


def batch_and_steps(n_rows: int) -> tuple[int, int]:
    """Rows of a minibatch and steps of a training."""
    if n_rows < FEW_ROWS:
        return max(1, n_rows // 3), 1_000
    size = 64 if n_rows < 5_000 else 256
    return size, max(2_500, 60 * n_rows // size)  # sixty epochs


def _schedule(progress: float) -> float:
    """Share of the highest rate at a share of the steps."""
    if progress < WARM_UP:
        return progress / WARM_UP
    return 0.5 * (1.0 + math.cos(math.pi * (progress - WARM_UP) / (1.0 - WARM_UP)))


def _forget(points: Single, mean: Single, square: Single) -> None:
    """Zero for weights that have decayed: numbers below the normal ones take ten times as long."""
    decayed = np.abs(points) < DECAYED
    for values in (points, mean, square):
        values[decayed] = 0.0


def _set_penalties(decay: Sequence[Single], strength: Single, factors: Single | None) -> None:
    """λ / Σ c of every weight, with relative penalties in the first layer; none for biases."""
    for index, part in enumerate(decay):
        part[:, :, 0] = 0.0
        part[:, :, 1:] = strength[:, None, None]
        if index == 0 and factors is not None:
            part[:, :, 1:] *= factors[:, None, :]


def _flat(layers: Sequence[Single]) -> tuple[Single, list[Single]]:
    """Weights of all layers one after the other, and the layers as views of them."""
    flat = np.concatenate([layer.ravel() for layer in layers])
    return flat, _views(flat, layers)


def _views(flat: Single, layers: Sequence[Single]) -> list[Single]:
    parts = np.split(flat, np.cumsum([layer.size for layer in layers])[:-1])
    return [part.reshape(layer.shape) for part, layer in zip(parts, layers, strict=True)]
