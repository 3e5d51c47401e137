"""The plots of a report: displays of `bowtienet._old.plotting`, drawn in `page_style`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.estimators.importance import Importance
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.plotting import (
    CalibrationCurveDisplay,
    ElboDisplay,
    ImportanceDisplay,
    PitHistogramDisplay,
    PredictedActualDisplay,
    PredictiveBandDisplay,
    RelevanceDisplay,
)
from bowtienet._old.prediction.mixture import Mixture
from bowtienet._old.report.svg import Plot, inline_svg, new_figure
from bowtienet._old.report.wording import clean, count, number, percent
from bowtienet._old.representation.kinds import Numbers, Texts

MOST_BARS = 20
"""Features whose strength is shown."""
WIDTH = 3.9
"""Inches, which become the width of a phone: letters of 8 points are then large enough."""
_NAME = 22
"""Letters of a name beside a plot."""
_GRID = 30
"""Values along a feature."""


def predicted_plot(
    name: str, y: np.ndarray, forecast: Mixture, coverage: float, target: str
) -> Plot:
    """Actual targets over predictions."""
    figure = new_figure(WIDTH, 3.9)
    display = PredictedActualDisplay.from_predictions(
        y,
        forecast,
        coverage=coverage,
        target_name=clean(target, _NAME),
        ax=figure.add_subplot(),
    )
    shown = display.rows.size
    some = f"; {shown:,} rows, chosen at random, are shown" if shown < y.size else ""
    words = (
        f"Actual over predicted {target}: {int(display.outside.sum()):,} of "
        f"{count(y.size, 'row')} lie outside their {percent(coverage)} intervals{some}."
    )
    return inline_svg(figure, name, words)


def calibration_plot(
    name: str,
    y: np.ndarray,
    forecast: Mixture,
    baseline: Mixture | None,
    weights: np.ndarray,
) -> tuple[Plot, CalibrationCurveDisplay]:
    """Observed against nominal coverage, of the linear model too; and the curve of the network."""
    figure = new_figure(WIDTH, 3.9)
    ax = figure.add_subplot()
    draw = CalibrationCurveDisplay.from_predictions
    display = draw(y, forecast, sample_weight=weights, name="this model", ax=ax)
    if baseline is not None:
        draw(y, baseline, sample_weight=weights, name="linear model", ax=ax)
    words = f"Observed over nominal coverage at {display.levels.size} levels."
    return inline_svg(figure, name, words), display


def pit_plot(name: str, y: np.ndarray, forecast: Mixture, weights: np.ndarray) -> Plot:
    """Where targets fall in their predictive distributions."""
    figure = new_figure(WIDTH, 3.2)
    display = PitHistogramDisplay.from_predictions(
        y, forecast, sample_weight=weights, ax=figure.add_subplot()
    )
    heights = ", ".join(number(float(height), 2) for height in display.heights)
    words = f"Histogram of the probability integral transform: {heights}; 1 is calibrated."
    return inline_svg(figure, name, words)


def relevance_plot(
    name: str, names: Sequence[str], strength: np.ndarray, p_value: np.ndarray, target: str
) -> Plot:
    """Strength of the features for one target."""
    figure = new_figure(WIDTH, 0.9 + 0.25 * min(len(names), MOST_BARS))
    shown = [clean(one, _NAME) for one in names]
    RelevanceDisplay(names=shown, strength=strength, p_value=p_value).plot(
        most=MOST_BARS, ax=figure.add_subplot()
    )
    order = np.argsort(-strength, kind="stable")[:5]
    strongest = ", ".join(f"{shown[i]} {number(float(strength[i]), 3)}" for i in order)
    words = f"Strength of the features for {target}, the strongest first: {strongest}."
    return inline_svg(figure, name, words)


def importance_plot(
    name: str, found: Importance, place: int, target: str, lost: str = "log density"
) -> Plot:
    """What rows lose of one target without what a feature says."""
    figure = new_figure(WIDTH, 0.9 + 0.25 * min(len(found.name), MOST_BARS))
    display = ImportanceDisplay.from_importance(found, target=place)
    display.names = [clean(one, _NAME) for one in display.names]
    display.label = f"drop in {lost}"
    display.plot(most=MOST_BARS, ax=figure.add_subplot())
    order = np.argsort(-display.losses, kind="stable")[:5]
    largest = ", ".join(
        f"{display.names[i]} {number(float(display.losses[i]), 3)} ± "
        f"{number(float(display.errors[i]), 2)}"
        for i in order
    )
    words = f"Drop in {lost} of {target} when a feature is permuted, with errors: {largest}."
    return inline_svg(figure, name, words)


def bound_plot(name: str, model: EnsembleEstimator) -> Plot | None:
    """The evidence bound; None for a model that has no history of it."""
    if len(model.elbo_history_) == 0 or model.elbo_terms_ is None:
        return None
    figure = new_figure(WIDTH, 5.0)
    display = ElboDisplay.from_estimator(model, fig=figure)
    words = (
        f"Evidence bound by {display.unit}, from {number(float(display.history[0]), 6)} to "
        f"{number(float(display.history[-1]), 6)} after {display.history.size:,}."
    )
    return inline_svg(figure, name, words)


def band_plots(
    name: str,
    model: BowTieRegressor,
    source: InMemory,
    features: dict[str, Numbers | Texts],
    target: int,
    target_name: str,
    coverage: float,
) -> list[Plot]:
    """Predictions along each feature, all over the same range of the target."""
    displays = []
    for feature, content in features.items():
        display = PredictiveBandDisplay.from_estimator(
            model,
            source,
            feature,
            others="average",
            coverages=(0.5, coverage) if coverage > 0.6 else (coverage,),
            grid=_GRID,
            target=target,
            target_name=clean(target_name, _NAME),
            ax=new_figure(WIDTH, 3.4).add_subplot(),
        )
        display.ax_.set_xlabel(clean(feature, 30))
        if isinstance(content, Numbers):
            _add_deciles(display.ax_, content.values)
        else:
            labels = [clean(label, 16) for label in display.x]
            display.ax_.set_xticks(range(len(labels)), labels)
        displays.append(display)
    if displays:
        ends = np.concatenate([display.intervals.ravel() for display in displays])
        margin = 0.04 * np.ptp(ends)
        limits = ends.min() - margin, ends.max() + margin
    found = []
    for place, (feature, display) in enumerate(zip(features, displays, strict=True)):
        display.ax_.set_ylim(limits)
        low, high = (number(float(end)) for end in (display.mean.min(), display.mean.max()))
        words = f"Prediction of {target_name} along {clean(feature)}: between {low} and {high}."
        found.append(inline_svg(display.figure_, f"{name}-{place}", words))
    return found


def _add_deciles(ax: Any, values: np.ndarray) -> None:
    """Ticks inside the axes at the tenths of the rows: where there is little to learn from."""
    places = np.nanquantile(values, np.arange(0.1, 0.95, 0.1))
    # Days since 1970 are matplotlib's dates, too.
    ax.plot(places, np.zeros(9), "|", ms=9.0, color="#1f2933", transform=ax.get_xaxis_transform())
