"""Classifiers of the study: ours as it comes, and others as their users would set them up.

A method is a function of `X_train, y_train, X_test, seed` that gives classes (c,), sorted, and
probabilities (n, c). Ours takes tables as they are. The others get numbers standardised, with the
median for missing ones and a column that says so, and categories one-hot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._old.outcomes.class_networks import deep_ensemble_probabilities, laplace_probabilities
from bowtienet._old import BowTieClassifier

GAUSSIAN_PROCESS_ROWS = 1000
"""Most training rows of the Gaussian process, whose time is cubic in them."""

Forecast = tuple[np.ndarray, np.ndarray]
"""Classes (c,), sorted, and probabilities (n, c)."""
ClassMethod = Callable[[Any, np.ndarray, Any, int], Forecast]


def ours(X_train: Any, y_train: np.ndarray, X_test: Any, seed: int) -> Forecast:
    """The default classifier."""
    model = BowTieClassifier(random_state=seed).fit(X_train, y_train)
    return model.classes_, model.predict_proba(X_test)


def logistic_regression(X_train: Any, y_train: np.ndarray, X_test: Any, seed: int) -> Forecast:
    """Penalty by five-fold log loss."""
    model = LogisticRegressionCV(
        Cs=10, cv=5, scoring="neg_log_loss", max_iter=1000, random_state=seed
    )
    return _fitted(model, X_train, y_train, X_test)


def gaussian_process(X_train: Any, y_train: np.ndarray, X_test: Any, seed: int) -> Forecast:
    """Radial kernel with a scale; one against the rest if there are more than two classes."""
    kernel = ConstantKernel(1.0) * RBF(np.sqrt(X_train.shape[1]))
    model = GaussianProcessClassifier(kernel, random_state=seed)
    return _fitted(model, X_train, y_train, X_test)


def random_forest(X_train: Any, y_train: np.ndarray, X_test: Any, seed: int) -> Forecast:
    """300 trees, isotonic calibration over five folds."""
    return _calibrated(RandomForestClassifier(300, random_state=seed), X_train, y_train, X_test)


def boosting(X_train: Any, y_train: np.ndarray, X_test: Any, seed: int) -> Forecast:
    """Boosted trees, isotonic calibration over five folds."""
    model = HistGradientBoostingClassifier(random_state=seed)
    return _calibrated(model, X_train, y_train, X_test)


def deep_ensemble(X_train: Any, y_train: np.ndarray, X_test: Any, seed: int) -> Forecast:
    """Five networks, each stopped by a tenth of the rows."""
    classes, codes = np.unique(y_train, return_inverse=True)
    train, test = _prepared(X_train, X_test)
    return classes, deep_ensemble_probabilities(train, codes, test, seed)


def laplace(X_train: Any, y_train: np.ndarray, X_test: Any, seed: int) -> Forecast:
    """A network with a Laplace approximation of its last layer."""
    classes, codes = np.unique(y_train, return_inverse=True)
    train, test = _prepared(X_train, X_test)
    return classes, laplace_probabilities(train, codes, test, seed)


CLASS_METHODS: dict[str, ClassMethod] = {
    "bowtienet": ours,
    "logistic regression": logistic_regression,
    "Gaussian process": gaussian_process,
    "random forest, isotonic": random_forest,
    "boosting, isotonic": boosting,
    "deep ensemble": deep_ensemble,
    "Laplace": laplace,
}


def runs_on(method: str, n_train: int) -> bool:
    """Whether a method is for so many training rows."""
    return method != "Gaussian process" or n_train <= GAUSSIAN_PROCESS_ROWS


def preparation(X: Any) -> Any:
    """The transformer that makes standardised numbers of what the set has."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    if not isinstance(X, pd.DataFrame):
        return numbers
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
    )


def _prepared(X_train: Any, X_test: Any) -> tuple[np.ndarray, np.ndarray]:
    transformer = preparation(X_train)
    train = np.asarray(transformer.fit_transform(X_train), dtype=float)
    return train, np.asarray(transformer.transform(X_test), dtype=float)


def _fitted(model: Any, X_train: Any, y_train: np.ndarray, X_test: Any) -> Forecast:
    fitted = make_pipeline(preparation(X_train), model).fit(X_train, y_train)
    return fitted.classes_, fitted.predict_proba(X_test)


def _calibrated(model: Any, X_train: Any, y_train: np.ndarray, X_test: Any) -> Forecast:
    """(n p + 1) / (n + c) in place of p: isotonic calibration gives zeros, of infinite log loss."""
    calibrated = CalibratedClassifierCV(model, method="isotonic", cv=5)
    classes, p = _fitted(calibrated, X_train, y_train, X_test)
    return classes, (len(y_train) * p + 1.0) / (len(y_train) + len(classes))
