"""What plots read from a fitted estimator: its network, its names and its predictions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import chosen
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.ensemble.ensemble import Ensemble, member_views
from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.estimators.known_columns import encoded_chunks, open_known, open_known_features
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.inference.pruning import restore_shape
from bowtienet._old.representation.columns import encoded_names
from bowtienet._old.representation.representation import input_names, network_inputs


def network_of(model: Any) -> EnsembleEstimator:
    """The fitted estimator: `model` itself, or the last step of a pipeline."""
    found = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(found, EnsembleEstimator):
        kind = found.__name__ if isinstance(found, type) else type(found).__name__
        raise TypeError(
            "model must be a fitted BowTieRegressor or BowTieClassifier, or a pipeline whose last "
            f"step is one, got {kind}."
        )
    check_is_fitted(found)
    return found


def regressor_of(model: Any) -> BowTieRegressor:
    """The same, of numbers and counts."""
    found = network_of(model)
    if not isinstance(found, BowTieRegressor):
        raise TypeError(
            f"model must be a BowTieRegressor, got a {type(found).__name__}: this plot is for "
            "numbers; ReliabilityDisplay and ConfusionDisplay are for classes."
        )
    return found


def open_rows(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, **rows: Any
) -> InMemory:
    """Rows in memory as the network is asked about them, behind the other steps of a pipeline."""
    network = network_of(model)
    if isinstance(model, Pipeline) and len(model) > 1:
        X = model[:-1].transform(X)
    source = (
        open_known_features(network, X, **rows)
        if y is None
        else open_known(network, X, y, sample_weight, **rows)
    )
    if not isinstance(source, InMemory):
        raise ValueError("plots and reports need rows in memory: read X, or some of it, first.")
    return source


def feature_names(network: EnsembleEstimator, source: InMemory) -> list[str]:
    """Names of the user's columns: those of the rows, or x0, x1, ...."""
    return list(source.feature_names or (column.name for column in network.columns_))


def target_names(network: EnsembleEstimator, source: InMemory) -> list[str]:
    """Names of the targets: those of the rows, or those of training."""
    return list(source.target_names or network.target_names_)


def output_names(network: EnsembleEstimator) -> list[str]:
    """Names of a network's outputs: the targets, or more than two classes."""
    classes = getattr(network, "classes_", None)
    if classes is None or len(classes) == 2:
        return list(network.target_names_)
    return [str(label) for label in classes.tolist()]


def member_input_names(model: EnsembleEstimator, member: int) -> list[str]:
    """Names of a network's inputs, in the order of the user's columns."""
    ensemble = model.ensemble_
    names = input_names(ensemble.representation, member_views(ensemble)[member])
    return [names[place] for place in _user_order(ensemble, member)]


def encoded_features(network: EnsembleEstimator, source: InMemory) -> np.ndarray:
    """Numbers (n, encoded) that become of a table, before they are standardised."""
    found = encoded_chunks(network, source)
    return np.concatenate([to_numpy(chunk).astype(float) for chunk in found])


def chosen_member(model: EnsembleEstimator, member: Any) -> int:
    """Place of a member: the one with the largest weight for None."""
    if member is None:
        return int(np.argmax(model.member_weights_))
    return chosen(member, len(model.ensemble_.members), "member")


def member_weights(
    model: EnsembleEstimator, member: int, *, in_place: bool = False
) -> list[np.ndarray]:
    """Mean weights (D, K+1) of every layer, with the inputs in the order of `member_input_names`.

    Hidden units are those that are left or, with `in_place`, all, at their places before pruning.
    """
    ensemble = model.ensemble_
    found = ensemble.members[member]
    means = [to_numpy(layer.weights.mean).astype(float) for layer in found.factors.layers]
    places = np.argsort(_user_order(ensemble, member))
    n_inputs = len(places)
    if in_place:
        means = restore_shape(means, found.pruning)
    elif found.pruning is not None:
        places = places[found.pruning.inputs]
    first = np.zeros((len(means[0]), 1 + n_inputs))
    first[:, 0], first[:, 1 + places] = means[0][:, 0], means[0][:, 1:]
    return [first, *means[1:]]


def member_column_names(model: EnsembleEstimator, member: int) -> list[str]:
    """Names of the columns that a network sees, in the user's order; one in bins counts once."""
    names = encoded_names(model.ensemble_.representation.columns)
    return [names[place] for place in np.unique(_input_columns(model.ensemble_, member))]


def member_column_weights(model: EnsembleEstimator, member: int) -> list[np.ndarray]:
    """`member_weights`, but with one input for each name of `member_column_names`.

    Of the weights between the components of a column and a unit, the largest in size.
    """
    first, *others = member_weights(model, member)
    columns = np.sort(_input_columns(model.ensemble_, member))
    begins = np.flatnonzero(np.diff(columns, prepend=-1))
    found, units = np.zeros((len(first), 1 + begins.size)), np.arange(len(first))
    found[:, 0] = first[:, 0]
    for place, ends in enumerate(pairwise([*begins, columns.size])):
        own = first[:, 1:][:, slice(*ends)]
        found[:, 1 + place] = own[units, np.argmax(np.abs(own), axis=1)]
    return [found, *others]


def _input_columns(ensemble: Ensemble, member: int) -> np.ndarray:
    """The encoded column that each of a network's inputs belongs to."""
    return network_inputs(ensemble.representation, member_views(ensemble)[member])


def _user_order(ensemble: Ensemble, member: int) -> np.ndarray:
    """The network's inputs in the order of the user's columns."""
    return np.argsort(_input_columns(ensemble, member), kind="stable")
