"""The paper's toy data: a curve in one input, and a second input that has no part in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NOISE_VARIANCE = 0.5


def toy_function(x: Floats) -> Floats:
    """f(x) = 0.1 x² + 10 sin(x), the mean of the target at a first input of x."""
    return 0.1 * x**2 + 10.0 * np.sin(x)


def simulate_toy(n_rows: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Inputs (n, 2), uniform on [-2, 2], and targets (n,) with noise of variance 0.5.

    Examples
    --------
    >>> inputs, targets = simulate_toy(300, np.random.default_rng(0))
    >>> inputs.shape, targets.shape
    ((300, 2), (300,))
    """
    inputs = rng.uniform(-2.0, 2.0, size=(n_rows, 2))
    noise = rng.normal(0.0, np.sqrt(NOISE_VARIANCE), size=n_rows)
    return inputs, toy_function(inputs[:, 0]) + noise
