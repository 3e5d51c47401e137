"""The paper's slump experiment: single runs against ensembles of four.

Four runs of a method with different seeds make an equal mixture. The paper does so for its own
methods, mean-field VI, Bayes by Backprop and the horseshoe; here also for Laplace's approximation.
NUTS and the deep ensemble stand beside them as they are. Single runs are those of the UCI
experiment on this set, and are not made twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bowtienet.experiments import uci
from bowtienet.experiments.cases import Case
from bowtienet.experiments.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    SKY,
    YELLOW,
    Report,
    markdown,
    new_figure,
    save_figure,
    save_table,
    shared_legend,
    tidy,
)
from bowtienet.experiments.paper import COUNTERPARTS, COVERAGE, NLL, RMSE, published
from bowtienet.experiments.records import Record
from bowtienet.experiments.tables import (
    NOMINAL,
    Cell,
    Results,
    collect,
    compare_runs,
    difference_text,
    distance_to_nominal,
    embolden,
    label_of,
    mean_of,
    methods_of,
    most_splits,
    notes_of,
    page,
    published_cell,
    score_cell,
    seconds_cell,
    values_of,
)

EXPERIMENT = DATASET = "slump"
MEMBERS = 4
REPEATED = ("single", "svi", "gaussian", "mean_field", "backprop", "horseshoe", "laplace")
"""Run once and four times."""
ALONE = ("nuts", "deep_ensemble")
"""Run once: many draws and several networks already."""
_SCORES = {RMSE: "RMSE", NLL: "NLL", COVERAGE: "coverage"}
_CHANGES = {RMSE: "RMSE", NLL: "NLL", COVERAGE: "coverage"}


def cases(splits: int = 10, methods: Sequence[str] | None = None) -> list[Case]:
    """Single runs and ensembles of four of every method, or of those named."""
    members = {**dict.fromkeys(REPEATED, (1, MEMBERS)), **dict.fromkeys(ALONE, (1,))}
    chosen = [method for method in members if methods is None or method in methods]
    return [
        Case(
            experiment=uci.EXPERIMENT if count == 1 else EXPERIMENT,
            dataset=DATASET,
            method=method,
            seed=seed,
            hidden=uci.HIDDEN,
            members=count,
        )
        for method in chosen
        for count in members[method]
        for seed in range(splits)
    ]


def write(records: Sequence[Record], folder: Path, report: Report) -> list[Path]:
    """Write the table and the paper's figure."""
    results = results_of(records)
    if not results:
        report("slump: there are no records yet")
        return []
    report("slump: table and figure")
    return [
        *(save_table(text, folder, name) for name, text in pages(records).items()),
        save_figure(draw_slump(results), folder, "slump"),
    ]


def pages(records: Sequence[Record]) -> dict[str, str]:
    """The table, by the name of its file."""
    results = results_of(records)
    return {"slump": slump_page(results)} if results else {}


def results_of(records: Sequence[Record]) -> Results:
    """Ensembles of four, and single runs of the same methods from the UCI experiment."""
    singles = {
        (dataset, method, members): found
        for (dataset, method, members), found in collect(records, uci.EXPERIMENT).items()
        if dataset == DATASET and method in (*REPEATED, *ALONE)
    }
    return {**singles, **collect(records, EXPERIMENT)}


def slump_page(results: Results) -> str:
    """Scores of single runs and of fours, what four runs change, and the paper's numbers."""
    runs = [(m, n) for m in methods_of(results) for n in (1, MEMBERS) if (DATASET, m, n) in results]
    splits = most_splits(results, DATASET)
    columns = []
    for score in _SCORES:
        cells = [score_cell(results[DATASET, m, n], score, 2, splits) for m, n in runs]
        loss = distance_to_nominal if score == COVERAGE else float
        columns.append(embolden(cells, 2, loss))
    columns.append([seconds_cell(results[DATASET, m, n], splits).text for m, n in runs])
    labels = [label_of(m, n) for m, n in runs]
    rows = [list(row) for row in zip(labels, *columns, strict=True)]
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
    return page(
        "Slump: single runs and ensembles of four",
        words,
        markdown(["method", *_SCORES.values(), "CPU seconds"], rows + _paper_rows()),
        "## What four runs change",
        changed,
        markdown(["method", *_CHANGES.values()], _change_rows(results, splits)),
        notes_of(results),
    )


def _paper_rows() -> list[list[str]]:
    rows = []
    for method in ("single", "ensemble", "svi", "svi_ensemble", *REPEATED[2:-1], "nuts"):
        name = COUNTERPARTS[method]
        cells: list[Cell] = [published_cell(published(name, s, DATASET)) for s in _SCORES]
        rows.append([f"*{name}, paper*", *(cell.text for cell in cells), "–"])
    return rows


def _change_rows(results: Results, splits: int) -> list[list[str]]:
    rows = []
    for method in _paired(results):
        four, one = (results[DATASET, method, n] for n in (MEMBERS, 1))
        texts = [difference_text(compare_runs(four, one, s), 3, splits) for s in _CHANGES]
        rows.append([label_of(method), *texts])
    return rows


def _paired(results: Results) -> list[str]:
    """Methods with records of single runs and of fours."""
    return [
        method
        for method in methods_of(results)
        if (DATASET, method, 1) in results and (DATASET, method, MEMBERS) in results
    ]


def relative_change(single: float, ensemble: float, score: str) -> float:
    """(ensemble - single) / |single|, and for coverage |c_4 - 0.95| - |c_1 - 0.95|.

    Below zero the ensemble is better.

    Examples
    --------
    >>> relative_change(8.0, 6.0, "rmse")
    -0.25
    >>> round(relative_change(0.85, 0.93, "gaussian_coverage"), 2)
    -0.08
    """
    if score == COVERAGE:
        return distance_to_nominal(ensemble) - distance_to_nominal(single)
    return (ensemble - single) / abs(single)


def draw_slump(results: Results) -> Any:
    """RMSE and NLL over the best, coverage, and the change by ensembles on a log scale."""
    methods = methods_of(results)
    figure = new_figure(12.0, 8.6)
    axes = figure.subplots(2, 2)
    for ax, score in zip(axes.flat[:3], _SCORES, strict=True):
        _draw_bars(ax, results, methods, score)
    _draw_changes(axes[1, 1], results)
    shared_legend(figure, [axes[0, 0], axes[1, 1]])
    return figure


def _draw_bars(ax: Any, results: Results, methods: Sequence[str], score: str) -> None:
    means = {
        key: mean_of(records, score)
        for key, records in results.items()
        if math.isfinite(mean_of(records, score))
    }
    best = min(means.values(), default=1.0)
    # A ratio to a best NLL below zero would be upside down.
    scaled = score != COVERAGE and best > 0.0
    for place, method in enumerate(methods):
        for count in (1, MEMBERS):
            if (DATASET, method, count) in means:
                values = values_of(results[DATASET, method, count], score)
                _draw_bar(ax, place, count, values / best if scaled else values)
    ax.set_xticks(range(len(methods)), [label_of(m) for m in methods], rotation=35, ha="right")
    ax.tick_params(axis="x", labelsize=8.5, length=0)
    ax.set_xlim(-0.6, len(methods) - 0.4)
    tidy(ax, f"{_SCORES[score]} over that of the best" if scaled else _SCORES[score])
    if score == COVERAGE:
        ax.axhline(NOMINAL, color="red", lw=0.9, linestyle="--")
        ax.set_ylim(max(0.0, best - 0.15), 1.03)
    elif scaled:
        ax.axhline(1.0, color=GREY, lw=0.9, linestyle="--", zorder=0)


def _draw_bar(ax: Any, place: int, count: int, values: np.ndarray) -> None:
    look: dict[str, Any] = {"color": BLUE, "label": "single run"}
    if count > 1:
        look = {"color": SKY, "hatch": "///", "label": f"ensemble of {count}"}
    ax.bar(
        place + (-0.2 if count == 1 else 0.2),
        values.mean(),
        width=0.38,
        yerr=values.std(ddof=1) if values.size > 1 else None,
        edgecolor=INK,
        linewidth=0.6,
        error_kw={"ecolor": INK, "elinewidth": 0.9, "capsize": 2.0},
        **look,
    )


def _draw_changes(ax: Any, results: Results) -> None:
    methods = _paired(results)
    names = {True: "the ensemble improved it", False: "the single run was better"}
    for shift, (score, color) in enumerate(zip(_SCORES, (GREEN, ORANGE, YELLOW), strict=True)):
        for place, method in enumerate(methods):
            one, four = (mean_of(results[DATASET, method, n], score) for n in (1, MEMBERS))
            change = relative_change(one, four, score)
            if math.isfinite(change) and change != 0.0:
                hatch = "///" if change < 0.0 else None
                x = place + 0.27 * (shift - 1)
                look = {"color": color, "hatch": hatch, "edgecolor": INK, "linewidth": 0.6}
                ax.bar(x, abs(change), width=0.25, **look)
        ax.bar(math.nan, math.nan, color=color, label=f"change of {_SCORES[score]}")
    for better, name in names.items():
        look = {"facecolor": "white", "edgecolor": INK, "hatch": "///" if better else None}
        ax.bar(math.nan, math.nan, **look, label=name)
    ax.set_xticks(range(len(methods)), [label_of(m) for m in methods], rotation=35, ha="right")
    ax.tick_params(axis="x", labelsize=8.5, length=0)
    ax.set_yscale("log")
    tidy(ax, "Relative change by four runs (coverage: change of |coverage − 0.95|)")
