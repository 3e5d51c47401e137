"""What a network predicts along one feature, with the others held or averaged over.

Rows are encoded once; along the feature only its encoded columns change. Those of a number are the
number itself (dates are days since 1970, durations days), those of a text are zeros and a one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import chosen, suggestion, whole
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.ensemble.count_ensemble import count_mixture, is_counts
from bowtienet._old.ensemble.ensemble import chunks, mixture
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.plotting.fitted import encoded_features
from bowtienet._old.prediction.combined_mixtures import average_rows, join_mixtures
from bowtienet._old.prediction.count_mixture import CountMixture, average_counts, join_counts
from bowtienet._old.prediction.mixture import Mixture
from bowtienet._old.representation.columns import Column, owners, read_learnt
from bowtienet._old.representation.kinds import CATEGORY, DATE, DAY, NUMBER, Numbers, Texts, read_column

_MOST_AVERAGED = 200
"""Rows that are averaged over;"""
_MOST_AVERAGED_COUNTS = 40
"""fewer of counts, whose distribution functions take their time."""
_MOST_CATEGORIES = 20
_FEW = 20
"""Different numbers up to which a line has a point at each."""
_TAIL = 0.01
"""Share of the rows beyond either end of a line."""
_MOST_DOTS = 1000
"""Partial residuals that are drawn."""
_KNOTS = 40
"""Numbers between which the mean along a feature is taken for a line."""
_SEED = 0
"""Of the rows: the same plot every time."""


def find_column(names: list[str], feature: Any) -> int:
    """Place of a column by its name or number."""
    if not isinstance(feature, str):
        return chosen(feature, len(names), "feature, where it is no name,")
    if feature in names:
        return names.index(feature)
    raise ValueError(f"feature {feature!r} is no column of X{suggestion(feature, names)}")


def read_content(column: Column, source: InMemory, place: int) -> Numbers | Texts:
    """What a column of some rows holds, read as in training if the model uses it."""
    table = source.block.table
    matrix = table.matrix
    given = to_numpy(matrix[:, place]) if matrix is not None else (table.columns or ())[place]
    return read_learnt(column, given)[0] if column.has_value else read_column(given, column.name)


def labels_of(content: Texts) -> np.ndarray:
    """The text of every row, None where it is missing."""
    return np.array([*content.distinct, None], dtype=object)[content.codes]


def values_along(column: Column, content: Numbers | Texts, grid: Any) -> np.ndarray:
    """Values to ask about (g,): texts, or numbers; those that are given or, for a number, chosen.

    Chosen are all numbers if they are few, or even steps; texts by how often they occur.
    """
    if not column.has_value:
        raise ValueError(f"the model does not use column {column.name!r}: choose another feature.")
    if isinstance(content, Texts):
        return _categories(column, content, grid)
    if np.ndim(grid) == 0:
        return _steps(column, content.values, whole(grid, "grid"))
    given = np.asarray(grid)
    if given.dtype.kind in "iuf":
        return given.astype(float)
    found, _ = read_learnt(column, given)
    assert isinstance(found, Numbers)
    return found.values


def forecast_along(
    network: BowTieRegressor,
    source: InMemory,
    place: int,
    values: np.ndarray,
    *,
    average: bool,
) -> Mixture | CountMixture:
    """Predictive distribution at every value, mixed over rows of the source if wanted.

    Of counts it is that of exposure 1.
    """
    columns = network.columns_
    if average:
        rows = sample(source.block.table.n_rows, n_averaged(network, source))
        base = encoded_features(network, source.take(rows))
    else:
        base = typical_row(columns, encoded_features(network, source))
    n_rows, n_values = len(base), values.size
    asked = np.repeat(base, n_values, axis=0)
    asked[:, owners(columns) == place] = np.tile(_encoded(columns[place], values), (n_rows, 1))
    if is_counts(network.ensemble_):
        parts = [
            count_mixture(network.ensemble_, chunk, np.zeros((len(chunk), 1)))
            for chunk in chunks(asked)
        ]
        return average_counts(join_counts(parts), n_rows)
    found = join_mixtures([mixture(network.ensemble_, chunk) for chunk in chunks(asked)])
    return average_rows(found, n_rows)


def n_averaged(network: BowTieRegressor, source: InMemory) -> int:
    """Rows of a source that are averaged over."""
    most = _MOST_AVERAGED_COUNTS if is_counts(network.ensemble_) else _MOST_AVERAGED
    return min(source.block.table.n_rows, most)


def partial_residuals(
    network: BowTieRegressor,
    source: InMemory,
    place: int,
    content: Numbers | Texts,
    target: int,
    *,
    average: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """m(x_j) + y - m(x) over x_j: the mean along a feature, and what rows are away from their own.

    Rows whose value is missing, or was not there in training, are left out; of more than 1,000 a
    random sample is taken. Residuals of counts are over their exposures.
    """
    column = network.columns_[place]
    if isinstance(content, Texts):
        values = labels_of(content)
        present = np.isin(content.codes, _known_codes(column, content))
    else:
        values, present = content.values, np.isfinite(content.values)
    rows = np.flatnonzero(present)
    rows = rows[sample(rows.size, _MOST_DOTS)]
    some, values = source.take(rows), values[rows]
    knots = _knots(values)
    means = forecast_along(network, source, place, knots, average=average).mean()
    means = means.reshape(len(knots), -1)[:, target]
    if isinstance(content, Texts):
        base = means[np.searchsorted(knots, values)]
    else:
        base = np.interp(values, knots, means)
    own = np.asarray(network.predict(some)).reshape(len(rows), -1)[:, target]
    targets = to_numpy(some.block.targets)
    residuals = targets[:, target] - own
    if is_counts(network.ensemble_):
        residuals = residuals / np.exp(targets[:, 1])
    return values, base + residuals


def has_two_values(column: Column, content: Numbers | Texts) -> bool:
    """Whether a column of numbers holds nothing but 0 and 1, as truth values are read."""
    if not isinstance(content, Numbers) or column.kind != NUMBER:
        return False
    found = content.values[np.isfinite(content.values)]
    return bool(np.all((found == 0.0) | (found == 1.0)))


def as_drawn(values: np.ndarray, kind: str) -> np.ndarray:
    """Days since 1970 as datetime64, to the microsecond; all else stays."""
    if kind != DATE:
        return values
    return np.round(values * DAY).astype(np.int64).astype("datetime64[us]")


def sample(n_rows: int, most: int) -> np.ndarray:
    """Places of all rows, or of a random `most` of them, in their order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(_SEED).choice(n_rows, size=most, replace=False))


def _known_codes(column: Column, content: Texts) -> list[int]:
    """Codes of the texts that training had."""
    return [code for code, text in enumerate(content.distinct) if text in column.categories]


def _knots(values: np.ndarray) -> np.ndarray:
    """All different values of a few, or even quantiles of many."""
    distinct = np.unique(values)
    if values.dtype.kind == "O" or distinct.size <= _KNOTS:
        return distinct
    return np.unique(np.quantile(distinct, np.linspace(0.0, 1.0, _KNOTS)))


def _categories(column: Column, content: Texts, grid: Any) -> np.ndarray:
    if np.ndim(grid) > 0:
        for label in grid:
            if label not in column.categories:
                hint = suggestion(str(label), column.categories)
                raise ValueError(f"grid holds {label!r}, no category of {column.name!r}{hint}")
        return np.array([str(label) for label in grid], dtype=object)
    labels = labels_of(content)
    counts = {label: int(np.sum(labels == label)) for label in column.categories}
    frequent = sorted(column.categories, key=lambda label: -counts[label])[:_MOST_CATEGORIES]
    return np.array(sorted(frequent), dtype=object)


def _steps(column: Column, values: np.ndarray, count: int) -> np.ndarray:
    present = values[np.isfinite(values)]
    distinct = np.unique(present)
    if distinct.size < 2:
        raise ValueError(
            f"column {column.name!r} has not two different values to draw a line between: give "
            "grid as an array of values."
        )
    if count == 1:
        raise ValueError("grid must be at least 2, or an array of values, got 1.")
    if distinct.size <= min(_FEW, count):
        return distinct
    low, high = np.quantile(present, (_TAIL, 1.0 - _TAIL))
    return np.linspace(low, high, count) if low < high else distinct[[0, -1]]


def _encoded(column: Column, values: np.ndarray) -> np.ndarray:
    """Encoded columns (g, k) of values that are not missing."""
    if column.kind == CATEGORY:
        found = values[:, None] == np.array(column.categories, dtype=object)
    else:
        found = values[:, None]
    return np.pad(found.astype(float), ((0, 0), (0, int(column.has_indicator))))


def typical_row(columns: tuple[Column, ...], encoded: np.ndarray) -> np.ndarray:
    """One row (1, encoded) of lower medians and most frequent categories."""
    row = np.quantile(encoded, 0.5, axis=0, method="lower")
    places = owners(columns)
    for place, column in enumerate(columns):
        own = np.flatnonzero(places == place)
        if column.kind == CATEGORY and own.size:
            row[own] = 0.0
            row[own[np.argmax(np.sum(encoded[:, own], axis=0))]] = 1.0
    return row[None, :]
