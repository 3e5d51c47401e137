"""Figures of the UCI data sets: scores by set and method, accuracy against time, coverage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bowtienet.evaluation.metrics import LEVELS
from bowtienet.experiments.drawing import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    new_figure,
    save_figure,
    shared_legend,
    style,
    tidy,
)
from bowtienet.experiments.labelling import label_points
from bowtienet.experiments.paper import COUNTERPARTS, COVERAGE, NLL, RMSE, SETS, published
from bowtienet.experiments.records import DONE
from bowtienet.experiments.tables import (
    NOMINAL,
    Results,
    label_of,
    mean_of,
    methods_of,
    most_splits,
    score_cell,
    sets_of,
    values_of,
)

DEVIATIONS = {
    "slump": 8.708,
    "yacht": 15.136,
    "boston": 9.188,
    "energy": 10.084,
    "concrete": 16.698,
}
"""Standard deviations of the targets, by which the RMSE is divided in figures as in the paper."""
OWN = ("single", "ensemble", "svi", "svi_ensemble", "gaussian", "pruned")
"""Methods of this library."""
_PANELS = {RMSE: "RMSE / target's deviation", NLL: "NLL", COVERAGE: "coverage of 95 % intervals"}
_SHOWN = ("single", "ensemble", "gaussian", "mean_field", "nuts", "backprop", "horseshoe")
"""Methods that the figure of coverage names; the others are grey lines."""


def draw_scores(results: Results, folder: Path) -> Path:
    """RMSE over the target's deviation, NLL and coverage of each method on each set."""
    sets, methods = sets_of(results, SETS), methods_of(results)
    figure = new_figure(2.4 + 2.4 * len(sets), 1.2 + 3 * (0.5 + 0.185 * len(methods)))
    axes = figure.subplots(len(_PANELS), len(sets), sharey=True, squeeze=False)
    for row, (score, name) in zip(axes, _PANELS.items(), strict=True):
        for ax, dataset in zip(row, sets, strict=True):
            _draw_panel(ax, results, dataset, methods, score)
            ax.set_xlabel(name, fontsize=9.0)
            tidy(ax, dataset if score == RMSE else None)
    axes[0, 0].set_ylim(len(methods) - 0.4, -0.6)
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(methods)), [label_of(method) for method in methods], fontsize=9.0)
    shared_legend(figure, list(axes.flat))
    return save_figure(figure, folder, "uci_scores")


def _draw_panel(
    ax: Any, results: Results, dataset: str, methods: Sequence[str], score: str
) -> None:
    unit = DEVIATIONS.get(dataset, 1.0) if score == RMSE else 1.0
    values = [values_of(results.get((dataset, m, 1), ()), score) / unit for m in methods]
    means = np.array([v.mean() if v.size else math.nan for v in values])
    spreads = np.array(
        [v.std(ddof=1) if v.size > 1 and np.isfinite(v).all() else 0.0 for v in values]
    )
    papers = [published(COUNTERPARTS.get(m, ""), score, dataset) for m in methods]
    theirs = np.array([math.nan if p is None else p.mean / unit for p in papers])
    low, high = _limits(score, means, spreads, theirs)
    for place, method in enumerate(methods):
        color = _color(method)
        name = "bowtienet" if method in OWN else "other methods"
        if math.isnan(means[place]):
            cell = score_cell(results.get((dataset, method, 1), ()), score, 2, 0)
            _write(ax, 0.03, place, cell.text, GREY, "left")
        elif means[place] > high:
            words = f"{means[place]:.2f}" if math.isfinite(means[place]) else "∞"
            _mark_beyond(ax, place, color)
            _write(ax, 0.95, place, words, color, "right")
        else:
            look = {"fmt": "o", "ms": 4.5, "elinewidth": 1.0, "capsize": 2.0, "color": color}
            ax.errorbar(means[place], place, xerr=spreads[place], label=name, zorder=3, **look)
        if theirs[place] > high:
            _mark_beyond(ax, place + 0.3, ORANGE, mfc="none")
    ax.scatter(
        np.where(theirs > high, math.nan, theirs),
        np.arange(len(methods)),
        marker="D",
        s=26.0,
        facecolors="none",
        edgecolors=ORANGE,
        label="the paper's number",
        zorder=2,
    )
    if score == COVERAGE:
        ax.axvline(NOMINAL, color="red", lw=0.9, linestyle="--", zorder=1)
    ax.set_xlim(low, high)
    ax.grid(axis="both", color="#EEEEEE", lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8.0)


def _limits(
    score: str, means: np.ndarray, spreads: np.ndarray, theirs: np.ndarray
) -> tuple[float, float]:
    """Ends of an axis on which all but the worst means have room."""
    if not np.isfinite(means).any():
        return 0.0, 1.0
    near = means <= far_end(means)
    low = float(min(np.min((means - spreads)[near]), np.nanmin([*theirs, math.inf])))
    high = float(np.max((means + spreads)[near]))
    if score == COVERAGE:
        return min(low, 0.85) - 0.02, 1.02
    margin = 0.06 * (high - low) or 0.1
    return low - margin, high + margin


def far_end(values: np.ndarray) -> float:
    """m + 2.5 (m - min) for the median m: what lies beyond would press the rest into a point."""
    known = values[np.isfinite(values)]
    return float(np.median(known) + 2.5 * (np.median(known) - np.min(known)))


def _mark_beyond(ax: Any, place: float, color: str, **look: Any) -> None:
    """An arrow for what is off the axis."""
    across = ax.get_yaxis_transform()
    look = {"ms": 5.0, "color": color, "transform": across, "clip_on": False, **look}
    ax.plot(0.985, place, marker=">", **look)


def _write(ax: Any, x: float, place: int, words: str, color: str, side: str) -> None:
    look = {"transform": ax.get_yaxis_transform(), "ha": side, "va": "center", "fontsize": 7.5}
    ax.text(x, place, words, color=color, **look)


def draw_seconds(results: Results, folder: Path) -> Path | None:
    """Accuracy against CPU seconds of a fit, one point for each method run on all splits."""
    sets = sets_of(results, SETS)
    methods = [m for m in methods_of(results) if _is_complete(results, sets, m)]
    if not methods:
        return None
    reference = "nuts" if "nuts" in methods else None
    seconds = [_geometric([mean_of(results[s, m, 1], "seconds") for s in sets]) for m in methods]
    figure = new_figure(13.0, 5.6)
    axes = figure.subplots(1, 2)
    names: list[list[str]] = []
    than = "the best" if reference is None else label_of(reference)
    for ax, score in zip(axes, (RMSE, NLL), strict=True):
        table = np.array([[mean_of(results[s, m, 1], score) for s in sets] for m in methods])
        base = table.min(axis=0) if reference is None else table[methods.index(reference)]
        heights = (table / base if score == RMSE else table - base).mean(axis=1)
        top = max(far_end(heights), np.median(heights))
        high = max(heights[heights <= top])
        texts = []
        for method, x, y in zip(methods, seconds, heights, strict=True):
            beyond = y > top
            ax.plot(x, high if beyond else y, "^" if beyond else "o", ms=6.0, color=_color(method))
            texts.append(f"{label_of(method)} (at {y:.1f})" if beyond else label_of(method))
        names.append(texts)
        ax.axhline(1.0 if score == RMSE else 0.0, color=GREY, lw=1.0, linestyle="--", zorder=1)
        words = f"RMSE / RMSE of {than}" if score == RMSE else f"NLL − NLL of {than}"
        ax.set(xscale="log", xlabel="CPU seconds of a fit (geometric mean over sets)")
        ax.set_ylabel(f"{words} (mean over sets)")
        ax.margins(0.12)
        tidy(ax)
    for ax, texts in zip(axes, names, strict=True):
        label_points(ax, texts)
    return save_figure(figure, folder, "uci_seconds")


def draw_coverage(results: Results, folder: Path) -> Path | None:
    """Observed minus nominal coverage of central Gaussian intervals of all levels, set by set."""
    sets, methods = sets_of(results, SETS), methods_of(results)
    curves = {
        (s, m): np.mean([r.curve for r in results.get((s, m, 1), ()) if r.status == DONE], axis=0)
        for s, m in itertools.product(sets, methods)
        if any(r.status == DONE for r in results.get((s, m, 1), ()))
    }
    if not curves:
        return None
    figure = new_figure(2.9 * len(sets) + 0.6, 3.9)
    axes = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    levels = np.asarray(LEVELS)
    for ax, dataset in zip(axes, sets, strict=True):
        ax.axhline(0.0, color=INK, lw=0.8)
        for method in methods:
            if (dataset, method) in curves:
                named = method in _SHOWN
                label = label_of(method) if named else "other methods"
                look = style(method, markersize=3.0) if named else {"color": GREY, "lw": 0.8}
                gap = curves[dataset, method] - levels
                ax.plot(levels, gap, **look, label=label, zorder=3 if named else 2)
        ax.set_xlabel("nominal coverage")
        tidy(ax, dataset)
    axes[0].set_ylabel("observed − nominal coverage")
    shared_legend(figure, list(axes))
    return save_figure(figure, folder, "uci_coverage")


def _color(method: str) -> str:
    return BLUE if method in OWN else INK


def _is_complete(results: Results, sets: Sequence[str], method: str) -> bool:
    """Whether a method has finite scores on all splits of all sets."""
    runs = {dataset: results.get((dataset, method, 1), ()) for dataset in sets}
    return all(
        values_of(records, score).size == most_splits(results, dataset)
        and math.isfinite(mean_of(records, score))
        for dataset, records in runs.items()
        for score in (RMSE, NLL, "seconds")
    )


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-4)))))
