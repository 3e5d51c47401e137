"""The network's posterior by Hamiltonian Monte Carlo: the no-U-turn sampler of NumPyro."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.numpyro_network import (
    Draws,
    Parameters,
    Prior,
    draws_method,
    network_draws,
    relu_network,
)

_MANY = 0.05
"""Share of divergent transitions from which a reader is told."""


def nuts(
    hidden: tuple[int, ...],
    n_warmup: int = 500,
    n_draws: int = 500,
    max_tree_depth: int = 7,
    **scales: float,
) -> Method:
    """p(y | x) = Σ_k N(y | f_k(x), s_k²) / K over draws k of one chain.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    n_warmup, n_draws : int
        Transitions to adapt in, and to keep.
    max_tree_depth : int
        A transition takes at most 2^depth - 1 gradients.
    **scales : float
        `weight_scale`, `bias_scale` and `noise_scale` of `Prior`.
    """
    prior = Prior(hidden=tuple(hidden), **scales)

    def sample(x: np.ndarray, y: np.ndarray, seed: int) -> Draws:
        draws, divergent = _sampler(prior, n_warmup, n_draws, max_tree_depth)(x, y, seed)
        return network_draws(prior, draws, divergence_note(int(np.sum(divergent)), n_draws))

    return draws_method("NUTS", sample)


@lru_cache(maxsize=8)
def _sampler(
    prior: Prior, n_warmup: int, n_draws: int, max_tree_depth: int
) -> Callable[[Any, Any, int], tuple[Parameters, Any]]:
    """Inputs, targets and seed to draws and whether each diverged.

    Compiled as a whole and kept, so that only new shapes are compiled: a chain that is run again
    compiles its outer loop again.
    """
    import jax
    from numpyro.infer import MCMC, NUTS

    @jax.jit
    def run(key: Any, x: Any, y: Any) -> tuple[Parameters, Any]:
        kernel = NUTS(lambda x, y: relu_network(prior, x, y), max_tree_depth=max_tree_depth)
        chain = MCMC(
            kernel,
            num_warmup=n_warmup,
            num_samples=n_draws,
            chain_method="sequential",
            progress_bar=False,
        )
        chain.run(key, x, y, extra_fields=("diverging",))
        return chain.get_samples(), chain.get_extra_fields()["diverging"]

    return lambda x, y, seed: run(jax.random.PRNGKey(seed), x, y)


def divergence_note(divergent: int, n_draws: int) -> str | None:
    """What to say of divergent transitions, where they are many."""
    if divergent <= _MANY * n_draws:
        return None
    return f"{divergent} of {n_draws} transitions diverged: the draws may miss parts of it"
