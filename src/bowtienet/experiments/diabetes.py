"""The paper's diabetes example: scores, and which of ten inputs matter, beside a Lasso.

The table is made of records of networks with one hidden layer of 20 units. The figures are of fits
to all rows: the sizes of the weights before and after pruning at a false discovery rate of 0.01
beside the coefficients of LassoCV; what these models predict along four inputs, the others at
their means; and the same along three inputs for the paper's other methods, where they are
installed. Curves of other methods are kept in models/diabetes_*.json.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bowtienet.data.sets import DataSet, load_set
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.experiments.cases import COVERAGE, Case
from bowtienet.experiments.drawing import (
    FIT,
    GREY,
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
from bowtienet.experiments.methods import METHODS as ENTRIES
from bowtienet.experiments.methods import missing
from bowtienet.experiments.paper import COUNTERPARTS, published
from bowtienet.experiments.records import Record
from bowtienet.experiments.tables import (
    NOTHING,
    collect,
    distance_to_nominal,
    embolden,
    label_of,
    methods_of,
    most_splits,
    notes_of,
    page,
    published_cell,
    score_cell,
    seconds_cell,
)
from bowtienet.persistence import replacing
from bowtienet.plotting.fitted import chosen_member, member_weights

NAME = "diabetes"
HIDDEN = (20,)
METHODS = (
    "single",
    "ensemble",
    "pruned",
    "gaussian",
    "lasso",
    "mean_field",
    "nuts",
    "backprop",
    "horseshoe",
)
ALONG = {"bmi": "body mass index", "bp": "blood pressure", "s5": "s5 (ltg)", "age": "age"}
"""Inputs of the slices; of s5 the paper says lamotrigine, it is the log of triglycerides."""
BESIDE = ("lasso", "mean_field", "backprop")
"""Methods of the supplementary figure beside ours, along the first three inputs."""
_RATE = 0.01
_POINTS = 100
_SCORES = (
    ("rmse", "RMSE", 1),
    ("gaussian_nll", "NLL", 2),
    ("gaussian_coverage", "coverage of 95 %", 2),
)


class Curve(NamedTuple):
    """A method along one input."""

    mean: np.ndarray
    """(g,)."""
    intervals: np.ndarray
    """Central 95 % (g, 2)."""


def cases(splits: int = 10, methods: Sequence[str] | None = None) -> list[Case]:
    """Every method on every split."""
    chosen = METHODS if methods is None else tuple(methods)
    return [
        Case(experiment=NAME, dataset=NAME, method=method, seed=seed, hidden=HIDDEN)
        for seed in range(splits)
        for method in chosen
    ]


def write(records: Sequence[Record], folder: Path, report: Report) -> list[Path]:
    """Write the table."""
    return [save_table(text, folder, name) for name, text in pages(records).items()]


def write_fits(
    folder: Path,
    report: Report,
    *,
    n_jobs: int = -1,
    fit: Mapping[str, Any] = FIT,
    hidden: tuple[int, ...] = HIDDEN,
    beside: Sequence[str] = BESIDE,
) -> list[Path]:
    """Write the figures, of a network with these settings and of others, fitted to all rows."""
    data = load_set(NAME)
    model = BowTieRegressor(hidden, n_jobs=n_jobs, **fit)
    fitted = load_or_fit(model, data.inputs, data.targets, folder, NAME, report)
    pruned = fitted.prune(_RATE)
    slices = slices_of(data)
    curves = {
        "single": {name: _of_network(fitted, new) for name, new in slices.items()},
        "pruned": {name: _of_network(pruned, new) for name, new in slices.items()},
    }
    curves |= _others(beside, hidden, data, slices, folder, report)
    report("diabetes: weights and slices")
    shown = [name for name in ("single", "pruned", "lasso") if name in curves]
    return [
        save_figure(_draw_weights(data, fitted, pruned), folder, "diabetes_weights"),
        save_figure(_draw_slices(data, slices, curves, shown), folder, "diabetes_slices"),
        save_figure(_draw_predictors(data, slices, curves), folder, "diabetes_predictors"),
    ]


def pages(records: Sequence[Record]) -> dict[str, str]:
    """The table that records alone can make, by the name of its file."""
    return {NAME: _table(records)}


def slices_of(data: DataSet) -> dict[str, np.ndarray]:
    """Rows (g, 10) along each of four inputs, from their 1 % to their 99 %, the others at means."""
    found = {}
    for name in ALONG:
        column = data.input_names.index(name)
        new = np.tile(data.inputs.mean(axis=0), (_POINTS, 1))
        low, high = np.quantile(data.inputs[:, column], [0.01, 0.99])
        new[:, column] = np.linspace(low, high, _POINTS)
        found[name] = new
    return found


def scaled_sizes(values: np.ndarray) -> np.ndarray:
    """(|v| - min |v|) / (max |v| - min |v|), and zeros where all sizes are equal.

    Examples
    --------
    >>> scaled_sizes(np.array([-3.0, 0.0, 1.5]))
    array([1. , 0. , 0.5])
    """
    sizes = np.abs(values)
    spread = np.ptp(sizes) if sizes.size else 0.0
    return (sizes - sizes.min()) / spread if spread > 0.0 else np.zeros(sizes.shape)


def _table(records: Sequence[Record]) -> str:
    results = collect(records, NAME)
    splits = most_splits(results, NAME)
    rows = [results[NAME, method, 1] for method in methods_of(results)]
    words = (
        f"Mean ± standard deviation over {splits} random splits, a tenth of 442 rows held out, one "
        f"hidden layer of {HIDDEN[0]} units. NLL and coverage are the paper's, of N(mean, "
        "variance) of the forecast. Beside each score stands the paper's own for its counterpart "
        "of the method; its splits are not known. Seconds are the processor's for a fit."
    )
    if not rows:
        return page("Diabetes", "Nothing was run.")
    names = [found[0].method for found in rows]
    columns = [
        [label_of(name) for name in names],
        [COUNTERPARTS.get(name, NOTHING) for name in names],
    ]
    for score, _, digits in _SCORES:
        loss: Callable[[float], float] = distance_to_nominal if "coverage" in score else float
        cells = [score_cell(found, score, digits, splits) for found in rows]
        columns.append(embolden(cells, digits, loss))
        columns.append([published_cell(_published(name, score)).text for name in names])
    columns.append([score_cell(found, "crps", 1, splits).text for found in rows])
    columns.append([seconds_cell(found, splits).text for found in rows])
    header = ["method", "in the paper"]
    header += [text for _, name, _ in _SCORES for text in (name, f"paper's {name}")]
    table = markdown([*header, "CRPS", "seconds"], list(zip(*columns, strict=True)))
    return page("Diabetes", words, table, notes_of(results))


def _published(method: str, score: str) -> Any:
    return published(COUNTERPARTS.get(method, ""), score, NAME)


def _of_network(model: BowTieRegressor, new: np.ndarray) -> Curve:
    return Curve(model.predict(new), model.predict_interval(new, coverage=COVERAGE))


def _others(
    names: Sequence[str],
    hidden: tuple[int, ...],
    data: DataSet,
    slices: Mapping[str, np.ndarray],
    folder: Path,
    report: Report,
) -> dict[str, dict[str, Curve]]:
    """Curves of methods that can run here, from the folder or fitted now and kept there."""
    found = {}
    for name in names:
        path = folder / "models" / f"diabetes_{name}-{_digest(name, hidden)}.json"
        absent = missing(name)
        if path.exists():
            found[name] = _read_curves(path)
        elif absent is not None:
            report(f"diabetes: the figures are drawn without a method, since {absent}")
        else:
            report(f"fitting diabetes with {label_of(name)}")
            try:
                found[name] = _fit_curves(name, hidden, data, slices)
            except Exception as error:  # a competitor's library may raise anything
                report(f"diabetes: the figures are drawn without {label_of(name)}, since {error}")
            else:
                _keep_curves(found[name], path)
    return found


def _fit_curves(
    name: str, hidden: tuple[int, ...], data: DataSet, slices: Mapping[str, np.ndarray]
) -> dict[str, Curve]:
    forecaster = ENTRIES[name].make(hidden=hidden).fit(data.inputs, data.targets, 0, COVERAGE)
    forecasts = {key: forecaster(new) for key, new in slices.items()}
    return {key: Curve(f.distribution.mean(), f.intervals) for key, f in forecasts.items()}


def _digest(name: str, hidden: tuple[int, ...]) -> str:
    text = json.dumps([name, list(hidden), list(ALONG), _POINTS, COVERAGE])
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _keep_curves(curves: Mapping[str, Curve], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {name: [part.tolist() for part in curve] for name, curve in curves.items()}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")


def _read_curves(path: Path) -> dict[str, Curve]:
    content = json.loads(path.read_text(encoding="utf-8"))
    return {name: Curve(*(np.array(part) for part in parts)) for name, parts in content.items()}


def _draw_weights(data: DataSet, fitted: BowTieRegressor, pruned: BowTieRegressor) -> Any:
    """Sizes of coefficients and weights, scaled from 0 to 1: inputs along the rows."""
    member = chosen_member(fitted, None)
    before, after = (
        member_weights(model, member, in_place=True)[0][:, 1:].T for model in (fitted, pruned)
    )
    # Units that took in most of the inputs first, in the same order before and after.
    order = np.argsort(-np.abs(before).sum(axis=0), kind="stable")
    panels = {
        "LassoCV": _lasso_coefficients(data)[:, None],
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
    axes[0].set_yticks(range(len(data.input_names)), data.input_names)
    for ax in axes[1:]:
        ax.set_xlabel("hidden units, the strongest first (x: exactly zero)")
    figure.colorbar(image, ax=list(axes), label="size, scaled from 0 to 1", shrink=0.8)
    return figure


def _lasso_coefficients(data: DataSet) -> np.ndarray:
    """Of standardised inputs."""
    from sklearn.linear_model import LassoCV
    from sklearn.preprocessing import StandardScaler

    inputs = StandardScaler().fit_transform(data.inputs)
    return np.asarray(LassoCV(random_state=0).fit(inputs, data.targets).coef_)


def _draw_slices(
    data: DataSet,
    slices: Mapping[str, np.ndarray],
    curves: Mapping[str, Mapping[str, Curve]],
    methods: Sequence[str],
) -> Any:
    figure = new_figure(3.6 * len(slices), 4.0)
    axes = figure.subplots(1, len(slices), sharey=True)
    for ax, name in zip(axes, slices, strict=True):
        _draw_slice(ax, data, name, slices[name], curves, methods)
        ax.set_xlabel(ALONG[name])
    axes[0].set_ylabel(data.target_name)
    shared_legend(figure, axes)
    return figure


def _draw_predictors(
    data: DataSet,
    slices: Mapping[str, np.ndarray],
    curves: Mapping[str, Mapping[str, Curve]],
) -> Any:
    """A row for each method, a column for each of three inputs."""
    inputs = list(slices)[:3]
    figure = new_figure(3.6 * len(inputs), 2.6 * len(curves))
    axes = figure.subplots(len(curves), len(inputs), sharey=True, sharex="col", squeeze=False)
    for row, method in enumerate(curves):
        for column, name in enumerate(inputs):
            _draw_slice(axes[row, column], data, name, slices[name], curves, [method])
        axes[row, 0].set_ylabel(label_of(method))
    for ax, name in zip(axes[-1], inputs, strict=True):
        ax.set_xlabel(ALONG[name])
    return figure


def _draw_slice(
    ax: Any,
    data: DataSet,
    name: str,
    new: np.ndarray,
    curves: Mapping[str, Mapping[str, Curve]],
    methods: Sequence[str],
) -> None:
    column = data.input_names.index(name)
    ax.plot(data.inputs[:, column], data.targets, ".", color=GREY, markersize=2.5)
    for method in methods:
        mean, intervals = curves[method][name]
        band(ax, new[:, column], mean, intervals, style(method), f"{label_of(method)}, 95 %")
    ax.set_xlim(new[0, column], new[-1, column])
    tidy(ax)
