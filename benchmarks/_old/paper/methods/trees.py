"""Sums of trees: NGBoost (Duan et al., 2020) and BART (Chipman, George and McCulloch, 2010)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor

from benchmarks._old.paper.methods.common import Components, Fit, standardized

_PATIENCE = 50
"""Stages of NGBoost without a better validation score after which more are not tried."""


def ngboost(hidden: tuple[int, ...] = (), stages: int = 2000, learning_rate: float = 0.01) -> Fit:
    """N(y | m(x), d(x)²), boosted by natural gradients of the log score.

    As in its paper, trees have depth 3, the number of stages (at most `stages`) is the one that
    predicts a fifth of the training rows best, and the model is then fitted to all of them.
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        few, held_out, few_y, held_out_y = train_test_split(x, y, test_size=0.2, random_state=seed)
        trial = booster(stages, learning_rate, seed)
        trial.fit(few, few_y, X_val=held_out, Y_val=held_out_y, early_stopping_rounds=_PATIENCE)
        model = booster(trial.best_val_loss_itr + 1, learning_rate, seed).fit(x, y)

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = model.pred_dist(new).params
            return found["loc"][None], found["scale"][None]

        return Components(predict)

    return standardized(fit)


def booster(stages: int, learning_rate: float, seed: int) -> Any:
    """NGBoost with trees of depth 3."""
    from ngboost import NGBRegressor

    return NGBRegressor(
        # Its own tree has no seed, and breaks ties by NumPy's global random state.
        Base=DecisionTreeRegressor(max_depth=3, random_state=seed),
        n_estimators=stages,
        learning_rate=learning_rate,
        random_state=seed,
        verbose=False,
    )


def bart(
    hidden: tuple[int, ...] = (),
    draws: int = 100,
    thinning: int = 5,
    warm_starts: int = 10,
    chains: int = 4,
) -> Fit:
    """Σ_k N(y | f_k(x), s_k²) / K, each f_k a sum of 200 trees.

    Trees and priors are the defaults of stochtree. Its one chain of 100 steps is far too short:
    here `draws` of each of several chains are kept, `thinning` steps apart. Chains start at the
    last of the `warm_starts` forests that are grown from their roots.
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        from stochtree import BARTModel

        model = BARTModel()
        model.sample(
            X_train=x,
            y_train=y,
            num_mcmc=draws,
            num_gfr=warm_starts,
            general_params={
                "random_seed": seed,
                "num_threads": 1,
                "num_chains": chains,
                "keep_every": thinning,
            },
        )
        noise = np.sqrt(model.global_var_samples)[:, None]

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            means = model.predict(new, terms="y_hat").T
            return means, np.broadcast_to(noise, means.shape)

        return Components(predict)

    return standardized(fit)
