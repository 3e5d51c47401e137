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

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import pack_for_trace, pack_outer, transpose, with_ones
from bowtienet.distributions import gaussian, inverse_gamma
from bowtienet.distributions.gated import gated_moments
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.model.model import BowTieModel
from bowtienet.posterior.factors import LayerFactors, Posterior
from bowtienet.posterior.moments import preactivation_mean, weight_spread

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Mean and variance (M, n, D) of activations, preactivations or outputs of M networks."""

    mean: Floats
    epistemic: Floats
    """Variance of the mean given the weights: what the weights leave open."""
    chance: Floats
    """Variance by gates and hidden noise given the weights."""


def push_forward(model: BowTieModel, posterior: Posterior, inputs: Floats) -> Moments:
    """Moments of the outputs, without the noise of the targets."""
    activation = None
    for layer in posterior.layers[:-1]:
        before = preactivation_moments(layer.weights, inputs, activation)
        activation = activation_moments(layer, before, model.temperature)
    return preactivation_moments(posterior.layers[-1].weights, inputs, activation)


def activation_moments(layer: LayerFactors, before: Moments, temperature: float) -> Moments:
    """Moments of a from those of its preactivation z."""
    total = before.epistemic + before.chance
    mean, varied, gates = gated_moments(before.mean, total, temperature)
    noise = gates + inverse_gamma.mean(layer.noise_variance)[:, None, :]
    share = before.epistemic / np.where(total > 0.0, total, 1.0)
    return Moments(mean=mean, epistemic=share * varied, chance=(1.0 - share) * varied + noise)


def preactivation_moments(weights: GaussianRows, inputs: Floats, below: Moments | None) -> Moments:
    """E[z] = m'mu~ and the parts of Var[z] = mu~'B mu~ + Σ_k (B + m m')_kk Var[a_k].

    `below` has the moments of the layer below; None where that is the inputs (n, K).
    """
    mean = with_ones(inputs if below is None else below.mean)
    if weights.covariance.shape[1] <= 4:
        open_ = np.maximum(weight_spread(weights, mean), 0.0)
    else:
        # All squares once, cheaper for many units; positive but for rounding.
        open_ = np.maximum(pack_outer(mean) @ transpose(pack_for_trace(weights.covariance)), 0.0)
    center = preactivation_mean(weights, mean)
    if below is None:
        return Moments(mean=center, epistemic=open_, chance=np.zeros_like(open_))
    squares = transpose(gaussian.squares(weights)[..., 1:])
    return Moments(
        mean=center, epistemic=open_ + below.epistemic @ squares, chance=below.chance @ squares
    )
