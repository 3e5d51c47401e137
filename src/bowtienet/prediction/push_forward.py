"""Prediction by pushing the generative process forward under q(W) and q(eta²), without iteration.

For known inputs the preactivations of the first hidden layer are independent Gaussians,
z ~ N(m, v), and the activation a = gamma z + eta e with gamma | z ~ Bernoulli(sigmoid(z / T)) has
E[a] = E[g(z)] with g(z) = sigmoid(z/T) z, and

    Var[a] = Var[g(z)] + E[sigmoid (1 - sigmoid) z²] + E[eta²]:

what the weights leave open, and chance, which more rows would not take away. A mixture of probits
stands in for the sigmoid, sigmoid(x) = Σ_k p_k Phi(s_k x) to within 5e-5, and turns all of them
into closed forms: with c = T / s_k, r² = c² + v and h = m / r,

    E[Phi(z/c) z]  = m Phi(h) + v phi(h) / r,
    E[Phi(z/c) z²] = (m² + v) Phi(h) + v m (2 - v / r²) phi(h) / r,
    E[sigmoid (1 - sigmoid) z²] = T Σ_k p_k (c² / r²) (v + m² c² / r²) phi(h) / r,

the last because sigmoid (1 - sigmoid) is T times the derivative of sigmoid(z/T). One hidden layer
is exact up to that mixture. In deeper networks the next preactivation is taken for a Gaussian of
its exact mean, its variance leaves out the correlation of the units below, and what passes through
a layer keeps its shares of the two kinds of variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
        mean, spread = layer_moments(layer, mean, spread, model.temperature)
    return preactivation_moments(factors.layers[-1].weights, mean, spread)


def layer_moments(
    layer: LayerFactors, mean: Array, spread: Spread | None, temperature: float
) -> tuple[Array, Spread]:
    """E[a~] (n, D+1) and the spread of a (n, D) of a hidden layer from those of the layer below."""
    center, before = preactivation_moments(layer.weights, mean, spread)
    total = before.epistemic + before.chance
    activation, varied, gates = gated_moments(center, total, temperature)
    noise = gates + inverse_gamma.mean(layer.noise_variance)
    if spread is None:
        return with_ones(activation), Spread(epistemic=varied, chance=noise)
    xp = namespace(total)
    share = before.epistemic / xp.where(total > 0.0, total, xp.ones_like(total))
    return with_ones(activation), Spread(
        epistemic=share * varied, chance=(1.0 - share) * varied + noise
    )


def gated_moments(mean: Array, variance: Array, temperature: float) -> tuple[Array, Array, Array]:
    """E[g], Var[g] and E[sigmoid (1 - sigmoid) z²] for z ~ N(mean, variance).

    Most gates of most rows are open or shut beyond doubt, where g is z or zero: the integrals are
    done for the others only.
    """
    xp = namespace(mean)
    widest = (temperature / min(PROBIT_SLOPES)) ** 2
    in_doubt = mean * mean < (variance + widest) * _BEYOND_DOUBT**2
    opened = xp.astype(mean > 0.0, mean.dtype)
    certain = (mean * opened, variance * opened, xp.zeros_like(mean))
    return where_needed(
        in_doubt, partial(_integrals, temperature=temperature), (mean, variance), certain
    )


def _integrals(mean: Array, variance: Array, temperature: float) -> tuple[Array, Array, Array]:
    xp = namespace(mean)
    opened = xp.zeros_like(mean)
    edge, bend, gates = opened, opened, opened
    for weight, slope in zip(PROBIT_WEIGHTS, PROBIT_SLOPES, strict=True):
        width = (temperature / slope) ** 2
        inverse = 1.0 / xp.sqrt(variance + width)
        standardized = mean * inverse
        density = xp.exp(-0.5 * standardized * standardized) * (weight * _ROOT_TWO_PI_INVERSE)
        density = density * inverse
        ratio = width * inverse * inverse
        opened = opened + weight * special("ndtr", standardized)
        edge = edge + density
        bend = bend + (1.0 + ratio) * density
        gates = gates + ratio * (variance + mean * mean * ratio) * density
    first = mean * opened + variance * edge
    second = (mean * mean + variance) * opened + variance * mean * bend
    total = xp.clip(second - first * first, min=0.0)
    gates = xp.minimum(temperature * gates, total)
    return first, total - gates, gates


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
