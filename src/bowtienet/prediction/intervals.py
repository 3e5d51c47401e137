"""Conformal intervals: the predictive distribution's quantiles, widened until they hold.

A held-out row has the score |Φ^{-1}(F(y))|: how many deviations a Gaussian target would be off. The
radius is the ⌈(n + 1) c⌉-th least of n scores, infinite if there are too few rows, and

    [F^{-1}(Φ(-radius)), F^{-1}(Φ(radius))]

is the interval of a new row. Where scores come from a distribution that knows nothing of their
rows, and these rows and the new one are exchangeable, it holds the new target with probability c at
least, on average over rows, however wrong the distribution is. Scores by cross-validation, used for
a distribution that was fitted to all rows, have no such guarantee, and nearly that coverage.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.mixture import Mixture

Floats = NDArray[np.float64]


def conformal_scores(distribution: Mixture | CountMixture, y: Any) -> Floats:
    """|Φ^{-1}(F(y))| of held-out targets, of the shape of the rows.

    For counts the lesser of P(<= y) and P(>= y) stands in for the lesser tail. A target so far out
    that its tail is no double, beyond 37 deviations, has an infinite score.
    """
    targets = np.asarray(y, dtype=float)
    below = targets - 1.0 if isinstance(distribution, CountMixture) else targets
    tails = np.minimum(distribution.cdf(targets), distribution.sf(below))
    return np.asarray(-ndtri(np.minimum(tails, 0.5)))


def conformal_level(scores: Floats, coverage: float, weights: Floats | None = None) -> Floats:
    """Radius, (D,) for scores (n, D) and () for (n,): infinite if there are too few rows.

    With row weights c, the least score with Σ_{score_i <= radius} c_i >= coverage (Σ c_i + c_new),
    where c_new = Σ c² / Σ c, the typical weight, stands for the new row. A common factor of the
    weights changes nothing, and rows of weight zero are as good as absent.
    """
    counts = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
    order = np.argsort(scores, axis=0, kind="stable")
    reached = np.cumsum(counts[order], axis=0)
    total = counts.sum() + (counts @ counts) / counts.sum()
    # 0.9 · 10 rows are nine, whatever their rounding says.
    rank = np.sum(reached < coverage * total * (1.0 - 1e-12), axis=0)
    ends = np.full((1, *scores.shape[1:]), np.inf)
    ordered = np.concatenate([np.take_along_axis(scores, order, axis=0), ends])
    return np.asarray(np.take_along_axis(ordered, rank[None], axis=0)[0])


def conformal_interval(
    distribution: Mixture | CountMixture, radius: Floats | float
) -> tuple[Floats, Floats]:
    """Lower and upper ends, of the shape of the rows; the radius is a number or one a target.

    Both tails are Φ(-radius), so that no digits are lost far out.
    """
    # A little smaller, so that a target that is an end lies inside.
    tails = ndtr(-np.asarray(radius, dtype=float)) * (1.0 - 1e-10)
    low, high = distribution.ppf(tails), distribution.isf(tails)
    if tails.ndim == 0:
        return low, high
    # Each target with its own radius.
    return low.diagonal(axis1=0, axis2=-1), high.diagonal(axis1=0, axis2=-1)
