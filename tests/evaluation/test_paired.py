"""Comparisons of methods by hand, by plain loops and by simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import friedmanchisquare
from scipy.stats import t as student

from bowtienet.evaluation.paired import (
    WinTieLoss,
    average_ranks,
    critical_difference,
    friedman_test,
    paired_difference,
    win_tie_loss,
)

NAN, INF = math.nan, math.inf


def difference(first: Any, second: Any, **settings: Any) -> Any:
    return paired_difference(first, second, **{"n_train": 90, "n_test": 10, **settings})


def test_interval_by_hand() -> None:
    # Differences 1, 2, 3: mean 2, s = 1; 1/3 + 1/9 = 4/9; t_{0.975} with 2 degrees of freedom is
    # 0.95 √(2 / (1 - 0.95²)) = 4.30265.
    found = difference([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.mean, found.deviation) == (2.0, 1.0)
    assert found.high - 2.0 == pytest.approx(0.95 * math.sqrt(2.0 / 0.0975) * 2.0 / 3.0)
    assert found.low == pytest.approx(4.0 - found.high)
    assert (found.n_splits, found.first_failed, found.second_failed) == (3, 0, 0)


def test_interval_of_another_probability_and_split() -> None:
    # t_{0.75} with one degree is 1: s = √2 / 2 and √(1/2 + 1/2) = 1.
    found = difference([1.0, 2.0], [0.0, 0.0], n_train=20, n_test=10, probability=0.5)
    assert found.high - found.low == pytest.approx(2.0 * math.sqrt(0.5), rel=1e-12)
    assert found.probability == 0.5


def test_exchanging_methods_turns_the_sign(rng: np.random.Generator) -> None:
    first, second = rng.normal(size=(2, 7))
    first[2] = NAN
    one, other = difference(first, second), difference(second, first)
    assert (one.mean, one.low, one.high) == pytest.approx((-other.mean, -other.high, -other.low))
    assert (one.first_failed, one.second_failed) == (1, 0)
    assert (other.first_failed, other.second_failed) == (0, 1)


def test_failed_splits_are_left_out_and_counted() -> None:
    whole = difference([1.0, 2.0, 4.0], [0.0, 0.0, 0.0])
    found = difference([1.0, NAN, 2.0, NAN, 4.0, 9.0], [0.0, 0.0, 0.0, NAN, 0.0, NAN])
    assert (found.mean, found.low, found.high) == (whole.mean, whole.low, whole.high)
    assert (found.n_splits, found.first_failed, found.second_failed) == (3, 1, 1)


@pytest.mark.parametrize(
    ("first", "second", "mean"),
    [([], [], NAN), ([NAN], [1.0], NAN), ([3.0], [1.0], 2.0), ([INF, 1.0], [1.0, 1.0], INF)],
)
def test_too_little_for_an_interval(first: list[float], second: list[float], mean: float) -> None:
    found = difference(first, second)
    assert found.mean == pytest.approx(mean, nan_ok=True)
    assert (found.low, found.high) == (-INF, INF)
    assert math.isnan(found.deviation)


def test_two_infinite_scores_have_no_difference() -> None:
    found = difference([INF, 1.0, 2.0], [INF, 1.0, 1.0])
    assert math.isnan(found.mean)
    assert (found.low, found.high, found.n_splits) == (-INF, INF, 3)


def test_correction_covers_where_splits_overlap() -> None:
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


def test_win_tie_loss_by_hand() -> None:
    better = difference([1.0, 1.1, 1.2], [9.0, 9.0, 9.0])
    worse = difference([9.0, 9.0, 9.0], [1.0, 1.1, 1.2])
    unclear = difference([1.0, -1.0, 0.5], [0.0, 0.0, 0.0])
    assert win_tie_loss([better, better, unclear, worse]) == WinTieLoss(wins=2, ties=1, losses=1)
    assert win_tie_loss([]) == WinTieLoss(wins=0, ties=0, losses=0)


def test_who_failed_does_not_win() -> None:
    better = difference([1.0, 1.1, 1.2, NAN], [9.0, 9.0, 9.0, 9.0])
    assert better.high < 0.0
    assert win_tie_loss([better]) == WinTieLoss(wins=0, ties=1, losses=0)
    worse = difference([9.0, 9.0, 9.0, NAN], [1.0, 1.1, 1.2, 1.0])
    assert win_tie_loss([worse]) == WinTieLoss(wins=0, ties=0, losses=1)


def test_exact_zero_is_a_tie() -> None:
    assert win_tie_loss([difference([1.0, 2.0], [1.0, 2.0])]) == WinTieLoss(0, 1, 0)


def test_ranks_against_plain_counting(rng: np.random.Generator) -> None:
    scores = rng.integers(0, 4, size=(6, 5)).astype(float)
    expected = np.zeros(5)
    for row in scores:
        for j, value in enumerate(row):
            below = sum(other < value for other in row)
            equal = sum(other == value for other in row)
            expected[j] += (below + 0.5 * (equal + 1)) / len(scores)
    assert average_ranks(scores) == pytest.approx(expected)


def test_failed_methods_rank_last_and_share() -> None:
    assert average_ranks([[NAN, 1.0, NAN, 2.0]]).tolist() == [3.5, 1.0, 3.5, 2.0]


@pytest.mark.parametrize("ties", [False, True])
def test_friedman_against_scipy(rng: np.random.Generator, ties: bool) -> None:
    scores = rng.normal([0.0, 0.5, 1.0, 1.5], 1.0, size=(6, 4))
    scores = np.round(scores) if ties else scores
    found = friedman_test(scores)
    statistic, p_value = friedmanchisquare(*scores.T)
    assert (found.statistic, found.p_value) == pytest.approx((statistic, p_value))


def test_friedman_of_equal_methods() -> None:
    found = friedman_test(np.ones((3, 4)))
    assert (found.statistic, found.p_value) == (0.0, 1.0)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_against_published_quantiles(k: int, q: float) -> None:
    """Two-tailed Nemenyi quantiles at 0.05, as tables give them."""
    expected = q * math.sqrt(k * (k + 1) / (6.0 * 7))
    assert critical_difference(k, 7) == pytest.approx(expected, rel=3e-4)


def test_more_data_sets_part_methods_better() -> None:
    assert critical_difference(4, 20) == pytest.approx(critical_difference(4, 5) / 2.0)
    assert critical_difference(4, 5, 0.9) < critical_difference(4, 5)


@pytest.mark.parametrize(
    ("first", "second", "settings", "message"),
    [
        ([1.0], [1.0, 2.0], {}, r"first has shape \(1,\) and second \(2,\)"),
        ([[1.0]], [[1.0]], {}, "one score of each for every split"),
        (["a"], [1.0], {}, "first must hold real numbers"),
        ([1.0], [1.0], {"n_test": 0}, "n_test must be a whole number"),
        ([1.0], [1.0], {"probability": 1.0}, "probability must lie strictly between 0 and 1"),
    ],
)
def test_refused(first: Any, second: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        difference(first, second, **settings)


def test_refused_ranks() -> None:
    with pytest.raises(ValueError, match="at least one of each"):
        average_ranks([1.0, 2.0])
    with pytest.raises(ValueError, match="at least two methods"):
        friedman_test([[1.0], [2.0]])
    with pytest.raises(ValueError, match="n_methods must be at least 2"):
        critical_difference(1, 5)
