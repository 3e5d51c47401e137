"""Fits of a moment, for plots and reports."""

from __future__ import annotations

from typing import Any

from bowtienet._old import BowTieRegressor, FitOptions

OPTIONS = ("tol", "batch_size", "init", "init_penalty", "gate_temperature")


def quick(**settings: Any) -> BowTieRegressor:
    """A fit of a moment; settings may be options, too."""
    options = {name: settings.pop(name) for name in OPTIONS if name in settings}
    given = {"hidden_layer_sizes": (4,), "n_estimators": 2, "max_iter": 20, "random_state": 0}
    return BowTieRegressor(
        **given | settings, options=FitOptions(**{"weighting": "equal", "tol": 1e-2} | options)
    )
