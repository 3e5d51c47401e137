"""Methods for numbers that benchmarks compare: rows and a seed in, predictive distributions out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor, early_stopping
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from stochtree import BARTModel

from benchmarks._before import Before
from bowtienet import BowTieRegressor
from bowtienet.prediction.mixture import Mixture

Floats = np.ndarray
Predict = Callable[[Floats], Any]
"""New rows to their predictive distribution."""


def gaussian(mean: Floats, std: Any) -> Mixture:
    """Of one or several Gaussians (K, n) for each row."""
    mean = np.atleast_2d(mean)
    weights, noise = np.full(len(mean), 1.0 / len(mean)), np.broadcast_to(std, mean.shape)
    return Mixture(weights=weights, means=mean, epistemic=np.zeros(mean.shape), noise=noise)


def bowtie(X: Floats, y: Floats, seed: int) -> Predict:
    """The defaults."""
    return BowTieRegressor(random_state=seed).fit(X, y).predict_dist


def bowtie_before(X: Floats, y: Floats, seed: int) -> Predict:
    """The defaults of the library before the rebuild."""
    return Before("BowTieRegressor", X, y, random_state=seed)


def catboost(X: Floats, y: Floats, seed: int) -> Predict:
    """The defaults: a mean alone."""
    model = boosted(seed).fit(X, y)
    return lambda new: gaussian(model.predict(new), np.nan)


def catboost_constant(X: Floats, y: Floats, seed: int) -> Predict:
    """A mean; a fifth of the rows says how many trees are fitted to all, and the variance."""
    trial, model, X_held, y_held = stopped(X, y, seed)
    std = np.sqrt(np.mean((trial.predict(X_held) - y_held) ** 2))
    return lambda new: gaussian(model.predict(new), std)


def catboost_density(X: Floats, y: Floats, seed: int) -> Predict:
    """Mean and variance; a fifth of the rows says how many trees are fitted to all."""
    _, model, _, _ = stopped(X, y, seed, loss_function="RMSEWithUncertainty")

    def predict(new: Floats) -> Mixture:
        mean, variance = model.predict(new, prediction_type="RMSEWithUncertainty").T
        return gaussian(mean, np.sqrt(variance))

    return predict


def stopped(X: Floats, y: Floats, seed: int, **settings: Any) -> tuple[Any, Any, Floats, Floats]:
    """CatBoost of four fifths and, with as many trees as the other fifth asks for, of all rows."""
    X_few, X_held, y_few, y_held = train_test_split(X, y, test_size=0.2, random_state=seed)
    trial = boosted(seed, cat_features=categories(X), **settings)
    trial.fit(X_few, y_few, eval_set=(X_held, y_held), early_stopping_rounds=50)
    trees = trial.get_best_iteration() + 1
    model = boosted(seed, iterations=trees, cat_features=categories(X), **settings).fit(X, y)
    return trial, model, X_held, y_held


def categories(X: Any) -> list[str]:
    """Columns of categories; an array has none."""
    return list(X.select_dtypes("category")) if hasattr(X, "select_dtypes") else []


def boosted(seed: int, **settings: Any) -> CatBoostRegressor:
    """CatBoost on one core."""
    quiet = {"verbose": False, "allow_writing_files": False}
    return CatBoostRegressor(random_seed=seed, thread_count=1, **quiet, **settings)


def lightgbm(X: Floats, y: Floats, seed: int) -> Predict:
    """A fifth of the rows says when to stop, and the variance."""
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.2, random_state=seed)
    model = LGBMRegressor(
        n_estimators=5_000, learning_rate=0.05, random_state=seed, n_jobs=1, verbose=-1
    )
    stop = early_stopping(50, verbose=False)
    model.fit(X, y, eval_set=[(X_held, y_held)], callbacks=[stop])
    std = np.sqrt(np.mean((model.predict(X_held) - y_held) ** 2))
    return lambda new: gaussian(model.predict(new), std)


def process(X: Floats, y: Floats, seed: int) -> Predict:
    """A Gaussian process with a length for each column, or one where gradients fill the memory."""
    lengths = np.ones(X.shape[1]) if len(X) ** 2 * X.shape[1] < 2e8 else 1.0
    kernel = ConstantKernel() * RBF(lengths) + WhiteKernel()
    scaler = StandardScaler().fit(X)
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    model.fit(scaler.transform(X), y)
    return lambda new: gaussian(*model.predict(scaler.transform(new), return_std=True))


def bart(X: Floats, y: Floats, seed: int) -> Predict:
    """Four chains of 100 forests, five steps apart, after ten that are grown from their roots."""
    model = BARTModel()
    settings = {"random_seed": seed, "num_threads": 1, "num_chains": 4, "keep_every": 5}
    model.sample(X_train=X, y_train=y, num_gfr=10, num_mcmc=100, general_params=settings)
    noise = np.sqrt(model.global_var_samples)[:, None]
    return lambda new: gaussian(model.predict(new, terms="y_hat").T, noise)


METHODS: dict[str, Callable[[Floats, Floats, int], Predict]] = {
    "bowtienet": bowtie,
    "before the rebuild": bowtie_before,
    "CatBoost": catboost,
    "CatBoost, uncertainty": catboost_density,
    "LightGBM": lightgbm,
    "Gaussian process": process,
    "BART": bart,
}
