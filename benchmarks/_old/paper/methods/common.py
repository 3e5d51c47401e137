"""What every method is: rows to fit and a seed in, a predictive distribution for new rows out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from sklearn.preprocessing import StandardScaler

from bowtienet._old.prediction.mixture import Mixture, build_mixture


class Fitted(NamedTuple):
    """A fitted method."""

    predict: Callable[[np.ndarray], Mixture]
    """New rows (n, columns) to their predictive distribution."""
    note: str | None = None
    """What a reader of the scores must know."""
    mean: Callable[[np.ndarray], np.ndarray] | None = None
    """Its own point prediction (n,), where that is not the mean of the distribution."""


class Components(NamedTuple):
    """A method fitted to standardised rows."""

    predict: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    """New rows (n, columns) to means and deviations, both (K, n), of standardised targets."""
    note: str | None = None
    mean: Callable[[np.ndarray], np.ndarray] | None = None
    """As that of `Fitted`, of standardised rows and targets."""


Fit = Callable[[np.ndarray, np.ndarray, int], Fitted]
"""Features (n, columns), targets (n,) and a seed to a fitted method."""


def standardized(
    fit: Callable[[np.ndarray, np.ndarray, int], Components], dtype: DTypeLike = np.float64
) -> Fit:
    """p(y | x) = Σ_k N(y | m_k(x), d_k(x)²) / K from a fit that sees standardised rows.

    `dtype` is that of the arrays that `fit` and its components are given.
    """

    def fit_rows(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        features, targets = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
        center, unit = targets.mean_[0], targets.scale_[0]
        x = features.transform(X).astype(dtype)
        found = fit(x, ((y - center) / unit).astype(dtype), seed)

        def predict(new: np.ndarray) -> Mixture:
            means, deviations = found.predict(features.transform(new).astype(dtype))
            means, deviations = np.asarray(means, float), np.asarray(deviations, float)
            weights = np.full(len(means), 1.0 / len(means))
            return build_mixture(weights, center + unit * means, unit * deviations)

        def mean(new: np.ndarray) -> np.ndarray:
            return center + unit * found.mean(features.transform(new).astype(dtype))

        return Fitted(predict, found.note, mean if found.mean else None)

    return fit_rows
