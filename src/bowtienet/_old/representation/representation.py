"""What the networks of an ensemble see of a table, and the way back.

    table -> encoded columns -> standardised, in one order -> a view: components, warped targets

All networks share the standardised rows; a view says what becomes of these for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, like, take, to_numpy
from bowtienet._old.data.rows import Rows
from bowtienet._old.data.tables import Block
from bowtienet._old.distributions.yeo_johnson import (
    LARGEST_EXPONENT,
    LEAST_EXPONENT,
    Warp,
    log_slope,
    to_warped,
)
from bowtienet._old.representation.columns import Column, check_columns, encode, encoded_names, owners
from bowtienet._old.representation.kinds import DATE
from bowtienet._old.representation.pieces import Pieces, check_pieces, components
from bowtienet._old.representation.principal import (
    Principal,
    check_principal,
    principal_components,
)
from bowtienet._old.representation.scaling import Scaling, standardize, standardize_features

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class View:
    """What one network sees of standardised rows."""

    pieces: Pieces | None = None
    """Piecewise linear components; None for the columns as they are."""
    principal: Principal | None = None
    """Principal components, in place of many columns; None for the columns themselves."""
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
    standardized = standardize_features(representation.feature_scaling, encoded)
    return take(standardized, representation.column_order, axis=1)


def standardized_rows(representation: Representation, encoded_rows: Rows) -> Rows:
    """Rows with encoded features, in the user's units, standardised and in one order."""
    inputs = standardized_features(representation, encoded_rows.inputs)
    targets = standardize(representation.target_scaling, encoded_rows.targets)
    return Rows(inputs=inputs, targets=like(inputs, targets), weights=encoded_rows.weights)


def network_features(view: View, standardized: Array) -> Array:
    """Standardised features (n, encoded) as a network sees them."""
    if view.principal is not None:
        return principal_components(view.principal, standardized)
    return standardized if view.pieces is None else components(view.pieces, standardized)


def network_rows(view: View, standardized: Rows) -> Rows:
    """Standardised rows as a network sees them."""
    targets = standardized.targets
    if view.warp is not None:
        targets = to_warped(view.warp, targets)
    inputs = network_features(view, standardized.inputs)
    return replace(standardized, inputs=inputs, targets=targets)


def log_slopes(view: View, rows: Rows) -> NDArray[np.float64]:
    """log |dz/du| (n,) of the networks' targets z in standardised ones u, summed over targets.

    Densities of warped targets are compared in the user's unit, or not at all.
    """
    targets = to_numpy(rows.targets).astype(float)
    if view.warp is None:
        return np.zeros(len(targets))
    return np.asarray(log_slope(view.warp, targets).sum(axis=1))


def network_inputs(representation: Representation, view: View) -> Indices:
    """The encoded column that each input of a network belongs to.

    A principal component belongs to all; this is the column that it has most of.
    """
    order = representation.column_order
    if view.principal is not None:
        return order[np.argmax(np.abs(view.principal.loadings), axis=0)]
    return order if view.pieces is None else order[view.pieces.column]


def input_owners(representation: Representation, view: View) -> Indices:
    """The user's column that each input of a network belongs to."""
    return owners(representation.columns)[network_inputs(representation, view)]


def input_names(representation: Representation, view: View) -> list[str]:
    """Names of the inputs of a network: a column, or a range of it in the user's unit.

    ``age ..7``, ``age 7..28`` and ``age 28..`` are the components of one column; the first and the
    last go on outside the data. Principal components have numbers.
    """
    names = encoded_names(representation.columns)
    places = network_inputs(representation, view)
    if view.principal is not None:
        return [f"component {number + 1}" for number in range(len(places))]
    if view.pieces is None:
        return [names[place] for place in places]
    found = []
    for place in dict.fromkeys(places.tolist()):
        inner = _inner_edges(representation, view.pieces, places == place)
        dated = representation.columns[owners(representation.columns)[place]].kind == DATE
        texts = ["", *_distinct_texts(inner, dated=dated), ""]
        ranges = [f" {begin}..{end}" for begin, end in pairwise(texts)] if inner.size else [""]
        found += [names[place] + text for text in ranges]
    return found


def check_representation(representation: Representation, n_columns: int, n_outputs: int) -> None:
    """Raise a ValueError if the parts do not belong together, or to a table of such a size.

    Types and finiteness are checked where a file is read (`persistence.schema`).
    """
    check_columns(representation.columns)
    if len(representation.columns) != n_columns:
        raise ValueError(f"the representation is not for {n_columns} columns")
    n_encoded = len(owners(representation.columns))
    if sorted(representation.column_order.tolist()) != list(range(n_encoded)):
        raise ValueError("the order of columns is none")
    scalings = (representation.feature_scaling, representation.target_scaling)
    for scaling, size in zip(scalings, (n_encoded, n_outputs), strict=True):
        if scaling.center.shape != (size,) or scaling.scale.shape != (size,):
            raise ValueError("the scaling is for other columns")
    if not representation.views:
        raise ValueError("there is no view of the columns")
    for view in representation.views:
        _check_view(view, n_encoded, n_outputs)


def _inner_edges(representation: Representation, pieces: Pieces, own: NDArray[np.bool_]) -> Floats:
    """Where the components of one column, `own` of all, meet, in its unit."""
    place = network_inputs(representation, View(pieces=pieces))[own][0]
    scaling = representation.feature_scaling
    center, scale = to_numpy(scaling.center)[place], to_numpy(scaling.scale)[place]
    # Halved first, as in `standardize`: edges are in range where their distances may not be.
    return np.asarray(2.0 * (0.5 * center + 0.5 * scale * pieces.low[own][1:]))


def _distinct_texts(values: Floats, *, dated: bool) -> list[str]:
    """Days of dates, numbers to four digits; more where these would be the same."""
    spellings: list[Callable[[float], str]] = [
        partial(_number_text, digits=digits) for digits in range(4, 18)
    ]
    if dated:
        spellings = [partial(_date_text, unit=unit) for unit in ("D", "m", "s")] + spellings
    for spell in spellings:
        texts = [spell(value) for value in values.tolist()]
        if len(set(texts)) == len(texts):
            break
    return texts


def _number_text(value: float, digits: int) -> str:
    """Rounded to significant digits; below ten thousand millions in full: 10380, not 1.038e+04."""
    return f"{float(f'{value:.{digits}g}'):.{max(digits, 10)}g}"


def _date_text(days: float, unit: str) -> str:
    return str(np.datetime64(round(86_400.0 * days), "s").astype(f"datetime64[{unit}]"))


def _check_view(view: View, n_encoded: int, n_outputs: int) -> None:
    if view.pieces is not None and view.principal is not None:
        raise ValueError("a view has components of two kinds")
    if view.pieces is not None:
        check_pieces(view.pieces, n_encoded)
    if view.principal is not None:
        check_principal(view.principal, n_encoded)
    if view.warp is None:
        return
    if any(value.shape != (n_outputs,) for value in vars(view.warp).values()):
        raise ValueError("the warp is for other targets")
    exponent, low, high, _, scale = vars(view.warp).values()
    with np.errstate(all="ignore"):
        ends = to_warped(view.warp, np.stack([low, high]))
        sound = (exponent >= LEAST_EXPONENT) & (exponent <= LARGEST_EXPONENT) & (low <= high)
        sound &= np.isfinite(1.0 / scale) & np.isfinite(ends).all(axis=0)
    if not sound.all():
        raise ValueError("the warp of the targets has no inverse")
