"""What a graph answers: means, deviations and quantiles; probabilities and labels; counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from bowtienet._old._arrays import map_arrays
from bowtienet._old.distributions.gated import PROBIT_SLOPES, PROBIT_WEIGHTS
from bowtienet._old.distributions.yeo_johnson import from_warped, mean_and_deviation, to_warped
from bowtienet._old.ensemble.count_ensemble import LARGEST_LOG_RATE, N_NODES, group_dispersions
from bowtienet._old.ensemble.ensemble import Ensemble, group_weights, outcome_of
from bowtienet._old.model.outcomes import Binary
from bowtienet._old.onnx_export import operators as xp
from bowtienet._old.onnx_export.graph import Traced
from bowtienet._old.onnx_export.moments import TracedMixture, group_moments, level_mixture
from bowtienet._old.prediction.class_probabilities import normal_points
from bowtienet._old.representation.scaling import Scaling

HALVINGS = 52
"""Of the bracket of a quantile: to the last digits of a double."""


def continuous_answers(
    ensemble: Ensemble, x: Traced, levels: Sequence[float]
) -> tuple[Traced, Traced, Traced | None]:
    """Mean and standard deviation (n, D), and quantiles (n, D, q) if there are levels."""
    found, scaling = level_mixture(ensemble, x), ensemble.representation.target_scaling
    means, deviations = found.means, found.deviations
    if found.warp is not None:
        means, deviations = mean_and_deviation(found.warp, means, deviations)
    mean = xp.sum(found.weights * means, axis=0)
    spread = deviations**2 + (means - mean[None, ...]) ** 2
    deviation = xp.sqrt(xp.sum(found.weights * spread, axis=0))
    center, scale = np.asarray(scaling.center), np.asarray(scaling.scale)
    answers = mean * scale + center, deviation * scale
    return (*answers, _quantiles(found, scaling, levels) if len(levels) else None)


def _quantiles(found: TracedMixture, scaling: Scaling, levels: Sequence[float]) -> Traced:
    """F^{-1}(q) by halving a bracket: between the least and the largest quantile of a component."""
    wanted = np.asarray(levels, dtype=float)
    weights, means, deviations = (
        part[..., None] for part in (found.weights, found.means, found.deviations)
    )
    warp = map_arrays(lambda values: values[..., None], found.warp)
    ends = means + deviations * ndtri(wanted)
    if warp is not None:
        ends = from_warped(warp, ends)

    def halve(low: Traced, high: Traced) -> tuple[Traced, Traced]:
        middle = 0.5 * low + 0.5 * high
        points = middle[None, ...] + xp.zeros_like(means)
        z = (points if warp is None else to_warped(warp, points)) - means
        reached = xp.sum(weights * xp.ndtr(z / deviations), axis=0)
        below = reached < wanted
        return xp.where(below, middle, low), xp.where(below, high, middle)

    bracket = [xp.min(ends, axis=0), xp.max(ends, axis=0)]
    low, high = means.device.loop(HALVINGS, bracket, halve)
    center, scale = (np.asarray(part)[:, None] for part in (scaling.center, scaling.scale))
    return (0.5 * low + 0.5 * high) * scale + center


def class_probabilities(ensemble: Ensemble, x: Traced) -> Traced:
    """Probabilities (n, C): `ensemble.class_ensemble.class_probabilities`."""
    found, weights = group_moments(ensemble, x), group_weights(ensemble)
    variances = found.epistemic_variances + found.noise_variances
    if isinstance(outcome_of(ensemble), Binary):
        p = xp.zeros_like(found.means)
        for weight, slope in zip(PROBIT_WEIGHTS, PROBIT_SLOPES, strict=True):
            p = p + weight * xp.ndtr(slope * found.means / xp.sqrt(1.0 + slope**2 * variances))
        second = xp.sum(weights[:, None, None] * p, axis=0)
        return xp.concat([1.0 - second, second], axis=1)
    points, shares = normal_points(found.means.shape[-1])
    deviations = xp.sqrt(variances)
    outputs = found.means[:, :, None, :] + deviations[:, :, None, :] * points
    # log σ(z), without overflow.
    logs = xp.minimum(outputs, 0.0) - xp.log1p(xp.exp(-xp.abs(outputs)))
    relative = xp.exp(logs - xp.max(logs, axis=-1, keepdims=True))
    p = relative / xp.sum(relative, axis=-1, keepdims=True)
    of_groups = xp.sum(shares[:, None] * p, axis=2)
    return xp.sum(weights[:, None, None] * of_groups, axis=0)


def most_probable(probabilities: Traced, classes: np.ndarray) -> Traced:
    """The labels (n,) of the largest probabilities."""
    graph = probabilities.device
    place = graph.node(
        "ArgMax", [probabilities], probabilities.shape[:1], np.int64, axis=1, keepdims=0
    )
    return xp.take(graph.constant(classes), place, axis=0)


def count_answers(ensemble: Ensemble, x: Traced) -> tuple[Traced, Traced]:
    """Mean and standard deviation (n,) of counts of exposure 1."""
    found = group_moments(ensemble, x)
    nodes, shares = np.polynomial.hermite_e.hermegauss(N_NODES)
    deviations = xp.sqrt(found.epistemic_variances + found.noise_variances)
    # (G, n, 1) beside (nodes,)
    logs = xp.clip(found.means + deviations * nodes, -LARGEST_LOG_RATE, LARGEST_LOG_RATE)
    rates = xp.exp(logs)
    weights = group_weights(ensemble)[:, None, None] * (shares / shares.sum())

    def average(values: Traced) -> Traced:
        return xp.sum(xp.sum(weights * values, axis=2), axis=0)

    mean = average(rates)
    spread = (
        rates
        + rates**2 / group_dispersions(ensemble)[:, None, None]
        + (rates - mean[None, :, None]) ** 2
    )
    return mean, xp.sqrt(average(spread))
