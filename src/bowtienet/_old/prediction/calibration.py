"""Classes and counts: how outputs of networks become probabilities that held-out rows bear out.

A network that has learnt its rows too well is too sure of others. So the outputs z of a recipe, and
their deviations, are multiplied by a slope a, and counts have the dispersion r, under which
held-out rows are most likely:

    Σ_n w_n log E[p(y_n | a z_n)] - ½ n0 (log a)²,     z_n ~ N(m_n, v_n).

Outputs of counts are logs of rates: their mean is e^z for exposure 1, whatever r is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from bowtienet._old._arrays import Array, namespace
from bowtienet._old.model.outcomes import Classes, Counts, Outcome
from bowtienet._old.model.outcomes.counts import DISPERSIONS
from bowtienet._old.prediction.class_probabilities import expected_probabilities

Floats = NDArray[np.float64]

PRIOR_ROWS = 5.0
"""n0: rows that speak for outputs as they are."""
SLOPES = (0.1, 10.0)
LEAST_PROBABILITY = 1e-12
"""Of a class: no row counts as impossible."""
N_NODES = 16
"""Of the quadrature over the outputs of counts."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What the outputs of G groups of members are multiplied by, and their dispersions, (G,)."""

    slope: Floats
    dispersion: Floats
    """Of counts; ones of classes."""


def is_discrete(outcome: Outcome) -> bool:
    """Whether targets are classes or counts, and so have probabilities and no densities."""
    return not outcome.has_noise


def calibrate(
    outcome: Outcome, targets: Floats, means: Floats, variances: Floats, row_weights: Floats
) -> tuple[float, float, Floats]:
    """Slope, dispersion, and the log probabilities (n,) of held-out rows under them.

    Parameters
    ----------
    outcome : Outcome
        Of classes or counts.
    targets : array (n, C)
        As networks see them.
    means, variances : array (n, D)
        Of the outputs, logs of rates of counts.
    row_weights : array (n,)
        How many times each row counts.
    """
    total = row_weights.sum()

    def loss_of_slope(log_slope: float) -> float:
        slope = math.exp(log_slope)
        logs = log_probabilities(outcome, targets, slope * means, slope**2 * variances)
        return float(-row_weights @ logs + 0.5 * PRIOR_ROWS * log_slope**2) / total

    def loss_of_dispersion(log_dispersion: float) -> float:
        own = rate_outcome(math.exp(log_dispersion))
        return float(-row_weights @ log_probabilities(own, targets, means, variances)) / total

    slope, dispersion = 1.0, 1.0
    if isinstance(outcome, Counts):
        dispersion = _least(loss_of_dispersion, DISPERSIONS)
        outcome = rate_outcome(dispersion)
    else:
        slope = _least(loss_of_slope, SLOPES)
    logs = log_probabilities(outcome, targets, slope * means, slope**2 * variances)
    return slope, dispersion, logs


def common_slope(
    outcome: Outcome,
    targets: Floats,
    forecasts: Sequence[tuple[Floats, Floats]],
    weights: Floats,
    row_weights: Floats,
) -> float:
    """The slope of the outputs of all recipes under which their mixture is most likely.

    A mixture of forecasts that are each as sure as they should be is less sure than it could be.
    Forecasts are means and variances (n, D), calibrated already; weights (R,) those of the recipes.
    """

    def loss(log_slope: float) -> float:
        slope = math.exp(log_slope)
        logs = [
            log_probabilities(outcome, targets, slope * means, slope**2 * variances)
            for means, variances in forecasts
        ]
        mixed = logsumexp(np.stack(logs), axis=0, b=weights[:, None])
        prior = 0.5 * PRIOR_ROWS * log_slope**2
        return float(-row_weights @ mixed + prior) / float(row_weights.sum())

    return _least(loss, SLOPES)


def rate_outcome(dispersion: float) -> Counts:
    """Counts whose outputs are logs of rates."""
    return Counts(dispersion=dispersion, offset=-math.log(dispersion))


def log_probabilities(
    outcome: Outcome, targets: Floats, means: Floats, variances: Floats
) -> Floats:
    """log E[p(y | z)] (n,) for outputs z with means and variances (n, D)."""
    certain = not np.any(variances)
    if isinstance(outcome, Counts):
        if certain:
            return np.asarray(outcome.log_likelihood(targets, means))
        nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
        outputs = means + np.sqrt(variances) * nodes[:, None, None]
        logs = outcome.log_likelihood(targets, outputs)
        return np.asarray(logsumexp(logs, axis=0, b=(weights / weights.sum())[:, None]))
    if certain:
        logs = outcome.log_likelihood(targets, means)
        return np.asarray(np.maximum(logs, math.log(LEAST_PROBABILITY)))
    found = expected_probabilities(outcome, means, variances)
    own = np.take_along_axis(found, targets[:, :1].astype(np.intp), axis=1)[:, 0]
    return np.asarray(np.log(np.maximum(own, LEAST_PROBABILITY)))


def aligned(outcome: Outcome, outputs: Array) -> Array:
    """Outputs (K, n, D) of members without what they differ by and classes do not depend on.

    A logistic softmax far below zero is a softmax: a shift that all outputs of a row share changes
    nothing, and members have one by chance. They all get the mean one; means over members stay.
    """
    if not isinstance(outcome, Classes):
        return outputs
    xp = namespace(outputs)
    shifts = xp.mean(outputs, axis=-1, keepdims=True)
    return outputs - shifts + xp.mean(shifts, axis=0, keepdims=True)


def check_calibration(calibration: Calibration, n_groups: int) -> None:
    """Raise a clear error if there is not a positive number for each group."""
    for values in (calibration.slope, calibration.dispersion):
        found = np.asarray(values)
        if found.shape != (n_groups,) or not np.all((found > 0.0) & np.isfinite(found)):
            raise ValueError("the calibration is not one positive number for each group")


def _least(loss: Callable[[float], float], bounds: tuple[float, float]) -> float:
    """argmin over a positive number between bounds, searched in its logarithm."""
    found = minimize_scalar(
        loss,
        bounds=(math.log(bounds[0]), math.log(bounds[1])),
        method="bounded",
        options={"xatol": 0.01},
    )
    return math.exp(float(found.x))
