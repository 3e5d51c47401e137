"""From a table to the standardised rows that networks see, and names back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet.tables.columns import Column, encode, encoded_names, learn_columns, owners
from bowtienet.tables.door import Table

Floats = NDArray[np.float64]

FARTHEST = 1e6
"""Deviations beyond which a value is taken for this far: squares of squares stay in range."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """x -> (x - center) / scale, both (K,)."""

    center: Floats
    scale: Floats


@dataclass(frozen=True, kw_only=True)
class Representation:
    """What was learnt of the columns: their encoding and scaling."""

    columns: tuple[Column, ...]
    scaling: Scaling

    @property
    def names(self) -> list[str]:
        """Names of the standardised columns."""
        return encoded_names(self.columns)

    @property
    def owners(self) -> NDArray[np.intp]:
        """The user's column of each standardised one."""
        return owners(self.columns)


def learn_representation(table: Table, weights: Floats, max_categories: int) -> Representation:
    """Encoding and scaling of the rows of a fit."""
    columns = learn_columns(table, weights, max_categories)
    return Representation(columns=columns, scaling=fit_scaling(encode(columns, table), weights))


def standardize(representation: Representation, table: Table) -> Floats:
    """Rows (n, K) with mean 0 and variance 1 in training."""
    return to_scale(representation.scaling, encode(representation.columns, table))


def fit_scaling(values: Floats, weights: Floats) -> Scaling:
    """Weighted mean and standard deviation of the columns of (n, K); 1 for a constant column.

    Sums are of values over the largest magnitude of their column, so that none overflows.
    """
    share = (weights / weights.sum())[:, None]
    unit = np.abs(values).max(axis=0)
    unit = np.where(unit > 0.0, unit, 1.0)
    relative = values / unit
    mean = np.sum(share * relative, axis=0)
    spread = np.sqrt(np.sum(share * (relative - mean) ** 2, axis=0))
    constant = spread <= 64.0 * np.finfo(float).eps
    # A constant column is zero exactly: its rounding would be taken for a signal.
    center = np.where(constant, values[0], mean * unit)
    return Scaling(center=center, scale=np.where(constant, 1.0, spread) * unit)


def to_scale(scaling: Scaling, values: Floats) -> Floats:
    """(x - center) / scale, within `FARTHEST`; halves, so that no difference overflows."""
    with np.errstate(over="ignore"):
        scaled = 2.0 * ((0.5 * values - 0.5 * scaling.center) / scaling.scale)
    return np.clip(scaled, -FARTHEST, FARTHEST)
