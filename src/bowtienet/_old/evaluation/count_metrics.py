"""How good a forecast of counts is: log score, errors, and intervals whose ends are whole numbers.

A forecast is any distribution with `logpmf`, `cdf`, `ppf` and `mean`, one for each row, as frozen
distributions of scipy.stats are. `rmse` and `interval_coverage` are those of all targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old.evaluation.checks import (
    average,
    read_intervals,
    read_sample_weight,
    read_targets,
    single_coverage,
)
from bowtienet._old.evaluation.metrics import ScoreRow, interval_coverage, rmse


@dataclass(frozen=True, kw_only=True)
class CountScores(ScoreRow):
    """What `evaluate_counts` finds: plain numbers."""

    n_rows: int
    log_score: float
    """Mean log probability of what was counted, in nats; higher is better."""
    rmse: float
    nominal_coverage: float
    """The coverage that was asked for."""
    coverage: float
    """Share of the counts inside the intervals; `nominal_coverage` or more if they are right."""
    interval_width: float
    """Mean number of whole numbers in an interval; of intervals that cover, lower is better."""


def is_discrete(distribution: Any) -> bool:
    """Whether it gives probabilities of values, by `logpmf`, and not densities."""
    return hasattr(distribution, "logpmf")


def log_score(y: Any, distribution: Any, *, sample_weight: Any = None) -> float:
    """mean log P(Y = y), in nats; higher is better.

    Examples
    --------
    >>> from scipy.stats import poisson
    >>> log_score([0, 2], poisson([1.0, 2.0]))
    -1.1534
    """
    counts = _read_counts(y)
    found = _read_rows(_discrete(distribution).logpmf(counts), counts)
    return average(found, read_sample_weight(sample_weight, counts))


def integer_interval_width(intervals: Any, *, sample_weight: Any = None) -> float:
    """mean u - l + 1, the number of whole numbers from l to u, both included.

    Examples
    --------
    >>> integer_interval_width([[0, 2], [3, 3]])
    2.0
    """
    ends = to_numpy(intervals).astype(np.float64, copy=False)
    if ends.ndim != 2 or ends.shape[1] != 2 or len(ends) == 0:
        raise ValueError(f"intervals must have shape (rows, 2), got {ends.shape}.")
    low, high = read_intervals(ends, ends[:, 0])
    wrong = ends[np.isfinite(ends) & (ends != np.rint(ends))]
    if wrong.size:
        raise ValueError(
            f"intervals of counts must end at whole numbers, got {wrong[0]:g}: round them inwards."
        )
    return average(high - low + 1.0, read_sample_weight(sample_weight, low))


def randomized_pit(distribution: Any, y: Any, rng: np.random.Generator) -> np.ndarray:
    """F(y - 1) + V P(Y = y), V uniform on [0, 1]: uniform if the forecast is right.

    F(y) itself has jumps, and is not uniform for the right forecast of a count.

    Parameters
    ----------
    distribution : with `cdf` and `logpmf`
        Forecast of each count.
    y : array (n,)
        Counts.
    rng : numpy Generator
        Of V.

    Returns
    -------
    values : array (n,)
        For `PitHistogramDisplay(values=...)`, too.
    """
    counts = _read_counts(y)
    found = _discrete(distribution)
    below, upto = (_read_rows(found.cdf(k), counts) for k in (counts - 1.0, counts))
    return below + rng.uniform(size=counts.size) * (upto - below)


def evaluate_counts(
    y: Any,
    distribution: Any,
    *,
    coverage: float = 0.9,
    intervals: Any = None,
    sample_weight: Any = None,
) -> CountScores:
    """All scores of a forecast of counts at once.

    Parameters
    ----------
    y : array (n,)
        What was counted.
    distribution : with `logpmf`, `mean` and `ppf`
        Forecast of each count.
    coverage : float
        Probability that intervals are meant to hold at least.
    intervals : array (n, 2), optional
        Ends of intervals, which belong to them; by default the quantiles (1 ± coverage) / 2, which
        hold more than `coverage` where a single count has much probability.
    sample_weight : array (n,), optional
        How many times each row counts.

    Returns
    -------
    CountScores
        `dataclasses.asdict` turns it into a dict of plain numbers.

    Examples
    --------
    >>> from scipy.stats import poisson
    >>> scores = evaluate_counts([0, 5, 40], poisson([1.0, 4.0, 30.0]))
    >>> scores.coverage, scores.interval_width
    (0.667, 10.333)
    """
    counts, found = _read_counts(y), _discrete(distribution)
    share = single_coverage(coverage)
    if intervals is None:
        tails = (0.5 * (1.0 - share), 0.5 * (1.0 + share))
        ends = [_read_rows(found.ppf(q), counts) for q in tails]
        intervals = np.stack(ends, axis=1)
    mean = _read_rows(found.mean(), counts)
    return CountScores(
        n_rows=counts.size,
        log_score=log_score(counts, found, sample_weight=sample_weight),
        rmse=rmse(counts, mean, sample_weight=sample_weight),
        nominal_coverage=share,
        coverage=interval_coverage(counts, intervals, sample_weight=sample_weight),
        interval_width=integer_interval_width(intervals, sample_weight=sample_weight),
    )


def _discrete(distribution: Any) -> Any:
    if not is_discrete(distribution):
        raise TypeError(
            "distribution must have logpmf, as distributions of counts do, got "
            f"{type(distribution).__name__}."
        )
    return distribution


def _read_counts(y: Any) -> np.ndarray:
    """Counts (n,), as floats."""
    counts = read_targets(y)
    if counts.ndim != 1:
        raise ValueError(f"y must have shape (rows,), got {counts.shape}: score one target a time.")
    wrong = counts[(counts < 0.0) | (counts != np.rint(counts))]
    if wrong.size:
        raise ValueError(f"y must hold counts, whole numbers from 0, got {wrong[0]:g}.")
    return counts


def _read_rows(found: Any, counts: np.ndarray) -> np.ndarray:
    """One number for each count; a distribution that all rows share gives one for all."""
    values = to_numpy(found).astype(np.float64, copy=False)
    if values.shape not in ((), (1,), counts.shape):
        raise ValueError(
            f"distribution is for {values.size} rows, but y has {counts.size}: give one forecast "
            "for each count."
        )
    return np.broadcast_to(values, counts.shape)
