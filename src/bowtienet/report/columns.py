"""The columns of a report: what they hold in these rows, and what the model learnt of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bowtienet.plotting._reading import TableColumns
from bowtienet.report.wording import NOTHING, clean, quantity
from bowtienet.representation.columns import Column, describe
from bowtienet.representation.kinds import CATEGORY, NUMBER, Numbers, Texts

_MOST_CATEGORIES = 5


@dataclass(frozen=True, kw_only=True)
class ColumnSummary:
    """One column in numbers."""

    name: str
    role: str
    """"target" or "feature"."""
    kind: str
    """"number", "date", "duration" or "category"."""
    n_missing: int
    low: float | None = None
    median: float | None = None
    high: float | None = None
    """Of the values that are there; None for categories and for no values."""
    n_categories: int = 0
    categories: tuple[tuple[str, int], ...] = ()
    """The most frequent ones, and their rows; none unless the kind is "category"."""
    learnt: str = ""
    """What the model learnt of it, in words; empty for targets."""


def summarize_features(table: TableColumns, learnt: Sequence[Column]) -> list[ColumnSummary]:
    """Every column of a table, with what the model learnt of it."""
    words = {column.name: describe(column) for column in learnt}
    return [
        _summarize(name, "feature", content, words.get(name, ""))
        for name, content in zip(table.names, table.contents, strict=True)
    ]


def summarize_targets(names: Sequence[str], targets: np.ndarray) -> list[ColumnSummary]:
    """The same for targets (n, outputs)."""
    return [
        _summarize(name, "target", Numbers(kind=NUMBER, values=values))
        for name, values in zip(names, targets.T, strict=True)
    ]


def value_text(content: Numbers | Texts, row: int) -> str:
    """A value of a column in words."""
    if isinstance(content, Texts):
        code = content.codes[row]
        return NOTHING if code < 0 else clean(content.distinct[code], 40)
    return quantity(float(content.values[row]), content.kind)


def differs(content: Numbers | Texts) -> bool:
    """Whether a column holds two different values."""
    if isinstance(content, Texts):
        return np.unique(content.codes).size > 1
    return np.unique(content.values[np.isfinite(content.values)]).size > 1


def _summarize(name: str, role: str, content: Numbers | Texts, learnt: str = "") -> ColumnSummary:
    if isinstance(content, Texts):
        counts = np.bincount(content.codes[content.codes >= 0], minlength=len(content.distinct))
        ordered = sorted(zip((-counts).tolist(), content.distinct, strict=True))
        shown = [(clean(text, 30), -count) for count, text in ordered[:_MOST_CATEGORIES] if count]
        return ColumnSummary(
            name=clean(name),
            role=role,
            kind=CATEGORY,
            n_missing=int(np.sum(content.codes < 0)),
            n_categories=int(np.count_nonzero(counts)),
            categories=tuple(shown),
            learnt=clean(learnt, 120),
        )
    finite = content.values[np.isfinite(content.values)]
    low, median, high = (
        (float(np.min(finite)), float(np.median(finite)), float(np.max(finite)))
        if finite.size
        else (None, None, None)
    )
    return ColumnSummary(
        name=clean(name),
        role=role,
        kind=content.kind,
        n_missing=int(np.isnan(content.values).sum()),
        low=low,
        median=median,
        high=high,
        learnt=clean(learnt, 120),
    )
