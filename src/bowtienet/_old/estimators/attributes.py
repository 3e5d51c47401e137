"""What a fit leaves behind on its estimator, and what it warns of."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.ensemble.finiteness import check_finite
from bowtienet._old.ensemble.member import last_bound
from bowtienet._old.ensemble.stacking import effective_members
from bowtienet._old.inference.convergence import Status

BROKEN = {Status.NON_FINITE, Status.DECREASED}
NEGLIGIBLE = 0.1
"""Ensemble weight below which members that a limit cut short are no reason for a warning."""


def source_attributes(source: Source) -> dict[str, Any]:
    """What is known of the columns of X and y, by name."""
    found: dict[str, Any] = {"n_features_in_": source.n_features, "n_outputs_": source.n_targets}
    if source.feature_names is not None:
        found["feature_names_in_"] = np.asarray(source.feature_names, dtype=object)
    names = source.target_names
    if names is None:
        single = source.n_targets == 1
        names = ("y",) if single else tuple(f"y{index}" for index in range(source.n_targets))
    return {**found, "target_names_": list(names), "_single_target": source.single_target}


def ensemble_attributes(ensemble: Ensemble, solver: str) -> dict[str, Any]:
    """What is known of the members, by name; a ValueError if they are not finite."""
    check_finite(ensemble)
    weights = ensemble.weights
    heaviest = ensemble.members[int(np.argmax(weights))]
    converged = [member.status is Status.CONVERGED for member in ensemble.members]
    return {
        "ensemble_": ensemble,
        "columns_": ensemble.representation.columns,
        "member_weights_": weights,
        "n_effective_members_": effective_members(weights),
        "elbo_history_": np.asarray(heaviest.elbo_history),
        "elbo_": last_bound(heaviest),
        "elbo_terms_": heaviest.elbo_terms,
        "solver_": solver,
        "status_": heaviest.status,
        "converged_": bool(np.sum(weights[converged]) >= 0.5),
        "n_iter_": max(member.n_sweeps for member in ensemble.members),
    }


def warning_of(ensemble: Ensemble, max_iter: int, tol: float) -> str | None:
    """What to warn of when fits were cut short; None if there is nothing."""
    share: defaultdict[Status, float] = defaultdict(float)
    for member, weight in zip(ensemble.members, ensemble.weights, strict=True):
        share[member.status] += weight
    broken = sorted(status.value for status in BROKEN if share[status] > 0.0)
    if broken:
        return (
            f"Some members stopped before they converged ({', '.join(broken)}): look for "
            "values far out of line in X and y, or set a higher gate_temperature."
        )
    cut = share[Status.ITERATION_LIMIT]
    if cut >= NEGLIGIBLE:
        return (
            f"max_iter={max_iter} cut members with {cut:.0%} of the weight short: raise "
            f"max_iter (to {4 * max_iter}, say), or tol (now {tol:g}) if the "
            "predictions are good enough."
        )
    return None
