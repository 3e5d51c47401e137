"""What every likelihood tells the engine.

Given q of the output z of a row, and with the outcome's own local factors at their best,

    E[log p(y | z)] >= Σ_d c_d (k_d E[z_d] - ½ p_d E[z_d²]) + constant

with p and k of every row and output, and c = E[1/eta²] of the output layer for outcomes with a
noise variance, 1 for the others. For the engine a row is then like one of Gaussian noise with
precision c p and target k / p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bowtienet._old._arrays import Array, is_number, like, namespace


@dataclass(frozen=True, kw_only=True)
class RowTerms:
    """The parabola of n rows and D outputs; networks side by side may stand on leading axes."""

    precision: Array
    """p (..., n, D)."""
    linear: Array
    """k (..., n, D)."""
    constant: Array
    """What the bound has beside the parabola, (..., n)."""
    own: Array
    """(..., n, Q): numbers whose sums over rows `renewed` asks for; there may be none."""
    slope: tuple[Array, Array] | None = None
    """Derivatives of p and k by the outcome's `linear_parameter`, (..., n, D), if it has one."""


class Outcome:
    """A likelihood; a frozen dataclass whose fields are its own parameters.

    A parameter may be an array (M,), one for each of M networks side by side.
    """

    name: ClassVar[str]
    has_noise: ClassVar[bool]
    """Whether the output layer has a noise variance eta²."""
    by_row: ClassVar[bool]
    """Whether p differs between rows. If not it is 1, and the last hidden layer's covariance is
    shared by all rows."""

    @property
    def linear_parameter(self) -> Array | float | None:
        """The parameter that p and k are linear in: memories of them move along with it."""
        return None

    @property
    def variance_ratio(self) -> float:
        """Var[y | z] over eta², where there is a noise variance."""
        return 1.0

    def n_columns(self, n_outputs: int) -> int:
        """Columns of the targets for a network with so many outputs; one for each by default."""
        return n_outputs

    def n_outputs(self, n_columns: int) -> int:
        """Outputs of a network for so many columns of targets; one for each by default."""
        return n_columns

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """The parabola for E[z] and E[z²] (..., n, D), with E[1/eta²] (..., 1, D) of the output."""
        raise NotImplementedError

    def renewed(self, own: Array, slope: Array | None, count: Array) -> Outcome:
        """The outcome with parameters that raise the bound; itself, if it has none.

        `own` (..., Q) and `slope` (...) are sums over rows, the latter of what `RowTerms.slope`
        makes of the bound; `count` (...) is the sum of the row weights.
        """
        return self

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """-log p(y | z) but for a constant (..., n), and its derivative by z (..., n, D)."""
        raise NotImplementedError

    def log_likelihood(self, targets: Array, outputs: Array) -> Array:
        """log p(y | z) (..., n), complete; minus the loss, if that is."""
        return -self.loss(targets, outputs)[0]

    def working_targets(self, targets: Array) -> Array:
        """Outputs (n, D) that a linear fit to would be a fair start; the targets by default."""
        return targets

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Targets drawn for outputs z (n, D), with eta² (D,) where there is a noise variance."""
        raise NotImplementedError


def beside(parameter: Array | float, reference: Array) -> Any:
    """A parameter, one number or (M,), to be broadcast against (..., n, D)."""
    if is_number(parameter):
        return float(parameter)
    if isinstance(parameter, np.ndarray):
        parameter = like(reference, parameter)
    xp = namespace(reference)
    return xp.astype(parameter, reference.dtype, copy=False)[..., None, None]
