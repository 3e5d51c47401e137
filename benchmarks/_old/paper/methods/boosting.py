"""Boosted trees with a spread: CatBoost's mean and variance, and scikit-learn's quantiles.

CatBoost (Prokhorenkova et al., 2018) with the loss RMSEWithUncertainty gives N(m(x), d(x)²); the
equal mixture of several seeds adds what the trees do not know (Malinin et al., 2021). Stages that
are best for the density are few for the mean, so point predictions are those of its usual loss.

Quantiles q_1 <= ... <= q_B of levels p_1 < ... < p_B, one model each and put in order, are a
distribution function that is linear between them, with exponential tails as dense as the
neighbouring bin. A mixture of Gaussians takes its place, one for a bin with weight
p_{b+1} - p_b, the bin's middle as mean and half its width as deviation; a tail is the Gaussian with
the mean and deviation of its exponential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from benchmarks._old.paper.methods.common import Components, Fit, Fitted, standardized
from bowtienet._old.prediction.mixture import build_mixture

LEVELS = (0.025, 0.05, *(0.1 + 0.05 * np.arange(17)).round(2).tolist(), 0.95, 0.975)
"""Of the quantiles: the ends of 95 % intervals, and every 5 % between them."""
_PATIENCE = 50
"""Stages of CatBoost without a better validation score after which more are not tried."""
_NARROWEST = 1e-3
"""Least width of a bin in deviations of the targets: equal quantiles have no density."""


def catboost(hidden: tuple[int, ...] = (), stages: int = 1000, models: int = 5) -> Fit:
    """Σ_k N(y | m_k(x), d_k(x)²) / K, each of a seed of its own.

    The number of stages, at most `stages`, is the one with the best density of a fifth of the
    training rows; the models are then fitted to all of them. The point prediction is the mean of as
    many models of squared error with all `stages`.
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        few, held_out, few_y, held_out_y = train_test_split(x, y, test_size=0.2, random_state=seed)
        trial = booster(stages, seed)
        trial.fit(few, few_y, eval_set=(held_out, held_out_y), early_stopping_rounds=_PATIENCE)
        best = trial.get_best_iteration() + 1
        seeds = range(100 * seed, 100 * seed + models)
        fitted = [booster(best, each).fit(x, y) for each in seeds]
        plain = [booster(stages, each, "RMSE").fit(x, y) for each in seeds]

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = np.stack(
                [each.predict(new, prediction_type="RMSEWithUncertainty") for each in fitted]
            )
            return found[..., 0], np.sqrt(found[..., 1])

        return Components(
            predict, mean=lambda new: np.mean([each.predict(new) for each in plain], axis=0)
        )

    return standardized(fit)


def booster(stages: int, seed: int, loss: str = "RMSEWithUncertainty") -> Any:
    """CatBoost at its defaults, with a mean and a variance for each row or with a mean alone."""
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        loss_function=loss,
        iterations=stages,
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )


def hist_quantiles(hidden: tuple[int, ...] = (), **settings: Any) -> Fit:
    """Quantiles and mean by `HistGradientBoostingRegressor` with these settings."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        unit = float(np.std(y))

        def model(**loss: Any) -> HistGradientBoostingRegressor:
            return HistGradientBoostingRegressor(**loss, random_state=seed, **settings).fit(X, y)

        mean = model(loss="squared_error")
        fitted = [model(loss="quantile", quantile=level) for level in LEVELS]

        def predict(new: np.ndarray) -> Any:
            quantiles = np.sort([each.predict(new) for each in fitted], axis=0)
            return build_mixture(*bins(quantiles, _NARROWEST * unit))

        return Fitted(predict, mean=mean.predict)

    return fit


def bins(quantiles: np.ndarray, narrowest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights (B+1,), means and deviations (B+1, n) from quantiles (B, n) of `LEVELS`."""
    weights = np.diff(LEVELS, prepend=0.0, append=1.0)
    widths = np.maximum(np.diff(quantiles, axis=0), narrowest)
    middles = 0.5 * (quantiles[:-1] + quantiles[1:])
    # p_1 / s = (p_2 - p_1) / width: the density of a tail begins as that of the bin beside it.
    low = widths[:1] * weights[0] / weights[1]
    high = widths[-1:] * weights[-1] / weights[-2]
    means = np.concatenate([quantiles[:1] - low, middles, quantiles[-1:] + high])
    return weights, means, np.concatenate([low, 0.5 * widths, high])
