"""Files of estimators: the classes that they may hold, and reading them."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

import numpy as np

from bowtienet import persistence
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass
from bowtienet.ensemble.ensemble import Ensemble
from bowtienet.ensemble.hinges import Hinges
from bowtienet.ensemble.portfolio import Recipe
from bowtienet.ensemble.stacking import Stack
from bowtienet.estimators._ensemble import FittedEnsemble
from bowtienet.estimators._variational import FittedNetwork
from bowtienet.inference.statistics import LayerStatistics, Statistics
from bowtienet.inference.stochastic import StochasticState
from bowtienet.model import Prior
from bowtienet.model.architecture import Architecture
from bowtienet.model.model import BowTieModel
from bowtienet.networks.networks import Networks
from bowtienet.outcomes import Binary, Classes, Counts, Gaussian, Softmax, StudentT
from bowtienet.posterior.factors import LayerFactors, Posterior
from bowtienet.tables.door import Table
from bowtienet.tables.representation import Representation
from bowtienet.tables.texts import Column
from bowtienet.tables.views import View
from bowtienet.tables.warp import Warp

CONTAINERS = (
    Architecture,
    Binary,
    BowTieModel,
    Classes,
    Column,
    Counts,
    Ensemble,
    FittedEnsemble,
    FittedNetwork,
    Gaussian,
    GaussianRows,
    GeneralizedInverseGaussian,
    HalfCauchy,
    Hinges,
    InverseGamma,
    LayerFactors,
    LayerStatistics,
    Networks,
    PointMass,
    Posterior,
    Prior,
    Recipe,
    Representation,
    Softmax,
    Stack,
    Statistics,
    StochasticState,
    StudentT,
    View,
    Warp,
)
"""The dataclasses that a file may hold; no other class is ever built."""


def save_estimator(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write parameters and what was fitted."""
    parameters = estimator.get_params(deep=False)
    if not isinstance(parameters["random_state"], Integral):
        parameters["random_state"] = None  # a generator has no place in a file
    content = {"parameters": parameters, "fitted": estimator._content()}
    persistence.save(path, type(estimator).__name__, content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator that its `save` wrote; nothing that the file holds is run.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        Of the class that was saved, with its parameters, ready to predict.
    """
    from bowtienet.estimators.classifier import BowTieClassifier
    from bowtienet.estimators.counts import BowTieCountRegressor
    from bowtienet.estimators.network import BowTieNetwork
    from bowtienet.estimators.network_classifier import BowTieNetworkClassifier
    from bowtienet.estimators.regressor import BowTieRegressor

    practical = (BowTieClassifier, BowTieCountRegressor, BowTieRegressor)
    everyone: tuple[Any, ...] = (BowTieNetwork, BowTieNetworkClassifier, *practical)
    classes = {cls.__name__: cls for cls in everyone}
    kind, content = persistence.load(path, CONTAINERS)
    if kind not in classes:
        raise ValueError(f"{path} holds a {kind}, which this version does not know.")
    try:
        estimator = classes[kind](**content["parameters"])
        vars(estimator).update(content["fitted"])
        estimator._validate_params()
        _predict_nothing(estimator)
    except Exception as error:
        raise ValueError(f"{path} is damaged: {error}. Fit and save again.") from error
    return estimator


def _predict_nothing(estimator: Any) -> None:
    """Predict rows without a single value: arrays whose shapes do not go together fail here."""
    columns, n_rows = estimator._fitted.representation.columns, 7  # one goes with every shape
    table = Table(
        names=tuple(column.name for column in columns),
        matrix=None,
        columns=(np.full(n_rows, None),) * len(columns),
        n_rows=n_rows,
    )
    if hasattr(estimator, "classes_"):
        answers, width = [estimator.predict_proba(table)], len(estimator.classes_)
    else:
        answers, width = estimator.predict(table, return_std=True), len(estimator._target_names)
    for answer in answers:
        if answer.shape not in ((n_rows,), (n_rows, width)):
            raise ValueError("its arrays do not go together")
        if not np.all(np.isfinite(answer)):
            raise ValueError("it predicts no numbers")
    if len(columns) != estimator.n_features_in_:
        raise ValueError("it has other columns")
