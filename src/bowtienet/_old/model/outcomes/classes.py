"""P(y = c) = sigmoid(z_c) / Σ_j sigmoid(z_j): C classes and as many outputs.

The logistic softmax (Galy-Fajou, Wenzel, Donner and Opper, 2020) is conjugate after three
augmentations: 1 / s = ∫ e^{-lambda s} dlambda for the sum s, Poisson variables n_j for each

    e^{-lambda sigmoid(z_j)} = e^{-lambda} Σ_n lambda^n sigmoid(-z_j)^n / n!,

and omega_j ~ PG(y_j + n_j, A_j).
With A_j² = E[z_j²], q(lambda) = Gamma(alpha, C) and q(n_j) = Poisson(g_j),

    g_j = e^{psi(alpha)} / C · e^{-E[z_j]/2} / (2 cosh(A_j/2)),     alpha = 1 + Σ_j g_j,

the second of which is solved for alpha; then p_j = (y_j + g_j) tanh(A_j/2) / (2 A_j) and
k_j = ½ (y_j - g_j).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bowtienet._old._arrays import Array, like, namespace, special, transpose
from bowtienet._old.distributions import polya_gamma
from bowtienet._old.model.outcomes.binary import (
    START_SLOPE,
    log_two_cosh_half,
    softplus_and_sigmoid,
)
from bowtienet._old.model.outcomes.outcome import Outcome, RowTerms

_STEPS = 8
"""For alpha: the error falls at least tenfold with each, from a start that is exact for large
and nearly for small ones."""


@dataclass(frozen=True, kw_only=True)
class Classes(Outcome):
    """Targets (n, 1) that are numbers of classes, 0 to C - 1."""

    n_classes: int

    name: ClassVar[str] = "classes"
    has_noise: ClassVar[bool] = False
    by_row: ClassVar[bool] = True

    def n_columns(self, n_outputs: int) -> int:
        """One: the number of the class."""
        return 1

    def n_outputs(self, n_columns: int) -> int:
        """One for each class."""
        return self.n_classes

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """p = (y + g) E[omega of one], k = ½ (y - g)."""
        xp = namespace(mean)
        own = self.indicators(targets, mean)
        tilt, count = xp.sqrt(square), mean.shape[-1]
        log_size = log_two_cosh_half(tilt)
        log_against = -0.5 * mean - log_size
        # 1 - mean e^{...} may be as small as rounding: rows whose outputs are all far below zero.
        against = xp.mean(xp.exp(log_against), axis=-1, keepdims=True)
        rest = xp.maximum(1.0 - against, xp.full_like(against, float(xp.finfo(mean.dtype).eps)))
        shape = (1.0 - 0.5 * against) / rest
        for _ in range(_STEPS):
            miss = shape - 1.0 - xp.exp(special("digamma", shape)) * against
            shape = xp.maximum(shape - miss / rest, xp.ones_like(shape))
        log_scale = special("digamma", shape) - math.log(count)  # E[log lambda]
        log_expected = log_scale + log_against
        expected = xp.exp(log_expected)
        precision = (own + expected) * polya_gamma.mean(tilt)
        # E[log Po(n | lambda) - log Po(n | g)], where E[log lambda] - log g = -log_against.
        helpers = expected * (1.0 - log_against) - shape / count
        entropy = shape - math.log(count) + special("gammaln", shape)
        entropy = entropy + (1.0 - shape) * special("digamma", shape)
        constant = helpers + 0.5 * precision * square - (own + expected) * log_size
        return RowTerms(
            precision=precision,
            linear=0.5 * (own - expected),
            constant=xp.sum(constant, axis=-1) + entropy[..., 0],
            own=mean[..., :0],
        )

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """-log P(y), with the derivative (P_j - y_j) sigmoid(-z_j)."""
        xp = namespace(outputs)
        own = self.indicators(targets, outputs)
        _, minus_logs, _, lower = softplus_and_sigmoid(outputs)
        least = xp.min(minus_logs, axis=-1, keepdims=True)
        minus_logs -= least
        chances = xp.exp(-minus_logs)
        total = xp.sum(chances, axis=-1, keepdims=True)
        minus_logs *= own
        chances /= total
        chances -= own
        chances *= lower
        return xp.log(total[..., 0]) + xp.sum(minus_logs, axis=-1), chances

    def working_targets(self, targets: Array) -> Array:
        """2 for the class of the row, -2 for the others."""
        return START_SLOPE * (2.0 * self.indicators(targets, targets) - 1.0)

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Numbers of classes."""
        chances = special("expit", outputs)
        bounds = np.cumsum(chances, axis=1)
        level = rng.random((len(outputs), 1)) * bounds[:, -1:]
        return np.sum(level > bounds, axis=1, keepdims=True).astype(float)

    def indicators(self, targets: Array, reference: Array) -> Array:
        """y (n, C): 1 for the class of the row, 0 for the others."""
        numbers = like(targets, np.arange(self.n_classes)[:, None])
        # Class after class in memory, as networks side by side keep their outputs.
        return transpose(
            namespace(reference).astype(numbers == transpose(targets), reference.dtype)
        )
