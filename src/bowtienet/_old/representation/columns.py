"""What was learnt of each column of a table, and the columns of numbers that a network sees of it.

- Numbers stay; truth values are 0 and 1. Where one is missing stands the median of training.
- Dates and times are days since 1970-01-01 (with a time zone, in UTC), durations are days; then as
  numbers. Texts such as 2024-05-31 or 2024-05-31 12:00 are dates if all of a column are.
- Texts that are nearly all numbers with separators or units, such as 1,234.5 or 12 %, are numbers;
  the rest of them count as missing.
- Other texts, categories and mixed objects become one column "name=value" of zeros and ones for
  each value, in the order of their texts. A missing one is zero in all of them.
- A column with missing values at fit gets a second one, "name missing", of zeros and ones. Values
  that are missing only later are filled in the same way, but nothing marks them.
- Columns that say nothing are left out: those with fewer than two different values, and texts that
  all differ, such as identifiers.

Missing are None, NaN, NaT, the NA of pandas, and empty texts. Whether pandas, polars or pyarrow has
read a file, the result is the same, as long as they agree on what else is missing: the texts "NA"
or "n/a" are to pandas and are not to polars.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, like, namespace, take, to_numpy
from bowtienet._old.data.tables import Table
from bowtienet._old.representation.kinds import (
    CATEGORY,
    DATE,
    DURATION,
    KINDS,
    NUMBER,
    Numbers,
    Texts,
    is_truth_value,
    read_column,
    read_texts,
    spell,
    spellings,
    text_as_number,
)
from bowtienet._old.representation.written import formats

Floats = NDArray[np.float64]

CONSTANT = "only one value"
"""Note of a column that says nothing."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """What was learnt of one column; `describe` says it in words."""

    name: str
    kind: str
    """"number", "category", "date" or "duration"."""
    n_missing: int
    """Missing values among the rows of training."""
    typical: float | None
    """Median of the others, in days for dates and durations; None for categories."""
    has_value: bool
    """Whether its values are passed on."""
    has_indicator: bool
    """Whether a column of zeros and ones tells where values are missing."""
    categories: tuple[str, ...]
    """In the order of their texts; none unless the kind is "category"."""
    number_format: str | None = None
    """How numbers are written, such as "1.234,5 €", in a column of texts that were read as such."""
    note: str | None = None
    """Why it was left out or read as something else, if it was."""


def describe(column: Column) -> str:
    """What becomes of a column, in words.

    Examples
    --------
    >>> age = Column(
    ...     name="age",
    ...     kind="number",
    ...     n_missing=12,
    ...     typical=3.5,
    ...     has_value=True,
    ...     has_indicator=True,
    ...     categories=(),
    ... )
    >>> describe(age)
    'number; 12 missing: median 3.5 and an indicator'
    """
    note = "" if column.note is None else f" ({column.note})"
    if not column.has_value and not column.has_indicator:
        return f"left out{note}"
    what = {
        NUMBER: "number",
        DATE: "date, as days since 1970",
        DURATION: "duration, in days",
        CATEGORY: f"{len(column.categories):,} categories, one-hot",
    }[column.kind]
    if not column.has_value:
        what = "values left out"
    if not column.has_indicator:
        return what + note
    filled = column.has_value and column.kind != CATEGORY
    median = f"median {_typical_text(column)} and " if filled else ""
    return f"{what}{note}; {column.n_missing:,} missing: {median}an indicator"


def encoded_names(columns: Sequence[Column]) -> list[str]:
    """Names of the encoded columns."""
    return [name for column in columns for name in encoded_names_of(column)]


def encoded_names_of(column: Column) -> list[str]:
    """Names of the encoded columns of one column: its values, then its indicator."""
    names: list[str] = []
    if column.has_value and column.kind == CATEGORY:
        names += [f"{column.name}={category}" for category in column.categories]
    elif column.has_value:
        names.append(column.name)
    return [*names, f"{column.name} missing"] if column.has_indicator else names


def owners(columns: Sequence[Column]) -> NDArray[np.intp]:
    """The user's column of every encoded one."""
    sizes = [len(encoded_names_of(column)) for column in columns]
    return np.repeat(np.arange(len(columns), dtype=np.intp), sizes)


def encode(columns: Sequence[Column], table: Table) -> tuple[Array, list[str]]:
    """Finite floats (n, encoded), and what is to be warned of: texts that training did not have.

    A matrix of numbers stays in its library and precision, and is passed on as it is if nothing in
    it has to change; other tables become NumPy arrays of float64.
    """
    if table.matrix is not None and all(column.kind == NUMBER for column in columns):
        return _encode_matrix(columns, table.matrix), []
    given = table.columns if table.matrix is None else tuple(to_numpy(table.matrix).T)
    # Column by column in memory, as they are written.
    encoded = np.zeros((table.n_rows, len(owners(columns))), order="F")
    surprises: list[str] = []
    end = 0
    for column, values in zip(columns, given or (), strict=True):
        begin, end = end, end + len(encoded_names_of(column))
        if begin < end:
            surprises += _fill(encoded[:, begin:end], column, values)
    return encoded, surprises


def _encode_matrix(columns: Sequence[Column], matrix: Array) -> Array:
    """All columns at once: medians for NaN, indicators beside, and no others."""
    xp = namespace(matrix)
    missing = xp.isnan(matrix)
    any_missing = bool(xp.any(missing))
    values = np.array([column.has_value for column in columns])
    indicators = np.array([column.has_indicator for column in columns])
    if values.all() and not indicators.any() and not any_missing:
        return matrix
    if any_missing:
        typical = like(matrix, np.array([column.typical or 0.0 for column in columns]))
        matrix = xp.where(missing, xp.zeros_like(matrix) + typical, matrix)
    if not indicators.any():
        return take(matrix, np.flatnonzero(values), axis=1)
    both = xp.concat([matrix, xp.astype(missing, matrix.dtype)], axis=1)
    # The places of each column's values and indicator in `both`, one after the other.
    places = np.arange(2 * len(columns)).reshape(2, -1).T
    return take(both, places[np.stack([values, indicators], axis=1)], axis=1)


def _fill(encoded: Floats, column: Column, given: Any) -> list[str]:
    """Write what becomes of one column into zeros (n, k); return what there is to warn of."""
    found, surprises = read_learnt(column, given)
    if isinstance(found, Texts):
        missing = found.codes < 0
        surprises = _fill_one_hot(encoded, column, found) if column.has_value else []
    else:
        values = found.values
        missing = np.isnan(values)
        if column.has_value:
            encoded[:, 0] = np.where(missing, np.float64(column.typical or 0.0), values)
    if column.has_indicator:
        encoded[:, -1] = missing
    return surprises


def read_learnt(column: Column, given: Any) -> tuple[Numbers | Texts, list[str]]:
    """Values of a column that must hold what it held in training, and what there is to warn of.

    Nothing but missing values is fine.
    """
    if column.kind == CATEGORY:
        return read_texts(given, column.categories), []
    found = read_column(given, column.name)
    if isinstance(found, Texts):
        values, surprises = _read_as_numbers(column, found)
        return Numbers(kind=column.kind, values=values), surprises
    if found.kind != column.kind and not np.isnan(found.values).all():
        raise ValueError(
            f"column {column.name!r} held {KINDS[column.kind]} in training and now holds "
            f"{KINDS[found.kind]}: convert it to what it was."
        )
    return found, []


def _read_as_numbers(column: Column, texts: Texts) -> tuple[Floats, list[str]]:
    read = [text_as_number(text, column.kind, column.number_format) for text in texts.distinct]
    values = np.array([np.nan if value is None else value for value in [*read, None]])[texts.codes]
    strange = [text for text, value in zip(texts.distinct, read, strict=True) if value is None]
    if strange and column.number_format is None:
        raise ValueError(
            f"column {column.name!r} held {KINDS[column.kind]} in training and now holds text, "
            f"such as {examples(strange)}: convert it, or mark what is none as missing."
        )
    if not strange:
        return values, []
    n_strange = int((np.isnan(values) & (texts.codes >= 0)).sum())
    what = "text in place of a number, which counts as missing"
    return values, [_surprise(column, n_strange, what, strange)]


def _fill_one_hot(encoded: Floats, column: Column, texts: Texts) -> list[str]:
    known = {category: place for place, category in enumerate(column.categories)}
    for text in filter(is_truth_value, texts.distinct):
        known.setdefault(text, known.get(spell(text, spellings(column.categories)), -1))
    places = np.array([*(known.get(text, -1) for text in texts.distinct), -1])[texts.codes]
    rows = np.flatnonzero(places >= 0)
    encoded[rows, places[rows]] = 1.0
    n_new = int(((places < 0) & (texts.codes >= 0)).sum())
    new = set(texts.distinct) - set(known)
    what = "a category that training did not have"
    return [_surprise(column, n_new, what, new)] if n_new else []


def _surprise(column: Column, n_rows: int, what: str, texts: Iterable[str]) -> str:
    count = f"{n_rows:,} value{'s' if n_rows > 1 else ''}"
    return f"{count} of column {column.name!r}: {what}, such as {examples(texts)}"


def examples(texts: Iterable[str]) -> str:
    """The first three texts, quoted."""
    return ", ".join(repr(text) for text in sorted(texts)[:3])


def _typical_text(column: Column) -> str:
    assert column.typical is not None
    if column.kind == DATE:
        return str(np.datetime64(math.floor(column.typical), "D"))
    return f"{column.typical:.6g}" + (" days" if column.kind == DURATION else "")


def check_columns(columns: Sequence[Column]) -> None:
    """Raise a ValueError if columns of a file, whose types are right, cannot be what was learnt."""
    if not columns:
        raise ValueError("there are no columns")
    for column in columns:
        unfilled = column.has_value and column.kind != CATEGORY and column.typical is None
        is_known = column.number_format is None or column.number_format in formats()
        if column.kind not in KINDS or unfilled or not is_known:
            raise ValueError(f"the column {column.name!r} is not readable")
    check_names(columns)


def check_names(columns: Sequence[Column]) -> None:
    """No two encoded columns have the same name."""
    sources: dict[str, str] = {}
    for column in columns:
        for name in encoded_names_of(column):
            if name in sources:
                raise ValueError(
                    f"columns {sources[name]!r} and {column.name!r} would both become {name!r}: "
                    "rename one of them."
                )
            sources[name] = column.name
