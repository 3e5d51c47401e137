"""Section 3.1: the factors shared by all observations, from summed statistics alone.

Every function updates one kind of factor exactly, for all layers, and leaves the others; each can
only raise the ELBO. None reads the data, so they may be repeated cheaply within a sweep.

M networks stand on the leading axis of all arrays, hyperparameters of the prior of tau included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bowtienet._arrays import (
    Array,
    bordered,
    diagonal,
    diagonal_matrix,
    inverse_and_log_determinant,
    is_number,
    namespace,
    pack,
    trace_of_product,
    unpack,
    with_ones,
)
from bowtienet.distributions import gaussian, inverse_gamma
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.inference.statistics import Statistics
from bowtienet.model.model import BowTieModel
from bowtienet.model.shrinkage import conjugate_update, mean_inverse, slab_update
from bowtienet.posterior.factors import LayerFactors, Posterior


def global_step(
    model: BowTieModel, factors: Posterior, statistics: Statistics, rounds: int = 3
) -> Posterior:
    """Update W, eta², tau, psi, c² and S_L in turn, `rounds` times.

    They read no data, and three rounds a sweep climb fastest (measured).
    """
    for _ in range(rounds):
        factors = update_weights(model, factors, statistics)
        factors = update_noise(model, factors, statistics)
        factors = update_global_shrinkage(model, factors)
        factors = update_local_shrinkage(model, factors)
        factors = update_slab(model, factors)
        factors = update_shared_covariance(factors, by_row=model.outcome.by_row)
    return factors


def update_weights(model: BowTieModel, factors: Posterior, statistics: Statistics) -> Posterior:
    """Rows N(m, B) of every layer.

    hidden:  B^{-1} = D^{-1} + Σ E[omega] P~ / T² + E[1/eta²] Σ rho P~
             B^{-1} m = E[1/eta²] Σ rho E[a a~] + Σ (rho - ½) mu~ / T
    output:  B^{-1} = D^{-1} + c Σ p P~,   B^{-1} m = c Σ k mu~
             with c = E[1/eta²] (1 without a noise variance), Gaussian targets p = 1 and k = y
    D^{-1} = diag(1/s0², E[1/tau] E[1/psi_1] + E[1/c²_1], ...), the last with a slab only

    A weight that does not exist is zero: its row and column are left out of B^{-1}.
    """
    updated = []
    for index, layer in enumerate(factors.layers):
        sums = statistics.layers[index]
        noise_precision = inverse_gamma.mean_inverse(layer.noise_variance)
        if index == len(factors.layers) - 1 and not model.outcome.has_noise:
            noise_precision = namespace(noise_precision).ones_like(noise_precision)
        precision = noise_precision[..., None] * layer_moment(factors, statistics, index)
        linear = noise_precision[..., None] * sums.cross
        if sums.polya_gamma_moment is not None and sums.half_gate_mean is not None:
            precision = precision + sums.polya_gamma_moment / model.temperature**2
            linear = linear + sums.half_gate_mean / model.temperature
        precision = unpack(precision, linear.shape[-1])
        precision = precision + diagonal_matrix(prior_precision(model, layer))
        covariance = _inverse_where_present(model, index, precision)
        mean = (covariance @ linear[..., None])[..., 0]
        updated.append(GaussianRows(mean=mean, covariance=covariance))
    return _with_factors(factors, "weights", updated)


def update_noise(model: BowTieModel, factors: Posterior, statistics: Statistics) -> Posterior:
    """eta² ~ IG(alpha_0 + count/2, beta_0 + ½ Σ E[(a - gamma z)²]), the output's with p (y - z)².

    That of an output without noise stays and is not used.
    """
    updated = [layer.noise_variance for layer in factors.layers]
    for index in range(len(updated) - 1 + model.outcome.has_noise):
        squares = expected_residual(factors, statistics, index)
        prior = model.noise(index)
        xp = namespace(squares)
        concentration = prior.concentration + 0.5 * statistics.count[..., None]
        updated[index] = InverseGamma(
            concentration=concentration * xp.ones_like(squares),
            scale=prior.scale + 0.5 * squares,
        )
    return _with_factors(factors, "noise_variance", updated)


def update_global_shrinkage(model: BowTieModel, factors: Posterior) -> Posterior:
    """tau ~ GIG(p - D K / 2, s + ½ Σ E[1/psi] E[W²], r), one for each layer.

    A half-Cauchy tau has p = -½, r = 0 and E[1/nu] for s, with q(nu) updated along with it.
    """
    prior = model.global_shrinkage
    updated = [
        conjugate_update(prior, model.n_weights(index), 0.5 * scaled_squares(layer))
        for index, layer in enumerate(factors.layers)
    ]
    return _with_factors(factors, "global_shrinkage", updated)


def update_local_shrinkage(model: BowTieModel, factors: Posterior) -> Posterior:
    """psi ~ GIG(p - ½, s + ½ E[1/tau] E[W²], r), one for each weight; a half-Cauchy as tau."""
    updated = []
    for index, layer in enumerate(factors.layers):
        half_squares = 0.5 * global_precision(layer) * weight_squares(layer)
        if model.connections is not None:
            # The scale of a weight that does not exist is never read; any but 0 is safe.
            half_squares = np.where(model.connections[index], half_squares, 1.0)
        updated.append(conjugate_update(model.local_shrinkage[index], 1, half_squares))
    return _with_factors(factors, "local_shrinkage", updated)


def update_slab(model: BowTieModel, factors: Posterior) -> Posterior:
    """c² ~ IG(a + ½, b + ½ E[W²]), one for each weight, if the prior has a slab."""
    prior = model.slab
    if prior is None:
        return factors
    updated = [slab_update(prior, weight_squares(layer)) for layer in factors.layers]
    return _with_factors(factors, "slab_variance", updated)


def update_shared_covariance(factors: Posterior, *, by_row: bool = False) -> Posterior:
    """S_L^{-1} = diag(E[1/eta²_L]) + Σ_d E[1/eta²_{L+1,d}] E[W_d'W_d], the same for every row.

    It does not exist where the precision of the outcome differs between rows.
    """
    if len(factors.layers) == 1 or by_row:
        return replace(factors, shared_covariance=None)
    output, last = factors.layers[-1], factors.layers[-2]
    xp = namespace(output.weights.mean)
    noise_precision = inverse_gamma.mean_inverse(output.noise_variance)
    second = gaussian.second_moment(output.weights)[..., 1:, 1:]
    precision = xp.sum(noise_precision[..., None, None] * second, axis=-3)
    precision = precision + diagonal_matrix(inverse_gamma.mean_inverse(last.noise_variance))
    covariance, _ = inverse_and_log_determinant(precision)
    return replace(factors, shared_covariance=covariance)


def expected_residual(factors: Posterior, statistics: Statistics, index: int) -> Array:
    """Σ E[(a_d - gamma_d z_d)²] (D,) of a hidden layer, Σ p E[(y_d - z_d)²] of the output.

        Σ E[a²] - 2 m'Σ rho E[a a~] + Tr((B + m m') Σ rho P~)

    The paper drops the covariance between a_l and a_{l-1} (docs/theory/errata, 1).
    """
    weights, sums = factors.layers[index].weights, statistics.layers[index]
    xp = namespace(weights.mean)
    own, shared = sums.square, factors.shared_covariance
    if index == len(factors.layers) - 2 and shared is not None:
        own = own + statistics.count[..., None] * diagonal(shared)
    squares = own - 2.0 * xp.sum(weights.mean * sums.cross, axis=-1)
    moment = unpack(layer_moment(factors, statistics, index), weights.mean.shape[-1])
    squares = squares + trace_of_product(gaussian.second_moment(weights), moment)
    # A sum of squares that is zero up to rounding may come out a little below zero.
    return xp.maximum(squares, xp.zeros_like(squares))


def layer_moment(factors: Posterior, statistics: Statistics, index: int) -> Array:
    """Σ rho E[a~ a~'] packed of a hidden layer, Σ p E[a~ a~'] of the output with count · S_L."""
    moment, shared = statistics.layers[index].moment, factors.shared_covariance
    if index == len(factors.layers) - 1 and shared is not None:
        moment = moment + statistics.count[..., None, None] * pack(bordered(shared))[..., None, :]
    return moment


def prior_precision(model: BowTieModel, layer: LayerFactors) -> Array:
    """Diagonal of D^{-1} (D, K+1): 1/s0², and E[1/tau] E[1/psi] with E[1/c²] of a slab."""
    mean = layer.weights.mean
    xp = namespace(mean)
    shrinkage = global_precision(layer) * mean_inverse(layer.local_shrinkage)
    if layer.slab_variance is not None:
        shrinkage = shrinkage + inverse_gamma.mean_inverse(layer.slab_variance)
    ones = xp.ones_like(mean)
    return xp.concat([ones[..., :1] / model.bias_variance, ones[..., 1:] * shrinkage], axis=-1)


def global_precision(layer: LayerFactors) -> Array:
    """E[1/tau] of a layer, to be broadcast against its weights (D, K)."""
    precision = mean_inverse(layer.global_shrinkage)
    return precision if is_number(precision) else precision[..., None, None]


def scaled_squares(layer: LayerFactors) -> Array:
    """Σ E[1/psi] E[W²] of a layer ()."""
    squares = weight_squares(layer)
    return namespace(squares).sum(mean_inverse(layer.local_shrinkage) * squares, axis=(-2, -1))


def weight_squares(layer: LayerFactors) -> Array:
    """E[W²] (D, K) without the biases."""
    return gaussian.squares(layer.weights)[..., 1:]


def _with_factors(factors: Posterior, name: str, updated: Sequence[Any]) -> Posterior:
    """One kind of factor replaced in every layer."""
    layers = zip(factors.layers, updated, strict=True)
    return replace(factors, layers=tuple(replace(layer, **{name: q}) for layer, q in layers))


def _inverse_where_present(model: BowTieModel, index: int, precision: Array) -> Array:
    """Inverse of the rows and columns of weights that exist, zero in the others."""
    if model.connections is None:
        return inverse_and_log_determinant(precision)[0]
    there = with_ones(1.0 * model.connections[index]) > 0.0
    both = there[:, :, None] & there[:, None, :]
    absent = diagonal_matrix(1.0 * ~there)
    inverse, _ = inverse_and_log_determinant(np.where(both, precision, 0.0) + absent)
    return np.where(both, inverse, 0.0)
