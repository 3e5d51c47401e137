"""Variational Bayesian bow tie neural networks with shrinkage, and calibrated prediction on tables.

>>> import numpy as np
>>> from bowtienet import BowTieRegressor
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-2.0, 2.0, size=(200, 2))
>>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=200)
>>> model = BowTieRegressor(effort="fast", random_state=0).fit(X, y)
>>> mean, std = model.predict(X[:3], return_std=True)
>>> mean.shape
(3,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowtienet.estimators._base import load
    from bowtienet.estimators.classifier import BowTieClassifier
    from bowtienet.estimators.counts import BowTieCountRegressor
    from bowtienet.estimators.network import BowTieNetwork, BowTieNetworkClassifier
    from bowtienet.estimators.regressor import BowTieRegressor
    from bowtienet.evaluation.compare import compare
    from bowtienet.selection.select_features import select_features
    from bowtienet.tables.files import read_table

    __version__: str

__all__ = [
    "BowTieClassifier",
    "BowTieCountRegressor",
    "BowTieNetwork",
    "BowTieNetworkClassifier",
    "BowTieRegressor",
    "__version__",
    "compare",
    "load",
    "read_table",
    "select_features",
]

_HOMES = {
    "BowTieClassifier": "bowtienet.estimators.classifier",
    "BowTieCountRegressor": "bowtienet.estimators.counts",
    "BowTieNetwork": "bowtienet.estimators.network",
    "BowTieNetworkClassifier": "bowtienet.estimators.network",
    "BowTieRegressor": "bowtienet.estimators.regressor",
    "compare": "bowtienet.evaluation.compare",
    "load": "bowtienet.estimators._base",
    "read_table": "bowtienet.tables.files",
    "select_features": "bowtienet.selection.select_features",
}
"""Where names live: they are imported when they are first used."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("bowtienet")
    if name not in _HOMES:
        raise AttributeError(f"module 'bowtienet' has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOMES[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
