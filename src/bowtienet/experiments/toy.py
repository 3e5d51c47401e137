"""The paper's simulated example: what depth does to a network where one hidden layer is enough.

y = 0.1 x1² + 10 sin(x1) + noise of variance 0.5, a second input without a part in it, 300 rows,
and 1, 2 or 4 hidden layers of 20 units. The table and the first two figures are made of records;
predictive bands and pruned networks are of one fit to all rows for each depth, the best of four
starts by their bound, pruned at a false discovery rate of 0.01.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bowtienet.data.sets import DataSet, load_set
from bowtienet.data.toy import NOISE_VARIANCE, toy_function
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.evaluation.metrics import LEVELS
from bowtienet.experiments.cases import Case
from bowtienet.experiments.drawing import (
    BLUE,
    FIT,
    GREY,
    INK,
    ORANGE,
    Report,
    band,
    load_or_fit,
    markdown,
    new_figure,
    save_figure,
    save_table,
    shared_legend,
    style,
    tidy,
)
from bowtienet.experiments.records import DONE, FAILED, Record
from bowtienet.experiments.tables import (
    Results,
    collect,
    embolden,
    label_of,
    methods_of,
    most_splits,
    notes_of,
    page,
    score_cell,
    seconds_cell,
    values_of,
)
from bowtienet.plotting import NetworkDisplay
from bowtienet.plotting.fitted import chosen_member, member_weights

NAME = "toy"
DEPTHS, WIDTH = (1, 2, 4), 20
METHODS = ("single", "ensemble", "gaussian", "mean_field", "nuts", "backprop", "horseshoe")
"""The paper's, and the ensemble of ours."""
COVERAGE = 0.95
_RATE = 0.01
_PAPER = {1: (11, 33)}
"""Hidden nodes and weights that the paper reports to be left, by depth."""
_SCORES = (
    ("rmse", "RMSE", 2),
    ("gaussian_nll", "NLL", 2),
    ("gaussian_coverage", "coverage of 95 %", 2),
    ("nll", "NLL of its own density", 2),
    ("crps", "CRPS", 3),
)
_APART = 0.02
"""Between the error bars of two methods at one depth, as a part of the depth."""

Networks = Mapping[int, BowTieRegressor]
"""A fitted network for each depth."""


def cases(splits: int = 10, methods: Sequence[str] | None = None) -> list[Case]:
    """Every method at every depth on every split."""
    chosen = METHODS if methods is None else tuple(methods)
    return [
        Case(experiment=NAME, dataset=NAME, method=method, seed=seed, hidden=(WIDTH,) * depth)
        for seed in range(splits)
        for depth in DEPTHS
        for method in chosen
    ]


def write(records: Sequence[Record], folder: Path, report: Report) -> list[Path]:
    """Write the table and the figures that are made of records."""
    by_depth = {depth: results_of(records, depth) for depth in DEPTHS}
    paths = [save_table(text, folder, name) for name, text in pages(records).items()]
    if any(
        r.status == DONE for found in by_depth.values() for rows in found.values() for r in rows
    ):
        paths.append(save_figure(_draw_scores(by_depth), folder, "toy_depth"))
        paths.append(save_figure(_draw_coverage(by_depth), folder, "toy_coverage"))
    return paths


def write_fits(
    folder: Path,
    report: Report,
    *,
    n_jobs: int = -1,
    fit: Mapping[str, Any] = FIT,
    width: int = WIDTH,
) -> list[Path]:
    """Write the table and figures of networks with these settings, fitted to all rows."""
    data = load_set(NAME)
    fitted = {
        depth: load_or_fit(
            BowTieRegressor((width,) * depth, n_jobs=n_jobs, **fit),
            data.inputs,
            data.targets,
            folder,
            f"toy_{depth}",
            report,
        )
        for depth in DEPTHS
    }
    report("toy: pruned networks")
    pruned = {depth: model.prune(_RATE) for depth, model in fitted.items()}
    return [
        save_table(_pruning_table(pruned), folder, "toy_pruning"),
        save_figure(_draw_bands(fitted, pruned, data), folder, "toy_bands"),
        save_figure(_draw_networks(pruned, data), folder, "toy_networks"),
    ]


def pages(records: Sequence[Record]) -> dict[str, str]:
    """The table that records alone can make, by the name of its file."""
    return {NAME: _table({depth: results_of(records, depth) for depth in DEPTHS})}


def results_of(records: Sequence[Record], depth: int) -> Results:
    """Records of one depth, by method."""
    return collect([record for record in records if len(record.hidden) == depth], NAME)


def _layers(depth: int) -> str:
    return f"{depth} hidden layer{'s' if depth > 1 else ''}"


def _table(by_depth: Mapping[int, Results]) -> str:
    splits = max(most_splits(found, NAME) for found in by_depth.values())
    words = (
        f"Mean ± standard deviation over {splits} random splits, 30 rows of 300 held out. {WIDTH} "
        "units a layer. "
        "NLL and coverage are the paper's, of N(mean, variance) of the forecast; the noise alone "
        f"has RMSE {np.sqrt(NOISE_VARIANCE):.2f} and NLL "
        f"{0.5 * (1.0 + np.log(2.0 * np.pi * NOISE_VARIANCE)):.2f}. Seconds are the processor's "
        "for a fit. The paper shows this example in figures only."
    )
    parts = [part for depth, found in by_depth.items() for part in _depth_part(depth, found)]
    return page("Simulated example", words, *parts)


def _depth_part(depth: int, results: Results) -> list[str]:
    methods = methods_of(results)
    if not methods:
        return [f"## {_layers(depth)}", "Nothing was run."]
    splits = most_splits(results, NAME)
    rows = [results[NAME, method, 1] for method in methods if (NAME, method, 1) in results]
    columns = [[label_of(found[0].method) for found in rows]]
    for score, _, digits in _SCORES:
        loss = (lambda x: abs(x - COVERAGE)) if "coverage" in score else float
        cells = [score_cell(found, score, digits, splits) for found in rows]
        columns.append(embolden(cells, digits, loss))
    columns.append([seconds_cell(found, splits).text for found in rows])
    header = ["method", *(name for _, name, _ in _SCORES), "seconds"]
    table = markdown(header, list(zip(*columns, strict=True)))
    return [f"## {_layers(depth)}", table, notes_of(results)]


def _pruning_table(pruned: Networks) -> str:
    words = (
        f"The network with the highest bound of four starts, fitted to all rows and pruned at a "
        f"false discovery rate of {_RATE}. Weights are counted without biases. Strength is that "
        "of the ways from an input to the target in what is left."
    )
    header = ["hidden layers", "nodes", "left", "weights", "left", "paper: nodes, weights left"]
    header += ["strength of x1", "strength of x2"]
    rows = []
    for depth, model in pruned.items():
        member, found = chosen_member(model, None), model.sparsity_
        counts = [
            getattr(found, f"{name}_{when}")[member]
            for name in ("nodes", "weights")
            for when in ("before", "after")
        ]
        paper = "{}, {}".format(*_PAPER[depth]) if depth in _PAPER else "not given"
        strength = [f"{each:.3f}" for each in model.feature_relevance_.strength]
        rows.append([str(depth), *map(str, counts), paper, *strength])
    return page("Simulated example: pruned networks", words, markdown(header, rows))


def _draw_scores(by_depth: Mapping[int, Results]) -> Any:
    """RMSE and NLL by depth: means over splits with standard errors."""
    figure = new_figure(9.0, 4.0)
    axes = figure.subplots(1, 2)
    methods = _all_methods(by_depth)
    for ax, (score, name, _) in zip(axes, _SCORES[:2], strict=True):
        for place, method in enumerate(methods):
            shift = 1.0 + _APART * (place - 0.5 * (len(methods) - 1))
            points = [
                (depth * shift, *_mean_and_error(found.get((NAME, method, 1), ()), score))
                for depth, found in by_depth.items()
            ]
            known = np.array([point for point in points if np.isfinite(point[1])])
            if known.size:
                ax.errorbar(*known.T, **style(method), capsize=2.0, label=label_of(method))
        ax.set(xscale="log", xlabel="hidden layers")
        ax.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
        ax.minorticks_off()
        tidy(ax, name)
    axes[0].axhline(np.sqrt(NOISE_VARIANCE), color=GREY, linewidth=1.0, label="noise alone")
    shared_legend(figure, axes, columns=4)
    return figure


def _all_methods(by_depth: Mapping[int, Results]) -> list[str]:
    return methods_of({key: rows for found in by_depth.values() for key, rows in found.items()})


def _mean_and_error(records: Sequence[Record], score: str) -> tuple[float, float]:
    """Mean over splits and its standard error; NaN where a split failed."""
    values = values_of(records, score)
    if not values.size:
        return np.nan, np.nan
    error = np.std(values, ddof=1) / np.sqrt(values.size) if values.size > 1 else 0.0
    return float(np.mean(values)), float(error)


def _draw_coverage(by_depth: Mapping[int, Results]) -> Any:
    """Observed against nominal coverage, the mean over splits."""
    figure = new_figure(12.0, 4.6)
    axes = figure.subplots(1, len(DEPTHS), squeeze=False)[0]
    for ax, (depth, results) in zip(axes, by_depth.items(), strict=True):
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linestyle=(0, (5, 3)), label="calibrated")
        for method in methods_of(results):
            found = results.get((NAME, method, 1), ())
            curves = [record.curve for record in found if record.status == DONE]
            # As in the table, a method that failed on a split has no mean.
            if curves and all(record.status != FAILED for record in found):
                look = style(method, markersize=3.5)
                ax.plot(LEVELS, np.mean(curves, axis=0), **look, label=label_of(method))
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", xlabel="nominal coverage")
        tidy(ax, _layers(depth))
    axes[0].set_ylabel("observed coverage")
    shared_legend(figure, axes, columns=4)
    return figure


def _draw_bands(fitted: Networks, pruned: Networks, data: DataSet) -> Any:
    """Along the second input with one hidden layer, then along the first for each depth."""
    figure = new_figure(4.0 * (1 + len(DEPTHS)), 4.1)
    axes = figure.subplots(1, 1 + len(DEPTHS), sharey=True)
    shown = [(DEPTHS[0], 1), *((depth, 0) for depth in DEPTHS)]
    for ax, (depth, column) in zip(axes, shown, strict=True):
        _draw_slice(ax, data, column, (fitted[depth], pruned[depth]))
        tidy(ax, _layers(depth))
    axes[0].set_ylabel("target")
    shared_legend(figure, axes)
    return figure


def _draw_slice(
    ax: Any, data: DataSet, column: int, models: tuple[BowTieRegressor, BowTieRegressor]
) -> None:
    along = np.linspace(-2.0, 2.0, 200)
    new = np.zeros((along.size, 2))
    new[:, column] = along
    ax.plot(data.inputs[:, column], data.targets, ".", color=GREY, markersize=3.0, label="rows")
    looks = ({"color": BLUE, "linestyle": "-"}, {"color": ORANGE, "linestyle": "--"})
    for model, look, name in zip(models, looks, ("fitted", "pruned"), strict=True):
        ends = model.predict_interval(new, coverage=COVERAGE)
        band(ax, along, model.predict(new), ends, look, f"{name}, mean and 95 %")
    truth = toy_function(new[:, 0])
    ax.plot(along, truth, color=INK, linestyle=":", linewidth=1.2, label="true function")
    here, other = data.input_names[column], data.input_names[1 - column]
    ax.set_xlabel(f"{here} ({other} = 0)")


def _draw_networks(pruned: Networks, data: DataSet) -> Any:
    figure = new_figure(4.4 * len(DEPTHS), 4.4)
    axes = figure.subplots(1, len(DEPTHS), squeeze=False)[0]
    for ax, (depth, model) in zip(axes, pruned.items(), strict=True):
        member, found = chosen_member(model, None), model.sparsity_
        NetworkDisplay(
            weights=member_weights(model, member),
            input_names=data.input_names,
            output_names=[data.target_name],
        ).plot(ax=ax)
        words = f"{found.nodes_after[member]} of {found.nodes_before[member]} nodes, "
        words += f"{found.weights_after[member]} of {found.weights_before[member]} weights"
        if depth in _PAPER:
            words += "\n(paper: {} nodes, {} weights)".format(*_PAPER[depth])
        ax.set_title(f"{_layers(depth)}: {words}", fontsize=9.0)
    return figure
