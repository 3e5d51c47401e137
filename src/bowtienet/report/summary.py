"""What the columns of a table hold: kinds, gaps, ranges and small histograms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet.estimators.columns import (
    CATEGORY,
    NUMBER,
    Numbers,
    Texts,
    open_table,
    read_column,
    read_texts,
)
from bowtienet.estimators.table_pipeline import TablePipeline
from bowtienet.report.rows import knows_names
from bowtienet.report.wording import clean

BINS = 12
_MOST_CATEGORIES = 5
Content = Numbers | Texts


@dataclass(frozen=True, kw_only=True)
class ColumnSummary:
    """One column in numbers."""

    name: str
    role: str
    """"target" or "input"."""
    kind: str
    """"number", "date", "duration" or "category"."""
    n_rows: int
    n_missing: int
    n_categories: int
    """0 unless the kind is "category"."""
    low: float | None
    median: float | None
    high: float | None
    """Of the values that are there, infinite ones aside; None for categories and for no values."""
    counts: tuple[int, ...]
    """Rows in equal bins from low to high, or of the most frequent categories."""
    categories: tuple[str, ...]
    """Those of `counts`, the most frequent first; none unless the kind is "category"."""


def read_columns(model: Any, table: Any) -> dict[str, Content]:
    """What every column holds, read as the model reads it."""
    opened = open_table(table)
    columns = model.preparer_.columns_ if isinstance(model, TablePipeline) else ()
    by_place = not knows_names(model) and len(columns) == len(opened.names)
    names = opened.names if by_place else [column.name for column in columns]
    known = dict(zip(names, columns, strict=True))
    found: dict[str, Content] = {}
    for name, column in zip(opened.names, opened.columns, strict=True):
        learnt = known.get(name)
        if learnt is not None and learnt.kind == CATEGORY:
            found[name] = read_texts(column, name, learnt.categories)
        else:
            found[name] = read_column(column, name)
    return found


def summarize_inputs(parts: Sequence[dict[str, Content]]) -> list[ColumnSummary]:
    """Columns of tables that hold different rows, all rows together."""
    found = []
    for name in parts[0]:
        contents = [part[name] for part in parts if name in part]
        same = [content for content in contents if type(content) is type(contents[0])]
        found.append(summarize(name, "input", same))
    return found


def summarize_targets(names: Sequence[str], targets: np.ndarray) -> list[ColumnSummary]:
    """The same for targets (n, outputs)."""
    return [
        summarize(name, "target", [Numbers(kind=NUMBER, values=values)])
        for name, values in zip(names, targets.T, strict=True)
    ]


def summarize(name: str, role: str, parts: Sequence[Content]) -> ColumnSummary:
    """One column that comes in parts, all of numbers or all of texts."""
    if isinstance(parts[0], Texts):
        return _categories(name, role, [part for part in parts if isinstance(part, Texts)])
    numbers = [part for part in parts if isinstance(part, Numbers)]
    values = np.concatenate([part.values for part in numbers])
    finite = values[np.isfinite(values)]
    low, median, high = _range(finite)
    counts = () if low is None else tuple(np.histogram(finite, BINS)[0].tolist())
    return ColumnSummary(
        name=clean(name),
        role=role,
        kind=numbers[0].kind,
        n_rows=values.size,
        n_missing=int(np.isnan(values).sum()),
        n_categories=0,
        low=low,
        median=median,
        high=high,
        counts=counts,
        categories=(),
    )


def _range(finite: np.ndarray) -> tuple[float | None, float | None, float | None]:
    if finite.size == 0:
        return None, None, None
    return float(np.min(finite)), float(np.median(finite)), float(np.max(finite))


def _categories(name: str, role: str, parts: Sequence[Texts]) -> ColumnSummary:
    found: Counter[str] = Counter()
    for part in parts:
        counts = np.bincount(part.codes[part.codes >= 0], minlength=len(part.distinct))
        found.update(dict(zip(part.distinct, counts.tolist(), strict=True)))
    ordered = sorted(((k, text) for text, k in found.items() if k), key=lambda e: (-e[0], e[1]))
    shown = ordered[:_MOST_CATEGORIES]
    return ColumnSummary(
        name=clean(name),
        role=role,
        kind=CATEGORY,
        n_rows=sum(len(part.codes) for part in parts),
        n_missing=sum(int((part.codes < 0).sum()) for part in parts),
        n_categories=len(ordered),
        low=None,
        median=None,
        high=None,
        counts=tuple(k for k, _ in shown),
        categories=tuple(clean(text, 30) for _, text in shown),
    )
