"""The paper's slump experiment: single runs against ensembles of four.

Four runs of a method with different seeds make an equal mixture. The paper does so for its own
methods, mean-field VI, Bayes by Backprop and the horseshoe; here also for Laplace's approximation.
NUTS and the deep ensemble stand beside them as they are. Single runs are those of the UCI
experiment on this set, and are not made twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from benchmarks._old.paper import drawing, tables
from benchmarks._old.paper.cases import Case
from benchmarks._old.paper.drawing import BLUE, GREEN, GREY, INK, ORANGE, SKY, YELLOW, tidy
from benchmarks._old.paper.experiments import uci
from benchmarks._old.paper.tables import COUNTERPARTS, COVERAGE, NLL, RMSE, Results, label_of, loss_of

EXPERIMENT = DATASET = "slump"
MEMBERS = 4
REPEATED = ("single", "svi", "gaussian", "mean_field", "backprop", "horseshoe", "laplace")
"""Run once and four times."""
ALONE = ("nuts", "deep_ensemble")
"""Run once: many draws and several networks already."""
_SCORES = {RMSE: "RMSE", NLL: "NLL", COVERAGE: "coverage"}
_COLORS = {RMSE: GREEN, NLL: ORANGE, COVERAGE: YELLOW}


def cases(seeds: Iterable[int], methods: Sequence[str] | None = None) -> list[Case]:
    """Single runs and ensembles of four of every method, or of those named."""
    members = {**dict.fromkeys(REPEATED, (1, MEMBERS)), **dict.fromkeys(ALONE, (1,))}
    return [
        Case(
            experiment=uci.EXPERIMENT if count == 1 else EXPERIMENT,
            dataset=DATASET,
            method=method,
            seed=seed,
            hidden=uci.HIDDEN,
            members=count,
        )
        for method, counts in members.items()
        if methods is None or method in methods
        for count in counts
        for seed in seeds
    ]


def results_of(frame: pd.DataFrame) -> Results:
    """Ensembles of four, and single runs of the same methods from the UCI experiment."""
    single = frame["method"].isin((*REPEATED, *ALONE)) & (frame["experiment"] == uci.EXPERIMENT)
    chosen = (single & (frame["dataset"] == DATASET)) | (frame["experiment"] == EXPERIMENT)
    return Results(frame[chosen])


def pages(frame: pd.DataFrame) -> dict[str, str]:
    """Scores of single runs and of fours, what four runs change, and the paper's numbers."""
    results = results_of(frame)
    if results.frame.empty:
        return {}
    methods, splits = results.methods, results.splits(DATASET)
    kinds = [(m, n) for m in methods for n in (1, MEMBERS) if len(results.runs(DATASET, m, n))]
    runs = [results.runs(DATASET, method, members) for method, members in kinds]
    columns = [tables.score_column(runs, score, 2, splits) for score in _SCORES]
    columns.append(tables.score_column(runs, "seconds", 1, splits, bold=False))
    rows = [list(row) for row in zip((label_of(*kind) for kind in kinds), *columns, strict=True)]
    words = (
        f"Mean ± standard deviation over {splits} random splits; NLL and coverage are those of "
        "N(mean, variance), as in the paper. Bold: the best of a column. Rows in italics are the "
        "paper's own numbers, from other splits."
    )
    changed = (
        f"Ensemble of {MEMBERS} minus single run on the same splits: below zero the RMSE and NLL "
        "of the ensemble are better. In brackets is the 95 % interval, corrected for overlapping "
        "splits; bold where it excludes zero."
    )
    text = tables.page(
        "Slump: single runs and ensembles of four",
        words,
        tables.markdown(["method", *_SCORES.values(), "CPU seconds"], rows + _paper_rows()),
        "## What four runs change",
        changed,
        tables.markdown(["method", *_SCORES.values()], _change_rows(results, splits)),
        tables.notes_of(results),
    )
    return {EXPERIMENT: text}


def _paper_rows() -> list[list[str]]:
    rows = []
    for method in ("single", "ensemble", "svi", "svi_ensemble", *REPEATED[2:-1], "nuts"):
        name = COUNTERPARTS[method]
        cells = [tables.published_cell(name, score, DATASET).text for score in _SCORES]
        rows.append([f"*{name}, paper*", *cells, tables.NOTHING])
    return rows


def _change_rows(results: Results, splits: int) -> list[list[str]]:
    rows = []
    for method in _repeated(results):
        four, one = (results.runs(DATASET, method, n) for n in (MEMBERS, 1))
        found = [tables.compare_runs(four, one, score) for score in _SCORES]
        rows.append([label_of(method), *(tables.difference_text(each, splits) for each in found)])
    return rows


def _repeated(results: Results) -> list[str]:
    """Methods with records of single runs and of fours."""
    return [
        method
        for method in results.methods
        if all(len(results.runs(DATASET, method, n)) for n in (1, MEMBERS))
    ]


def relative_change(single: float, ensemble: float, score: str) -> float:
    """(ensemble - single) / |single|, and for coverage |c_4 - 0.95| - |c_1 - 0.95|.

    Below zero the ensemble is better.
    """
    change = loss_of(ensemble, score) - loss_of(single, score)
    return change if score == COVERAGE else change / abs(single)


def draw(frame: pd.DataFrame, folder: Path) -> None:
    """RMSE and NLL over the best, coverage, and the change by ensembles on a log scale."""
    results = results_of(frame)
    if results.frame.empty:
        return
    figure = drawing.new_figure(12.0, 8.6)
    axes = figure.subplots(2, 2).flat
    for ax, score in zip(axes, _SCORES, strict=False):
        _draw_bars(ax, results, score)
    _draw_changes(axes[3], results)
    drawing.shared_legend(figure)
    drawing.save_figure(figure, folder, EXPERIMENT)


def _draw_bars(ax: Axes, results: Results, score: str) -> None:
    methods = results.methods
    means = {
        (method, n): tables.mean_of(results.runs(DATASET, method, n), score)
        for method in methods
        for n in (1, MEMBERS)
    }
    best = min(filter(math.isfinite, means.values()), default=1.0)
    # A ratio to a best NLL below zero would be upside down.
    scaled = score != COVERAGE and best > 0.0
    looks = {
        1: {"color": BLUE, "label": "single run"},
        MEMBERS: {"color": SKY, "hatch": "///", "label": f"ensemble of {MEMBERS}"},
    }
    for (method, count), mean in means.items():
        if math.isfinite(mean):
            values = tables.values_of(results.runs(DATASET, method, count), score)
            values = values / best if scaled else values
            place = methods.index(method) + (-0.2 if count == 1 else 0.2)
            spread = values.std(ddof=1) if values.size > 1 else None
            look = {"edgecolor": INK, "linewidth": 0.6, "capsize": 2.0, **looks[count]}
            ax.bar(place, values.mean(), width=0.38, yerr=spread, **look)
    _name_methods(ax, methods)
    tidy(ax, f"{_SCORES[score]} over that of the best" if scaled else _SCORES[score])
    if score == COVERAGE:
        ax.axhline(tables.NOMINAL, color="red", lw=0.9, linestyle="--")
        ax.set_ylim(max(0.0, best - 0.15), 1.03)
    elif scaled:
        ax.axhline(1.0, color=GREY, lw=0.9, linestyle="--", zorder=0)


def _draw_changes(ax: Axes, results: Results) -> None:
    methods = _repeated(results)
    for shift, (score, color) in enumerate(_COLORS.items()):
        for place, method in enumerate(methods):
            runs = [results.runs(DATASET, method, n) for n in (1, MEMBERS)]
            change = relative_change(*(tables.mean_of(each, score) for each in runs), score)
            if math.isfinite(change) and change != 0.0:
                hatch = "///" if change < 0.0 else None
                look = {"color": color, "hatch": hatch, "edgecolor": INK, "linewidth": 0.6}
                ax.bar(place + 0.27 * (shift - 1), abs(change), width=0.25, **look)
        ax.bar(np.nan, np.nan, color=color, label=f"change of {_SCORES[score]}")
    for hatch, name in (("///", "the ensemble improved it"), (None, "the single run was better")):
        ax.bar(np.nan, np.nan, facecolor="white", edgecolor=INK, hatch=hatch, label=name)
    _name_methods(ax, methods)
    ax.set_yscale("log")
    tidy(ax, "Relative change by four runs (coverage: change of |coverage − 0.95|)")


def _name_methods(ax: Axes, methods: Sequence[str]) -> None:
    ax.set_xticks(range(len(methods)), map(label_of, methods), rotation=35, ha="right")
    ax.tick_params(axis="x", labelsize=8.5, length=0)
