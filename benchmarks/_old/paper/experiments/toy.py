"""The paper's simulated example: what depth does to a network where one hidden layer is enough.

y = 0.1 x1² + 10 sin(x1) + noise of variance 0.5, a second input without a part in it, 300 rows,
and 1, 2 or 4 hidden layers of 20 units. The table and the first two figures are made of records;
predictive bands and pruned networks are of one fit to all rows for each depth, the best of four
starts by their bound, pruned at a false discovery rate of 0.01.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import sem

from benchmarks._old.paper import drawing, tables
from benchmarks._old.paper.cases import COVERAGE, Case
from benchmarks._old.paper.drawing import BLUE, GREY, INK, ORANGE, Report, new_figure, tidy
from benchmarks._old.paper.methods import ours
from benchmarks._old.paper.records import DONE
from benchmarks._old.paper.sets import rows_of
from benchmarks._old.paper.tables import Results, label_of
from bowtienet._old import BowTieRegressor
from bowtienet._old.data.toy import NOISE_VARIANCE, toy_function
from bowtienet._old.evaluation import LEVELS
from bowtienet._old.plotting import NetworkDisplay

NAME = "toy"
DEPTHS, WIDTH = (1, 2, 4), 20
METHODS = ("single", "ensemble", "gaussian", "mean_field", "nuts", "backprop", "horseshoe")
"""The paper's, and the ensemble of ours."""
FIT = {
    "n_estimators": 4,
    "weighting": "elbo",
    "elbo_tempering": 1.0,
    "gate_temperature": 0.01,
    "init_penalty": 1.0,
    "max_iter": 1000,
    "tol": 1e-4,
    "random_state": 0,
}
"""Of networks that are drawn: shrinkage to convergence from a smooth start, which structure wants.

The start with the highest bound counts, all but alone.
"""
_RATE = 0.01
_PAPER = {1: (11, 33)}
"""Hidden nodes and weights that the paper reports to be left, by depth."""
_SCORES = {
    "rmse": ("RMSE", 2),
    "gaussian_nll": ("NLL", 2),
    "gaussian_coverage": ("coverage of 95 %", 2),
    "nll": ("NLL of its own density", 2),
    "crps": ("CRPS", 3),
}
_APART = 0.02
"""Between the error bars of two methods at one depth, as a part of the depth."""

Networks = dict[int, BowTieRegressor]
"""A fitted network for each depth."""


def cases(seeds: Iterable[int], methods: Sequence[str] | None = None) -> list[Case]:
    """Every method at every depth on every split."""
    return [
        Case(experiment=NAME, dataset=NAME, method=method, seed=seed, hidden=(WIDTH,) * depth)
        for seed in seeds
        for depth in DEPTHS
        for method in methods or METHODS
    ]


def results_of(frame: pd.DataFrame) -> dict[int, Results]:
    """Records of each depth, by method."""
    own = frame[frame["experiment"] == NAME]
    return {depth: Results(own[own["depth"] == depth]) for depth in DEPTHS}


def _layers(depth: int) -> str:
    return f"{depth} hidden layer{'s' if depth > 1 else ''}"


def pages(frame: pd.DataFrame) -> dict[str, str]:
    """The scores by depth."""
    by_depth = results_of(frame)
    if all(found.frame.empty for found in by_depth.values()):
        return {}
    splits = max(found.splits(NAME) for found in by_depth.values())
    words = (
        f"Mean ± standard deviation over {splits} random splits, 30 rows of 300 held out. {WIDTH} "
        "units a layer. "
        "NLL and coverage are the paper's, of N(mean, variance) of the forecast; the noise alone "
        f"has RMSE {np.sqrt(NOISE_VARIANCE):.2f} and NLL "
        f"{0.5 * (1.0 + np.log(2.0 * np.pi * NOISE_VARIANCE)):.2f}. Seconds are the processor's "
        "for a fit. The paper shows this example in figures only."
    )
    parts = [part for depth, found in by_depth.items() for part in _part(depth, found)]
    return {NAME: tables.page("Simulated example", words, *parts)}


def _part(depth: int, results: Results) -> list[str]:
    methods, splits = results.methods, results.splits(NAME)
    runs = [results.runs(NAME, method) for method in methods]
    columns = [
        tables.score_column(runs, score, digits, splits) for score, (_, digits) in _SCORES.items()
    ]
    columns.append(tables.score_column(runs, "seconds", 1, splits, bold=False))
    header = ["method", *(name for name, _ in _SCORES.values()), "seconds"]
    table = tables.markdown(header, zip(map(label_of, methods), *columns, strict=True))
    return [f"## {_layers(depth)}", table, tables.notes_of(results)]


def draw(frame: pd.DataFrame, folder: Path) -> None:
    """Scores and coverage by depth."""
    by_depth = results_of(frame)
    if any((found.frame["status"] == DONE).any() for found in by_depth.values()):
        drawing.save_figure(_draw_scores(by_depth), folder, "toy_depth")
        drawing.save_figure(_draw_coverage(by_depth), folder, "toy_coverage")


def _draw_scores(by_depth: dict[int, Results]) -> Figure:
    """RMSE and NLL by depth: means over splits with standard errors."""
    figure = new_figure(9.0, 4.0)
    axes = figure.subplots(1, 2)
    methods = [m for m in METHODS if any(m in found.methods for found in by_depth.values())]
    for ax, score in zip(axes, _SCORES, strict=False):
        for place, method in enumerate(methods):
            shift = 1.0 + _APART * (place - 0.5 * (len(methods) - 1))
            values = [
                tables.values_of(found.runs(NAME, method), score) for found in by_depth.values()
            ]
            # As in the table, a method that failed on a split has no mean.
            means = np.array([v.mean() if v.size else np.nan for v in values])
            errors = np.array([sem(v) if v.size > 1 else 0.0 for v in values])
            look = {**drawing.style(method), "capsize": 2.0, "label": label_of(method)}
            ax.errorbar(np.array(DEPTHS) * shift, means, errors, **look)
        ax.set(xscale="log", xlabel="hidden layers")
        ax.set_xticks(DEPTHS, map(str, DEPTHS))
        ax.minorticks_off()
        tidy(ax, _SCORES[score][0])
    axes[0].axhline(np.sqrt(NOISE_VARIANCE), color=GREY, linewidth=1.0, label="noise alone")
    drawing.shared_legend(figure, columns=4)
    return figure


def _draw_coverage(by_depth: dict[int, Results]) -> Figure:
    """Observed against nominal coverage, the mean over splits."""
    figure = new_figure(12.0, 4.6)
    axes = figure.subplots(1, len(DEPTHS))
    for ax, (depth, results) in zip(axes, by_depth.items(), strict=True):
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linestyle=(0, (5, 3)), label="calibrated")
        for method in results.methods:
            runs = results.runs(NAME, method)
            if (runs["status"] == DONE).all():
                look = drawing.style(method, markersize=3.5)
                curve = np.mean(runs["curve"].tolist(), axis=0)
                ax.plot(LEVELS, curve, **look, label=label_of(method))
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", xlabel="nominal coverage")
        tidy(ax, _layers(depth))
    axes[0].set_ylabel("observed coverage")
    drawing.shared_legend(figure, columns=4)
    return figure


def write_fits(
    folder: Path,
    report: Report,
    *,
    n_jobs: int = -1,
    fit: dict[str, Any] = FIT,
    width: int = WIDTH,
) -> None:
    """Write the table and figures of networks with these settings, fitted to all rows."""
    X, y = rows_of(NAME)
    fit_once = drawing.remembered(ours.fit_for_figures, folder, ["n_jobs"])
    fitted: Networks = {}
    for depth in DEPTHS:
        report(f"toy: network with {_layers(depth)}")
        fitted[depth] = fit_once(X, y, (width,) * depth, fit, n_jobs)
    pruned = {depth: ours.prune_by_signs(model, _RATE) for depth, model in fitted.items()}
    drawing.save_table(_pruning_table(pruned), folder, "toy_pruning")
    drawing.save_figure(_draw_bands(fitted, pruned), folder, "toy_bands")
    drawing.save_figure(_draw_networks(pruned), folder, "toy_networks")


def _sizes(model: BowTieRegressor) -> list[int]:
    """Nodes before and after pruning, and weights before and after."""
    member, found = ours.best_member(model), model.sparsity_
    counts = (found.nodes_before, found.nodes_after, found.weights_before, found.weights_after)
    return [int(each[member]) for each in counts]


def _pruning_table(pruned: Networks) -> str:
    words = (
        f"The network with the highest bound of four starts, fitted to all rows and pruned at a "
        f"false discovery rate of {_RATE}; temperature {FIT['gate_temperature']:g}, penalty of the "
        f"start {FIT['init_penalty']:g}. Weights are counted without biases. Strength is that "
        "of the ways from an input to the target in what is left."
    )
    header = ["hidden layers", "nodes", "left", "weights", "left", "paper: nodes, weights left"]
    header += ["strength of x1", "strength of x2"]
    rows = []
    for depth, model in pruned.items():
        paper = "{}, {}".format(*_PAPER[depth]) if depth in _PAPER else "not given"
        strength = [f"{each:.3f}" for each in model.feature_relevance_.strength]
        rows.append([str(depth), *map(str, _sizes(model)), paper, *strength])
    return tables.page("Simulated example: pruned networks", words, tables.markdown(header, rows))


def _draw_bands(fitted: Networks, pruned: Networks) -> Figure:
    """Along the second input with one hidden layer, then along the first for each depth."""
    figure = new_figure(4.0 * (1 + len(DEPTHS)), 4.1)
    axes = figure.subplots(1, 1 + len(DEPTHS), sharey=True)
    shown = [(DEPTHS[0], 1), *((depth, 0) for depth in DEPTHS)]
    for ax, (depth, column) in zip(axes, shown, strict=True):
        _draw_slice(ax, column, fitted[depth], pruned[depth])
        tidy(ax, _layers(depth))
    axes[0].set_ylabel("target")
    drawing.shared_legend(figure)
    return figure


def _draw_slice(ax: Axes, column: int, fitted: Any, pruned: Any) -> None:
    (X, y), along = rows_of(NAME), np.linspace(-2.0, 2.0, 200)
    new = np.zeros((along.size, 2))
    new[:, column] = along
    ax.plot(X[:, column], y, ".", color=GREY, markersize=3.0, label="rows")
    for model, color, line, name in (
        (fitted, BLUE, "-", "fitted"),
        (pruned, ORANGE, "--", "pruned"),
    ):
        ends = model.predict_interval(new, coverage=COVERAGE)
        look = {"color": color, "linestyle": line}
        drawing.band(ax, along, model.predict(new), ends, look, f"{name}, mean and 95 %")
    truth = toy_function(new[:, 0])
    ax.plot(along, truth, color=INK, linestyle=":", linewidth=1.2, label="true function")
    ax.set_xlabel(("x1 (x2 = 0)", "x2 (x1 = 0)")[column])


def _draw_networks(pruned: Networks) -> Figure:
    figure = new_figure(4.4 * len(DEPTHS), 4.4)
    for ax, (depth, model) in zip(figure.subplots(1, len(DEPTHS)), pruned.items(), strict=True):
        weights = ours.mean_weights(model)
        NetworkDisplay(weights=weights, input_names=["x1", "x2"], output_names=["y"]).plot(ax=ax)
        nodes, nodes_left, all_weights, weights_left = _sizes(model)
        words = f"{nodes_left} of {nodes} nodes, {weights_left} of {all_weights} weights"
        if depth in _PAPER:
            words += "\n(paper: {} nodes, {} weights)".format(*_PAPER[depth])
        ax.set_title(f"{_layers(depth)}: {words}", fontsize=9.0)
    return figure
