"""What the networks of an ensemble see: encoded columns, standardised and in one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import Array, like, take, to_numpy
from bowtienet.data.rows import Rows
from bowtienet.data.tables import Block
from bowtienet.representation.columns import Column, check_columns, encode, owners
from bowtienet.representation.scaling import Scaling, standardize


@dataclass(frozen=True, kw_only=True)
class Representation:
    """All that turns a user's table into what networks see, and back."""

    columns: tuple[Column, ...]
    """What was learnt of each of the user's columns."""
    feature_scaling: Scaling
    """Of the encoded columns."""
    target_scaling: Scaling
    column_order: NDArray[np.intp]
    """The encoded column at each place of the networks' inputs."""


def encoded_rows(columns: Sequence[Column], block: Block) -> tuple[Rows, list[str]]:
    """Rows with encoded features, in the user's units, and what is to be warned of."""
    encoded, surprises = encode(columns, block.table)
    # Targets keep their precision until they are standardised.
    weights = like(encoded, block.weights)
    return Rows(inputs=encoded, targets=block.targets, weights=weights), surprises


def network_features(representation: Representation, encoded: Array) -> Array:
    """Encoded features (n, encoded) as networks see them."""
    standardized = standardize(representation.feature_scaling, encoded)
    return take(standardized, representation.column_order, axis=1)


def network_rows(representation: Representation, encoded_rows: Rows) -> Rows:
    """Rows with encoded features, in the user's units, as networks see them."""
    inputs = network_features(representation, encoded_rows.inputs)
    targets = standardize(representation.target_scaling, encoded_rows.targets)
    return Rows(inputs=inputs, targets=like(inputs, targets), weights=encoded_rows.weights)


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
