"""How well one target is predicted: scores beside a linear baseline, calibration, surprises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold

from bowtienet.estimators.columns import Texts
from bowtienet.evaluation import (
    Scores,
    bayesian_ridge,
    binomial_band,
    calibration_curve,
    evaluate,
    pit,
)
from bowtienet.prediction.mixture import GaussianMixture
from bowtienet.report.rows import ReportRows, sample
from bowtienet.report.summary import Content
from bowtienet.report.wording import NOTHING, clean, quantity

PROBABILITY = 0.95
"""Of the bands of chance."""
PIT_BINS = 10
SURPRISES = 20
"""Rows that are shown."""
_FOLDS = 5
_FEWEST = 4
"""Rows below which nothing can be cross-fitted."""
_MOST_BASELINE_ROWS = 20_000
"""A line does not get better with more."""
_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Forecast of a linear model, and how it came about."""

    distribution: GaussianMixture
    words: str


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Observed against nominal coverage."""

    levels: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    """Where the curve may lie by chance."""
    baseline: np.ndarray | None


@dataclass(frozen=True, kw_only=True)
class PitHistogram:
    """Densities of F(y) in equal bins."""

    heights: np.ndarray
    low: float
    high: float
    """Where a bar may end by chance."""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Predictions against what happened, of some rows."""

    rows: tuple[str, ...]
    actual: np.ndarray
    predicted: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Surprise:
    """A row that the model thought unlikely."""

    row: str
    actual: float
    predicted: float
    low: float
    high: float
    surprise: float
    """-log p(y)."""
    inputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TargetScores:
    """All about the predictions of one target."""

    model: Scores
    baseline: Scores | None
    baseline_words: str
    pruned: Scores
    calibration: Calibration
    pit: PitHistogram
    pairs: Pairs
    surprises: tuple[Surprise, ...]
    surprise_inputs: tuple[str, ...]
    """Names of the inputs that are shown of them."""


def one_target(distribution: GaussianMixture, target: int) -> GaussianMixture:
    """Predictive distribution (n,) of one of the targets."""
    shape = (*distribution.means.shape[:2], -1)
    return GaussianMixture(
        weights=distribution.weights,
        means=distribution.means.reshape(shape)[..., target],
        deviations=distribution.deviations.reshape(shape)[..., target],
    )


def linear_baseline(
    rows: ReportRows, train: ReportRows | None, target: int, coverage: float
) -> Baseline | None:
    """N(y | m, d²) of Bayesian linear regression on the inputs of the network.

    Fitted to the training rows where they are known, and else in five folds to the rows at hand:
    each row is predicted by a line that has not seen it. None if there are too few rows.
    """
    method, inputs, y = bayesian_ridge(), rows.inputs(), rows.targets[:, target]
    if train is not None:
        places = sample(train.n_rows, _MOST_BASELINE_ROWS)
        known, values = train.inputs()[places], train.targets[places, target]
        found = method.fit(known, values, _SEED, coverage)(inputs).distribution
        which = "the" if places.size == train.n_given else f"{places.size:,} of the"
        return Baseline(distribution=found, words=f"fitted to {which} rows of training")
    if rows.n_rows < _FEWEST:
        return None
    folds = min(_FOLDS, rows.n_rows // 2)
    mean, deviation = np.empty(rows.n_rows), np.empty(rows.n_rows)
    for fitted, held in KFold(folds, shuffle=True, random_state=_SEED).split(inputs):
        chosen = fitted[sample(fitted.size, _MOST_BASELINE_ROWS)]
        forecast = method.fit(inputs[chosen], y[chosen], _SEED, coverage)(inputs[held])
        mean[held], deviation[held] = forecast.distribution.mean(), forecast.distribution.std()
    found = GaussianMixture(weights=np.ones(1), means=mean[None], deviations=deviation[None])
    return Baseline(
        distribution=found,
        words=f"cross-fitted in {folds} folds to the rows of this report, as those of training "
        "are not at hand",
    )


def score_target(
    rows: ReportRows,
    forecast: GaussianMixture,
    pruned: GaussianMixture,
    baseline: Baseline | None,
    target: int,
    coverage: float,
    columns: dict[str, Content],
    most_points: int,
) -> TargetScores:
    """Everything that rows with known targets say about the predictions of one of them."""
    y, weights = rows.targets[:, target], rows.weights
    mean, ends = forecast.mean(), forecast.interval(coverage)
    unlikely = -forecast.logpdf(y)
    worst = np.argsort(-unlikely, kind="stable")[:SURPRISES]
    texts = _texts(columns, worst)

    def scored(distribution: GaussianMixture) -> Scores:
        return evaluate(y, distribution, coverage=coverage, sample_weight=weights)

    return TargetScores(
        model=scored(forecast),
        baseline=None if baseline is None else scored(baseline.distribution),
        baseline_words="" if baseline is None else baseline.words,
        pruned=scored(pruned),
        calibration=_calibration(y, forecast, baseline, weights),
        pit=_pit_histogram(y, forecast),
        pairs=_pairs(rows.names, y, mean, ends, most_points),
        surprises=tuple(
            Surprise(
                row=clean(rows.names[row], 24),
                actual=float(y[row]),
                predicted=float(mean[row]),
                low=float(ends[row, 0]),
                high=float(ends[row, 1]),
                surprise=float(unlikely[row]),
                inputs=texts[place],
            )
            for place, row in enumerate(worst)
        ),
        surprise_inputs=tuple(clean(name, 30) for name in columns),
    )


def _calibration(
    y: np.ndarray,
    forecast: GaussianMixture,
    baseline: Baseline | None,
    weights: np.ndarray | None,
) -> Calibration:
    levels, observed = calibration_curve(y, forecast, sample_weight=weights)
    low, high = binomial_band(levels, y.size, PROBABILITY)
    line = None
    if baseline is not None:
        line = calibration_curve(y, baseline.distribution, sample_weight=weights)[1]
    return Calibration(levels=levels, observed=observed, low=low, high=high, baseline=line)


def _pit_histogram(y: np.ndarray, forecast: GaussianMixture) -> PitHistogram:
    heights, _ = np.histogram(pit(y, forecast), bins=PIT_BINS, range=(0.0, 1.0), density=True)
    low, high = binomial_band([1.0 / PIT_BINS], y.size, PROBABILITY)
    return PitHistogram(
        heights=heights, low=float(low[0]) * PIT_BINS, high=float(high[0]) * PIT_BINS
    )


def _pairs(
    names: Sequence[str], y: np.ndarray, mean: np.ndarray, ends: np.ndarray, most: int
) -> Pairs:
    places = sample(y.size, most)
    return Pairs(
        rows=tuple(clean(names[place], 24) for place in places),
        actual=y[places],
        predicted=mean[places],
        low=ends[places, 0],
        high=ends[places, 1],
    )


def _texts(columns: dict[str, Content], rows: np.ndarray) -> list[tuple[str, ...]]:
    """Values of the inputs in some rows, in words."""
    return [tuple(_value(content, row) for content in columns.values()) for row in rows]


def _value(content: Content, row: int) -> str:
    if isinstance(content, Texts):
        code = content.codes[row]
        return NOTHING if code < 0 else clean(content.distinct[code], 40)
    return quantity(float(content.values[row]), content.kind)
