"""What a network sees of the standardised columns: themselves, pieces of them, or directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet.tables.pieces import Pieces, components, fit_pieces
from bowtienet.tables.principal import fit_principal

Floats = NDArray[np.float64]

VIEWS = ("standard", "piecewise", "principal")
MANY_COLUMNS = 128
"""Of more columns than this, directions stand in the place of pieces, as many."""
ROWS_OF_MANY_BINS = 5_000
"""Rows from which columns may have more than `FEW_BINS` bins."""
FEW_BINS, MANY_BINS = 16, 64
FARTHEST_SEEN = 20.0
"""Deviations of a column beyond which networks and gates see no further: one such row would have
all the say in a minibatch."""
GATE_COLUMNS, GATE_BINS = 32, 4
"""Of the gates of noise levels, which few rows must tell."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Inputs of networks from standardised columns (n, E)."""

    owners: NDArray[np.intp]
    """The user's column of each input; inputs of one owner share a local scale."""
    pieces: Pieces | None = None
    principal: Floats | None = None
    """Loadings of directions (E, K)."""


def learn_view(name: str, inputs: Floats, weights: Floats, owners: NDArray[np.intp]) -> View | None:
    """The view of this name, of the rows of a fit; None where it says nothing new."""
    if name == "standard":
        return View(owners=owners)
    if name == "principal":
        return _directions(inputs, weights, MANY_COLUMNS)
    n_bins = FEW_BINS if len(inputs) < ROWS_OF_MANY_BINS else MANY_BINS
    pieces = fit_pieces(inputs, weights, n_bins, most=128)
    return None if pieces is None else View(owners=owners[pieces.column], pieces=pieces)


def learn_gates(inputs: Floats, weights: Floats, owners: NDArray[np.intp]) -> View:
    """What noise levels may depend on: each column in few pieces, or directions of many."""
    if inputs.shape[1] > GATE_COLUMNS:
        return _directions(inputs, weights, GATE_COLUMNS)
    pieces = fit_pieces(inputs, weights, GATE_BINS)
    owners = owners if pieces is None else owners[pieces.column]
    return View(owners=owners, pieces=pieces)


def see(view: View, inputs: Floats) -> NDArray[np.float32]:
    """Inputs (n, K) of networks."""
    inputs = np.clip(inputs, -FARTHEST_SEEN, FARTHEST_SEEN)
    if view.pieces is not None:
        inputs = components(view.pieces, inputs)
    if view.principal is not None:
        inputs = inputs @ view.principal
    return np.asarray(inputs, dtype=np.float32)


def _directions(inputs: Floats, weights: Floats, most: int) -> View:
    loadings = fit_principal(inputs, weights, most)
    return View(owners=np.arange(loadings.shape[1], dtype=np.intp), principal=loadings)
