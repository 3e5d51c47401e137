"""The paper's appendix on SVI: scores by batch size and forgetting rate, time, and ensembles.

Tables and figures of `svi_study`: RMSE, NLL and coverage of SVI against the forgetting rate for
several batch sizes beside coordinate ascent, seconds with how many times as fast each is, the bound
and the error by passes, and predictive bands of one fit and of several together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bowtienet.data.toy import NOISE_VARIANCE, simulate_toy, toy_function
from bowtienet.experiments.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    Report,
    band,
    markdown,
    mean_and_spread,
    new_figure,
    save_figure,
    save_table,
    tidy,
)
from bowtienet.experiments.svi_study import (
    CAVI,
    GRID,
    OURS,
    PAPER,
    RATE,
    STARTS,
    Cell,
    Key,
    Result,
    Study,
    run,
)
from bowtienet.experiments.tables import page

STYLES: dict[str, dict[str, Any]] = {
    PAPER: {"color": ORANGE, "linestyle": "--", "marker": "s"},
    OURS: {"color": BLUE, "linestyle": "-", "marker": "o"},
    CAVI: {"color": INK, "linestyle": ":", "marker": "^"},
}
_BATCH_STYLES: tuple[dict[str, Any], ...] = (
    {"color": ORANGE, "linestyle": "--", "marker": "s"},
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": GREEN, "linestyle": "-.", "marker": "D"},
    {"color": PINK, "linestyle": ":", "marker": "v"},
)
_HATCHES = {PAPER: "//", OURS: "", CAVI: ".."}
_SCORES = {"rmse": "RMSE", "nll": "NLL", "coverage": "coverage of 90 % intervals"}

Results = Mapping[Key, Result]


def cases(splits: int = 10, methods: Sequence[str] | None = None) -> list[Any]:
    """Nothing to run as cases: the study keeps results of its own, in svi.jsonl."""
    return []


def write(records: Sequence[Any], folder: Path, report: Report) -> list[Path]:
    """Nothing is made of records."""
    return []


def write_fits(
    folder: Path, report: Report, *, n_jobs: int = 1, study: Study | None = None
) -> list[Path]:
    """Run what is left of the study, and write its tables and its figure.

    Fits are timed, so they come one after another on one thread, whatever `n_jobs`.
    """
    study = Study() if study is None else study
    results = run(study, folder, report)
    return [
        save_table(_table(study, results), folder, "svi"),
        save_figure(_draw(study, results), folder, "svi", dpi=110),
    ]


def values_of(results: Results, study: Study, cell: Cell, name: str) -> np.ndarray:
    """A score, "seconds" or "passes" of single fits, (runs,)."""
    found = [results["single", "laplace", cell, seed][name] for seed in study.seeds]
    return np.array(found, dtype=float)


def ensemble_values(
    results: Results, study: Study, start: str, cell: Cell, size: str, name: str
) -> np.ndarray:
    """A score or "seconds" of one member or of all together, (runs,)."""
    found = [results["together", start, cell, seed][size][name] for seed in study.seeds]
    return np.array(found, dtype=float)


def _table(study: Study, results: Results) -> str:
    noise = 0.5 * (1.0 + np.log(2.0 * np.pi * NOISE_VARIANCE))
    words = (
        f"One hidden layer of {study.width} units, {study.rows} rows to fit, {study.new_rows:,} "
        f"new rows to score, {study.runs} runs from seed {study.first_seed} on, at most "
        f"{study.passes} passes over the rows, one thread. Noise alone has RMSE "
        f"{np.sqrt(NOISE_VARIANCE):.2f} and NLL {noise:.2f}. Seconds are the processor's. Mean ± "
        "standard deviation over the runs."
    )
    claim = (
        "The paper reports that an ensemble of five SVI fits with batches of 10 predicts about as "
        "well as coordinate ascent, in less than a fifth of its time."
    )
    return page(
        "Stochastic variational inference",
        words,
        f"Single fits from {STARTS['laplace']}:",
        _grid_rows(study, results),
        f"{study.members} fits with equal weights beside one:",
        _ensemble_rows(study, results),
        claim,
    )


def _grid_rows(study: Study, results: Results) -> str:
    header = ["method", "batch", "rate", "RMSE", "NLL", "coverage of 90 %", "passes", "seconds"]
    rows = []
    for cell in study.cells():
        found = {
            name: values_of(results, study, cell, name) for name in (*_SCORES, "passes", "seconds")
        }
        texts = [mean_and_spread(found[name].tolist(), 2) for name in _SCORES]
        ends = [f"{found['passes'].mean():.0f}", f"{found['seconds'].mean():.2f}"]
        rows.append([cell.method, str(cell.batch or "all"), str(cell.rate or ""), *texts, *ends])
    return markdown([*header, "times as fast as CAVI"], _with_ratios(study, results, rows))


def _with_ratios(study: Study, results: Results, rows: list[list[str]]) -> list[list[str]]:
    seconds = [values_of(results, study, cell, "seconds").mean() for cell in study.cells()]
    return [[*row, f"{seconds[-1] / own:.2g}"] for row, own in zip(rows, seconds, strict=True)]


def _ensemble_rows(study: Study, results: Results) -> str:
    header = ["start", "method", "batch", "fits", "RMSE", "NLL", "coverage of 90 %", "seconds"]
    rows = []
    for start in STARTS:
        for cell in study.shown():
            for size, count in (("one", 1), ("all", study.members)):
                found = [
                    ensemble_values(results, study, start, cell, size, name)
                    for name in (*_SCORES, "seconds")
                ]
                texts = [mean_and_spread(values.tolist(), 2) for values in found[:-1]]
                rows.append([f"`{start}`", cell.method, str(cell.batch or "all"), str(count)])
                rows[-1] += [*texts, f"{found[-1].mean():.2f}"]
    return markdown(header, rows)


def _draw(study: Study, results: Results) -> Any:
    figure = new_figure(16.0, 7.5)
    axes = figure.subplots(2, 4)
    for ax, (name, title) in zip(axes[0], _SCORES.items(), strict=False):
        _draw_score(ax, study, results, name)
        tidy(ax, title)
    axes[0, 0].set_yscale("log")
    axes[0, 0].yaxis.set_major_formatter("{x:g}")
    axes[0, 0].yaxis.set_minor_formatter("{x:g}")
    axes[0, 0].legend(frameon=False, fontsize=8.0)
    axes[0, 2].axhline(0.9, color=GREY, linewidth=0.8)
    _draw_seconds(axes[0, 3], study, results)
    _draw_curves(axes[1, :2], study, results)
    for ax, size in zip(axes[1, 2:], ("one", "all"), strict=True):
        _draw_bands(ax, study, results, size)
    return figure


def _draw_score(ax: Any, study: Study, results: Results, name: str) -> None:
    """A score by rate and batch, with standard errors; whole steps stand apart."""
    apart = study.rates[-1] + 0.12
    for place, batch in enumerate(study.batches):
        look = _BATCH_STYLES[place % len(_BATCH_STYLES)]
        values = [values_of(results, study, Cell(PAPER, batch, k), name) for k in study.rates]
        _draw_errors(ax, study.rates, values, look, f"batches of {batch}")
        at = apart + 0.025 * (place - 1)
        _draw_errors(ax, [at], [values_of(results, study, Cell(OURS, batch, RATE), name)], look)
    level = values_of(results, study, Cell(CAVI), name).mean()
    ax.axhline(level, color=INK, linestyle=":", label=CAVI)
    ax.axvline(study.rates[-1] + 0.05, color=GREY, linewidth=0.8)
    ax.set_xticks([*study.rates, apart], [*map(str, study.rates), "whole\nsteps"])
    ax.set_xlabel("forgetting rate of the paper's steps")


def _draw_errors(
    ax: Any,
    x: Sequence[float],
    values: Sequence[np.ndarray],
    look: dict[str, Any],
    label: str | None = None,
) -> None:
    """Means with standard errors."""
    means = [each.mean() for each in values]
    errors = [each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0 for each in values]
    ax.errorbar(x, means, errors, **look, markersize=5.0, linewidth=1.3, capsize=2.0, label=label)


def _draw_seconds(ax: Any, study: Study, results: Results) -> None:
    """Bars with how many times as fast as CAVI each is."""
    paper = [(f"paper, {batch}", Cell(PAPER, batch, RATE)) for batch in study.batches]
    ours = [(f"whole, {batch}", Cell(OURS, batch, RATE)) for batch in study.batches]
    bars = [*paper, *ours, (CAVI, Cell(CAVI))]
    whole = values_of(results, study, Cell(CAVI), "seconds").mean()
    for place, (_, cell) in enumerate(bars):
        seconds = values_of(results, study, cell, "seconds").mean()
        color, hatch = STYLES[cell.method]["color"], _HATCHES[cell.method]
        ax.barh(place, seconds, color="white" if hatch else color, edgecolor=color, hatch=hatch)
        note = "" if cell.method == CAVI else f" {whole / seconds:.2g}x"
        ax.text(seconds, place, note, va="center", fontsize=8.0)
    ax.set_yticks(range(len(bars)), [name for name, _ in bars])
    ax.invert_yaxis()
    ax.margins(x=0.18)
    ax.set_xlabel("seconds (times as fast as CAVI)")
    tidy(ax, f"time of a fit, rate {RATE}")


def _draw_curves(axes: Sequence[Any], study: Study, results: Results) -> None:
    """Bound of all rows and error of new ones after each pass: medians over the runs."""
    grid = np.unique(np.round(np.geomspace(1, study.passes, 60)))
    for ax, name in zip(axes, ("bounds", "errors"), strict=True):
        for cell in study.shown():
            runs = [results["together", "laplace", cell, seed] for seed in study.seeds]
            curves = [
                np.array(each[name])[
                    np.searchsorted(each["passes"], grid, side="right").clip(1) - 1
                ]
                for each in runs
            ]
            look = {**STYLES[cell.method], "marker": ""}
            label = f"{cell.method}, {cell.batch}" if cell.batch else cell.method
            ax.plot(grid, np.median(curves, axis=0), **look, linewidth=1.5, label=label)
            end = [np.median([each[part][-1] for each in runs]) for part in ("passes", name)]
            ax.plot(*end, color=look["color"], marker=STYLES[cell.method]["marker"], markersize=6.0)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("passes over the rows (mark: median end)")
    tidy(axes[0], "bound of all rows")
    axes[1].axhline(np.sqrt(NOISE_VARIANCE), color=GREY, linewidth=0.8)
    tidy(axes[1], "RMSE of new rows (line: the noise)")
    axes[1].legend(frameon=False, fontsize=8.0)


def _draw_bands(ax: Any, study: Study, results: Results, size: str) -> None:
    """Mean and central 90 % along the first input, in the first run."""
    seed = study.first_seed
    X, y = simulate_toy(study.rows, np.random.default_rng(seed))
    along = np.linspace(-2.0, 2.0, GRID)
    ax.plot(X[:, 0], y, ".", color=GREY, markersize=3.0)
    for cell in study.shown():
        found = results["together", "laplace", cell, seed][size]
        look = {**STYLES[cell.method], "linewidth": 1.5}
        band(ax, along, np.array(found["mean"]), np.array(found["intervals"]), look, cell.method)
    ax.plot(along, toy_function(along), color=GREEN, linewidth=0.8, label="true function")
    ax.set_xlabel("x1 (x2 = 0)")
    tidy(ax, "one fit, 90 %" if size == "one" else f"{study.members} fits, equal weights, 90 %")
    ax.legend(frameon=False, fontsize=8.0)
