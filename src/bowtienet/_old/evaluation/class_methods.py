"""Classifiers to compare: ours, and those of scikit-learn that give probabilities.

A method is fitted to training rows, whose targets are numbers of classes 0, ..., C - 1, and gives a
function from new rows to probabilities (n, C).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old.estimators.classifier import BowTieClassifier
from bowtienet._old.evaluation.methods import fitted

_MOST_STEPS = 1000
"""Of the logistic regression: on standardised inputs it needs a few dozen."""
_TREES = 300

Classifier = Callable[[Any], np.ndarray]
"""Probabilities (n, C) of rows (n, columns) by a method that has been fitted."""


@dataclass(frozen=True, kw_only=True)
class ClassMethod:
    """A name, and how to fit: features, codes (n,), C and a seed to a `Classifier`."""

    name: str
    fit: Callable[[Any, np.ndarray, int, int], Classifier]
    takes_tables: bool = False
    """Whether it is given tables as they are, a `Source` with the labels, and not numbers."""


def default_class_methods(classifier: Any = None) -> tuple[ClassMethod, ...]:
    """Ours and three of scikit-learn, in the order of a table."""
    return (
        bow_tie_classes(classifier),
        logistic_regression(),
        random_forest(),
        boosted_classes(),
    )


def bow_tie_classes(classifier: Any = None) -> ClassMethod:
    """The bow tie network with its calibrated probabilities.

    Parameters
    ----------
    classifier : estimator with predict_proba that takes a Source, optional
        Cloned for every fit, with the seed of the split where its own `random_state` is None; by
        default `BowTieClassifier` on all cores.
    """
    if classifier is not None and not hasattr(classifier, "predict_proba"):
        raise TypeError(
            f"classifier must have predict_proba, as BowTieClassifier has, and "
            f"{type(classifier).__name__} has not: give another, or leave it out."
        )

    def fit(source: Any, codes: np.ndarray, n_classes: int, seed: int) -> Classifier:
        ours = BowTieClassifier(n_jobs=-1) if classifier is None else classifier
        model = fitted(ours, source, seed)
        return lambda new: np.asarray(model.predict_proba(new))

    return ClassMethod(name="bowtienet", fit=fit, takes_tables=True)


def logistic_regression() -> ClassMethod:
    """softmax(W x + b) on standardised inputs, with scikit-learn's penalty of the squares of W."""
    return _of_numbers("LogisticRegression", lambda seed: _linear_classifier())


def logistic_probabilities(
    X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, new: np.ndarray, n_classes: int
) -> np.ndarray:
    """Probabilities (n, C) of new rows by a logistic regression on weighted rows."""
    shares = np.ones(len(X)) if weights is None else weights
    counted = shares > 0.0
    X, codes, shares = X[counted], codes[counted].astype(int), shares[counted]
    if np.unique(codes).size < 2:
        return np.broadcast_to(np.eye(n_classes)[codes[0]], (len(new), n_classes))
    steps = ("standardscaler", "logisticregression")
    given = {f"{step}__sample_weight": shares for step in steps}
    model = _linear_classifier().fit(X, codes, **given)
    return _all_classes(model, new, n_classes)


def _linear_classifier() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=_MOST_STEPS))


def random_forest() -> ClassMethod:
    """Shares of the classes in the leaves of random trees."""
    return _of_numbers(
        "RandomForest",
        lambda seed: RandomForestClassifier(_TREES, random_state=seed),
    )


def boosted_classes() -> ClassMethod:
    """Boosted trees for the log odds of the classes."""
    return _of_numbers(
        "HistGradientBoosting", lambda seed: HistGradientBoostingClassifier(random_state=seed)
    )


def _of_numbers(name: str, make: Callable[[int], Any]) -> ClassMethod:
    """A method of scikit-learn."""

    def fit(X: np.ndarray, codes: np.ndarray, n_classes: int, seed: int) -> Classifier:
        model = make(seed).fit(X, codes)
        return lambda new: _all_classes(model, new, n_classes)

    return ClassMethod(name=name, fit=fit)


def _all_classes(model: Any, new: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities (n, C); a class that the model has not seen has probability 0."""
    found = np.zeros((len(new), n_classes))
    found[:, model.classes_.astype(int)] = model.predict_proba(new)
    return found
