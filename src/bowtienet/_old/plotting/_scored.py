"""What displays that compare predictions with targets, or with labels, have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import chosen
from bowtienet._old.ensemble.count_ensemble import is_counts
from bowtienet._old.evaluation.checks import read_targets
from bowtienet._old.evaluation.count_metrics import is_discrete, randomized_pit
from bowtienet._old.evaluation.metrics import pit
from bowtienet._old.evaluation.scorers import class_forecast
from bowtienet._old.plotting.fitted import open_rows, regressor_of, target_names
from bowtienet._old.prediction.mixture import Mixture

_SEED = 0
"""Of the draws that make F(y) of counts uniform: the same plot every time."""


class ScoredDisplay:
    """A display that `from_predictions` draws from targets and their predictive distributions."""

    _names_its_target = False

    from_predictions: ClassVar[Any]

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, target: int = 0, **settings: Any
    ) -> Self:
        """Draw the predictions for `X` against targets.

        Parameters
        ----------
        model : BowTieRegressor or pipeline that ends with one
            Fitted. Of other models draw `from_predictions`.
        X : table (n, columns)
            Held-out rows.
        y : array (n,) or (n, outputs), or names
            Targets; or columns of X that hold them.
        target : int
            Which of several targets.
        **settings
            Those of `from_predictions`.
        """
        network, source = regressor_of(model), open_rows(model, X, y)
        names = target_names(network, source)
        if cls._names_its_target and target in range(len(names)):
            settings.setdefault("target_name", names[target])
        targets = to_numpy(source.block.targets)
        if is_counts(network.ensemble_):
            targets = targets[:, 0]  # beside it stand the logs of exposures
        return cls.from_predictions(
            targets, network.predict_dist(source), target=target, **settings
        )


class ClassifiedDisplay:
    """A display that `from_predictions` draws from labels and the probabilities of classes."""

    from_predictions: ClassVar[Any]

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, **settings: Any) -> Self:
        """Draw the probabilities for `X` against labels.

        Parameters
        ----------
        model : fitted classifier with probabilities
            Fitted; a pipeline that ends with one, too.
        X : table (n, columns)
            Held-out rows.
        y : array (n,)
            Labels.
        **settings
            Those of `from_predictions`.
        """
        return cls.from_predictions(y, *class_forecast(model, X), **settings)


def one_target(y: Any, distribution: Mixture, target: Any) -> tuple[np.ndarray, Mixture]:
    """Values (n,) of one of the targets and its predictive distribution."""
    forecast = distribution_of(distribution, target)
    values = read_targets(y)
    values = values.reshape(len(values), -1)
    shape = distribution.means[0].reshape(len(distribution.means[0]), -1).shape
    if values.shape != shape:
        raise ValueError(
            f"y has shape {values.shape}, but the distribution is for {shape[0]} rows and "
            f"{shape[1]} target{'s' * (shape[1] > 1)}: give one value for each."
        )
    return values[:, target], forecast


def pit_values(y: Any, distribution: Any, target: Any) -> np.ndarray:
    """F(y) (n,) of one of the targets; randomised for counts, so that it is uniform as well."""
    if is_discrete(distribution):
        return randomized_pit(distribution, y, np.random.default_rng(_SEED))
    return pit(*one_target(y, distribution, target))


def distribution_of(distribution: Mixture, target: Any) -> Mixture:
    """Predictive distribution (n,) of one of the targets."""
    if not isinstance(distribution, Mixture):
        raise TypeError(
            "distribution must be a Mixture, such as predict_dist and build_mixture give, "
            f"got {type(distribution).__name__}."
        )
    is_single = distribution.means.ndim == 2
    place = chosen(target, 1 if is_single else distribution.means.shape[2], "target")
    return distribution if is_single else distribution.of_target(place)
