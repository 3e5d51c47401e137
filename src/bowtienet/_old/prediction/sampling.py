"""Draws of whole functions: weights and noise from q, then the network walked for all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bowtienet._old.distributions import gaussian, inverse_gamma
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.model.outcomes import Outcome
from bowtienet._old.model.simulate import Parameters, sample_model
from bowtienet._old.posterior.factors import GlobalFactors

Floats = NDArray[np.float64]


def sample_functions(
    fitted: FitResult, inputs: Floats, n_draws: int, rng: np.random.Generator, *, noise: bool
) -> Floats:
    """Outputs (n_draws, n, D_out): every draw is one network, the same for all rows.

    With noise these are draws of targets, gates and all noise included. Without, gates and noise
    are replaced by their means given the weights, a = sigmoid(z/T) z, and the draw is a smooth
    function.
    """
    gate_temperature = fitted.model.gate_temperature
    draws = []
    for _ in range(n_draws):
        parameters = sample_parameters(fitted.factors, rng)
        if noise:
            noisy = _with_tails(parameters, fitted.model.outcome)
            draws.append(sample_model(noisy, gate_temperature, inputs, rng).targets)
        else:
            draws.append(_mean_response(parameters, gate_temperature, inputs))
    return np.stack(draws)


def sample_parameters(factors: GlobalFactors, rng: np.random.Generator) -> Parameters:
    """One draw of weights and noise variances from q; shrinkage has no part in prediction."""
    layers = factors.layers
    return Parameters(
        weights=tuple(gaussian.sample(layer.weights, rng) for layer in layers),
        noise_variance=tuple(
            inverse_gamma.sample(layer.noise_variance, rng, layer.weights.mean.shape[:1])
            for layer in layers
        ),
        global_shrinkage=(),
        local_shrinkage=(),
    )


def _with_tails(parameters: Parameters, outcome: Outcome) -> Parameters:
    """Parameters whose output noise has the variance of targets, as `predict` has it."""
    *hidden, output = parameters.noise_variance
    return replace(parameters, noise_variance=(*hidden, output * outcome.variance_ratio))


def _mean_response(parameters: Parameters, gate_temperature: float, inputs: Floats) -> Floats:
    values = inputs
    for weights in parameters.weights[:-1]:
        preactivation = weights[:, 0] + values @ weights[:, 1:].T
        values = expit(preactivation / gate_temperature) * preactivation
    weights = parameters.weights[-1]
    return np.asarray(weights[:, 0] + values @ weights[:, 1:].T)
