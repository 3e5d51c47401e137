"""What a network sees of the standardised columns: themselves, pieces of them, or directions.

A standardised column x with bins e_0 < ... < e_B becomes B pieces

    t_j = (x - e_{j-1}) / (e_j - e_{j-1}),   held within [0, 1],

the first not held below and the last not above, so that every function of them goes on linearly
outside the data, and uncertainty grows there. A unit of a network then sees a bent line, where a
standardised column gives it a straight one. Pieces are centred and all on one scale, so that steps
of all bins are penalised alike. Values that many rows share end a bin each, and quantiles of the
others end the rest of the bins. With few different values each ends a bin.

With many columns x (E,) the directions V'x / c are seen, with V the leading principal directions
of the training rows and c one scale for all, so that they have a mean square of one. With no fewer
directions than rows nothing is lost: rows lie in the space of their principal directions, and so
does every network that is fitted with a penalty on its squared weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet.tables.quantiles import weighted_quantiles

Floats = NDArray[np.float64]

VIEWS = ("standard", "piecewise", "principal")
MANY_COLUMNS = 128
"""With more columns than this, as many directions replace pieces."""
MANY_BINS = 64
"""Most bins of a column; with fewer than 5,000 rows it is 16."""
ROWS_PER_BIN = 20
"""With fewer rows for each bin there are fewer bins, unless a column has few values."""
FEW_VALUES = 17
"""With at most this number of distinct values, each value of a column ends a bin."""
FARTHEST_SEEN = 20.0
"""Deviations of a column beyond which networks and gates see no further: one such row would have
all the say in a minibatch."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Inputs of networks from standardised columns (n, E): P pieces, or directions of them.

    A column that is seen as it is is one piece, from 0 to 1.
    """

    owners: NDArray[np.intp]
    """The user's column of each input; inputs of one owner share a local scale."""
    column: NDArray[np.intp]
    """(P,), the column of each piece, in the order of the columns."""
    low: Floats
    """e_{j-1}."""
    high: Floats
    """e_j."""
    center: Floats
    scale: Floats
    """The same for all."""
    principal: Floats | None = None
    """Loadings of directions (E, K)."""


def learn_view(name: str, inputs: Floats, weights: Floats, owners: NDArray[np.intp]) -> View | None:
    """The view of this name, of the rows of a fit; None where it says nothing new."""
    if name == "standard":
        return whole_columns(owners)
    if name == "principal":
        return _directions(inputs, weights, MANY_COLUMNS)
    n_bins = 16 if len(inputs) < 5_000 else MANY_BINS
    view = learn_pieces(inputs, weights, owners, n_bins, most=128)
    return None if len(view.column) == len(owners) else view


def learn_gates(inputs: Floats, weights: Floats, owners: NDArray[np.intp]) -> View:
    """What noise levels may depend on, which few rows must tell: four bins, or 32 directions."""
    if inputs.shape[1] > 32:
        return _directions(inputs, weights, 32)
    return learn_pieces(inputs, weights, owners, 4)


def whole_columns(owners: NDArray[np.intp]) -> View:
    """Columns as they are."""
    zeros, ones = np.zeros(len(owners)), np.ones(len(owners))
    column = np.arange(len(owners), dtype=np.intp)
    return View(owners=owners, column=column, low=zeros, high=ones, center=zeros, scale=ones)


def see(view: View, inputs: Floats) -> NDArray[np.float32]:
    """Inputs (n, K) of networks."""
    inputs = pieces(view, np.clip(inputs, -FARTHEST_SEEN, FARTHEST_SEEN))
    if view.principal is not None:
        inputs = inputs @ view.principal
    return np.asarray(inputs, dtype=np.float32)


def pieces(view: View, inputs: Floats) -> Floats:
    """Pieces (n, P) of standardised columns (n, E)."""
    first, last = first_and_last(view)
    values = inputs[:, view.column]
    values -= view.low
    values /= view.high - view.low
    np.clip(values, np.where(first, -np.inf, 0.0), np.where(last, np.inf, 1.0), out=values)
    values -= view.center
    values /= view.scale
    return values


def first_and_last(view: View) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether pieces are the first, and the last, of their columns."""
    changes = np.diff(view.column) != 0
    return np.concatenate([[True], changes]), np.concatenate([changes, [True]])


def learn_pieces(
    inputs: Floats, weights: Floats, owners: NDArray[np.intp], n_bins: int, most: int = 96
) -> View:
    """Bins of the columns of standardised inputs (n, E); whole columns if none has two of them.

    A column has at most `n_bins`, and all columns together `most` pieces, but for columns of few
    values, which keep a bin for each; row weights (n,) are positive.
    """
    distinct = [np.unique(column) for column in inputs.T]
    n_bins = _affordable(distinct, float(np.sum(weights)), n_bins, most)
    each = zip(inputs.T, distinct, strict=True)
    edges = [_edges(column, weights, values, n_bins) for column, values in each]
    n_pieces = [len(ends) - 1 for ends in edges]
    if max(n_pieces) < 2:
        return whole_columns(owners)
    column = np.repeat(np.arange(len(edges), dtype=np.intp), n_pieces)
    plain = replace(
        whole_columns(owners[column]),
        column=column,
        low=np.concatenate([ends[:-1] for ends in edges]),
        high=np.concatenate([ends[1:] for ends in edges]),
    )
    share = weights[:, None] / np.sum(weights)
    values = pieces(plain, inputs)
    center = np.sum(share * values, axis=0)
    spread = np.sqrt(np.sum(share * (values - center) ** 2, axis=0))
    # A root mean square of a half: of a column's pieces many are needed together.
    scale = np.sqrt(np.mean(spread**2)) / 0.5
    return replace(plain, center=center, scale=np.full(len(column), scale))


def fit_principal(inputs: Floats, weights: Floats, most: int) -> Floats:
    """V / c (E, P): leading principal directions of standardised inputs (n, E), `most` or fewer.

    With many rows about 2,000 of them are used; row weights (n,) say how many times each counts.
    """
    if not inputs.any():
        return np.zeros((inputs.shape[1], 1))
    apart = -(-len(inputs) // 2_000)  # about 2,000 rows are enough
    sample, share = inputs[::apart], weights[::apart]
    rooted = np.sqrt(share / share.sum())[:, None] * sample
    wide = rooted.shape[0] < rooted.shape[1]
    values, vectors = np.linalg.eigh(rooted @ rooted.T if wide else rooted.T @ rooted)
    values, vectors = values[::-1][:most], vectors[:, ::-1][:, :most]
    kept = values > 1e-10 * values[0]  # the others are rounding
    values, directions = values[kept], vectors[:, kept]
    if wide:
        directions = rooted.T @ (directions / np.sqrt(values))
    # The sign of a direction is nobody's choice: its largest loading is positive.
    largest = np.argmax(np.abs(directions), axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return np.ascontiguousarray(directions * signs / np.sqrt(np.mean(values)))


def _directions(inputs: Floats, weights: Floats, most: int) -> View:
    principal = fit_principal(inputs, weights, most)
    view = whole_columns(np.arange(inputs.shape[1], dtype=np.intp))
    owners = np.arange(principal.shape[1], dtype=np.intp)
    return replace(view, owners=owners, principal=principal)


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
        share = np.bincount(np.searchsorted(distinct, column), weights) / np.sum(weights)
        # Values that hold as many rows as a bin should; sums of weights are rounded.
        shared = distinct[share * n_bins >= 1.0 - 1e-9]
        rest = ~np.isin(column, shared)
        levels = np.linspace(0.0, 1.0, max(n_bins + 1 - len(shared), 2))
        quantiles = weighted_quantiles(column[rest], weights[rest], levels)
        edges = np.union1d(shared, quantiles)
    # In standard deviations: nearer values differ by rounding.
    kept = edges[np.diff(edges, prepend=-np.inf) > 1e-6]
    return kept if len(kept) > 1 else kept[0] + np.array([0.0, 1.0])
