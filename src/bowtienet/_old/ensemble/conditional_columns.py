"""Draws of a column given all the others, from which a test learns what chance alone would do.

    z_j | z_others ~ N(m_j(z_others), s_j²)

with z the normal scores of numbers, and m_j a ridge regression on the columns that are most
correlated with j. Categories, truth values and numbers with few different values are drawn from the
probabilities of their levels, by regressions of the levels' indicators. What is missing in a
column of numbers is drawn first, and the values of the rest after it. All inputs that belong to one
column of the user are drawn together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from bowtienet._old.ensemble.left_out_ridge import Ridge, fit_ridge

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
    """The places of each column of the user; none if it says nothing."""
    is_smooth: NDArray[np.bool_]
    """Which inputs are numbers with many values, (E,)."""
    is_bent: NDArray[np.bool_]
    """Which inputs have more than two values, so that they may act by more than a line, (E,)."""
    correlations: Floats
    """(E, E) of the scores."""


@dataclass(frozen=True, kw_only=True)
class Conditional:
    """The distribution of one column of the user given the others."""

    neighbours: Ridge
    """The regression on other inputs; what it leaves of residuals is what they cannot explain."""
    mean: Singles | None = None
    """(n,) of a number's normal score."""
    deviation: float = 0.0
    cumulative: Singles | None = None
    """(n, L) probabilities of levels, summed."""
    levels: Singles | None = None
    """(L, d) values of the column's inputs at each level; of a number that may be missing, NaN
    where it is not."""


def build_columns(inputs: Floats, owners: Sequence[int] | Indices, n_columns: int) -> Columns:
    """Scores of encoded inputs (n, E), of which each belongs to one of the user's columns."""
    owners = np.asarray(owners)
    counts = np.array([len(np.unique(column)) for column in inputs.T], dtype=int)
    is_smooth = counts > FEW_LEVELS
    scores = np.empty(inputs.shape)
    for place, column in enumerate(inputs.T):
        found = _normal_scores(column) if is_smooth[place] else column - column.mean()
        spread = found.std()
        scores[:, place] = found / spread if spread > 0.0 else 0.0
    varying = scores.any(axis=0)
    places = tuple(np.flatnonzero((owners == own) & varying) for own in range(n_columns))
    return Columns(
        scores=scores,
        inputs=places,
        is_smooth=is_smooth,
        is_bent=counts > 2,
        correlations=scores.T @ scores / len(scores),
    )


def fit_conditional(columns: Columns, column: int) -> Conditional:
    """The distribution of one of the user's columns given all others."""
    own = columns.inputs[column]
    values = columns.scores[:, own]
    others = columns.scores[:, _neighbours(columns, own)]
    smooth = columns.is_smooth[own]
    if smooth.any() and len(own) == 1:
        found = fit_ridge(others, values)
        return Conditional(
            neighbours=found,
            mean=found.fitted[:, 0].astype(np.float32),
            deviation=found.noise,
        )
    if smooth.any():
        return _sometimes_missing(others, values)
    levels, codes = np.unique(values, axis=0, return_inverse=True)
    found = fit_ridge(others, np.eye(len(levels))[codes.ravel()])
    return Conditional(
        neighbours=found, cumulative=_cumulative(found.fitted), levels=levels.astype(np.float32)
    )


def draw_column(
    conditional: Conditional, n_inputs: int, n_draws: int, rng: np.random.Generator
) -> Singles:
    """Draws (d, n_draws, n) of the inputs of a column."""
    if conditional.cumulative is None:
        return _draw_scores(conditional, n_draws, rng)[None]
    assert conditional.levels is not None
    n_rows, n_levels = conditional.cumulative.shape
    chance = rng.random((n_draws, n_rows), dtype=np.float32)
    codes = np.zeros((n_draws, n_rows), dtype=np.intp)
    for place in range(n_levels - 1):
        codes += chance > conditional.cumulative[:, place]
    drawn = np.stack([conditional.levels[:, k][codes] for k in range(n_inputs)])
    if conditional.mean is not None:
        present = np.isnan(drawn[0])
        drawn[0][present] = _draw_scores(conditional, n_draws, rng)[present]
    return drawn


def _draw_scores(conditional: Conditional, n_draws: int, rng: np.random.Generator) -> Singles:
    assert conditional.mean is not None
    drawn = rng.standard_normal((n_draws, len(conditional.mean)), dtype=np.float32)
    drawn *= np.float32(conditional.deviation)
    drawn += conditional.mean
    return drawn


def _sometimes_missing(others: Floats, values: Floats) -> Conditional:
    """A number (the first input) and where it is missing (the second)."""
    absent = values[:, 1] > 0.0
    share = fit_ridge(others, np.stack([~absent, absent], axis=1).astype(float))
    present = fit_ridge(others[~absent], values[~absent, :1])
    # The coefficients of the rows that are there, for all rows.
    center = others[~absent].mean(axis=0)
    slope = np.linalg.lstsq(
        others[~absent] - center, present.fitted[:, 0] - present.fitted[:, 0].mean(), rcond=None
    )[0]
    mean = values[~absent, 0].mean() + (others - center) @ slope
    indicator = [values[~absent, 1].min(), values[absent, 1].max()]
    levels = np.array([[np.nan, indicator[0]], [values[absent, 0].mean(), indicator[1]]])
    return Conditional(
        neighbours=share,
        mean=mean.astype(np.float32),
        deviation=present.noise,
        cumulative=_cumulative(share.fitted),
        levels=levels.astype(np.float32),
    )


def _neighbours(columns: Columns, own: Indices) -> Indices:
    """The inputs of other columns that the inputs `own` are regressed on.

    All of them if they are few; of many, those whose correlation is more than the largest that
    chance would give: the others would only seem to explain the column.
    """
    n_rows, n_inputs = columns.scores.shape
    closeness = np.abs(columns.correlations[own]).max(axis=0)
    closeness[own] = -1.0
    most = min(MOST_NEIGHBOURS, max(1, n_rows // 3))
    if n_inputs - len(own) > most:
        closeness[closeness < np.sqrt(2.0 * np.log(n_inputs) / n_rows)] = -1.0
    order = np.argsort(-closeness, kind="stable")[:most]
    return order[closeness[order] > -1.0]


def _cumulative(probabilities: Floats) -> Singles:
    held = np.maximum(probabilities, LEAST_PROBABILITY)
    return np.cumsum(held / held.sum(axis=1, keepdims=True), axis=1).astype(np.float32)


def _normal_scores(values: Floats) -> Floats:
    """Normal quantiles of the ranks, of mean zero; ties share theirs."""
    found = ndtri((rankdata(values) - 0.5) / len(values))
    return np.asarray(found - found.mean())
