"""What a table says of a target without some column: E[y | other columns], and what is left of it.

Columns are screened by how much a shape of theirs (a line, a bend, a step, a product with another
column) says of the residuals so far, round by round; then a ridge regression on these shapes
predicts each row from all others. If a column is not chosen, the result is what it would be if the
column did not exist, so that one regression serves all of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._old.ensemble.conditional_columns import Columns
from bowtienet._old.ensemble.left_out_ridge import fit_ridge

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEPS = (-0.6, 0.0, 0.6)
"""Normal scores at which a column may have a step."""
MOST_CHOSEN = 40
ROWS_PER_COLUMN = 5
"""Rows for each chosen column, at least."""
MOST_ROUNDS = 20
NEAR_BEST = 0.95
"""Share of the strongest score from which on columns are taken in the same round."""
MOST_PAIRED = 15
"""Chosen columns whose products are features too."""
MOST_SEARCHED = 1000
"""Inputs up to which all pairs are looked at for products."""
NEW_PAIRS = 2
"""Pairs that a round may add."""


@dataclass(frozen=True, kw_only=True)
class Regression:
    """Predictions of each row from the others, and the columns that they are made of."""

    predicted: Floats  # (n,)
    chosen: tuple[int, ...]  # columns of the user, in the order of choice


def regress_without(
    columns: Columns, shapes: Sequence[Floats], targets: Floats, left_out: int | None = None
) -> Regression:
    """Regression of standardised targets (n,) on the shapes of all of the user's columns but one.

    Parameters
    ----------
    columns : Columns
        The table.
    shapes : sequence of array (n, E)
        What `build_shapes` makes of it.
    targets : array (n,)
        Of mean zero.
    left_out : int, optional
        The column of the user that is not looked at.
    """
    n_rows = len(targets)
    owners = _owners(columns)
    open_columns = np.ones(len(columns.inputs), dtype=bool)
    if left_out is not None:
        open_columns[left_out] = False
    most = min(MOST_CHOSEN, n_rows // ROWS_PER_COLUMN)
    chosen: list[int] = []
    predicted = np.zeros(n_rows)
    for _ in range(MOST_ROUNDS):
        residuals = targets - predicted
        residuals = (residuals - residuals.mean()) / max(residuals.std(), np.finfo(float).tiny)
        new = _strong_columns(columns, shapes, owners, residuals, chosen, open_columns)
        new = new or _strong_pairs(columns, owners, residuals, open_columns)
        new = new[: most - len(chosen)]
        if not new:
            break
        chosen += new
        open_columns[new] = False
        errors = fit_ridge(_features(columns, shapes, chosen), targets[:, None]).left_out_errors
        predicted = targets - errors[:, 0]
    return Regression(predicted=predicted, chosen=tuple(chosen))


def build_shapes(columns: Columns) -> list[Floats]:
    """Shapes (n, E) of all inputs, lines first; those of indicators are lines alone."""
    scores, bent = columns.scores, columns.is_bent
    held = np.clip(scores, -3.0, 3.0)
    bends = [held**2, np.abs(held), *((held > step).astype(float) for step in STEPS)]
    return [held, *(_standardized(values) * bent for values in bends)]


def _owners(columns: Columns) -> NDArray[np.intp]:
    """The user's column of each input; -1 of inputs that never vary."""
    found = np.full(columns.scores.shape[1], -1, dtype=np.intp)
    for column, places in enumerate(columns.inputs):
        found[places] = column
    return found


def _strong_columns(
    columns: Columns,
    shapes: Sequence[Floats],
    owners: NDArray[np.intp],
    residuals: Floats,
    chosen: Sequence[int],
    is_open: Bools,
) -> list[int]:
    """Columns that say more of the residuals than chance would, the strongest first.

    Scores are relative to the largest that chance would give to as many shapes of their sort.
    """
    n_rows, n_inputs = columns.scores.shape
    partners = [place for column in chosen for place in columns.inputs[column]]
    lines = np.abs(residuals @ shapes[0]) / _largest_by_chance(n_inputs, n_rows)
    bends = np.max([np.abs(residuals @ shape) for shape in shapes[1:]], axis=0)
    bends /= _largest_by_chance(n_inputs * len(shapes), n_rows)
    strength = np.maximum(lines, bends)
    if partners:
        products = (shapes[0][:, partners] * residuals[:, None]).T @ shapes[0]
        products /= _largest_by_chance(n_inputs * (len(partners) + len(shapes)), n_rows)
        strength = np.maximum(strength, np.abs(products).max(axis=0))
    of_columns = np.zeros(len(is_open))
    np.maximum.at(of_columns, owners[owners >= 0], strength[owners >= 0])
    of_columns[~is_open] = 0.0
    least = max(1.0, NEAR_BEST * of_columns.max())
    order = np.argsort(-of_columns, kind="stable")
    return [int(place) for place in order if of_columns[place] >= least]


def _largest_by_chance(count: int, n_rows: int) -> float:
    """Size that the largest of so many sums over standardised rows has without an effect."""
    return float(np.sqrt(2.0 * n_rows * np.log(max(count, 2))))


def _strong_pairs(
    columns: Columns, owners: NDArray[np.intp], residuals: Floats, is_open: Bools
) -> list[int]:
    """Pairs of columns whose product says more of the residuals than chance would."""
    n_rows, n_inputs = columns.scores.shape
    free = np.flatnonzero((owners >= 0) & is_open[owners])
    if len(free) < 2 or n_inputs > MOST_SEARCHED:
        return []
    scores = columns.scores[:, free]
    strength = np.abs((scores * residuals[:, None]).T @ scores)
    strength /= _largest_by_chance(n_inputs**2 // 2, n_rows)
    strength[owners[free][:, None] == owners[free]] = 0.0
    strength = np.triu(strength)
    found: list[int] = []
    for flat in np.argsort(-strength, axis=None, kind="stable")[:NEW_PAIRS]:
        first, second = np.unravel_index(flat, strength.shape)
        if strength[first, second] < 1.0:
            break
        found += [int(owners[free[first]]), int(owners[free[second]])]
    return list(dict.fromkeys(found))


def _features(columns: Columns, shapes: Sequence[Floats], chosen: Sequence[int]) -> Floats:
    """Shapes of the chosen columns, and products of the first of them."""
    places = np.concatenate([columns.inputs[column] for column in chosen])
    parts = [shapes[0][:, places]]
    parts += [shape[:, places[columns.is_bent[places]]] for shape in shapes[1:]]
    paired = np.concatenate([columns.inputs[column] for column in chosen[:MOST_PAIRED]])
    paired = paired[: 2 * MOST_PAIRED]
    first, second = np.triu_indices(len(paired), 1)
    parts.append(_standardized(shapes[0][:, paired[first]] * shapes[0][:, paired[second]]))
    return np.concatenate(parts, axis=1)


def _standardized(values: Floats) -> Floats:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))
