"""NGBoost: boosted trees for the mean and the logarithm of the deviation (Duan et al., 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor

from bowtienet._validation import whole
from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.standardized import Fitted, standardized

_DEPTH = 3
_RATE = 0.01
_VALIDATION = 0.2
"""The paper of NGBoost: trees of depth 3, learning rate 0.01, and 20 % of the rows to choose by."""
_PATIENCE = 50
"""Stages without a better validation score after which more are not tried."""


def ngboost(stages: int = 2000, learning_rate: float = _RATE) -> Method:
    """N(y | m(x), d(x)²), boosted by natural gradients of the log score.

    As in its paper, the number of stages is the one that predicts a fifth of the training rows
    best, and the model is then fitted to all of them with so many.

    Parameters
    ----------
    stages : int
        Most stages.
    learning_rate : float
        Share of a stage that is added.
    """
    most = whole(stages, "stages")

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        few, held_out, few_y, held_out_y = train_test_split(
            x, y, test_size=_VALIDATION, random_state=seed
        )
        trial = _booster(most, learning_rate, seed)
        trial.fit(few, few_y, X_val=held_out, Y_val=held_out_y, early_stopping_rounds=_PATIENCE)
        model = _booster(trial.best_val_loss_itr + 1, learning_rate, seed).fit(x, y)

        def components(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = model.pred_dist(new).params
            return found["loc"][None], found["scale"][None]

        return Fitted(components)

    return standardized("ngboost", fit)


def _booster(stages: int, learning_rate: float, seed: int) -> Any:
    from ngboost import NGBRegressor  # here: it takes seconds to load

    # Its own tree has no seed, and breaks ties by NumPy's global random state.
    tree = DecisionTreeRegressor(max_depth=_DEPTH, random_state=seed)
    return NGBRegressor(
        Base=tree,
        n_estimators=stages,
        learning_rate=learning_rate,
        random_state=seed,
        verbose=False,
    )
