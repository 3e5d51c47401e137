"""What plots read from a fitted estimator: its network, its names and its predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import to_numpy
from bowtienet.estimators.reading import encoded_chunks, open_known_features
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.inference.pruning import restore_shape
from bowtienet.plotting._checks import chosen
from bowtienet.prediction.mixture import GaussianMixture
from bowtienet.representation import columns
from bowtienet.representation.columns import Column


def network_of(model: Any) -> BowTieRegressor:
    """The fitted `BowTieRegressor`: `model` itself, or the last step of a pipeline."""
    found = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(found, BowTieRegressor):
        raise TypeError(
            "model must be a fitted BowTieRegressor or a pipeline whose last step is one, got "
            f"{_kind(found)}."
        )
    check_is_fitted(found)
    return found


def encoded_names(model: Any) -> list[str]:
    """Names of the inputs of the network: several for a column of categories."""
    return columns.encoded_names(network_of(model).columns_)


def encoded_features(model: BowTieRegressor, X: Any) -> np.ndarray:
    """Numbers (n, inputs) that the network sees of a table, before they are standardised."""
    found = encoded_chunks(model, open_known_features(model, X))
    return np.concatenate([to_numpy(chunk).astype(float) for chunk in found])


def learnt_columns(model: Any) -> tuple[Column, ...]:
    """What a model learnt of the columns of a table; nothing if it does not say."""
    return getattr(model, "columns_", ())


def target_names(model: Any) -> list[str]:
    """Names of the targets; none if the model knows none."""
    found = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return list(getattr(found, "target_names_", ()))


def predictive(model: Any, X: Any) -> GaussianMixture:
    """``model.predict_dist(X)``, also of a pipeline that knows `predict` only."""
    if isinstance(model, Pipeline) and not hasattr(model, "predict_dist"):
        return predictive(model.steps[-1][1], model[:-1].transform(X) if len(model) > 1 else X)
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


def chosen_member(model: BowTieRegressor, member: Any) -> int:
    """Place of a member: the one with the largest weight for None."""
    if member is None:
        return int(np.argmax(model.member_weights_))
    return chosen(member, len(model.ensemble_.members), "member")


def member_weights(
    model: BowTieRegressor, member: int, *, in_place: bool = False
) -> list[np.ndarray]:
    """Mean weights (D, K+1) of every layer, with the inputs in the order of `encoded_names`.

    Hidden units are those that are left or, with `in_place`, all, at their places before pruning.
    """
    ensemble = model.ensemble_
    found = ensemble.members[member]
    means = [to_numpy(layer.weights.mean).astype(float) for layer in found.factors.layers]
    places = ensemble.representation.column_order
    n_inputs = len(places)
    if in_place:
        means = restore_shape(means, found.pruning)
    elif found.pruning is not None:
        places = places[found.pruning.inputs]
    first = np.zeros((len(means[0]), 1 + n_inputs))
    first[:, 0], first[:, 1 + places] = means[0][:, 0], means[0][:, 1:]
    return [first, *means[1:]]


def _kind(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
