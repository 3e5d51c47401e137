"""The ReLU network that the paper's competitors share, written for NumPyro.

    y = W_{L+1} relu(z_L) + b_{L+1} + e,     e ~ N(0, s²),     s² ~ IG(2, σ_y),
    z_1 = W_1 x + b_1,     z_l = W_l relu(z_{l-1}) + b_l,
    W_l ~ N(0, σ_W² γ / D_{l-1}),     b_l ~ N(0, σ_b² γ),     γ ~ IG(2, 1),

one γ for the whole network. Two things differ from the paper's appendix. It divides the variance of
the weights by √D_{l-1}: the prior of the function would then grow with its width, and its own
priors, after which it sets σ_W, divide by D_{l-1}; we do so too. It leaves the targets as they are:
we standardise them, as all competitors here do, so that one choice of the σ's serves all data.

Samplers and guides see standard normal weights v, with W_l = σ_W √(γ / D_{l-1}) v. The model is the
same, and its posterior has no funnel where γ is small.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks._old.paper.methods.common import Components, Fit, standardized

Parameters = dict[str, Any]
"""Arrays by the names of their sites; draws have a first axis more."""


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Sizes and scales of the network; hashable, so that compiled fits can be kept by it."""

    hidden: tuple[int, ...]
    """Units D_1, ..., D_L of the hidden layers."""
    weight_scale: float = 1.0
    """σ_W."""
    bias_scale: float = 1.0
    """σ_b."""
    noise_scale: float = 0.01
    """σ_y, the prior mean of the noise's variance, in units of that of the targets."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Adam on one draw of the bound with all rows, at a rate that falls to zero along a cosine."""

    n_steps: int
    learning_rate: float
    """Of the first step; that of step t is r (1 + cos(π t / steps)) / 2."""
    n_draws: int
    """Draws of the fitted guide that predict."""

    def rate(self, step: Any) -> Any:
        """Learning rate of a step."""
        import jax.numpy as jnp

        return 0.5 * self.learning_rate * (1.0 + jnp.cos(jnp.pi * step / self.n_steps))


def layer_sizes(prior: Prior, n_features: int) -> list[tuple[int, int]]:
    """(D_{l-1}, D_l) of every layer, the output last."""
    return list(pairwise([n_features, *prior.hidden, 1]))


def relu_network(prior: Prior, x: Any, y: Any = None) -> None:
    """p(v, γ, s²) p(y | x, v, γ, s²), as NumPyro takes a model."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    def standard(name: str, *shape: int) -> Any:
        return numpyro.sample(name, dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape)))

    parameters: Parameters = {"scale": numpyro.sample("scale", dist.InverseGamma(2.0, 1.0))}
    for layer, (before, after) in enumerate(layer_sizes(prior, x.shape[1])):
        parameters[f"weights_{layer}"] = standard(f"weights_{layer}", before, after)
        parameters[f"bias_{layer}"] = standard(f"bias_{layer}", after)
    variance = numpyro.sample("noise_variance", dist.InverseGamma(2.0, prior.noise_scale))
    mean = forward(prior, parameters, x)
    numpyro.sample("y", dist.Normal(mean, jnp.sqrt(variance)).to_event(1), obs=y)


def forward(prior: Prior, parameters: Parameters, x: Any) -> Any:
    """W_{L+1} relu(z_L) + b_{L+1}, (n,), of one draw of the parameters."""
    import jax.numpy as jnp

    root, signal = jnp.sqrt(parameters["scale"]), x
    for layer, (before, _) in enumerate(layer_sizes(prior, x.shape[1])):
        if layer:
            signal = jnp.maximum(signal, 0.0)
        weights = prior.weight_scale * root / before**0.5 * parameters[f"weights_{layer}"]
        signal = signal @ weights + prior.bias_scale * root * parameters[f"bias_{layer}"]
    return signal[:, 0]


def draws_method(
    sample: Callable[[Any, Any, int], tuple[Parameters, str | None]],
    function: Callable[[Parameters, Any], Any],
) -> Fit:
    """Σ_k N(y | f_k(x), s_k²) / K over draws k, all in single precision.

    `sample` gives draws of the parameters and a note; `function` of a draw and rows is f_k (n,).
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        with single_precision():
            parameters, note = sample(x, y, seed)
        deviations = np.sqrt(np.asarray(parameters["noise_variance"], dtype=float))[:, None]

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            import jax

            # One draw after the other, which bounds the memory whatever their number.
            with single_precision():
                run = jax.jit(lambda draws: jax.lax.map(lambda one: function(one, new), draws))
                means = np.asarray(run(parameters), float)
            return means, np.broadcast_to(deviations, means.shape)

        return Components(predict, note)

    return standardized(fit, np.float32)


def variational_sampler(
    model: Callable[[Any, Any], None], make_guide: Callable[[], Any], training: Training
) -> Callable[[Any, Any, int], Parameters]:
    """Features, targets and seed to draws of the fitted guide, compiled as one function of arrays.

    The guide is made anew for each shape of the arrays, as guides remember the first they saw.
    """
    import jax
    from numpyro.infer import SVI, Predictive, Trace_ELBO
    from numpyro.optim import Adam

    @jax.jit
    def run(key: Any, x: Any, y: Any) -> Any:
        guide = make_guide()
        inference = SVI(model, guide, Adam(training.rate), Trace_ELBO())
        start_key, draw_key = jax.random.split(key)

        def step(_: Any, state: Any) -> Any:
            return inference.update(state, x, y)[0]

        state = jax.lax.fori_loop(0, training.n_steps, step, inference.init(start_key, x, y))
        params = inference.get_params(state)
        return Predictive(guide, params=params, num_samples=training.n_draws)(draw_key, x, y)

    return lambda x, y, seed: run(jax.random.PRNGKey(seed), x, y)


def single_precision() -> AbstractContextManager[Any]:
    """JAX in single precision inside, whatever it is outside, which stays as it is."""
    import jax

    # Its place since jax 0.8; before, it stood among the experimental ones.
    place = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
    return place.enable_x64(False)
