"""Figures of the UCI data sets: scores by set and method, accuracy against time, coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gmean

from benchmarks._old.paper import drawing, tables
from benchmarks._old.paper.drawing import BLUE, GREY, INK, ORANGE, label_points, new_figure, tidy
from benchmarks._old.paper.rank_figure import draw_ranks
from benchmarks._old.paper.records import DONE
from benchmarks._old.paper.score_pages import JUDGED
from benchmarks._old.paper.tables import COVERAGE, NLL, RMSE, Results, mean_of, values_of
from bowtienet._old.evaluation import LEVELS

DEVIATIONS = {
    "slump": 8.708,
    "yacht": 15.136,
    "boston": 9.188,
    "energy": 10.084,
    "concrete": 16.698,
}
"""Standard deviations of the targets, by which the RMSE is divided in figures as in the paper."""
OWN = ("single", "ensemble", "svi", "svi_ensemble", "gaussian", "pruned", "pruned_signs")
"""Methods of this library."""
_PANELS = {RMSE: "RMSE / target's deviation", NLL: "NLL", COVERAGE: "coverage of 95 % intervals"}
_SHOWN = ("single", "ensemble", "gaussian", "mean_field", "nuts", "backprop", "horseshoe")
"""Methods that the figure of coverage names; the others are grey lines."""


def draw(frame: pd.DataFrame, folder: Path) -> None:
    """Draw the figures that the records allow."""
    results = Results(frame[frame["experiment"] == "uci"], DEVIATIONS)
    if not (results.frame["status"] == DONE).any():
        return
    sets = results.sets
    drawing.save_figure(_draw_scores(results, sets), folder, "uci_scores")
    drawing.save_figure(_draw_coverage(results, sets), folder, "uci_coverage")
    if complete := [m for m in results.methods if is_complete(results, m)]:
        drawing.save_figure(draw_seconds(results, complete, "nuts"), folder, "uci_seconds")
    if (figure := draw_ranks(results, JUDGED)) is not None:
        drawing.save_figure(figure, folder, "uci_ranks")


def _draw_scores(results: Results, sets: Sequence[str]) -> Figure:
    """RMSE over the target's deviation, NLL and coverage of each method on each set."""
    methods = results.methods
    figure = new_figure(2.4 + 2.4 * len(sets), 1.2 + 3 * (0.5 + 0.185 * len(methods)))
    axes = figure.subplots(len(_PANELS), len(sets), sharey=True, squeeze=False)
    for row, (score, name) in zip(axes, _PANELS.items(), strict=True):
        for ax, dataset in zip(row, sets, strict=True):
            _draw_panel(ax, results, dataset, methods, score)
            ax.set_xlabel(name, fontsize=9.0)
            tidy(ax, dataset if score == RMSE else "")
    axes[0, 0].set_ylim(len(methods) - 0.4, -0.6)
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(methods)), map(tables.label_of, methods), fontsize=9.0)
    drawing.shared_legend(figure)
    return figure


def _draw_panel(
    ax: Axes, results: Results, dataset: str, methods: Sequence[str], score: str
) -> None:
    """Means with deviations; what lies far beyond the others is a number at the edge."""
    unit = DEVIATIONS[dataset] if score == RMSE else 1.0
    runs = [results.runs(dataset, method) for method in methods]
    means = np.array([mean_of(each, score) for each in runs]) / unit
    papers = [tables.published_cell(tables.COUNTERPARTS.get(m), score, dataset) for m in methods]
    theirs = np.array([cell.mean for cell in papers]) / unit
    end = far_end(means)
    places, color = np.arange(len(methods)), [BLUE if m in OWN else INK for m in methods]
    for place, (mean, each) in enumerate(zip(means, runs, strict=True)):
        if mean <= end:
            values = values_of(each, score) / unit
            spread = values.std(ddof=1) if values.size > 1 else 0.0
            name = "bowtienet" if methods[place] in OWN else "other methods"
            look = {"fmt": "o", "ms": 4.5, "elinewidth": 1.0, "capsize": 2.0, "zorder": 3}
            ax.errorbar(mean, place, xerr=spread, color=color[place], label=name, **look)
        else:
            beyond = not math.isnan(mean)
            text = f"{mean:.2f} →" if beyond else tables.score_cell(each, score, 2, 0).text
            at = {"x": 0.98, "ha": "right"} if beyond else {"x": 0.03, "ha": "left"}
            where = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 7.5}
            ax.text(y=place, s=text, color=color[place] if beyond else GREY, **at, **where)
    look = {"marker": "D", "s": 26.0, "facecolors": "none", "edgecolors": ORANGE, "zorder": 2}
    ax.scatter(np.where(theirs > end, np.nan, theirs), places, label="the paper's number", **look)
    if score == COVERAGE:
        ax.axvline(tables.NOMINAL, color="red", lw=0.9, linestyle="--", zorder=1)
    ax.grid(color="#EEEEEE", lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8.0)


def far_end(values: np.ndarray) -> float:
    """m + 2.5 (m - min) for the median m: what lies beyond would press the rest into a point."""
    known = values[np.isfinite(values)]
    return float(3.5 * np.median(known) - 2.5 * np.min(known)) if known.size else 0.0


def draw_seconds(
    results: Results, methods: Sequence[str], reference: str, nll: str = NLL
) -> Figure:
    """Accuracy against CPU seconds of a fit, one point for each method run on all splits.

    Scores are beside those of the reference, or of the best where it is not among the methods.
    """
    sets = results.sets
    names = [tables.label_of(method) for method in methods]
    seconds = gmean([[_mean(results, s, m, "seconds") for s in sets] for m in methods], axis=1)
    figure = new_figure(13.0, 5.6)
    for ax, score in zip(figure.subplots(1, 2), (RMSE, nll), strict=True):
        table = np.array([[_mean(results, s, m, score) for s in sets] for m in methods])
        known = reference in methods
        base = table[methods.index(reference)] if known else table.min(axis=0)
        than = tables.label_of(reference) if known else "the best"
        heights = (table / base if score == RMSE else table - base).mean(axis=1)
        top = np.max(heights[heights <= far_end(heights)])
        shown, marks = np.minimum(heights, top), np.where(heights > top, "^", "o")
        for x, y, mark, method in zip(seconds, shown, marks, methods, strict=True):
            ax.plot(x, y, mark, ms=6.0, color=BLUE if method in OWN else INK)
        texts = [
            f"{name} (at {height:.1f})" if height > top else name
            for name, height in zip(names, heights, strict=True)
        ]
        ax.axhline(1.0 if score == RMSE else 0.0, color=GREY, lw=1.0, linestyle="--", zorder=1)
        words = f"RMSE / RMSE of {than}" if score == RMSE else f"NLL − NLL of {than}"
        ax.set(xscale="log", xlabel="CPU seconds of a fit (geometric mean over sets)")
        ax.set_ylabel(f"{words} (mean over sets)")
        label_points(ax, seconds, shown, texts)
        tidy(ax)
    return figure


def _draw_coverage(results: Results, sets: Sequence[str]) -> Figure:
    """Observed minus nominal coverage of central Gaussian intervals of all levels, set by set."""
    figure = new_figure(2.9 * len(sets) + 0.6, 3.9)
    axes = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for ax, dataset in zip(axes, sets, strict=True):
        ax.axhline(0.0, color=INK, lw=0.8)
        for method in results.methods:
            runs = results.runs(dataset, method)
            if (done := runs[runs["status"] == DONE]).empty:
                continue
            look, label = {"color": GREY, "lw": 0.8, "zorder": 2}, "other methods"
            if method in _SHOWN:
                look, label = drawing.style(method, markersize=3.0), tables.label_of(method)
            gap = np.mean(done["curve"].tolist(), axis=0) - np.asarray(LEVELS)
            ax.plot(LEVELS, gap, **look, label=label)
        ax.set_xlabel("nominal coverage")
        tidy(ax, dataset)
    axes[0].set_ylabel("observed − nominal coverage")
    drawing.shared_legend(figure)
    return figure


def _mean(results: Results, dataset: str, method: str, score: str) -> float:
    return mean_of(results.runs(dataset, method), score)


def is_complete(results: Results, method: str, nll: str = NLL) -> bool:
    """Whether a method has finite scores on all splits of all sets."""
    return all(
        values_of(results.runs(dataset, method), score).size == results.splits(dataset)
        and math.isfinite(_mean(results, dataset, method, score))
        for dataset in results.sets
        for score in (RMSE, nll, "seconds")
    )
