"""How good a forecast is: errors, proper scores and calibration of predictive distributions.

Every score takes the targets y first and the forecast second, as scikit-learn's metrics do:

- `targets`: what happened, an array (n,) or (n, D); with several targets a score is the mean of the
  D scores, and calibration pools them;
- `distribution`: the forecast of each target, as `predict_dist` gives it; or `intervals` (n, 2) or
  (n, D, 2), their lower and upper ends;
- `sample_weight`: how many times each row counts (n,); averages become Σ w s / Σ w.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.stats import binom

from bowtienet._old._arrays import map_arrays, slices
from bowtienet._old._validation import optional, whole
from bowtienet._old.data.named_frames import new_frame
from bowtienet._old.distributions.yeo_johnson import from_warped
from bowtienet._old.evaluation.checks import (
    average,
    check_distribution,
    read_intervals,
    read_levels,
    read_mean,
    read_sample_weight,
    read_targets,
    single_coverage,
)
from bowtienet._old.prediction.mixture import Mixture

_BLOCK = 2**17
"""Numbers in the largest temporary arrays, 1 MB each, however many rows there are."""
_STEPS = np.arange(-7.0, 8.0)
"""Beyond seven deviations a Gaussian has 1e-12 of its probability."""
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(4)
"""Between two steps: relative errors of scores are below 1e-7."""
LEVELS = tuple(k / 20 for k in range(1, 20))
"""Nominal coverages of a calibration curve: 0.05, 0.1, ..., 0.95."""


class ScoreRow:
    """Base of frozen dataclasses of scores."""

    def to_frame(self, library: str = "pandas") -> Any:
        """One row, with a column for each score.

        Examples
        --------
        >>> from bowtienet._old.evaluation import CountScores
        >>> found = CountScores(
        ...     n_rows=9,
        ...     log_score=-1.5,
        ...     rmse=2.0,
        ...     nominal_coverage=0.9,
        ...     coverage=1.0,
        ...     interval_width=4.0,
        ... )
        >>> found.to_frame()[["n_rows", "rmse", "coverage"]]
           n_rows  rmse  coverage
        0       9   2.0       1.0
        """
        return new_frame({name: [value] for name, value in score_values(self).items()}, library)


def score_values(scores: Any) -> dict[str, Any]:
    """Scores by name, in their order."""
    return {field.name: getattr(scores, field.name) for field in fields(scores)}


@dataclass(frozen=True, kw_only=True)
class Scores(ScoreRow):
    """What `evaluate` finds: plain numbers, lower is better but for `coverage`."""

    n_rows: int
    rmse: float
    nll: float
    """Mean negative log density."""
    crps: float
    """Mean continuous ranked probability score."""
    nominal_coverage: float
    """The coverage that was asked for."""
    coverage: float
    """Share of the targets inside the intervals; best near `nominal_coverage`."""
    interval_score: float
    calibration_error: float


def rmse(targets: Any, mean: Any, *, sample_weight: Any = None) -> float:
    """√ mean (y - m)², the root mean squared error; with several targets the mean of their roots.

    Examples
    --------
    >>> rmse([1.0, 2.0], [4.0, 6.0])
    3.5355339059327378
    """
    y = read_targets(targets)
    squares = np.square(y - read_mean(mean, y))
    weights = read_sample_weight(sample_weight, y)
    return float(np.mean(np.sqrt(weights @ squares / np.sum(weights))))


def negative_log_density(
    targets: Any, distribution: Mixture, *, sample_weight: Any = None
) -> float:
    """mean -log p(y), in nats, for targets in their own unit."""
    y = read_targets(targets)
    densities = check_distribution(distribution, y).logpdf(y)
    return average(-densities, read_sample_weight(sample_weight, y))


def crps(targets: Any, distribution: Mixture, *, sample_weight: Any = None) -> float:
    """mean ∫ (F(x) - 1[y <= x])² dx, the continuous ranked probability score, in the unit of y.

    For a forecast without spread it is the absolute error. Needs scoringrules, which has it in
    closed form, but for mixtures with warps: those are integrated numerically.
    """
    y = read_targets(targets)
    return average(crps_of_rows(y, distribution), read_sample_weight(sample_weight, y))


def crps_of_rows(targets: Any, distribution: Mixture) -> np.ndarray:
    """∫ (F(x) - 1[y <= x])² dx of every target, of the shape of the targets; see `crps`."""
    y = read_targets(targets)
    found = check_distribution(distribution, y)
    return _gaussian_crps(y, found) if found.warp is None else _crps(y, found)


def interval_coverage(targets: Any, intervals: Any, *, sample_weight: Any = None) -> float:
    """mean 1[l <= y <= u]: the share of targets inside their intervals.

    Examples
    --------
    >>> interval_coverage([1.0, 2.0], [[0.0, 1.0], [3.0, 4.0]])
    0.5
    """
    y = read_targets(targets)
    low, high = read_intervals(intervals, y)
    return average((low <= y) & (y <= high), read_sample_weight(sample_weight, y))


def interval_score(
    targets: Any, intervals: Any, coverage: float, *, sample_weight: Any = None
) -> float:
    """mean (u - l) + 2/(1 - c) [max(l - y, 0) + max(y - u, 0)], the interval score of Winkler.

    Narrow intervals are good, and targets outside cost; least for the true central intervals.

    Examples
    --------
    >>> interval_score([1.0, 5.0], [[0.0, 2.0], [0.0, 2.0]], 0.5)
    8.0
    """
    y = read_targets(targets)
    low, high = read_intervals(intervals, y)
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    scores = (high - low) + 2.0 / (1.0 - single_coverage(coverage)) * missed
    return average(scores, read_sample_weight(sample_weight, y))


def pit(targets: Any, distribution: Mixture) -> np.ndarray:
    """F(y), the probability integral transform: uniform on [0, 1] if the forecast is right."""
    y = read_targets(targets)
    return check_distribution(distribution, y).cdf(y)


def calibration_curve(
    targets: Any, distribution: Mixture, levels: Any = None, *, sample_weight: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """``mean 1[|2 F(y) - 1| <= c]``: the share of targets inside central intervals of coverage c.

    A target lies in the central interval of c exactly if ``|2 F(y) - 1| <= c``, so no quantile is
    needed. Several targets are pooled. Levels are 0.05, 0.1, ..., 0.95 by default.

    Returns
    -------
    levels, observed : array (m,)
        Nominal coverages, and the shares; equal up to chance if the forecast is right.
    """
    return coverage_curve(pit(targets, distribution), levels, sample_weight=sample_weight)


def coverage_curve(
    values: np.ndarray, levels: Any = None, *, sample_weight: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """`calibration_curve` of forecasts whose F(y) is known: values (n,) or (n, D) of `pit`."""
    nominal = read_levels(LEVELS if levels is None else levels)
    central = np.abs(2.0 * values - 1.0)
    weights = read_sample_weight(sample_weight, values)
    return nominal, np.array([average(central <= level, weights) for level in nominal])


def calibration_error(
    targets: Any, distribution: Mixture, levels: Any = None, *, sample_weight: Any = None
) -> float:
    """``mean_c |observed(c) - c|`` over the levels of `calibration_curve`, with its arguments."""
    nominal, observed = calibration_curve(
        targets, distribution, levels, sample_weight=sample_weight
    )
    return float(np.mean(np.abs(observed - nominal)))


def binomial_band(levels: Any, n: int, probability: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles (1 ± p)/2 of Binomial(n, c) / n: where the observed share may lie by chance.

    If the forecast is right and the n targets are independent, the observed share at one level
    lies in the band with at least this probability. It holds level by level, not for all at once.

    Parameters
    ----------
    levels : float or array (m,)
        Nominal coverages c.
    n : int
        Number of targets.
    probability : float
        Probability p of the band.

    Returns
    -------
    low, high : array (m,)

    Examples
    --------
    >>> binomial_band([0.5, 0.9], 100)
    (array([0.4 , 0.84]), array([0.6 , 0.95]))
    """
    nominal, count = read_levels(levels), whole(n, "n")
    tail = 0.5 * (1.0 - probability)
    return binom.ppf(tail, count, nominal) / count, binom.isf(tail, count, nominal) / count


def evaluate(
    targets: Any,
    distribution: Mixture,
    *,
    coverage: float = 0.9,
    intervals: Any = None,
    sample_weight: Any = None,
) -> Scores:
    """All scores of a forecast at once.

    Parameters
    ----------
    targets : array (n,) or (n, D)
        What happened.
    distribution : Mixture
        Forecast of each target, as `predict_dist` gives it.
    coverage : float
        Probability that intervals are meant to hold.
    intervals : array (n, 2) or (n, D, 2), optional
        Intervals of that coverage; the central ones of the distribution by default.
    sample_weight : array (n,), optional
        How many times each row counts.

    Returns
    -------
    Scores
        `dataclasses.asdict` turns it into a dict of plain numbers.

    Examples
    --------
    >>> from bowtienet._old.prediction.mixture import build_mixture
    >>> forecast = build_mixture([1.0], [[0.0, 1.0]], [[1.0, 1.0]])
    >>> scores = evaluate([0.5, 3.0], forecast)
    >>> scores.rmse, scores.coverage
    (1.458, 0.5)
    """
    y = read_targets(targets)
    found = check_distribution(distribution, y)
    share = single_coverage(coverage)
    ends = found.interval(share) if intervals is None else intervals
    return Scores(
        n_rows=len(y),
        rmse=rmse(y, found.mean(), sample_weight=sample_weight),
        nll=negative_log_density(y, found, sample_weight=sample_weight),
        crps=crps(y, found, sample_weight=sample_weight),
        nominal_coverage=share,
        coverage=interval_coverage(y, ends, sample_weight=sample_weight),
        interval_score=interval_score(y, ends, share, sample_weight=sample_weight),
        calibration_error=calibration_error(y, found, sample_weight=sample_weight),
    )


def load_scoringrules() -> Any:
    """scoringrules, imported by the first score that needs it and not before."""
    return optional("scoringrules", "CRPS needs scoringrules: pip install 'bowtienet[cli]'.")


def _gaussian_crps(y: np.ndarray, found: Mixture) -> np.ndarray:
    """Scores of the shape of y, in closed form."""
    score = load_scoringrules().crps_mixnorm
    result = np.empty(y.shape)
    counted = found.weights.reshape(len(found.weights), -1).any(axis=1)
    n_components = int(np.count_nonzero(counted))
    size = max(1, _BLOCK // (n_components**2 * (y.size // len(y))))
    for rows in slices(len(y), size):
        # Components last, as scoringrules wants them; it pairs them all, K x K for each target.
        weights, means, deviations = (np.moveaxis(a, 0, -1) for a in found.components(rows)[:3])
        # In units of the deviations, whose squares would vanish or overflow far from 1.
        unit = deviations.max()
        scaled = (y[rows] / unit, means / unit, deviations / unit)
        result[rows] = unit * score(*scaled, weights, backend="numpy")
    return result


def _crps(y: np.ndarray, found: Mixture) -> np.ndarray:
    """Scores of the shape of y, with distributions in u = (y - origin) / unit.

    Gauss-Legendre between all quantiles m + t d of all components, t = -7 ... 7, and y: between
    two of them no component is bent, however narrow it is. Further out F is 0 or 1, and the score
    grows like the distance.
    """
    if y.ndim == 2:
        columns = [_crps(y[:, d], found.of_target(d)) for d in range(y.shape[1])]
        return np.stack(columns, axis=1)
    assert found.origin is not None
    assert found.unit is not None
    plain = replace(found, origin=np.zeros(1), unit=np.ones(1))
    result = np.empty(y.shape)
    for rows in slices(len(y), max(1, _BLOCK // (_NODES.size * _STEPS.size * len(found.weights)))):
        part = plain.of_rows(rows)
        # Halves, because the distance of two numbers near ±1e308 would overflow.
        half = 0.5 * y[rows] - 0.5 * found.origin
        with np.errstate(over="ignore", under="ignore"):
            u = 2.0 * (half / found.unit)
            breaks = _quantiles_of_components(part)
            near = np.clip(u, breaks[:, 0], breaks[:, -1])
            further = np.where(near == u, 0.0, np.abs(half - found.unit * (0.5 * near)))
            result[rows] = found.unit * _integrated(part, breaks, near) + 2.0 * further
    return result


def _quantiles_of_components(found: Mixture) -> np.ndarray:
    """u with (g_k(u) - m_k) / d_k = t for every t of `_STEPS`, in order, (n, K len(t))."""
    weights, means, deviations, warp = found.components(slice(None))
    beside_steps = map_arrays(lambda a: a[..., None], warp)
    quantiles = from_warped(beside_steps, means[..., None] + deviations[..., None] * _STEPS)
    if weights.ndim > 1:
        # Where a component has no weight, it repeats the heaviest one of the row.
        heaviest = np.argmax(weights, axis=0)[None, :, None]
        repeated = np.take_along_axis(quantiles, heaviest, axis=0)
        quantiles = np.where(weights[..., None] > 0.0, quantiles, repeated)
    quantiles = np.moveaxis(quantiles, 0, 1)
    return np.sort(quantiles.reshape(len(quantiles), -1), axis=1)


def _integrated(found: Mixture, breaks: np.ndarray, u: np.ndarray) -> np.ndarray:
    """∫ (F(x) - 1[u <= x])² dx (n,) from the first to the last of the breaks (n, b)."""
    edges = np.sort(np.concatenate([breaks, u[:, None]], axis=1), axis=1)
    halves = 0.5 * edges[:, 1:] - 0.5 * edges[:, :-1]
    centers = 0.5 * edges[:, 1:] + 0.5 * edges[:, :-1]
    points = centers[..., None] + halves[..., None] * _NODES
    lower = found.cdf(points.reshape(len(u), -1)).reshape(points.shape)
    squares = np.square(np.where(centers[..., None] < u[:, None, None], lower, 1.0 - lower))
    return np.sum(halves * (squares @ _NODE_WEIGHTS), axis=1)
