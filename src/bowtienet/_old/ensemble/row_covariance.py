"""Covariance of the targets of all rows, between rows too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bowtienet._old._arrays import Array, to_numpy
from bowtienet._old.data.limits import check_memory
from bowtienet._old.distributions.yeo_johnson import Warp, hermite_coefficients
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Floats,
    group_moments,
    group_shares,
    group_weights,
    mean_scales,
    member_inputs,
    member_moments,
    member_views,
    ratio_of,
    split_variance,
    standardized_moments,
)
from bowtienet._old.prediction.covariance import output_covariance
from bowtienet._old.prediction.outside import outside_covariances
from bowtienet._old.representation.representation import network_features, standardized_features
from bowtienet._old.representation.scaling import check_squares

HERMITE_TERMS = 12
"""Of the series for covariances of warped targets."""


def covariance(ensemble: Ensemble, inputs: Array) -> Floats:
    """Covariance (n, n, D) of the targets of all rows, noise on the diagonal.

    By the push-forward, whatever the propagation: the paper's has no covariance between rows.
    Between rows, variances have the mean of their levels.
    """
    n_rows, n_outputs = inputs.shape[0], ensemble.members[0].model.architecture.n_outputs
    check_memory(
        8.0 * n_rows**2 * n_outputs,
        f"the covariance of {n_rows:,} rows",
        "predict fewer of them at once, or ask for return_std",
    )
    ensemble = replace(ensemble, propagation="push_forward")
    inputs = np.asarray(to_numpy(inputs), dtype=float)
    x = standardized_features(ensemble.representation, inputs)
    root = np.sqrt(mean_scales(ensemble, inputs))
    own = group_moments(ensemble, inputs)
    found = standardized_moments(ensemble, own, inputs)
    mean, epistemic, noise = split_variance(group_weights(ensemble), found)
    deviations = root * np.sqrt(own.epistemic_variances + own.noise_variances)
    views = dict(zip(ensemble.groups, member_views(ensemble), strict=True))
    total = np.zeros((len(x), len(x), mean.shape[1]))
    within = _of_groups(ensemble, inputs, x, own.means)
    for group, weight in enumerate(group_weights(ensemble)):
        part = root[:, None, :] * root[None, :, :] * within[group]
        warp = views[group].warp
        if warp is not None:
            part = _unwarped_covariance(warp, own.means[group], deviations[group], part)
        away = found.means[group] - mean
        total += weight * (part + away[:, None, :] * away[None, :, :])
    rows = np.arange(len(x))
    total[rows, rows, :] = epistemic + noise
    scaling = ensemble.representation.target_scaling
    scale = np.asarray(to_numpy(scaling.scale))
    with np.errstate(over="ignore", under="ignore"):
        restored = total * scale * scale
    own = restored[rows, rows, :]
    check_squares(scaling, not np.all(np.isfinite(own) & (own > 0.0)))
    return restored


def _of_groups(ensemble: Ensemble, inputs: Floats, x: Floats, means: Floats) -> list[Floats]:
    """Covariance (n, n, D) of the function of each group, around its mean (G, n, D)."""
    of_members = member_moments(ensemble, inputs).means
    views, found = member_views(ensemble), []
    for mean, shares in zip(means, group_shares(ensemble), strict=True):
        total = np.zeros((len(x), len(x), mean.shape[1]))
        for place in np.flatnonzero(shares):
            member = ensemble.members[place]
            seen = member_inputs(member, network_features(views[place], x))
            own = ratio_of(member) * output_covariance(member.model, member.factors, seen)
            apart = of_members[place] - mean
            total += shares[place] * (own + apart[:, None, :] * apart[None, :, :])
        found.append(total)
    if ensemble.outside is None:
        return found
    beyond = outside_covariances(ensemble.outside, x)
    return [own + more for own, more in zip(found, beyond, strict=True)]


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
