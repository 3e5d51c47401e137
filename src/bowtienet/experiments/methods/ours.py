"""The bow tie network in the ways that the experiments compare.

Settings beyond the widths of hidden layers are parameters of `BowTieRegressor`, and win over those
that give a method its name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.evaluation.methods import Forecaster, Method, central

_RATE = 0.01
"""The paper's bound on the false discovery rate."""


def single(hidden: tuple[int, ...], **settings: Any) -> Method:
    """One member, fitted by coordinate ascent."""
    return _fitted("single", hidden, {"n_estimators": 1} | settings)


def ensemble(hidden: tuple[int, ...], **settings: Any) -> Method:
    """The estimator as it comes: several members, stacked."""
    return _fitted("ensemble", hidden, settings)


def svi(hidden: tuple[int, ...], **settings: Any) -> Method:
    """One member, fitted to minibatches."""
    return _fitted("svi", hidden, {"solver": "svi", "n_estimators": 1} | settings)


def svi_ensemble(hidden: tuple[int, ...], **settings: Any) -> Method:
    """Several members, fitted to minibatches and stacked."""
    return _fitted("svi_ensemble", hidden, {"solver": "svi"} | settings)


def gaussian_prior(hidden: tuple[int, ...], **settings: Any) -> Method:
    """One member whose weights have a Gaussian prior instead of one that shrinks."""
    return _fitted("gaussian", hidden, {"prior": "gaussian", "n_estimators": 1} | settings)


def pruned(hidden: tuple[int, ...], **settings: Any) -> Method:
    """One member, without the weights whose sign is not sure."""
    given = {"n_estimators": 1, "false_sign_rate": _RATE} | settings

    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        model = _regressor(hidden, given, seed).fit(X, y).prune()
        note = _share_kept(model)
        return lambda new: central(model.predict_dist(new), coverage, note)

    return Method(name="pruned", fit=fit)


def _fitted(name: str, hidden: tuple[int, ...], settings: dict[str, Any]) -> Method:
    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        model = _regressor(hidden, settings, seed).fit(X, y)
        return lambda new: central(model.predict_dist(new), coverage)

    return Method(name=name, fit=fit)


def _regressor(hidden: tuple[int, ...], settings: dict[str, Any], seed: int) -> BowTieRegressor:
    return BowTieRegressor(hidden, **{"n_jobs": 1, "random_state": seed} | settings)


def _share_kept(model: BowTieRegressor) -> str:
    kept, before = (
        int(np.sum(weights))
        for weights in (model.sparsity_.weights_after, model.sparsity_.weights_before)
    )
    return f"{kept:,} of {before:,} weights kept ({100.0 * kept / before:.0f} %)"
