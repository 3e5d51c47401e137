"""Moments of networks, groups and levels of noise in a graph: `ensemble.ensemble`, traced.

The functions of the core are handed traced arrays. What they work out in NumPy (levels of noise,
rows outside the range of training) is written here again, and tested against them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bowtienet._old._arrays import map_arrays
from bowtienet._old.distributions.yeo_johnson import Warp
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Moments,
    combine_members,
    group_warps,
    group_weights,
    member_inputs,
    stack_moments,
)
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.onnx_export import operators as xp
from bowtienet._old.onnx_export.graph import ROWS, Traced
from bowtienet._old.prediction.levels import FURTHEST, Levels
from bowtienet._old.prediction.outside import Outside
from bowtienet._old.prediction.predictive import Predictive, output_noise
from bowtienet._old.prediction.push_forward import push_forward
from bowtienet._old.representation.representation import network_features


@dataclass(frozen=True, kw_only=True)
class TracedMixture:
    """K components of standardised targets, as `prediction.mixture` has them."""

    weights: Traced
    """(K, n, D), or (K, 1, 1) where they are those of all rows."""
    means: Traced
    """(K, n, D)"""
    deviations: Traced
    """(K, n, D)"""
    warp: Warp | None
    """Arrays (K, 1, D) of constants."""


def group_moments(ensemble: Ensemble, x: Traced) -> Moments:
    """Moments (G, n, D) of every group for standardised rows (n, E)."""
    found = [
        _predicted(member, network_features(ensemble.representation.views[place], x))
        for member, place in zip(ensemble.members, ensemble.views, strict=True)
    ]
    plain = replace(ensemble, outside=None, calibration=None)
    joined = combine_members(plain, stack_moments(ensemble, found), x)
    if ensemble.outside is not None:
        beyond = outside_variances(ensemble.outside, x)
        joined = replace(joined, epistemic_variances=joined.epistemic_variances + beyond)
    if ensemble.calibration is None:
        return joined
    slopes = np.asarray(ensemble.calibration.slope)[:, None, None]
    return Moments(
        means=slopes * joined.means,
        epistemic_variances=slopes**2 * joined.epistemic_variances,
        noise_variances=slopes**2 * joined.noise_variances,
    )


def _predicted(member: FitResult, inputs: Traced) -> Predictive:
    mean, spread = push_forward(member.model, member.factors, member_inputs(member, inputs))
    return Predictive(
        mean=mean,
        signal_variance=spread.epistemic + spread.chance,
        chance_variance=spread.chance,
        noise_variance=xp.zeros_like(mean) + output_noise(member.model, member.factors),
    )


def outside_variances(outside: Outside, x: Traced) -> Traced:
    """Σ_j Var[∂f/∂x_j] e_j² (G, n, D) of rows outside the range of training, zero inside."""
    below = xp.maximum(outside.low - x, 0.0)
    above = xp.maximum(x - outside.high, 0.0)
    variances = (below**2 + above**2) @ outside.slope_variances
    bounded = np.where(outside.bounded, 1.0, 0.0)[:, None, None]
    return variances / (1.0 + bounded * variances)


def level_shares(levels: Levels, x: Traced) -> list[Traced]:
    """π_k (n, D) of the levels: sticks that are broken one after the other."""
    seen = xp.take(x, x.device.constant(np.asarray(levels.columns)), axis=1)
    held = xp.clip(seen, -FURTHEST, FURTHEST)
    found, rest = [], xp.ones((ROWS, levels.scale.shape[1]), device=x.device)
    for own in levels.gates:
        logits = held @ own[1:] + own[:1]
        found.append(rest * xp.expit(logits))
        rest = rest * xp.expit(-logits)
    return [*found, rest]


def level_mixture(ensemble: Ensemble, x: Traced) -> TracedMixture:
    """Groups and levels of noise as the components of one mixture."""
    found, weights = group_moments(ensemble, x), group_weights(ensemble)[:, None, None]
    deviations = xp.sqrt(found.epistemic_variances + found.noise_variances)
    warps = group_warps(ensemble)
    warp = map_arrays(lambda values: values[:, None, :], warps)
    if ensemble.levels is None:
        own = x.device.constant(weights)
        return TracedMixture(weights=own, means=found.means, deviations=deviations, warp=warp)
    scale = np.asarray(ensemble.levels.scale)
    shares = level_shares(ensemble.levels, x)
    return TracedMixture(
        weights=xp.concat([weights * share[None, ...] for share in shares]),
        means=xp.concat([found.means] * len(scale)),
        deviations=xp.concat([np.sqrt(level) * deviations for level in scale]),
        warp=map_arrays(lambda values: np.concatenate([values] * len(scale)), warp),
    )
