"""The plots of a report: displays of `bowtienet.plotting`, drawn in `page_style`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.plotting import (
    CalibrationCurveDisplay,
    ElboDisplay,
    NetworkDisplay,
    PitHistogramDisplay,
    PredictedActualDisplay,
    PredictiveBandDisplay,
    RelevanceDisplay,
)
from bowtienet.plotting.fitted import (
    chosen_member,
    encoded_names,
    member_weights,
)
from bowtienet.prediction.mixture import GaussianMixture
from bowtienet.report.svg import Plot, inline_svg, new_figure
from bowtienet.report.wording import clean, count, number, percent
from bowtienet.representation.kinds import Numbers, Texts

MOST_BARS = 20
"""Features whose strength is shown."""
MOST_INPUTS = 30
"""Inputs in the plot of a network: the strongest of them."""
_WIDTH = 3.9
"""Inches, which become the width of a phone: letters of 8 points are then large enough."""
_MOST_LINES = 1200
"""Weights beyond which they are drawn as an image: lines would take megabytes."""
_NAME, _SHORT = 22, 14
"""Letters of a name beside a plot, and of names on both sides."""
_GRID, _FEW, _TAIL = 30, 20, 0.01
"""Values along a feature; different numbers up to which each is shown; rows beyond either end."""


def predicted_plot(
    name: str, y: np.ndarray, forecast: GaussianMixture, coverage: float, target: str, most: int
) -> Plot:
    """Actual targets over predictions."""
    figure = new_figure(_WIDTH, 3.9)
    display = PredictedActualDisplay.from_predictions(
        y,
        forecast,
        coverage=coverage,
        target_name=clean(target, _NAME),
        most_rows=most,
        ax=figure.add_subplot(),
    )
    shown = display.rows_with_points.size
    some = f"; {shown:,} rows, chosen at random, are shown" if shown < y.size else ""
    words = (
        f"Actual over predicted {target}: {int(display.outside.sum()):,} of "
        f"{count(y.size, 'row')} lie outside their {percent(coverage)} intervals{some}."
    )
    return inline_svg(figure, name, words)


def calibration_plot(
    name: str,
    y: np.ndarray,
    forecast: GaussianMixture,
    baseline: GaussianMixture | None,
    weights: np.ndarray,
) -> tuple[Plot, CalibrationCurveDisplay]:
    """Observed against nominal coverage, of the linear model too; and the curve of the network."""
    figure = new_figure(_WIDTH, 3.9)
    ax = figure.add_subplot()
    draw = CalibrationCurveDisplay.from_predictions
    display = draw(y, forecast, sample_weight=weights, name="this model", ax=ax)
    if baseline is not None:
        draw(y, baseline, sample_weight=weights, name="linear model", ax=ax)
    words = f"Observed over nominal coverage at {display.levels.size} levels."
    return inline_svg(figure, name, words), display


def pit_plot(name: str, y: np.ndarray, forecast: GaussianMixture, weights: np.ndarray) -> Plot:
    """Where targets fall in their predictive distributions."""
    figure = new_figure(_WIDTH, 3.2)
    display = PitHistogramDisplay.from_predictions(
        y, forecast, sample_weight=weights, ax=figure.add_subplot()
    )
    heights = ", ".join(number(float(height), 2) for height in display.heights)
    words = f"Histogram of the probability integral transform: {heights}; 1 is calibrated."
    return inline_svg(figure, name, words)


def relevance_plot(
    name: str, names: Sequence[str], strength: np.ndarray, probability: np.ndarray, target: str
) -> Plot:
    """Strength of the features for one target."""
    figure = new_figure(_WIDTH, 0.9 + 0.25 * min(len(names), MOST_BARS))
    shown = [clean(one, _NAME) for one in names]
    RelevanceDisplay(names=shown, strength=strength, probability=probability).plot(
        most=MOST_BARS, ax=figure.add_subplot()
    )
    order = np.argsort(-strength, kind="stable")[:5]
    strongest = ", ".join(f"{shown[i]} {number(float(strength[i]), 3)}" for i in order)
    words = f"Strength of the features for {target}, the strongest first: {strongest}."
    return inline_svg(figure, name, words)


def bound_plot(name: str, model: BowTieRegressor) -> Plot | None:
    """The evidence bound; None for a pruned model, which has no history of it."""
    if len(model.elbo_history_) == 0 or model.elbo_terms_ is None:
        return None
    figure = new_figure(_WIDTH, 5.0)
    display = ElboDisplay.from_estimator(model, fig=figure)
    words = (
        f"Evidence bound by {display.unit}, from {number(float(display.history[0]), 6)} to "
        f"{number(float(display.history[-1]), 6)} after {display.history.size:,}."
    )
    return inline_svg(figure, name, words)


def band_plots(
    name: str,
    model: BowTieRegressor,
    table: Any,
    features: dict[str, Numbers | Texts],
    target: int,
    target_name: str,
    coverage: float,
) -> list[Plot]:
    """Predictions along each feature, all over the same range of the target."""
    figures, displays = [], []
    for feature, content in features.items():
        figures.append(new_figure(_WIDTH, 3.4))
        displays.append(
            PredictiveBandDisplay.from_estimator(
                model,
                table,
                feature,
                others="average",
                coverages=(0.5, coverage) if coverage > 0.6 else (coverage,),
                grid=_grid(content),
                target=target,
                target_name=clean(target_name, _NAME),
                ax=figures[-1].add_subplot(),
            )
        )
        displays[-1].ax_.set_xlabel(clean(feature, 30))
        if displays[-1].is_categorical:
            labels = [clean(label, 16) for label in displays[-1].x]
            displays[-1].ax_.set_xticks(range(len(labels)), labels)
        elif isinstance(content, Numbers):
            _add_deciles(displays[-1], content)
    low = min((float(one.intervals.min()) for one in displays), default=0.0)
    high = max((float(one.intervals.max()) for one in displays), default=1.0)
    margin = 0.04 * (high - low)
    found = []
    for place, (figure, display) in enumerate(zip(figures, displays, strict=True)):
        display.ax_.set_ylim(low - margin, high + margin)
        words = _band_words(display, list(features)[place], target_name)
        found.append(inline_svg(figure, f"{name}-{place}", words))
    return found


def strongest_inputs(model: BowTieRegressor, pruned: BowTieRegressor) -> np.ndarray:
    """Inputs to draw, in the order of the table: first those left by pruning, then by weight."""
    member = chosen_member(model, None)
    before, after = (
        np.abs(member_weights(one, member)[0][:, 1:]).sum(axis=0) for one in (model, pruned)
    )
    return np.sort(np.lexsort((-before, after == 0.0))[:MOST_INPUTS])


def network_plot(
    name: str,
    model: BowTieRegressor,
    inputs: np.ndarray,
    member: int,
    targets: Sequence[str],
    words: str,
) -> Plot:
    """The network of a member, with some of its inputs."""
    weights = member_weights(model, member)
    weights = [weights[0][:, [0, *(1 + inputs)]], *weights[1:]]
    names = [clean(encoded_names(model)[place], _SHORT) for place in inputs]
    tallest = max(len(names), 6.0 * max(len(matrix) for matrix in weights) ** 0.5)
    figure = new_figure(_WIDTH, float(np.clip(1.2 + 0.2 * tallest, 3.0, 8.0)))
    display = NetworkDisplay(
        weights=weights,
        input_names=names,
        output_names=[clean(target, _SHORT) for target in targets],
    ).plot(ax=figure.add_subplot())
    if sum(int(np.count_nonzero(matrix[:, 1:])) for matrix in weights) > _MOST_LINES:
        display.ax_.collections[0].set_rasterized(True)
    return inline_svg(figure, name, words)


def _grid(content: Numbers | Texts) -> Any:
    """All values of a feature if they are few, or even steps over nearly all of its range."""
    if isinstance(content, Texts):
        return _GRID
    finite = content.values[np.isfinite(content.values)]
    distinct = np.unique(finite)
    if distinct.size <= _FEW:
        return distinct
    low, high = np.quantile(finite, (_TAIL, 1.0 - _TAIL))
    return np.linspace(low, high, _GRID) if low < high else distinct[[0, -1]]


def _add_deciles(display: Any, content: Numbers) -> None:
    """Ticks inside the axes at the tenths of the rows: where there is little to learn from."""
    finite = content.values[np.isfinite(content.values)]
    places = np.quantile(finite, np.arange(0.1, 0.95, 0.1))
    # Days since 1970 are matplotlib's dates, too.
    ax = display.ax_
    ax.plot(places, np.zeros(9), "|", ms=9.0, color="#1f2933", transform=ax.get_xaxis_transform())


def _band_words(display: Any, feature: str, target: str) -> str:
    mean = display.mean
    if display.is_categorical:
        means = ", ".join(
            f"{clean(label, 30)} {number(float(value))}"
            for label, value in zip(display.x, mean, strict=True)
        )
        return f"Prediction of {target} for each value of {clean(feature)}: {means}."
    return (
        f"Prediction of {target} along {clean(feature)}: from {number(float(mean[0]))} to "
        f"{number(float(mean[-1]))}, between {number(float(mean.min()))} and "
        f"{number(float(mean.max()))}."
    )
