"""Fits of a moment, for pictures."""

from __future__ import annotations

from bowtienet import BowTieRegressor


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
