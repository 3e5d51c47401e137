"""Appendix B: the evidence lower bound, complete and split by block.

It weighs members of an ensemble and is maximised in hyperparameters, so no constant is dropped
(the paper drops some, docs/theory/errata, 8). With the local factors summed up in statistics it is
a function of those and of the global factors: no pass over the data.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log, pi

from bowtienet._arrays import Array, log_determinant, namespace, trace_of_product, unpack
from bowtienet.distributions import gaussian, inverse_gamma
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.inference.global_step import (
    expected_residual,
    layer_moment,
    scaled_squares,
    weight_squares,
)
from bowtienet.inference.statistics import Statistics
from bowtienet.model.model import BowTieModel
from bowtienet.model.shrinkage import elbo_term, mean_inverse
from bowtienet.posterior.factors import LayerFactors, Posterior


@dataclass(frozen=True, kw_only=True)
class ElboTerms:
    """The bound of M networks by block, (M,); each term is E_q[log p - log q] of what it names."""

    likelihood: Array
    activations: Array
    gates: Array
    polya_gamma: Array
    weights: Array
    noise_variance: Array
    global_shrinkage: Array
    local_shrinkage: Array

    @property
    def total(self) -> Array:
        """The evidence lower bound."""
        return sum(getattr(self, field.name) for field in fields(self))


def elbo(model: BowTieModel, factors: Posterior, statistics: Statistics) -> ElboTerms:
    """Evidence lower bound of the local factors behind `statistics` and the global `factors`.

    Terms of the scales are E[log p(x) - log q(x)] with the -½ E[log x] of the weights' prior.
    """
    zero = 0.0 * factors.layers[-1].weights.mean[..., 0, 0]
    hidden, layers = range(len(factors.layers) - 1), range(len(factors.layers))
    noise = [
        inverse_gamma.expected_log_ratio(layer.noise_variance, model.noise(i)).sum(axis=-1)
        for i, layer in enumerate(factors.layers)
        if i in hidden or model.outcome.has_noise
    ]
    global_shrinkage = [
        elbo_term(layer.global_shrinkage, model.global_shrinkage, model.n_weights(i))
        for i, layer in enumerate(factors.layers)
    ]
    return ElboTerms(
        likelihood=_likelihood(model, factors, statistics),
        activations=sum((_activation_term(factors, statistics, i) for i in hidden), zero),
        gates=sum((_gate_term(model, factors, statistics, i) for i in hidden), zero),
        polya_gamma=sum((_polya_gamma_term(model, factors, statistics, i) for i in hidden), zero),
        weights=sum((_weight_term(model, factors, i) for i in layers), zero),
        noise_variance=sum(noise, zero),
        global_shrinkage=sum(global_shrinkage, zero),
        local_shrinkage=sum((_local_term(model, factors, i) for i in layers), zero),
    )


def _likelihood(model: BowTieModel, factors: Posterior, statistics: Statistics) -> Array:
    """Σ E[log p(y | z)] of Gaussian targets, and the outcome's bound on it of others.

    With a noise variance the Gaussian term with weights p, without one Σ k E[z] - ½ p E[z²]; both
    with the constants of the rows.
    """
    constant, last = statistics.constant, len(factors.layers) - 1
    if model.outcome.has_noise:
        term = _gaussian_term(factors, statistics, last)
        return term if constant is None else term + constant
    assert constant is not None
    weights, cross = factors.layers[-1].weights, statistics.layers[-1].cross
    xp = namespace(weights.mean)
    moment = unpack(layer_moment(factors, statistics, last), cross.shape[-1])
    squares = trace_of_product(gaussian.second_moment(weights), moment)
    parabola = xp.sum(xp.sum(weights.mean * cross, axis=-1) - 0.5 * squares, axis=-1)
    return constant + parabola


def _gaussian_term(factors: Posterior, statistics: Statistics, index: int) -> Array:
    """Σ -½ log 2pi - ½ E[log eta²] - ½ E[1/eta²] E[(a - gamma z)²]."""
    noise = factors.layers[index].noise_variance
    xp = namespace(noise.scale)
    residual = expected_residual(factors, statistics, index)
    constant = statistics.count[..., None] * (log(2.0 * pi) + inverse_gamma.mean_log(noise))
    return -0.5 * xp.sum(constant + inverse_gamma.mean_inverse(noise) * residual, axis=-1)


def _activation_term(factors: Posterior, statistics: Statistics, index: int) -> Array:
    """The Gaussian term and the entropy Σ ½ log|S| + ½ D (1 + log 2pi)."""
    width = factors.layers[index].weights.mean.shape[-2]
    entropy = statistics.layers[index].activation_entropy
    if index == len(factors.layers) - 2 and factors.shared_covariance is not None:
        shared = log_determinant(factors.shared_covariance)
        entropy = entropy + 0.5 * statistics.count * shared
    entropy = entropy + 0.5 * statistics.count * width * (1.0 + log(2.0 * pi))
    return _gaussian_term(factors, statistics, index) + entropy


def _gate_term(model: BowTieModel, factors: Posterior, statistics: Statistics, index: int) -> Array:
    """Σ (rho - ½) E[z] / T - log 2 - rho log rho - (1 - rho) log(1 - rho)."""
    mean, sums = factors.layers[index].weights.mean, statistics.layers[index]
    total = namespace(mean).sum(mean * sums.half_gate_mean, axis=(-2, -1))
    constant = statistics.count * mean.shape[-2] * log(2.0)
    return total / model.temperature - constant + sums.gate_entropy


def _polya_gamma_term(
    model: BowTieModel, factors: Posterior, statistics: Statistics, index: int
) -> Array:
    """Σ -½ E[omega] (E[z²] / T² - A²) - log cosh(A/2)."""
    weights, sums = factors.layers[index].weights, statistics.layers[index]
    moment = unpack(sums.polya_gamma_moment, weights.mean.shape[-1])
    products = trace_of_product(gaussian.second_moment(weights), moment)
    squares = namespace(moment).sum(products, axis=-1)
    return sums.polya_gamma_ratio - 0.5 * squares / model.temperature**2


def _weight_term(model: BowTieModel, factors: Posterior, index: int) -> Array:
    """Entropy of (b, W), prior of b, and the prior of W but for its E[log tau] and E[log psi]."""
    layer = factors.layers[index]
    xp = namespace(layer.weights.mean)
    width = layer.weights.mean.shape[-2]
    bias_squares = xp.sum(gaussian.squares(layer.weights)[..., 0], axis=-1)
    n_weights = model.n_weights(index)
    squares = 0.0
    if n_weights:  # otherwise E[1/tau] is the prior's, which may be infinite
        squares = mean_inverse(layer.global_shrinkage) * scaled_squares(layer)
    variance = model.bias_variance
    bias = -0.5 * (width * (log(2.0 * pi) + log(variance)) + bias_squares / variance)
    weights = -0.5 * (n_weights * log(2.0 * pi) + squares)
    return xp.sum(gaussian.entropy(layer.weights), axis=-1) + bias + weights


def _local_term(model: BowTieModel, factors: Posterior, index: int) -> Array:
    """E[log p(psi) - log q(psi)] with the -½ E[log psi] of the weights' prior, and the slab's."""
    layer, prior = factors.layers[index], model.local_shrinkage[index]
    there = None if model.connections is None else model.connections[index]
    scales = elbo_term(layer.local_shrinkage, prior, model.n_weights(index), there, axes=(-2, -1))
    return scales + _slab_term(model, layer, there)


def _slab_term(model: BowTieModel, layer: LayerFactors, there: Array | None) -> Array | float:
    """Σ E[log N(0 | W, c²) + log p(c²) - log q(c²)] - log t(0), t the Student-t that c² makes.

    N(0 | 0, c²) IG(c² | a, b) = t(0) IG(c² | a + ½, b). With that constant a slab without an end
    changes nothing, and what is bounded is no more than the evidence: see docs/theory/model.
    """
    prior, slab = model.slab, layer.slab_variance
    if prior is None or slab is None:
        return 0.0
    tilted = InverseGamma(concentration=prior.concentration + 0.5, scale=prior.scale)
    terms = inverse_gamma.expected_log_ratio(slab, tilted)
    terms = terms - 0.5 * inverse_gamma.mean_inverse(slab) * weight_squares(layer)
    xp = namespace(terms)
    if there is not None:
        terms = xp.where(there, terms, xp.zeros_like(terms))
    return xp.sum(terms, axis=(-2, -1))
