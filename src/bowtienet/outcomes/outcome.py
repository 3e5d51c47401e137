"""What every likelihood tells the engine.

Given q of the output z of a row, and with the outcome's own local factors at their best,

    E[log p(y | z)] >= Σ_d c_d (k_d E[z_d] - ½ p_d E[z_d²]) + constant

with p and k of every row and output, and c = E[1/eta²] of the output layer for outcomes with a
noise variance, 1 for the others. For the engine a row is then like one of Gaussian noise with
precision c p and target k / p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bowtienet._arrays import Array


@dataclass(frozen=True, kw_only=True)
class RowTerms:
    """The parabola of n rows and D outputs, for M networks on a leading axis."""

    precision: Array
    """p (M, n, D)."""
    linear: Array
    """k (M, n, D)."""
    constant: Array
    """What the bound has apart from the parabola, (M, n)."""
    parameter: Array
    """(M, n, Q): numbers whose sums over rows `renewed` asks for; Q may be 0."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A likelihood; a frozen dataclass whose fields are its own parameters.

    A parameter that EM moves is a number, or an array (M,) for M networks.
    """

    name: ClassVar[str]
    has_noise: ClassVar[bool]
    """Whether the output layer has a noise variance eta²."""
    by_row: ClassVar[bool]
    """Whether p differs between rows. If not it is 1, and the last hidden layer's covariance is
    shared by all rows."""

    @property
    def variance_ratio(self) -> Array | float:
        """Var[y | z] over eta², where there is a noise variance; for M networks (M, 1, 1)."""
        return 1.0

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """The parabola for E[z] and E[z²] (M, n, D), with E[1/eta²] (M, 1, D) of the output."""
        raise NotImplementedError

    def renewed(self, parameter: Array, count: Array) -> Outcome:
        """The outcome with parameters that raise the bound, from sums over rows (M, Q).

        `count` is the sum of the row weights. An outcome without parameters returns itself.
        """
        return self

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """-log p(y | z) but for a constant (..., n), and its derivative by z (..., n, D)."""
        raise NotImplementedError

    def working_targets(self, targets: Array) -> Array:
        """Outputs (n, D) whose linear fit is a fair start; the targets by default."""
        return targets

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Targets drawn for outputs z (n, D), with eta² (D,) where there is a noise variance."""
        raise NotImplementedError
