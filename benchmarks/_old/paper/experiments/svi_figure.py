"""The figure of the study of stochastic steps: scores, time, curves and predictive bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks._old.paper.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    band,
    new_figure,
    tidy,
)
from bowtienet._old.data.toy import NOISE_VARIANCE, simulate_toy, toy_function

if TYPE_CHECKING:
    from benchmarks._old.paper.experiments.svi import Results, Study

_LOOKS = (
    {"color": ORANGE, "linestyle": "--", "marker": "s"},
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": INK, "linestyle": ":", "marker": "^"},
)
"""Of the paper's steps, whole steps and coordinate ascent."""
_BATCH_COLORS = (ORANGE, BLUE, GREEN, PINK)


def draw(study: Study, results: Results, frame: pd.DataFrame) -> Figure:
    """All panels."""
    singles = frame[(frame["start"] == "laplace") & (frame["fits"] == 1)]
    scores = {"rmse": "RMSE", "nll": "NLL", "coverage": "coverage of 90 % intervals"}
    figure = new_figure(16.0, 7.5)
    axes = figure.subplots(2, 4)
    for ax, (score, title) in zip(axes[0], scores.items(), strict=False):
        _draw_score(ax, study, singles, score)
        tidy(ax, title)
    axes[0, 0].set_yscale("log")
    axes[0, 0].yaxis.set_major_formatter("{x:g}")
    axes[0, 0].yaxis.set_minor_formatter("{x:g}")
    axes[0, 0].legend(frameon=False, fontsize=8.0)
    axes[0, 2].axhline(0.9, color=GREY, linewidth=0.8)
    _draw_seconds(axes[0, 3], study, singles)
    _draw_curves(axes[1, :2], study, results)
    for ax, count in zip(axes[1, 2:], (1, study.members), strict=True):
        _draw_bands(ax, study, results, count)
    return figure


def _draw_score(ax: Axes, study: Study, singles: pd.DataFrame, score: str) -> None:
    """A score by rate and batch, with standard errors; whole steps stand apart."""
    found = singles.groupby("cell")[score].agg(["mean", "sem"]).fillna(0.0)
    apart = study.rates[-1] + 0.12
    *stochastic, cavi = study.cells()
    for place, batch in enumerate(study.batches):
        look = {"color": _BATCH_COLORS[place], "marker": "o", "capsize": 2.0, "linewidth": 1.3}
        cells = [cell for cell in stochastic if cell.batch == batch]
        means, errors = (np.array([found.loc[[c], name].iloc[0] for c in cells]) for name in found)
        label = f"batches of {batch}"
        ax.errorbar(study.rates, means[:-1], errors[:-1], **look, label=label)
        ax.errorbar(apart + 0.025 * (place - 1), means[-1], errors[-1], **look)
    ax.axhline(found.loc[[cavi], "mean"].iloc[0], color=INK, linestyle=":", label=cavi.method)
    ax.axvline(study.rates[-1] + 0.05, color=GREY, linewidth=0.8)
    ax.set_xticks([*study.rates, apart], [*map(str, study.rates), "whole\nsteps"])
    ax.set_xlabel("forgetting rate of the paper's steps")


def _draw_seconds(ax: Axes, study: Study, singles: pd.DataFrame) -> None:
    """Bars with how many times as fast as CAVI each is."""
    paper, whole, cavi = study.shown()
    seconds = {
        cell: found.mean()
        for cell, found in singles.groupby("cell")["seconds"]
        if cell.rate in (paper.rate, None)
    }
    names = {paper.method: "paper", whole.method: "whole"}
    bars = [cell for cell in study.cells() if cell in seconds]
    for place, cell in enumerate(bars):
        color = _LOOKS[[paper.method, whole.method, cavi.method].index(cell.method)]["color"]
        ax.barh(place, seconds[cell], color=color)
        note = "" if cell == cavi else f" {seconds[cavi] / seconds[cell]:.2g}x"
        ax.text(seconds[cell], place, note, va="center", fontsize=8.0)
    ticks = [f"{names[c.method]}, {c.batch}" if c.batch else c.method for c in bars]
    ax.set_yticks(range(len(bars)), ticks)
    ax.invert_yaxis()
    ax.margins(x=0.18)
    ax.set_xlabel("seconds (times as fast as CAVI)")
    tidy(ax, f"time of a fit, rate {paper.rate}")


def _draw_curves(axes: Any, study: Study, results: Results) -> None:
    """Bound of all rows and error of new ones after each pass: medians over the runs."""
    grid = np.unique(np.round(np.geomspace(1, study.passes, 60)))
    for cell, look in zip(study.shown(), _LOOKS, strict=True):
        curves = [results.fits("laplace", cell, seed)[0]["curves"] for seed in study.seeds]
        label = f"{cell.method}, {cell.batch}" if cell.batch else cell.method
        for ax, which in zip(axes, (1, 2), strict=True):
            paths = [
                np.array(each[which])[np.searchsorted(each[0], grid, side="right").clip(1) - 1]
                for each in curves
            ]
            line = {**look, "marker": ""}
            ax.plot(grid, np.median(paths, axis=0), **line, linewidth=1.5, label=label)
            ends = np.median([[each[0][-1], each[which][-1]] for each in curves], axis=0)
            ax.plot(*ends, color=look["color"], marker=look["marker"], markersize=6.0)
    for ax, title in zip(
        axes, ("bound of all rows", "RMSE of new rows (line: the noise)"), strict=True
    ):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("passes over the rows (mark: median end)")
        tidy(ax, title)
    axes[1].axhline(np.sqrt(NOISE_VARIANCE), color=GREY, linewidth=0.8)
    axes[1].legend(frameon=False, fontsize=8.0)


def _draw_bands(ax: Axes, study: Study, results: Results, count: int) -> None:
    """Mean and central 90 % along the first input, in the first run."""
    from benchmarks._old.paper.experiments.svi import COVERAGE, GRID, mixture

    along, seed = GRID[:, 0], study.seeds[0]
    X, y = simulate_toy(study.rows, np.random.default_rng(seed))
    ax.plot(X[:, 0], y, ".", color=GREY, markersize=3.0)
    for cell, look in zip(study.shown(), _LOOKS, strict=True):
        found = mixture(results.fits("laplace", cell, seed, count), "grid")
        band(ax, along, found.mean(), found.interval(COVERAGE), look, cell.method)
    ax.plot(along, toy_function(along), color=GREEN, linewidth=0.8, label="true function")
    ax.set_xlabel("x1 (x2 = 0)")
    tidy(ax, "one fit, 90 %" if count == 1 else f"{count} fits, equal weights, 90 %")
    ax.legend(frameon=False, fontsize=8.0)
