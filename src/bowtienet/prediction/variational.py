"""Section 3.5: moments of new targets under q, in closed form by one of two routes, and draws.

`variational`, the paper's: for new inputs the local step is iterated without targets until its
gates stand still; then

    E[z] = m'mu~_L,   Var[z] = Tr((B + m m') P~_L) - E[z]².

It is the training code with the targets left out: the output sends no message, so the last hidden
layer's covariance is its noise alone. `push_forward` needs no iteration and lives in a module of
that name. docs/measurements compares them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import diagonal_matrix, map_arrays, slices
from bowtienet.distributions import gaussian, inverse_gamma
from bowtienet.inference.ascend import block_rows, workers
from bowtienet.inference.local_step import FactorsForRows, for_rows, settle
from bowtienet.model.model import BowTieModel
from bowtienet.model.simulate import Layer, preactivation, sample_model
from bowtienet.posterior.factors import Posterior, n_networks
from bowtienet.posterior.initialize import mean_activations
from bowtienet.posterior.moments import activation_spread, preactivation_mean, weight_spread
from bowtienet.prediction.push_forward import Moments, push_forward

Floats = NDArray[np.float64]

PROPAGATIONS = ("push_forward", "variational")
SETTLED = 1e-6
"""Largest move of a gate probability at which the iteration of "variational" stops."""
MOST_STEPS = 200
"""Most steps of that iteration."""


def output_moments(
    model: BowTieModel, posterior: Posterior, inputs: Floats, propagation: str = "push_forward"
) -> Moments:
    """Moments (M, n, D_out) of the outputs for inputs (n, D_0) on the scale of training.

    Parameters
    ----------
    propagation : {"push_forward", "variational"}
        Push the generative process forward, or iterate the local step as the paper does.
    """
    if propagation == "variational":
        step = partial(_settled, model, for_rows(without_targets(posterior)))
    else:
        step = partial(push_forward, model, posterior)
    size = block_rows(model, n_networks(posterior))
    blocks = [inputs[part] for part in slices(len(inputs), size)]
    with workers(len(blocks)) as apply:
        parts = list(apply(step, blocks))
    joined: Moments = map_arrays(lambda *arrays: np.concatenate(arrays, axis=1), *parts)
    return joined


def output_noise(model: BowTieModel, posterior: Posterior) -> Floats:
    """Variance (M, 1, D_out) of new targets given z; 0 for classes, whose noise is their own."""
    noise = inverse_gamma.mean(posterior.layers[-1].noise_variance)[:, None, :]
    if not model.outcome.has_noise:
        return np.zeros_like(noise)
    return np.asarray(noise * model.outcome.variance_ratio)


def without_targets(posterior: Posterior) -> Posterior:
    """Factors whose last hidden covariance is the noise alone, S_L = diag(1 / E[1/eta²_L])."""
    if len(posterior.layers) == 1:
        return posterior
    noise_precision = inverse_gamma.mean_inverse(posterior.layers[-2].noise_variance)
    return replace(posterior, shared_covariance=diagonal_matrix(1.0 / noise_precision))


def _settled(model: BowTieModel, posterior: FactorsForRows, inputs: Floats) -> Moments:
    """Moments of the outputs by the paper's iteration."""
    local, moments = settle(model, posterior, inputs, None, SETTLED, MOST_STEPS)
    weights = posterior.layers[-1].weights
    mean = preactivation_mean(weights, moments.inputs[-1])
    chance = np.zeros_like(mean)
    if local.activations:
        # Given the gates, q(a) varies by hidden noise alone.
        chance = chance + activation_spread(weights, local.activations, moments)
    return Moments(mean=mean, epistemic=weight_spread(weights, moments.inputs[-1]), chance=chance)


def sample_functions(
    model: BowTieModel,
    posterior: Posterior,
    inputs: Floats,
    n_draws: int,
    rng: np.random.Generator,
    *,
    noise: bool,
) -> Floats:
    """Draws (n_draws, n, D_out) from a single network (M = 1), each the same for all rows.

    With noise these are draws of targets, gates and all noise included. Without, gates and noise
    are replaced by their means given the weights, a = sigmoid(z/T) z, and the draw is a smooth
    function.
    """
    draws = []
    for _ in range(n_draws):
        layers = sample_layers(posterior, rng)
        if noise:
            drawn, _, _ = sample_model(
                layers, model.temperature, inputs, rng, outcome=model.outcome
            )
        else:
            *hidden, output = (weights for weights, _ in layers)
            drawn = preactivation(output, mean_activations(hidden, inputs, model.temperature))
        draws.append(drawn)
    return np.stack(draws)


def sample_layers(posterior: Posterior, rng: np.random.Generator) -> list[Layer]:
    """One draw of weights and noise variances from q; shrinkage has no part in prediction."""
    layers = posterior.layers
    weights = [gaussian.sample(layer.weights, rng)[0] for layer in layers]
    shapes = [layer.weights.mean.shape[:2] for layer in layers]
    noise = [
        inverse_gamma.sample(layer.noise_variance, rng, shape)[0]
        for layer, shape in zip(layers, shapes, strict=True)
    ]
    return list(zip(weights, noise, strict=True))
