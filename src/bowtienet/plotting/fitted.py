"""What plots read from a fitted estimator: its network, its names and its predictions.

This is the only module of the plots that knows how a model is laid out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import to_numpy
from bowtienet.estimators.preparing import Column, output_names
from bowtienet.estimators.pruning import FeatureRelevance
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.estimators.table_pipeline import TablePipeline
from bowtienet.estimators.tables import input_names, read_inputs
from bowtienet.inference.pruning import restore_shape
from bowtienet.plotting._checks import chosen
from bowtienet.prediction.mixture import GaussianMixture


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
    """Names of the inputs of the network."""
    return input_names(network_of(model))


def learnt_columns(model: Any) -> tuple[Column, ...]:
    """What the model learnt of each of the user's columns; empty for other models."""
    return model.preparer_.columns_ if isinstance(model, TablePipeline) else ()


def relevance_of(model: Any) -> FeatureRelevance:
    """Relevance of the user's columns; one that became several inputs counts by the strongest."""
    found, columns = network_of(model).feature_relevance_, learnt_columns(model)
    if not columns:
        return found
    owners = np.repeat(np.arange(len(columns)), [len(output_names([c])) for c in columns])
    probability, strength = (
        np.zeros((len(columns), *values.shape[1:]))
        for values in (found.probability, found.strength)
    )
    np.maximum.at(probability, owners, found.probability)
    np.maximum.at(strength, owners, found.strength)
    names = np.array([column.name for column in columns], dtype=object)
    return FeatureRelevance(name=names, probability=probability, strength=strength)


def encoded_features(model: Any, X: Any) -> np.ndarray:
    """Numbers (n, inputs) that the network sees of a table, before they are standardised."""
    found = model.preparer_.transform(X) if isinstance(model, TablePipeline) else X
    return to_numpy(read_inputs(found)).astype(float)


def feature_names(model: Any) -> list[str]:
    """Names of the user's columns; none if the model finds them by their place."""
    first = model.preparer_ if isinstance(model, TablePipeline) else model
    return [str(name) for name in getattr(first, "feature_names_in_", ())]


def target_names(model: Any) -> list[str]:
    """Names of the targets that the model knows."""
    return [str(name) for name in getattr(model, "target_names_", ())]


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
    columns = ensemble.column_order
    n_inputs = columns.size
    if in_place:
        means = restore_shape(means, found.pruning)
    elif found.pruning is not None:
        columns = columns[found.pruning.inputs]
    first = np.zeros((len(means[0]), 1 + n_inputs))
    first[:, 0], first[:, 1 + columns] = means[0][:, 0], means[0][:, 1:]
    return [first, *means[1:]]


def _kind(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
