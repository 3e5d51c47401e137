"""Bayes by Backprop (Blundell et al. 2015): independent normal weights, a scale mixture as prior.

    q(w) = Π_j N(w_j | μ_j, log(1 + e^{ρ_j})²),
    p(w) = Π_j [π N(w_j | 0, s_1²) + (1 - π) N(w_j | 0, s_2²)],
    cost of batch i of M = (log q(w) - log p(w)) / M - Σ_{n in i} log N(y_n | f(x_n; w), e^{2λ}),

with one draw w = μ + log(1 + e^ρ) ε for each step of Adam. Blundell et al. fix the noise; here its
logarithm λ is learnt with μ and ρ by the same bound, as the noise of a table is not known.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from benchmarks._old.paper.methods.common import Components, Fit, standardized
from benchmarks._old.paper.methods.torch_network import (
    Shapes,
    count,
    draw_start,
    evaluate,
    layer_shapes,
    seeded_torch,
    shuffled_batches,
)

_START_DEVIATION = 0.01
"""Of the weights, small beside their means: the first steps then fit the means."""
_LOG_TWO_PI = math.log(2.0 * math.pi)


class Prior(NamedTuple):
    """π, log s_1 and log s_2.

    The middle of the grid of Blundell et al. for π and log s_1, which of the three had the lowest
    RMSE on one split of energy, and its largest log s_2.
    """

    share: float = 0.5
    log_wide: float = -1.0
    log_narrow: float = -6.0


def backprop(
    hidden: tuple[int, ...],
    epochs: int = 1000,
    batch_size: int | None = None,
    learning_rate: float = 0.01,
    draws: int = 500,
) -> Fit:
    """Σ_k N(y | f(x; w_k), e^{2λ}) / K over draws k of q.

    The bow tie paper uses 500 to 1000 epochs at a rate of 0.01. Here the rate falls to zero along a
    cosine: at a constant one the posterior stays wide, and on one split of energy the test RMSE was
    7.3 rather than 4.0. By default a batch is a tenth of all rows, at least 16 and at most the 128
    of Blundell et al.: with 128 of a few hundred rows, 1000 epochs are too few steps to converge.
    """

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        shapes = layer_shapes(x.shape[1], hidden)
        size = min(max(len(x) // 10, 16), 128) if batch_size is None else batch_size
        with seeded_torch(seed) as torch:
            rows, targets = torch.from_numpy(x), torch.from_numpy(y)
            posterior = minimise(rows, targets, shapes, Prior(), epochs, size, learning_rate)
            weights, noise = draw_networks(*posterior, draws)

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            means = np.stack([evaluate(w, shapes, new)[:, 0] for w in weights])
            return means, np.full(means.shape, noise)

        return Components(predict)

    return standardized(fit, np.float32)


def minimise(
    inputs: Any,
    targets: Any,
    shapes: Shapes,
    prior: Prior,
    epochs: int,
    batch_size: int,
    learning_rate: float,
) -> tuple[Any, Any, Any]:
    """μ, ρ and λ after `epochs` passes of Adam, from the random state of torch."""
    import torch

    mean = draw_start(shapes).requires_grad_()
    raw = torch.full((count(shapes),), math.log(math.expm1(_START_DEVIATION)), dtype=mean.dtype)
    raw.requires_grad_()
    log_noise = torch.zeros((), dtype=mean.dtype, requires_grad=True)
    adam = torch.optim.Adam([mean, raw, log_noise], lr=learning_rate, fused=True)
    batches = math.ceil(len(inputs) / batch_size)
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(adam, epochs * batches)
    for _ in range(epochs):
        for rows, values in shuffled_batches(inputs, targets, batch_size):
            noise = torch.randn(mean.shape, dtype=mean.dtype)
            distance, weights = prior_distance(mean, raw, noise, prior)
            errors = values - evaluate(weights, shapes, rows)[:, 0]
            cost = distance / batches - log_likelihood(errors, log_noise)
            adam.zero_grad()
            # In units of a row, so that Adam's guard against zero gradients stays negligible.
            (cost / len(rows)).backward()
            adam.step()
            fall.step()
    return mean.detach(), raw.detach(), log_noise.detach()


def prior_distance(mean: Any, raw: Any, noise: Any, prior: Prior) -> tuple[Any, Any]:
    """log q(w) - log p(w) at w = μ + log(1 + e^ρ) ε, and w itself.

    Its average over ε ~ N(0, 1) is the Kullback-Leibler divergence of q from the prior.
    """
    import torch

    deviation = torch.nn.functional.softplus(raw)
    weights = mean + deviation * noise
    log_posterior = -0.5 * noise.square() - deviation.log() - 0.5 * _LOG_TWO_PI
    return log_posterior.sum() - log_prior(weights, prior), weights


def log_prior(weights: Any, prior: Prior) -> Any:
    """log p(w) = Σ_j log[π N(w_j | 0, s_1²) + (1 - π) N(w_j | 0, s_2²)]."""
    import torch

    share, first, second = prior
    squares = weights.square()
    wide = math.log(share) - first - 0.5 * math.exp(-2.0 * first) * squares
    narrow = math.log1p(-share) - second - 0.5 * math.exp(-2.0 * second) * squares
    return (torch.logaddexp(wide, narrow) - 0.5 * _LOG_TWO_PI).sum()


def log_likelihood(errors: Any, log_noise: Any) -> Any:
    """Σ_n log N(e_n | 0, e^{2λ})."""
    scaled = errors.square().sum() * (-2.0 * log_noise).exp()
    return -0.5 * scaled - len(errors) * (log_noise + 0.5 * _LOG_TWO_PI)


def draw_networks(mean: Any, raw: Any, log_noise: Any, draws: int) -> tuple[np.ndarray, float]:
    """Weights (draws, P) from q, and the deviation e^λ of the noise."""
    import torch

    deviation = torch.nn.functional.softplus(raw)
    weights = mean + deviation * torch.randn((draws, len(mean)), dtype=mean.dtype)
    return weights.numpy(), math.exp(float(log_noise))
