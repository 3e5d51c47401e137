"""Predictive distributions of counts: mixtures of negative binomial distributions.

A component with mean m and dispersion r has, for p = r / (r + m), the probabilities
C(y + r - 1, y) p^r (1 - p)^y, the distribution function I_p(r, y + 1), an incomplete beta function,
and the variance m + m² / r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, logsumexp

from bowtienet._old.prediction.intervals import check_coverage

Floats = NDArray[np.float64]

MOST = 2.0**52
"""Counts are searched up to this: beyond it, not all whole numbers are doubles."""


@dataclass(frozen=True, kw_only=True)
class CountMixture:
    """K components of n rows, in the manner of SciPy's discrete distributions."""

    weights: Floats
    """(K,), with sum 1."""
    means: Floats
    """(K, n)."""
    dispersions: Floats
    """(K,)."""

    def mean(self) -> Floats:
        """(n,)."""
        return self.weights @ self.means

    def var(self) -> Floats:
        """(n,)."""
        apart = (self.means - self.mean()) ** 2
        return self.weights @ (self.means + self.means**2 / self.dispersions[:, None] + apart)

    def std(self) -> Floats:
        """(n,)."""
        return np.asarray(np.sqrt(self.var()))

    def logpmf(self, y: Any) -> Floats:
        """Log probabilities of counts (n,); minus infinity of what is no count."""
        y = np.asarray(y, dtype=float)
        r, valid = self.dispersions[:, None], (y >= 0.0) & (y == np.floor(y))
        k = np.where(valid, y, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = gammaln(k + r) - gammaln(r) - gammaln(k + 1.0) - r * np.log1p(self.means / r)
            # y log(m / (r + m)): nothing is certain where the mean is zero.
            logs = logs - np.where(k > 0.0, k * np.log1p(r / self.means), 0.0)
            total = logsumexp(logs, axis=0, b=self.weights[:, None])
        return np.where(valid, total, -np.inf)

    def pmf(self, y: Any) -> Floats:
        """Probabilities of counts (n,)."""
        return np.asarray(np.exp(self.logpmf(y)))

    def cdf(self, y: Any) -> Floats:
        """P(count <= y) (n,)."""
        k = np.floor(np.asarray(y, dtype=float))
        r = self.dispersions[:, None]
        p = r / (r + self.means)
        found = self.weights @ betainc(r, np.maximum(k, 0.0) + 1.0, p)
        return np.where(k < 0.0, 0.0, np.minimum(found, 1.0))

    def sf(self, y: Any) -> Floats:
        """P(count > y) (n,)."""
        return 1.0 - self.cdf(y)

    def ppf(self, levels: Any) -> Floats:
        """The least counts (n, ...) of which at least these shares lie at or below."""
        wanted = np.asarray(levels, dtype=float)
        if not np.all((wanted >= 0.0) & (wanted <= 1.0)):
            raise ValueError(f"quantiles must lie between 0 and 1, got {levels!r}.")
        found = [self._quantile(level) for level in wanted.ravel()]
        return np.stack(found, axis=-1).reshape(self.means.shape[1], *wanted.shape)

    def interval(self, coverage: Any) -> Floats:
        """Central intervals (n, 2) of counts that hold at least this share; (n, 2, k) for k."""
        check_coverage(coverage)
        tails = 0.5 - 0.5 * np.asarray(coverage, dtype=float)
        return np.stack([self.ppf(tails), self.ppf(1.0 - tails)], axis=1)

    def rvs(self, size: int = 1, random_state: Any = None) -> Floats:
        """Draws (size, n)."""
        rng = np.random.default_rng(random_state)
        chosen = rng.choice(len(self.weights), size=(size, self.means.shape[1]), p=self.weights)
        means = self.means[chosen, np.arange(self.means.shape[1])]
        r = self.dispersions[chosen]
        return rng.poisson(rng.gamma(r, means / r)).astype(float)

    def _quantile(self, level: float) -> Floats:
        """Bisection over whole numbers; infinite for level 1."""
        if level >= 1.0:
            return np.full(self.means.shape[1], np.inf)
        # The level of double precision: sums of shares round.
        goal = level * (1.0 - 1e-14)
        high = np.ceil(self.mean() + 1.0)
        while np.any(short := (self.cdf(high) < goal) & (high < MOST)):
            high = np.where(short, 2.0 * high, high)
        low = np.full_like(high, -1.0)
        while np.any(high - low > 1.0):
            middle = np.floor(0.5 * (low + high))
            reached = self.cdf(middle) >= goal
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.maximum(high, 0.0)


def join_counts(parts: list[CountMixture]) -> CountMixture:
    """One distribution of the rows of several, which have the same components."""
    return CountMixture(
        weights=parts[0].weights,
        means=np.concatenate([part.means for part in parts], axis=1),
        dispersions=parts[0].dispersions,
    )


def average_counts(mixture: CountMixture, n_rows: int) -> CountMixture:
    """P_v(y) = (1/R) Σ_r P_rv(y): R·V rows, value by value inside of R, as V mixtures.

    The mixture over rows of mixtures over components has K·R components.
    """
    n_components, total = mixture.means.shape
    return CountMixture(
        weights=np.repeat(mixture.weights / n_rows, n_rows),
        means=mixture.means.reshape(n_components * n_rows, total // n_rows),
        dispersions=np.repeat(mixture.dispersions, n_rows),
    )
