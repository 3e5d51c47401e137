"""Appendix D.1, "Initialization schemes": where the global factors start.

Three schemes give the mean of the hidden weights: the paper's two random ones, `laplace` and
`spike_slab` (its algorithm 3: knots uniform over the range of the layer before, widened by 5 %, so
that every unit bends inside the data), and `relu_network`, an ordinary ReLU network fitted by
penalised least squares. The output layer is a ridge regression
on the last hidden layer, all covariances are 0.01 I, noise starts at its prior, and shrinkage
scales are drawn so that the mean of q is a draw from the prior (with -nu where the paper prints nu,
docs/theory/errata, 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import expit

from bowtienet._arrays import to_numpy
from bowtienet._validation import non_negative, whole
from bowtienet.data.rows import Rows, subsample
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.priors import BowTieModel, check_rows
from bowtienet.model.shrinkage import Shrinkage
from bowtienet.model.simulate import sample_shrinkage
from bowtienet.posterior.factors import GlobalFactors, LayerFactors

Floats = NDArray[np.float64]

START_ROWS = 10_000
"""Schemes look at no more rows than this, drawn at random: they only say where to begin."""
START_VARIANCE = 0.01
RIDGE_PENALTY = 1.0


def initialize(
    model: BowTieModel,
    rows: Rows,
    rng: np.random.Generator | int,
    *,
    init: str = "relu_network",
    init_penalty: float = 0.1,
    start_iterations: int = 200,
) -> GlobalFactors:
    """Global factors to start from.

    Parameters
    ----------
    model : BowTieModel
        Architecture and prior.
    rows : Rows
        Training rows, standardised.
    rng : numpy.random.Generator or int
        Source of all randomness, or its seed.
    init : {"relu_network", "laplace", "spike_slab"}
        How the hidden weights are found.
    init_penalty : float
        Ridge penalty of the network of `relu_network`: ½ Σ squared residuals + ½ penalty Σ W².
    start_iterations : int
        Most L-BFGS steps of `relu_network`.
    """
    if init not in INITS:
        raise ValueError(f"unknown start {init!r}: choose one of {', '.join(INITS)}.")
    init_penalty = non_negative(init_penalty, "init_penalty")
    start_iterations = whole(start_iterations, "start_iterations")
    check_rows(model.architecture, rows)
    rng = np.random.default_rng(rng)
    sample = subsample(rows, START_ROWS, rng)
    inputs, targets = to_numpy(sample.inputs).astype(float), to_numpy(sample.targets).astype(float)
    row_weights = to_numpy(sample.weights).astype(float)
    draw = spike_slab_weights if init == "spike_slab" else laplace_weights
    hidden = model.architecture.hidden
    if init == "relu_network" and hidden:
        means = random_weights(hidden, model.gate_temperature, inputs, rng, draw)
        means = _relu_network(means, inputs, targets, row_weights, init_penalty, start_iterations)
        means = means[:-1]
    else:
        means = random_weights(hidden, model.gate_temperature, inputs, rng, draw)
    features = _forward(means, inputs, model.gate_temperature)
    means = [*means, ridge(features, targets, row_weights)]
    return build_factors(model, means, rng)


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
            )
        )
    n_hidden = model.architecture.n_hidden
    shared_covariance = variance * np.eye(model.architecture.hidden[-1]) if n_hidden else None
    return GlobalFactors(layers=tuple(layers), shared_covariance=shared_covariance)


def _draw(
    prior: Shrinkage,
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
        values = _forward(means[-1:], values, gate_temperature)
    return means


def _forward(means: list[Floats], values: Floats, gate_temperature: float) -> Floats:
    """Mean activations through the layers: a = sigmoid(z / T) z."""
    for mean in means:
        preactivation = mean[:, 0] + values @ mean[:, 1:].T
        values = expit(preactivation / gate_temperature) * preactivation
    return values


def ridge(features: Floats, targets: Floats, row_weights: Floats) -> Floats:
    """Rows (b, W) (D_out, K+1) of a ridge regression whose bias is free."""
    design = np.column_stack([np.ones(len(features)), features])
    weighted = design * row_weights[:, None]
    # The tiny entry for the bias only decides between equals when there are no rows to speak of.
    penalty = np.diag([1e-10] + [RIDGE_PENALTY] * features.shape[1])
    solution = np.linalg.solve(design.T @ weighted + penalty, weighted.T @ targets)
    return np.asarray(solution.T, dtype=np.float64)


def _relu_network(
    hidden: list[Floats],
    inputs: Floats,
    targets: Floats,
    row_weights: Floats,
    penalty: float,
    iterations: int,
) -> list[Floats]:
    """Weights of a ReLU network by L-BFGS on ½ Σ w (y - f)² + ½ penalty Σ W², per row."""
    from scipy.optimize import minimize  # heavy to load, and needed for this start alone

    start = [*hidden, ridge(_relu_features(hidden, inputs), targets, row_weights)]
    shapes = [mean.shape for mean in start]
    total = row_weights.sum()

    def unravel(flat: Floats) -> list[Floats]:
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        return [part.reshape(s) for part, s in zip(np.split(flat, ends), shapes, strict=True)]

    def loss(flat: Floats) -> tuple[float, Floats]:
        means = unravel(flat)
        values, layers = inputs, []
        for index, mean in enumerate(means):
            layers.append(values)
            values = mean[:, 0] + values @ mean[:, 1:].T
            if index + 1 < len(means):
                values = np.maximum(values, 0.0)
        delta = (values - targets) * row_weights[:, None]
        value = 0.5 * np.sum(delta * (values - targets))
        value += 0.5 * penalty * sum(np.sum(mean[:, 1:] ** 2) for mean in means)
        gradient: list[Floats] = []
        for index in reversed(range(len(means))):
            mean, below = means[index], layers[index]
            slope = np.column_stack([delta.sum(axis=0), delta.T @ below + penalty * mean[:, 1:]])
            gradient.append(slope.ravel())
            if index > 0:
                delta = (delta @ mean[:, 1:]) * (below > 0.0)
        return value / total, np.concatenate(gradient[::-1]) / total

    found = minimize(
        loss,
        np.concatenate([mean.ravel() for mean in start]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "maxcor": 20},
    )
    return unravel(found.x)


def _relu_features(hidden: list[Floats], inputs: Floats) -> Floats:
    values = inputs
    for mean in hidden:
        values = np.maximum(mean[:, 0] + values @ mean[:, 1:].T, 0.0)
    return values


INITS = ("relu_network", "laplace", "spike_slab")
