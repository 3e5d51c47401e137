"""Methods on the same splits: paired differences, wins and losses, ranks over data sets.

Scores are those where less is better. A split on which a method failed has the score NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, rankdata, studentized_range, t

from bowtienet._validation import whole
from bowtienet.evaluation.checks import read_numbers, single_probability


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """Score of one method minus that of another on the same splits; below zero, the first wins."""

    mean: float
    """Over the splits that both finished; NaN if there is none."""
    deviation: float
    """Standard deviation of the differences; NaN for fewer than two."""
    low: float
    """Lower end of the interval; -∞ for fewer than two differences."""
    high: float
    n_splits: int
    """Splits that both finished."""
    first_failed: int
    """Splits that the second finished and the first did not."""
    second_failed: int
    probability: float
    """That of the interval."""


class WinTieLoss(NamedTuple):
    """Data sets on which a method beats another, does neither, or is beaten."""

    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, kw_only=True)
class FriedmanTest:
    """Whether methods have the same rank on average over data sets."""

    statistic: float
    """χ² with k - 1 degrees of freedom for k methods."""
    p_value: float


def paired_difference(
    first: Any, second: Any, *, n_train: int, n_test: int, probability: float = 0.95
) -> PairedDifference:
    """d̄ ± t_{J-1} √(s² (1/J + n_test / n_train)) for differences d of J random splits.

    Training rows of random splits overlap, so that their scores are not independent and the usual
    s²/J is too small. The second summand, of Nadeau and Bengio (2003), allows for that.

    Splits on which one of the two failed are left out of the differences, and counted.

    Parameters
    ----------
    first, second : array (J,)
        Scores of two methods on the same splits, in the same order; NaN where one failed.
    n_train, n_test : int
        Rows of each split.
    probability : float
        That of the interval.

    Returns
    -------
    PairedDifference

    Examples
    --------
    >>> found = paired_difference([1.0, 2.0, 3.0], [1.0, 3.0, 5.0], n_train=90, n_test=10)
    >>> found.mean, found.deviation
    (-1.0, 1.0)
    >>> round(found.low, 2), round(found.high, 2)
    (-3.87, 1.87)
    """
    scores = read_numbers(first, "first"), read_numbers(second, "second")
    if scores[0].ndim != 1 or scores[0].shape != scores[1].shape:
        raise ValueError(
            f"first has shape {scores[0].shape} and second {scores[1].shape}: give one score of "
            "each for every split, in the same order."
        )
    extra = whole(n_test, "n_test") / whole(n_train, "n_train")
    share = single_probability(probability)
    done = [~np.isnan(values) for values in scores]
    both = done[0] & done[1]
    with np.errstate(invalid="ignore"):  # ∞ - ∞ of two forecasts without a density
        differences = scores[0][both] - scores[1][both]
        mean = float(np.mean(differences)) if differences.size else math.nan
    deviation = half = math.nan
    if differences.size > 1 and math.isfinite(mean):
        deviation = float(np.std(differences, ddof=1))
        quantile = float(t.ppf(0.5 + 0.5 * share, differences.size - 1))
        half = quantile * deviation * math.sqrt(1.0 / differences.size + extra)
    return PairedDifference(
        mean=mean,
        deviation=deviation,
        low=-math.inf if math.isnan(half) else mean - half,
        high=math.inf if math.isnan(half) else mean + half,
        n_splits=int(both.sum()),
        first_failed=int((done[1] & ~done[0]).sum()),
        second_failed=int((done[0] & ~done[1]).sum()),
        probability=share,
    )


def win_tie_loss(differences: Sequence[PairedDifference]) -> WinTieLoss:
    """#{high < 0}, the rest, #{low > 0}: a win is an interval that excludes zero.

    A method does not win where it failed and the other did not: the splits that it finished may be
    the easier ones. Such a data set is a tie.

    Examples
    --------
    >>> found = paired_difference([1.0, 2.0, 3.0], [4.0, 5.1, 6.0], n_train=90, n_test=10)
    >>> win_tie_loss([found, found])
    WinTieLoss(wins=2, ties=0, losses=0)
    """
    wins = sum(each.high < 0.0 and not each.first_failed for each in differences)
    losses = sum(each.low > 0.0 and not each.second_failed for each in differences)
    return WinTieLoss(wins, len(differences) - wins - losses, losses)


def average_ranks(scores: Any) -> np.ndarray:
    """mean_i r_ij over data sets i, where r_ij is 1 for the least score of a data set.

    Equal scores share their ranks. NaN, a method that failed, comes last.

    Parameters
    ----------
    scores : array (N, k)
        One row for each data set, one column for each method.

    Returns
    -------
    array (k,)

    Examples
    --------
    >>> average_ranks([[0.1, 0.2, 0.3], [5.0, 5.0, 9.0]])
    array([1.25, 1.75, 3.  ])
    """
    return _ranks(scores).mean(axis=0)


def friedman_test(scores: Any) -> FriedmanTest:
    """χ² = 12 N / (k (k + 1)) Σ_j (R_j - (k + 1)/2)² / (1 - Σ (u³ - u) / (N k (k² - 1))).

    R_j are average ranks of k methods over N data sets, u the sizes of groups of equal scores.
    Small p-values say that the methods are not all alike. For few data sets they are rough.

    Parameters
    ----------
    scores : array (N, k)
        One row for each data set, one column for each method; NaN comes last.

    Examples
    --------
    >>> friedman_test([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]).statistic
    4.0
    """
    ranks = _ranks(scores)
    n, k = ranks.shape
    if k < 2:
        raise ValueError(f"scores have {k} column: compare at least two methods.")
    repeats = [np.unique(row, return_counts=True)[1] for row in ranks]
    tied = sum(int(np.sum(sizes**3 - sizes)) for sizes in repeats) / (n * k * (k**2 - 1))
    spread = 12.0 * n / (k * (k + 1)) * float(np.sum((ranks.mean(axis=0) - 0.5 * (k + 1)) ** 2))
    statistic = 0.0 if tied == 1.0 else spread / (1.0 - tied)
    return FriedmanTest(statistic=statistic, p_value=float(chi2.sf(statistic, k - 1)))


def critical_difference(n_methods: int, n_sets: int, probability: float = 0.95) -> float:
    """q / √2 √(k (k + 1) / (6 N)): how far apart average ranks are by chance (Nemenyi).

    With the given probability no two of k equally good methods differ by more over N data sets; q
    is the quantile of the studentized range with infinitely many degrees of freedom.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    k, n = whole(n_methods, "n_methods"), whole(n_sets, "n_sets")
    if k < 2:
        raise ValueError(f"n_methods must be at least 2, got {k}.")
    quantile = float(studentized_range.ppf(single_probability(probability), k, math.inf))
    return quantile / math.sqrt(2.0) * math.sqrt(k * (k + 1) / (6.0 * n))


def _ranks(scores: Any) -> np.ndarray:
    values = read_numbers(scores, "scores")
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"scores must have shape (data sets, methods) with at least one of each, got "
            f"{values.shape}."
        )
    return rankdata(np.where(np.isnan(values), np.inf, values), axis=1)
