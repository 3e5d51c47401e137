"""The rows of a report that leave what training had, with the reason and the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.estimators.classifier import BowTieClassifier
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.plotting._scored import distribution_of
from bowtienet._old.report.sampled_rows import ReportRows
from bowtienet._old.report.training_ranges import Departure
from bowtienet._old.report.wording import clean, percent, quantity

MOST_ROWS = 20
MOST_TARGETS = 3


@dataclass(frozen=True, kw_only=True)
class OutsideRow:
    """A row with values that training did not have."""

    row: str
    reasons: tuple[str, ...]
    predictions: tuple[str, ...]
    """Of the first targets, in words."""


def outside_rows(
    model: EnsembleEstimator,
    rows: ReportRows,
    found: Sequence[Departure],
    coverage: float,
    kinds: Sequence[str],
    classes: Sequence[str],
) -> tuple[OutsideRow, ...]:
    """The furthest of them; `kinds` are those of the targets, `classes` those of a classifier."""
    shown = list(found[:MOST_ROWS])
    if not shown:
        return ()
    source = rows.source.take(np.array([one.row for one in shown]))
    words: list[tuple[str, ...]]
    if isinstance(model, BowTieClassifier):
        p = model.predict_proba(source)
        words = [(f"{classes[int(np.argmax(own))]} ({percent(float(own.max()))})",) for own in p]
    else:
        assert isinstance(model, BowTieRegressor)
        words = _intervals(model, source, coverage, kinds[:MOST_TARGETS])
    return tuple(
        OutsideRow(row=clean(rows.names[one.row], 24), reasons=one.reasons, predictions=own)
        for one, own in zip(shown, words, strict=True)
    )


def _intervals(
    model: BowTieRegressor, source: InMemory, coverage: float, kinds: Sequence[str]
) -> list[tuple[str, ...]]:
    forecasts = model.predict_dist(source)
    columns = []
    for place, kind in enumerate(kinds):
        forecast = distribution_of(forecasts, place)
        mean, ends = forecast.mean(), forecast.interval(coverage)
        columns.append(
            [
                f"{quantity(float(m), kind)} ({quantity(float(low), kind)} to "
                f"{quantity(float(high), kind)})"
                for m, (low, high) in zip(mean, ends, strict=True)
            ]
        )
    return list(zip(*columns, strict=True))
