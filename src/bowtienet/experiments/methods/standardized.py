"""Methods that see standardised rows and forecast in the unit of the targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from sklearn.preprocessing import StandardScaler

from bowtienet.evaluation.methods import Forecast, Forecaster, Method, central
from bowtienet.prediction.mixture import build_mixture

Components = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Standardised rows (n, columns) to means and deviations, both (K, n), of standardised targets."""


class Fitted(NamedTuple):
    """What a fit to standardised rows gives."""

    components: Components
    note: str | None = None
    """What a reader of the scores must know."""


def standardized(
    name: str,
    fit: Callable[[np.ndarray, np.ndarray, int], Fitted],
    dtype: DTypeLike = np.float64,
) -> Method:
    """p(y | x) = Σ_k N(y | m_k(x), d_k(x)²) / K from a fit that sees standardised rows.

    Parameters
    ----------
    name : str
        Of the method.
    fit : callable
        Standardised inputs (n, columns) and targets (n,) and a seed to `Fitted`.
    dtype : dtype
        Of what `fit` and its components are given.
    """

    def fit_rows(X: np.ndarray, y: np.ndarray, seed: int, coverage: float) -> Forecaster:
        inputs, targets = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
        centre, unit = float(targets.mean_[0]), float(targets.scale_[0])

        def standard(rows: np.ndarray) -> np.ndarray:
            return inputs.transform(rows).astype(dtype)

        fitted = fit(standard(X), ((y - centre) / unit).astype(dtype), seed)

        def forecast(new: np.ndarray) -> Forecast:
            means, deviations = (
                np.asarray(part, dtype=float) for part in fitted.components(standard(new))
            )
            weights = np.full(len(means), 1.0 / len(means))
            mixture = build_mixture(weights, centre + unit * means, unit * deviations)
            return central(mixture, coverage, fitted.note)

        return forecast

    return Method(name=name, fit=fit_rows)
