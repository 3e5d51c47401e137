"""Adam for many functions of as many variables side by side, on noisy gradients.

    m <- m + (1 - β1) (g - m),   v <- v + (1 - β2) (g² - v),
    x <- x - l_t (m / (1 - β1^t)) / (sqrt(v / (1 - β2^t)) + ε)

(Kingma and Ba, 2015), in single precision. The learning rate l_t rises along a straight line for a
small part of the way and then falls along half a cosine to zero, so that the last points are not
noisy ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]

MEAN_MEMORY = 0.9
SQUARE_MEMORY = 0.99
"""A fit has some thousand steps: the usual 0.999 would remember the first ones too long."""
LEAST_ROOT = 1e-6
"""ε: gradients below it are rounding, where losses are of order one, and give no whole steps."""
WARM_UP = 0.05
"""Part of the way on which the learning rate rises."""


@dataclass(frozen=True, kw_only=True)
class AdamState:
    """Points and running means; all (R, P), written in place."""

    points: Singles
    mean: Singles
    square: Singles


def begin(start: NDArray[np.float64]) -> AdamState:
    """A state at points (R, P) that has seen no gradient."""
    points = start.astype(np.float32)
    return AdamState(points=points, mean=np.zeros_like(points), square=np.zeros_like(points))


def step(state: AdamState, gradients: Singles, rates: Singles, count: int) -> None:
    """Step number `count` = 1, 2, ... with learning rates (R, P); gradients are overwritten."""
    state.mean[...] *= np.float32(MEAN_MEMORY)
    state.mean[...] += np.float32(1.0 - MEAN_MEMORY) * gradients
    np.multiply(gradients, gradients, out=gradients)
    gradients *= np.float32(1.0 - SQUARE_MEMORY)
    state.square[...] *= np.float32(SQUARE_MEMORY)
    state.square[...] += gradients
    root = np.sqrt(state.square, out=gradients)
    root += np.float32(LEAST_ROOT)
    np.divide(state.mean, root, out=root)
    correction = math.sqrt(1.0 - SQUARE_MEMORY**count) / (1.0 - MEAN_MEMORY**count)
    root *= np.float32(correction) * rates
    state.points[...] -= root


def fading(progress: NDArray[np.float64]) -> Singles:
    """Learning rates at `progress` in [0, 1], as a part of the highest."""
    falling = 0.5 * (1.0 + np.cos(np.pi * (progress - WARM_UP) / (1.0 - WARM_UP)))
    return np.where(progress < WARM_UP, progress / WARM_UP, falling).astype(np.float32)
