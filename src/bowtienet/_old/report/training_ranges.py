"""Rows that differ from all rows of training in some feature, and in which one.

A model of the whole table keeps the range of each column; where it has none, the training rows
themselves tell, if they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.plotting._along import labels_of, read_content
from bowtienet._old.report.sampled_rows import ReportRows
from bowtienet._old.report.wording import clean, kind_of, quantity
from bowtienet._old.representation.columns import Column, owners
from bowtienet._old.representation.kinds import CATEGORY, Numbers, Texts
from bowtienet._old.representation.scaling import restore_mean

FAR = 0.1
"""Distance beyond which a row is far outside."""
_ROUNDING = 1e-9
"""Of a range: ends that were standardised and back are not the last digit."""


@dataclass(frozen=True, kw_only=True)
class TrainingRanges:
    """What training had of each column."""

    columns: tuple[Column, ...]
    low: np.ndarray
    """Smallest numbers (columns,); NaN where a column holds none."""
    high: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Departure:
    """How one row leaves what training had."""

    row: int
    reasons: tuple[str, ...]
    """Such as "rooms = 14, training maximum 9"."""
    distance: float
    """How far it is outside, in ranges of columns; 1 for what has no distance."""


def training_ranges(model: EnsembleEstimator, train: ReportRows | None) -> TrainingRanges | None:
    """Ranges of the columns of numbers; None where nobody knows them."""
    columns = tuple(model.columns_)
    if model.ensemble_.outside is not None:
        low, high = _kept_ranges(model)
    elif train is not None and train.n_rows == train.n_given:
        low, high = _ranges_of_rows(columns, train)
    else:
        return None
    return TrainingRanges(columns=columns, low=low, high=high)


def departures(
    ranges: TrainingRanges, contents: dict[str, Numbers | Texts], n_rows: int
) -> tuple[Departure, ...]:
    """Rows with a value that training did not have, the furthest first."""
    reasons: list[list[str]] = [[] for _ in range(n_rows)]
    distance = np.zeros(n_rows)
    for place, (name, content) in enumerate(contents.items()):
        column = ranges.columns[place]
        if not column.has_value:
            continue
        if isinstance(content, Texts):
            found = _new_texts(column, content, clean(name, 40))
        else:
            ends = (float(ranges.low[place]), float(ranges.high[place]))
            found = _beyond(content, ends, clean(name, 40))
        if column.n_missing == 0:
            found += _missing(content, clean(name, 40))
        for row, words, far in found:
            reasons[row].append(words)
            distance[row] = max(distance[row], far)
    order = np.argsort(-distance, kind="stable")[: int(np.sum(distance > 0.0))]
    return tuple(
        Departure(row=int(row), reasons=tuple(reasons[row]), distance=float(distance[row]))
        for row in order
    )


def range_words(name: str, value: float, ends: tuple[float, float], kind: str) -> str:
    """Why a value lies outside."""
    side, end = ("minimum", ends[0]) if value < ends[0] else ("maximum", ends[1])
    return f"{name} = {quantity(value, kind)}, training {side} {quantity(end, kind)}"


def _kept_ranges(model: EnsembleEstimator) -> tuple[np.ndarray, np.ndarray]:
    """Ranges in the user's unit that the ensemble keeps of standardised columns."""
    ensemble, columns = model.ensemble_, model.columns_
    representation, outside = ensemble.representation, ensemble.outside
    assert outside is not None
    ends = np.empty((2, len(representation.column_order)))
    ends[:, representation.column_order] = np.stack([outside.low, outside.high])
    restored = to_numpy(restore_mean(representation.feature_scaling, ends))
    places, found = owners(columns), np.full((2, len(columns)), np.nan)
    for place, column in enumerate(columns):
        if column.has_value and column.kind != CATEGORY:
            found[:, place] = restored[:, np.flatnonzero(places == place)[0]]
    return found[0], found[1]


def _ranges_of_rows(columns: Sequence[Column], train: ReportRows) -> tuple[np.ndarray, np.ndarray]:
    found = np.full((2, len(columns)), np.nan)
    for place, column in enumerate(columns):
        content = read_content(column, train.source, place)
        if isinstance(content, Numbers) and np.isfinite(content.values).any():
            found[:, place] = np.nanmin(content.values), np.nanmax(content.values)
    return found[0], found[1]


def _beyond(content: Numbers, ends: tuple[float, float], name: str) -> list[tuple[int, str, float]]:
    low, high = ends
    slack = _ROUNDING * max(high - low, abs(low), abs(high))
    with np.errstate(invalid="ignore"):
        far = np.maximum(low - content.values, content.values - high)
        rows = np.flatnonzero(far > slack)
    if not rows.size:
        return []
    unit, kind = (high - low) or max(abs(high), 1.0), kind_of(content)
    return [
        (int(row), range_words(name, float(content.values[row]), ends, kind), far[row] / unit)
        for row in rows
    ]


def _new_texts(column: Column, content: Texts, name: str) -> list[tuple[int, str, float]]:
    known, labels = set(column.categories), labels_of(content)
    return [
        (row, f"{name} = {clean(label, 30)}, not in training", 1.0)
        for row, label in enumerate(labels)
        if label is not None and label not in known
    ]


def _missing(content: Numbers | Texts, name: str) -> list[tuple[int, str, float]]:
    absent = content.codes < 0 if isinstance(content, Texts) else ~np.isfinite(content.values)
    return [
        (int(row), f"{name} is missing, in training never", 1.0) for row in np.flatnonzero(absent)
    ]
