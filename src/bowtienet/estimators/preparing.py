"""`TablePreparer`: text, dates and missing values in, a table of finite numbers out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from bowtienet._validation import listed_with_hints
from bowtienet.estimators.columns import (
    CATEGORY,
    DATE,
    DURATION,
    NUMBER,
    Numbers,
    Table,
    Texts,
    like_input,
    open_table,
    read_column,
    read_texts,
    reads_as_number,
)

KINDS = {NUMBER: "numbers", DATE: "dates", DURATION: "durations", CATEGORY: "categories"}
"""What columns hold, by their kind."""
_FEW = 10
"""Texts up to which numbers among them may well be names of categories."""
_SIGNS = str.maketrans("", "", ",%$€£' ")


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
    """Whether it holds two different values or more, and so is passed on."""
    has_indicator: bool
    """Whether a column of zeros and ones tells where values are missing."""
    categories: tuple[str, ...]
    """In the order of their texts; none unless the kind is "category"."""


class TablePreparer(TransformerMixin, BaseEstimator):
    """Turn a table with texts, dates and missing values into one of numbers.

    - Numbers stay; truth values are 0 and 1. Where one is missing stands the median of training.
    - Dates and times are days since 1970-01-01 (with a time zone, in UTC), durations are days;
      then as numbers. Texts such as 2024-05-31 or 2024-05-31 12:00 are dates if all of a column
      are.
    - Texts, categories and mixed objects become one column "name=value" of zeros and ones for each
      value, in the order of their texts. A missing one is zero in all of them.
    - A column with missing values at fit gets a second one, "name missing", of zeros and ones.
      Values that are missing only later are filled in the same way, but nothing marks them.
    - A column with fewer than two different values says nothing and is left out.

    Missing are None, NaN, NaT, the NA of pandas, and empty texts. Infinite numbers are passed on.
    Whether pandas, polars or pyarrow has read a file, the result is the same, as long as they agree
    on what else is missing: the texts "NA" or "n/a" are to pandas and are not to polars.

    Parameters
    ----------
    max_categories : int, default=100
        Most values that a column of texts may have; more are refused, since they are seldom
        categories.

    Attributes
    ----------
    columns_ : tuple of Column
        What was learnt of every column of X; `describe` says it in words.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray
        Their names, if X had names.

    Examples
    --------
    >>> import pandas as pd
    >>> from bowtienet import TablePreparer
    >>> table = pd.DataFrame({"age": [30, None, 50], "city": ["Rome", "Oslo", "Rome"]})
    >>> TablePreparer().fit_transform(table)
        age  age missing  city=Oslo  city=Rome
    0  30.0          0.0        0.0        1.0
    1  40.0          1.0        1.0        0.0
    2  50.0          0.0        0.0        1.0
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        "max_categories": [Interval(Integral, 1, None, closed="left")],
    }

    columns_: tuple[Column, ...]

    def __init__(self, *, max_categories: int = 100) -> None:
        self.max_categories = max_categories

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians and categories. If it fails, an earlier fit is unchanged.

        Parameters
        ----------
        X : table (n, columns)
            pandas, polars or pyarrow table, or an array (of Python objects if it mixes texts and
            numbers).
        y : ignored

        Returns
        -------
        self
        """
        table = open_table(X, min_rows=2)
        columns = tuple(
            _learn(name, read_column(column, name), self.max_categories)
            for name, column in zip(table.names, table.columns, strict=True)
        )
        check_outputs(columns)
        validate_data(self, table.native, reset=True, skip_check_array=True)
        self.columns_ = columns
        return self

    def transform(self, X: Any) -> Any:
        """Numbers (n, outputs) in a table of the kind that is given.

        Parameters
        ----------
        X : table (n, columns)
            Columns with names are found by their names, in any order, and others are ignored;
            columns without names by their place. A category that training did not have is none of
            the known ones, with a warning.

        Returns
        -------
        table (n, outputs) of floats, NumPy for arrays; a pandas table keeps its index.
        """
        check_is_fitted(self)
        table = open_table(X)
        found = _matched(self, table)
        names = output_names(self.columns_)
        # Column by column, as tables are kept: polars and pyarrow then need no copy.
        values, end, surprises = np.zeros((table.n_rows, len(names)), order="F"), 0, []
        for column in self.columns_:
            begin, end = end, end + len(_names_of(column))
            if begin < end:
                surprises += _fill(values[:, begin:end], column, found[column.name])
        if surprises:
            warnings.warn(
                f"X has categories that training did not have: {'; '.join(surprises)}; they are "
                "treated as none of the known ones.",
                UserWarning,
                stacklevel=3,
            )
        return like_input(values, names, table)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that `transform` gives."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        columns = [
            replace(column, name=str(name))
            for column, name in zip(self.columns_, names, strict=True)
        ]
        return np.asarray(output_names(columns), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


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
    if not column.has_value and not column.has_indicator:
        return f"left out: {'only one value' if _has_any(column) else 'no values'}"
    if not column.has_value:
        return f"only one value; {column.n_missing:,} missing: an indicator"
    what = {
        NUMBER: "number",
        DATE: "date, as days since 1970",
        DURATION: "duration, in days",
        CATEGORY: f"{len(column.categories):,} categories, one-hot",
    }[column.kind]
    if not column.has_indicator:
        return what
    filled = f"median {_typical_text(column)} and " if column.kind != CATEGORY else ""
    return f"{what}; {column.n_missing:,} missing: {filled}an indicator"


def output_names(columns: Sequence[Column]) -> list[str]:
    """Names of the columns that come of `columns`."""
    return [name for column in columns for name in _names_of(column)]


def _learn(name: str, found: Numbers | Texts, max_categories: int) -> Column:
    if isinstance(found, Texts):
        n_missing, n_rows = int((found.codes < 0).sum()), len(found.codes)
        if len(found.distinct) > max_categories:
            _refuse_categories(name, found, max_categories)
        elif len(found.distinct) > _FEW and _are_written_numbers(found.distinct):
            warnings.warn(
                f"column {name!r} holds texts that look like numbers, such as "
                f"{_examples(found.distinct)}, and is taken as {len(found.distinct)} categories: "
                "write them as plain numbers if that is what they are.",
                UserWarning,
                stacklevel=6,
            )
        several, typical, kind = len(found.distinct) > 1, None, CATEGORY
        categories = tuple(sorted(found.distinct))
    else:
        present = found.values[~np.isnan(found.values)]
        n_missing, n_rows = len(found.values) - len(present), len(found.values)
        # Infinite numbers are passed on, even if all are the same: they are an error.
        several = len(present) > 0 and bool(present.min() < present.max() or np.isinf(present[0]))
        typical, kind, categories = _median(present), found.kind, ()
    return Column(
        name=name,
        kind=kind,
        n_missing=n_missing,
        typical=typical,
        has_value=several,
        has_indicator=0 < n_missing < n_rows,
        categories=categories,
    )


def _are_written_numbers(texts: Sequence[str]) -> bool:
    """Whether half of the texts or more are numbers but for signs such as those of thousands."""
    plain = [text.translate(_SIGNS) for text in texts]
    return 2 * sum(reads_as_number(text) for text in plain) >= len(texts)


def _median(present: NDArray[np.float64]) -> float | None:
    """None without values; infinite ones, which nothing can be fitted to, do not count."""
    if len(present) == 0:
        return None
    finite = present[np.isfinite(present)]
    return float(np.median(finite)) if len(finite) else 0.0


def _refuse_categories(name: str, found: Texts, max_categories: int) -> None:
    """Say which of three faults a column of too many texts has; rows are counted, not texts."""
    counts = np.bincount(found.codes[found.codes >= 0]).tolist()
    strange = {
        text: count
        for text, count in zip(found.distinct, counts, strict=True)
        if not reads_as_number(text)
    }
    n_values, n_strange = sum(counts), sum(strange.values())
    if not strange:
        raise ValueError(
            f"column {name!r} holds {n_values:,} numbers as text, such as "
            f"{_examples(found.distinct)}: convert them to numbers."
        )
    if 2 * n_strange <= n_values:
        raise ValueError(
            f"column {name!r} holds text where numbers are expected, {n_strange:,} of "
            f"{n_values:,} values are not numbers, such as {_examples(strange)}: mend them, mark "
            "them as missing, or leave the column out."
        )
    raise ValueError(
        f"column {name!r} holds {len(found.distinct):,} different texts, such as "
        f"{_examples(found.distinct)}, more than max_categories={max_categories}: leave the column "
        "out, or raise max_categories."
    )


def _examples(texts: Iterable[str]) -> str:
    return ", ".join(repr(text) for text in sorted(texts)[:3])


def check_outputs(columns: Sequence[Column]) -> None:
    """There is an output, and no two have the same name."""
    sources: dict[str, str] = {}
    for column in columns:
        for name in _names_of(column):
            if name in sources:
                raise ValueError(
                    f"columns {sources[name]!r} and {column.name!r} would both become {name!r}: "
                    "rename one of them."
                )
            sources[name] = column.name
    if not sources:
        raise ValueError(
            "nothing is left of X: each of its columns holds fewer than two different values; "
            "give columns that differ between rows."
        )


def _names_of(column: Column) -> list[str]:
    names: list[str] = []
    if column.has_value and column.kind == CATEGORY:
        names += [f"{column.name}={category}" for category in column.categories]
    elif column.has_value:
        names.append(column.name)
    return [*names, f"{column.name} missing"] if column.has_indicator else names


def _matched(preparer: TablePreparer, table: Table) -> dict[str, Any]:
    """Columns of a table by the names they had in training."""
    columns = preparer.columns_
    if not table.named or not hasattr(preparer, "feature_names_in_"):
        if len(table.columns) != len(columns):
            raise ValueError(
                f"X has {len(table.columns)} features, but TablePreparer is expecting "
                f"{len(columns)} features as input."
            )
        names = [column.name for column in columns]
        return dict(zip(names, table.columns, strict=True))
    found = dict(zip(table.names, table.columns, strict=True))
    absent = [
        column.name
        for column in columns
        if column.name not in found and (column.has_value or column.has_indicator)
    ]
    if absent:
        known = {column.name for column in columns}
        _refuse_absent(absent, [name for name in table.names if name not in known])
    return found


def _refuse_absent(absent: Sequence[str], others: Sequence[str]) -> None:
    raise ValueError(
        f"X lacks {'columns' if len(absent) > 1 else 'the column'} that training had: "
        f"{listed_with_hints(absent, others)}; add or rename "
        f"{'them' if len(absent) > 1 else 'it'}."
    )


def _fill(outputs: NDArray[np.float64], column: Column, given: Any) -> list[str]:
    """Write what becomes of one column into zeros (n, k); return what there is to warn of."""
    if column.kind == CATEGORY:
        texts = read_texts(given, column.name, column.categories)
        missing = texts.codes < 0
        surprises = _fill_one_hot(outputs, column, texts) if column.has_value else []
    else:
        numbers = _same_kind(column, read_column(given, column.name))
        missing, surprises = np.isnan(numbers), []
        if column.has_value:
            outputs[:, 0] = np.where(missing, np.float64(column.typical or 0.0), numbers)
    if column.has_indicator:
        outputs[:, -1] = missing
    return surprises


def _same_kind(column: Column, found: Numbers | Texts) -> NDArray[np.float64]:
    """Numbers of a column that must hold what it held in training; nothing but missing is fine."""
    if isinstance(found, Texts):
        strange = [text for text in found.distinct if not reads_as_number(text)]
        raise ValueError(
            f"column {column.name!r} held {KINDS[column.kind]} in training and now holds text, "
            f"such as {_examples(strange or found.distinct)}: convert it, or mark what is none as "
            "missing."
        )
    if found.kind != column.kind and not np.isnan(found.values).all():
        raise ValueError(
            f"column {column.name!r} held {KINDS[column.kind]} in training and now holds "
            f"{KINDS[found.kind]}: convert it to what it was."
        )
    return found.values


def _fill_one_hot(outputs: NDArray[np.float64], column: Column, texts: Texts) -> list[str]:
    known = {category: place for place, category in enumerate(column.categories)}
    places = np.array([*(known.get(text, -1) for text in texts.distinct), -1])[texts.codes]
    rows = np.flatnonzero(places >= 0)
    outputs[rows, places[rows]] = 1.0
    n_new = int(((places < 0) & (texts.codes >= 0)).sum())
    if n_new == 0:
        return []
    new = _examples(set(texts.distinct) - set(known))
    return [f"column {column.name!r}, {n_new:,} {'row' if n_new == 1 else 'rows'}, such as {new}"]


def _has_any(column: Column) -> bool:
    return column.typical is not None or bool(column.categories)


def _typical_text(column: Column) -> str:
    assert column.typical is not None
    if column.kind == DATE:
        return str(np.datetime64(math.floor(column.typical), "D"))
    return f"{column.typical:.6g}" + (" days" if column.kind == DURATION else "")
