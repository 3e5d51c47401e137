"""What pictures read from a fitted estimator: its network, its names and its predictions."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import to_numpy
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.estimators.tables import input_names
from bowtienet.inference.pruning import restore_shape
from bowtienet.plotting._checks import chosen
from bowtienet.prediction.mixture import GaussianMixture


def network_of(model: Any) -> BowTieRegressor:
    """The fitted `BowTieRegressor`: `model` itself, or the last step of a pipeline."""
    found = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(found, BowTieRegressor):
        where = "a pipeline that ends with " if isinstance(model, Pipeline) else ""
        raise TypeError(
            "model must be a fitted BowTieRegressor or a pipeline whose last step is one, got "
            f"{where}{_kind(found)}."
        )
    check_is_fitted(found)
    return found


def names_of(model: Any) -> list[str]:
    """Names of the network's inputs: those it was fitted to, or what the steps before it say."""
    network = network_of(model)
    unnamed = not hasattr(network, "feature_names_in_")
    if unnamed and isinstance(model, Pipeline) and len(model) > 1:
        try:
            return [str(name) for name in model[:-1].get_feature_names_out()]
        except (AttributeError, ValueError):  # not every step can name what it makes
            pass
    return input_names(network)


def predictive(model: Any, X: Any) -> GaussianMixture:
    """``model.predict_dist(X)``, also of a pipeline that knows `predict` only."""
    if isinstance(model, Pipeline) and not hasattr(model, "predict_dist"):
        last = model.steps[-1][1]
        if hasattr(last, "predict_dist"):
            check_is_fitted(last)
            return predictive(last, model[:-1].transform(X) if len(model) > 1 else X)
    if not hasattr(model, "predict_dist"):
        raise TypeError(
            "model must predict distributions by predict_dist(X), as BowTieRegressor does; "
            f"{_kind(model)} does not."
        )
    found = model.predict_dist(X)
    if not isinstance(found, GaussianMixture):
        raise TypeError(
            f"predict_dist of {_kind(model)} must return a GaussianMixture, got {_kind(found)}: "
            "make one with bowtienet.prediction.mixture.build_mixture."
        )
    return found


def target_names(model: Any) -> list[str] | None:
    """Names of the targets, if the model knows them."""
    names = getattr(model, "target_names_", None)
    return None if names is None else [str(name) for name in names]


def target_name(model: Any, y: Any, target: Any) -> str:
    """What the chosen target is called: by `y`, by the model, or else "target"."""
    if isinstance(y, str):
        return y
    several = (
        list(y)
        if isinstance(y, list | tuple)
        else list(getattr(y, "column_names", getattr(y, "columns", [])))
    )
    if not several or not all(isinstance(name, str) for name in several):
        own = getattr(y, "name", None)
        several = [str(own)] if own else target_names(model) or []
    known = isinstance(target, Integral) and target in range(len(several))
    return str(several[target]) if known else "target"


def chosen_member(model: BowTieRegressor, member: Any) -> int:
    """Place of a member: the heaviest for None."""
    count = len(model.ensemble_.members)
    if member is None:
        return int(np.argmax(model.member_weights_))
    return chosen(member, count, "member")


def member_weights(
    model: BowTieRegressor, member: int, *, in_place: bool = False
) -> list[np.ndarray]:
    """Mean weights (D, K+1) of every layer, with the inputs in the order of the user's table.

    Hidden units are those that are left or, with `in_place`, all, at their places before pruning.
    """
    ensemble = model.ensemble_
    found = ensemble.members[member]
    means = [to_numpy(layer.weights.mean).astype(float) for layer in found.factors.layers]
    columns = ensemble.column_order
    if in_place:
        means = restore_shape(means, found.pruning)
    elif found.pruning is not None:
        columns = columns[found.pruning.inputs]
    first = np.zeros((len(means[0]), 1 + model.n_features_in_))
    first[:, 0], first[:, 1 + columns] = means[0][:, 0], means[0][:, 1:]
    return [first, *means[1:]]


def _kind(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
