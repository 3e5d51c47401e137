"""The parts of a report that are about single targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.evaluation import Scores, evaluate
from bowtienet.plotting._reading import TableColumns, take
from bowtienet.plotting._scored import distribution_of
from bowtienet.prediction.mixture import GaussianMixture
from bowtienet.report import figures
from bowtienet.report.baseline import linear_baseline
from bowtienet.report.columns import differs, value_text
from bowtienet.report.rows import ReportRows, sample
from bowtienet.report.svg import Plot
from bowtienet.report.wording import clean

SURPRISES = 20
_MOST_POINTS = 1200
_MOST_BANDS = 24
"""Points and bands of all targets together: they are most of the page."""
_SURPRISE_FEATURES = 8
_AVERAGED = 200
"""Rows that bands are averaged over."""

Progress = Callable[[str, float], object]


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
    features: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TargetContent:
    """The part of a report that is about one target."""

    name: str
    model: Scores
    baseline: Scores | None
    baseline_words: str
    pruned: Scores
    levels: tuple[int, int, int]
    """Levels of the calibration curve, below the band of chance, and above it."""
    strong: tuple[str, ...]
    """Features with any strength, the strongest first."""
    n_features: int
    predicted: Plot
    calibration: Plot
    pit: Plot
    relevance: Plot
    bands: tuple[tuple[str, Plot], ...]
    """Along some of the features."""
    surprises: tuple[Surprise, ...]
    surprise_features: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TargetParts:
    """What the parts about single targets have in common."""

    model: BowTieRegressor
    pruned: BowTieRegressor
    rows: ReportRows
    train: ReportRows | None
    table: TableColumns
    coverage: float
    is_seen: bool | None

    def collect(
        self, names: Sequence[str], max_features: int, tell: Progress
    ) -> tuple[TargetContent, ...]:
        """One part for each target; the more there are, the fewer points and bands of each."""
        forecasts = [one.predict_dist(self.rows.table) for one in (self.model, self.pruned)]
        most_points = max(100, _MOST_POINTS // len(names))
        most_bands = min(max_features, max(2, _MOST_BANDS // len(names)))
        found = []
        for place, name in enumerate(names):
            tell(f"scoring {name}", 0.2 + 0.6 * place / len(names))
            both = [distribution_of(forecast, place) for forecast in forecasts]
            found.append(self._target(name, place, both[0], both[1], most_points, most_bands))
        return tuple(found)

    def _target(
        self,
        name: str,
        place: int,
        forecast: GaussianMixture,
        pruned: GaussianMixture,
        most_points: int,
        most_bands: int,
    ) -> TargetContent:
        y, weights = self.rows.targets[:, place], self.rows.weights
        baseline = linear_baseline(self.model, self.rows, self.train, place, self.is_seen)
        line = None if baseline is None else baseline.distribution
        calibration, curve = figures.calibration_plot(
            f"calibration-{place}", y, forecast, line, weights
        )
        features, strength, probability = self._relevance(place)
        order = np.argsort(-strength, kind="stable")
        ranked = [features[i] for i in order]
        strong = [features[i] for i in order if strength[i] > 0.0]

        def scored(distribution: GaussianMixture) -> Scores:
            return evaluate(y, distribution, coverage=self.coverage, sample_weight=weights)

        return TargetContent(
            name=clean(name),
            model=scored(forecast),
            baseline=None if line is None else scored(line),
            baseline_words="" if baseline is None else baseline.words,
            pruned=scored(pruned),
            levels=(
                curve.levels.size,
                int(np.sum(curve.observed < curve.low)),
                int(np.sum(curve.observed > curve.high)),
            ),
            strong=tuple(clean(one) for one in strong),
            n_features=len(features),
            predicted=figures.predicted_plot(
                f"predicted-{place}", y, forecast, self.coverage, clean(name), most_points
            ),
            calibration=calibration,
            pit=figures.pit_plot(f"pit-{place}", y, forecast, weights),
            relevance=figures.relevance_plot(
                f"relevance-{place}", features, strength, probability, clean(name)
            ),
            bands=self._bands(strong, place, clean(name), most_bands),
            surprises=self._surprises(y, forecast, ranked[:_SURPRISE_FEATURES]),
            surprise_features=tuple(clean(one, 30) for one in ranked[:_SURPRISE_FEATURES]),
        )

    def _relevance(self, place: int) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Names, strengths and probabilities of the features for one target."""
        found = self.model.feature_relevance_
        # A model that knows no names knows columns by their place.
        names = found.name if hasattr(self.model, "feature_names_in_") else self.table.names
        strength, probability = (
            values.reshape(len(names), -1)[:, place]
            for values in (found.strength, found.probability)
        )
        return [str(name) for name in names], strength, probability

    def _bands(
        self, strong: Sequence[str], place: int, target: str, most: int
    ) -> tuple[tuple[str, Plot], ...]:
        contents = dict(zip(self.table.names, self.table.contents, strict=True))
        chosen = {one: contents[one] for one in strong if differs(contents[one])}
        chosen = dict(list(chosen.items())[:most])
        few = take(self.rows.table, sample(self.rows.n_rows, _AVERAGED))
        plots = figures.band_plots(
            f"band-{place}", self.model, few, chosen, place, target, self.coverage
        )
        return tuple((clean(one), plot) for one, plot in zip(chosen, plots, strict=True))

    def _surprises(
        self, y: np.ndarray, forecast: GaussianMixture, features: Sequence[str]
    ) -> tuple[Surprise, ...]:
        contents = dict(zip(self.table.names, self.table.contents, strict=True))
        mean, ends = forecast.mean(), forecast.interval(self.coverage)
        unlikely = -forecast.logpdf(y)
        return tuple(
            Surprise(
                row=clean(self.rows.names[row], 24),
                actual=float(y[row]),
                predicted=float(mean[row]),
                low=float(ends[row, 0]),
                high=float(ends[row, 1]),
                surprise=float(unlikely[row]),
                features=tuple(value_text(contents[one], int(row)) for one in features),
            )
            for row in np.argsort(-unlikely, kind="stable")[:SURPRISES]
        )
