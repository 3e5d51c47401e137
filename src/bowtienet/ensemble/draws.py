"""Draws of targets, or of the function, from the predictive distribution of an ensemble."""

from __future__ import annotations

from functools import partial

import numpy as np

from bowtienet._arrays import Array, map_arrays, to_numpy
from bowtienet.distributions.yeo_johnson import from_warped, moments
from bowtienet.ensemble.ensemble import (
    Ensemble,
    Floats,
    member_inputs,
    member_moments,
    member_views,
    member_warps,
    mixture,
    ratio_of,
)
from bowtienet.inference.iterate import FitResult
from bowtienet.prediction.predictive import Predictive, predict
from bowtienet.prediction.sampling import sample_functions
from bowtienet.representation.representation import View, network_features, standardized_features
from bowtienet.representation.scaling import restore_mean


def draw_rows(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator, *, noise: bool
) -> Floats:
    """Draws (n_draws, n, D) of each row by itself; without noise of the mean given the network."""
    if noise:
        return mixture(ensemble, inputs).rvs(n_draws, random_state=rng)
    found = map_arrays(to_numpy, member_moments(ensemble, inputs))
    _, *shape = found.means.shape
    chosen = rng.choice(len(ensemble.members), size=(n_draws, *shape), p=ensemble.weights)

    def of_chosen(values: Floats) -> Floats:
        return np.take_along_axis(np.broadcast_to(values, found.means.shape), chosen, axis=0)

    deviations = np.sqrt(of_chosen(found.epistemic_variances))
    draws = of_chosen(found.means) + deviations * rng.standard_normal(chosen.shape)
    warps = member_warps(ensemble)
    if warps is not None:
        own = map_arrays(lambda values: of_chosen(values[:, None, :]), warps)
        draws, _ = moments(own, draws, of_chosen(found.noise_variances))
    return np.asarray(restore_mean(ensemble.representation.target_scaling, draws))


def draw_functions(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator, *, noise: bool
) -> Floats:
    """Draws (n_draws, n, D) that are coherent across rows: a member, its weights, then all rows."""
    x = np.asarray(to_numpy(standardized_features(ensemble.representation, inputs)), dtype=float)
    chosen = rng.choice(len(ensemble.members), size=n_draws, p=ensemble.weights)
    views = member_views(ensemble)
    drawers = {
        index: partial(_draw_function, ensemble.members[index], views[index], x, noise)
        for index in set(chosen.tolist())
    }
    centers = {index: _center(ensemble.members[index], views[index], x) for index in drawers}
    draws = [drawers[index](centers[index], rng) for index in chosen.tolist()]
    return np.asarray(restore_mean(ensemble.representation.target_scaling, np.stack(draws)))


def _center(member: FitResult, view: View, x: Floats) -> Predictive | None:
    """A member's moments, if its draws are moved away from its mean or taken back from a warp."""
    if member.variance_ratio is None and view.warp is None:
        return None
    return predict(member.model, member.factors, member_inputs(member, network_features(view, x)))


def _draw_function(
    member: FitResult,
    view: View,
    x: Floats,
    noise: bool,
    center: Predictive | None,
    rng: np.random.Generator,
) -> Floats:
    """One draw (n, D), as far from the member's mean as its variance ratio says."""
    inputs = member_inputs(member, network_features(view, x))
    [draw] = sample_functions(member, inputs, 1, rng, noise=noise)
    if center is None:
        return draw
    draw = np.asarray(center.mean + np.sqrt(ratio_of(member)) * (draw - center.mean))
    if view.warp is None:
        return draw
    if noise:
        return np.asarray(from_warped(view.warp, draw))
    variance = ratio_of(member) * (center.noise_variance + center.chance_variance)
    return np.asarray(moments(view.warp, draw, variance)[0])
