"""Draws from the prior and from the model, with NumPy and an explicit generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions import half_cauchy, inverse_gamma
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.model import BowTieModel
from bowtienet.model.shrinkage import ShrinkagePrior
from bowtienet.outcomes import GAUSSIAN, Outcome

Floats = NDArray[np.float64]


Layer: TypeAlias = tuple[Floats, Floats]
"""One value of the weights (D, K+1), bias first, and of the noise variances (D,) of a layer."""


def sample_shrinkage(
    prior: ShrinkagePrior, rng: np.random.Generator, shape: tuple[int, ...]
) -> Floats:
    """Draws of tau or psi from their prior."""
    if isinstance(prior, PointMass):
        return np.full(shape, prior.value)
    if isinstance(prior, HalfCauchy):
        return half_cauchy.sample(prior, rng, shape)
    return gig.sample(prior, rng, shape)


def sample_scales(
    model: BowTieModel, layer: int, rng: np.random.Generator
) -> tuple[float, Floats, Floats | None]:
    """tau, psi (D, K) and, with a slab, c² (D, K) of a layer from their priors."""
    shape = model.architecture.widths[layer + 1], model.architecture.widths[layer]
    tau = float(sample_shrinkage(model.global_shrinkage, rng, ()))
    psi = sample_shrinkage(model.local_shrinkage[layer], rng, shape)
    return tau, psi, None if model.slab is None else inverse_gamma.sample(model.slab, rng, shape)


def sample_prior(model: BowTieModel, rng: np.random.Generator) -> list[Layer]:
    """W ~ N(0, tau psi), b ~ N(0, s0²) and eta² ~ IG of every layer, scales from their priors.

    With a slab W ~ N(0, 1 / (1/(tau psi) + 1/c²)): weights given their scales are those of the
    joint density (docs/theory/model), whose scales the slab pulls down a little.
    """
    layers = []
    for layer in range(len(model.architecture.widths) - 1):
        tau, psi, slab = sample_scales(model, layer, rng)
        variance = tau * psi
        if slab is not None:
            variance = slab / (1.0 + slab / variance)
        bias = rng.normal(0.0, np.sqrt(model.bias_variance), size=(len(psi), 1))
        weights = np.hstack([bias, rng.normal(size=psi.shape) * np.sqrt(variance)])
        layers.append((weights, inverse_gamma.sample(model.noise(layer), rng, (len(psi),))))
    return layers


def sample_model(
    layers: Sequence[Layer],
    temperature: float,
    inputs: Floats,
    rng: np.random.Generator,
    *,
    outcome: Outcome = GAUSSIAN,
) -> tuple[Floats, list[Floats], list[Floats]]:
    """Walk the network: z = W a + b, gate ~ Bernoulli(sigmoid(z/T)), a ~ N(gate z, eta²).

    Targets (n, D_out) are drawn from the outcome, for the z of the output. With them come the
    activations and the gates of every hidden layer.
    """
    values = np.asarray(inputs, dtype=float)
    activations: list[Floats] = []
    gates: list[Floats] = []
    for weights, noise in layers[:-1]:
        z = preactivation(weights, values)
        # P(logistic noise < z/T) is the sigmoid; this form cannot overflow at low temperature.
        gate = (rng.logistic(size=z.shape) < z / temperature).astype(float)
        values = rng.normal(gate * z, np.sqrt(noise))
        gates.append(gate)
        activations.append(values)
    weights, noise = layers[-1]
    return outcome.sample(preactivation(weights, values), noise, rng), activations, gates


def preactivation(weights: Floats, values: Floats) -> Floats:
    """z = b + W a (n, D) for weights (D, K+1), bias first."""
    return weights[:, 0] + values @ weights[:, 1:].T
