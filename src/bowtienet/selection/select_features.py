"""Which columns of a table matter, with a share of false ones that holds.

A column matters if the target depends on it given all other columns. Each is tested by conditional
randomisation, and the p-values by Benjamini and Hochberg: the expected share of false columns among
those selected is at most the rate, as far as the columns' distribution given the others is known
(`conditional`). Nothing is assumed of the target, or of the regression, which decides how much is
found and not how much of it is false.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, median_abs_deviation
from sklearn.base import BaseEstimator

from bowtienet._arrays import one_blas_thread
from bowtienet._params import share
from bowtienet.selection.conditional import fit_conditional, p_value, scores_of
from bowtienet.selection.regression import regress, shapes_of, standardized
from bowtienet.tables.columns import learn_columns, owners
from bowtienet.tables.door import Table, open_rows, take_training
from bowtienet.tables.representation import fit_scaling, to_scale

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class FeatureSelection:
    """Which columns matter; it prints as a table, the smallest p-values first."""

    names: tuple[str, ...]
    """Names of all columns; x0, x1, ... if they have none."""
    p_values: Floats
    """(columns,): for no dependence on a column given all others; 1 for constant columns."""
    selected: NDArray[np.bool_]
    """(columns,)."""
    false_discovery_rate: float
    """Largest expected share of false columns among those selected."""

    def __repr__(self) -> str:
        width, rate = max(map(len, self.names)), self.false_discovery_rate
        lines = [f"{self.selected.sum()} columns selected, false discovery rate at most {rate:g}"]
        for column in np.argsort(self.p_values, kind="stable"):
            mark = "  selected" if self.selected[column] else ""
            lines.append(f"{self.names[column]:<{width}}  p = {self.p_values[column]:.2g}{mark}")
        return "\n".join(lines)


def select_features(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    outcome: str = "auto",
    exposure: Any = None,
    false_discovery_rate: float = 0.1,
) -> FeatureSelection:
    """Columns on which the target depends given all others, at a false discovery rate.

    Parameters
    ----------
    X : array or frame (n, columns)
        Numbers, categories, dates, truth values; values may be missing. More than 5,000 rows are
        sampled at random.
    y : array (n,) or (n, targets), or name(s)
        Targets, or the names of their columns in the frame X. With several targets a column is
        selected if it matters for one of them.
    sample_weight : array (n,) or name, optional
        How much each row counts; weight 0 is absence.
    outcome : {"auto", "numbers", "classes", "counts"}
        Kind of the targets; "auto": counts with an exposure, numbers if they are numeric, classes
        otherwise.
    exposure : array (n,), optional
        Positive exposures of counts.
    false_discovery_rate : float in (0, 1)
        Largest expected share of false columns among those selected.

    Returns
    -------
    FeatureSelection
        With `names`, `p_values` and `selected`; it prints as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet import select_features
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = np.abs(X[:, 0]) + X[:, 2] + rng.normal(size=300)
    >>> select_features(X, y).selected
    array([ True, False,  True, False])
    """
    rate = share(false_discovery_rate, "false_discovery_rate")
    table, row_weights, targets, weights = _opened(X, y, sample_weight, outcome, exposure)
    # Without the targets: a statistic of them would make every category look as if it mattered.
    no_targets = np.zeros((table.n_rows, 0))
    learnt, rows = learn_columns(table, no_targets, row_weights, max_categories=30)
    inputs, n_columns = to_scale(fit_scaling(rows, row_weights), rows), len(learnt)
    columns = scores_of(inputs, owners(learnt))
    p_values = np.ones(n_columns)
    # Such that a column alone can be selected at 0.05.
    n_draws = min(50_000, max(1_000, 25 * n_columns) * targets.shape[1])
    with one_blas_thread():  # products are small
        for target in targets.T:
            tested = _p_values(*columns, n_columns, target, weights, n_draws)
            p_values = np.minimum(p_values, targets.shape[1] * tested)
    return FeatureSelection(
        names=tuple(column.name for column in learnt),
        p_values=p_values,
        selected=false_discovery_control(p_values) <= rate,
        false_discovery_rate=rate,
    )


def _opened(
    X: Any, y: Any, sample_weight: Any, outcome: str, exposure: Any
) -> tuple[Table, Floats, Floats, Floats]:
    """Rows and their weights, targets (n, D) that may depend on columns, weights of residuals.

    Of classes their indicators, since numbers of classes have no order. Of counts y with exposure e
    the rates y / e: with weights √e residuals (y - e r) / √e are about as large for all exposures.
    """
    if outcome not in ("auto", "numbers", "classes", "counts"):
        raise ValueError(f"outcome must be auto, numbers, classes or counts, got {outcome!r}.")
    if exposure is not None and outcome not in ("auto", "counts"):
        raise ValueError(f"exposure is for counts, but outcome is {outcome!r}: leave one out.")
    given, labels = (BaseEstimator(), X, y, sample_weight, exposure), outcome == "classes"
    try:
        training = open_rows(*given, labels=labels)
    except ValueError:
        if outcome != "auto" or exposure is not None:
            raise
        training, labels = open_rows(*given, labels=True), True
    n_rows = training.table.n_rows
    if n_rows < 20:
        raise ValueError(f"select_features needs 20 rows with weight, got {n_rows}.")
    rows = np.sort(np.random.default_rng(0).permutation(n_rows)[:5_000])
    training = take_training(training, rows)
    targets, weights = training.targets, training.weights
    by_row = weights
    if labels:
        classes, counts = np.unique(targets, return_counts=True)
        # Of two classes each says all of the other.
        frequent = np.argsort(-counts, kind="stable")[: 20 if len(classes) > 2 else 1]
        targets = (targets[:, None] == classes[frequent]).astype(np.float64)
    elif (outcome == "counts" or exposure is not None) and np.any(targets < 0.0):
        raise ValueError(f"y must be counts from 0 on, got {targets.min():g}.")
    if training.exposure is not None:
        targets = targets / training.exposure[:, None]
        by_row = weights * np.sqrt(training.exposure)
    return training.table, weights, targets, by_row / by_row.mean()


def _p_values(
    scores: Floats,
    owners: NDArray[np.intp],
    is_bent: NDArray[np.bool_],
    n_columns: int,
    target: Floats,
    weights: Floats,
    most_draws: int,
) -> Floats:
    """p-values of all columns for one target."""
    p_values = np.ones(n_columns)
    target = standardized(_held(target, 4.0))
    if not target.any():
        return p_values
    shapes = shapes_of(scores, is_bent)
    whole, chosen = regress(shapes, owners, target)
    for column in np.unique(owners[owners >= 0]):
        is_own = owners == column
        known = regress(shapes, owners, target, column)[0] if column in chosen else whole
        ridge, draw = fit_conditional(scores, is_own)
        residuals = _held(target - known, 2.5)
        residuals = residuals - residuals.mean()
        explained = ridge.basis @ (ridge.shrinkage * (ridge.basis.T @ residuals))
        residuals = weights * (residuals - explained)
        values = scores[:, is_own]
        # What products are looked for with: other inputs, of many those that predict, and what they
        # predict.
        is_partner = (owners >= 0) & ~is_own
        if len(owners) * is_own.sum() > 200:
            is_partner &= np.isin(owners, chosen)
        p_values[column] = p_value(
            values,
            is_bent[is_own],
            draw,
            residuals - residuals.mean(),
            np.column_stack([scores[:, is_partner], standardized(known)]),
            # Of the values, so that the order of columns does not matter.
            np.random.default_rng(zlib.crc32(values.tobytes())),
            most_draws,
        )
    return p_values


def _held(values: Floats, most: float) -> Floats:
    """Values within so many robust deviations of their median, for noise with heavy tails."""
    center, deviation = np.median(values), median_abs_deviation(values, scale="normal")
    deviation = deviation if deviation > 0.0 else values.std()
    return np.clip(values, center - most * deviation, center + most * deviation)
