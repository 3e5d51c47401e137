"""Fits of a moment, for plots."""

from __future__ import annotations

from typing import Any

from bowtienet import BowTieRegressor, make_table_pipeline


def quick(**settings: object) -> BowTieRegressor:
    """A fit of a moment."""
    return BowTieRegressor(
        **{
            "hidden_layer_sizes": (4,),
            "n_estimators": 2,
            "combine": "equal",
            "max_iter": 10,
            "tol": 1e-2,
            "random_state": 0,
        }
        | settings
    )


def fit_table(table: Any, target: Any, **settings: object) -> Any:
    """A fit to a table with texts and missing values."""
    return make_table_pipeline(quick(**settings)).fit(table, target)
