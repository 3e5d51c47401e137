"""Residuals y - E[y], over predictions and over features: what the mean has not learnt."""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet._old.plotting import _axes
from bowtienet._old.plotting._along import as_drawn, labels_of, sample
from bowtienet._old.report.figures import WIDTH
from bowtienet._old.report.svg import Plot, inline_svg, new_figure
from bowtienet._old.report.wording import clean, count
from bowtienet._old.representation.kinds import Numbers, Texts

_POINTS = 300
"""Rows that are drawn."""
_BINS = 10
_FEWEST = 5
"""Rows of a bin whose mean is drawn."""
_MOST_CATEGORIES = 10
_FURTHEST = 5.0
"""Times the 90 % quantile of residuals, in size, beyond which points stand at the edge."""
_POINT = {"ls": "", "marker": "o", "ms": 3.0, "mew": 0.0, "color": _axes.POSITIVE, "alpha": 0.45}
_MEAN = {"ls": "", "marker": "o", "ms": 4.0, "color": _axes.NEGATIVE, "capsize": 2.5, "lw": 1.5}


def residuals_over_predictions(
    name: str, residuals: np.ndarray, mean: np.ndarray, target: str
) -> Plot:
    """Residuals over E[y]."""
    figure = new_figure(WIDTH, 3.2)
    ax = figure.add_subplot()
    off, bins = _draw_numbers(ax, mean, residuals, mean, _limit(residuals))
    _finish(ax, f"predicted {clean(target, 22)}", _limit(residuals))
    return inline_svg(
        figure, name, _words(f"Residuals of {target} over predictions", off, bins, residuals)
    )


def residuals_over_feature(
    name: str, residuals: np.ndarray, content: Numbers | Texts, feature: str, target: str
) -> Plot:
    """Residuals over the values of a feature, without rows where it is missing."""
    figure = new_figure(WIDTH, 3.2)
    ax = figure.add_subplot()
    if isinstance(content, Texts):
        off, bins = _draw_categories(ax, content, residuals, _limit(residuals))
    else:
        present = np.isfinite(content.values)
        values = content.values[present]
        drawn = as_drawn(values, content.kind)
        off, bins = _draw_numbers(ax, values, residuals[present], drawn, _limit(residuals))
    _finish(ax, clean(feature, 30), _limit(residuals))
    title = f"Residuals of {target} over {clean(feature)}"
    return inline_svg(figure, name, _words(title, off, bins, residuals))


def bin_means(
    values: np.ndarray, residuals: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Median values, mean residuals and their standard errors in bins of about as many rows."""
    edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1)[1:-1]))
    place = np.searchsorted(edges, values, side="right")
    kept = [np.flatnonzero(place == bin_) for bin_ in np.unique(place)]
    kept = [rows for rows in kept if rows.size >= _FEWEST]
    middle = np.array([np.quantile(values[rows], 0.5, method="lower") for rows in kept])
    mean = np.array([residuals[rows].mean() for rows in kept])
    return middle, mean, np.array([_error(residuals[rows]) for rows in kept])


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size))


def _draw_numbers(
    ax: Any, values: np.ndarray, residuals: np.ndarray, drawn: np.ndarray, limit: float
) -> tuple[int, int]:
    """Points and means of bins; how many of these are off zero, and how many there are."""
    shown = sample(values.size, _POINTS)
    _draw_points(ax, drawn[shown], residuals[shown], limit)
    if values.size < 2 * _FEWEST:
        return 0, 0
    middle, mean, error = bin_means(values, residuals)
    order = np.argsort(values, kind="stable")
    # The same medians as they are drawn: dates are no numbers there.
    places = drawn[order][np.searchsorted(values[order], middle)]
    ax.errorbar(places, mean, yerr=2.0 * error, **_MEAN)
    return int(np.sum(np.abs(mean) > 2.0 * error)), mean.size


def _limit(residuals: np.ndarray) -> float:
    """How far residuals are drawn; all of them unless one hides what the others do."""
    size = np.abs(residuals)
    usual = _FURTHEST * float(np.quantile(size, 0.9))
    return usual if 0.0 < usual < size.max() else float(size.max())


def _draw_points(ax: Any, x: np.ndarray, residuals: np.ndarray, limit: float) -> None:
    """Points; at the edge, triangles for what lies beyond."""
    inside = np.abs(residuals) <= limit
    ax.plot(x[inside], residuals[inside], **_POINT)
    if not inside.all():
        for side, marker in ((1.0, "^"), (-1.0, "v")):
            own = ~inside & (side * residuals > 0.0)
            edge = np.full(int(own.sum()), side * limit)
            ax.plot(x[own], edge, **_POINT | {"marker": marker, "ms": 7.0, "alpha": 1.0})


def _draw_categories(
    ax: Any, content: Texts, residuals: np.ndarray, limit: float
) -> tuple[int, int]:
    labels = labels_of(content)
    names, counts = np.unique(labels[content.codes >= 0].astype(str), return_counts=True)
    frequent = sorted(names[np.argsort(-counts, kind="stable")][:_MOST_CATEGORIES].tolist())
    rng, off, bins = np.random.default_rng(0), 0, 0
    for place, label in enumerate(frequent):
        own = residuals[labels == label]
        shown = own[sample(own.size, _POINTS // len(frequent))]
        _draw_points(ax, place + rng.uniform(-0.25, 0.25, size=shown.size), shown, limit)
        if own.size >= _FEWEST:
            error = _error(own)
            ax.errorbar([place], [own.mean()], yerr=[2.0 * error], **_MEAN)
            off, bins = off + int(abs(own.mean()) > 2.0 * error), bins + 1
    # Long names, or many, stand aslant.
    aslant = sum(min(len(label), 16) for label in frequent) > 36
    ax.set_xticks(
        range(len(frequent)),
        [clean(label, 16) for label in frequent],
        rotation=35.0 if aslant else 0.0,
        ha="right" if aslant else "center",
    )
    return off, bins


def _finish(ax: Any, label: str, limit: float) -> None:
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, -1.1 * limit), min(high, 1.1 * limit))
    ax.axhline(0.0, color=_axes.MUTED, lw=1.0)
    ax.set(xlabel=label, ylabel="actual less predicted")
    for axis in (ax.xaxis, ax.yaxis):
        # Names of categories and dates are written already.
        if axis.get_major_formatter().__class__.__name__ == "ScalarFormatter":
            _axes.group_thousands(axis)
    _axes.tidy(ax)


def _words(title: str, off: int, bins: int, residuals: np.ndarray) -> str:
    beyond = int(np.sum(np.abs(residuals) > _limit(residuals)))
    more = f" Triangles: {count(beyond, 'row')} further out." if beyond else ""
    if not bins:
        return f"{title}; too few rows for means.{more}"
    if not off:
        return f"{title}: no mean of {bins} is more than two standard errors from 0.{more}"
    verb = "is" if off == 1 else "are"
    return f"{title}: {off} of {bins} means {verb} more than two standard errors from 0.{more}"
