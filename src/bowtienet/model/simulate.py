"""Draws from the prior and from the model, with NumPy and an explicit generator."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

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


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """One value of every global quantity, a tuple entry for each layer."""

    weights: tuple[Floats, ...]
    noise_variance: tuple[Floats, ...]
    global_shrinkage: tuple[float, ...]
    local_shrinkage: tuple[Floats, ...]
    slab_variance: tuple[Floats, ...] = ()
    """Of the regularised horseshoe alone."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Targets drawn from the model with the latent quantities behind them."""

    targets: Floats
    activations: tuple[Floats, ...]
    gates: tuple[Floats, ...]


def sample_shrinkage(
    prior: ShrinkagePrior, rng: np.random.Generator, shape: tuple[int, ...]
) -> Floats:
    """Draws of tau or psi from their prior."""
    if isinstance(prior, PointMass):
        return np.full(shape, prior.value)
    if isinstance(prior, HalfCauchy):
        return half_cauchy.sample(prior, rng, shape)
    return gig.sample(prior, rng, shape)


def sample_prior(model: BowTieModel, rng: np.random.Generator) -> Parameters:
    """W ~ N(0, tau psi), b ~ N(0, s0²), eta² ~ IG, tau and psi from their own priors.

    With a slab W ~ N(0, 1 / (1/(tau psi) + 1/c²)) and c² from its prior: weights given their scales
    are those of the joint density (docs/theory/model), whose scales the slab pulls down a little.
    """
    prior, widths = model.prior, model.architecture.widths
    weights, noise, shared, local, slabs = [], [], [], [], []
    for layer, (fan_in, width) in enumerate(pairwise(widths)):
        tau = float(sample_shrinkage(prior.global_shrinkage, rng, ()))
        psi = sample_shrinkage(prior.local_shrinkage[layer], rng, (width, fan_in))
        variance = tau * psi
        if prior.slab is not None:
            slabs.append(inverse_gamma.sample(prior.slab, rng, (width, fan_in)))
            variance = slabs[-1] / (1.0 + slabs[-1] / variance)
        bias = rng.normal(0.0, np.sqrt(prior.bias_variance), size=(width, 1))
        weights.append(np.hstack([bias, rng.normal(size=(width, fan_in)) * np.sqrt(variance)]))
        noise.append(inverse_gamma.sample(prior.noise(layer), rng, (width,)))
        shared.append(tau)
        local.append(psi)
    return Parameters(
        weights=tuple(weights),
        noise_variance=tuple(noise),
        global_shrinkage=tuple(shared),
        local_shrinkage=tuple(local),
        slab_variance=tuple(slabs),
    )


def sample_model(
    parameters: Parameters,
    temperature: float,
    inputs: Floats,
    rng: np.random.Generator,
    *,
    outcome: Outcome = GAUSSIAN,
) -> Simulation:
    """Walk the network: z = W a + b, gate ~ Bernoulli(sigmoid(z/T)), a ~ N(gate z, eta²).

    Targets are drawn from the outcome, for the z of the output.
    """
    values = np.asarray(inputs, dtype=float)
    activations: list[Floats] = []
    gates: list[Floats] = []
    layers = list(zip(parameters.weights, parameters.noise_variance, strict=True))
    for weights, noise in layers[:-1]:
        z = preactivation(weights, values)
        # P(logistic noise < z/T) is the sigmoid; this form cannot overflow at low temperature.
        gate = (rng.logistic(size=z.shape) < z / temperature).astype(float)
        values = rng.normal(gate * z, np.sqrt(noise))
        gates.append(gate)
        activations.append(values)
    weights, noise = layers[-1]
    return Simulation(
        targets=outcome.sample(preactivation(weights, values), noise, rng),
        activations=tuple(activations),
        gates=tuple(gates),
    )


def preactivation(weights: Floats, values: Floats) -> Floats:
    """z = b + W a (n, D) for weights (D, K+1), bias first."""
    return weights[:, 0] + values @ weights[:, 1:].T
