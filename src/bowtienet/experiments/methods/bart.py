"""BART: a sum of Bayesian trees (Chipman, George and McCulloch, 2010), as stochtree samples it."""

from __future__ import annotations

import numpy as np

from bowtienet._validation import whole
from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.standardized import Fitted, standardized


def bart(draws: int = 100, thinning: int = 5, warm_starts: int = 10, chains: int = 4) -> Method:
    """Σ_k N(y | f_k(x), s_k²) / K, each f_k a sum of 200 trees.

    Trees and priors are the defaults of stochtree: forests are grown from their roots, and the
    sampler goes on from there. Its one chain of 100 steps is far too short, hence more of them.

    Parameters
    ----------
    draws : int
        Draws that are kept of each chain.
    thinning : int
        Steps between two of them.
    warm_starts : int
        Forests that are grown from their roots; a chain starts at each of the last.
    chains : int
        How many chains; no more than warm starts.
    """
    sizes = {
        "num_mcmc": whole(draws, "draws"),
        "num_gfr": whole(warm_starts, "warm_starts"),
    }
    steps, parallel = whole(thinning, "thinning"), whole(chains, "chains")

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        from stochtree import BARTModel  # here: it takes seconds to load

        model = BARTModel()
        general = {
            "random_seed": seed,
            "num_threads": 1,
            "num_chains": parallel,
            "keep_every": steps,
        }
        model.sample(X_train=x, y_train=y, general_params=general, **sizes)
        noise = np.sqrt(model.global_var_samples)[:, None]

        def components(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            means = model.predict(new, terms="y_hat").T
            return means, np.broadcast_to(noise, means.shape)

        return Fitted(components)

    return standardized("stochtree", fit)
