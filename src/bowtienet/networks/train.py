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
from bowtienet.networks.loss import gradients
from bowtienet.networks.networks import Networks, Single
from bowtienet.outcomes import Outcome

LEARNING_RATE = 0.1
"""Highest step of a weight, for a layer with one input; with K inputs it is over sqrt(K)."""
MOMENTUM, SQUARES = 0.9, 0.99
"""Adam's two decays."""
WARM_UP = 0.05
"""Share of the steps in which the rate rises."""
SMALLEST = 1e-6
"""Added to the root of the mean squared gradients: below it a gradient is rounding."""
FEW_ROWS, MANY_ROWS = 400, 5_000
"""Below the first batches are a third of the rows; above the second they are larger."""
STEPS, STEPS_OF_FEW, EPOCHS = 2_500, 1_000, 60
"""Steps of a training: the second below `FEW_ROWS`, at least so many epochs above."""
DECAYED = 1e-12
"""Weights below it are zero; gradients of units that are alive have normal squares."""
UPDATES = 40
"""How many times local scales follow the weights."""

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

    Parameters
    ----------
    networks : Networks
        R networks to start from; they stay as they are.
    batches : iterable of (inputs, targets, row weights)
        At least `n_steps` minibatches, from memory or a stream.
    outcome : Outcome
        Likelihood whose loss is lowered.
    penalties : array (R,)
        λ of each network.
    total_weights : array (R,)
        Σ_n c_rn over all rows.
    n_steps : int
        Minibatches to take in.
    learning_rate : float
        Highest rate.
    columns : Columns, optional
        Local scales that follow the weights in closed form while networks train; without them
        relative penalties stay as they are.
    progress : callable, optional
        Called some dozen times on the way.
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
        mean *= MOMENTUM
        mean += slopes
        square *= SQUARES
        np.multiply(slopes, slopes, out=scratch)
        square += scratch
        np.sqrt(square, out=scratch)
        scratch += SMALLEST / math.sqrt(1.0 - SQUARES)
        np.divide(mean, scratch, out=scratch)
        unbiased = math.sqrt(1.0 - SQUARES ** (step + 1)) / (1.0 - MOMENTUM ** (step + 1))
        unbiased *= (1.0 - MOMENTUM) / math.sqrt(1.0 - SQUARES)
        size = learning_rate * _schedule((step + 1) / n_steps) * unbiased
        for rate, part in zip(rates, parts, strict=True):
            part *= size * rate
        points -= scratch
    return Networks(layers=tuple(layer.copy() for layer in layers), factors=factors)


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

    Parameters
    ----------
    inputs, targets, row_weights : arrays (n, K), (n, C), (n,)
        The rows.
    size : int
        Rows of a minibatch.
    rng : Generator
        Of the orders.
    folds, held_out : arrays (n,) and (R,), optional
        The fold of each row, and the fold that each network holds out.
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
        return max(1, n_rows // 3), STEPS_OF_FEW
    size = 64 if n_rows < MANY_ROWS else 256
    return size, max(STEPS, EPOCHS * n_rows // size)


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
