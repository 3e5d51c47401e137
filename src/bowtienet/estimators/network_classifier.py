"""`BowTieNetworkClassifier`: the paper's network for classes, by Polya-Gamma variables."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from sklearn.base import ClassifierMixin

from bowtienet.distributions.gated import PROBIT_SLOPES, PROBIT_WEIGHTS
from bowtienet.estimators._base import (
    ClassAnswers,
    Prepare,
    by_batches,
    check_classes,
    classes_of,
    numbered,
)
from bowtienet.estimators._variational import VariationalNetwork
from bowtienet.outcomes import Binary, Classes, Outcome
from bowtienet.tables.door import TrainingTable, open_rows
from bowtienet.tables.sources import Stream

Floats = NDArray[np.float64]


class BowTieNetworkClassifier(ClassAnswers, ClassifierMixin, VariationalNetwork):
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

    def _targets(self, rows: TrainingTable, stream: Stream | None) -> tuple[Outcome, Prepare]:
        return self._of_classes(rows, classes_of(rows, stream)[0])

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """A stochastic step on further rows; the first call needs all classes or has them all."""
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        rows = open_rows(self, X, y, sample_weight, labels=True, reset=first)
        if not first:
            classes = self.classes_
        elif classes is None:
            classes = rows.targets
        return self._partial(rows, *self._of_classes(rows, np.unique(classes)))

    def _of_classes(self, rows: TrainingTable, classes: NDArray[Any]) -> tuple[Outcome, Prepare]:
        check_classes(rows, classes)
        self.classes_, size = classes, len(classes)
        outcome = Binary() if size == 2 else Classes(n_classes=size)
        return outcome, partial(numbered, classes, np.ones(size))

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


def _mean_sigmoid(mean: Floats, variance: Floats) -> Floats:
    """E[sigmoid(z)] for z ~ N(mean, variance), by the mixture of probits of `gated`."""
    scaled = (
        weight * ndtr(slope * mean / np.sqrt(1.0 + slope**2 * variance))
        for weight, slope in zip(PROBIT_WEIGHTS, PROBIT_SLOPES, strict=True)
    )
    return np.asarray(sum(scaled))


def _mean_logistic_softmax(mean: Floats, variance: Floats) -> Floats:
    """E[sigmoid(z_c) / Σ sigmoid(z_j)] over independent outputs, to first order in the sum.

    With s_j = sigmoid(z_j) it is near E[s_c] / Σ E[s_j]; means of s are by quadrature.
    """
    deviation = np.sqrt(variance)
    roots, weights = np.polynomial.hermite_e.hermegauss(20)
    expected = sum(
        weight / weights.sum() * expit(mean + root * deviation)
        for root, weight in zip(roots, weights, strict=True)
    )
    return np.asarray(expected / np.sum(expected, axis=-1, keepdims=True))
