"""The structure fit of an estimator: rows in, which of its columns matter out, and kept."""

from __future__ import annotations

from typing import Any

from bowtienet.data.source import Source
from bowtienet.ensemble.checkpoint import digest
from bowtienet.ensemble.structure import (
    FEWEST_ROWS,
    MOST_ROWS,
    Structure,
    at_rate,
    check_structure,
    find_structure,
)
from bowtienet.estimators.known_columns import sampled_rows
from bowtienet.representation.columns import owners


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
            rows.targets,
            rows.weights,
            [column.name for column in estimator.columns_],
            false_discovery_rate=rate,
            seed=seed,
        )
        estimator._structure_rows = identity
    estimator.structure_ = at_rate(estimator.structure_, rate)
    return estimator.structure_


def structure_content(estimator: Any) -> dict[str, Any] | None:
    """What is saved of a structure fit; None if there was none."""
    found: Structure | None = getattr(estimator, "structure_", None)
    if found is None:
        return None
    return {"rows": estimator._structure_rows, "found": vars(found)}


def structure_attributes(content: dict[str, Any] | None, n_columns: int) -> dict[str, Any]:
    """Attributes from what was saved, checked."""
    if content is None:
        return {}
    found = Structure(**content["found"])
    check_structure(found, n_columns)
    return {"structure_": found, "_structure_rows": str(content["rows"])}
