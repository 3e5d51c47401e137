"""Networks, targets and losses that tests of several files share."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np

from bowtienet.outcomes import GAUSSIAN, Binary, Classes, Outcome, StudentT

R = 3
"""Networks side by side."""
CASES = [
    ((), GAUSSIAN),
    ((4,), GAUSSIAN),
    ((5, 3), StudentT(freedom=3.3)),
    ((4,), StudentT(freedom=5.0)),
    ((4,), Binary()),
    ((5, 3), Classes(n_classes=3)),
    ((4,), Classes(n_classes=4)),
    ((4, 2, 3), Binary()),
]


def n_outputs_of(outcome: Outcome) -> int:
    return outcome.n_classes if isinstance(outcome, Classes) else 1 if outcome == Binary() else 2


def random_layers(
    rng: np.random.Generator, widths: tuple[int, ...], count: int = R
) -> list[np.ndarray]:
    """In double precision, so that nothing hides behind rounding."""
    return [
        rng.normal(0.0, 0.8, size=(count, width, below + 1)) for below, width in pairwise(widths)
    ]


def random_targets(rng: np.random.Generator, outcome: Outcome, n: int) -> np.ndarray:
    if outcome.has_noise:
        return rng.normal(size=(n, n_outputs_of(outcome)))
    return rng.integers(0, max(n_outputs_of(outcome), 2), size=(n, 1)).astype(float)


def planted(rng: np.random.Generator, n: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-1.7, 1.7, size=(n, 2))
    return x, (np.sin(2.0 * x[:, :1]) + 0.5 * x[:, 1:]) + noise * rng.normal(size=(n, 1))


def loss_by_hand(outcome: Outcome, y: Any, z: Any) -> Any:
    """-log p(y | z) of rows, from the formulas and nothing of the library."""
    if isinstance(outcome, StudentT):
        width = 0.1 * outcome.freedom
        return jnp.sum(0.5 * width * jnp.log(1.0 + (y - z) ** 2 / width), axis=-1)
    if isinstance(outcome, Binary):
        chance = 1.0 / (1.0 + jnp.exp(-z[:, 0]))
        return -jnp.log(jnp.where(y[:, 0] == 1.0, chance, 1.0 - chance))
    if isinstance(outcome, Classes):
        each = 1.0 / (1.0 + jnp.exp(-z))
        chances = each / jnp.sum(each, axis=1, keepdims=True)
        return -jnp.log(jnp.take_along_axis(chances, y.astype(int), axis=1)[:, 0])
    return 0.5 * jnp.sum((y - z) ** 2, axis=-1)


def objective(layers: list[Any], x: Any, y: Any, weights: Any, outcome: Outcome) -> Any:
    """Σ c l / Σ c of a single network."""
    values = x
    for layer in layers[:-1]:
        values = jnp.maximum(layer[:, 0] + values @ layer[:, 1:].T, 0.0)
    z = layers[-1][:, 0] + values @ layers[-1][:, 1:].T
    return jnp.sum(weights * loss_by_hand(outcome, y, z)) / jnp.sum(weights)
