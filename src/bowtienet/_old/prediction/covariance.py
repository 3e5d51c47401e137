"""Covariance of the network's output between rows, in closed form.

For two rows the preactivations of a unit are jointly Gaussian with covariance c, and a function g
of them has (Mehler's expansion)

    Cov(g(z), g(z')) = Σ_k c^k / k! E[g^(k)(z)] E[g^(k)(z')],

where E[g^(k)] is the k-th derivative of E[g] in the mean of z. Two terms are kept. Each term is
positive semi-definite over all rows and the diagonal is exact and no smaller than its expansion,
so the matrix is a covariance; what the terms leave out counts as independent between rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bowtienet._old._arrays import slices
from bowtienet._old.distributions import gaussian
from bowtienet._old.distributions.gated import PROBIT_SLOPES, PROBIT_WEIGHTS
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.prediction.push_forward import Spread, layer_moments, preactivation_moments

Floats = NDArray[np.float64]


TILE_BYTES = 32_000_000
"""Largest array of a tile of rows x all rows x units."""


@dataclass(frozen=True, kw_only=True)
class _Expansion:
    """What the covariance of a hidden layer's activations needs of every row."""

    weights: GaussianRows
    mean: Floats
    slope: Floats
    curvature: Floats


def output_covariance(model: BowTieModel, factors: GlobalFactors, inputs: Floats) -> Floats:
    """Cov of the outputs of all pairs of rows, (n, n, D_out), without their noise.

    Between different rows; the diagonal holds the expansion too, and callers have its exact value.
    """
    mean = np.column_stack([np.ones(len(inputs)), inputs])
    spread: Spread | None = None
    hidden = []
    for layer in factors.layers[:-1]:
        center, before = preactivation_moments(layer.weights, mean, spread)
        total = before.epistemic + before.chance
        slope, curvature = gated_derivatives(center, total, model.gate_temperature)
        hidden.append(
            _Expansion(weights=layer.weights, mean=mean, slope=slope, curvature=curvature)
        )
        mean, spread = layer_moments(layer, mean, spread, model.gate_temperature)
    output = factors.layers[-1].weights
    size = max(1, TILE_BYTES // (8 * len(mean) * max(model.architecture.widths[1:])))
    tiles = []
    for part in slices(len(mean), size):
        between: Floats | None = None
        for expansion in hidden:
            between = _activation_covariance(expansion, part, between)
        tiles.append(_preactivation_covariance(output, mean, part, between))
    return np.concatenate(tiles)


def gated_derivatives(
    mean: Floats, variance: Floats, gate_temperature: float
) -> tuple[Floats, Floats]:
    """First and second derivative of E[sigmoid(z/T) z] in the mean of z ~ N(mean, variance).

    For one probit, with c, r and h of `distributions.gated`, Phi(h) + (m / r)(1 - v / r²) phi(h)
    and (phi(h) / r)(1 + (1 - v / r²)(1 - h²)).
    """
    slope, curvature = np.zeros_like(mean), np.zeros_like(mean)
    for weight, steepness in zip(PROBIT_WEIGHTS, PROBIT_SLOPES, strict=True):
        inverse = 1.0 / np.sqrt((gate_temperature / steepness) ** 2 + variance)
        standardized = mean * inverse
        density = np.exp(-0.5 * standardized**2) / math.sqrt(2.0 * math.pi)
        left = 1.0 - variance * inverse**2
        slope += weight * (ndtr(standardized) + standardized * left * density)
        curvature += weight * inverse * density * (1.0 + left * (1.0 - standardized**2))
    return slope, curvature


def _activation_covariance(layer: _Expansion, part: slice, between: Floats | None) -> Floats:
    """Two terms of the expansion for the rows of `part` beside all rows, (rows, n, D)."""
    first = _preactivation_covariance(layer.weights, layer.mean, part, between)
    second = 0.5 * first**2
    first *= layer.slope[part, None, :] * layer.slope[None, :, :]
    second *= layer.curvature[part, None, :] * layer.curvature[None, :, :]
    return first + second


def _preactivation_covariance(
    weights: GaussianRows, mean: Floats, part: slice, between: Floats | None
) -> Floats:
    """Cov(z, z') = mu~'B mu~' + Σ_k E[W_k²] Cov(a_k, a_k'), (rows, n, D)."""
    total = np.stack(
        [mean[part] @ covariance @ mean.T for covariance in weights.covariance], axis=-1
    )
    if between is not None:
        total += between @ gaussian.squares(weights)[:, 1:].T
    return total
