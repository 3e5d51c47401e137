"""Section 3.6: several fitted networks that predict as one, in the user's units.

Mean Σ w_k mean_k; variance Σ w_k (var_k + mean_k²) - mean², written without its difference; whole
functions by drawing a member first and its weights next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import Array, like, namespace, slices, take, to_numpy
from bowtienet.inference.iterate import FitResult, Progress
from bowtienet.inference.pruning import check_pruning
from bowtienet.model.architecture import Architecture
from bowtienet.posterior.factors import check_factors
from bowtienet.prediction.covariance import output_covariance
from bowtienet.prediction.mixture import Mixture, build_mixture
from bowtienet.prediction.predictive import PROPAGATIONS, predict
from bowtienet.prediction.sampling import sample_functions
from bowtienet.representation.representation import (
    Representation,
    check_representation,
    network_features,
)
from bowtienet.representation.scaling import restore_deviation, restore_mean

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
    representation: Representation
    """What the members see of the user's table."""
    propagation: str


def check_ensemble(ensemble: Ensemble, n_columns: int, n_outputs: int) -> None:
    """Raise a clear error if the parts do not fit together."""
    if not ensemble.members:
        raise ValueError("there are no members")
    check_representation(ensemble.representation, n_columns, n_outputs)
    n_inputs = len(ensemble.representation.column_order)
    for member in ensemble.members:
        check_factors(member.model.architecture, member.factors)
        check_pruning(member.model, member.pruning)
        architecture = original(member)
        ratio = ratio_of(member)
        if np.shape(ratio) != (n_outputs,) or not np.all((ratio > 0.0) & np.isfinite(ratio)):
            raise ValueError("variance ratios are not one positive number for each target")
        if (architecture.n_inputs, architecture.n_outputs) != (n_inputs, n_outputs):
            raise ValueError(f"members are not for {n_inputs} inputs and {n_outputs} targets")
    weights = np.asarray(ensemble.weights)
    if weights.shape != (len(ensemble.members),) or not abs(weights.sum() - 1.0) < 1e-6:
        raise ValueError("weights do not sum to one over the members")
    if np.any(weights < 0.0):
        raise ValueError("weights are negative")
    if ensemble.propagation not in PROPAGATIONS:
        raise ValueError(f"the propagation {ensemble.propagation!r} is not known")


def original(member: FitResult) -> Architecture:
    """The network that a member was before anything was pruned."""
    return member.model.architecture if member.pruning is None else member.pruning.architecture


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Members' predictive moments (K, n, D), on the standardised scale of the networks."""

    means: Array
    epistemic_variances: Array
    """Epistemic: of the function, which more rows would tell."""
    noise_variances: Array
    """Aleatoric: noise of the output, of hidden layers, and of gates."""


def member_inputs(member: FitResult | Progress, inputs: Array) -> Array:
    """Those of the networks' inputs that a member has not lost by pruning."""
    return inputs if member.pruning is None else take(inputs, member.pruning.inputs, axis=1)


def chunks(inputs: Array, draws: int = 1) -> Iterator[Array]:
    """Consecutive parts of the inputs, few enough rows that moments and draws fit in memory."""
    size = max(1, CHUNK_ROWS * CHUNK_MEMBERS // max(draws, CHUNK_MEMBERS))
    for part in slices(inputs.shape[0], size):
        yield inputs[part, ...]


def member_moments(ensemble: Ensemble, inputs: Array) -> Moments:
    """Moments of every member for encoded features (n, E)."""
    x = network_features(ensemble.representation, inputs)
    found = [
        predict(
            member.model, member.factors, member_inputs(member, x), propagation=ensemble.propagation
        )
        for member in ensemble.members
    ]

    def stack(values: list[Array]) -> Array:
        # Whatever the precision of the rows: units of targets may need all the digits.
        xp = namespace(x)
        return xp.astype(xp.stack(values), xp.float64, copy=False)

    ratios = np.stack([ratio_of(member) for member in ensemble.members])[:, None, :]
    means = stack([f.mean for f in found])
    return Moments(
        means=means,
        epistemic_variances=like(means, ratios)
        * stack([f.signal_variance - f.chance_variance for f in found]),
        noise_variances=like(means, ratios)
        * stack([f.noise_variance + f.chance_variance for f in found]),
    )


def ratio_of(member: FitResult) -> Floats:
    """What a member's predictive variances are multiplied by, (D_out,)."""
    if member.variance_ratio is None:
        return np.ones(member.model.architecture.n_outputs)
    return member.variance_ratio


def mixture(ensemble: Ensemble, inputs: Array, *, noise: bool = True) -> Mixture:
    """Predictive distribution of the targets; of the function alone without noise."""
    moments = member_moments(ensemble, inputs)
    variances = to_numpy(moments.epistemic_variances)
    if noise:
        variances = variances + to_numpy(moments.noise_variances)
    scaling = ensemble.representation.target_scaling
    return build_mixture(
        ensemble.weights,
        restore_mean(scaling, to_numpy(moments.means)),
        restore_deviation(scaling, np.sqrt(variances)),
    )


def mean_and_deviation(ensemble: Ensemble, inputs: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (n, D) of the targets, where the inputs live."""
    mean, epistemic, noise = split_variance(ensemble.weights, member_moments(ensemble, inputs))
    scaling = ensemble.representation.target_scaling
    deviation = namespace(mean).sqrt(epistemic + noise)
    return restore_mean(scaling, mean), restore_deviation(scaling, deviation)


def components(ensemble: Ensemble, inputs: Array) -> tuple[Array, Array, Array]:
    """Mean, epistemic variance and noise variance, each (n, D) in the user's units."""
    mean, epistemic, noise = split_variance(ensemble.weights, member_moments(ensemble, inputs))
    scaling, root = ensemble.representation.target_scaling, namespace(mean).sqrt
    return (
        restore_mean(scaling, mean),
        restore_deviation(scaling, root(epistemic)) ** 2,
        restore_deviation(scaling, root(noise)) ** 2,
    )


def split_variance(weights: Floats, moments: Moments) -> tuple[Array, Array, Array]:
    """Mean, epistemic variance and noise variance, each (n, D), standardised.

    Σ w m,   Σ w (v + (m - mean)²),   Σ w noise: disagreement of members is epistemic.
    """
    xp = namespace(moments.means)
    share = like(moments.means, weights)[:, None, None]
    mean = xp.sum(share * moments.means, axis=0)
    spread = moments.epistemic_variances + (moments.means - mean[None, ...]) ** 2
    return mean, xp.sum(share * spread, axis=0), xp.sum(share * moments.noise_variances, axis=0)


def covariance(ensemble: Ensemble, inputs: Array) -> Floats:
    """Covariance (n, n, D) of the targets of all rows, noise on the diagonal.

    By the push-forward, whatever the propagation: the paper's has no covariance between rows.
    """
    ensemble = replace(ensemble, propagation="push_forward")
    inputs = np.asarray(to_numpy(inputs), dtype=float)
    x = network_features(ensemble.representation, inputs)
    moments = member_moments(ensemble, inputs)
    mean, epistemic, noise = split_variance(ensemble.weights, moments)
    total = np.zeros((len(x), len(x), mean.shape[1]))
    for weight, member, center in zip(
        ensemble.weights, ensemble.members, moments.means, strict=True
    ):
        away = center - mean
        within = output_covariance(member.model, member.factors, member_inputs(member, x))
        within = ratio_of(member) * within
        total += weight * (within + away[:, None, :] * away[None, :, :])
    rows = np.arange(len(x))
    total[rows, rows, :] = epistemic + noise
    scale = np.asarray(to_numpy(ensemble.representation.target_scaling.scale))
    return total * scale * scale


def draw_functions(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator, *, noise: bool
) -> Floats:
    """Draws (n_draws, n, D) that are coherent across rows: a member, its weights, then all rows."""
    x = np.asarray(to_numpy(network_features(ensemble.representation, inputs)), dtype=float)
    chosen = rng.choice(len(ensemble.members), size=n_draws, p=ensemble.weights)
    centers = {index: _center(ensemble.members[index], x) for index in set(chosen.tolist())}
    draws = [
        _draw_function(ensemble.members[index], x, centers[index], rng, noise) for index in chosen
    ]
    return np.asarray(restore_mean(ensemble.representation.target_scaling, np.stack(draws)))


def _center(member: FitResult, x: Floats) -> Floats | None:
    """A member's mean (n, D), if its draws have to be moved away from it."""
    if member.variance_ratio is None:
        return None
    return np.asarray(predict(member.model, member.factors, member_inputs(member, x)).mean)


def _draw_function(
    member: FitResult, x: Floats, center: Floats | None, rng: np.random.Generator, noise: bool
) -> Floats:
    """One draw (n, D), as far from the member's mean as its variance ratio says."""
    [draw] = sample_functions(member, member_inputs(member, x), 1, rng, noise=noise)
    if center is None:
        return draw
    return np.asarray(center + np.sqrt(ratio_of(member)) * (draw - center))
