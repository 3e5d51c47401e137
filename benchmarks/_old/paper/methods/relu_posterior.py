"""The posterior of the ReLU network: by the no-U-turn sampler, and by mean-field VI, in NumPyro.

Mean-field VI has the factors

    q = Π N(v_i | m_i, d_i²) · LN(γ) · LN(s²),

one normal for each weight and bias and log-normals for the two variances, none correlated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks._old.paper.methods.common import Fit
from benchmarks._old.paper.methods.numpyro_network import (
    Parameters,
    Prior,
    Training,
    draws_method,
    forward,
    relu_network,
    variational_sampler,
)

_MANY = 0.05
"""Share of transitions that went wrong from which a reader is told."""
_DEEPEST = 10
"""NumPyro's own limit of a tree's depth."""
_FIRST_DEVIATION = 0.1
"""Of every factor before the first step; 0.01 led to the same RMSE on a split of energy."""


def nuts(
    hidden: tuple[int, ...], n_warmup: int = 500, n_draws: int = 500, max_tree_depth: int = 7
) -> Fit:
    """p(y | x) = Σ_k N(y | f_k(x), s_k²) / K over draws k of one chain.

    A transition takes at most 2^`max_tree_depth` - 1 gradients.
    """
    prior = Prior(hidden=tuple(hidden))

    def sample(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[Parameters, str | None]:
        draws, divergent, steps = _chain(prior, n_warmup, n_draws, max_tree_depth)(x, y, seed)
        return draws, chain_note(np.asarray(divergent), np.asarray(steps), max_tree_depth)

    return draws_method(sample, lambda one, x: forward(prior, one, x))


def nuts_deep(hidden: tuple[int, ...], **settings: Any) -> Fit:
    """NUTS whose trees may grow as deep as NumPyro lets them: up to 1023 gradients a draw."""
    return nuts(hidden, max_tree_depth=_DEEPEST, **settings)


@lru_cache(maxsize=8)
def _chain(
    prior: Prior, n_warmup: int, n_draws: int, max_tree_depth: int
) -> Callable[[Any, Any, int], tuple[Parameters, Any, Any]]:
    """Features, targets and seed to draws, whether each diverged, and its gradients.

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


def mean_field(
    hidden: tuple[int, ...],
    n_steps: int = 10_000,
    learning_rate: float = 0.02,
    n_draws: int = 1_000,
) -> Fit:
    """p(y | x) = Σ_k N(y | f_k(x), s_k²) / K over draws k of the guide.

    The paper runs Adam with a rate of 0.001 for 5,000 to 20,000 steps. Here it starts at 0.02 and
    falls to zero along a cosine: on one split of energy the test RMSE after 10,000 steps was 2.1,
    and 2.9 with a first rate of 0.001. On slump, with its few rows, every run that we tried, at
    either rate, ended with noise about as wide as the targets: the network explains nearly nothing.
    """
    prior = Prior(hidden=tuple(hidden))
    training = Training(n_steps=n_steps, learning_rate=learning_rate, n_draws=n_draws)
    return draws_method(
        lambda x, y, seed: (_guide_draws(prior, training)(x, y, seed), None),
        lambda one, x: forward(prior, one, x),
    )


@lru_cache(maxsize=8)
def _guide_draws(prior: Prior, training: Training) -> Callable[[Any, Any, int], Parameters]:
    """Kept for all data of a network, so that only new shapes are compiled."""
    from numpyro.infer.autoguide import AutoDiagonalNormal

    def model(x: Any, y: Any) -> None:
        relu_network(prior, x, y)

    return variational_sampler(
        model, lambda: AutoDiagonalNormal(model, init_scale=_FIRST_DEVIATION), training
    )
