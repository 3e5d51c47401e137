"""Columns that tell rows apart: whole numbers that count up, and texts that nearly all differ."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from bowtienet._old.data.parsing import parse
from bowtienet._old.representation.learning import FEWEST_IDENTIFIERS
from bowtienet._old.representation.written import find_format, reads_as_number

_WORDS = r"id|ids|uid|uuid|guid|key|index|idx|pk|row|rownum|no|nr|num|number|nummer"
_NAME = re.compile(rf"(?:.*[\W_])?(?:{_WORDS})[\W_]*|unnamed: ?\d+|rowid|recordid", re.IGNORECASE)
_CAMEL = re.compile(r".*[a-z0-9](?:Id|ID|Key|Nr|No)")
_NEARLY_ALL = 0.9
"""Different texts, for each that there is, from which they tell rows apart."""
_DENSE = 1.5
"""Numbers in the range of those that count up, for each that there is."""


def why_identifier(table: Any, name: str, max_categories: int) -> str:
    """Why a column tells rows apart and nothing else; "" if it does not."""
    if str(table.column(name).type) in ("string", "large_string"):
        return _why_texts(table.column(name), max_categories)
    if not named_like_identifier(name):
        return ""
    found = parse(table.select([name]), "X").array
    if found is None or not counts_up(np.asarray(found[:, 0], dtype=np.float64)):
        return ""
    return "whole numbers that count up"


def _why_texts(column: Any, max_categories: int) -> str:
    """Texts that all differ, or nearly all where they are too many for categories; no numbers."""
    texts = Counter(column.drop_null().to_pylist())
    n_values, n_texts = texts.total(), len(texts)
    many = n_texts > max(max_categories, _NEARLY_ALL * n_values)
    if not many and not n_texts == n_values >= FEWEST_IDENTIFIERS:
        return ""
    if find_format(texts) or 2 * sum(map(reads_as_number, texts)) >= n_texts:
        return ""
    if n_texts == n_values:
        return f"{n_texts:,} texts, all different"
    return f"{n_texts:,} different texts in {n_values:,} rows"


def named_like_identifier(name: str) -> bool:
    """Whether a name ends like that of an identifier.

    Examples
    --------
    >>> [
    ...     n
    ...     for n in ("id", "row_id", "PassengerId", "Customer No.", "paid", "width")
    ...     if named_like_identifier(n)
    ... ]
    ['id', 'row_id', 'PassengerId', 'Customer No.']
    """
    return _NAME.fullmatch(name) is not None or _CAMEL.fullmatch(name) is not None


def counts_up(values: np.ndarray) -> bool:
    """Whether whole numbers (n,) all differ, and rise or fill their range.

    Examples
    --------
    >>> counts_up(np.arange(20.0)), counts_up(np.arange(20.0)[::-1]), counts_up(np.ones(20))
    (True, True, False)
    """
    if len(values) < FEWEST_IDENTIFIERS or not np.all(np.isfinite(values)):
        return False
    if not np.all(values == np.rint(values)) or len(np.unique(values)) < len(values):
        return False
    dense = np.ptp(values) + 1.0 <= _DENSE * len(values)
    return bool(dense or np.all(np.diff(values) > 0.0))
