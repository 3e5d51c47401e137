"""The structure fit of an estimator: rows in, which of its columns matter out, and kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.rows import Rows
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.checkpoint import digest
from bowtienet._old.ensemble.count_ensemble import is_counts
from bowtienet._old.ensemble.ensemble import Ensemble, outcome_of
from bowtienet._old.ensemble.structure import (
    FEWEST_ROWS,
    MOST_ROWS,
    Structure,
    at_rate,
    find_structure,
)
from bowtienet._old.estimators.known_columns import sampled_rows
from bowtienet._old.model.outcomes import Classes
from bowtienet._old.representation.columns import owners

MOST_CLASSES = 20
"""Classes, the most frequent ones, whose indicators are tested."""


def structure_of(estimator: Any, source: Source, rate: float, seed: int) -> Structure:
    """Which columns matter; the answer of the last call if the rows and the seed are the same."""
    rows = sampled_rows(estimator, source, MOST_ROWS, seed)
    if rows.inputs.shape[0] < FEWEST_ROWS:
        raise ValueError(
            f"X has {rows.inputs.shape[0]} rows that count: structure needs at least {FEWEST_ROWS}."
        )
    identity = f"{seed} {digest(vars(rows).values())}"
    if getattr(estimator, "_structure_rows", None) != identity:
        estimator.structure_ = find_structure(
            rows.inputs,
            owners(estimator.columns_),
            *_tested_targets(estimator.ensemble_, rows),
            [column.name for column in estimator.columns_],
            false_discovery_rate=rate,
            seed=seed,
        )
        estimator._structure_rows = identity
    estimator.structure_ = at_rate(estimator.structure_, rate)
    return estimator.structure_


def _tested_targets(ensemble: Ensemble, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Targets (n, D) that columns may be relevant for, and the weights (n,) of their residuals.

    Of several classes their indicators, since numbers of classes have no order. Of counts y with
    exposure e the rates y / e: with weights sqrt(e) residuals (y - e r) / sqrt(e) are about as
    large for all exposures.
    """
    targets, weights = to_numpy(rows.targets), to_numpy(rows.weights)
    if is_counts(ensemble):
        exposures = np.exp(targets[:, 1:])
        return targets[:, :1] / exposures, weights * np.sqrt(exposures[:, 0])
    if not isinstance(outcome_of(ensemble), Classes):
        return targets, weights
    codes, counts = np.unique(targets[:, 0], return_counts=True)
    frequent = codes[np.argsort(-counts, kind="stable")[:MOST_CLASSES]]
    return (targets == frequent).astype(np.float64), weights
