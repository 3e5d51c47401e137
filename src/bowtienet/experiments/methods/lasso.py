"""LassoCV: a sparse linear model whose penalty is chosen by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV

from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.standardized import Fitted, standardized


def lasso(**settings: Any) -> Method:
    """N(y | b + w'x, s²) with s² = Σ residuals² / (n - 1 - k) for k weights that are not zero.

    The paper shows the residual standard deviation. As many weights as are not zero are an unbiased
    estimate of the degrees of freedom of the lasso (Zou, Hastie and Tibshirani, 2007), so that s
    does not look better than it is when there are few rows.

    Parameters
    ----------
    **settings
        Parameters of `sklearn.linear_model.LassoCV`.
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        # Ten thousand sweeps: strongly related columns need more than the thousand of the default.
        # The result does not depend on the seed, but without one NumPy's global state is touched.
        model = LassoCV(**{"max_iter": 10_000, "random_state": seed} | settings).fit(x, y)
        free = max(len(y) - 1 - np.count_nonzero(model.coef_), 1)
        deviation = np.sqrt(np.sum((y - model.predict(x)) ** 2) / free)

        def components(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            means = model.predict(new)[None]
            return means, np.full_like(means, deviation)

        return Fitted(components)

    return standardized("lasso", fit)
