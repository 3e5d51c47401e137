"""The columns of a report: what they hold in these rows, and what the model learnt of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old.plotting._along import labels_of
from bowtienet._old.report.wording import NOTHING, clean, kind_of, quantity
from bowtienet._old.representation.kinds import CATEGORY, Numbers, Texts

_MOST_CATEGORIES = 5


@dataclass(frozen=True, kw_only=True)
class ColumnSummary:
    """One column in numbers."""

    name: str
    learnt: str
    """What the model learnt of it, in words; "target" for targets."""
    kind: str
    """"number", "year", "date", "duration" or "category"."""
    n_missing: int
    range: tuple[float, float, float] | None = None
    """Smallest, median and largest of the values that are there; None if there are none."""
    n_categories: int = 0
    categories: tuple[tuple[str, int], ...] = ()
    """The most frequent ones, and their rows; none unless the kind is "category"."""


def summarize(name: str, content: Numbers | Texts, learnt: str) -> ColumnSummary:
    """What a column holds."""
    about: dict[str, Any] = {"name": clean(name), "learnt": clean(learnt, 120)}
    if isinstance(content, Texts):
        counts = Counter(label for label in labels_of(content) if label is not None)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return ColumnSummary(
            **about,
            kind=CATEGORY,
            n_missing=int(np.sum(content.codes < 0)),
            n_categories=len(counts),
            categories=tuple((clean(text, 30), n) for text, n in ordered[:_MOST_CATEGORIES]),
        )
    finite = content.values[np.isfinite(content.values)]
    low, median, high = np.quantile(finite, (0.0, 0.5, 1.0)) if finite.size else (0.0,) * 3
    return ColumnSummary(
        **about,
        kind=kind_of(content),
        n_missing=content.values.size - finite.size,
        range=(float(low), float(median), float(high)) if finite.size else None,
    )


def value_text(content: Numbers | Texts, row: int) -> str:
    """A value of a column in words."""
    if isinstance(content, Texts):
        label = labels_of(content)[row]
        return NOTHING if label is None else clean(label, 40)
    return quantity(float(content.values[row]), kind_of(content))


def differs(content: Numbers | Texts) -> bool:
    """Whether a column holds two different values."""
    if isinstance(content, Texts):
        return np.unique(content.codes).size > 1
    return np.unique(content.values[np.isfinite(content.values)]).size > 1
