"""Calibrated regression on tables: Bayesian bow tie neural networks with shrinkage priors.

>>> import numpy as np
>>> from bowtienet import BowTieRegressor
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-2.0, 2.0, size=(200, 2))
>>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=200)
>>> model = BowTieRegressor((20,), n_estimators=2, random_state=0).fit(X, y)
>>> mean, std = model.predict(X[:3], return_std=True)
>>> mean.shape
(3,)

The engine under the estimator is `bowtienet._old.engine`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowtienet._old import engine
    from bowtienet._old.data.door import open_source
    from bowtienet._old.data.files import read_table
    from bowtienet._old.estimators.classifier import BowTieClassifier
    from bowtienet._old.estimators.fit_options import FitOptions
    from bowtienet._old.estimators.regressor import BowTieRegressor
    from bowtienet._old.estimators.saving import load
    from bowtienet._old.evaluation.comparison import compare

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

_HOMES = {
    "BowTieClassifier": "estimators.classifier",
    "BowTieRegressor": "estimators.regressor",
    "FitOptions": "estimators.fit_options",
    "compare": "evaluation.comparison",
    "load": "estimators.saving",
    "open_source": "data.door",
    "read_table": "data.files",
}
"""Where names live: they are imported when they are first used."""


def __getattr__(name: str) -> Any:
    if name == "engine":
        return import_module("bowtienet._old.engine")
    if name == "__version__":
        from importlib.metadata import version  # slow, and seldom asked for

        globals()[name] = version("bowtienet")
        return globals()[name]
    if name not in _HOMES:
        raise AttributeError(f"module 'bowtienet' has no attribute {name!r}")
    found = getattr(import_module(f"bowtienet._old.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
