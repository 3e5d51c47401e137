"""One trainer: R networks side by side on the same minibatches, by Adam in single precision.

    minimise Σ_n c_rn l(y_n, f_rn) / Σ_n c_rn + ½ λ_r Σ W² / Σ_n c_rn

for every network r; biases are not penalised. A row held out by a network has weight 0 for it. The
rate warms up, then falls to zero along a cosine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
    """
    points, layers = _flat([layer.copy() for layer in networks.layers])
    slopes, into = _flat([np.zeros_like(layer) for layer in networks.layers])
    mean, square, scratch = (np.zeros_like(points) for _ in range(3))
    shrink, rates = np.zeros_like(points), np.zeros_like(points[0])
    end = 0
    for layer in layers:
        _, width, size = layer.shape
        begin, end = end, end + width * size
        rates[begin:end] = 1.0 / math.sqrt(max(size - 1, 1))
        shrink[:, begin:end] = (penalties / total_weights)[:, None]
        shrink[:, begin:end:size] = 0.0
    for step, (inputs, targets, row_weights) in enumerate(islice(batches, n_steps)):
        gradients(layers, inputs, targets, row_weights, outcome, into)
        np.multiply(shrink, points, out=scratch)
        slopes += scratch
        # In place: at some hundred rows Adam's own arithmetic is the cost.
        mean *= MOMENTUM
        np.multiply(slopes, 1.0 - MOMENTUM, out=scratch)
        mean += scratch
        square *= SQUARES
        np.multiply(slopes, slopes, out=scratch)
        scratch *= 1.0 - SQUARES
        square += scratch
        np.sqrt(square, out=scratch)
        scratch += SMALLEST
        np.divide(mean, scratch, out=scratch)
        scratch *= rates
        unbiased = math.sqrt(1.0 - SQUARES ** (step + 1)) / (1.0 - MOMENTUM ** (step + 1))
        scratch *= learning_rate * _schedule((step + 1) / n_steps) * unbiased
        points -= scratch
    return Networks(layers=tuple(layer.copy() for layer in layers))


def minibatches(
    inputs: NDArray[np.floating],
    targets: NDArray[np.floating],
    row_weights: NDArray[np.floating],
    size: int,
    rng: np.random.Generator,
) -> Iterator[Batch]:
    """Endless minibatches of rows in memory, in another random order every epoch."""
    with_constant = np.column_stack([np.ones(len(inputs)), inputs]).astype(np.float32)
    targets, row_weights = targets.astype(np.float32), row_weights.astype(np.float32)
    while True:
        order = rng.permutation(len(inputs))
        for begin in range(0, len(order) - size + 1, size):
            rows = order[begin : begin + size]
            yield with_constant[rows], targets[rows], row_weights[:, rows]


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


def _flat(layers: list[Single]) -> tuple[Single, list[Single]]:
    """Weights of all layers as (R, P), and the layers as views of it."""
    flat = np.concatenate([layer.reshape(len(layer), -1) for layer in layers], axis=1)
    views, end = [], 0
    for layer in layers:
        begin, end = end, end + layer[0].size
        views.append(flat[:, begin:end].reshape(layer.shape))
    return flat, views
