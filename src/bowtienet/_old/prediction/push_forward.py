"""Prediction by pushing the generative process forward under q(W) and q(eta²), without iteration.

For known inputs the preactivations of the first hidden layer are independent Gaussians z, and the
activation a = gamma z + eta e has the mean and the variances of `distributions.gated`: what the
weights leave open, and chance, which more rows would not take away. One hidden layer is exact up to
the mixture of probits there. In deeper networks the next preactivation is taken for a Gaussian of
its exact mean, its variance leaves out the correlation of the units below, and what passes through
a layer keeps its shares of the two kinds of variance.
"""

from __future__ import annotations

from dataclasses import dataclass

from bowtienet._old._arrays import Array, namespace, pack_for_trace, pack_outer, with_ones
from bowtienet._old.distributions import gaussian, inverse_gamma
from bowtienet._old.distributions.gated import gated_moments
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors, LayerFactors
from bowtienet._old.posterior.moments import preactivation_mean

_FEW = 4
"""Up to so many units their quadratic forms are cheaper one by one."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Variance (n, D) of activations or outputs, in its two kinds."""

    epistemic: Array
    """Of the mean given the weights: what the weights leave open."""
    chance: Array
    """Of gates and hidden noise given the weights."""


def push_forward(model: BowTieModel, factors: GlobalFactors, inputs: Array) -> tuple[Array, Spread]:
    """Mean (n, D_out) and spread of the network's output, without its noise."""
    mean, spread = with_ones(inputs), None
    for layer in factors.layers[:-1]:
        mean, spread = layer_moments(layer, mean, spread, model.gate_temperature)
    return preactivation_moments(factors.layers[-1].weights, mean, spread)


def push_preactivations(
    model: BowTieModel, factors: GlobalFactors, center: Array, variance: Array
) -> tuple[Array, Spread]:
    """`push_forward` from E[z] and Var[z] (n, D_1) of the first layer on."""
    before = Spread(epistemic=variance, chance=namespace(variance).zeros_like(variance))
    if len(factors.layers) == 1:
        return center, before
    mean, spread = activation_moments(factors.layers[0], center, before, model.gate_temperature)
    for layer in factors.layers[1:-1]:
        mean, spread = layer_moments(layer, mean, spread, model.gate_temperature)
    return preactivation_moments(factors.layers[-1].weights, mean, spread)


def layer_moments(
    layer: LayerFactors, mean: Array, spread: Spread | None, gate_temperature: float
) -> tuple[Array, Spread]:
    """E[a~] (n, D+1) and the spread of a (n, D) of a hidden layer from those of the layer below."""
    center, before = preactivation_moments(layer.weights, mean, spread)
    return activation_moments(layer, center, before, gate_temperature)


def activation_moments(
    layer: LayerFactors, center: Array, before: Spread, gate_temperature: float
) -> tuple[Array, Spread]:
    """E[a~] (n, D+1) and the spread of a (n, D) of a hidden layer from E[z] and the spread of z."""
    total = before.epistemic + before.chance
    activation, varied, gates = gated_moments(center, total, gate_temperature)
    noise = gates + inverse_gamma.mean(layer.noise_variance)
    xp = namespace(total)
    share = before.epistemic / xp.where(total > 0.0, total, xp.ones_like(total))
    return with_ones(activation), Spread(
        epistemic=share * varied, chance=(1.0 - share) * varied + noise
    )


def preactivation_moments(
    weights: GaussianRows, mean: Array, spread: Spread | None
) -> tuple[Array, Spread]:
    """E[z] = m'mu~ and the parts of Var[z] = mu~'B mu~ + Σ_k (B + m m')_kk Var[a_k], (n, D)."""
    xp = namespace(mean)
    if weights.covariance.shape[0] <= _FEW:
        own = xp.sum((mean @ weights.covariance) * mean[None, :, :], axis=-1).T
    else:
        # All squares once for many units; positive but for rounding.
        own = xp.clip(pack_outer(mean) @ pack_for_trace(weights.covariance).T, min=0.0)
    center = preactivation_mean(weights, mean)
    if spread is None:
        return center, Spread(epistemic=own, chance=xp.zeros_like(own))
    squares = gaussian.squares(weights)[:, 1:].T
    return center, Spread(
        epistemic=own + spread.epistemic @ squares, chance=spread.chance @ squares
    )
