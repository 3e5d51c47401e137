"""What a model predicts along one feature, with the others held or averaged over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._validation import whole
from bowtienet.plotting._reading import (
    TableColumns,
    as_moments,
    assemble,
    frequent_labels,
    labels_of,
    typical_row,
)
from bowtienet.plotting._scored import distribution_of
from bowtienet.plotting.fitted import predictive
from bowtienet.prediction.mixture import GaussianMixture
from bowtienet.representation.kinds import (
    DATE,
    DURATION,
    NUMBER,
    Numbers,
    Texts,
    read_column,
    text_as_number,
)

MOST_AVERAGED = 200
"""Rows that are averaged over."""
_MOST_CATEGORIES = 20
_SEED = 0
"""Of the rows: the same plot every time."""


@dataclass(frozen=True, kw_only=True)
class Points:
    """Values of one feature to ask a model about."""

    x: np.ndarray
    """As they are drawn: numbers (durations in days), datetime64, or texts."""
    asked: np.ndarray
    """As the model is asked; for texts a row of the table with each."""


def points_along(table: TableColumns, index: int, grid: Any) -> Points:
    """Even steps from the smallest value to the largest, or the values that are given."""
    content, name = table.contents[index], table.names[index]
    if isinstance(content, Texts):
        return _categories(content, grid, name)
    values = _given(content, grid, name) if np.ndim(grid) > 0 else _even(content, grid, name)
    asked = as_moments(values, content.kind)
    return Points(x=asked if content.kind == DATE else values, asked=asked)


def forecast_along(
    model: Any, table: TableColumns, index: int, points: Points, target: int, *, average: bool
) -> GaussianMixture:
    """Predictive distribution (g,) at every point, mixed over rows of the table if wanted.

    The mixture over rows of mixtures over members has K·m components, w_k / m N(m_kr, d_kr²).
    """
    rows = _sample(table.n_rows)
    base = [rows if average else np.array([typical_row(content)]) for content in table.contents]
    repeats = rows.size if average else 1
    picks = [np.repeat(column, points.x.size) for column in base]
    asked, fresh = np.tile(points.asked, repeats), {}
    if isinstance(table.contents[index], Texts):
        picks[index] = asked
    else:
        fresh[index] = asked
    found = distribution_of(predictive(model, assemble(table, picks, fresh)), target)
    return GaussianMixture(
        weights=np.repeat(found.weights / repeats, repeats),
        means=found.means.reshape(-1, points.x.size),
        deviations=found.deviations.reshape(-1, points.x.size),
    )


def data_along(content: Numbers | Texts, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of the feature and of one target (n,), without rows whose number is missing."""
    if isinstance(content, Texts):
        return labels_of(content), targets
    present = np.isfinite(content.values)
    values = content.values[present]
    return as_moments(values, DATE) if content.kind == DATE else values, targets[present]


def words_along(table: TableColumns, index: int, *, average: bool) -> str:
    """Name of the feature, and what is done with the others."""
    content = table.contents[index]
    is_duration = isinstance(content, Numbers) and content.kind == DURATION
    name = table.names[index] + (" in days" if is_duration else "")
    if len(table.names) == 1:
        return name
    if average:
        return f"{name} (averaged over {min(table.n_rows, MOST_AVERAGED)} rows)"
    numeric = all(isinstance(content, Numbers) for content in table.contents)
    return f"{name} (others at their {'medians' if numeric else 'typical values'})"


def _categories(content: Texts, grid: Any, name: str) -> Points:
    labels = labels_of(content).tolist()
    shown = frequent_labels(content, _MOST_CATEGORIES)
    if np.ndim(grid) > 0:
        shown = [str(label) for label in grid]
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
        return np.asarray(grid, dtype=float)
    found = read_column(np.asarray(grid), "grid")
    if isinstance(found, Texts):
        read = [text_as_number(text, content.kind, None) for text in labels_of(found)]
        found = Numbers(kind=content.kind, values=np.array(read, dtype=float))
    if found.kind not in (content.kind, NUMBER):
        raise ValueError(f"grid must hold {content.kind}s or days, as column {name!r} does.")
    return found.values


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


def _sample(n_rows: int) -> np.ndarray:
    if n_rows <= MOST_AVERAGED:
        return np.arange(n_rows)
    rng = np.random.default_rng(_SEED)
    return np.sort(rng.choice(n_rows, size=MOST_AVERAGED, replace=False))
