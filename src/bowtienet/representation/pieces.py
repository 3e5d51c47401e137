"""Piecewise linear features: what a column does to the target may differ from bin to bin.

A standardised column x with bins e_0 < ... < e_B at quantiles becomes B components

    t_j = (x - e_{j-1}) / (e_j - e_{j-1}),   held within [0, 1],

the first not held below and the last not above, so that every function of them goes on linearly
outside the data, and uncertainty grows there. A unit of a network then sees a bent line, where a
standardised column gives it a straight one. Components are standardised. Columns with two values
stay as they are, and so do all columns if there would be too many components.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import Array, like, namespace, take
from bowtienet.representation.quantiles import weighted_quantiles
from bowtienet.representation.scaling import fit_scaling

Floats = NDArray[np.float64]

N_BINS = 8
"""Bins of a column, unless a user says otherwise; docs/measurements/representation.md says why."""
MOST_COMPONENTS = 128
"""Of all columns together: of more columns each has fewer bins."""
ROWS_PER_BIN = 5
"""Rows that a bin has, at least."""
NARROWEST = 1e-6
"""Width of a bin, in standard deviations: below it values would differ by rounding."""


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Components of standardised columns, P in all, in the order of the columns; arrays (P,)."""

    column: NDArray[np.intp]
    """The column of each."""
    low: Floats
    """e_{j-1}; 0 for a column that stays as it is."""
    high: Floats
    """e_j; 1 for a column that stays as it is."""
    center: Floats
    scale: Floats


def fit_pieces(inputs: Floats, weights: Floats, n_bins: int) -> Pieces | None:
    """Bins of the columns of standardised inputs (n, E); None if all columns stay as they are.

    Parameters
    ----------
    inputs : array (n, E)
        Standardised columns.
    weights : array (n,)
        How many times each row counts; positive.
    n_bins : int
        Most bins of a column.
    """
    distinct = [np.unique(column) for column in inputs.T]
    n_bins = _affordable(distinct, float(np.sum(weights)), n_bins)
    edges = [
        _edges(column, weights, values, n_bins)
        for column, values in zip(inputs.T, distinct, strict=True)
    ]
    if all(len(found) == 0 for found in edges):
        return None
    bins = [found if len(found) else np.array([0.0, 1.0]) for found in edges]
    n_components = [len(found) - 1 for found in bins]
    pieces = Pieces(
        column=np.repeat(np.arange(len(bins), dtype=np.intp), n_components),
        low=np.concatenate([found[:-1] for found in bins]),
        high=np.concatenate([found[1:] for found in bins]),
        center=np.zeros(sum(n_components)),
        scale=np.ones(sum(n_components)),
    )
    scaling = fit_scaling(components(pieces, inputs), weights)
    return Pieces(
        column=pieces.column,
        low=pieces.low,
        high=pieces.high,
        center=np.asarray(scaling.center),
        scale=np.asarray(scaling.scale),
    )


def components(pieces: Pieces, inputs: Array) -> Array:
    """Standardised components (n, P) of standardised columns (n, E)."""
    xp = namespace(inputs)
    first, last = first_and_last(pieces)
    low, width = like(inputs, pieces.low), like(inputs, pieces.high - pieces.low)
    least = like(inputs, np.where(first, -np.inf, 0.0))
    largest = like(inputs, np.where(last, np.inf, 1.0))
    values = (take(inputs, pieces.column, axis=1) - low) / width
    held = xp.minimum(xp.maximum(values, least), largest)
    return (held - like(inputs, pieces.center)) / like(inputs, pieces.scale)


def first_and_last(pieces: Pieces) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether components are the first, and the last, of their columns."""
    changes = np.diff(pieces.column) != 0
    return np.concatenate([[True], changes]), np.concatenate([changes, [True]])


def check_pieces(pieces: Pieces, n_columns: int) -> None:
    """Raise a ValueError if components, such as those of a file, are not of these columns."""
    if not isinstance(pieces, Pieces):
        raise ValueError("the components of the columns are none")
    column, *numbers = (np.asarray(value) for value in vars(pieces).values())
    if column.ndim != 1 or column.dtype.kind not in "iu" or np.any(column[1:] < column[:-1]):
        raise ValueError("the components of the columns are not in order")
    if not np.array_equal(np.unique(column), np.arange(n_columns)):
        raise ValueError("the components are of other columns")
    if any(
        value.shape != column.shape or value.dtype.kind != "f" or not np.isfinite(value).all()
        for value in numbers
    ):
        raise ValueError("the components of the columns are not one number each")
    low, high, _, scale = numbers
    first, last = first_and_last(pieces)
    if not np.array_equal(high[~last], low[~first]):
        raise ValueError("the components of the columns have gaps between them")
    with np.errstate(all="ignore"):
        sizes = np.stack([high - low, scale])
        if not (
            np.all(sizes > 0.0) and np.isfinite(sizes).all() and np.isfinite(1.0 / sizes).all()
        ):
            raise ValueError("the components of the columns have no width")


def _affordable(distinct: Sequence[Floats], n_rows: float, n_bins: int) -> int:
    """Bins of each column, such that there are not too many components and rows for each bin."""
    several = sum(len(values) > 2 for values in distinct)
    left = MOST_COMPONENTS - (len(distinct) - several)
    return int(min(n_bins, left // max(several, 1), n_rows / ROWS_PER_BIN))


def _edges(column: Floats, weights: Floats, distinct: Floats, n_bins: int) -> Floats:
    """Ends of the bins of a column; none if it stays as it is."""
    if n_bins < 2 or len(distinct) < 3:
        return np.empty(0)
    if len(distinct) <= n_bins + 1:
        edges = distinct
    else:
        edges = weighted_quantiles(column, weights, np.linspace(0.0, 1.0, n_bins + 1))
    kept = [edges[0]]
    for edge in edges[1:]:
        if edge - kept[-1] > NARROWEST:
            kept.append(edge)
    return np.array(kept) if len(kept) > 2 else np.empty(0)
