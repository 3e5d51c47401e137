"""Piecewise linear features: what a column does to the target may differ from bin to bin.

A standardised column x with bins e_0 < ... < e_B becomes B components

    t_j = (x - e_{j-1}) / (e_j - e_{j-1}),   held within [0, 1],

the first not held below and the last not above, so that every function of them goes on linearly
outside the data, and uncertainty grows there. A unit of a network then sees a bent line, where a
standardised column gives it a straight one. Components are centred and all on one scale, so that
steps of all bins are penalised alike.

Values that many rows share end a bin each, and quantiles of the others end the rest of the bins.
With few different values each ends a bin; a column with two values is one component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet.tables.quantiles import weighted_quantiles

Floats = NDArray[np.float64]

ROWS_PER_BIN = 20
"""With fewer rows for each bin there are fewer bins, unless a column has few values."""
FEW_VALUES = 17
"""A column of so many values may say everything by them: each ends a bin."""


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Components of standardised columns, P in all, in the order of the columns; arrays (P,)."""

    column: NDArray[np.intp]
    """The column of each."""
    low: Floats
    """e_{j-1}."""
    high: Floats
    """e_j."""
    center: Floats
    scale: Floats
    """The same for all."""


def fit_pieces(inputs: Floats, weights: Floats, n_bins: int, most: int = 96) -> Pieces | None:
    """Bins of the columns of standardised inputs (n, E); None if no column has two of them.

    A column has at most `n_bins`, and all columns together `most` components, but for columns of
    few values, which keep a bin for each; row weights (n,) are positive.
    """
    distinct = [np.unique(column) for column in inputs.T]
    n_bins = _affordable(distinct, float(np.sum(weights)), n_bins, most)
    edges = [
        _edges(column, weights, values, n_bins)
        for column, values in zip(inputs.T, distinct, strict=True)
    ]
    n_components = [len(ends) - 1 for ends in edges]
    if max(n_components) < 2:
        return None
    column = np.repeat(np.arange(len(edges), dtype=np.intp), n_components)
    low = np.concatenate([ends[:-1] for ends in edges])
    high = np.concatenate([ends[1:] for ends in edges])
    ones = np.ones(len(column))
    pieces = Pieces(column=column, low=low, high=high, center=0.0 * ones, scale=ones)
    share = weights[:, None] / np.sum(weights)
    values = components(pieces, inputs)
    center = np.sum(share * values, axis=0)
    spread = np.sqrt(np.sum(share * (values - center) ** 2, axis=0))
    # A root mean square of a half: of a column's components many are needed together.
    return replace(pieces, center=center, scale=np.sqrt(np.mean(spread**2)) / 0.5 * ones)


def components(pieces: Pieces, inputs: Floats) -> Floats:
    """Components (n, P) of standardised columns (n, E)."""
    first, last = first_and_last(pieces)
    values = inputs[:, pieces.column] - pieces.low
    values /= pieces.high - pieces.low
    np.clip(values, np.where(first, -np.inf, 0.0), np.where(last, np.inf, 1.0), out=values)
    values -= pieces.center
    values /= pieces.scale
    return values


def first_and_last(pieces: Pieces) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether components are the first, and the last, of their columns."""
    changes = np.diff(pieces.column) != 0
    return np.concatenate([[True], changes]), np.concatenate([changes, [True]])


def _affordable(distinct: Sequence[Floats], n_rows: float, n_bins: int, most: int) -> int:
    """Bins of each column, such that there are not too many components and rows for each bin."""
    many = sum(len(values) > FEW_VALUES for values in distinct)
    left = most - sum(len(values) - 1 for values in distinct if len(values) <= FEW_VALUES)
    return int(min(n_bins, left // max(many, 1), n_rows / ROWS_PER_BIN))


def _edges(column: Floats, weights: Floats, distinct: Floats, n_bins: int) -> Floats:
    """Ends of the bins of a column, two at least."""
    if len(distinct) <= max(FEW_VALUES, n_bins + 1):
        edges = distinct
    elif n_bins < 2:
        edges = distinct[[0, -1]]
    else:
        shared = _shared_values(column, weights, n_bins)
        rest = ~np.isin(column, shared)
        levels = np.linspace(0.0, 1.0, max(n_bins + 1 - len(shared), 2))
        quantiles = weighted_quantiles(column[rest], weights[rest], levels)
        edges = np.union1d(shared, quantiles)
    # In standard deviations: nearer values differ by rounding.
    kept = edges[np.diff(edges, prepend=-np.inf) > 1e-6]
    return kept if len(kept) > 1 else kept[0] + np.array([0.0, 1.0])


def _shared_values(column: Floats, weights: Floats, n_bins: int) -> Floats:
    """Values that hold as many rows as a bin should."""
    values, index = np.unique(column, return_inverse=True)
    share = np.bincount(index, weights=weights) / np.sum(weights)
    # Sums of weights are rounded.
    return values[share * n_bins >= 1.0 - 1e-9]
