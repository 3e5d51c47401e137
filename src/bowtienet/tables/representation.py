"""From a table to the standardised rows that networks see, and names back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bowtienet._format import listed
from bowtienet.tables.columns import encode, encoded_names, learn_columns, owners
from bowtienet.tables.door import Table, TrainingTable
from bowtienet.tables.notes import notes_of_fit
from bowtienet.tables.quantiles import in_line
from bowtienet.tables.texts import Column

Floats = NDArray[np.float64]
Scaling: TypeAlias = tuple[Floats, Floats]
"""Center and scale (K,) each, of x -> (x - center) / scale."""

FARTHEST = 1e6
"""Deviations beyond which a value is taken for this far: squares of squares stay in range."""


@dataclass(frozen=True, kw_only=True)
class Representation:
    """What was learnt of the columns: their encoding and scaling."""

    columns: tuple[Column, ...]
    scaling: Scaling
    low: Floats
    """(K,), least standardised values of training."""
    high: Floats
    notes: tuple[str, ...]
    """What a user should know of the table, each with its remedy."""

    @property
    def names(self) -> list[str]:
        """Names of the standardised columns."""
        return encoded_names(self.columns)

    @property
    def owners(self) -> NDArray[np.intp]:
        """The user's column of each standardised one."""
        return owners(self.columns)


def learn_representation(
    training: TrainingTable, max_categories: int
) -> tuple[Representation, Floats]:
    """Encoding and scaling of the rows of a fit, and these rows (n, K) standardised.

    Statistics of the target, of categories with many levels, are out of fold in these rows;
    `standardize` has those of all rows, for new ones.
    """
    targets = np.asarray(training.targets)
    if training.is_labels:  # shares of all classes but the first
        classes, numbers = np.unique(targets.ravel(), return_inverse=True)
        targets = numbers[:, None] == np.arange(1, len(classes))
    targets = targets.astype(np.float64, copy=False)
    columns, rows = learn_columns(training.table, targets, training.weights, max_categories)
    scaling = fit_scaling(rows, training.weights)
    inputs = to_scale(scaling, rows)
    representation = Representation(
        columns=columns,
        scaling=scaling,
        low=inputs.min(axis=0),
        high=inputs.max(axis=0),
        notes=(*training.notes, *notes_of_fit(training, columns, inputs, targets)),
    )
    return representation, inputs


def standardize(representation: Representation, table: Table) -> Floats:
    """Rows (n, K) with mean 0 and variance 1 in training.

    A warning names numbers and dates further out than the width of their training range.
    """
    inputs = to_scale(representation.scaling, encode(representation.columns, table))
    width = representation.high - representation.low
    outside = np.maximum(representation.low - inputs, inputs - representation.high)
    far = (outside > width).any(axis=0) & (width > 0.0)
    indices = np.unique(representation.owners[far]) if far.any() else ()
    columns = [representation.columns[i] for i in indices]
    if names := [column.name for column in columns if column.kind in ("number", "date")]:
        warnings.warn(
            f"rows lie far outside the training range in {listed(names, 3)}: their predictions "
            "are extrapolated; check units, or train on rows like these.",
            UserWarning,
            stacklevel=3,
        )
    return inputs


def fit_scaling(values: Floats, weights: Floats) -> Scaling:
    """Weighted mean and standard deviation of the columns of (n, K); 1 for a constant column.

    Values out of line do not decide for the others. Sums are of values over the largest magnitude
    of their column, so that none overflows.
    """
    share = (weights / weights.sum())[:, None]
    unit = np.abs(values).max(axis=0)
    unit = np.where(unit > 0.0, unit, 1.0)
    # In one order in memory, whatever that of the table: sums are then the same to the bit.
    relative = in_line(np.divide(values, unit, order="C"))
    mean = np.sum(share * relative, axis=0)
    spread = np.sqrt(np.sum(share * (relative - mean) ** 2, axis=0))
    constant = spread <= 64.0 * np.finfo(float).eps
    # A constant column is zero exactly: its rounding would be taken for a signal.
    center = np.where(constant, values[0], mean * unit)
    return center, np.where(constant, 1.0, spread) * unit


def to_scale(scaling: Scaling, values: Floats) -> Floats:
    """(x - center) / scale, within `FARTHEST`; halves, so that no difference overflows."""
    center, scale = scaling
    with np.errstate(over="ignore"):
        scaled = 2.0 * ((0.5 * values - 0.5 * center) / scale)
    return np.clip(scaled, -FARTHEST, FARTHEST, order="C")
