"""The bow tie network in the forms that the experiments compare.

This is the one file of the experiments that knows how a `BowTieRegressor` is made and what is
inside a fitted one.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from benchmarks._old.paper.methods.common import Fit, Fitted
from bowtienet._old import BowTieRegressor, FitOptions, engine
from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.ensemble.ensemble import member_views
from bowtienet._old.ensemble.structure import Structure
from bowtienet._old.estimators.attributes import ensemble_attributes
from bowtienet._old.inference.convergence import Status
from bowtienet._old.plotting.fitted import chosen_member, member_weights
from bowtienet._old.representation import representation

_RATE = 0.01
"""The paper's bound on the share of kept weights with a wrong sign."""
_OPTIONS = tuple(FitOptions().get_params())
"""Settings that few people touch."""


def regressor(hidden: tuple[int, ...], **settings: Any) -> BowTieRegressor:
    """The estimator with these settings, the only place that makes one."""
    options = {name: settings.pop(name) for name in _OPTIONS if name in settings}
    return BowTieRegressor(hidden, **settings, options=FitOptions(**options))


def single(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """One member, fitted by coordinate ascent."""
    return ensemble(hidden, **{"n_estimators": 1} | settings)


def ensemble(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """The estimator at its defaults: several members, stacked."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        model = regressor(hidden, **{"n_jobs": 1, "random_state": seed} | settings).fit(X, y)
        return Fitted(model.predict_dist)

    return fit


def svi(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """One member, fitted to minibatches."""
    return single(hidden, **{"solver": "svi"} | settings)


def svi_ensemble(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """Several members, fitted to minibatches and stacked."""
    return ensemble(hidden, **{"solver": "svi"} | settings)


def gaussian_prior(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """One member whose weights have a Gaussian prior instead of one that shrinks."""
    return single(hidden, **{"prior": "gaussian"} | settings)


def pruned(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """One small network in place of the ensemble: its `prune` at the defaults."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        given = {"n_jobs": 1, "random_state": seed} | settings
        model = regressor(hidden, **given).fit(X, y).prune(X, y)
        found = model.pruning_
        note = (
            f"{sum(found.kept)} of {len(found.kept)} columns, {found.units_after} units and "
            f"{found.weights_after} weights kept"
        )
        return Fitted(model.predict_dist, note)

    return fit


def pruned_signs(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """One member without the weights whose sign is uncertain, the paper's rule."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        given = {"n_estimators": 1, "n_jobs": 1, "random_state": seed} | settings
        model = prune_by_signs(regressor(hidden, **given).fit(X, y), _RATE)
        kept, before = model.sparsity_.weights_after.sum(), model.sparsity_.weights_before.sum()
        note = f"{kept:,} of {before:,} weights kept ({100.0 * kept / before:.0f} %)"
        return Fitted(model.predict_dist, note)

    return fit


def prune_by_signs(model: BowTieRegressor, rate: float) -> BowTieRegressor:
    """The paper's pruning of a fitted estimator: each member keeps weights whose sign is sure."""
    members = []
    for member in model.ensemble_.members:
        smaller, factors, pruning = engine.prune(member.model, member.factors, false_sign_rate=rate)
        members.append(
            replace(
                member,
                model=smaller,
                factors=factors,
                pruning=pruning,
                elbo_terms=None,
                elbo_history=(),
                statistics=None,
            )
        )
    pruned = copy.copy(model)
    ensemble = replace(model.ensemble_, members=tuple(members))
    pruned._set(ensemble_attributes(ensemble, model.solver_))
    return pruned


def fit_for_figures(
    X: np.ndarray, y: np.ndarray, hidden: tuple[int, ...], settings: dict[str, Any], n_jobs: int
) -> BowTieRegressor:
    """A fitted estimator whose networks see plain columns and targets, as the paper's do.

    A fit that was interrupted raises, so that no cache keeps it.
    """
    plain = {"features": "standard", "target_transform": "none"}
    model = regressor(hidden, n_jobs=n_jobs, **plain | settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    members = model.ensemble_.members
    if len(members) < model.n_estimators or any(
        member.status is Status.INTERRUPTED for member in members
    ):
        raise KeyboardInterrupt
    return model


def structure_of(table: pd.DataFrame, settings: dict[str, Any]) -> Structure:
    """Which columns of a table, the target last, matter by the default `structure`."""
    X, y = table.iloc[:, :-1], table.iloc[:, -1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return BowTieRegressor(**settings).fit(X, y).structure(X, y)


def network_rows(model: BowTieRegressor, X: np.ndarray, y: np.ndarray) -> Rows:
    """Rows as the first network of a fitted estimator sees them."""
    ensemble = model.ensemble_
    rows = representation.standardized_rows(ensemble.representation, build_rows(X, y))
    return representation.network_rows(member_views(ensemble)[0], rows)


def best_member(model: BowTieRegressor) -> int:
    """The place of the member with the largest weight."""
    return chosen_member(model, None)


def mean_weights(model: BowTieRegressor, *, in_place: bool = False) -> list[np.ndarray]:
    """Mean weights (D, K+1) of the layers of the best member, the bias first.

    Hidden units are those that are left or, with `in_place`, all, at their places before pruning.
    """
    return member_weights(model, best_member(model), in_place=in_place)
