"""The charts of a report, each with its legend and the words that stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bowtienet.estimators.columns import DATE, DURATION
from bowtienet.plotting.elbo import readable_limits
from bowtienet.report.inputs import Dependence, Relevance
from bowtienet.report.scoring import PIT_BINS, Calibration, Pairs, PitHistogram
from bowtienet.report.summary import ColumnSummary
from bowtienet.report.svg import (
    WIDTH,
    Frame,
    Svg,
    Values,
    axes,
    date_ticks,
    drawing,
    element,
    horizontal_axis,
    mark,
    path,
    shortened,
    widened,
)
from bowtienet.report.wording import clean, count, number, percent, quantity

_HEIGHT = 294.0
_MOST_SWEEPS = 200
MOST_BARS = 20
"""Inputs whose strength is shown."""
_LABELS = 140.0
"""Room for names at the left of a chart."""
_ROW = 26.0


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture and its legend."""

    picture: Svg
    legend: tuple[tuple[str, str], ...] = ()
    """Class of the swatch, and what it stands for."""


def histogram_chart(column: ColumnSummary) -> Svg:
    """A column in a few small bars."""
    width, height, counts = 120.0, 30.0, column.counts
    if not counts:
        return Svg("")
    step, highest = width / len(counts), max(*counts, 1)
    bars = [
        mark(
            "rect",
            f"{_bin_words(column, place)}: {count(n, 'row')}",
            x=place * step + 0.5,
            y=height - (height - 2.0) * n / highest,
            width=step - 1.0,
            height=max((height - 2.0) * n / highest, 0.5),
            class_="mark bar",
        )
        for place, n in enumerate(counts)
    ]
    words = f"Histogram of {column.name}: {', '.join(str(n) for n in counts)} rows in its bars."
    return drawing(words, width, height, *bars, class_="spark")


def _bin_words(column: ColumnSummary, place: int) -> str:
    if column.categories:
        return column.categories[place]
    if column.low is None or column.high is None or column.low == column.high:
        return quantity(column.low, column.kind)
    edges = np.linspace(column.low, column.high, len(column.counts) + 1)
    ends = [quantity(float(edges[place + side]), column.kind) for side in (0, 1)]
    return f"{ends[0]} to {ends[1]}"


def bound_chart(history: Sequence[float], unit: str) -> Chart:
    """The evidence bound by sweep, without the first ones if they would hide the others."""
    values = np.asarray(history, dtype=float)
    low, high = readable_limits(values)
    every = np.arange(values.size)
    places = np.unique(np.linspace(0, values.size - 1, _MOST_SWEEPS).round().astype(int))
    places = every if values.size <= _MOST_SWEEPS else places
    places = places[values[places] >= low]
    frame = Frame(x=widened(float(places[0] + 1), float(places[-1] + 1)), y=(low, high), left=72.0)
    x, y = (places + 1.0).tolist(), values[places].tolist()
    dots = [
        mark("circle", f"{unit} {a:.0f}: {number(b, 7)}", cx=frame.across(a), cy=frame.up(b), r=2.5)
        for a, b in zip(x, y, strict=True)
    ]
    words = (
        f"Evidence bound by {unit}, from {number(values[0], 6)} after the first to "
        f"{number(values[-1], 6)} after the last of {values.size}."
    )
    parts = [axes(frame, unit, "evidence bound"), _line(frame, x, y, "line"), *dots]
    return Chart(picture=drawing(words, WIDTH, _HEIGHT, *parts))


def calibration_chart(found: Calibration) -> Chart:
    """Observed against nominal coverage, with the band of chance and the linear model."""
    frame = Frame(x=(0.0, 1.0), y=(0.0, 1.0), bottom=330.0)
    closed = [np.concatenate([[0.0], v, [1.0]]) for v in (found.levels, found.low, found.high)]
    parts = [
        element("path", d=frame.band(*closed), class_="chance"),
        axes(frame, "nominal coverage", "observed coverage"),
        _line(frame, (0.0, 1.0), (0.0, 1.0), "exact"),
    ]
    legend = [("line", "this model"), ("chance", "by chance, 95 %"), ("exact", "calibrated")]
    if found.baseline is not None:
        parts.append(_line(frame, found.levels, found.baseline, "line other"))
        legend.insert(1, ("line other", "linear model"))
    parts.append(_line(frame, found.levels, found.observed, "line"))
    parts += [
        mark(
            "circle",
            f"{percent(level)} intervals hold {percent(seen)} of the rows\n"
            f"by chance {percent(low)} to {percent(high)}",
            cx=frame.across(level),
            cy=frame.up(seen),
            r=3.5,
        )
        for level, seen, low, high in zip(
            found.levels, found.observed, found.low, found.high, strict=True
        )
    ]
    outside = int(np.sum((found.observed < found.low) | (found.observed > found.high)))
    words = (
        f"Calibration curve: of {found.levels.size} coverages from 5 % to 95 %, {outside} lie "
        "outside the band of chance."
    )
    return Chart(picture=drawing(words, WIDTH, 374.0, *parts), legend=tuple(legend))


def pit_chart(found: PitHistogram) -> Chart:
    """Density of F(y) in bars, with the band of chance."""
    top = 1.1 * max(found.high, float(np.max(found.heights)))
    frame = Frame(x=(0.0, 1.0), y=(0.0, top))
    edges = np.linspace(0.0, 1.0, PIT_BINS + 1)
    parts = [
        element(
            "path", d=frame.band((0.0, 1.0), [found.low] * 2, [found.high] * 2), class_="chance"
        ),
        axes(frame, "predicted probability below the target", "density"),
    ]
    parts += [
        mark(
            "rect",
            f"{number(float(a), 2)} to {number(float(b), 2)}: density {number(float(height), 3)}",
            x=frame.across(a) + 1.0,
            y=frame.up(height),
            width=frame.across(b) - frame.across(a) - 2.0,
            height=max(frame.bottom - frame.up(height), 0.5),
            class_="mark bar see-through",
        )
        for (a, b), height in zip(pairwise(edges), found.heights, strict=True)
    ]
    parts.append(_line(frame, (0.0, 1.0), (1.0, 1.0), "exact"))
    words = (
        f"Histogram of the probability integral transform, {PIT_BINS} bars with densities "
        f"{', '.join(number(float(h), 2) for h in found.heights)}; 1 is calibrated."
    )
    legend = (("bar see-through", "rows"), ("chance", "by chance, 95 %"), ("exact", "calibrated"))
    return Chart(picture=drawing(words, WIDTH, _HEIGHT, *parts), legend=legend)


def pairs_chart(found: Pairs, target: str, coverage: float) -> Chart:
    """Actual targets over predictions; those outside their intervals have another mark."""
    both = np.concatenate([found.actual, found.predicted])
    ends = widened(float(np.min(both)), float(np.max(both)))
    frame = Frame(x=ends, y=ends, bottom=330.0)
    outside = (found.actual < found.low) | (found.actual > found.high)
    points = []
    for place in np.argsort(outside, kind="stable"):
        tip = (
            f"row {found.rows[place]}: {number(float(found.actual[place]))}\n"
            f"predicted {number(float(found.predicted[place]))}, {percent(coverage)}: "
            f"{number(float(found.low[place]))} to {number(float(found.high[place]))}"
        )
        x, y = frame.across(found.predicted[place]), frame.up(found.actual[place])
        if outside[place]:
            corners = path([(x - 5, y), (x, y - 5), (x + 5, y), (x, y + 5)], closed=True)
            points.append(mark("path", tip, d=corners, class_="mark miss"))
        else:
            points.append(mark("circle", tip, cx=x, cy=y, r=3.0, class_="mark dot"))
    words = (
        f"Actual {target} over its prediction, {count(found.actual.size, 'row')}: "
        f"{int(outside.sum())} lie outside their {percent(coverage)} intervals."
    )
    parts = [
        axes(frame, "predicted", f"actual {target}", x_most=5),
        _line(frame, ends, ends, "exact"),
        *points,
    ]
    legend = (
        ("dot", f"inside its {percent(coverage)} interval"),
        ("miss", "outside"),
        ("exact", "exact"),
    )
    return Chart(picture=drawing(words, WIDTH, 374.0, *parts), legend=legend)


def relevance_chart(ranked: Sequence[Relevance], target: str) -> Chart:
    """The strength of every input as a bar, the strongest on top."""
    shown = ranked[:MOST_BARS]
    bottom = 8.0 + _ROW * len(shown)
    longest = max(one.strength for one in shown) or 1.0
    frame = Frame(
        x=(0.0, 1.05 * longest), y=(0.0, 1.0), left=_LABELS + 10.0, top=4.0, bottom=bottom
    )
    parts = [horizontal_axis(frame, "strength, in standard deviations", most=5, grid=True)]
    for place, one in enumerate(shown):
        middle, name = 8.0 + _ROW * (place + 0.5), clean(one.column)
        tip = (
            f"{name}\nstrength {number(one.strength, 3)}, probability of an effect by this fit "
            f"{number(one.probability, 3)}"
        )
        parts.append(_row_name(name, middle))
        parts.append(
            mark(
                "rect",
                tip,
                x=frame.left,
                y=middle - 8.0,
                width=max(frame.across(one.strength) - frame.left, 1.0),
                height=16.0,
                class_="mark bar",
            )
        )
    strongest = ", ".join(f"{clean(one.column)} {number(one.strength, 3)}" for one in shown[:5])
    words = f"Strength of the inputs for {target}, the strongest first: {strongest}."
    return Chart(picture=drawing(words, WIDTH, bottom + 44.0, *parts))


def dependence_limits(found: Sequence[Dependence]) -> tuple[float, float]:
    """Ends of an axis that all inputs of a target share, so that they can be compared."""
    low = min(float(np.min(one.outer)) for one in found)
    high = max(float(np.max(one.outer)) for one in found)
    return widened(low, high)


def dependence_chart(
    found: Dependence, target: str, limits: tuple[float, float], coverages: tuple[float, float]
) -> Chart:
    """The prediction along one input with its two bands."""
    draw = _dependence_rows if found.labels else _dependence_line
    legend = (
        ("line", "mean"),
        ("inner", f"{percent(coverages[0])} of targets"),
        ("outer", f"{percent(coverages[1])}"),
        *((("decile", "tenths of the rows"),) if found.deciles else ()),
    )
    return Chart(picture=draw(found, target, limits, coverages), legend=legend)


def _dependence_line(
    found: Dependence, target: str, limits: tuple[float, float], coverages: tuple[float, float]
) -> Svg:
    frame, x = Frame(x=(found.x[0], found.x[-1]), y=limits, left=64.0), found.x
    parts = [
        element("path", d=frame.band(x, *found.outer.T), class_="outer"),
        element("path", d=frame.band(x, *found.inner.T), class_="inner"),
        axes(
            frame,
            found.name + (" (days)" if found.kind == DURATION else ""),
            target,
            x_ticks=date_ticks(x[0], x[-1]) if found.kind == DATE else None,
            x_most=5,
        ),
        _line(frame, x, found.mean, "line"),
    ]
    parts += [
        element("path", d=f"M{frame.across(value):.1f} {frame.bottom}v-9", class_="decile")
        for value in found.deciles
        if x[0] <= value <= x[-1]
    ]
    borders = [frame.left, *(frame.across(0.5 * (a + b)) for a, b in pairwise(x)), frame.right]
    parts += [
        mark(
            "rect",
            _dependence_words(found, place, coverages),
            x=left,
            y=frame.top,
            width=right - left,
            height=frame.bottom - frame.top,
            class_="mark hit",
        )
        for place, (left, right) in enumerate(pairwise(borders))
    ]
    ends = [quantity(value, found.kind) for value in (x[0], x[-1])]
    words = (
        f"Prediction of {target} along {found.name}: mean {number(float(found.mean[0]))} at "
        f"{ends[0]}, {number(float(found.mean[-1]))} at {ends[1]}, between "
        f"{number(float(np.min(found.mean)))} and {number(float(np.max(found.mean)))}."
    )
    return drawing(words, WIDTH, _HEIGHT, *parts)


def _dependence_rows(
    found: Dependence, target: str, limits: tuple[float, float], coverages: tuple[float, float]
) -> Svg:
    bottom = 28.0 + _ROW * len(found.labels)
    frame = Frame(x=limits, y=(0.0, 1.0), left=_LABELS + 10.0, top=24.0, bottom=bottom)
    parts = [
        element("text", shortened(found.name, 390.0), x=4, y=14, class_="name"),
        horizontal_axis(frame, target, most=5, grid=True),
    ]
    for place, label in enumerate(found.labels):
        middle = 28.0 + _ROW * (place + 0.5)
        for ends, name, height in ((found.outer, "outer", 12.0), (found.inner, "inner", 12.0)):
            left, right = (frame.across(end) for end in ends[place])
            parts.append(
                element(
                    "rect",
                    x=left,
                    y=middle - 0.5 * height,
                    width=right - left,
                    height=height,
                    class_=name,
                )
            )
        at = frame.across(found.mean[place])
        parts.append(element("path", d=f"M{at:.1f} {middle - 8.0:.1f}v16", class_="line"))
        parts.append(_row_name(label, middle))
        parts.append(
            mark(
                "rect",
                _dependence_words(found, place, coverages),
                x=frame.left,
                y=middle - 0.5 * _ROW,
                width=frame.right - frame.left,
                height=_ROW,
                class_="mark hit",
            )
        )
    means = ", ".join(
        f"{label} {number(float(mean))}"
        for label, mean in zip(found.labels, found.mean, strict=True)
    )
    words = f"Prediction of {target} for each value of {found.name}: {means}."
    return drawing(words, WIDTH, bottom + 44.0, *parts)


def _dependence_words(found: Dependence, place: int, coverages: tuple[float, float]) -> str:
    at = found.labels[place] if found.labels else quantity(found.x[place], found.kind)
    lines = [f"{found.name}: {at}", f"mean {number(float(found.mean[place]))}"]
    for coverage, ends in zip(coverages, (found.inner, found.outer), strict=True):
        low, high = (number(float(end)) for end in ends[place])
        lines.append(f"{percent(coverage)}: {low} to {high}")
    return "\n".join(lines)


def _row_name(name: str, middle: float) -> Svg:
    shown = shortened(name, _LABELS)
    return element("text", shown, x=_LABELS + 4.0, y=middle + 4.0, text_anchor="end")


def _line(frame: Frame, x: Values, y: Values, class_: str) -> Svg:
    return element("path", d=frame.line(x, y), class_=class_)


def swatch(look: str) -> Svg:
    """A small sample of a mark for a legend."""
    if look.startswith(("line", "exact")):
        sample = element("path", d="M0 6H22", class_=look)
    elif look == "decile":
        sample = element("path", d="M11 1v10", class_=look)
    elif look == "dot":
        sample = element("circle", cx=11, cy=6, r=4, class_=look)
    elif look == "miss":
        sample = element("path", d="M6 6L11 1L16 6L11 11Z", class_=look)
    else:
        sample = element("rect", x=0, y=0, width=22, height=12, class_=look)
    return element("svg", sample, viewBox="0 0 22 12", aria_hidden="true")
