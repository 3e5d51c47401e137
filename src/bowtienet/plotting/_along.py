"""What a model predicts along one input of a table, with the others held or averaged over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet._validation import whole
from bowtienet.estimators.columns import (
    DATE,
    DURATION,
    NUMBER,
    Numbers,
    Table,
    Texts,
    read_column,
)
from bowtienet.estimators.tables import read_targets
from bowtienet.plotting._checks import chosen, distribution_of, read_vector
from bowtienet.plotting._tables import (
    as_moments,
    assemble,
    categories_of,
    labels_of,
    like_column,
    typical_rows,
)
from bowtienet.plotting.fitted import predictive
from bowtienet.prediction.mixture import GaussianMixture

_MOST_ROWS = 200
"""Rows that are averaged over."""
_MOST_CATEGORIES = 20
_SEED = 0
"""Of the rows: the same picture every time."""

Contents = Sequence[Numbers | Texts]


@dataclass(frozen=True, kw_only=True)
class Points:
    """Values of one input to ask a model about."""

    x: np.ndarray
    """As they are drawn: numbers, datetime64, or texts."""
    asked: np.ndarray
    """The numbers, dates as days; for texts a row of the table with each."""


def points_along(table: Table, contents: Contents, index: int, grid: Any) -> Points:
    """So many values from the smallest to the largest, or those that are given."""
    column, content, name = table.columns[index], contents[index], table.names[index]
    if isinstance(content, Texts):
        return _categories(column, content, grid, name)
    is_given = np.ndim(grid) > 0
    values = _given(content, grid, name) if is_given else _even(content, grid, name)
    if content.kind != NUMBER:
        # What is drawn is what the model is asked about: some columns hold whole days only.
        values = _values(like_column(column, content, values), name)
        values = values if is_given else np.unique(values)
    return Points(x=_drawn(values, content.kind), asked=values)


def forecast_along(
    model: Any,
    table: Table,
    contents: Contents,
    index: int,
    points: Points,
    target: int,
    *,
    average: bool,
) -> GaussianMixture:
    """Predictive distribution (g,) at every point, mixed over rows of the table if wanted.

    The mixture over rows of mixtures over members has K·m components, w_k / m N(m_kr, d_kr²).
    """
    base = _sample(table) if average else typical_rows(contents)[None, :]
    repeats, content = len(base), contents[index]
    picks = [np.repeat(column, points.x.size) for column in base.T]
    asked, fresh = np.tile(points.asked, repeats), {}
    if isinstance(content, Texts):
        picks[index] = asked
    else:
        fresh[index] = like_column(table.columns[index], content, asked)
    found = distribution_of(predictive(model, assemble(table, picks, fresh)), target)
    return GaussianMixture(
        weights=np.repeat(found.weights / repeats, repeats),
        means=found.means.reshape(-1, points.x.size),
        deviations=found.deviations.reshape(-1, points.x.size),
    )


def data_along(content: Numbers | Texts, y: Any, target: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of the input and of one target, without rows whose number is missing."""
    n_rows = len(content.codes if isinstance(content, Texts) else content.values)
    targets = to_numpy(read_targets(y, n_rows)).astype(float).reshape(n_rows, -1)
    chosen_target = targets[:, chosen(target, targets.shape[1], "target")]
    if isinstance(content, Texts):
        return labels_of(content), chosen_target
    present = np.isfinite(content.values)
    return _drawn(content.values[present], content.kind), chosen_target[present]


def words_along(table: Table, contents: Contents, index: int, *, average: bool) -> str:
    """Name of the input, and what is done with the others."""
    content = contents[index]
    is_duration = isinstance(content, Numbers) and content.kind == DURATION
    name = table.names[index] + (" in days" if is_duration else "")
    if len(contents) == 1:
        return name
    if average:
        return f"{name} (averaged over {min(table.n_rows, _MOST_ROWS)} rows)"
    numeric = all(isinstance(content, Numbers) for content in contents)
    return f"{name} (others at their {'medians' if numeric else 'typical values'})"


def _categories(column: Any, content: Texts, grid: Any, name: str) -> Points:
    labels = labels_of(content).tolist()
    shown = (
        [str(label) for label in grid]
        if np.ndim(grid) > 0
        else categories_of(column, content, _MOST_CATEGORIES)
    )
    unknown = [label for label in shown if label not in labels]
    if unknown:
        raise ValueError(
            f"grid holds {unknown[0]!r}, which column {name!r} does not: give values that the "
            "column has."
        )
    rows = np.array([labels.index(label) for label in shown])
    return Points(x=np.array(shown, dtype=object), asked=rows)


def _given(content: Numbers, grid: Any, name: str) -> np.ndarray:
    """Values that are given: of dates and durations also as days."""
    if content.kind == NUMBER:
        return read_vector(grid, "grid", each="point")
    found = read_column(np.asarray(grid), "grid")
    if not isinstance(found, Numbers) or found.kind not in (content.kind, NUMBER):
        raise ValueError(f"grid must hold {content.kind}s or days, as column {name!r} does.")
    return read_vector(found.values, "grid", each="point")


def _even(content: Numbers, grid: Any, name: str) -> np.ndarray:
    values = content.values[np.isfinite(content.values)]
    if values.size == 0 or np.min(values) == np.max(values):
        raise ValueError(
            f"column {name!r} has not two different values to draw a line between: give grid as "
            "an array of values."
        )
    if whole(grid, "grid") == 1:
        raise ValueError("grid must be at least 2, or an array of values, got 1.")
    return np.linspace(np.min(values), np.max(values), grid)


def _values(column: Any, name: str) -> np.ndarray:
    found = read_column(column, name)
    assert isinstance(found, Numbers)
    return found.values


def _drawn(values: np.ndarray, kind: str) -> np.ndarray:
    return as_moments(values, kind) if kind == DATE else values


def _sample(table: Table) -> np.ndarray:
    """Rows to average over, the same of every column."""
    every = np.arange(table.n_rows)
    if table.n_rows > _MOST_ROWS:
        rng = np.random.default_rng(_SEED)
        every = np.sort(rng.choice(table.n_rows, size=_MOST_ROWS, replace=False))
    return np.tile(every[:, None], len(table.names))
