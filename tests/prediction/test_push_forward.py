"""Pushing the generative process forward: against quadrature, draws, and what is exact.

Error bars: a comparison with draws is a z-score and its limit 5 standard errors, a false-alarm rate
of 6e-7 for each comparison and below 5e-5 for the 80 or fewer of any one test. Seeds are fixed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit, ndtr

from bowtienet._arrays import map_arrays, with_ones
from bowtienet.data.rows import build_rows
from bowtienet.distributions import gaussian, inverse_gamma
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.inference.coordinate_ascent import fit
from bowtienet.model.priors import BowTieModel
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.initialize import initialize
from bowtienet.prediction import push_forward as module
from bowtienet.prediction.predictive import predict
from bowtienet.prediction.push_forward import (
    gated_moments,
    layer_moments,
    preactivation_moments,
    push_forward,
)
from tests import builders

LIMIT = 5.0
PROBIT_ERROR = 4.5e-5
"""Largest distance of the mixture of probits from the sigmoid, rounded up from 4.36e-5."""
TEMPERATURES = (1e-6, 1e-2, 0.3, 1.0, 30.0, 1e4)
VARIANCES = (0.0, 1e-12, 1e-4, 0.5, 40.0, 1e6)
MEANS = (0.0, 1e-7, 2e-3, -2e-3, 0.4, -0.4, 3.0, -3.0, 50.0, -50.0, 1e4, -1e4, 1e8, -1e8)


def probits(x: Any) -> Any:
    terms = zip(module.PROBIT_WEIGHTS, module.PROBIT_SLOPES, strict=True)
    return sum(weight * ndtr(slope * x) for weight, slope in terms)


def integral(gate: Any, power: int, mean: float, variance: float, temperature: float) -> float:
    """E[gate(z/T) z^power] for z ~ N(mean, variance), in parts around the bend and the peak."""
    if variance == 0.0:
        return float(gate(mean / temperature)) * mean**power
    deviation = np.sqrt(variance)
    bends = temperature * np.array([0.0, 1.0, 4.0, 12.0, 40.0])
    peaks = mean + deviation * np.arange(-10.0, 11.0, 2.5)
    points = np.unique(np.concatenate([bends, -bends, peaks]))
    points = points[np.abs(points - mean) <= deviation * 10.0]

    def density(z: float) -> float:
        shape = np.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
        return float(gate(z / temperature) * z**power * shape)

    size = (mean**2 + variance) ** (0.5 * power)
    return sum(
        integrate.fixed_quad(np.vectorize(density), low, high, n=40)[0]
        for low, high in zip(points[:-1], points[1:], strict=True)
        if high - low > 1e-13 * (abs(mean) + deviation)
    ) + 0.0 * size


def both_moments(mean: Any, variance: Any, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    return gated_moments(np.array(mean, dtype=float), np.array(variance, dtype=float), temperature)
