"""Which columns of a table matter, with a share of false ones that holds.

A column matters if the target depends on it given all other columns. Each is tested by conditional
randomisation (`randomization_test`), and the p-values by Benjamini and Hochberg: the expected share
of false columns among those selected is at most the rate, as far as the columns' own distribution
given the others is known (`conditional_columns`). Nothing has to be assumed of the target or of a
network, which decide how much is found and not how much of it is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._old.data.named_frames import new_frame
from bowtienet._old.ensemble.conditional_columns import (
    Columns,
    build_columns,
    draw_column,
    fit_conditional,
)
from bowtienet._old.ensemble.left_out_ridge import without_fit
from bowtienet._old.ensemble.randomization_test import (
    Effects,
    false_discoveries_controlled,
    randomization_p_value,
    steps_of,
)
from bowtienet._old.ensemble.screened_regression import Regression, build_shapes, regress_without

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

PROCEDURE = "conditional randomisation tests, Benjamini-Hochberg"
MOST_ROWS = 5_000
"""Of more rows a random sample is worth looking at."""
FEWEST_ROWS = 20
"""Of fewer rows nothing can be told."""
MOST_PARTNERS = 200
"""Inputs of the table, for each of a column, up to which products with all of them are looked for;
of more, with those that predict."""
DRAWS_PER_COLUMN, LEAST_DRAWS, MOST_DRAWS = 25, 1_000, 50_000
"""Most draws, by column and target: one relevant column alone is then found at 0.05."""
FAR_TARGET, FAR_RESIDUAL = 4.0, 2.5
"""Robust deviations at which targets and residuals are held, for noise with heavy tails."""
NORMAL_MEDIAN = 0.6745
"""Median of |x| for x ~ N(0, 1)."""


@dataclass(frozen=True, kw_only=True)
class Structure:
    """Which columns matter; `selected_names` are those that do, at the stated rate."""

    names: tuple[str, ...]
    """Of all columns, x0, x1, ... if they have none."""
    p_values: Floats
    """Of the hypothesis that the target does not depend on a column given all others, (columns,);
    1 of a column that was left out."""
    selected: Bools
    """Whether a column is among the discoveries, (columns,)."""
    variance_share: Floats
    """Share of the target's variance that left-out rows lose without the column, (columns,); 0
    where it was of no use. The largest over targets."""
    false_discovery_rate: float
    """Upper limit of the expected share of false columns among those selected."""
    procedure: str
    """What the rate is one of."""
    n_rows: int
    """Rows that were looked at."""

    @property
    def selected_names(self) -> tuple[str, ...]:
        """Names of the columns that matter, the smallest p-values first."""
        order = np.lexsort((-self.variance_share, self.p_values))
        return tuple(self.names[place] for place in order if self.selected[place])

    def to_frame(self, library: str = "pandas") -> Any:
        """A row for each column, in the order of the table: p-value, selected, variance share.

        The names are the index of a pandas frame, `column` in others.
        """
        found = {
            "column": self.names,
            "p_value": self.p_values,
            "selected": self.selected,
            "variance_share": self.variance_share,
        }
        return new_frame(found, library, index="column")

    def __str__(self) -> str:
        count, total = int(self.selected.sum()), len(self.names)
        lines = [
            f"{count} of {total} columns matter, false discovery rate at most "
            f"{self.false_discovery_rate:g}",
            f"({self.procedure}; {self.n_rows:,} rows)",
        ]
        width = max((len(name) for name in self.selected_names), default=0)
        for name in self.selected_names:
            place = self.names.index(name)
            lines.append(
                f"{name:<{width}}  p = {self.p_values[place]:<8.2g} "
                f"variance share {self.variance_share[place]:.3f}"
            )
        return "\n".join(lines)


def at_rate(found: Structure, rate: float) -> Structure:
    """The same p-values at another false discovery rate."""
    selected = false_discoveries_controlled(found.p_values, rate)
    return replace(found, selected=selected, false_discovery_rate=rate)


def find_structure(
    inputs: Floats,
    owners: Sequence[int] | NDArray[np.intp],
    targets: Floats,
    weights: Floats,
    names: Sequence[str],
    *,
    false_discovery_rate: float,
    seed: int,
) -> Structure:
    """Test each of the user's columns, given all others.

    Parameters
    ----------
    inputs : array (n, E)
        Encoded columns.
    owners : sequence of int (E,)
        The column of the user that each belongs to.
    targets : array (n, D)
        With several, a column matters if it does for one of them.
    weights : array (n,)
        Of the rows, positive: they count in the tests by their size.
    names : sequence of str
        Of the user's columns.
    false_discovery_rate : float in (0, 1)
        Upper limit of the expected share of false columns among those selected.
    seed : int
        Of the draws.
    """
    columns = build_columns(inputs, owners, len(names))
    # Each target has as many draws again: the smallest p-value is multiplied by their number.
    least, most = LEAST_DRAWS * targets.shape[1], DRAWS_PER_COLUMN * len(names) * targets.shape[1]
    n_draws = min(max(least, most), MOST_DRAWS)
    tests = [
        _test_columns(columns, target, weights / weights.mean(), seed, n_draws)
        for target in targets.T
    ]
    p_values = np.minimum(1.0, len(tests) * np.min([found[0] for found in tests], axis=0))
    return Structure(
        names=tuple(names),
        p_values=p_values,
        selected=false_discoveries_controlled(p_values, false_discovery_rate),
        variance_share=np.max([found[1] for found in tests], axis=0),
        false_discovery_rate=false_discovery_rate,
        procedure=PROCEDURE,
        n_rows=len(inputs),
    )


def check_structure(found: Structure, n_columns: int) -> None:
    """Raise a ValueError if a structure, such as that of a file, is not one of so many columns."""
    shapes = {np.shape(found.p_values), np.shape(found.selected), np.shape(found.variance_share)}
    if shapes != {(n_columns,)} or len(found.names) != n_columns:
        raise ValueError(f"the structure is not one of {n_columns} columns")
    p_values = np.asarray(found.p_values)
    if not np.all((p_values > 0.0) & (p_values <= 1.0)) or found.selected.dtype != bool:
        raise ValueError("the structure has p-values or selections that are none")


def _test_columns(
    columns: Columns, target: Floats, weights: Floats, seed: int, most_draws: int
) -> tuple[Floats, Floats]:
    """p-values and shares of the variance of all columns for one target."""
    n_columns = len(columns.inputs)
    p_values, shares = np.ones(n_columns), np.zeros(n_columns)
    held = _held(target, FAR_TARGET)
    spread = held.std()
    if spread == 0.0:
        return p_values, shares
    held = (held - held.mean()) / spread
    shapes = build_shapes(columns)
    whole = regress_without(columns, shapes, held)
    for column, own in enumerate(columns.inputs):
        if not own.size:
            continue
        known = whole
        if column in whole.chosen:
            known = regress_without(columns, shapes, held, left_out=column)
            shares[column] = _error(held, known) - _error(held, whole)
        p_values[column] = _p_value(columns, column, held, weights, known, seed, most_draws)
    return p_values, np.maximum(shares, 0.0)


def _p_value(
    columns: Columns,
    column: int,
    target: Floats,
    weights: Floats,
    known: Regression,
    seed: int,
    most_draws: int,
) -> float:
    own = columns.inputs[column]
    conditional = fit_conditional(columns, column)
    residuals = _held(target - known.predicted, FAR_RESIDUAL)
    residuals = without_fit(conditional.neighbours, residuals - residuals.mean()) * weights
    values = columns.scores[:, own]
    steps = tuple(
        steps_of(values[:, place]) if columns.is_bent[own[place]] else np.empty(0)
        for place in range(len(own))
    )
    return randomization_p_value(
        values.T.astype(np.float32),
        partial(draw_column, conditional, len(own)),
        residuals - residuals.mean(),
        Effects(steps=steps, partners=_partners(columns, column, known)),
        np.random.default_rng((seed, column)),
        most_draws,
    )


def _partners(columns: Columns, column: int, known: Regression) -> Floats:
    """What products of a column are looked for with: other inputs, and what they predict."""
    others: Sequence[int] = known.chosen
    if columns.scores.shape[1] * len(columns.inputs[column]) <= MOST_PARTNERS:
        others = [place for place in range(len(columns.inputs)) if place != column]
    places = [place for other in others for place in columns.inputs[other]]
    predicted = known.predicted - known.predicted.mean()
    spread = predicted.std()
    partners = columns.scores[:, np.asarray(places, dtype=np.intp)]
    return np.column_stack([partners, predicted / spread]) if spread > 0.0 else partners


def _held(values: Floats, most: float) -> Floats:
    """Values within so many robust deviations of their median."""
    center = np.median(values)
    deviation = np.median(np.abs(values - center)) / NORMAL_MEDIAN
    deviation = deviation if deviation > 0.0 else values.std()
    return np.clip(values, center - most * deviation, center + most * deviation)


def _error(target: Floats, found: Regression) -> float:
    return float(np.mean((target - found.predicted) ** 2))
