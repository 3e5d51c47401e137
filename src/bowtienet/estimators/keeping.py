"""What is written of an estimator, and how it comes back."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from bowtienet import persistence
from bowtienet.prediction.ensemble import check_ensemble

Estimator = TypeVar("Estimator", bound=BaseEstimator)

FITTED = (
    "ensemble_",
    "member_weights_",
    "n_effective_members_",
    "elbo_history_",
    "elbo_",
    "elbo_terms_",
    "solver_",
    "status_",
    "converged_",
    "n_iter_",
    "n_outputs_",
    "n_features_in_",
    "_single_target",
    "_recent_densities",
)


def save_estimator(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Settings, feature names and all fitted attributes in one file."""
    names = getattr(estimator, "feature_names_in_", None)
    content = {
        "settings": {
            name: _plain(name, value) for name, value in estimator.get_params(deep=False).items()
        },
        "feature_names": None if names is None else [str(name) for name in names],
        "fitted": {name: getattr(estimator, name, None) for name in FITTED},
    }
    persistence.save(path, type(estimator).__name__, content)


def load_estimator(cls: type[Estimator], path: str | os.PathLike[str]) -> Estimator:
    """The estimator that was saved; its members are checked against one another."""
    content = persistence.load(path, cls.__name__)
    try:
        estimator = cls(**content["settings"])
        fitted = {name: content["fitted"][name] for name in FITTED}
        names = content["feature_names"]
        estimator._validate_params()
        check_ensemble(fitted["ensemble_"], fitted["n_features_in_"], fitted["n_outputs_"])
        if names is not None and len(names) != fitted["n_features_in_"]:
            raise ValueError(f"{len(names)} feature names for {fitted['n_features_in_']} columns")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)} does not hold a complete {cls.__name__} ({error}): save it again."
        ) from error
    for name, value in fitted.items():
        setattr(estimator, name, value)
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    return estimator


def _plain(name: str, value: Any) -> Any:
    """A setting as it can be written: not the state of a generator, nor a path of this machine."""
    if name == "random_state" and not isinstance(value, (int, np.integer, type(None))):
        return None
    if name == "checkpoint":
        return None
    return value
