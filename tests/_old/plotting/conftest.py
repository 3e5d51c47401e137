"""Small fitted models for the plots, and no window or open figure after any test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from bowtienet._old import BowTieRegressor
from tests._old.plotting.fits import quick
from tests._old.sign_pruning import prune_by_signs


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="session")
def rows() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(61, 3)) * [1.0, 100.0, 0.01], columns=["a", "b", "c"])
    y = np.maximum(X["a"], 0.0) - X["b"] / 100.0 + rng.normal(0.0, 0.3, size=61)
    return X, y.rename("height")


@pytest.fixture(scope="session")
def model(rows: tuple[pd.DataFrame, pd.Series]) -> BowTieRegressor:
    """Two members, one hidden layer."""
    return quick().fit(*rows)


@pytest.fixture(scope="session")
def deep(rows: tuple[pd.DataFrame, pd.Series]) -> BowTieRegressor:
    """One member, two hidden layers, two targets."""
    X, y = rows
    targets = np.column_stack([y, 10.0 + X["c"]])
    return quick(hidden_layer_sizes=(4, 3), n_estimators=1, tol=1.0).fit(X, targets)


@pytest.fixture(scope="session")
def flats() -> pd.DataFrame:
    """A table with texts, truth values and gaps, and the target among its columns."""
    rng = np.random.default_rng(1)
    n = 60
    city = rng.choice(["Oslo", "Rome", "Lima"], p=[0.5, 0.3, 0.2], size=n)
    area = rng.gamma(4.0, 20.0, size=n).round()
    price = 2.0 * area + 80.0 * (city == "Oslo") + rng.normal(0.0, 20.0, size=n)
    gaps = np.where(np.arange(n) % 17 == 0, np.nan, area)
    return pd.DataFrame(
        {"city": city, "area": gaps, "new": rng.uniform(size=n) < 0.3, "price": price}
    )


@pytest.fixture(scope="session")
def mixed(flats: pd.DataFrame) -> BowTieRegressor:
    return quick().fit(flats, "price")


@pytest.fixture(scope="session")
def pruned(model: BowTieRegressor) -> BowTieRegressor:
    return prune_by_signs(model, 0.3)
