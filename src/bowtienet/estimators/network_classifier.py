"""`BowTieNetworkClassifier`: the paper's network for classes, by Polya-Gamma variables."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from bowtienet.distributions.gated import PROBITS
from bowtienet.estimators._answers import ClassAnswers
from bowtienet.estimators._parameters import IN_PAPER
from bowtienet.estimators._streams import (
    by_batches,
    check_classes,
    classes_of,
    numbered,
    open_training,
)
from bowtienet.estimators._variational import VariationalNetwork
from bowtienet.outcomes import Binary, Classes, Outcome
from bowtienet.tables.door import TrainingTable, open_rows
from bowtienet.tables.representation import Scaling

Floats = NDArray[np.float64]

_ROOTS, _ROOT_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
"""Nodes and weights of means over a standard normal variable."""


class BowTieNetworkClassifier(ClassAnswers, VariationalNetwork, ClassifierMixin, BaseEstimator):
    """Variational Bayesian bow tie network with shrinkage, for two or more classes.

    Not in the paper: Polya-Gamma variables make the logistic likelihood of two classes, and the
    logistic softmax of several, conjugate as they do for the gates.

    Parameters
    ----------
    hidden_layer_sizes, prior, temperature, hidden_noise, bias_variance, init, solver, \
    accelerate, n_members, elbo_tempering, propagation, max_iter, tol, batch_size, \
    forgetting_rate, step_delay, max_categories, random_state, verbose :
        As for `BowTieNetwork`.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    elbo_history_, elbo_terms_, converged_, n_iter_, kept_columns_ :
        As for `BowTieNetwork`.

    Examples
    --------
    >>> import numpy as np
    >>> from bowtienet import BowTieNetworkClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(150, 2))
    >>> model = BowTieNetworkClassifier((10,), random_state=0).fit(X, X[:, 0] * X[:, 1] > 0.0)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    @classmethod
    def as_in_paper(cls, **changes: Any) -> Self:
        """The paper's settings for numbers, as far as they apply, with changes."""
        return cls(**{**IN_PAPER, **changes})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X : array or frame (n, columns), or source
            Numbers, categories, dates, truth values; values may be missing. A source is a path, a
            pyarrow dataset, a Dask collection, or an iterable of batches (X, y).
        y : array (n,) or name
            Classes, or the name of their column in the frame X.
        sample_weight : array (n,) or name, optional
            How many times each row counts; weight 0 is absence.
        """
        self._validate_params()
        training, stream = open_training(self, X, y, sample_weight, labels=True)
        classes, _ = classes_of(training, stream)
        outcome = self._learn_classes(training, classes)
        prepare = partial(numbered, classes, np.ones(len(classes)))
        return self._fit(training, stream, prepare, outcome)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """A stochastic step on further rows; the first call needs all classes or has them all."""
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        training = open_rows(self, X, y, sample_weight, labels=True, reset=first)
        if not first:
            classes = self.classes_
        elif classes is None:
            classes = training.targets
        classes = np.unique(classes)
        outcome = self._learn_classes(training, classes)
        return self._partial(numbered(classes, np.ones(len(classes)), training), outcome)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, classes): means over q and the members.

        Parameters
        ----------
        X : table (n, columns)
            New rows.
        """
        return np.asarray(by_batches(X, self._probabilities))

    def _probabilities(self, X: Any) -> Floats:
        moments, _ = self._moments(X)
        variance = moments.epistemic + moments.chance
        if len(self.classes_) == 2:
            second = _mean_sigmoid(moments.mean[..., 0], variance[..., 0])
            each = np.stack([1.0 - second, second], axis=-1)
        else:
            each = _mean_logistic_softmax(moments.mean, variance)
        return np.asarray(np.tensordot(self._fitted.member_weights, each, axes=1))

    def _learn_classes(self, training: TrainingTable, classes: NDArray[Any]) -> Outcome:
        """Attributes of the classes, and the outcome."""
        check_classes(training, classes)
        unknown = np.setdiff1d(training.targets, classes)
        if unknown.size:
            raise ValueError(
                f"y has the class {unknown.tolist()[0]!r}, which the first rows did not name."
            )
        self.classes_ = classes
        self._single, self._target_names = True, training.target_names
        return Binary() if len(classes) == 2 else Classes(n_classes=len(classes))

    def _target_scaling(self, targets: Floats, weights: Floats) -> Scaling:
        return np.zeros(1), np.ones(1)


def _mean_sigmoid(mean: Floats, variance: Floats) -> Floats:
    """E[sigmoid(z)] for z ~ N(mean, variance), by the mixture of probits of `gated`."""
    from scipy.special import ndtr

    scaled = (
        weight * ndtr(slope * mean / np.sqrt(1.0 + slope**2 * variance))
        for weight, slope in PROBITS
    )
    return np.asarray(sum(scaled))


def _mean_logistic_softmax(mean: Floats, variance: Floats) -> Floats:
    """E[sigmoid(z_c) / Σ sigmoid(z_j)] over independent outputs, to first order in the sum.

    With s_j = sigmoid(z_j) it is near E[s_c] / Σ E[s_j]; means of s are by quadrature.
    """
    deviation = np.sqrt(variance)
    total = _ROOT_WEIGHTS.sum()
    expected = sum(
        weight / total * expit(mean + root * deviation)
        for root, weight in zip(_ROOTS, _ROOT_WEIGHTS, strict=True)
    )
    return np.asarray(expected / np.sum(expected, axis=-1, keepdims=True))
