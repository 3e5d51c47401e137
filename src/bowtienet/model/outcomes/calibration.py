"""What outputs are worth on rows that took no part in the fit, and where the fit of counts begins.

Networks that know their rows by heart are too sure of others: their outputs z are multiplied by a
slope a > 0,

    a = argmax Σ_n w_n log p(y_n | a z_n),

which for classes is a temperature. Counts keep their means r e^{z + o} instead, and get the
dispersion r of the highest likelihood. Outputs may be uncertain, z ~ N(m, v): classes are then
asked at a m / sqrt(1 + pi a² v / 8) (MacKay, 1992), and counts have a negative binomial
distribution with the mean and the variance that NB(r, .) has under N(m, v),

    M = r e^{m + v/2 + o},    1/R = (1 + 1/r) e^v - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from bowtienet._arrays import Array, slices, to_numpy
from bowtienet.model.outcomes.counts import DISPERSIONS, Counts
from bowtienet.model.outcomes.outcome import Outcome

Floats = NDArray[np.float64]

SLOPES = (0.05, 20.0)
"""Slopes that are looked at."""
START_DISPERSIONS = (0.1, 1e3)
"""Dispersions that fits of counts may begin with."""
MODERATION = math.pi / 8.0
TOLERANCE = 1e-3
"""Of the logs of slope and dispersion: the likelihood is flat around its best."""
EVALUATIONS = 30
SEARCH_NUMBERS = 2**22
"""Outputs that a slope is chosen by: where there are more, every second row, every third, ..."""
BLOCK_NUMBERS = 2**14
"""Outputs that are worked on at a time: the arrays that their loss needs stay in the cache."""


def scaled_log_likelihood(
    outcome: Outcome,
    targets: Array,
    outputs: Array,
    variances: Array | None,
    row_weights: Array,
) -> tuple[Outcome, float, Floats]:
    """The outcome, slope and log likelihoods (n,) of rows that suit these rows best.

    Outcomes with a noise variance keep slope 1: their scale is found with that noise.

    Parameters
    ----------
    outcome : Outcome
        Likelihood whose parameters are numbers.
    targets : array of shape (n, C)
        Targets of the outcome.
    outputs, variances : array of shape (n, D)
        Means and variances of the outputs; None for outputs that are certain.
    row_weights : array of shape (n,)
        Weights of the rows in the choice; rows with weight 0 get a likelihood all the same.

    Returns
    -------
    outcome : Outcome
        With the dispersion of the rows, if it has one.
    slope : float
        a, what the outputs are to be multiplied by (and their variances by a²).
    log_likelihoods : array of shape (n,)
        log p(y | a z), complete.
    """
    y, z, w = (np.asarray(to_numpy(x), dtype=np.float64) for x in (targets, outputs, row_weights))
    v = None if variances is None else np.asarray(to_numpy(variances), dtype=np.float64)
    if isinstance(outcome, Counts):
        renewed, values = _scaled_counts(outcome, y, z, np.zeros_like(z) if v is None else v, w)
        return renewed, 1.0, values
    slope = 1.0
    if not outcome.has_noise:
        seen = np.flatnonzero(w > 0.0)
        seen = seen[:: -(-seen.size * z.shape[1] // SEARCH_NUMBERS) or 1]
        spread = None if v is None else _singles(v[seen])
        at = partial(_slope_at, outcome, _singles(y[seen]), _singles(z[seen]), spread, w[seen])
        slope = math.exp(_highest(at, 0.0, SLOPES))
        v = None if v is None else slope * slope * v
    found = np.empty(len(z))
    for some in slices(len(z), _block(z)):
        moderated = slope * z[some]
        if v is not None and not outcome.has_noise:
            moderated /= np.sqrt(1.0 + MODERATION * v[some])
        found[some] = outcome.log_likelihood(y[some], moderated)
    return outcome, slope, found


def start_counts(targets: Array, row_weights: Array) -> Counts:
    """Counts for which z = 0 is the mean rate, with a dispersion by moments.

        u = Σ w y / Σ w e,    r = Σ w (u e)² / Σ w ((y - u e)² - u e),    b = log(u / r)

    Rows with little exposure, whose rates y / e are anything, weigh little in it.
    """
    y, logs = np.asarray(to_numpy(targets), dtype=np.float64).T
    w = np.asarray(to_numpy(row_weights), dtype=np.float64)
    # Logs relative to the largest: exposures may be on any scale.
    largest = float(np.max(logs[w > 0.0], initial=-math.inf))
    if not math.isfinite(largest):
        return Counts()
    exposures = np.where(w > 0.0, np.exp(np.minimum(logs - largest, 0.0)), 0.0)
    # Half a count: a table of zeros has a rate as well.
    rate = max(float(w @ y), 0.5 * float(np.mean(w[w > 0.0]))) / float(w @ exposures)
    means = rate * exposures
    beyond = float(w @ ((y - means) ** 2 - means))
    least, most = START_DISPERSIONS
    squares = float(w @ means**2)
    dispersion = float(np.clip(squares / beyond, least, most)) if beyond > 0.0 else most
    return Counts(dispersion=dispersion, offset=math.log(rate) - math.log(dispersion) - largest)


def _slope_at(
    outcome: Outcome,
    targets: NDArray[np.float32],
    outputs: NDArray[np.float32],
    variances: NDArray[np.float32] | None,
    row_weights: Floats,
    log_slope: float,
) -> tuple[float, float]:
    """Σ w log p(y | a z) but for a constant, and its derivative by log a."""
    slope, total, derivative = np.float32(math.exp(log_slope)), 0.0, 0.0
    for some in slices(len(outputs), _block(outputs)):
        scaled = slope * outputs[some]
        shrink: Any = np.float32(1.0)
        if variances is not None:
            shrink = 1.0 / (1.0 + np.float32(MODERATION) * slope * slope * variances[some])
            scaled *= np.sqrt(shrink)
        losses, derivatives = outcome.loss(targets[some], scaled)
        total -= float(row_weights[some] @ losses)
        derivative -= float(row_weights[some] @ np.sum(derivatives * scaled * shrink, axis=1))
    return total, derivative


def _singles(x: Floats) -> NDArray[np.float32]:
    """In single precision, column after column as the losses of classes are fastest."""
    return np.asfortranarray(x, dtype=np.float32)


def _block(outputs: NDArray[Any]) -> int:
    """Rows that are worked on at a time."""
    return max(1, BLOCK_NUMBERS // max(1, outputs.shape[1]))


def _scaled_counts(
    outcome: Counts, targets: Floats, outputs: Floats, variances: Floats, row_weights: Floats
) -> tuple[Counts, Floats]:
    """The outcome with the best dispersion, and log likelihoods (n,) under it."""
    dispersion, offset = float(outcome.dispersion), float(outcome.offset)
    log_rate = offset + math.log(dispersion)
    log_means = outputs[:, 0] + 0.5 * variances[:, 0] + targets[:, 1] + log_rate
    count, spread, seen = targets[:, 0], variances[:, 0], row_weights > 0.0
    at = partial(_dispersion_at, count[seen], log_means[seen], spread[seen], row_weights[seen])
    log_best = _highest(at, math.log(dispersion), DISPERSIONS)
    renewed = replace(outcome, dispersion=math.exp(log_best), offset=log_rate - log_best)
    widened = _widened(math.exp(log_best), spread)
    return renewed, _log_negative_binomial(count, log_means, widened)


def _dispersion_at(
    count: Floats, log_means: Floats, variances: Floats, row_weights: Floats, log_dispersion: float
) -> tuple[float, float]:
    """Σ w log NB(y) with fixed means, and its derivative by log r."""
    r = math.exp(log_dispersion)
    R = _widened(r, variances)
    total = float(row_weights @ _log_negative_binomial(count, log_means, R))
    # (y - M) / (R + M), for means of any size.
    share = 1.0 / (1.0 + np.exp(np.minimum(log_means - np.log(R), 700.0)))
    beyond = share * (count / R + 1.0) - 1.0
    slope = R * (digamma(count + R) - digamma(R) + np.log(share) - beyond)
    return total, float(row_weights @ (slope * R * np.exp(np.minimum(variances, 700.0)) / r))


def _widened(dispersion: float, variances: Floats) -> Floats:
    """R of outputs with variances: 1/R = (1 + 1/r) e^v - 1."""
    v = np.minimum(variances, 700.0)
    return np.asarray(1.0 / (np.expm1(v) + np.exp(v) / dispersion), dtype=np.float64)


def _log_negative_binomial(count: Floats, log_means: Floats, dispersion: Floats) -> Floats:
    """log NB(y) of mean M and dispersion R, x = log M - log R."""
    x = log_means - np.log(dispersion)
    constant = gammaln(count + dispersion) - gammaln(dispersion) - gammaln(count + 1.0)
    return constant - dispersion * np.logaddexp(0.0, x) - count * np.logaddexp(0.0, -x)


def _highest(
    function: Callable[[float], tuple[float, float]], start: float, limits: tuple[float, float]
) -> float:
    """Where a function of a log, given with its derivative, is highest near `start`.

    A root of the derivative is bracketed and then found by secants, with half the slope of an end
    that stays (Illinois). It is `start` itself if the function is no higher elsewhere.
    """
    low, high = math.log(limits[0]), math.log(limits[1])
    at = min(max(start, low), high)
    first, slope = function(at)
    if not math.isfinite(first + slope) or slope == 0.0:
        return at
    best, value, before = at, first, slope
    # The ends of the bracket with their slopes: it rises before the first and falls after the last.
    ends = {slope > 0.0: (at, slope)}
    step = math.copysign(0.25, slope)
    for _ in range(EVALUATIONS):
        if len(ends) < 2:
            at, step = min(max(at + step, low), high), 2.5 * step
        else:
            at = _between(*ends[True], *ends[False])
        found, slope = function(at)
        if found > value:
            best, value = at, found
        done = slope == 0.0 or (len(ends) < 2 and slope * step > 0.0 and at in (low, high))
        moved = min(abs(at - end) for end, _ in ends.values())
        kept = ends.get(slope <= 0.0)
        if kept is not None and slope * before > 0.0:
            ends[slope <= 0.0] = (kept[0], 0.5 * kept[1])
        ends[slope > 0.0], before = (at, slope), slope
        if done or not math.isfinite(found + slope) or (len(ends) == 2 and moved < TOLERANCE):
            break
    return best


def _between(low: float, rise: float, high: float, fall: float) -> float:
    """The secant's root, not within a twentieth of the ends of the bracket."""
    part = min(max(rise / (rise - fall), 0.05), 0.95)
    return low + part * (high - low)
