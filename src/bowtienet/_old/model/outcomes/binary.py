"""P(y = 1) = sigmoid(z): two classes and one output.

With omega ~ PG(1, A), A² = E[z²], as for the gates of hidden units,

    E[log p(y | z)] >= (y - ½) E[z] - ½ E[omega] (E[z²] - A²) - log 2 cosh(A/2),

so p = E[omega] = tanh(A/2) / (2A) and k = y - ½.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bowtienet._old._arrays import Array, namespace, special
from bowtienet._old.distributions import polya_gamma
from bowtienet._old.model.outcomes.outcome import Outcome, RowTerms

START_SLOPE = 2.0
"""Size of the outputs that networks start to learn: classes are fairly sure."""


@dataclass(frozen=True, kw_only=True)
class Binary(Outcome):
    """Targets (n, 1) of zeros and ones."""

    name: ClassVar[str] = "binary"
    has_noise: ClassVar[bool] = False
    by_row: ClassVar[bool] = True

    def n_columns(self, n_outputs: int) -> int:
        """One: the class, 0 or 1."""
        return 1

    def n_outputs(self, n_columns: int) -> int:
        """One: the log odds of the second class."""
        return 1

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """p = E[omega], k = y - ½."""
        xp = namespace(mean)
        tilt = xp.sqrt(square)
        precision = polya_gamma.mean(tilt)
        constant = 0.5 * precision * square - log_two_cosh_half(tilt)
        return RowTerms(
            precision=precision,
            linear=targets - 0.5 + xp.zeros_like(mean),
            constant=xp.sum(constant, axis=-1),
            own=mean[..., :0],
        )

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """log(1 + e^z) - y z, with the derivative sigmoid(z) - y."""
        xp = namespace(outputs)
        above, below, upper, _ = softplus_and_sigmoid(outputs)
        # For y = 1 and y = 0 one of the terms is exactly zero: no digit is lost.
        return xp.sum((1.0 - targets) * above + targets * below, axis=-1), upper - targets

    def working_targets(self, targets: Array) -> Array:
        """±2."""
        return START_SLOPE * (2.0 * targets - 1.0)

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """1 with probability sigmoid(z)."""
        return (rng.random(outputs.shape) < special("expit", outputs)).astype(float)


def log_two_cosh_half(x: Array) -> Array:
    """log(2 cosh(x/2)) = |x|/2 + log(1 + e^{-|x|}), which cannot overflow."""
    xp = namespace(x)
    size = xp.abs(x)
    return 0.5 * size + xp.log1p(xp.exp(-size))


def softplus_and_sigmoid(x: Array) -> tuple[Array, Array, Array, Array]:
    """log(1 + e^x), log(1 + e^{-x}), sigmoid(x) and sigmoid(-x), all to their last digits.

    One of a = e^{min(x, 0)} and b = e^{-max(x, 0)} is one, so a b = e^{-|x|}: nothing overflows.
    """
    xp = namespace(x)
    zero = xp.zeros_like(x)
    low, high = xp.minimum(x, zero), xp.maximum(x, zero)
    a, b = xp.exp(low), xp.exp(-high)
    small = a * b
    log = xp.log1p(small)
    # In place: memory for many outputs is slow to come by.
    small += 1.0
    a /= small
    b /= small
    high += log
    log -= low
    return high, log, a, b
