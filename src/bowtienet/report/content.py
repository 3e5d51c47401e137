"""Everything that a report shows: numbers, texts and plots."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet import persistence
from bowtienet._validation import number, whole
from bowtienet.evaluation import Scores, evaluate
from bowtienet.plotting._reading import TableColumns, names_of_targets, read_columns, take
from bowtienet.plotting._scored import distribution_of
from bowtienet.plotting.fitted import (
    chosen_member,
    feature_names,
    learnt_columns,
    network_of,
    relevance_of,
    target_names,
)
from bowtienet.prediction.intervals import check_coverage
from bowtienet.prediction.mixture import GaussianMixture
from bowtienet.report import figures
from bowtienet.report.baseline import linear_baseline
from bowtienet.report.columns import (
    ColumnSummary,
    differs,
    summarize_features,
    summarize_targets,
    value_text,
)
from bowtienet.report.figures import Plot
from bowtienet.report.fit import FitFacts, fit_facts, is_pruned, prune_quietly
from bowtienet.report.rows import ReportRows, read_rows, sample
from bowtienet.report.wording import clean, count

MOST_ROWS = 20_000
"""Rows that are scored: a share of them is known to 0.4 points, and more would take minutes."""
MOST_TARGETS = 12
MOST_COLUMNS = 300
SURPRISES = 20
_MOST_POINTS = 1200
_MOST_BANDS = 24
"""Points and bands of all targets together: they are most of the page."""
_SURPRISE_FEATURES = 8
_AVERAGED = 100
"""Rows that bands along numbers are averaged over."""
_SEARCHED = 2000
"""Rows among which categories are looked for."""
_PACKAGES = ("numpy", "scipy", "scikit-learn")

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
class NetworkContent:
    """The network before and after pruning."""

    sizes: tuple[tuple[str, int, int], ...]
    """What, before and after, of all members together."""
    rate: float | None
    """Estimated false sign rate of the kept weights, where it is known."""
    was_pruned: bool
    """Whether the model itself is a pruned one, whose earlier weights are gone."""
    n_inputs: int
    n_drawn: int
    plots: tuple[Plot, ...]


@dataclass(frozen=True, kw_only=True)
class ReportContent:
    """All of a report."""

    title: str
    model_file: str | None
    coverage: float
    targets: tuple[TargetContent, ...]
    n_targets: int
    """Of the model; at most `MOST_TARGETS` are shown."""
    columns: tuple[ColumnSummary, ...]
    n_columns: int
    """Of the table and the targets; at most `MOST_COLUMNS` are shown."""
    n_rows: int
    """Rows that were scored."""
    n_effective: int
    """Rows of equal weight that would say as much; all without weights."""
    n_given: int
    """Rows that were given to be scored, those of weight 0 aside."""
    n_train: int | None
    """Training rows, where they are known."""
    is_seen: bool | None
    """Whether the rows were used in fitting; None if that is not known."""
    rows_named_by: str
    """"file", "index" or "place"."""
    fit: FitFacts
    bound: Plot | None
    network: NetworkContent
    versions: tuple[tuple[str, str], ...]
    written: str


def collect(
    model: Any,
    X: Any,
    y: Any,
    *,
    train: tuple[Any, ...] | None = None,
    seen: bool | None = None,
    sample_weight: Any = None,
    row_numbers: Any = None,
    coverage: float = 0.9,
    title: str | None = None,
    model_file: str | os.PathLike[str] | None = None,
    max_features: int = 12,
    progress: Progress | None = None,
) -> ReportContent:
    """Ask a fitted model all that its report shows; see `write_report` for the arguments."""
    tell = progress or _silent
    share = float(check_coverage(number(coverage, "coverage")))
    most = whole(max_features, "max_features")
    network, names = network_of(model), _target_names(model, y)
    tell("reading rows", 0.0)
    rows = read_rows(
        model, X, y, most=MOST_ROWS, sample_weight=sample_weight, row_numbers=row_numbers
    )
    known = None if train is None else _read_training(model, train)
    table = read_columns(rows.table, learnt_columns(model))
    columns = [
        *summarize_targets(names, rows.targets),
        *summarize_features(table, learnt_columns(model)),
    ]
    with warnings.catch_warnings():
        # Told of when rows are predicted by users; a report finds columns as the model does.
        warnings.simplefilter("ignore", UserWarning)
        tell("predicting", 0.1)
        pruned = prune_quietly(model)
        targets = _Targets(
            model=model,
            pruned=pruned,
            rows=rows,
            train=known,
            table=table,
            coverage=share,
            is_seen=seen,
        ).collect(names[:MOST_TARGETS], most, tell)
        tell("drawing the network", 0.8)
        return ReportContent(
            title=clean(title or f"A model of {', '.join(names)}", 120),
            model_file=None if model_file is None else os.fspath(model_file),
            coverage=share,
            targets=targets,
            n_targets=network.n_outputs_,
            columns=tuple(columns[:MOST_COLUMNS]),
            n_columns=len(columns),
            n_rows=rows.n_rows,
            n_effective=rows.n_effective,
            n_given=rows.n_given,
            n_train=None if known is None else known.n_given,
            is_seen=seen,
            rows_named_by=_naming(X, row_numbers),
            fit=fit_facts(model),
            bound=figures.bound_plot("bound", model),
            network=_network(model, pruned, names),
            versions=_versions(),
            written=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )


def _silent(words: str, share: float) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, kw_only=True)
class _Targets:
    """What the parts about single targets have in common."""

    model: Any
    pruned: Any
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
        found = relevance_of(self.model)
        # A model that knows no names knows columns by their place.
        names = found.name if feature_names(self.model) else self.table.names
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


def _network(model: Any, pruned: Any, targets: Sequence[str]) -> NetworkContent:
    """Sizes and plots of the network before and after pruning."""
    sizes, was_pruned = pruned.sparsity_, is_pruned(model)
    member = chosen_member(network_of(model), None)
    inputs = figures.strongest_inputs(model, pruned)
    counts = [
        (word, getattr(sizes, f"{name}_before"), getattr(sizes, f"{name}_after"))
        for name, word in (("inputs", "inputs"), ("nodes", "units"), ("weights", "weights"))
    ]
    several = len(network_of(model).member_weights_) > 1
    lead = "The member with the largest weight" if several else "The network"

    def plot(which: Any, side: int) -> Plot:
        number_of = [int(one[1 + side][member]) for one in counts]
        words = f"{lead} {('before', 'after')[side]} pruning: {count(number_of[0], 'input')}, "
        words += f"{count(number_of[1], 'unit')}, {count(number_of[2], 'weight')}."
        if number_of[2] == 0:
            words += " It predicts a constant."
        name = ("network-before", "network-after")[side]
        return figures.network_plot(name, which, inputs, member, targets, words)

    plots = [plot(pruned, 1)] if was_pruned else [plot(model, 0), plot(pruned, 1)]
    left = np.where(np.isnan(sizes.false_sign_rate), 0, sizes.weights_after)
    rate = float(np.nansum(sizes.false_sign_rate * left) / left.sum()) if left.sum() else None
    return NetworkContent(
        sizes=tuple((word, int(a.sum()), int(b.sum())) for word, a, b in counts),
        rate=rate,
        was_pruned=was_pruned,
        n_inputs=network_of(model).ensemble_.column_order.size,
        n_drawn=inputs.size,
        plots=tuple(plots),
    )


def _target_names(model: Any, y: Any) -> list[str]:
    """Names of the targets: those of `y`, of the model, or y, or y0, y1, ...."""
    n_outputs = network_of(model).n_outputs_
    for names in (names_of_targets(y), target_names(model)):
        if len(names) == n_outputs:
            return names
    return ["y"] if n_outputs == 1 else [f"y{place}" for place in range(n_outputs)]


def _read_training(model: Any, train: Any) -> ReportRows:
    if not isinstance(train, tuple) or len(train) not in (2, 3):
        raise ValueError(
            "train must be a pair (X, y) of the training rows, or (X, y, sample_weight), got "
            f"a {type(train).__name__}: give train=(X_train, y_train)."
        )
    X, y, weights = (*train, None)[:3]
    return read_rows(model, X, y, most=MOST_ROWS, sample_weight=weights)


def _naming(X: Any, row_numbers: Any) -> str:
    if row_numbers is not None:
        return "file"
    return "index" if hasattr(X, "iloc") else "place"


def _versions() -> tuple[tuple[str, str], ...]:
    found = [("bowtienet", persistence.version()), ("Python", platform.python_version())]
    found += [(name, importlib.metadata.version(name)) for name in _PACKAGES]
    return tuple(found)
