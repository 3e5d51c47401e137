"""Section 3.6: several fitted networks that predict as one, in the user's units.

Mean Σ w_k mean_k; variance Σ w_k (var_k + mean_k²) - mean², written without its difference; whole
functions by drawing a member first and its weights next. A member that was fitted to warped targets
z has its moments there; those of the targets follow by quadrature (`distributions.yeo_johnson`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import Array, like, map_arrays, namespace, slices, take, to_numpy
from bowtienet.distributions.yeo_johnson import (
    Warp,
    hermite_coefficients,
    identity,
    moments,
    signal_variance,
)
from bowtienet.inference.iterate import FitResult, Progress
from bowtienet.inference.pruning import check_pruning
from bowtienet.model.architecture import Architecture
from bowtienet.posterior.factors import check_factors
from bowtienet.prediction.covariance import output_covariance
from bowtienet.prediction.mixture import Mixture, build_mixture
from bowtienet.prediction.predictive import PROPAGATIONS, predict
from bowtienet.representation.representation import (
    Representation,
    View,
    check_representation,
    network_features,
    network_inputs,
    standardized_features,
)
from bowtienet.representation.scaling import restore_deviation, restore_mean

Floats = NDArray[np.float64]

CHUNK_ROWS = 65_536
"""Rows whose members' moments are held at the same time;"""
CHUNK_MEMBERS = 32
"""fewer where there are more draws than this of each."""
HERMITE_TERMS = 12
"""Of the series for covariances of warped targets."""


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """All that prediction needs."""

    members: tuple[FitResult, ...]
    weights: Floats
    representation: Representation
    """What the members see of the user's table."""
    views: tuple[int, ...]
    """The place of each member's view among those of the representation."""
    propagation: str


def check_ensemble(ensemble: Ensemble, n_columns: int, n_outputs: int) -> None:
    """Raise a clear error if the parts do not fit together."""
    if not ensemble.members:
        raise ValueError("there are no members")
    check_representation(ensemble.representation, n_columns, n_outputs)
    n_views = len(ensemble.representation.views)
    if not isinstance(ensemble.views, tuple) or len(ensemble.views) != len(ensemble.members):
        raise ValueError("members do not have one view of the columns each")
    if not all(type(place) is int and 0 <= place < n_views for place in ensemble.views):
        raise ValueError("members have views of the columns that there are not")
    for member, view in zip(ensemble.members, member_views(ensemble), strict=True):
        n_inputs = len(network_inputs(ensemble.representation, view))
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


def member_views(ensemble: Ensemble) -> list[View]:
    """What each member sees of standardised rows."""
    return [ensemble.representation.views[place] for place in ensemble.views]


def describe_views(ensemble: Ensemble) -> str:
    """What the members see, in words, with the share of their weights.

    Such as ``piecewise features and a Yeo-Johnson target (exponent 0.42) 0.75, standard features
    0.25``.
    """
    found = []
    for place, view in enumerate(ensemble.representation.views):
        words = "standard features" if view.pieces is None else "piecewise features"
        if view.warp is not None:
            exponents = ", ".join(f"{value:.2f}" for value in np.asarray(view.warp.exponent))
            words += f" and a Yeo-Johnson target (exponent {exponents})"
        share = float(np.sum(ensemble.weights[np.asarray(ensemble.views) == place]))
        found.append((share, words))
    if len(found) == 1:
        return found[0][1]
    return ", ".join(f"{words} {share:.2f}" for share, words in sorted(found, reverse=True))


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Members' predictive moments (K, n, D): of warped targets, or of standardised ones."""

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
    """Moments of every member for encoded features (n, E), of the targets it was fitted to."""
    x = standardized_features(ensemble.representation, inputs)
    seen = {place: _features(ensemble, place, x) for place in set(ensemble.views)}
    found = [
        predict(
            member.model,
            member.factors,
            member_inputs(member, seen[place]),
            propagation=ensemble.propagation,
        )
        for member, place in zip(ensemble.members, ensemble.views, strict=True)
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


def member_warps(ensemble: Ensemble) -> Warp | None:
    """The members' warps (K, D) of standardised targets; None if there is none."""
    warps = [view.warp for view in member_views(ensemble)]
    if all(warp is None for warp in warps):
        return None
    no_warp = identity(ensemble.members[0].model.architecture.n_outputs)
    return map_arrays(lambda *found: np.stack(found), *(warp or no_warp for warp in warps))


def mixture(ensemble: Ensemble, inputs: Array) -> Mixture:
    """Predictive distribution of the targets."""
    moments = member_moments(ensemble, inputs)
    means = to_numpy(moments.means)
    variances = to_numpy(moments.epistemic_variances) + to_numpy(moments.noise_variances)
    scaling, warps = ensemble.representation.target_scaling, member_warps(ensemble)
    if warps is None:
        return build_mixture(
            ensemble.weights,
            restore_mean(scaling, means),
            restore_deviation(scaling, np.sqrt(variances)),
        )
    return build_mixture(
        ensemble.weights,
        means,
        np.sqrt(variances),
        warp=warps,
        origin=to_numpy(scaling.center),
        unit=to_numpy(scaling.scale),
    )


def mean_and_deviation(ensemble: Ensemble, inputs: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (n, D) of the targets, where the inputs live."""
    moments = _standardized(ensemble, member_moments(ensemble, inputs))
    mean, epistemic, noise = split_variance(ensemble.weights, moments)
    scaling = ensemble.representation.target_scaling
    deviation = namespace(mean).sqrt(epistemic + noise)
    return restore_mean(scaling, mean), restore_deviation(scaling, deviation)


def components(ensemble: Ensemble, inputs: Array) -> tuple[Array, Array, Array]:
    """Mean, epistemic variance and noise variance, each (n, D) in the user's units."""
    moments = _standardized(ensemble, member_moments(ensemble, inputs), split=True)
    mean, epistemic, noise = split_variance(ensemble.weights, moments)
    scaling, root = ensemble.representation.target_scaling, namespace(mean).sqrt
    return (
        restore_mean(scaling, mean),
        restore_deviation(scaling, root(epistemic)) ** 2,
        restore_deviation(scaling, root(noise)) ** 2,
    )


def _standardized(ensemble: Ensemble, found: Moments, *, split: bool = False) -> Moments:
    """Moments of standardised targets from those of warped ones.

    Var_f[E[u | f]] is epistemic and E_f[Var[u | f]] noise; all is noise unless the two are wanted.
    """
    warps = member_warps(ensemble)
    if warps is None:
        return found
    warps = map_arrays(lambda values: values[:, None, :], warps)
    epistemic, noise = found.epistemic_variances, found.noise_variances
    means, variances = moments(warps, found.means, epistemic + noise)
    signal = namespace(means).zeros_like(variances)
    if split:
        signal = signal_variance(warps, found.means, epistemic, noise)
        # Two quadratures err in the last digits; the parts add up to the whole.
        signal = namespace(means).minimum(signal, variances)
    return Moments(means=means, epistemic_variances=signal, noise_variances=variances - signal)


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
    x = standardized_features(ensemble.representation, inputs)
    own = member_moments(ensemble, inputs)
    found = _standardized(ensemble, own)
    mean, epistemic, noise = split_variance(ensemble.weights, found)
    total = np.zeros((len(x), len(x), mean.shape[1]))
    for index, (weight, member, view) in enumerate(
        zip(ensemble.weights, ensemble.members, member_views(ensemble), strict=True)
    ):
        away = found.means[index] - mean
        seen = member_inputs(member, network_features(view, x))
        within = ratio_of(member) * output_covariance(member.model, member.factors, seen)
        if view.warp is not None:
            deviation = np.sqrt(own.epistemic_variances[index] + own.noise_variances[index])
            within = _unwarped_covariance(view.warp, own.means[index], deviation, within)
        total += weight * (within + away[:, None, :] * away[None, :, :])
    rows = np.arange(len(x))
    total[rows, rows, :] = epistemic + noise
    scale = np.asarray(to_numpy(ensemble.representation.target_scaling.scale))
    return total * scale * scale


def _features(ensemble: Ensemble, place: int, standardized: Array) -> Array:
    return network_features(ensemble.representation.views[place], standardized)


def _unwarped_covariance(warp: Warp, mean: Floats, deviation: Floats, covariance: Floats) -> Floats:
    """Covariance (n, n, D) of targets from that of warped ones, by Mehler's series in it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = covariance / (deviation[:, None, :] * deviation[None, :, :])
    correlation = np.clip(np.nan_to_num(correlation), -1.0, 1.0)
    found, power = np.zeros_like(covariance), np.ones_like(covariance)
    for terms in hermite_coefficients(warp, mean, deviation, HERMITE_TERMS):
        power = power * correlation
        found += power * terms[:, None, :] * terms[None, :, :]
    return found
