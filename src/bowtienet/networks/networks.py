"""R ReLU networks of one architecture side by side: weights, start, outputs.

Every layer has its weights (R, D, K+1), bias first, as the bow tie networks have; activations stand
as (R, D, n), so that the first layer of all networks is one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Single = NDArray[np.float32]

OUTPUT_SIZE = 0.1
"""Of the output weights at the start, over the root of the number of units."""


@dataclass(frozen=True, kw_only=True)
class Networks:
    """R networks; the last layer is the output."""

    layers: tuple[Single, ...]
    """Weights (R, D, K+1) of each layer."""


def random_networks(
    rng: np.random.Generator,
    inputs: NDArray[np.floating],
    hidden: Sequence[int],
    n_outputs: int,
    count: int,
) -> Networks:
    """Where training starts: every unit bends at a row, and outputs are near zero.

    Hidden weights are N(0, 1 / mean |a|²) for the activations a of the layer below, and the bias
    puts the kink at one of them.
    """
    layers: list[Single] = []
    values = np.broadcast_to(inputs.T.astype(np.float32), (count, inputs.shape[1], len(inputs)))
    for width in hidden:
        # Of a table that says nothing all are zero.
        size = math.sqrt(float(np.mean(np.sum(values**2, axis=1)))) or 1.0
        weights = rng.normal(0.0, 1.0 / size, (count, width, values.shape[1]))
        at = rng.integers(0, values.shape[2], (count, width))
        rows = np.take_along_axis(values, at[:, None, :], axis=2)
        bias = -np.einsum("rdk,rkd->rd", weights, rows)
        layers.append(np.concatenate([bias[:, :, None], weights], axis=2).astype(np.float32))
        values = np.maximum(preactivations(layers[-1], values), 0.0)
    width = values.shape[1]
    output = rng.normal(0.0, OUTPUT_SIZE / math.sqrt(width), (count, n_outputs, width))
    bias = np.zeros((count, n_outputs, 1))
    layers.append(np.concatenate([bias, output], axis=2).astype(np.float32))
    return Networks(layers=tuple(layers))


def preactivations(weights: Single, below: Single) -> Single:
    """z (R, D, n) of a layer from the activations (R, K, n) of the layer below."""
    return np.asarray(weights[:, :, 1:] @ below + weights[:, :, :1])


def outputs(networks: Networks, inputs: NDArray[np.floating]) -> Single:
    """Outputs (R, n, D_out) for inputs (n, K)."""
    values = inputs.T.astype(np.float32)[None]
    for layer in networks.layers[:-1]:
        values = np.maximum(preactivations(layer, values), 0.0)
    return np.asarray(np.swapaxes(preactivations(networks.layers[-1], values), 1, 2))
