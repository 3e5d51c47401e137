"""y ~ NB(r, sigmoid(z + o)): counts with mean m = r e^{z + o} and variance m + m² / r.

o is a constant, b, and the log of the row's exposure e. With omega ~ PG(y + r, A),
A² = E[(z + o)²] and u = tanh(A/2) / (2A),

    p = (y + r) u,   k = ½ (y - r) - p o,

and the dispersion r is renewed by EM: with L ~ CRT(y, r), the tables of a Chinese restaurant, and
E[L] = r (psi(y + r) - psi(r)), the bound is E[L] log r + r s + ..., so r = Σ E[L] / -s, where

    s = Σ -½ E[z + o] - log 2 cosh(A/2) - ½ u (E[(z + o)²] - A²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bowtienet._old._arrays import Array, namespace, special, to_numpy
from bowtienet._old.distributions import polya_gamma
from bowtienet._old.model.outcomes.binary import log_two_cosh_half, softplus_and_sigmoid
from bowtienet._old.model.outcomes.outcome import Outcome, RowTerms, beside

START_DISPERSIONS = (0.1, 1e3)
"""Dispersions that fits may begin with."""
DISPERSIONS = (1e-2, 1e4)
"""Dispersions that EM looks at: the last is Poisson noise but for counts of many thousands."""


@dataclass(frozen=True, kw_only=True)
class Counts(Outcome):
    """Targets (n, 2): whole numbers from 0, and logs of the exposures."""

    dispersion: Array | float = 1.0
    """r."""
    offset: Array | float = 0.0
    """b: z = 0 is a mean count of r e^b for exposure 1."""

    name: ClassVar[str] = "counts"
    has_noise: ClassVar[bool] = False
    by_row: ClassVar[bool] = True

    @property
    def linear_parameter(self) -> Array | float:
        """r."""
        return self.dispersion

    def n_columns(self, n_outputs: int) -> int:
        """Two: the count, and the log of the exposure."""
        return 2

    def n_outputs(self, n_columns: int) -> int:
        """One: the log of the rate but for a constant."""
        return 1

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """p = (y + r) u, k = ½ (y - r) - p o."""
        xp = namespace(mean)
        r, shift = beside(self.dispersion, mean), self._shift(targets, mean)
        count = targets[..., :1] + xp.zeros_like(mean)
        tilt_squared = square + 2.0 * shift * mean + shift * shift
        tilt_squared = xp.maximum(tilt_squared, xp.zeros_like(tilt_squared))
        tilt = xp.sqrt(tilt_squared)
        unit = polya_gamma.mean(tilt)
        precision, size = (count + r) * unit, log_two_cosh_half(tilt)
        beyond = 0.5 * unit * (tilt_squared - shift * shift) - size
        constant = self._log_constant(count) + 0.5 * (count - r) * shift + (count + r) * beyond
        tables = r * (special("digamma", count + r) - special("digamma", r + xp.zeros_like(mean)))
        # s but for what is linear and quadratic in z.
        rest = beyond - 0.5 * shift
        return RowTerms(
            precision=precision,
            linear=0.5 * (count - r) - precision * shift,
            constant=constant[..., 0],
            own=xp.concat([tables, rest], axis=-1),
            slope=(unit, -0.5 - unit * shift),
        )

    def renewed(self, own: Array, slope: Array | None, count: Array) -> Counts:
        """r = Σ E[L] / -s."""
        sums = np.asarray(to_numpy(own), dtype=np.float64)
        steepness = -(sums[..., 1] + np.asarray(to_numpy(slope), dtype=np.float64))
        found = np.clip(sums[..., 0] / np.maximum(steepness, 1e-300), *DISPERSIONS)
        return replace(self, dispersion=found if found.ndim else float(found))

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """r log(1 + e^x) + y log(1 + e^{-x}) for x = z + o.

        The derivative is r sigmoid(x) - y sigmoid(-x). Counts of millions lose no digits in it.
        """
        r, count = beside(self.dispersion, outputs), targets[..., :1]
        above, below, upper, lower = softplus_and_sigmoid(outputs + self._shift(targets, outputs))
        return (r * above + count * below)[..., 0], r * upper - count * lower

    def log_likelihood(self, targets: Array, outputs: Array) -> Array:
        """log NB(y)."""
        count = targets[..., :1] + 0.0 * outputs
        return self._log_constant(count)[..., 0] - self.loss(targets, outputs)[0]

    def working_targets(self, targets: Array) -> Array:
        """log((y + ½) / (m + ½)), where m is the mean count for z = 0.

        It is near zero for rows with little exposure: they know nothing of the rate.
        """
        xp = namespace(targets)
        shift = targets[..., 1:] + float(np.mean(self.offset))
        usual = float(np.mean(self.dispersion)) * xp.exp(shift)
        return xp.log(targets[..., :1] + 0.5) - xp.log(usual + 0.5)

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Poisson counts with gamma rates, for an exposure of one."""
        shift = float(np.mean(self.offset))
        rates = rng.gamma(self.dispersion, np.exp(outputs + shift))
        return np.concatenate([rng.poisson(rates), np.zeros_like(outputs)], axis=1)

    def _shift(self, targets: Array, reference: Array) -> Array:
        """o."""
        return targets[..., 1:] + beside(self.offset, reference)

    def _log_constant(self, count: Array) -> Array:
        """log Γ(y + r) - log Γ(r) - log y!."""
        xp = namespace(count)
        r = beside(self.dispersion, count) + xp.zeros_like(count)
        return (
            special("gammaln", count + r) - special("gammaln", r) - special("gammaln", count + 1.0)
        )


def start_counts(targets: Array, row_weights: Array) -> Counts:
    """Counts for which z = 0 is the mean rate, with a dispersion by moments.

        u = Σ w y / Σ w e,    r = Σ w (u e)² / Σ w ((y - u e)² - u e),    b = log(u / r)

    Rows with little exposure, whose rates y / e are anything, weigh little in it.
    """
    y, logs = np.asarray(to_numpy(targets), dtype=np.float64).T
    w = np.asarray(to_numpy(row_weights), dtype=np.float64)
    # Logs relative to the largest: exposures may be on any scale.
    largest = float(np.max(logs[w > 0.0], initial=-math.inf))
    if not math.isfinite(largest):
        return Counts()
    exposures = np.where(w > 0.0, np.exp(np.minimum(logs - largest, 0.0)), 0.0)
    # Half a count: a table of zeros has a rate as well.
    rate = max(float(w @ y), 0.5 * float(np.mean(w[w > 0.0]))) / float(w @ exposures)
    means = rate * exposures
    beyond = float(w @ ((y - means) ** 2 - means))
    least, most = START_DISPERSIONS
    squares = float(w @ means**2)
    dispersion = float(np.clip(squares / beyond, least, most)) if beyond > 0.0 else most
    return Counts(dispersion=dispersion, offset=math.log(rate) - math.log(dispersion) - largest)


def log_rates(outcome: Outcome, outputs: Array) -> Array:
    """Logs of mean counts for exposure 1 from outputs (n, D) of counts; others as they are."""
    if not isinstance(outcome, Counts):
        return outputs
    return outputs + float(outcome.offset) + math.log(float(outcome.dispersion))
