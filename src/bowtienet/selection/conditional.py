"""Draws of a column given all the others: what chance alone would do.

    z_j = m_j(z_others) + e,   e from the errors of all rows,

with z the normal scores of numbers and m_j a ridge regression on the inputs that are most
correlated with j. Categories, truth values and numbers with few different values are drawn from the
probabilities of their levels, by a regression of the levels' indicators. All inputs of one column
are drawn together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from bowtienet.selection.regression import Ridge, fit_ridge, standardized

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Indices = NDArray[np.intp]

FEW_LEVELS = 10
"""Different values up to which numbers are drawn as levels."""
MOST_NEIGHBOURS = 64
"""Inputs that a column is regressed on, at most; and a third of the rows."""
LEAST_PROBABILITY = 1e-3
"""Of a level: a linear probability may be negative."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """A table as normal scores and standardised indicators, by the user's columns."""

    scores: Floats
    """(n, E)."""
    inputs: tuple[Indices, ...]
    """Inputs of each column of the user; none if it does not vary."""
    is_smooth: NDArray[np.bool_]
    """Which inputs are numbers with many values, (E,)."""
    is_bent: NDArray[np.bool_]
    """Which inputs have more than two values, so that they may act by more than a line, (E,)."""


@dataclass(frozen=True, kw_only=True)
class Conditional:
    """The distribution of the d inputs of a column given the other columns."""

    ridge: Ridge
    """What it explains of residuals is not looked at."""
    values: Singles
    """(n, d) errors of numbers, or (L, d) levels."""
    mean: Floats
    """(n, d) of numbers; zero for levels."""
    cumulative: Floats | None
    """(n, L) probabilities of levels, summed; None of numbers."""


def columns_of(inputs: Floats, owners: Indices, n_columns: int) -> Columns:
    """Scores of encoded inputs (n, E), of which each belongs to one of the user's columns."""
    counts = np.array([len(np.unique(column)) for column in inputs.T])
    is_smooth = counts > FEW_LEVELS
    ranks = ndtri((rankdata(inputs, axis=0) - 0.5) / len(inputs))
    scores = standardized(np.where(is_smooth, ranks, inputs))
    varying = scores.any(axis=0)
    places = tuple(np.flatnonzero((owners == column) & varying) for column in range(n_columns))
    return Columns(scores=scores, inputs=places, is_smooth=is_smooth, is_bent=counts > 2)


def fit_conditional(columns: Columns, column: int) -> Conditional:
    """The distribution of one of the user's columns given all others."""
    chosen = columns.inputs[column]
    values = columns.scores[:, chosen]
    others = columns.scores[:, _neighbours(columns, chosen)]
    if columns.is_smooth[chosen].any():
        ridge, cumulative = fit_ridge(others, values), None
        degrees = max(1.0, len(values) - 1.0 - ridge.shrinkage.sum())
        mean, values = ridge.fitted, (values - ridge.fitted) * np.sqrt(len(values) / degrees)
    else:
        values, codes = np.unique(values, axis=0, return_inverse=True)
        ridge = fit_ridge(others, np.eye(len(values))[codes.ravel()])
        held = np.maximum(ridge.fitted, LEAST_PROBABILITY)
        mean, cumulative = np.zeros((1, len(chosen))), np.cumsum(held, axis=1)
        cumulative /= cumulative[:, -1:]
    return Conditional(
        ridge=ridge, values=values.astype(np.float32), mean=mean, cumulative=cumulative
    )


def draw(conditional: Conditional, n_draws: int, rng: np.random.Generator) -> Singles:
    """Draws (d, n_draws, n) of the inputs of a column."""
    shape = n_draws, len(conditional.ridge.fitted)
    if conditional.cumulative is None:
        codes = rng.integers(0, shape[1], size=shape, dtype=np.int32)
    else:
        chance, codes = rng.random(shape, dtype=np.float32), np.zeros(shape, dtype=np.int32)
        for bound in conditional.cumulative.T[:-1].astype(np.float32):
            codes += chance > bound
    mean = conditional.mean.T[:, None].astype(np.float32)
    return np.stack([column[codes] for column in conditional.values.T]) + mean


def _neighbours(columns: Columns, chosen: Indices) -> Indices:
    """The inputs of other columns that the chosen inputs are regressed on.

    All of them if they are few; of many, those whose correlation is more than the largest that
    chance would give: the others would only seem to explain the column.
    """
    n_rows, n_inputs = columns.scores.shape
    closeness = np.abs(columns.scores[:, chosen].T @ columns.scores).max(axis=0) / n_rows
    closeness[chosen] = -1.0
    most = min(MOST_NEIGHBOURS, max(1, n_rows // 3))
    least = np.sqrt(2.0 * np.log(n_inputs) / n_rows) if n_inputs - len(chosen) > most else 0.0
    order = np.argsort(-closeness, kind="stable")[:most]
    return order[closeness[order] >= least]
