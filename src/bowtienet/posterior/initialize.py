"""Appendix D.1, "Initialization schemes": where the networks start.

The paper's two random schemes give the mean of the hidden weights, `laplace` and `spike_slab` (its
algorithm 3: knots uniform over the range of the layer before, widened by 5 %, so that every unit
bends inside the data). The output layer is a ridge regression on the last hidden layer, all
covariances are 0.01 I, noise starts at its prior, and shrinkage scales are drawn so that the mean
of q is a draw from the prior (with -nu where the paper prints nu, docs/theory/errata, 11). A slab
starts at its update.

The third start is around given weights, those of a ReLU network: tight, with the noise of its
residuals and the shrinkage that suits its weights, or the first sweep would forget it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bowtienet._arrays import map_arrays
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.model import BowTieModel, Rows, take_rows
from bowtienet.model.shrinkage import (
    Shrinkage,
    ShrinkagePrior,
    conjugate_update,
    mean_inverse,
    slab_update,
)
from bowtienet.model.simulate import preactivation, sample_shrinkage
from bowtienet.posterior.factors import LayerFactors, Posterior

Floats = NDArray[np.float64]

START_VARIANCE = 0.01
"""The paper's variance of every weight."""
NETWORK_VARIANCE = 1e-6
"""Variance of the weights of a given network: small compared with the noise, even where that is
nearly zero, or the first sweep forgets the network."""


def initialize(
    model: BowTieModel, rows: Rows, rng: np.random.Generator, count: int, init: str
) -> Posterior:
    """`count` networks from one of the paper's random schemes, "laplace" or "spike_slab".

    The model is a new one, whose hyperparameters EM has not moved.
    """
    candidates = np.flatnonzero(rows.weights > 0.0)
    most = 10_000  # drawn at random: these schemes only say where to begin
    if candidates.size > most:
        candidates = np.sort(rng.choice(candidates, size=most, replace=False))
    rows = take_rows(rows, candidates)
    targets = model.outcome.working_targets(rows.targets)
    networks = []
    for _ in range(count):
        means = random_weights(model.architecture.hidden, model.temperature, rows.inputs, rng, init)
        features = mean_activations(means, rows.inputs, model.temperature)
        means.append(ridge(features, targets, rows.weights))
        networks.append(build_posterior(model, means, rng))
    return stacked(networks)


def around(
    model: BowTieModel, layers: Sequence[Floats], rows: Rows, rng: np.random.Generator
) -> Posterior:
    """Networks tight around weights (M, D, K+1) of each layer, with the noise of their residuals.

    eta² ~ IG(alpha_0 + count/2, beta_0 + ½ Σ (y - f)²)
    """
    networks = []
    for means in zip(*layers, strict=True):
        posterior = build_posterior(model, means, rng, variance=NETWORK_VARIANCE)
        updated = [_with_suited_shrinkage(model, *each) for each in enumerate(posterior.layers)]
        if model.outcome.has_noise:
            activations = mean_activations(means[:-1], rows.inputs, model.temperature)
            errors = rows.targets - preactivation(means[-1], activations)
            prior = model.noise(len(means) - 1)
            noise = InverseGamma(
                concentration=np.full(
                    (1, errors.shape[1]), prior.concentration + 0.5 * rows.weights.sum()
                ),
                scale=(prior.scale + 0.5 * rows.weights @ errors**2)[None],
            )
            updated[-1] = replace(updated[-1], noise_variance=noise)
        networks.append(replace(posterior, layers=tuple(updated)))
    return stacked(networks)


def stacked(networks: Sequence[Posterior]) -> Posterior:
    """Networks side by side on the leading axis."""
    together: Posterior = map_arrays(lambda *arrays: np.concatenate(arrays), *networks)
    return together


def build_posterior(
    model: BowTieModel,
    means: Sequence[Floats],
    rng: np.random.Generator,
    *,
    variance: float = START_VARIANCE,
) -> Posterior:
    """One network around given weights (D, K+1) of each layer, each with the same variance."""
    layers = []
    for index, mean in enumerate(means):
        width, size = mean.shape
        noise = model.noise(index)
        covariance = np.broadcast_to(variance * np.eye(size), (1, width, size, size))
        slab, local = model.slab, model.local_shrinkage[index]
        layers.append(
            LayerFactors(
                weights=GaussianRows(mean=np.array(mean[None]), covariance=covariance.copy()),
                noise_variance=InverseGamma(
                    concentration=np.full((1, width), noise.concentration),
                    scale=np.ones((1, width)) * noise.scale,
                ),
                global_shrinkage=_draw(model.global_shrinkage, model.n_weights(index), (1,), rng),
                local_shrinkage=_draw(local, 1, (1, width, size - 1), rng),
                slab_variance=slab and slab_update(slab, mean[None, :, 1:] ** 2 + variance),
            )
        )
    return Posterior(layers=tuple(layers))


def random_weights(
    hidden: Sequence[int],
    temperature: float,
    inputs: Floats,
    rng: np.random.Generator,
    init: str,
) -> list[Floats]:
    """Hidden weights (D, K+1), each unit with its knot at a random point of its input's range."""
    means: list[Floats] = []
    values = inputs
    for width in hidden:
        weights = drawn_weights(init, rng, width, values.shape[1])
        low, high = values.min(axis=0), values.max(axis=0)
        margin = 0.05 * (high - low)
        knots = rng.uniform(low - margin, high + margin, size=weights.shape)
        means.append(np.column_stack([-np.sum(weights * knots, axis=1), weights]))
        values = mean_activations(means[-1:], values, temperature)
    return means


def drawn_weights(init: str, rng: np.random.Generator, width: int, fan_in: int) -> Floats:
    """Weights (D, K) of a layer whose units see K = D_{l-1} inputs.

    laplace     W ~ Laplace(0, sqrt(2 / K))
    spike_slab  W ~ pi N(0, 2 / sqrt(K)) + (1 - pi) delta_0 with pi = 1 / (1 + sqrt(K))
    """
    if init == "laplace":
        return rng.laplace(0.0, math.sqrt(2.0 / fan_in), size=(width, fan_in))
    slab = rng.normal(0.0, math.sqrt(2.0 / math.sqrt(fan_in)), size=(width, fan_in))
    is_slab = rng.random(size=(width, fan_in)) < 1.0 / (1.0 + math.sqrt(fan_in))
    return np.where(is_slab, slab, 0.0)


def mean_activations(means: Sequence[Floats], values: Floats, temperature: float) -> Floats:
    """Activations through hidden layers with these weights: a = sigmoid(z / T) z."""
    for mean in means:
        z = preactivation(mean, values)
        values = expit(z / temperature) * z
    return values


def ridge(features: Floats, targets: Floats, row_weights: Floats) -> Floats:
    """Rows (b, W) (D_out, K+1) of a ridge regression whose bias is free."""
    design = np.column_stack([np.ones(len(features)), features])
    # No row has more than its share of 1e12, a sum of squares next to which the penalty of 1, next
    # to nothing for standardised features, keeps digits.
    most = 1e12 / len(design) / np.maximum(np.sum(design**2, axis=1), 1e-300)
    weighted = design * np.minimum(row_weights, most)[:, None]
    # The tiny entry for the bias only decides between equals when there are no rows to speak of.
    penalty = np.diag([1e-10] + [1.0] * features.shape[1])
    solution = np.linalg.solve(design.T @ weighted + penalty, weighted.T @ targets)
    return np.asarray(solution.T, dtype=np.float64)


def _draw(
    prior: ShrinkagePrior, count: int, shape: tuple[int, ...], rng: np.random.Generator
) -> Shrinkage:
    """q of its final order whose mean is a draw from the prior."""
    if isinstance(prior, PointMass):
        return prior
    draw = sample_shrinkage(prior, rng, shape)
    q = gig.with_mean(prior.order - 0.5 * count, prior.rate, draw)
    return GeneralizedInverseGaussian(order=q.order, scale=np.asarray(q.scale), rate=prior.rate)


def _with_suited_shrinkage(model: BowTieModel, index: int, layer: LayerFactors) -> LayerFactors:
    """psi, then tau, at their updates for the present weights."""
    squares = layer.weights.mean[..., 1:] ** 2 + NETWORK_VARIANCE
    shared = np.reshape(mean_inverse(layer.global_shrinkage), (-1, 1, 1))
    local = conjugate_update(model.local_shrinkage[index], 1, 0.5 * shared * squares)
    sums = np.sum(mean_inverse(local) * squares, axis=(-2, -1))
    tau = conjugate_update(model.global_shrinkage, model.n_weights(index), 0.5 * sums)
    return replace(layer, local_shrinkage=local, global_shrinkage=tau)
