"""The network's posterior by Hamiltonian Monte Carlo: the no-U-turn sampler of NumPyro."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.numpyro_network import (
    Parameters,
    Prior,
    draws_method,
    network_draws,
    relu_network,
)
from bowtienet.experiments.methods.standardized import Fitted

_MANY = 0.05
"""Share of transitions that went wrong from which a reader is told."""
DEEP = 10
"""NumPyro's own limit of a tree's depth."""


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

    def sample(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        draws, divergent, steps = _sampler(prior, n_warmup, n_draws, max_tree_depth)(x, y, seed)
        return network_draws(
            prior, draws, chain_note(np.asarray(divergent), np.asarray(steps), max_tree_depth)
        )

    return draws_method("NUTS", sample)


def deep(hidden: tuple[int, ...], **settings: Any) -> Method:
    """NUTS whose trees may grow as deep as NumPyro lets them: up to 1023 gradients a draw."""
    return nuts(hidden, max_tree_depth=DEEP, **settings)


@lru_cache(maxsize=8)
def _sampler(
    prior: Prior, n_warmup: int, n_draws: int, max_tree_depth: int
) -> Callable[[Any, Any, int], tuple[Parameters, Any, Any]]:
    """Inputs, targets and seed to draws, whether each diverged, and its gradients.

    Compiled as a whole and kept, so that only new shapes are compiled: a chain that is run again
    compiles its outer loop again.
    """
    import jax
    from numpyro.infer import MCMC, NUTS

    @jax.jit
    def run(key: Any, x: Any, y: Any) -> tuple[Parameters, Any, Any]:
        kernel = NUTS(lambda x, y: relu_network(prior, x, y), max_tree_depth=max_tree_depth)
        chain = MCMC(
            kernel,
            num_warmup=n_warmup,
            num_samples=n_draws,
            chain_method="sequential",
            progress_bar=False,
        )
        chain.run(key, x, y, extra_fields=("diverging", "num_steps"))
        fields = chain.get_extra_fields()
        return chain.get_samples(), fields["diverging"], fields["num_steps"]

    return lambda x, y, seed: run(jax.random.PRNGKey(seed), x, y)


def chain_note(divergent: np.ndarray, steps: np.ndarray, max_tree_depth: int) -> str | None:
    """What to say of draws that diverged or were cut short, where they are many."""
    most = 2**max_tree_depth - 1
    counts = {
        "diverged: the draws may miss parts of it": np.sum(divergent),
        f"were cut short after {most} gradients: neighbours are alike": np.sum(steps >= most),
    }
    told = [
        f"{found} of {len(steps)} transitions {words}"
        for words, found in counts.items()
        if found > _MANY * len(steps)
    ]
    return "; ".join(told) or None
