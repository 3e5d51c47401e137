"""LassoCV and a Gaussian process, both of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV

from benchmarks._old.paper.methods.common import Components, Fit, Fitted, standardized
from bowtienet._old.evaluation import gaussian_process


def lasso(hidden: tuple[int, ...] = (), **settings: Any) -> Fit:
    """N(y | b + w'x, s²) with s² = Σ residuals² / (n - 1 - k) for k weights that are not zero.

    The number of such weights is an unbiased estimate of the degrees of freedom of the lasso (Zou,
    Hastie and Tibshirani, 2007). `settings` are those of `LassoCV`.
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        # Ten thousand sweeps: strongly related columns need more than the thousand of the default.
        # The result does not depend on the seed, but without one NumPy's global state is touched.
        model = LassoCV(**{"max_iter": 10_000, "random_state": seed} | settings).fit(x, y)
        free = max(len(y) - 1 - np.count_nonzero(model.coef_), 1)
        deviation = np.sqrt(np.sum((y - model.predict(x)) ** 2) / free)

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            means = model.predict(new)[None]
            return means, np.full_like(means, deviation)

        return Components(predict)

    return standardized(fit)


def gpr(hidden: tuple[int, ...] = ()) -> Fit:
    """A Gaussian process with a length scale for each feature and fitted noise."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        forecast = gaussian_process().fit(X, y, seed, 0.95)
        return Fitted(lambda new: forecast(new).distribution)

    return fit
