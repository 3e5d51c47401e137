"""How well one target is predicted: scores beside a linear baseline, calibration, surprises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet.estimators.columns import Texts
from bowtienet.evaluation import (
    Scores,
    binomial_band,
    calibration_curve,
    evaluate,
    pit,
)
from bowtienet.prediction.mixture import GaussianMixture, build_mixture
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
"""A line hardly gets better with more."""
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


def linear_baseline(
    rows: ReportRows, train: ReportRows | None, target: int, is_seen: bool | None = None
) -> Baseline | None:
    """N(y | m, d²) of Bayesian linear regression on the inputs of the network.

    Fitted to the training rows where they are known, and to the rows at hand if the network has
    seen them too. Else in five folds to the rows at hand: each row is predicted by a line that has
    not seen it. None if there are too few rows.
    """
    if train is None and not is_seen:
        return _cross_fitted(rows, target)
    known = rows if train is None else train
    if known.n_rows < _FEWEST:
        return None
    places = sample(known.n_rows, _MOST_BASELINE_ROWS)
    mean, deviation = _predict_line(
        known.inputs()[places],
        known.targets[places, target],
        None if known.weights is None else known.weights[places],
        rows.inputs(),
    )
    which = "the" if places.size == known.n_given else f"{places.size:,} of the"
    words = f"fitted to {which} rows of training"
    if train is None:
        some = "" if places.size == rows.n_rows else f"{places.size:,} of "
        words = f"fitted to {some}the rows that it is scored on, as the network is"
    found = build_mixture([1.0], mean[None], deviation[None])
    return Baseline(distribution=found, words=words)


def _cross_fitted(rows: ReportRows, target: int) -> Baseline | None:
    if rows.n_rows < _FEWEST:
        return None
    folds, inputs, y = min(_FOLDS, rows.n_rows // 2), rows.inputs(), rows.targets[:, target]
    mean, deviation = np.empty(rows.n_rows), np.empty(rows.n_rows)
    for fitted, held in KFold(folds, shuffle=True, random_state=_SEED).split(inputs):
        chosen = fitted[sample(fitted.size, _MOST_BASELINE_ROWS)]
        weights = None if rows.weights is None else rows.weights[chosen]
        mean[held], deviation[held] = _predict_line(
            inputs[chosen], y[chosen], weights, inputs[held]
        )
    return Baseline(
        distribution=build_mixture([1.0], mean[None], deviation[None]),
        words=f"cross-fitted in {folds} folds to the rows of this report, as those of training "
        "are not at hand: it has not seen the rows that it is scored on",
    )


def _predict_line(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations (n,) for new inputs, by a line through known rows."""
    given = {}
    if weights is not None:
        # Their mean is 1: the noise is then that of one row, in every release of scikit-learn.
        shares = weights / np.mean(weights)
        given = {f"{step}__sample_weight": shares for step in ("standardscaler", "bayesianridge")}
    line = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y, **given)
    mean, deviation = line.predict(new, return_std=True)
    return mean, deviation


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
        calibration=_calibration(rows, y, forecast, baseline),
        pit=_pit_histogram(rows, y, forecast),
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
    rows: ReportRows, y: np.ndarray, forecast: GaussianMixture, baseline: Baseline | None
) -> Calibration:
    levels, observed = calibration_curve(y, forecast, sample_weight=rows.weights)
    low, high = binomial_band(levels, rows.n_effective, PROBABILITY)
    line = None
    if baseline is not None:
        line = calibration_curve(y, baseline.distribution, sample_weight=rows.weights)[1]
    return Calibration(levels=levels, observed=observed, low=low, high=high, baseline=line)


def _pit_histogram(rows: ReportRows, y: np.ndarray, forecast: GaussianMixture) -> PitHistogram:
    heights, _ = np.histogram(
        pit(y, forecast), bins=PIT_BINS, range=(0.0, 1.0), density=True, weights=rows.weights
    )
    low, high = binomial_band([1.0 / PIT_BINS], rows.n_effective, PROBABILITY)
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
