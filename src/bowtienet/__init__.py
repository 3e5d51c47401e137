"""Variational Bayesian bow tie neural networks with shrinkage, and calibrated prediction on tables.

>>> import numpy as np
>>> from bowtienet import BowTieRegressor
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-2.0, 2.0, size=(200, 2))
>>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=200)
>>> model = BowTieRegressor((20,), n_estimators=2, random_state=0).fit(X, y)
>>> mean, std = model.predict(X[:3], return_std=True)
>>> mean.shape
(3,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowtienet._old import (
        BowTieClassifier,
        BowTieRegressor,
        FitOptions,
        compare,
        engine,
        load,
        open_source,
        read_table,
    )

    __version__: str

__all__ = [
    "BowTieClassifier",
    "BowTieRegressor",
    "FitOptions",
    "__version__",
    "compare",
    "engine",
    "load",
    "open_source",
    "read_table",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bowtienet' has no attribute {name!r}")
    globals()[name] = getattr(import_module("bowtienet._old"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
