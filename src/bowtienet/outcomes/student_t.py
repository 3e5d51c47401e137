"""y ~ t_nu(z, eta²): noise with heavy tails, so that outliers pull little.

y | lambda ~ N(z, eta² / lambda) with lambda ~ Gamma(nu/2, nu/2) for each row and output, so

    q(lambda) = Gamma(a, b),   a = ½ (nu + 1),   b = ½ (nu + E[1/eta²] E[(y - z)²]),

and p = E[lambda] = a / b, k = p y. The bound has, apart from the Gaussian terms with weights p,

    ½ E[log lambda] + E[log p(lambda) - log q(lambda)].

nu is found by EM: log(nu/2) + 1 - psi(nu/2) + mean(E[log lambda] - E[lambda]) = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma

from bowtienet._arrays import Array, is_number, namespace, special
from bowtienet.outcomes.outcome import Outcome, RowTerms


@dataclass(frozen=True, kw_only=True)
class StudentT(Outcome):
    """Continuous targets with outliers."""

    freedom: Array | float = 4.0
    """Degrees of freedom nu, which EM renews: a number, or (M,)."""

    name: ClassVar[str] = "student_t"
    has_noise: ClassVar[bool] = True
    by_row: ClassVar[bool] = True

    @property
    def variance_ratio(self) -> Array | float:
        """nu / (nu - 2), from three degrees of freedom on; below it that of three.

        It goes to infinity at two, which describes the tail and says little of the bulk.
        """
        freedom = np.maximum(self.freedom, 3.0)
        return _next_to_outputs(freedom / (freedom - 2.0))

    def row_terms(
        self, targets: Array, mean: Array, square: Array, noise_precision: Array | float
    ) -> RowTerms:
        """p = E[lambda], k = p y."""
        xp = namespace(mean)
        half = 0.5 * _next_to_outputs(self.freedom)
        squares = targets * targets - 2.0 * targets * mean + square
        # A square that is zero up to rounding may come out a little below zero.
        squares = noise_precision * xp.maximum(squares, xp.zeros_like(squares))
        shape, rate = half + 0.5, half + 0.5 * squares
        precision, log_rate, psi = shape / rate, xp.log(rate), special("digamma", shape)
        log_lambda = psi - log_rate
        entropy = shape - log_rate + special("gammaln", shape) + (1.0 - shape) * psi
        normalizer = special("gammaln", half) - half * namespace(half).log(half)
        prior = (half - 1.0) * log_lambda - half * precision - normalizer
        constant = xp.sum(0.5 * log_lambda + prior + entropy, axis=-1)
        return RowTerms(
            precision=precision,
            linear=precision * targets,
            constant=constant,
            parameter=xp.mean(log_lambda - precision, axis=-1, keepdims=True),
        )

    def renewed(self, parameter: Array, count: Array) -> StudentT:
        """nu by EM: below one there is no mean, above 200 no heavy tail."""
        sums = np.asarray(parameter)[..., 0] / count
        low, high = np.zeros(sums.shape), np.full(sums.shape, math.log(200.0))
        for _ in range(60):  # A bisection in log nu, to rounding.
            middle = 0.5 * (low + high)
            half = 0.5 * np.exp(middle)
            rising = np.log(half) + 1.0 - digamma(half) + sums > 0.0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        return replace(self, freedom=np.exp(0.5 * (low + high)))

    def loss(self, targets: Array, outputs: Array) -> tuple[Array, Array]:
        """½ nu s² log(1 + e² / (nu s²)), which is ½ e² for small errors e.

        s² = 0.1 for standardised targets: what is further than a standard deviation or so from the
        function is an outlier to begin with.
        """
        xp = namespace(outputs)
        residuals = outputs - targets
        width = _next_to_outputs(self.freedom) * 0.1
        squares = residuals * residuals / width
        return xp.sum(0.5 * width * xp.log1p(squares), axis=-1), residuals / (1.0 + squares)

    def working_targets(self, targets: Array) -> Array:
        """Targets without their outliers, which are beyond ±3 in standardised ones."""
        return np.clip(targets, -3.0, 3.0)

    def sample(
        self, outputs: np.ndarray, noise_variance: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """z + eta t."""
        noise = rng.standard_t(self.freedom, size=outputs.shape)
        return np.asarray(outputs + np.sqrt(noise_variance) * noise)


def _next_to_outputs(parameter: Any) -> Any:
    """A number, or (M,) as (M, 1, 1)."""
    return float(parameter) if is_number(parameter) else parameter[..., None, None]
