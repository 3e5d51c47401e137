"""Forecasters to compare: ours, and those of scikit-learn that say how sure they are.

A method is fitted to training rows and gives a function that forecasts new ones, so that the time
of a fit can be told from that of a prediction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old._validation import whole
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.prediction.mixture import Mixture, build_mixture

_NARROWEST = 1e-3
"""Least deviation of a forecast in deviations of the training targets, where an interval has no
width: a deviation of zero has no density, and makes a single miss infinitely bad."""
_QUANTILE_NOTE = (
    "NLL, CRPS and calibration are those of a normal distribution with the boosted mean and the "
    f"deviation that the interval's width implies, at least {_NARROWEST:g} of the target's, as a "
    "miss of an interval without width would be infinitely bad"
)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a method says about n new rows."""

    distribution: Mixture
    intervals: np.ndarray
    """Ends (n, 2) of the intervals of the coverage that was asked for."""
    note: str | None = None
    """What a reader of the scores must know."""


Forecaster = Callable[[Any], Forecast]
"""Forecasts of rows (n, columns) by a method that has been fitted."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A name, and how to fit: features, targets, seed and coverage to a `Forecaster`."""

    name: str
    fit: Callable[[Any, np.ndarray, int, float], Forecaster]
    takes_tables: bool = False
    """Whether it is given tables as they are, a `Source` with the targets, and not numbers."""


def default_methods(regressor: Any = None) -> tuple[Method, ...]:
    """Ours and three of scikit-learn, in the order of a table."""
    return (bow_tie(regressor), bayesian_ridge(), gaussian_process(), boosted_quantiles())


def bow_tie(regressor: Any = None) -> Method:
    """The bow tie network with its own predictive mixture and central intervals.

    Parameters
    ----------
    regressor : estimator with predict_dist, optional
        Cloned for every fit, with the seed of the split where its own `random_state` is None; by
        default `BowTieRegressor` on all cores.
    """
    if regressor is not None and not hasattr(regressor, "predict_dist"):
        raise TypeError(
            f"regressor must have predict_dist, as BowTieRegressor has, and "
            f"{type(regressor).__name__} has not: give it as a Method in methods instead."
        )

    def fit(source: Any, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        model = fitted(BowTieRegressor(n_jobs=-1) if regressor is None else regressor, source, seed)
        return lambda new: central(model.predict_dist(new), coverage)

    return Method(name="bowtienet", fit=fit, takes_tables=True)


def fitted(estimator: Any, source: Any, seed: int) -> Any:
    """A clone, fitted, with the seed wherever its settings leave randomness to chance."""
    model = clone(estimator)
    for name, value in model.get_params().items():
        if name.endswith("random_state") and value is None:
            model.set_params(**{name: seed})
    return model.fit(source)


def bayesian_ridge() -> Method:
    """N(y | m, d²) of Bayesian linear regression on standardised inputs and targets."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        predict = fit_ridge(X, y)
        return lambda new: central(gaussian(*predict(new)), coverage)

    return Method(name="BayesianRidge", fit=fit)


def fit_ridge(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Bayesian linear regression: a function that gives means and deviations (n,) of new rows.

    Targets are standardised. scikit-learn starts from a prior precision of 1, and of targets with a
    deviation of 1e5, such as prices of houses, it would never find more than their mean.
    """
    center = np.average(y, weights=weights)
    scale = float(np.sqrt(np.average((y - center) ** 2, weights=weights))) or 1.0
    given = {f"{step}__sample_weight": weights for step in ("standardscaler", "bayesianridge")}
    line = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, (y - center) / scale, **given)

    def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, deviation = line.predict(new, return_std=True)
        return center + scale * mean, scale * deviation

    return predict


def gaussian_process(max_rows: int = 2000) -> Method:
    """N(y | m, d²) of a Gaussian process: c RBF(l_1, ..., l_D) + noise, on standardised inputs.

    Parameters
    ----------
    max_rows : int
        The time of a fit grows with the cube of the rows: of more than these, so many are drawn.
    """
    most = whole(max_rows, "max_rows")

    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        note = None
        if len(X) > most:
            note = f"fitted to {most:,} random training rows of {len(X):,}: its time is cubic"
            chosen = np.random.default_rng(seed).choice(len(X), size=most, replace=False)
            X, y = X[chosen], y[chosen]
        kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
        process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
        model = make_pipeline(StandardScaler(), process)
        with warnings.catch_warnings():
            # An input that does not matter has a length scale at its bound, as it should.
            warnings.filterwarnings("ignore", "The optimal value found", ConvergenceWarning)
            model.fit(X, y)
        return lambda new: central(gaussian(*model.predict(new, return_std=True)), coverage, note)

    return Method(name="GaussianProcessRegressor", fit=fit)


def boosted_quantiles() -> Method:
    """Boosted trees for the mean and for the two ends of the interval.

    Trees give no density. NLL, CRPS and calibration are those of the normal distribution with
    their mean and the deviation d = (u - l) / (2 Φ^{-1}((1 + c)/2)) that the interval implies.
    """

    def fit(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        model = HistGradientBoostingRegressor(random_state=seed).fit(X, y)
        tails = (0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage))
        ends = [
            HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=seed).fit(X, y)
            for q in tails
        ]
        narrowest = max(_NARROWEST * float(np.std(y)), float(np.spacing(np.abs(y).max())))

        def forecast(new: np.ndarray) -> Forecast:
            # Trees of different quantiles know nothing of each other, and may cross.
            intervals = np.sort(np.column_stack([end.predict(new) for end in ends]), axis=1)
            implied = (intervals[:, 1] - intervals[:, 0]) / (2.0 * ndtri(tails[1]))
            distribution = gaussian(model.predict(new), np.maximum(implied, narrowest))
            return Forecast(distribution=distribution, intervals=intervals, note=_QUANTILE_NOTE)

        return forecast

    return Method(name="HistGradientBoosting quantiles", fit=fit)


def gaussian(mean: np.ndarray, deviation: np.ndarray) -> Mixture:
    """N(y | m_i, d_i²) for each of n rows, as the mixture of one component that scores expect."""
    return build_mixture([1.0], mean[None], deviation[None])


def central(distribution: Mixture, coverage: float, note: str | None = None) -> Forecast:
    """The forecast whose intervals leave out (1 - c)/2 of the distribution on either side."""
    intervals = distribution.interval(coverage)
    return Forecast(distribution=distribution, intervals=intervals, note=note)
