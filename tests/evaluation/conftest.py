"""The five estimators, fitted once to tables with a category and a date."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet import BowTieNetwork, BowTieNetworkClassifier
from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.regressor import BowTieRegressor

Fitted = tuple[Any, pd.DataFrame, Any]
NAMES = ("numbers", "classes", "counts", "network", "network classes")


@pytest.fixture(scope="session")
def fitted() -> dict[str, Fitted]:
    """Estimators and rows that they were fitted to; the frame's index is in disorder."""
    rng = np.random.default_rng(0)
    n = 160
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    columns = {"size": rng.normal(5.0, 2.0, n), "city": rng.choice(["Lima", "Oslo", "Rome"], n)}
    columns |= {"day": days, "rooms": rng.integers(1, 6, n)}
    X = pd.DataFrame(columns, index=rng.permutation(n))
    mean = 1.0 + 0.4 * X["size"].to_numpy() + (X["city"] == "Rome").to_numpy()
    targets = {
        "numbers": mean + rng.normal(0.0, 0.5, n),
        "classes": np.array(["low", "mid", "top"])[np.digitize(mean, [2.7, 3.7])],
        "counts": rng.poisson(np.exp(0.5 * mean)),
        "network": mean + rng.normal(0.0, 0.5, n),
        "network classes": mean > 3.2,
    }
    fast: dict[str, Any] = {"effort": "fast", "random_state": 0}
    small: dict[str, Any] = {"n_members": 2, "random_state": 0}
    models = {
        "numbers": BowTieRegressor((8,), **fast),
        "classes": BowTieClassifier((8,), **fast),
        "counts": BowTieCountRegressor((8,), **fast),
        "network": BowTieNetwork((4,), **small),
        "network classes": BowTieNetworkClassifier((4,), **small),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: (models[name].fit(X, y), X, y) for name, y in targets.items()}
