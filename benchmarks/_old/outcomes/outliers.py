"""A planted function under wild targets, and the regressions that are asked for it.

Rows are Friedman's first function of ten uniform columns, five of which matter, scaled to a
standard deviation of 1, with Gaussian noise of deviation 0.2. In `noise sd` and `target sd`, a
tenth of the training targets are moved up or down by 20 to 50 deviations of the noise, or of
the function; in `none` no target is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import HuberRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from bowtienet._old import BowTieRegressor

N_TRAIN, N_TEST, N_COLUMNS = 500, 2000, 10
NOISE, SHARE = 0.2, 0.1
LEAST, MOST = 20.0, 50.0
UNITS = {"none": 0.0, "noise sd": NOISE, "target sd": 1.0}
"""What the wild targets are moved by 20 to 50 of."""


def draw_outliers(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X_train, y_train with wild targets, X_test and the function at it."""
    X, f = make_friedman1(N_TRAIN + N_TEST, n_features=N_COLUMNS, random_state=seed)
    f = (f - f.mean()) / f.std()
    rng = np.random.default_rng(seed)
    y = f[:N_TRAIN] + NOISE * rng.standard_normal(N_TRAIN)
    wild = rng.choice(N_TRAIN, int(SHARE * N_TRAIN), replace=False)
    shifts = rng.choice([-1.0, 1.0], len(wild)) * rng.uniform(LEAST, MOST, len(wild))
    y[wild] += UNITS[kind] * shifts
    return X[:N_TRAIN], y, X[N_TRAIN:], f[N_TRAIN:]


def _ours(outcome: str) -> Callable[[int], Any]:
    return lambda seed: BowTieRegressor(outcome=outcome, random_state=seed)


def _huber(degree: int) -> Callable[[int], Any]:
    return lambda seed: make_pipeline(
        PolynomialFeatures(degree, include_bias=False),
        StandardScaler(),
        HuberRegressor(max_iter=5000),
    )


OUTLIER_METHODS: dict[str, Callable[[int], Any]] = {
    "bowtienet, student_t": _ours("student_t"),
    "bowtienet, gaussian": _ours("gaussian"),
    "Huber, linear": _huber(1),
    "Huber, squares and products": _huber(2),
    "boosting, absolute error": lambda seed: GradientBoostingRegressor(
        loss="absolute_error", random_state=seed
    ),
}
"""Regressions by name, as functions of a seed."""
