"""Bayes by Backprop (Blundell et al. 2015): independent normal weights, a scale mixture as prior.

    q(w) = Π_j N(w_j | μ_j, log(1 + e^{ρ_j})²),
    p(w) = Π_j [π N(w_j | 0, s_1²) + (1 - π) N(w_j | 0, s_2²)],
    cost of batch i of M = (log q(w) - log p(w)) / M - Σ_{n in i} log N(y_n | f(x_n; w), e^{2λ}),

with one draw w = μ + log(1 + e^ρ) ε for each step of Adam. Blundell et al. fix the noise; here its
logarithm λ is learnt with μ and ρ by the same bound, as the noise of a table is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet._validation import number, positive, whole
from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.standardized import Fitted, standardized
from bowtienet.experiments.methods.torch_network import (
    Shapes,
    count,
    draw_start,
    evaluate,
    layer_shapes,
    load_torch,
    quiet_torch,
    shuffled_batches,
    widths,
)

_START_DEVIATION = 0.01
"""Of the weights, small beside their means: the first steps then fit the means."""
_LOG_TWO_PI = math.log(2.0 * math.pi)


def backprop(
    hidden: Sequence[int],
    *,
    epochs: int = 1000,
    batch_size: int | None = None,
    learning_rate: float = 0.01,
    share: float = 0.5,
    log_scales: tuple[float, float] = (-1.0, -6.0),
    draws: int = 500,
) -> Method:
    """Bayes by Backprop on standardised inputs and targets.

    Parameters
    ----------
    hidden : sequence of int
        Units of the hidden layers; none make it a linear regression.
    epochs, learning_rate : int, float
        Of Adam. The bow tie paper uses 500 to 1000 and 0.01. Here the rate falls to zero along a
        cosine: at a constant one the posterior stays wide, and on one split of energy the test
        RMSE was 7.3 rather than 4.0.
    batch_size : int, optional
        Rows of a step. By default a tenth of all, at least 16 and at most the 128 of Blundell et
        al.: with 128 of a few hundred rows, 1000 epochs are too few steps to converge.
    share, log_scales : float, pair of floats
        π, log s_1 and log s_2 of the prior: the middle of the grid of Blundell et al. for π and
        log s_1, which of the three had the lowest RMSE on one split of energy, and its largest
        log s_2.
    draws : int
        Networks in the forecast, drawn from q once for each fit.

    Returns
    -------
    Method
        Whose forecasts are mixtures of `draws` normal distributions of equal weight.
    """
    units, passes = widths(hidden), whole(epochs, "epochs")
    given = None if batch_size is None else whole(batch_size, "batch_size")
    rate, drawn = positive(learning_rate, "learning_rate"), whole(draws, "draws")
    prior = _check_prior(share, log_scales)

    load_torch()

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        shapes = layer_shapes(x.shape[1], units)
        with quiet_torch(seed) as torch:
            rows, targets = torch.from_numpy(x), torch.from_numpy(y)
            size = default_batch(len(x)) if given is None else given
            posterior = minimise(rows, targets, shapes, prior, passes, size, rate)
            weights, noise = draw_networks(*posterior, drawn)

        def components(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            means = np.stack([evaluate(w, shapes, new)[:, 0] for w in weights])
            return means, np.full(means.shape, noise)

        return Fitted(components)

    return standardized("Bayes by Backprop", fit, np.float32)


def default_batch(n_rows: int) -> int:
    """A tenth of the rows, at least 16 and at most 128.

    Examples
    --------
    >>> [default_batch(n) for n in (92, 277, 927, 8611)]
    [16, 27, 92, 128]
    """
    return min(max(n_rows // 10, 16), 128)


def minimise(
    inputs: Any,
    targets: Any,
    shapes: Shapes,
    prior: tuple[float, float, float],
    epochs: int,
    batch_size: int,
    learning_rate: float,
) -> tuple[Any, Any, Any]:
    """μ, ρ and λ after `epochs` passes of Adam, from the random state of torch.

    Parameters
    ----------
    inputs, targets : tensors (n, columns) and (n,)
    shapes : shapes of the layers
    prior : π, log s_1 and log s_2
    epochs, batch_size, learning_rate : int, int, float
    """
    torch = load_torch()
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


def prior_distance(
    mean: Any, raw: Any, noise: Any, prior: tuple[float, float, float]
) -> tuple[Any, Any]:
    """log q(w) - log p(w) at w = μ + log(1 + e^ρ) ε, and w itself.

    Its average over ε ~ N(0, 1) is the Kullback-Leibler divergence of q from the prior.
    """
    deviation = load_torch().nn.functional.softplus(raw)
    weights = mean + deviation * noise
    log_posterior = -0.5 * noise.square() - deviation.log() - 0.5 * _LOG_TWO_PI
    return log_posterior.sum() - log_prior(weights, prior), weights


def log_prior(weights: Any, prior: tuple[float, float, float]) -> Any:
    """log p(w) = Σ_j log[π N(w_j | 0, s_1²) + (1 - π) N(w_j | 0, s_2²)]."""
    share, first, second = prior
    squares = weights.square()
    wide = math.log(share) - first - 0.5 * math.exp(-2.0 * first) * squares
    narrow = math.log1p(-share) - second - 0.5 * math.exp(-2.0 * second) * squares
    return (load_torch().logaddexp(wide, narrow) - 0.5 * _LOG_TWO_PI).sum()


def log_likelihood(errors: Any, log_noise: Any) -> Any:
    """Σ_n log N(e_n | 0, e^{2λ})."""
    scaled = errors.square().sum() * (-2.0 * log_noise).exp()
    return -0.5 * scaled - len(errors) * (log_noise + 0.5 * _LOG_TWO_PI)


def draw_networks(mean: Any, raw: Any, log_noise: Any, draws: int) -> tuple[np.ndarray, float]:
    """Weights (draws, P) from q, and the deviation e^λ of the noise."""
    torch = load_torch()
    deviation = torch.nn.functional.softplus(raw)
    weights = mean + deviation * torch.randn((draws, len(mean)), dtype=mean.dtype)
    return weights.numpy(), math.exp(float(log_noise))


def _check_prior(share: Any, log_scales: Any) -> tuple[float, float, float]:
    if not 0.0 < number(share, "share") < 1.0:
        raise ValueError(f"share must be a number strictly between 0 and 1, got {share!r}.")
    if len(log_scales) != 2:
        raise ValueError(f"log_scales must be two numbers, got {log_scales!r}.")
    first, second = (number(value, "log_scales") for value in log_scales)
    return float(share), first, second
