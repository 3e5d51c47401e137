"""Section 3.6: several fitted networks that predict as one, in the user's units.

Mean Σ w_k mean_k; variance Σ w_k (var_k + mean_k²) - mean², written without its difference. Members
of one recipe are a group that predicts as one Gaussian with these moments; the predictive
distribution is a mixture over groups and levels of noise (`prediction.levels`). A group that was
fitted to warped targets z has its moments there; those of the targets follow by quadrature
(`distributions.yeo_johnson`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, like, map_arrays, namespace, slices, take, to_numpy
from bowtienet._old.distributions.yeo_johnson import (
    Warp,
    identity,
    moments,
    signal_variance,
)
from bowtienet._old.inference.iterate import FitResult, Progress
from bowtienet._old.inference.network_checks import check_result
from bowtienet._old.model.architecture import Architecture
from bowtienet._old.model.outcomes import Outcome, StudentT
from bowtienet._old.model.outcomes.counts import log_rates
from bowtienet._old.prediction.calibration import Calibration, aligned, check_calibration
from bowtienet._old.prediction.conformal import HeldOut, check_held_out
from bowtienet._old.prediction.cross_fitted import CrossFitted, check_cross_fitted
from bowtienet._old.prediction.levels import Levels, check_levels, level_probabilities
from bowtienet._old.prediction.mixture import Mixture, build_mixture
from bowtienet._old.prediction.outside import Outside, check_outside, outside_variances
from bowtienet._old.prediction.predictive import PROPAGATIONS, Predictive, predict
from bowtienet._old.representation.background import Background
from bowtienet._old.representation.representation import (
    Representation,
    View,
    check_representation,
    network_features,
    network_inputs,
    standardized_features,
)
from bowtienet._old.representation.scaling import (
    restore_deviation,
    restore_mean,
    restore_variance,
)

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
    views: tuple[int, ...]
    """The place of each member's view among those of the representation."""
    groups: tuple[int, ...]
    """The group of each member, counted from 0. Members of a group have one view, and predict as
    one Gaussian in it, of the moments of their mixture."""
    propagation: str
    levels: Levels | None = None
    """Noise that differs between rows; None where variances are those of the groups."""
    held_out: HeldOut | None = None
    """What conformal intervals rest on; None where no row was held out."""
    calibration: Calibration | None = None
    """Of the outputs of groups, for classes and counts; None where these are as they are."""
    cross_fitted: CrossFitted | None = None
    """Scores of rows that were held out in turn; None where no row was held out."""
    outside: Outside | None = None
    """How functions may bend outside the range of training; None where they go on as they are."""
    background: Background | None = None
    """Rows that predictions are explained by; None of a model from a file, which holds no rows."""


def check_ensemble(ensemble: Ensemble, n_columns: int, n_targets: int) -> None:
    """Raise a clear error if the parts do not fit together."""
    if not ensemble.members:
        raise ValueError("there are no members")
    outcome = outcome_of(ensemble)
    n_outputs = outcome.n_outputs(n_targets)
    check_representation(ensemble.representation, n_columns, outcome.n_columns(n_outputs))
    n_views = len(ensemble.representation.views)
    if not isinstance(ensemble.views, tuple) or len(ensemble.views) != len(ensemble.members):
        raise ValueError("members do not have one view of the columns each")
    if not all(type(place) is int and 0 <= place < n_views for place in ensemble.views):
        raise ValueError("members have views of the columns that there are not")
    _check_groups(ensemble)
    if len({type(member.model.outcome) for member in ensemble.members}) > 1:
        raise ValueError("members have different outcomes")
    for member, view in zip(ensemble.members, member_views(ensemble), strict=True):
        _check_member(member, len(network_inputs(ensemble.representation, view)), n_outputs)
    weights = np.asarray(ensemble.weights)
    if weights.shape != (len(ensemble.members),) or not abs(weights.sum() - 1.0) < 1e-6:
        raise ValueError("weights do not sum to one over the members")
    if np.any(weights < 0.0):
        raise ValueError("weights are negative")
    if ensemble.propagation not in PROPAGATIONS:
        raise ValueError(f"the propagation {ensemble.propagation!r} is not known")
    if ensemble.levels is not None:
        n_encoded = len(ensemble.representation.column_order)
        check_levels(ensemble.levels, n_encoded, n_outputs)
    if ensemble.held_out is not None:
        check_held_out(ensemble.held_out, n_outputs)
    if ensemble.cross_fitted is not None:
        check_cross_fitted(ensemble.cross_fitted, n_targets)
    n_groups = len(set(ensemble.groups))
    if ensemble.calibration is not None:
        check_calibration(ensemble.calibration, n_groups)
    if ensemble.outside is not None:
        n_encoded = len(ensemble.representation.column_order)
        check_outside(ensemble.outside, n_encoded, n_groups, n_outputs)


def _check_member(member: FitResult, n_inputs: int, n_outputs: int) -> None:
    check_result(member)
    architecture, ratio = original(member), ratio_of(member)
    if np.shape(ratio) != (n_outputs,) or not np.all((ratio > 0.0) & np.isfinite(ratio)):
        raise ValueError("variance ratios are not one positive number for each target")
    if (architecture.n_inputs, architecture.n_outputs) != (n_inputs, n_outputs):
        raise ValueError(f"members are not for {n_inputs} inputs and {n_outputs} targets")


def _check_groups(ensemble: Ensemble) -> None:
    groups = ensemble.groups
    if not isinstance(groups, tuple) or len(groups) != len(ensemble.members):
        raise ValueError("members do not have one group each")
    if sorted(set(groups)) != list(range(len(set(groups)))):
        raise ValueError("groups of members are not counted from 0")
    if len(set(zip(groups, ensemble.views, strict=True))) != len(set(groups)):
        raise ValueError("members of a group have different views of the columns")


def outcome_of(ensemble: Ensemble) -> Outcome:
    """The likelihood that the members were fitted by."""
    return ensemble.members[0].model.outcome


def alone(n_members: int) -> tuple[int, ...]:
    """Groups of members that are not brought together."""
    return tuple(range(n_members))


def original(member: FitResult) -> Architecture:
    """The network that a member was before anything was pruned."""
    return member.model.architecture if member.pruning is None else member.pruning.architecture


def member_views(ensemble: Ensemble) -> list[View]:
    """What each member sees of standardised rows."""
    return [ensemble.representation.views[place] for place in ensemble.views]


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Predictive moments (K, n, D) of K members, groups or components of a mixture."""

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

    return stack_moments(ensemble, found)


def stack_moments(ensemble: Ensemble, found: Sequence[Predictive]) -> Moments:
    """Moments of every member from what its network predicts."""
    xp = namespace(found[0].mean)

    def stack(values: list[Array]) -> Array:
        # Whatever the precision of the rows: units of targets may need all the digits.
        return xp.astype(xp.stack(values), xp.float64, copy=False)

    ratios = np.stack([ratio_of(member) for member in ensemble.members])[:, None, :]
    outcomes = [member.model.outcome for member in ensemble.members]
    means = stack([log_rates(own, f.mean) for own, f in zip(outcomes, found, strict=True)])
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


def group_weights(ensemble: Ensemble) -> Floats:
    """Weights (G,) of the groups."""
    return np.asarray(np.bincount(ensemble.groups, weights=ensemble.weights), dtype=np.float64)


def group_shares(ensemble: Ensemble) -> Floats:
    """Shares (G, K) of the members in their groups."""
    groups, weights = np.asarray(ensemble.groups), np.asarray(ensemble.weights)
    totals = group_weights(ensemble)
    sizes = np.bincount(groups)
    # A group without weight has members that count alike.
    own = np.where(totals[groups] > 0.0, weights, 1.0 / sizes[groups])
    shares = np.zeros((len(sizes), len(groups)))
    shares[groups, np.arange(len(groups))] = own / np.bincount(groups, weights=own)[groups]
    return shares


def group_moments(ensemble: Ensemble, inputs: Array) -> Moments:
    """Moments of every group for encoded features (n, E)."""
    return combine_members(ensemble, member_moments(ensemble, inputs), inputs)


def combine_members(ensemble: Ensemble, found: Moments, inputs: Array) -> Moments:
    """Moments of every group: Σ m,   Σ (v + (m - mean)²) and Σ noise by the shares of members.

    Disagreement of the members of a group is epistemic, and so is what is not known outside the
    range of training.
    """
    joined = _joined(ensemble, found)
    if ensemble.outside is not None:
        x = standardized_features(ensemble.representation, inputs)
        beyond = like(joined.means, outside_variances(ensemble.outside, x))
        joined = replace(joined, epistemic_variances=joined.epistemic_variances + beyond)
    return joined if ensemble.calibration is None else _scaled(ensemble.calibration, joined)


def _scaled(calibration: Calibration, found: Moments) -> Moments:
    """Moments of outputs that are multiplied by the slopes of their groups."""
    slopes = like(found.means, calibration.slope)[:, None, None]
    return Moments(
        means=slopes * found.means,
        epistemic_variances=slopes**2 * found.epistemic_variances,
        noise_variances=slopes**2 * found.noise_variances,
    )


def _joined(ensemble: Ensemble, found: Moments) -> Moments:
    """Moments of groups from those of members, inside the range of training."""
    if len(set(ensemble.groups)) == len(ensemble.members):
        order = np.argsort(ensemble.groups)
        return map_arrays(lambda values: take(values, order, axis=0), found)
    parts = []
    for own in group_shares(ensemble):
        places = np.flatnonzero(own)
        some = map_arrays(lambda values, places=places: take(values, places, axis=0), found)
        some = replace(some, means=aligned(outcome_of(ensemble), some.means))
        parts.append(split_variance(own[places], some))
    xp = namespace(found.means)
    means, epistemic, noise = (xp.stack(column) for column in zip(*parts, strict=True))
    return Moments(means=means, epistemic_variances=epistemic, noise_variances=noise)


def group_warps(ensemble: Ensemble) -> Warp | None:
    """The groups' warps (G, D) of standardised targets; None if there is none."""
    views = dict(zip(ensemble.groups, member_views(ensemble), strict=True))
    warps = [views[group].warp for group in sorted(views)]
    if all(warp is None for warp in warps):
        return None
    no_warp = identity(ensemble.members[0].model.architecture.n_outputs)
    return map_arrays(lambda *found: np.stack(found), *(warp or no_warp for warp in warps))


def _levels_of_rows(ensemble: Ensemble, inputs: Array) -> tuple[Floats, Floats]:
    """Scales (L, D) of the variances and their probabilities (L, n, D); one level without any."""
    n_outputs = ensemble.members[0].model.architecture.n_outputs
    if ensemble.levels is None:
        return np.ones((1, n_outputs)), np.ones((1, inputs.shape[0], n_outputs))
    standardized = standardized_features(ensemble.representation, inputs)
    return ensemble.levels.scale, level_probabilities(ensemble.levels, standardized)


def mean_scales(ensemble: Ensemble, inputs: Array) -> Floats:
    """Factors (n, D) of the variances of rows, over the levels of noise."""
    scale, shares = _levels_of_rows(ensemble, inputs)
    return np.asarray(np.einsum("kd,knd->nd", scale, shares))


def function_scales(ensemble: Ensemble, inputs: Array) -> Floats:
    """Factors (n, D) of the variances of the function.

    1 / E[1/s] over the levels s where outliers have levels of their own: rows tell of the function
    by their precisions, and a wild one by next to nothing.
    """
    if not isinstance(outcome_of(ensemble), StudentT):
        return mean_scales(ensemble, inputs)
    scale, shares = _levels_of_rows(ensemble, inputs)
    return np.asarray(1.0 / np.einsum("kd,knd->nd", 1.0 / scale, shares))


def mixture(ensemble: Ensemble, inputs: Array) -> Mixture:
    """Predictive distribution of the targets: groups and levels of noise are its components."""
    return level_mixture(ensemble, map_arrays(to_numpy, group_moments(ensemble, inputs)), inputs)


def level_mixture(ensemble: Ensemble, found: Moments, inputs: Array) -> Mixture:
    """The mixture of groups with these moments (G, n, D), at the levels of noise of the rows."""
    scale, shares = _levels_of_rows(ensemble, inputs)
    deviations = np.sqrt(found.epistemic_variances + found.noise_variances)
    means = np.concatenate([found.means] * len(scale))
    deviations = np.concatenate([np.sqrt(level) * deviations for level in scale])
    weights = group_weights(ensemble)
    if ensemble.levels is not None:
        weights = np.concatenate([weights[:, None, None] * share for share in shares])
    scaling, warps = ensemble.representation.target_scaling, group_warps(ensemble)
    if warps is None:
        return build_mixture(
            weights, restore_mean(scaling, means), restore_deviation(scaling, deviations)
        )
    return build_mixture(
        weights,
        means,
        deviations,
        warp=map_arrays(lambda values: np.concatenate([values] * len(scale)), warps),
        origin=to_numpy(scaling.center),
        unit=to_numpy(scaling.scale),
    )


def mean_and_deviation(ensemble: Ensemble, inputs: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (n, D) of the targets, where the inputs live."""
    return combine_groups(ensemble, group_moments(ensemble, inputs), inputs)


def combine_groups(ensemble: Ensemble, found: Moments, inputs: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (n, D) of the targets from the moments of groups."""
    found = standardized_moments(ensemble, found, inputs)
    mean, epistemic, noise = split_variance(group_weights(ensemble), found)
    scaling = ensemble.representation.target_scaling
    deviation = namespace(mean).sqrt(epistemic + noise)
    return restore_mean(scaling, mean), restore_deviation(scaling, deviation)


def components(ensemble: Ensemble, inputs: Array) -> tuple[Array, Array, Array]:
    """Mean, epistemic variance and noise variance, each (n, D) in the user's units."""
    found = standardized_moments(ensemble, group_moments(ensemble, inputs), inputs, split=True)
    mean, epistemic, noise = split_variance(group_weights(ensemble), found)
    scaling = ensemble.representation.target_scaling
    return (
        restore_mean(scaling, mean),
        restore_variance(scaling, epistemic),
        restore_variance(scaling, noise),
    )


def standardized_moments(
    ensemble: Ensemble, found: Moments, inputs: Array, *, split: bool = False
) -> Moments:
    """Moments (G, n, D) of standardised targets, over the levels of noise.

    Of warped targets Var_f[E[u | f]] is epistemic and E_f[Var[u | f]] noise; all is noise unless
    the two are wanted. Which level a row has is noise too.
    """
    warps = group_warps(ensemble)
    if warps is None and ensemble.levels is None:
        return found
    if split and warps is None and isinstance(outcome_of(ensemble), StudentT):
        total = like(found.means, mean_scales(ensemble, inputs))
        epistemic = like(found.means, function_scales(ensemble, inputs)) * found.epistemic_variances
        noise = total * (found.epistemic_variances + found.noise_variances) - epistemic
        return Moments(means=found.means, epistemic_variances=epistemic, noise_variances=noise)
    scale, shares = _levels_of_rows(ensemble, inputs)
    parts = []
    for level, share in zip(scale, shares, strict=True):
        factor = like(found.means, level)
        scaled = Moments(
            means=found.means,
            epistemic_variances=factor * found.epistemic_variances,
            noise_variances=factor * found.noise_variances,
        )
        own = scaled if warps is None else _unwarped(warps, scaled, split)
        parts.append((like(found.means, share)[None, ...], own))
    mean = sum(share * own.means for share, own in parts)
    return Moments(
        means=mean,
        epistemic_variances=sum(share * own.epistemic_variances for share, own in parts),
        noise_variances=sum(
            share * (own.noise_variances + (own.means - mean) ** 2) for share, own in parts
        ),
    )


def _unwarped(warps: Warp, found: Moments, split: bool) -> Moments:
    """Moments of standardised targets from those of warped ones, by quadrature."""
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
    """Mean, epistemic variance and noise variance, each (n, D).

    Σ w m,   Σ w (v + (m - mean)²),   Σ w noise: disagreement is epistemic.
    """
    xp = namespace(moments.means)
    share = like(moments.means, weights)[:, None, None]
    mean = xp.sum(share * moments.means, axis=0)
    with np.errstate(over="ignore"):  # what is not finite is refused by those who ask
        spread = moments.epistemic_variances + (moments.means - mean[None, ...]) ** 2
    return mean, xp.sum(share * spread, axis=0), xp.sum(share * moments.noise_variances, axis=0)


def _features(ensemble: Ensemble, place: int, standardized: Array) -> Array:
    return network_features(ensemble.representation.views[place], standardized)
