"""The parts of a report that are about single targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.estimators.importance import Importance
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.evaluation import Scores, evaluate
from bowtienet._old.plotting._along import sample
from bowtienet._old.plotting._scored import distribution_of
from bowtienet._old.prediction.mixture import Mixture
from bowtienet._old.report import figures
from bowtienet._old.report.baseline import linear_baseline
from bowtienet._old.report.column_table import differs, value_text
from bowtienet._old.report.estimates import ComparedScore, number_scores
from bowtienet._old.report.residual_figures import residuals_over_feature, residuals_over_predictions
from bowtienet._old.report.sampled_rows import ReportRows
from bowtienet._old.report.svg import Plot
from bowtienet._old.report.wording import clean, kind_of
from bowtienet._old.representation.kinds import NUMBER, Numbers, Texts

SURPRISES = 20
_MOST_BANDS = 24
"""Of all targets together: they are most of the page."""
_SURPRISE_FEATURES = 8
_MOST_RESIDUALS = 6
"""Features that residuals are drawn over."""
_TAIL = 0.02
"""Share of the targets beyond either end of what is usual."""
_PERMUTED_ROWS = 100_000
"""Rows with a permuted feature that are predicted, about: seconds, whatever the table."""
_FEWEST_PERMUTED = 100
"""Rows whose features are permuted, if there are as many."""

Progress = Callable[[str, float], object]


def permuted_rows(n_features: int) -> int:
    """Rows whose features are permuted: few where there are many features."""
    return max(_FEWEST_PERMUTED, _PERMUTED_ROWS // (5 * n_features))


def measured_importance(
    model: EnsembleEstimator, rows: ReportRows, n_features: int
) -> Importance | None:
    """Of some of the rows, few where there are many features; None of a single row."""
    if rows.n_rows < 2:
        return None
    some = rows.source.take(sample(rows.n_rows, permuted_rows(n_features)))
    return model.importance(some, n_repeats=5)


def ranked_features(model: EnsembleEstimator, importance: Importance | None) -> list[int]:
    """Places of the features, the most important for any target first; by strength if need be."""
    found = model.feature_relevance_.strength if importance is None else importance.log_density_drop
    largest = np.reshape(found, (len(model.columns_), -1)).max(axis=1)
    return np.argsort(-largest, kind="stable").tolist()


@dataclass(frozen=True, kw_only=True)
class Surprise:
    """A row that the model thought unlikely."""

    place: int
    """Among the rows of the report."""
    row: str
    actual: float
    predicted: float
    low: float
    high: float
    probability: float
    """Of a target at least as far out on either side, 2 min(F(y), 1 - F(y))."""
    reasons: tuple[str, ...]
    """How the row leaves what training had, if it does."""
    features: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TargetContent:
    """The part of a report that is about one target."""

    name: str
    kind: str
    """"number", or "year"."""
    usual: tuple[float, float]
    """Between these lie most targets of the rows."""
    model: Scores
    baseline: Scores | None
    baseline_words: str
    scores: dict[str, ComparedScore]
    """With intervals, by name."""
    levels: tuple[int, int, int]
    """Levels of the calibration curve, below the band of chance, and above it."""
    strong: tuple[str, ...]
    """Features with any strength, the strongest first."""
    n_features: int
    predicted: Plot
    residuals: Plot
    """Over predictions."""
    feature_residuals: tuple[tuple[str, Plot], ...]
    """Over the most important features."""
    calibration: Plot
    pit: Plot
    relevance: Plot
    importance: Plot | None
    """None of a single row."""
    bands: tuple[tuple[str, Plot], ...]
    """Along some of the features."""
    surprises: tuple[Surprise, ...]
    surprise_features: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TargetParts:
    """What the parts about single targets have in common."""

    model: BowTieRegressor
    rows: ReportRows
    train: ReportRows | None
    contents: dict[str, Numbers | Texts]
    """What each feature holds in the rows, in the order of training."""
    coverage: float
    importance: Importance | None
    """Of all targets; None of a single row."""
    departures: dict[int, tuple[str, ...]]
    """By row: how it leaves what training had."""

    def collect(
        self, names: Sequence[str], max_features: int, tell: Progress
    ) -> tuple[TargetContent, ...]:
        """One part for each target; the more there are, the fewer bands of each."""
        forecasts = self.model.predict_dist(self.rows.source)
        most = min(max_features, max(2, _MOST_BANDS // len(names)))
        found = []
        for place, name in enumerate(names):
            tell(f"scoring {name}", 0.2 + 0.6 * place / len(names))
            found.append(self._target(clean(name), place, distribution_of(forecasts, place), most))
        return tuple(found)

    def _target(self, name: str, place: int, forecast: Mixture, most_plots: int) -> TargetContent:
        y, weights = self.rows.targets[:, place], self.rows.weights
        line, line_words = linear_baseline(self.model, self.rows, self.train, place) or (None, "")
        calibration, curve = figures.calibration_plot(
            f"calibration-{place}", y, forecast, line, weights
        )
        relevance = self.model.feature_relevance_
        strength = relevance.strength.reshape(len(self.contents), -1)[:, place]
        features, order = list(self.contents), np.argsort(-strength, kind="stable")
        strong = [features[i] for i in order if strength[i] > 0.0]
        shown = [features[i] for i in order[:_SURPRISE_FEATURES]]

        def scored(distribution: Mixture) -> Scores:
            return evaluate(y, distribution, coverage=self.coverage, sample_weight=weights)

        return TargetContent(
            name=name,
            kind=kind_of(Numbers(kind=NUMBER, values=y)),
            usual=(float(np.quantile(y, _TAIL)), float(np.quantile(y, 1.0 - _TAIL))),
            scores=number_scores(y, forecast, line, weights, self.coverage),
            model=scored(forecast),
            baseline=None if line is None else scored(line),
            baseline_words=line_words,
            levels=(
                curve.levels.size,
                int(np.sum(curve.observed < curve.low)),
                int(np.sum(curve.observed > curve.high)),
            ),
            strong=tuple(clean(one) for one in strong),
            n_features=len(features),
            predicted=figures.predicted_plot(
                f"predicted-{place}", y, forecast, self.coverage, name
            ),
            residuals=residuals_over_predictions(
                f"residuals-{place}", y - forecast.mean(), forecast.mean(), name
            ),
            feature_residuals=self._residuals(y - forecast.mean(), place, name, most_plots),
            calibration=calibration,
            pit=figures.pit_plot(f"pit-{place}", y, forecast, weights),
            relevance=figures.relevance_plot(
                f"relevance-{place}", features, strength, relevance.p_value, name
            ),
            importance=None
            if self.importance is None
            else figures.importance_plot(f"importance-{place}", self.importance, place, name),
            bands=self._bands(strong, place, name, most_plots),
            surprises=self._surprises(y, forecast, shown),
            surprise_features=tuple(clean(one, 30) for one in shown),
        )

    def _bands(
        self, strong: Sequence[str], place: int, target: str, most: int
    ) -> tuple[tuple[str, Plot], ...]:
        chosen = [one for one in strong if differs(self.contents[one])][:most]
        plots = figures.band_plots(
            f"band-{place}",
            self.model,
            self.rows.source,
            {one: self.contents[one] for one in chosen},
            place,
            target,
            self.coverage,
        )
        return tuple((clean(one), plot) for one, plot in zip(chosen, plots, strict=True))

    def _residuals(
        self, residuals: np.ndarray, place: int, target: str, most: int
    ) -> tuple[tuple[str, Plot], ...]:
        """Over the features that are most important for this target, and vary."""
        relevance, found = self.model.feature_relevance_.strength, self.importance
        values = relevance if found is None else found.log_density_drop
        order = np.argsort(-np.reshape(values, (len(self.contents), -1))[:, place], kind="stable")
        names = [list(self.contents)[feature] for feature in order]
        chosen = [one for one in names if differs(self.contents[one])]
        return tuple(
            (
                clean(one),
                residuals_over_feature(
                    f"residuals-{place}-{k}", residuals, self.contents[one], one, target
                ),
            )
            for k, one in enumerate(chosen[: min(most, _MOST_RESIDUALS)])
        )

    def _surprises(
        self, y: np.ndarray, forecast: Mixture, features: Sequence[str]
    ) -> tuple[Surprise, ...]:
        mean, ends = forecast.mean(), forecast.interval(self.coverage)
        tails = np.minimum(1.0, 2.0 * np.minimum(forecast.cdf(y), forecast.sf(y)))
        # Far out tails are all 0, and densities still tell rows apart.
        order = np.lexsort((forecast.logpdf(y), tails))
        return tuple(
            Surprise(
                place=int(row),
                row=clean(self.rows.names[row], 24),
                actual=float(y[row]),
                predicted=float(mean[row]),
                low=float(ends[row, 0]),
                high=float(ends[row, 1]),
                probability=float(tails[row]),
                reasons=self.departures.get(int(row), ()),
                features=tuple(value_text(self.contents[one], int(row)) for one in features),
            )
            for row in order[:SURPRISES]
        )
