"""What is told of a fitted model: how its fit ended, its size, its features."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from bowtienet._old.cli.tasks import Task, task_of
from bowtienet._old.ensemble.descriptions import describe_levels, describe_views
from bowtienet._old.representation.columns import describe

if TYPE_CHECKING:
    from bowtienet._old.cli.input_tables import NamedTable


def fit_facts(model: Any) -> dict[str, Any]:
    """How a fit ended."""
    noise = {"noise": describe_levels(model.ensemble_)} if task_of(model) == Task.NUMBERS else {}
    return {
        "networks": len(model.ensemble_.members),
        "networks_see": describe_views(model.ensemble_),
        **noise,
        "effective_networks": round(float(model.n_effective_members_), 2),
        "solver": model.solver_,
        "sweeps": int(model.n_iter_),
        "status": str(model.status_),
        "converged": bool(model.converged_),
        "elbo": model.elbo_,
    }


def sizes(model: Any) -> dict[str, dict[str, int]]:
    """Inputs, nodes and weights of all networks, before pruning and now."""
    found = model.sparsity_
    return {
        name: {
            "before": int(getattr(found, f"{name}_before").sum()),
            "now": int(getattr(found, f"{name}_after").sum()),
        }
        for name in ("inputs", "nodes", "weights")
    }


def column_uses(columns: Any) -> list[dict[str, str]]:
    """What becomes of every column."""
    return [{"name": column.name, "use": describe(column)} for column in columns]


@contextmanager
def without_column_notes() -> Iterator[None]:
    """Fit without notes about columns, since `column_uses` tells of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column '", UserWarning)
        yield


def relevance(model: Any) -> list[dict[str, Any]]:
    """The features, the strongest first; with several targets by the one they matter for most."""
    found = model.feature_relevance_.strongest()
    p_values = [None if math.isnan(p) else p for p in found.p_value.tolist()]
    features = zip(found.name, found.strength.tolist(), p_values, strict=True)
    by_strength = sorted(features, key=lambda feature: -feature[1])
    return [{"name": n, "strength": s, "p_value": p} for n, s, p in by_strength]


def importance(model: Any, rows: NamedTable) -> list[dict[str, Any]]:
    """What rows lose when a feature is permuted, by target, the largest loss first."""
    found = model.importance(rows.source(model))
    losses = ("log_density_drop", "log_density_error", "rmse_rise", "rmse_error")
    shape = (len(found.name), len(found.target_names))
    values = np.stack([getattr(found, name).reshape(shape) for name in losses], axis=-1)
    return [
        {"target": target, "name": found.name[row]}
        | dict(zip(losses, values[row, place].tolist(), strict=True))
        for place, target in enumerate(found.target_names)
        for row in np.argsort(-values[:, place, 0], kind="stable")
    ]
