"""Section 3.6: several fitted networks that predict as one, in the user's units.

Mean Σ w_k mean_k; variance Σ w_k (var_k + mean_k²) - mean², written without its difference; whole
functions by drawing a member first and its weights next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import Array, like, namespace, slices, take, to_numpy
from bowtienet.data.scaling import Scaling, restore_deviation, restore_mean, standardize
from bowtienet.inference.coordinate_ascent import FitResult
from bowtienet.prediction.covariance import output_covariance
from bowtienet.prediction.mixture import GaussianMixture, build_mixture
from bowtienet.prediction.predictive import predict
from bowtienet.prediction.sampling import sample_functions

Floats = NDArray[np.float64]

CHUNK_ROWS = 65_536
"""Rows whose members' moments are held at the same time;"""
CHUNK_MEMBERS = 32
"""fewer where there are more draws than this of each."""


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """All that prediction needs."""

    members: tuple[FitResult, ...]
    weights: Floats
    input_scaling: Scaling
    target_scaling: Scaling
    column_order: NDArray[np.intp]
    """The column of the user's table at each place of the networks' inputs."""
    route: str


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Members' predictive moments (K, n, D) in the user's units."""

    means: Array
    signal_deviations: Array
    """Root of what is not known about the function."""
    noise_deviations: Array
    """Root of what no function can explain."""


def network_inputs(ensemble: Ensemble, inputs: Array) -> Array:
    """The user's inputs as the networks know them: standardised and in their order of columns."""
    return take(standardize(ensemble.input_scaling, inputs), ensemble.column_order, axis=1)


def chunks(inputs: Array, draws: int = 1) -> Iterator[Array]:
    """Consecutive parts of the inputs, few enough rows that moments and draws fit in memory."""
    for part in slices(
        inputs.shape[0], max(1, CHUNK_ROWS * CHUNK_MEMBERS // max(draws, CHUNK_MEMBERS))
    ):
        yield inputs[part, ...]


def member_moments(ensemble: Ensemble, inputs: Array) -> Moments:
    """Moments of every member for inputs (n, D_0)."""
    x = network_inputs(ensemble, inputs)
    xp = namespace(x)
    scaling = ensemble.target_scaling
    columns: list[tuple[Array, Array, Array]] = []
    for member in ensemble.members:
        found = predict(member.model, member.factors, x, route=ensemble.route)
        columns.append(
            (
                restore_mean(scaling, found.mean),
                restore_deviation(scaling, xp.sqrt(found.signal_variance)),
                restore_deviation(scaling, xp.sqrt(found.noise_variance)),
            )
        )
    means, signal, noise = (xp.stack(list(column)) for column in zip(*columns, strict=True))
    return Moments(means=means, signal_deviations=signal, noise_deviations=noise)


def mixture(ensemble: Ensemble, inputs: Array, *, noise: bool = True) -> GaussianMixture:
    """Predictive distribution of the targets; of the function alone without noise."""
    moments = member_moments(ensemble, inputs)
    deviations = to_numpy(moments.signal_deviations)
    if noise:
        deviations = np.hypot(deviations, to_numpy(moments.noise_deviations))
    return build_mixture(ensemble.weights, to_numpy(moments.means), deviations)


def mean_and_deviation(ensemble: Ensemble, inputs: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (n, D) of the targets, where the inputs live."""
    moments = member_moments(ensemble, inputs)
    mean, epistemic, noise = split_variance(ensemble.weights, moments)
    xp = namespace(mean)
    return mean, xp.hypot(xp.sqrt(epistemic), xp.sqrt(noise))


def split_variance(weights: Floats, moments: Moments) -> tuple[Array, Array, Array]:
    """Mean, variance of the function, variance of the noise, each (n, D).

    Σ w m,   Σ w (s² + (m - mean)²),   Σ w noise²: members that disagree add to what is not known.
    """
    xp = namespace(moments.means)
    share = like(moments.means, weights)[:, None, None]
    mean = xp.sum(share * moments.means, axis=0)
    spread = moments.signal_deviations**2 + (moments.means - mean[None, ...]) ** 2
    return (
        mean,
        xp.sum(share * spread, axis=0),
        xp.sum(share * moments.noise_deviations**2, axis=0),
    )


def covariance(ensemble: Ensemble, inputs: Array) -> Floats:
    """Covariance (n, n, D) of the targets of all rows, noise on the diagonal."""
    x = np.asarray(to_numpy(network_inputs(ensemble, inputs)), dtype=float)
    moments = member_moments(ensemble, np.asarray(to_numpy(inputs), dtype=float))
    mean, epistemic, noise = split_variance(ensemble.weights, moments)
    scale = np.asarray(to_numpy(ensemble.target_scaling.scale))
    total = np.zeros((len(x), len(x), mean.shape[1]))
    for weight, member, center in zip(
        ensemble.weights, ensemble.members, moments.means, strict=True
    ):
        away = center - mean
        within = output_covariance(member.model, member.factors, x) * scale**2
        total += weight * (within + away[:, None, :] * away[None, :, :])
    rows = np.arange(len(x))
    total[rows, rows, :] = epistemic + noise
    return total


def draw_functions(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator, *, noise: bool
) -> Floats:
    """Draws (n_draws, n, D) that are coherent across rows: a member, its weights, then all rows."""
    x = np.asarray(to_numpy(network_inputs(ensemble, inputs)), dtype=float)
    chosen = rng.choice(len(ensemble.members), size=n_draws, p=ensemble.weights)
    draws = [
        sample_functions(ensemble.members[index], x, 1, rng, noise=noise)[0] for index in chosen
    ]
    return np.asarray(restore_mean(ensemble.target_scaling, np.stack(draws)))
