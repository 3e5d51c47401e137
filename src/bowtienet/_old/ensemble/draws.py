"""Draws of targets, or of the function, from the predictive distribution of an ensemble."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, map_arrays, to_numpy
from bowtienet._old.distributions.yeo_johnson import Warp, from_warped, moments
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Floats,
    Moments,
    function_scales,
    group_moments,
    group_warps,
    group_weights,
    member_inputs,
    member_moments,
    member_views,
    mixture,
    ratio_of,
)
from bowtienet._old.model.outcomes.counts import log_rates
from bowtienet._old.prediction.levels import level_probabilities
from bowtienet._old.prediction.outside import draw_outside
from bowtienet._old.prediction.sampling import sample_functions
from bowtienet._old.representation.representation import network_features, standardized_features
from bowtienet._old.representation.scaling import restore_mean


def draw_rows(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator, *, noise: bool
) -> Floats:
    """Draws (n_draws, n, D) of each row by itself; without noise of the mean given the network."""
    if noise:
        return mixture(ensemble, inputs).rvs(n_draws, random_state=rng)
    found = map_arrays(to_numpy, group_moments(ensemble, inputs))
    weights, scale = group_weights(ensemble), function_scales(ensemble, inputs)
    chosen = rng.choice(len(weights), size=(n_draws, *found.means.shape[1:]), p=weights)

    def of_chosen(values: Floats) -> Floats:
        return np.take_along_axis(np.broadcast_to(values, found.means.shape), chosen, axis=0)

    deviations = np.sqrt(scale * of_chosen(found.epistemic_variances))
    draws = of_chosen(found.means) + deviations * rng.standard_normal(chosen.shape)
    warps = group_warps(ensemble)
    if warps is not None:
        own = map_arrays(lambda values: of_chosen(values[:, None, :]), warps)
        draws, _ = moments(own, draws, scale * of_chosen(found.noise_variances))
    return np.asarray(restore_mean(ensemble.representation.target_scaling, draws))


def draw_functions(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator, *, noise: bool
) -> Floats:
    """Draws (n_draws, n, D) that are coherent across rows: a member, its weights, then all rows.

    A draw of a member's function is as far from the member's mean as its variance ratio says, and
    as far from the mean of its group as the level of noise says: of each row's own level with
    noise, of their mean without.
    """
    chosen = rng.choice(len(ensemble.members), size=n_draws, p=ensemble.weights).tolist()
    x = np.asarray(to_numpy(standardized_features(ensemble.representation, inputs)), dtype=float)
    views = member_views(ensemble)
    seen = {
        index: member_inputs(ensemble.members[index], network_features(views[index], x))
        for index in set(chosen)
    }
    own = map_arrays(to_numpy, member_moments(ensemble, inputs))
    groups = map_arrays(to_numpy, group_moments(ensemble, inputs))
    levels = _Levels(ensemble, inputs)
    draws = []
    for index in chosen:
        member, group = ensemble.members[index], ensemble.groups[index]
        [draw] = sample_functions(member, seen[index], 1, rng, noise=noise)
        mean, middle = own.means[index], groups.means[group]
        draw = mean + np.sqrt(ratio_of(member)) * (draw - mean)
        if ensemble.outside is not None:
            draw = draw + draw_outside(ensemble.outside, x, group, rng)
        scale = levels.drawn(rng) if noise else levels.mean
        draw = middle + np.sqrt(scale) * (draw - middle)
        draws.append(_unwarped(views[index].warp, draw, groups, group, scale, noise=noise))
    return np.asarray(restore_mean(ensemble.representation.target_scaling, np.stack(draws)))


def draw_outputs(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.intp]]:
    """Outputs (n_draws, n, D) of whole networks of classes or counts, and their groups.

    They are calibrated; outputs of counts are logs of rates.
    """
    chosen = rng.choice(len(ensemble.members), size=n_draws, p=ensemble.weights)
    x = np.asarray(to_numpy(standardized_features(ensemble.representation, inputs)), dtype=float)
    views, draws = member_views(ensemble), []
    groups = np.asarray(ensemble.groups)[chosen]
    for index, group in zip(chosen.tolist(), groups.tolist(), strict=True):
        member = ensemble.members[index]
        seen = member_inputs(member, network_features(views[index], x))
        [draw] = sample_functions(member, seen, 1, rng, noise=False)
        draw = log_rates(member.model.outcome, draw)
        if ensemble.outside is not None:
            draw = draw + draw_outside(ensemble.outside, x, group, rng)
        if ensemble.calibration is not None:
            draw = ensemble.calibration.slope[group] * draw
        draws.append(draw)
    return np.stack(draws), groups


class _Levels:
    """The factors (n, D) of the variances of rows: their mean, or one of each row's levels."""

    def __init__(self, ensemble: Ensemble, inputs: Array) -> None:
        self.mean, self.scale = function_scales(ensemble, inputs), None
        if ensemble.levels is not None:
            self.scale = ensemble.levels.scale
            x = standardized_features(ensemble.representation, inputs)
            self.ends = np.cumsum(level_probabilities(ensemble.levels, x), axis=0)

    def drawn(self, rng: np.random.Generator) -> Floats:
        if self.scale is None:
            return self.mean
        level = np.sum(rng.random(self.ends.shape[1:]) > self.ends[:-1], axis=0)
        return np.take_along_axis(self.scale, level, axis=0)


def _unwarped(
    warp: Warp | None, draw: Floats, groups: Moments, group: int, scale: Floats, *, noise: bool
) -> Floats:
    """A draw of standardised targets, or of their mean over the noise."""
    if warp is None:
        return draw
    if noise:
        return np.asarray(from_warped(warp, draw))
    return np.asarray(moments(warp, draw, scale * groups.noise_variances[group])[0])
