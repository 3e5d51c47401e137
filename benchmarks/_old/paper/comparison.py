"""Methods on the same splits: paired differences, wins and losses, ranks over data sets.

Scores are those where less is better. A split on which a method failed has the score NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, studentized_range, t


class Difference(NamedTuple):
    """Score of one method minus that of another on the same splits; below zero, the first wins."""

    mean: float
    """Over the splits that both finished; NaN if there is none."""
    low: float
    """Ends of the 95 % interval, infinite for fewer than two differences."""
    high: float
    n_splits: int
    """Splits that both finished."""
    first_failed: int
    """Splits that the second finished and the first did not."""
    second_failed: int


def paired_difference(
    first: Sequence[float], second: Sequence[float], *, n_train: int, n_test: int
) -> Difference:
    """d̄ ± t_{J-1} √(s² (1/J + n_test / n_train)) for differences d of J random splits.

    Training rows of random splits overlap, so that their scores are not independent and the usual
    s²/J is too small. The second summand, of Nadeau and Bengio (2003), allows for that. Splits on
    which one of the two failed are left out of the differences, and counted.
    """
    ours, theirs = np.asarray(first, float), np.asarray(second, float)
    failed, others_failed = np.isnan(ours), np.isnan(theirs)
    both = ~failed & ~others_failed
    with np.errstate(invalid="ignore"):  # ∞ - ∞ of two forecasts without a density
        differences = ours[both] - theirs[both]
        mean = float(np.mean(differences)) if differences.size else math.nan
    half = math.inf
    if differences.size > 1 and math.isfinite(mean):
        spread = math.sqrt(1.0 / differences.size + n_test / n_train)
        quantile = float(t.ppf(0.975, differences.size - 1))
        half = quantile * float(np.std(differences, ddof=1)) * spread
    known = math.isfinite(half)
    return Difference(
        mean=mean,
        low=mean - half if known else -math.inf,
        high=mean + half if known else math.inf,
        n_splits=int(both.sum()),
        first_failed=int((failed & ~others_failed).sum()),
        second_failed=int((others_failed & ~failed).sum()),
    )


def win_tie_loss(differences: Sequence[Difference]) -> tuple[int, int, int]:
    """#{high < 0}, the rest, #{low > 0}: a win is an interval that excludes zero.

    A method does not win where it failed and the other did not: the splits that it finished may be
    the easier ones. Such a data set is a tie.
    """
    wins = sum(each.high < 0.0 and not each.first_failed for each in differences)
    losses = sum(each.low > 0.0 and not each.second_failed for each in differences)
    return wins, len(differences) - wins - losses, losses


def average_ranks(scores: pd.DataFrame) -> pd.Series:
    """mean_i r_ij over data sets i (rows), where r_ij is 1 for the least score of a data set.

    Equal scores share their ranks. NaN, a method that failed, comes last.
    """
    return scores.fillna(math.inf).rank(axis=1).mean()


def friedman_p(scores: pd.DataFrame) -> float:
    """p-value of Friedman's test that methods (columns) have equal ranks over data sets (rows)."""
    ranks = scores.fillna(math.inf).rank(axis=1)
    if ranks.shape[1] < 3 or (ranks.nunique(axis=1) == 1).all():
        return math.nan if ranks.shape[1] < 3 else 1.0
    return float(friedmanchisquare(*ranks.to_numpy().T).pvalue)


def critical_difference(n_methods: int, n_sets: int) -> float:
    """q / √2 √(k (k + 1) / (6 N)): how far apart average ranks are by chance (Nemenyi, 95 %).

    q is the quantile of the studentized range with infinitely many degrees of freedom.
    """
    quantile = float(studentized_range.ppf(0.95, n_methods, math.inf))
    return quantile / math.sqrt(2.0) * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets))
