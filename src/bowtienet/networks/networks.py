"""R ReLU networks of one architecture side by side: weights, start, outputs.

Every layer has its weights (R, D, K+1), bias first, as the bow tie networks have; activations stand
as (R, D, n), so that the first layer of all networks is one matrix product. A network without
hidden layers is a linear function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import map_arrays

Single = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Networks:
    """R networks; the last layer is the output."""

    layers: tuple[Single, ...]
    """Weights (R, D, K+1) of each layer."""
    factors: Single | None = None
    """(R, K): penalty of the first layer's weights of each input, relative to the others'; None
    where all are alike."""


def count_of(networks: Networks) -> int:
    """R."""
    return len(networks.layers[0])


def take(networks: Networks, index: slice | NDArray[np.intp]) -> Networks:
    """Some of the networks."""
    chosen: Networks = map_arrays(lambda x: x[index], networks)
    return chosen


def concatenate(parts: Sequence[Networks]) -> Networks:
    """Networks of one architecture next to each other."""
    joined: Networks = map_arrays(lambda *x: np.concatenate(x), *parts)
    return joined


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
    first = inputs
    if len(inputs) > 5_000:  # more rows say nothing new and cost memory
        first = inputs[np.sort(rng.integers(0, len(inputs), 5_000))]
    values = np.broadcast_to(first.T.astype(np.float32), (count, first.shape[1], len(first)))
    for width in hidden:
        # Of a table that says nothing all are zero.
        size = math.sqrt(float(np.mean(np.sum(values[0] ** 2, axis=0)))) or 1.0
        weights = rng.normal(0.0, 1.0 / size, (count, width, values.shape[1]))
        at = rng.integers(0, values.shape[2], (count, width))
        rows = np.take_along_axis(values, at[:, None, :], axis=2)
        bias = -np.einsum("rdk,rkd->rd", weights, rows)
        layers.append(np.concatenate([bias[:, :, None], weights], axis=2).astype(np.float32))
        if len(layers) < len(hidden):
            values = np.maximum(preactivations(layers[-1], values), 0.0)
    width = hidden[-1] if hidden else values.shape[1]
    output = rng.normal(0.0, 0.1 / math.sqrt(width), (count, n_outputs, width))
    bias = np.zeros((count, n_outputs, 1))
    layers.append(np.concatenate([bias, output], axis=2).astype(np.float32))
    return Networks(layers=tuple(layers))


def preactivations(weights: Single, below: Single) -> Single:
    """z (R, D, n) of a layer from the activations (R, K, n) of the layer below."""
    return np.asarray(weights[:, :, 1:] @ below + weights[:, :, :1])


def outputs(networks: Networks, inputs: NDArray[np.floating]) -> Single:
    """Outputs (R, n, D_out) for inputs (n, K)."""
    # A linear function keeps the precision of its coefficients.
    values = inputs.T.astype(networks.layers[-1].dtype)[None]
    for layer in networks.layers[:-1]:
        values = preactivations(layer, values)
        np.maximum(values, 0.0, out=values)
    return np.asarray(np.swapaxes(preactivations(networks.layers[-1], values), 1, 2))
