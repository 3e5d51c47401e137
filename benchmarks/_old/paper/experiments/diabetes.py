"""The paper's diabetes example: scores, and which of ten inputs matter, beside a Lasso.

The table is made of records of networks with one hidden layer of 20 units. The figures are of fits
to all rows: the sizes of the weights before and after pruning at a false discovery rate of 0.01
beside the coefficients of LassoCV; what these models predict along four inputs, the others at
their means; and the same along three inputs for the paper's other methods, where they are
installed. A table says which columns the default `structure` selects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import StandardScaler

from benchmarks._old.paper import drawing, tables
from benchmarks._old.paper.cases import COVERAGE, Case
from benchmarks._old.paper.drawing import GREY, Report, new_figure, tidy
from benchmarks._old.paper.experiments.toy import FIT
from benchmarks._old.paper.methods import METHODS as ENTRIES
from benchmarks._old.paper.methods import missing, ours
from benchmarks._old.paper.sets import load_set, rows_of
from benchmarks._old.paper.tables import COUNTERPARTS, label_of, published_cell, score_column
from bowtienet._old import BowTieRegressor
from bowtienet._old.ensemble.structure import Structure

NAME = "diabetes"
HIDDEN = (20,)
METHODS = (
    *("single", "ensemble", "pruned", "pruned_signs", "gaussian", "lasso"),
    *("mean_field", "nuts", "backprop", "horseshoe"),
)
ALONG = {"bmi": "body mass index", "bp": "blood pressure", "s5": "s5 (ltg)", "age": "age"}
"""Inputs of the slices; of s5 the paper says lamotrigine, it is the log of triglycerides."""
BESIDE = ("lasso", "mean_field", "backprop")
"""Methods of the supplementary figure beside ours, along the first three inputs."""
STRUCTURE = {"random_state": 0}
"""Of the estimator whose `structure` is called: its defaults."""
_RATE = 0.01
_POINTS = 100
_SCORES = {
    "rmse": ("RMSE", 1),
    "gaussian_nll": ("NLL", 2),
    "gaussian_coverage": ("coverage of 95 %", 2),
}

Curves = dict[str, tuple[np.ndarray, np.ndarray]]
"""Mean (g,) and central 95 % intervals (g, 2) along each input."""


def cases(seeds: Iterable[int], methods: Sequence[str] | None = None) -> list[Case]:
    """Every method on every split."""
    return [
        Case(experiment=NAME, dataset=NAME, method=method, seed=seed, hidden=HIDDEN)
        for seed in seeds
        for method in methods or METHODS
    ]


def pages(frame: pd.DataFrame) -> dict[str, str]:
    """Scores beside the paper's."""
    results = tables.Results(frame[frame["experiment"] == NAME])
    if results.frame.empty:
        return {}
    splits, methods = results.splits(NAME), results.methods
    runs = [results.runs(NAME, method) for method in methods]
    words = (
        f"Mean ± standard deviation over {splits} random splits, a tenth of 442 rows held out, one "
        f"hidden layer of {HIDDEN[0]} units. NLL and coverage are the paper's, of N(mean, "
        "variance) of the forecast. Beside each score stands the paper's own for its counterpart "
        "of the method; its splits are not known. Seconds are the processor's for a fit."
    )
    table = {
        "method": [label_of(method) for method in methods],
        "in the paper": [COUNTERPARTS.get(method, tables.NOTHING) for method in methods],
    }
    for score, (name, digits) in _SCORES.items():
        papers = [published_cell(COUNTERPARTS.get(method), score, NAME) for method in methods]
        table[name] = score_column(runs, score, digits, splits)
        table[f"paper's {name}"] = [cell.text for cell in papers]
    table["CRPS"] = score_column(runs, "crps", 1, splits, bold=False)
    table["seconds"] = score_column(runs, "seconds", 1, splits, bold=False)
    text = tables.markdown(list(table), zip(*table.values(), strict=True))
    return {NAME: tables.page("Diabetes", words, text, tables.notes_of(results))}


def write_fits(
    folder: Path,
    report: Report,
    *,
    n_jobs: int = -1,
    fit: dict[str, Any] = FIT,
    hidden: tuple[int, ...] = HIDDEN,
    beside: Sequence[str] = BESIDE,
    structure: dict[str, Any] = STRUCTURE,
) -> None:
    """Write the figures, of a network with these settings and of others, fitted to all rows.

    `structure` are settings of the estimator whose `structure` says which columns matter.
    """
    report("diabetes: which columns matter")
    found = drawing.remembered(ours.structure_of, folder)(load_set(NAME), structure)
    drawing.save_table(structure_page(found), folder, "diabetes_structure")
    report("diabetes: a network for all rows")
    X, y = rows_of(NAME)
    fitted = drawing.remembered(ours.fit_for_figures, folder, ["n_jobs"])(X, y, hidden, fit, n_jobs)
    pruned = ours.prune_by_signs(fitted, _RATE)
    slices = slices_of(X)
    curves = {"single": _of_network(fitted, slices), "pruned_signs": _of_network(pruned, slices)}
    for method in beside:
        if reason := missing(method):
            report(f"diabetes: the figures are drawn without a method, since {reason}")
            continue
        report(f"diabetes: {label_of(method)} for all rows")
        curves[method] = drawing.remembered(curves_of, folder)(method, hidden)
    drawing.save_figure(_draw_weights(fitted, pruned), folder, "diabetes_weights")
    shown = [name for name in ("single", "pruned_signs", "lasso") if name in curves]
    drawing.save_figure(_draw_slices(slices, curves, shown), folder, "diabetes_slices")
    drawing.save_figure(_draw_predictors(slices, curves), folder, "diabetes_predictors")


def structure_page(found: Structure) -> str:
    """What `structure` selects, the smallest p-values first."""
    order = np.lexsort((-found.variance_share, found.p_values))
    rows = [
        [
            found.names[place],
            f"{found.p_values[place]:.2g}",
            "yes" if found.selected[place] else "no",
            f"{found.variance_share[place]:.3f}",
        ]
        for place in order
    ]
    words = (
        f"`BowTieRegressor().fit(X, y).structure(X, y)` on all {found.n_rows} rows: p-values of "
        "conditional randomisation, columns selected at a false discovery rate of "
        f"{found.false_discovery_rate:g}, and the share of the variance that left-out rows lose "
        "without the column."
    )
    header = ["column", "p-value", "selected", "share of variance"]
    return tables.page("Diabetes: columns that matter", words, tables.markdown(header, rows))


def slices_of(X: np.ndarray) -> dict[str, np.ndarray]:
    """Rows (g, 10) along each of four inputs, from their 1 % to their 99 %, the others at means."""
    found = {}
    for name in ALONG:
        column = _column(name)
        found[name] = np.tile(X.mean(axis=0), (_POINTS, 1))
        found[name][:, column] = np.linspace(*np.quantile(X[:, column], [0.01, 0.99]), _POINTS)
    return found


def _column(name: str) -> int:
    return list(load_set(NAME)).index(name)


def _of_network(model: BowTieRegressor, slices: dict[str, np.ndarray]) -> Curves:
    return {
        name: (model.predict(new), model.predict_interval(new, coverage=COVERAGE))
        for name, new in slices.items()
    }


def curves_of(method: str, hidden: tuple[int, ...]) -> Curves:
    """Curves of a competitor, fitted to all rows."""
    X, y = rows_of(NAME)
    fitted = ENTRIES[method].make(hidden)(X, y, 0)
    found = {name: fitted.predict(new) for name, new in slices_of(X).items()}
    return {name: (mixture.mean(), mixture.interval(COVERAGE)) for name, mixture in found.items()}


def scaled_sizes(values: np.ndarray) -> np.ndarray:
    """(|v| - min |v|) / (max |v| - min |v|), and zeros where all sizes are equal."""
    sizes = np.abs(values)
    return (sizes - sizes.min()) / (np.ptp(sizes) or 1.0)


def _draw_weights(fitted: BowTieRegressor, pruned: BowTieRegressor) -> Figure:
    """Sizes of coefficients and weights, scaled from 0 to 1: inputs along the rows."""
    before, after = (
        ours.mean_weights(model, in_place=True)[0][:, 1:].T for model in (fitted, pruned)
    )
    # Units that took in most of the inputs first, in the same order before and after.
    order = np.argsort(-np.abs(before).sum(axis=0), kind="stable")
    panels = {
        "LassoCV": lasso_coefficients()[:, None],
        "posterior mean weights": before[:, order],
        "sparse weights": after[:, order],
    }
    figure = new_figure(10.0, 4.2)
    ratios = [max(0.12 * values.shape[1], 0.18) for values in panels.values()]
    axes = figure.subplots(1, len(panels), sharey=True, width_ratios=ratios)
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        image = ax.imshow(scaled_sizes(values), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        ax.set_title(title, fontsize=10.0)
        ax.set_xticks([])
        for row, column in np.argwhere(values == 0.0):
            ax.plot(column, row, "x", color=GREY, markersize=3.0)
    axes[0].set_yticks(range(len(before)), list(load_set(NAME))[:-1])
    for ax in axes[1:]:
        ax.set_xlabel("hidden units, the strongest first (x: exactly zero)")
    figure.colorbar(image, ax=list(axes), label="size, scaled from 0 to 1", shrink=0.8)
    return figure


def lasso_coefficients() -> np.ndarray:
    """Of standardised inputs."""
    X, y = rows_of(NAME)
    return LassoCV(random_state=0).fit(StandardScaler().fit_transform(X), y).coef_


def _draw_slices(
    slices: dict[str, np.ndarray], curves: dict[str, Curves], methods: Sequence[str]
) -> Figure:
    figure = new_figure(3.6 * len(slices), 4.0)
    axes = figure.subplots(1, len(slices), sharey=True)
    for ax, (name, new) in zip(axes, slices.items(), strict=True):
        _draw_slice(ax, name, new, {method: curves[method] for method in methods})
        ax.set_xlabel(ALONG[name])
    axes[0].set_ylabel("progression")
    drawing.shared_legend(figure)
    return figure


def _draw_predictors(slices: dict[str, np.ndarray], curves: dict[str, Curves]) -> Figure:
    """A row for each method, a column for each of three inputs."""
    inputs = list(slices)[:3]
    figure = new_figure(3.6 * len(inputs), 2.6 * len(curves))
    axes = figure.subplots(len(curves), len(inputs), sharey=True, sharex="col", squeeze=False)
    for row, method in zip(axes, curves, strict=True):
        for ax, name in zip(row, inputs, strict=True):
            _draw_slice(ax, name, slices[name], {method: curves[method]})
        row[0].set_ylabel(label_of(method))
    for ax, name in zip(axes[-1], inputs, strict=True):
        ax.set_xlabel(ALONG[name])
    return figure


def _draw_slice(ax: Axes, name: str, new: np.ndarray, curves: dict[str, Curves]) -> None:
    (X, y), column = rows_of(NAME), _column(name)
    ax.plot(X[:, column], y, ".", color=GREY, markersize=2.5)
    for method, found in curves.items():
        label = f"{label_of(method)}, 95 %"
        drawing.band(ax, new[:, column], *found[name], drawing.style(method), label)
    ax.set_xlim(new[0, column], new[-1, column])
    tidy(ax)
