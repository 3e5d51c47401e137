"""A linear model beside the network: Bayesian ridge regression on the same encoded features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.evaluation.methods import gaussian
from bowtienet.plotting.fitted import encoded_features
from bowtienet.prediction.mixture import GaussianMixture
from bowtienet.report.rows import ReportRows

_FOLDS = 5
_FEWEST = 4
"""Rows below which nothing can be cross-fitted."""
_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Forecast of a linear model, and the rows that it was fitted to."""

    distribution: GaussianMixture
    words: str


def linear_baseline(
    model: BowTieRegressor,
    rows: ReportRows,
    train: ReportRows | None,
    target: int,
    is_seen: bool | None = None,
) -> Baseline | None:
    """N(y | m, d²) of Bayesian linear regression.

    Fitted to the training rows where they are known, and to the rows at hand if the network has
    seen them too. Else it is cross-fitted: no row is predicted by a fit that has seen it. None if
    there are too few rows.
    """
    if train is None and not is_seen:
        return _cross_fitted(model, rows, target)
    known = rows if train is None else train
    if known.n_rows < _FEWEST:
        return None
    new = encoded_features(model, rows.table)
    features = new if train is None else encoded_features(model, train.table)
    found = _predict(features, known.targets[:, target], known.weights, new)
    words = "fitted to the rows that it is scored on"
    if train is not None:
        some = "" if known.n_rows == known.n_given else f"{known.n_rows:,} of "
        words = f"fitted to {some}the training rows"
    return Baseline(distribution=gaussian(*found), words=words)


def _cross_fitted(model: BowTieRegressor, rows: ReportRows, target: int) -> Baseline | None:
    if rows.n_rows < _FEWEST:
        return None
    folds, y = min(_FOLDS, rows.n_rows // 2), rows.targets[:, target]
    features = encoded_features(model, rows.table)
    mean, deviation = np.empty(rows.n_rows), np.empty(rows.n_rows)
    for fitted, held in KFold(folds, shuffle=True, random_state=_SEED).split(features):
        mean[held], deviation[held] = _predict(
            features[fitted], y[fitted], rows.weights[fitted], features[held]
        )
    return Baseline(
        distribution=gaussian(mean, deviation),
        words=f"cross-fitted in {folds} folds to the rows of this report",
    )


def _predict(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations (n,) for new rows."""
    # Their mean is 1: the noise is then that of one row, in every release of scikit-learn.
    shares = weights / np.mean(weights)
    given = {f"{step}__sample_weight": shares for step in ("standardscaler", "bayesianridge")}
    line = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y, **given)
    mean, deviation = line.predict(new, return_std=True)
    return mean, deviation
