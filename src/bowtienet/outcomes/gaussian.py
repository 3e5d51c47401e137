"""y ~ N(z, eta²), the paper's: p = 1, k = y.

    log p(y | z) = -½ log 2pi eta² - ½ (y - z)² / eta²

The engine adds the terms in log eta² and y², which follow from sums over the rows.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bowtienet._arrays import Array, namespace
from bowtienet.outcomes.outcome import Outcome, RowTerms


class Gaussian(Outcome):
    """Continuous targets with one noise variance for each output."""

    name: ClassVar[str] = "gaussian"
    has_noise: ClassVar[bool] = True
    by_row: ClassVar[bool] = False

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """p = 1, k = y."""
        ones = namespace(mean).ones_like(mean)
        return RowTerms(
            precision=ones,
            linear=targets * ones,
            constant=0.0 * ones[..., 0],
            parameter=mean[..., :0],
        )

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """½ Σ_d (z - y)²: noise of variance one."""
        residuals = outputs - targets
        return 0.5 * namespace(outputs).sum(residuals * residuals, axis=-1), residuals

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """z + eta e."""
        return rng.normal(outputs, np.sqrt(noise_variance))


GAUSSIAN = Gaussian()
"""The outcome of models that name no other."""
