"""A linear model beside the network, on the same encoded features.

Of numbers it is Bayesian ridge regression, of classes logistic regression.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from bowtienet._old.estimators.classifier import BowTieClassifier
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.evaluation.class_methods import logistic_probabilities
from bowtienet._old.evaluation.methods import fit_ridge, gaussian
from bowtienet._old.plotting.fitted import encoded_features
from bowtienet._old.prediction.mixture import Mixture
from bowtienet._old.report.sampled_rows import ReportRows
from bowtienet._old.report.wording import count

_FOLDS = 5
_FEWEST = 4
"""Rows below which nothing can be cross-fitted."""
_SEED = 0


def linear_baseline(
    model: BowTieRegressor, rows: ReportRows, train: ReportRows | None, target: int
) -> tuple[Mixture, str] | None:
    """N(y | m, d²) of Bayesian linear regression, and in words what it was fitted to.

    Fitted to the training rows where they are known. Else it is cross-fitted: no row is predicted
    by a fit that has seen it. None if there are too few rows.
    """
    known = rows if train is None else train
    if known.n_rows < _FEWEST:
        return None
    X, y, weights = encoded_features(model, known.source), known.targets[:, target], known.weights
    if train is not None:
        found = _predict(X, y, weights, encoded_features(model, rows.source))
        return gaussian(*found), f"fitted to {count(known.n_rows, 'training row')}"
    folds = min(_FOLDS, rows.n_rows // 2)
    mean, deviation = np.empty(rows.n_rows), np.empty(rows.n_rows)
    for fitted, held in KFold(folds, shuffle=True, random_state=_SEED).split(X):
        mean[held], deviation[held] = _predict(X[fitted], y[fitted], weights[fitted], X[held])
    return gaussian(mean, deviation), f"cross-fitted in {folds} folds to the rows of this report"


def logistic_baseline(
    model: BowTieClassifier, rows: ReportRows, train: ReportRows | None
) -> tuple[np.ndarray, str] | None:
    """Probabilities (n, C) of logistic regression, and in words what it was fitted to.

    As for `linear_baseline`; None also if some class has a single row to cross-fit.
    """
    known, n_classes = rows if train is None else train, len(model.classes_)
    if known.n_rows < _FEWEST:
        return None
    X, weights = encoded_features(model, known.source), known.weights
    codes = known.targets[:, 0].astype(int)
    if train is not None:
        new = encoded_features(model, rows.source)
        found = logistic_probabilities(X, codes, weights, new, n_classes)
        return found, f"fitted to {count(known.n_rows, 'training row')}"
    folds = min(_FOLDS, int(np.unique(codes, return_counts=True)[1].min()))
    if folds < 2:
        return None
    found = np.empty((rows.n_rows, n_classes))
    for fitted, held in StratifiedKFold(folds, shuffle=True, random_state=_SEED).split(X, codes):
        given = (X[fitted], codes[fitted], weights[fitted])
        found[held] = logistic_probabilities(*given, X[held], n_classes)
    return found, f"cross-fitted in {folds} folds to the rows of this report"


def _predict(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations (n,) for new rows."""
    # Their mean is 1: the noise is then that of one row, in every release of scikit-learn.
    shares = weights / np.mean(weights)
    return fit_ridge(X, y, shares)(new)
