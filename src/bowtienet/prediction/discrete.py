"""Predictive distributions of classes and of counts: mixtures over the members of an ensemble.

Classes: P(c) = Σ_k w_k p_kc, whose entropy is that of the members plus what they disagree about,

    H(P) = Σ_k w_k H(p_k) + Σ_k w_k KL(p_k || P),      noise and mutual information, in nats.

Counts: a negative binomial component of mean m and dispersion α has the variance m + α m²; α = 0 is
Poisson's distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp, ndtri, rel_entr

from bowtienet.distributions.negative_binomial import log_probability, tail
from bowtienet.prediction.components import checked_levels

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class ClassMixture:
    """Probabilities of C classes for n rows."""

    weights: Floats
    """w (K,), non-negative with sum one."""
    probabilities: Floats
    """p (K, n, C)."""

    def __repr__(self) -> str:
        n_rows, n_classes = self.probabilities.shape[1:]
        return f"<ClassMixture for {n_rows} rows and {n_classes} classes>"

    def mean(self) -> Floats:
        """P (n, C)."""
        return np.asarray(np.tensordot(self.weights, self.probabilities, axes=1))

    def parts(self) -> tuple[Floats, Floats]:
        """Epistemic part (mutual information) and noise of the entropy (n,)."""
        apart = rel_entr(self.probabilities, self.mean()).sum(axis=-1)
        return self.weights @ np.maximum(apart, 0.0), self.weights @ entr(self.probabilities).sum(
            -1
        )

    def logpdf(self, labels: Any) -> Floats:
        """log P of the class numbers (n,)."""
        mean = self.mean()
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(mean[np.arange(len(mean)), np.asarray(labels, dtype=int)]))


@dataclass(frozen=True, kw_only=True, repr=False)
class CountMixture:
    """Mixtures of K negative binomial distributions for n rows.

    Counts `y` and results are (n,), or have one axis more in front for several counts of a row.

    Examples
    --------
    >>> import numpy as np
    >>> mixture = CountMixture(
    ...     weights=np.ones(1), means=np.array([[4.0]]), dispersion=np.array([0.5])
    ... )
    >>> mixture.mean(), mixture.std().round(3), mixture.ppf([0.05, 0.95]).ravel()
    (array([4.]), array([3.464]), array([ 0., 11.]))
    """

    weights: Floats
    """w (K,), non-negative with sum one."""
    means: Floats
    """m (K, n)."""
    dispersion: Floats
    """α (K,) or (K, n)."""

    def __repr__(self) -> str:
        return f"<CountMixture for {self.means.shape[1]} rows>"

    def mean(self) -> Floats:
        """E[y] = Σ w m."""
        return np.asarray(self.weights @ self.means)

    def std(self) -> Floats:
        """√Var[y]."""
        return np.asarray(np.hypot(*self.parts()))

    def parts(self) -> tuple[Floats, Floats]:
        """Epistemic and noise standard deviation: Var[y] = Σ w (m - E[y])² + Σ w (m + α m²)."""
        apart = self.weights @ (self.means - self.mean()) ** 2
        noise = self.weights @ (self.means + self._alpha() * self.means**2)
        return np.sqrt(apart), np.sqrt(noise)

    def logpdf(self, y: Any) -> Floats:
        """log P(y); -inf for what is no count."""
        counts, means, alpha, weights = self._against(y)
        valid = (counts >= 0.0) & (counts == np.floor(counts)) & np.isfinite(counts)
        logs = log_probability(np.where(valid, counts, 0.0), means, alpha)
        with np.errstate(divide="ignore"):
            return np.where(valid, logsumexp(logs, axis=0, b=weights), -np.inf)

    def cdf(self, y: Any) -> Floats:
        """P(count <= y)."""
        return self._tail(y, upper=False)

    def sf(self, y: Any) -> Floats:
        """P(count > y), without cancellation."""
        return self._tail(y, upper=True)

    def ppf(self, q: Any) -> Floats:
        """Least counts with P(count <= y) >= q, (n,) for a level and (m, n) for levels (m,)."""
        levels = checked_levels(q)
        upper = levels > 0.5
        # With what a level is rounded by, so that the inverse of the distribution function is one.
        tails = np.where(upper, 1.0 - levels + 2.0**-50 * (levels < 1.0), levels * (1.0 - 1e-14))
        return self._cut_off(tails, upper)

    def isf(self, q: Any) -> Floats:
        """Least counts with P(count > y) <= q, precise for the smallest levels."""
        levels = checked_levels(q)
        return self._cut_off(levels, np.ones(levels.shape, dtype=bool))

    def interval(self, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Lower and upper end of the central interval that holds at least this share."""
        low, high = self.ppf([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
        return low, high

    def rvs(self, size: int, rng: int | np.random.Generator | None = None) -> Floats:
        """Draws (size, n), each row for itself."""
        rng = np.random.default_rng(rng)
        n = self.means.shape[1]
        chosen = rng.choice(len(self.weights), p=self.weights, size=(size, n))
        alpha = np.broadcast_to(self._alpha(), self.means.shape)[chosen, np.arange(n)]
        rates = rng.gamma(1.0 / alpha, alpha) * self.means[chosen, np.arange(n)]
        return rng.poisson(rates).astype(float)

    def _alpha(self) -> Floats:
        """α, (K, 1) or (K, n)."""
        # At 1e-30 it is Poisson's distribution to rounding.
        return np.maximum(self.dispersion.reshape(len(self.weights), -1), 1e-30)

    def _against(self, y: Any) -> tuple[Floats, Floats, Floats, Floats]:
        """Counts, means, α and weights, the last three with K in front of the axes of y."""
        counts = np.asarray(y, dtype=float)
        extra = (slice(None), *[None] * max(counts.ndim - 1, 0))
        return counts, self.means[extra], self._alpha()[extra], self.weights[:, None][extra]

    def _tail(self, y: Any, *, upper: bool) -> Floats:
        counts, means, alpha, weights = self._against(y)
        k = np.floor(counts)
        tails = np.sum(weights * tail(np.maximum(k, 0.0), means, alpha, upper=upper), axis=0)
        return np.where(k < 0.0, float(upper), np.minimum(tails, 1.0))

    def _cut_off(self, tails: Floats, upper: NDArray[np.bool_]) -> Floats:
        pairs = zip(tails.ravel().tolist(), upper.ravel().tolist(), strict=True)
        counts = [self._quantile(share, upper=side) for share, side in pairs]
        return np.array(counts).reshape(*tails.shape, self.means.shape[1])

    def _quantile(self, wanted: float, *, upper: bool) -> Floats:
        """Least counts whose tail is at least, or if upper at most, as large as wanted.

        Newton's method on whole numbers and the scale of Φ^{-1}(F), in a bracket (low, high].
        """
        counts = np.full(self.means.shape[1], np.inf)
        if upper and wanted == 0.0:
            return counts
        rows, low, high = np.arange(counts.size), np.full_like(counts, -1.0), counts.copy()
        target = -ndtri(wanted) if upper else ndtri(wanted)
        k = np.maximum(np.rint(self.mean() + max(target, -10.0) * self.std()), 0.0)
        alpha = np.broadcast_to(self._alpha(), self.means.shape)
        while rows.size:
            rest = replace(self, means=self.means[:, rows], dispersion=alpha[:, rows])
            mass = rest._tail(k, upper=upper)
            reached = mass <= wanted if upper else mass >= wanted
            low, high = np.where(reached, low, k), np.where(reached, k, high)
            with np.errstate(all="ignore"):
                g = -ndtri(mass) if upper else ndtri(mass)
                slope = np.exp(rest.logpdf(k) + 0.5 * g * g) * math.sqrt(2.0 * math.pi)
                step = np.maximum(np.ceil(np.abs(target - g) / slope), 1.0)
                k = np.where(reached, k - step, k + step)
            middle = np.where(np.isinf(high), 2.0 * low + 2.0, np.floor(0.5 * (low + high)))
            k = np.where((k > low) & (k < high), k, middle)
            done = high - low <= np.maximum(1.0, np.spacing(high))
            counts[rows[done]] = high[done]
            rows, low, high, k = (values[~done] for values in (rows, low, high, k))
        return counts
