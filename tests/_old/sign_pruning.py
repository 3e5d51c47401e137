"""Ensembles whose members were pruned by the engine, for tests of networks without some weights."""

from __future__ import annotations

import copy
from dataclasses import replace

from bowtienet._old import BowTieRegressor, engine
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.estimators.attributes import ensemble_attributes
from bowtienet._old.inference.iterate import FitResult


def prune_members(ensemble: Ensemble, rate: float) -> Ensemble:
    """Members with the weights whose sign is sure; their bound and sums are not known."""

    def pruned(member: FitResult) -> FitResult:
        model, factors, pruning = engine.prune(member.model, member.factors, false_sign_rate=rate)
        return replace(
            member,
            model=model,
            factors=factors,
            pruning=pruning,
            elbo_terms=None,
            elbo_history=(),
            statistics=None,
        )

    return replace(ensemble, members=tuple(pruned(member) for member in ensemble.members))


def prune_by_signs(model: BowTieRegressor, rate: float) -> BowTieRegressor:
    """A fitted estimator with such members."""
    found = copy.copy(model)
    found._set(ensemble_attributes(prune_members(model.ensemble_, rate), model.solver_))
    return found
