"""Counts of an exposure e: y has the mean mu = e exp(z) and the variance mu + alpha mu².

With r = 1 / alpha and x = z + log e this is the negative binomial (NB2),

    -log p(y | z) = (y + r) log(1 + alpha e^x) - y x + constant,

whose derivative is r sigmoid(x + log alpha) - y sigmoid(-x - log alpha). Both stay finite for every
finite z, and the derivative is between -y and r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bowtienet._arrays import Array, namespace, special
from bowtienet.outcomes.outcome import Outcome

SMALLEST_DISPERSION = 1e-9
"""Stands in for smaller ones: Poisson noise, and slopes that single precision can hold."""


@dataclass(frozen=True, kw_only=True)
class Counts(Outcome):
    """Targets (n, 1) that are counts, or (n, 2) with logs of exposures; z is the log of the rate.

    It is for ordinary networks, and has no parabola.
    """

    dispersion: float = 0.2
    """alpha, held fixed; 0 is a Poisson distribution."""

    name: ClassVar[str] = "counts"
    has_noise: ClassVar[bool] = False

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """(y + r) log(1 + alpha e^x) - y x, with its derivative."""
        xp = namespace(outputs)
        dispersion = max(self.dispersion, SMALLEST_DISPERSION)
        count, size = targets[..., :1], 1.0 / dispersion
        x = outputs + _log_exposure(targets)
        shifted = x + math.log(dispersion)
        loss = (count + size) * xp.logaddexp(xp.zeros_like(x), shifted) - count * x
        # Not (y + r) sigmoid(.) - y, which loses the digits of r next to large counts.
        slope = size * special("expit", shifted) - count * special("expit", -shifted)
        return loss[..., 0], slope

    def working_targets(self, targets: Array) -> Array:
        """log((y + ½) / (e + ½/u)) with u the mean rate, near log u for rows of little exposure."""
        count, logs = targets[:, :1], _log_exposure(targets)
        largest = np.max(logs)  # Exposures may be on any scale.
        exposure = np.exp(logs - largest) * np.ones_like(count)
        rate = (np.sum(count) + 0.5) / np.sum(exposure)
        return np.log(count + 0.5) - np.log(exposure + 0.5 / rate) - largest


def _log_exposure(targets: Array) -> Array:
    """Log e (..., n, 1), zeros where no exposure is given."""
    return targets[..., 1:] if targets.shape[-1] > 1 else 0.0 * targets
