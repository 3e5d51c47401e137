"""What the networks of an ensemble see of a table, and the way back.

    table -> encoded columns -> standardised, in one order -> a view: components, warped targets

All networks share the standardised rows; a view says what becomes of these for one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import Array, like, take, to_numpy
from bowtienet.data.rows import Rows
from bowtienet.data.tables import Block
from bowtienet.distributions.yeo_johnson import Warp, to_warped
from bowtienet.representation.columns import Column, check_columns, encode, encoded_names, owners
from bowtienet.representation.pieces import Pieces, check_pieces, components, first_and_last
from bowtienet.representation.scaling import Scaling, standardize

Indices = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class View:
    """What one network sees of standardised rows."""

    pieces: Pieces | None = None
    """Piecewise linear components; None for the columns as they are."""
    warp: Warp | None = None
    """Of the targets (D_out,); None for the targets as they are."""


PLAIN = View()
"""Standardised columns and targets as they are."""


@dataclass(frozen=True, kw_only=True)
class Representation:
    """All that turns a user's table into what networks see, and back."""

    columns: tuple[Column, ...]
    """What was learnt of each of the user's columns."""
    feature_scaling: Scaling
    """Of the encoded columns."""
    target_scaling: Scaling
    column_order: Indices
    """The encoded column at each place of the standardised ones."""
    views: tuple[View, ...] = (PLAIN,)


def encoded_rows(columns: Sequence[Column], block: Block) -> tuple[Rows, list[str]]:
    """Rows with encoded features, in the user's units, and what is to be warned of."""
    encoded, surprises = encode(columns, block.table)
    # Targets keep their precision until they are standardised.
    weights = like(encoded, block.weights)
    return Rows(inputs=encoded, targets=block.targets, weights=weights), surprises


def standardized_features(representation: Representation, encoded: Array) -> Array:
    """Encoded features (n, encoded), standardised and in one order."""
    standardized = standardize(representation.feature_scaling, encoded)
    return take(standardized, representation.column_order, axis=1)


def standardized_rows(representation: Representation, encoded_rows: Rows) -> Rows:
    """Rows with encoded features, in the user's units, standardised and in one order."""
    inputs = standardized_features(representation, encoded_rows.inputs)
    targets = standardize(representation.target_scaling, encoded_rows.targets)
    return Rows(inputs=inputs, targets=like(inputs, targets), weights=encoded_rows.weights)


def network_features(view: View, standardized: Array) -> Array:
    """Standardised features (n, encoded) as a network sees them."""
    return standardized if view.pieces is None else components(view.pieces, standardized)


def network_rows(view: View, standardized: Rows) -> Rows:
    """Standardised rows as a network sees them."""
    targets = standardized.targets
    if view.warp is not None:
        targets = to_warped(view.warp, targets)
    inputs = network_features(view, standardized.inputs)
    return replace(standardized, inputs=inputs, targets=targets)


def network_inputs(representation: Representation, view: View) -> Indices:
    """The encoded column that each input of a network belongs to."""
    order = representation.column_order
    return order if view.pieces is None else order[view.pieces.column]


def input_owners(representation: Representation, view: View) -> Indices:
    """The user's column that each input of a network belongs to."""
    return owners(representation.columns)[network_inputs(representation, view)]


def input_names(representation: Representation, view: View) -> list[str]:
    """Names of the inputs of a network: a column, or a range of it in the user's unit.

    ``age ..7``, ``age 7..28`` and ``age 28..`` are the components of one column; the first and the
    last go on outside the data.
    """
    names = encoded_names(representation.columns)
    places = network_inputs(representation, view)
    if view.pieces is None:
        return [names[place] for place in places]
    scaling = representation.feature_scaling
    center, scale = to_numpy(scaling.center)[places], to_numpy(scaling.scale)[places]
    lows, highs = center + scale * view.pieces.low, center + scale * view.pieces.high
    found = []
    for place, low, high, first, last in zip(
        places, lows, highs, *first_and_last(view.pieces), strict=True
    ):
        if first and last:
            found.append(names[place])
        else:
            begin, end = "" if first else f"{low:.4g}", "" if last else f"{high:.4g}"
            found.append(f"{names[place]} {begin}..{end}")
    return found


def check_representation(representation: Representation, n_columns: int, n_outputs: int) -> None:
    """Raise a ValueError if the parts do not belong together, or to a table of such a size."""
    if not isinstance(representation, Representation):
        raise ValueError("there is no representation")
    check_columns(representation.columns)
    if len(representation.columns) != n_columns:
        raise ValueError(f"the representation is not for {n_columns} columns")
    n_encoded = len(owners(representation.columns))
    if sorted(np.asarray(representation.column_order).tolist()) != list(range(n_encoded)):
        raise ValueError("the order of columns is none")
    scalings = (representation.feature_scaling, representation.target_scaling)
    for scaling, size in zip(scalings, (n_encoded, n_outputs), strict=True):
        if not isinstance(scaling, Scaling):
            raise ValueError("there is no scaling")
        center, scale = to_numpy(scaling.center), to_numpy(scaling.scale)
        if center.shape != (size,) or scale.shape != (size,):
            raise ValueError("the scaling is for other columns")
        if not np.isfinite(center).all() or not np.all(scale > 0.0):
            raise ValueError("the scaling holds numbers that nothing can be scaled by")
    if not isinstance(representation.views, tuple) or not representation.views:
        raise ValueError("there is no view of the columns")
    for view in representation.views:
        _check_view(view, n_encoded, n_outputs)


def _check_view(view: View, n_encoded: int, n_outputs: int) -> None:
    if not isinstance(view, View):
        raise ValueError("a view of the columns is none")
    if view.pieces is not None:
        check_pieces(view.pieces, n_encoded)
    if view.warp is None:
        return
    numbers = [np.asarray(value) for value in vars(view.warp).values()]
    if any(value.shape != (n_outputs,) or not np.isfinite(value).all() for value in numbers):
        raise ValueError("the warp is for other targets")
    exponent, low, high, _, scale = numbers
    if not (np.all((exponent >= 0.0) & (exponent <= 2.0)) and np.all(low <= high)):
        raise ValueError("the warp of the targets has no inverse")
    if not all(math.isfinite(1.0 / value) and value > 0.0 for value in scale):
        raise ValueError("the warp of the targets has no inverse")
