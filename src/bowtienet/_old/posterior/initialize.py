"""Appendix D.1, "Initialization schemes": where the global factors start.

The paper's two random schemes give the mean of the hidden weights, `laplace` and `spike_slab` (its
algorithm 3: knots uniform over the range of the layer before, widened by 5 %, so that every unit
bends inside the data). The output layer is a ridge regression on the last hidden layer, all
covariances are 0.01 I, noise starts at its prior, and shrinkage scales are drawn so that the mean
of q is a draw from the prior (with -nu where the paper prints nu, docs/theory/errata, 11). A slab
starts at its update.
`inference/start.py` chooses between them and a fitted network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import expit

from bowtienet._old._arrays import bounded_weights
from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.model.shrinkage import Shrinkage, ShrinkagePrior, slab_update
from bowtienet._old.model.simulate import sample_shrinkage
from bowtienet._old.posterior.factors import GlobalFactors, LayerFactors

Floats = NDArray[np.float64]

START_ROWS = 10_000
"""Schemes look at no more rows than this, drawn at random: they only say where to begin."""
START_VARIANCE = 0.01
RIDGE_PENALTY = 1.0


def build_factors(
    model: BowTieModel,
    means: Sequence[Floats],
    rng: np.random.Generator,
    *,
    variance: float = START_VARIANCE,
) -> GlobalFactors:
    """Global factors around given weights, each with the same variance."""
    layers = []
    for index, mean in enumerate(means):
        width, size = mean.shape
        noise = model.prior.noise(index)
        covariance = np.broadcast_to(variance * np.eye(size), (width, size, size))
        shared = model.prior.global_shrinkage
        local = model.prior.local_shrinkage[index]
        layers.append(
            LayerFactors(
                weights=GaussianRows(mean=mean, covariance=covariance.copy()),
                noise_variance=InverseGamma(
                    concentration=np.full(width, noise.concentration),
                    scale=np.full(width, 1.0) * noise.scale,
                ),
                global_shrinkage=_draw(shared, width * (size - 1), (), rng),
                local_shrinkage=_draw(local, 1, (width, size - 1), rng),
                slab_variance=None
                if model.prior.slab is None
                else slab_update(model.prior.slab, mean[:, 1:] ** 2 + variance),
            )
        )
    shared_covariance = None
    if model.architecture.n_hidden and not model.outcome.by_row:
        shared_covariance = variance * np.eye(model.architecture.hidden[-1])
    return GlobalFactors(layers=tuple(layers), shared_covariance=shared_covariance)


def _draw(
    prior: ShrinkagePrior,
    count: int,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> Shrinkage:
    """q of its final order whose mean is a draw from the prior."""
    if isinstance(prior, PointMass):
        return prior
    draw = sample_shrinkage(prior, rng, shape)
    q = gig.with_mean(prior.order - 0.5 * count, prior.rate, draw)
    return GeneralizedInverseGaussian(order=q.order, scale=np.asarray(q.scale), rate=prior.rate)


def laplace_weights(rng: np.random.Generator, width: int, fan_in: int) -> Floats:
    """W ~ Laplace(0, sqrt(2 / D_{l-1}))."""
    return rng.laplace(0.0, np.sqrt(2.0 / fan_in), size=(width, fan_in))


def spike_slab_weights(rng: np.random.Generator, width: int, fan_in: int) -> Floats:
    """W ~ pi N(0, 2 / sqrt(D_{l-1})) + (1 - pi) delta_0 with pi = 1 / (1 + sqrt(D_{l-1}))."""
    slab = rng.normal(0.0, math.sqrt(2.0 / math.sqrt(fan_in)), size=(width, fan_in))
    is_slab = rng.random(size=(width, fan_in)) < 1.0 / (1.0 + math.sqrt(fan_in))
    slab[~is_slab] = 0.0
    return slab


def join_networks(networks: Sequence[Sequence[Floats]]) -> list[Floats]:
    """Weights of one network whose output is the mean of those of several.

    Their units stand side by side and have no weights between them.
    """
    joined = []
    for index, layers in enumerate(zip(*networks, strict=True)):
        weights = [layer[:, 1:] for layer in layers]
        biases = [layer[:, 0] for layer in layers]
        if index + 1 == len(networks[0]):
            share = 1.0 / len(networks)
            if index == 0:
                weights = [np.sum(weights, axis=0)]
            joined.append(share * np.column_stack([np.sum(biases, axis=0), *weights]))
        else:
            # Inputs are shared; above them each network sees its own units only.
            together = np.concatenate(weights) if index == 0 else block_diag(*weights)
            joined.append(np.column_stack([np.concatenate(biases), together]))
    return joined


def random_weights(
    hidden: Sequence[int],
    gate_temperature: float,
    inputs: Floats,
    rng: np.random.Generator,
    draw: Callable[[np.random.Generator, int, int], Floats],
) -> list[Floats]:
    """Hidden weights (D, K+1), each unit with its knot at a random point of its input's range."""
    means: list[Floats] = []
    values = inputs
    for width in hidden:
        weights = draw(rng, width, values.shape[1])
        low, high = values.min(axis=0), values.max(axis=0)
        margin = 0.05 * (high - low)
        knots = rng.uniform(low - margin, high + margin, size=weights.shape)
        means.append(np.column_stack([-np.sum(weights * knots, axis=1), weights]))
        values = mean_activations(means[-1:], values, gate_temperature)
    return means


def mean_activations(means: list[Floats], values: Floats, gate_temperature: float) -> Floats:
    """Mean activations through the layers: a = sigmoid(z / T) z."""
    for mean in means:
        preactivation = mean[:, 0] + values @ mean[:, 1:].T
        values = expit(preactivation / gate_temperature) * preactivation
    return values


def ridge(features: Floats, targets: Floats, row_weights: Floats) -> Floats:
    """Rows (b, W) (D_out, K+1) of a ridge regression whose bias is free.

    Rows whose weight would drown the penalty, which makes the equations definite, weigh less.
    """
    design = np.column_stack([np.ones(len(features)), features])
    weighted = design * bounded_weights(row_weights, design)[:, None]
    # The tiny entry for the bias only decides between equals when there are no rows to speak of.
    penalty = np.diag([1e-10] + [RIDGE_PENALTY] * features.shape[1])
    solution = np.linalg.solve(design.T @ weighted + penalty, weighted.T @ targets)
    return np.asarray(solution.T, dtype=np.float64)
