"""Scores of counts against scipy's distributions, sums by hand and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, nbinom, norm, poisson

from bowtienet._old.evaluation.count_metrics import (
    evaluate_counts,
    integer_interval_width,
    log_score,
    randomized_pit,
)
from bowtienet._old.evaluation.metrics import coverage_curve


def table(n: int = 50) -> tuple[np.ndarray, Any]:
    """Counts, and the distributions they were drawn from."""
    rng = np.random.default_rng(500)
    size, share = rng.uniform(1.0, 5.0, size=n), rng.uniform(0.1, 0.9, size=n)
    found = nbinom(size, share)
    return found.rvs(random_state=rng), found


def test_scores_by_hand() -> None:
    y, found = table()
    weight = np.arange(50.0)
    scores = evaluate_counts(y, found, coverage=0.8, sample_weight=weight)
    low, high = found.ppf(0.1), found.ppf(0.9)
    assert scores.n_rows == 50
    assert scores.nominal_coverage == 0.8
    assert scores.log_score == pytest.approx(np.average(found.logpmf(y), weights=weight))
    squares = np.square(y - found.mean())
    assert scores.rmse == pytest.approx(np.sqrt(np.average(squares, weights=weight)))
    inside = (low <= y) & (y <= high)
    assert scores.coverage == pytest.approx(np.average(inside, weights=weight))
    assert scores.interval_width == pytest.approx(np.average(high - low + 1.0, weights=weight))


def test_given_intervals_and_one_distribution_for_all_rows() -> None:
    ends = [[0, 1], [2, 2], [3, np.inf]]
    scores = evaluate_counts([1, 3, 9], poisson(2.0), intervals=ends)
    assert scores.coverage == 2 / 3
    assert scores.interval_width == np.inf
    assert scores.log_score == pytest.approx(np.mean(poisson(2.0).logpmf([1, 3, 9])))
    assert scores.rmse == pytest.approx(np.sqrt((1 + 1 + 49) / 3))


def test_the_true_forecast_has_the_best_log_score_and_covers_enough() -> None:
    y, found = table(4000)
    scores = evaluate_counts(y, found)
    assert scores.log_score > log_score(y, poisson(found.mean())) + 0.1
    assert scores.coverage >= 0.9 - 3.0 * np.sqrt(0.09 / 4000)


def test_randomised_values_are_uniform_where_the_plain_ones_are_not(
    rng: np.random.Generator,
) -> None:
    """A false alarm in 1000 tables; the plain values fail by far."""
    y, found = table(1000)
    values = randomized_pit(found, y, rng)
    assert np.all((found.cdf(y - 1) <= values) & (values <= found.cdf(y)))
    assert kstest(values, "uniform").pvalue > 1e-3
    assert kstest(found.cdf(y), "uniform").pvalue < 1e-9
    assert kstest(randomized_pit(poisson(found.mean()), y, rng), "uniform").pvalue < 1e-9
    levels, observed = coverage_curve(values)
    assert np.max(np.abs(observed - levels)) < 4.0 * np.sqrt(0.25 / 1000)


@pytest.mark.parametrize(
    ("y", "name"), [([0.5], "0.5"), ([-1], "-1"), ([[1]], "y must"), ([np.nan], "NaN")]
)
def test_what_is_no_count(y: Any, name: str, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=name):
        log_score(y, poisson(1.0))
    with pytest.raises(ValueError, match=name):
        randomized_pit(poisson(1.0), y, rng)


def test_wrong_forecasts() -> None:
    with pytest.raises(TypeError, match="logpmf"):
        log_score([1], norm(0.0, 1.0))
    with pytest.raises(ValueError, match="for 2 rows, but y has 1"):
        log_score([1], poisson([1.0, 2.0]))
    with pytest.raises(ValueError, match="whole numbers, got"):
        integer_interval_width([[0.5, 2.0]])
    with pytest.raises(ValueError, match="intervals must have shape"):
        integer_interval_width([0.0, 2.0])
