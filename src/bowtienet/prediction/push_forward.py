"""Prediction by pushing the generative process forward under q(W) and q(eta²), without iteration.

For known inputs the preactivations of the first hidden layer are independent Gaussians,
z ~ N(m, v), and the activation a = gamma z + eta e with gamma | z ~ Bernoulli(sigmoid(z / T)) has

    E[a] = E[sigmoid(z/T) z],   E[a²] = E[sigmoid(z/T) z²] + E[eta²].

A mixture of probits stands in for the sigmoid, sigmoid(x) = Σ_k p_k Phi(s_k x) to within 5e-5, and
turns both integrals into closed forms: with c = T / s_k, r² = c² + v and h = m / r,

    E[Phi(z/c)]    = Phi(h),
    E[Phi(z/c) z]  = m Phi(h) + v phi(h) / r,
    E[Phi(z/c) z²] = (m² + v) Phi(h) + v m (2 - v / r²) phi(h) / r.

One hidden layer is exact up to that mixture. In deeper networks the next preactivation is taken for
a Gaussian of its exact mean, and its variance leaves out the correlation of the units below.
"""

from __future__ import annotations

import math
from functools import partial

from bowtienet._arrays import (
    Array,
    namespace,
    pack_for_trace,
    pack_outer,
    special,
    where_needed,
    with_ones,
)
from bowtienet.distributions import gaussian, inverse_gamma
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.model.priors import BowTieModel
from bowtienet.posterior.factors import GlobalFactors, LayerFactors
from bowtienet.posterior.moments import preactivation_mean

PROBIT_WEIGHTS = (0.16257377, 0.58522407, 0.25220216)
PROBIT_SLOPES = (0.36403796, 0.57778725, 0.90793031)
"""Least largest error of Σ p_k Phi(s_k x) from sigmoid(x) with three terms: 4.4e-5."""
_ROOT_TWO_PI_INVERSE = 1.0 / math.sqrt(2.0 * math.pi)
_BEYOND_DOUBT = 6.5
"""Standard deviations between a preactivation and its gate's edge: the rest is below 1e-10."""
_FEW = 4
"""Up to so many units their quadratic forms are cheaper one by one."""


def push_forward(model: BowTieModel, factors: GlobalFactors, inputs: Array) -> tuple[Array, Array]:
    """Mean and variance (n, D_out) of the network's output, without its noise."""
    mean, variance = with_ones(inputs), None
    for layer in factors.layers[:-1]:
        mean, variance = layer_moments(layer, mean, variance, model.temperature)
    return preactivation_moments(factors.layers[-1].weights, mean, variance)


def layer_moments(
    layer: LayerFactors, mean: Array, variance: Array | None, temperature: float
) -> tuple[Array, Array]:
    """E[a~] (n, D+1) and Var[a] (n, D) of a hidden layer from those of the layer below."""
    center, spread = preactivation_moments(layer.weights, mean, variance)
    activation, square = gated_moments(center, spread, temperature)
    xp = namespace(activation)
    # A difference of nearly equal squares: where a gate is shut it may round below zero.
    gated = xp.where(square > activation**2, square - activation**2, xp.zeros_like(square))
    return with_ones(activation), gated + inverse_gamma.mean(layer.noise_variance)


def gated_moments(mean: Array, variance: Array, temperature: float) -> tuple[Array, Array]:
    """E[sigmoid(z/T) z] and E[sigmoid(z/T) z²] for z ~ N(mean, variance).

    Most gates of most rows are open or shut beyond doubt, where these are z's own moments or zero:
    the integrals are done for the others only.
    """
    xp = namespace(mean)
    widest = (temperature / min(PROBIT_SLOPES)) ** 2
    square = mean * mean
    in_doubt = square < (variance + widest) * _BEYOND_DOUBT**2
    opened = xp.astype(mean > 0.0, mean.dtype)
    certain = (mean * opened, (square + variance) * opened)
    return where_needed(
        in_doubt, partial(_integrals, temperature=temperature), (mean, variance), certain
    )


def _integrals(mean: Array, variance: Array, temperature: float) -> tuple[Array, Array]:
    xp = namespace(mean)
    opened = xp.zeros_like(mean)
    first, second = opened, opened
    for weight, slope in zip(PROBIT_WEIGHTS, PROBIT_SLOPES, strict=True):
        inverse = 1.0 / xp.sqrt(variance + (temperature / slope) ** 2)
        standardized = mean * inverse
        share = special("ndtr", standardized)
        density = xp.exp(-0.5 * standardized * standardized) * _ROOT_TWO_PI_INVERSE
        edge = variance * inverse
        edge_density = edge * (weight * density)
        opened = opened + weight * share
        first = first + edge_density
        second = second + (2.0 - edge * inverse) * edge_density
    square = mean * mean + variance
    return mean * opened + first, square * opened + mean * second


def preactivation_moments(
    weights: GaussianRows, mean: Array, variance: Array | None
) -> tuple[Array, Array]:
    """E[z] = m'mu~ and Var[z] = mu~'B mu~ + Σ_k (B + m m')_kk Var[a_k], both (n, D)."""
    xp = namespace(mean)
    if weights.covariance.shape[0] <= _FEW:
        spread = xp.sum((mean @ weights.covariance) * mean[None, :, :], axis=-1).T
    else:
        # All squares once for many units; positive but for rounding.
        spread = xp.clip(pack_outer(mean) @ pack_for_trace(weights.covariance).T, min=0.0)
    if variance is not None:
        spread = spread + variance @ gaussian.squares(weights)[:, 1:].T
    return preactivation_mean(weights, mean), spread
