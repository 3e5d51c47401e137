"""Which inputs a network uses for a target, and how predictions follow the strongest of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet.estimators.columns import (
    CATEGORY,
    DAY,
    NUMBER,
    Numbers,
    open_table,
    read_column,
)
from bowtienet.estimators.preparing import output_names
from bowtienet.estimators.table_pipeline import TablePipeline
from bowtienet.plotting import PredictiveBandDisplay
from bowtienet.plotting.fitted import names_of, network_of
from bowtienet.report.rows import ReportRows, knows_names, sample, take
from bowtienet.report.summary import Content
from bowtienet.report.wording import clean

INNER = 0.5
"""Coverage of the inner band."""
_GRID = 30
_FEW = 20
"""Different numbers up to which each is shown."""
_AVERAGED = 100
"""Rows that a line is averaged over."""
_MOST_ROWS = 2000
"""Rows among which categories are looked for; a picture averages over some of them."""
_MOST_AVERAGED = 200
"""What `PredictiveBandDisplay` averages over at most."""
_TAIL = 0.01
"""Share of the rows beyond either end of a line, where there is little to learn from."""


@dataclass(frozen=True, kw_only=True)
class Relevance:
    """How much a network uses a column of the user's table for a target."""

    column: str
    """As the table calls it."""
    probability: float
    strength: float
    n_inputs: int = 1
    """Inputs of the network that it became, of which the strongest counts."""


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """The predictive distribution along one input, averaged over rows."""

    name: str
    kind: str
    x: tuple[float, ...]
    """Numbers, or days; empty for categories."""
    labels: tuple[str, ...]
    """Categories; empty for numbers."""
    mean: np.ndarray
    inner: np.ndarray
    outer: np.ndarray
    """Ends (g, 2) of the two central bands."""
    deciles: tuple[float, ...]
    """Of the rows, where the input is a number."""
    n_averaged: int
    """Rows that were averaged over."""


def rank_inputs(model: Any, columns: Sequence[str], target: int) -> list[Relevance]:
    """Columns of the table, the strongest first.

    A column that was spread over several inputs, as categories are, counts by the strongest. A
    model that knows no names knows columns by their place.
    """
    found = network_of(model).feature_relevance_
    names = names_of(model)
    strength, probability = (
        dict(zip(names, values.reshape(len(names), -1)[:, target], strict=True))
        for values in (found.strength, found.probability)
    )
    ranked = [
        Relevance(
            column=column,
            probability=float(max(probability[name] for name in inputs)),
            strength=float(max(strength[name] for name in inputs)),
            n_inputs=len(inputs),
        )
        for column, inputs in _sources(model, names, columns)
    ]
    return sorted(ranked, key=lambda one: -one.strength)


def follow_inputs(
    model: Any,
    rows: ReportRows,
    columns: dict[str, Content],
    chosen: Sequence[str],
    target: int,
    coverage: float,
) -> list[Dependence]:
    """The prediction along each of the chosen columns that has two values or more."""
    many = take(rows.table, sample(rows.n_rows, _MOST_ROWS))
    few = take(rows.table, sample(rows.n_rows, _AVERAGED))
    found = []
    for name in chosen:
        content = columns.get(name)
        if content is not None and _differs(content) and _agrees(many, name, content):
            table = few if isinstance(content, Numbers) else many
            found.append(_follow(model, table, name, content, target, coverage))
    return found


def _sources(
    model: Any, names: Sequence[str], columns: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """Columns of the table, each with the inputs of the network that it became."""
    listed = (
        [(column.name, output_names([column])) for column in model.preparer_.columns_]
        if isinstance(model, TablePipeline)
        else [(name, [name]) for name in names]
    )
    if not knows_names(model) and len(columns) == len(listed):
        listed = [(name, inputs) for name, (_, inputs) in zip(columns, listed, strict=True)]
    return [(name, inputs) for name, inputs in listed if inputs]


def _differs(content: Content) -> bool:
    if isinstance(content, Numbers):
        return np.unique(content.values[np.isfinite(content.values)]).size > 1
    return np.unique(content.codes).size > 1


def _agrees(table: Any, name: str, content: Content) -> bool:
    """Whether a picture reads a column as the model does; it knows nothing of training."""
    found = read_column(_column(table, name), name)
    return isinstance(found, Numbers) == isinstance(content, Numbers)


def _column(table: Any, name: str) -> Any:
    opened = open_table(table)
    return opened.columns[opened.names.index(name)]


def _follow(
    model: Any, table: Any, name: str, content: Content, target: int, coverage: float
) -> Dependence:
    from matplotlib.figure import Figure

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about new categories, told of before
        display = PredictiveBandDisplay.from_estimator(
            model,
            table,
            name,
            others="average",
            coverages=(inner_coverage(coverage), coverage),
            grid=_grid(content, _column(table, name)),
            target=target,
            ax=Figure().add_subplot(),
        )
    words = display.is_categorical or not isinstance(content, Numbers)
    x = display.x
    if x.dtype.kind == "M":
        x = x.astype("datetime64[us]").astype(np.int64) / DAY
    return Dependence(
        name=clean(name),
        kind=content.kind if isinstance(content, Numbers) and not words else CATEGORY,
        x=() if words else tuple(x.tolist()),
        labels=tuple(clean(label, 30) for label in x) if words else (),
        mean=display.mean,
        inner=display.intervals[:, :, 0],
        outer=display.intervals[:, :, 1],
        deciles=_deciles(content) if isinstance(content, Numbers) and not words else (),
        n_averaged=min(open_table(table).n_rows, _MOST_AVERAGED),
    )


def inner_coverage(coverage: float) -> float:
    """Coverage of the inner band: a half, or less if the outer band holds little more."""
    return INNER if coverage > 1.2 * INNER else 0.5 * coverage


def _grid(content: Content, column: Any) -> Any:
    """All values of an input if they are few, or even steps over nearly all of its range."""
    if not isinstance(content, Numbers) or _holds_truth(content, column):
        return _GRID
    finite = content.values[np.isfinite(content.values)]
    distinct = np.unique(finite)
    if distinct.size <= _FEW:
        return distinct
    low, high = np.quantile(finite, (_TAIL, 1.0 - _TAIL))
    if low == high:
        low, high = distinct[0], distinct[-1]
    return np.linspace(low, high, _GRID)


def _holds_truth(content: Numbers, column: Any) -> bool:
    """Whether a picture takes zeros and ones for truth values, which it shows by name."""
    kind = column.dtype
    is_numeric = kind.kind in "iuf" if isinstance(column, np.ndarray) else kind.is_numeric()
    present = content.values[np.isfinite(content.values)]
    return content.kind == NUMBER and not is_numeric and bool(np.isin(present, (0.0, 1.0)).all())


def _deciles(content: Numbers) -> tuple[float, ...]:
    finite = content.values[np.isfinite(content.values)]
    return tuple(np.quantile(finite, np.arange(0.1, 0.95, 0.1)).tolist())
