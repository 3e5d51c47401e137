"""Classes, conjugate by Polya-Gamma variables: two with one output, several with an output each.

Two classes, P(y = 1) = sigmoid(z). With omega ~ PG(1, A), A² = E[z²], as for the gates,

    E[log p(y | z)] >= (y - ½) E[z] - ½ E[omega] (E[z²] - A²) - log 2 cosh(A/2),

so p = E[omega] = tanh(A/2) / (2A) and k = y - ½.

C classes, P(y = c) = sigmoid(z_c) / Σ_j sigmoid(z_j): the logistic softmax (Galy-Fajou, Wenzel,
Donner and Opper, 2020) is conjugate after three augmentations, 1 / s = ∫ e^{-lambda s} dlambda for
the sum s, Poisson variables n_j for each

    e^{-lambda sigmoid(z_j)} = e^{-lambda} Σ_n lambda^n sigmoid(-z_j)^n / n!,

and omega_j ~ PG(y_j + n_j, A_j). With A_j² = E[z_j²], q(lambda) = Gamma(alpha, C) and
q(n_j) = Poisson(g_j),

    g_j = e^{psi(alpha)} / C · e^{-E[z_j]/2} / (2 cosh(A_j/2)),     alpha = 1 + Σ_j g_j,

the second of which is solved for alpha; then p_j = (y_j + g_j) tanh(A_j/2) / (2 A_j) and
k_j = ½ (y_j - g_j).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from bowtienet._arrays import Array, namespace, special, transpose
from bowtienet.distributions import polya_gamma
from bowtienet.outcomes.outcome import Outcome, RowTerms


class Binary(Outcome):
    """Targets (n, 1) of zeros and ones; the output is the log odds of one."""

    name: ClassVar[str] = "binary"
    has_noise: ClassVar[bool] = False
    by_row: ClassVar[bool] = True

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """p = E[omega], k = y - ½."""
        xp = namespace(mean)
        tilt = xp.sqrt(square)
        precision = polya_gamma.mean(tilt)
        constant = 0.5 * precision * square - _log_two_cosh_half(tilt)
        return RowTerms(
            precision=precision,
            linear=targets - 0.5 + xp.zeros_like(mean),
            constant=xp.sum(constant, axis=-1),
            parameter=mean[..., :0],
        )

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """log(1 + e^z) - y z, with the derivative sigmoid(z) - y."""
        xp = namespace(outputs)
        # The sign that makes either class "one": log(1 + e^{±z}) loses no digit.
        against = (1.0 - 2.0 * targets) * outputs
        loss = xp.logaddexp(xp.zeros_like(against), against)
        return xp.sum(loss, axis=-1), special("expit", outputs) - targets

    def working_targets(self, targets: Array) -> Array:
        """±2: classes are fairly sure."""
        return 4.0 * targets - 2.0

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """1 with probability sigmoid(z)."""
        return (rng.random(outputs.shape) < expit(outputs)).astype(float)


@dataclass(frozen=True, kw_only=True)
class _OutputByClass(Outcome):
    """Targets (n, 1) that are numbers of classes, 0 to C - 1, with C outputs."""

    n_classes: int

    has_noise: ClassVar[bool] = False

    def working_targets(self, targets: Array) -> Array:
        """2 for the class of the row, -2 for the others."""
        return 4.0 * self.indicators(targets) - 2.0

    def indicators(self, targets: Array) -> Array:
        """y (n, C): 1 for the class of the row, 0 for the others."""
        # Class after class in memory, the fast order for the sums over rows.
        return transpose((np.arange(self.n_classes)[:, None] == transpose(targets)) * 1.0)


class Classes(_OutputByClass):
    """The logistic softmax, P(y = c) = sigmoid(z_c) / Σ_j sigmoid(z_j)."""

    name: ClassVar[str] = "classes"
    by_row: ClassVar[bool] = True

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """p = (y + g) tanh(A/2) / (2A), k = ½ (y - g)."""
        xp = namespace(mean)
        indicators = self.indicators(targets)
        tilt, count = xp.sqrt(square), mean.shape[-1]
        log_size = _log_two_cosh_half(tilt)
        log_against = -0.5 * mean - log_size
        # 1 - mean e^{...} may be as small as rounding: rows whose outputs are all far below zero.
        against = xp.mean(xp.exp(log_against), axis=-1, keepdims=True)
        rest = xp.maximum(1.0 - against, xp.full_like(against, float(xp.finfo(mean.dtype).eps)))
        shape = (1.0 - 0.5 * against) / rest
        # The error falls at least tenfold with each step, from a start that is exact for large and
        # nearly for small ones.
        for _ in range(8):
            miss = shape - 1.0 - xp.exp(special("digamma", shape)) * against
            shape = xp.maximum(shape - miss / rest, xp.ones_like(shape))
        log_scale = special("digamma", shape) - math.log(count)  # E[log lambda]
        log_expected = log_scale + log_against
        expected = xp.exp(log_expected)
        precision = (indicators + expected) * polya_gamma.mean(tilt)
        # E[log Po(n | lambda) - log Po(n | g)], where E[log lambda] - log g = -log_against.
        helpers = expected * (1.0 - log_against) - shape / count
        entropy = shape - math.log(count) + special("gammaln", shape)
        entropy = entropy + (1.0 - shape) * special("digamma", shape)
        constant = helpers + 0.5 * precision * square - (indicators + expected) * log_size
        return RowTerms(
            precision=precision,
            linear=0.5 * (indicators - expected),
            constant=xp.sum(constant, axis=-1) + entropy[..., 0],
            parameter=mean[..., :0],
        )

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """-log P(y), with the derivative (P_j - y_j) sigmoid(-z_j)."""
        xp = namespace(outputs)
        indicators = xp.astype(self.indicators(targets), outputs.dtype)
        logs = -xp.logaddexp(xp.zeros_like(outputs), -outputs)  # log sigmoid(z)
        peak = xp.max(logs, axis=-1, keepdims=True)
        chances = xp.exp(logs - peak)
        total = xp.sum(chances, axis=-1, keepdims=True)
        loss = xp.log(total[..., 0]) + peak[..., 0] - xp.sum(indicators * logs, axis=-1)
        return loss, (chances / total - indicators) * special("expit", -outputs)

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Numbers of classes."""
        bounds = np.cumsum(expit(outputs), axis=1)
        level = rng.random((len(outputs), 1)) * bounds[:, -1:]
        return np.sum(level > bounds, axis=1, keepdims=True).astype(float)


class Softmax(_OutputByClass):
    """The softmax of ordinary networks, P(y = c) = e^{z_c} / Σ_j e^{z_j}.

    It has no parabola: `Classes` stands in for it in the engine.
    """

    name: ClassVar[str] = "softmax"

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """log Σ_j e^{z_j} - z_y, with the derivative P - Y."""
        xp = namespace(outputs)
        indicators = xp.astype(self.indicators(targets), outputs.dtype)
        below = outputs - xp.max(outputs, axis=-1, keepdims=True)
        chances = xp.exp(below)
        total = xp.sum(chances, axis=-1, keepdims=True)
        loss = xp.log(total[..., 0]) - xp.sum(indicators * below, axis=-1)
        return loss, chances / total - indicators


def _log_two_cosh_half(x: Array) -> Array:
    """log(2 cosh(x/2)) = |x|/2 + log(1 + e^{-|x|}), which cannot overflow."""
    xp = namespace(x)
    size = xp.abs(x)
    return 0.5 * size + xp.log1p(xp.exp(-size))
