"""Paired differences, wins and ranks, by hand and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare
from scipy.stats import t as student

from benchmarks._old.paper.comparison import (
    average_ranks,
    critical_difference,
    friedman_p,
    paired_difference,
    win_tie_loss,
)

NAN, INF = math.nan, math.inf


def difference(first, second, n_train=90, n_test=10):
    return paired_difference(first, second, n_train=n_train, n_test=n_test)


def test_interval_by_hand():
    # Differences 1, 2, 3: mean 2, s = 1; 1/3 + 1/9 = 4/9; t_{0.975} with 2 degrees of freedom is
    # 0.95 √(2 / (1 - 0.95²)) = 4.30265.
    found = difference([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.high - 2.0 == pytest.approx(0.95 * math.sqrt(2.0 / 0.0975) * 2.0 / 3.0)
    assert found.low == pytest.approx(4.0 - found.high)
    assert found[3:] == (3, 0, 0)


def test_exchanging_methods_turns_the_sign(rng):
    first, second = rng.normal(size=(2, 7))
    first[2] = NAN
    one, other = difference(first, second), difference(second, first)
    assert one[:3] == pytest.approx((-other.mean, -other.high, -other.low))
    assert (one[3:], other[3:]) == ((6, 1, 0), (6, 0, 1))


def test_failed_splits_are_left_out_and_counted():
    whole = difference([1.0, 2.0, 4.0], [0.0, 0.0, 0.0])
    found = difference([1.0, NAN, 2.0, NAN, 4.0, 9.0], [0.0, 0.0, 0.0, NAN, 0.0, NAN])
    assert found == (*whole[:3], 3, 1, 1)


@pytest.mark.parametrize(
    ("first", "second", "mean"),
    [
        ([], [], NAN),
        ([NAN], [1.0], NAN),
        ([3.0], [1.0], 2.0),
        ([INF, 1.0], [1.0, 1.0], INF),
        ([INF, 1.0, 2.0], [INF, 1.0, 1.0], NAN),
    ],
)
def test_too_little_for_an_interval(first, second, mean):
    found = difference(first, second)
    assert found.mean == pytest.approx(mean, nan_ok=True)
    assert (found.low, found.high) == (-INF, INF)


def test_correction_covers_where_splits_overlap():
    """Means of overlapping splits: the corrected interval holds the truth as often as it says.

    The score is the mean of the test rows, of 60 rows with mean zero: its differences to zero over
    ten random splits are correlated by the rows. Standard error of a share of 0.95 over 1000
    repetitions is 0.007; without the correction the share is below 0.75.
    """
    rng = np.random.default_rng(0)
    repetitions, splits, n, n_test = 1000, 10, 60, 20
    corrected = plain = 0
    for _ in range(repetitions):
        rows = rng.normal(size=n)
        scores = np.array([rng.permutation(rows)[:n_test].mean() for _ in range(splits)])
        found = difference(scores, np.zeros(splits), n_train=n - n_test, n_test=n_test)
        corrected += found.low <= 0.0 <= found.high
        half = student.ppf(0.975, splits - 1) * scores.std(ddof=1) / math.sqrt(splits)
        plain += abs(scores.mean()) <= half
    assert 0.93 <= corrected / repetitions <= 0.99
    assert plain / repetitions < 0.75


def test_wins_ties_and_losses():
    better = difference([1.0, 1.1, 1.2], [9.0, 9.0, 9.0])
    worse = difference([9.0, 9.0, 9.0], [1.0, 1.1, 1.2])
    unclear = difference([1.0, -1.0, 0.5], [0.0, 0.0, 0.0])
    equal = difference([1.0, 2.0], [1.0, 2.0])
    assert win_tie_loss([better, better, unclear, worse, equal]) == (2, 2, 1)


def test_who_failed_does_not_win():
    better = difference([1.0, 1.1, 1.2, NAN], [9.0, 9.0, 9.0, 9.0])
    assert better.high < 0.0
    assert win_tie_loss([better]) == (0, 1, 0)
    worse = difference([9.0, 9.0, 9.0, NAN], [1.0, 1.1, 1.2, 1.0])
    assert win_tie_loss([worse]) == (0, 0, 1)


def test_ranks_share_and_failures_come_last():
    scores = pd.DataFrame([[NAN, 1.0, NAN, 2.0], [1.0, 1.0, 3.0, 2.0]])
    assert average_ranks(scores).tolist() == [2.5, 1.25, 3.75, 2.5]


@pytest.mark.parametrize("ties", [False, True])
def test_friedman_against_scipy(rng, ties):
    scores = rng.normal([0.0, 0.5, 1.0, 1.5], 1.0, size=(6, 4))
    scores = np.round(scores) if ties else scores
    assert friedman_p(pd.DataFrame(scores)) == pytest.approx(friedmanchisquare(*scores.T).pvalue)


def test_friedman_of_equal_methods_and_of_two():
    assert friedman_p(pd.DataFrame(np.ones((3, 4)))) == 1.0
    assert math.isnan(friedman_p(pd.DataFrame(np.ones((3, 2)))))


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_against_published_quantiles(k, q):
    """Two-tailed Nemenyi quantiles at 0.05, as tables give them."""
    expected = q * math.sqrt(k * (k + 1) / (6.0 * 7))
    assert critical_difference(k, 7) == pytest.approx(expected, rel=3e-4)
