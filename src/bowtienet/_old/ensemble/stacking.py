"""Section 3.6: how much each member of an ensemble counts.

By its ELBO, softmax(zeta ELBO_k); equally; or by stacking, the weights under which the mixture of
the members' predictive densities is highest on rows that no member has seen. ELBOs compare members
only if they share their hyperparameters; held-out densities compare any, and tell how variances
should be multiplied, row by row (`prediction.levels`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.special import logsumexp, softmax

from bowtienet._old._arrays import bounded_weights
from bowtienet._old.distributions import polya_gamma
from bowtienet._old.prediction.levels import log_gates

Floats = NDArray[np.float64]

PRIOR_ROWS = 5.0
"""Rows that speak for the variances as they are."""
LARGEST_RATIO = 1e6
"""A forecaster that is this wrong is not mended by wider intervals."""
FIRST_LEVELS = {1: (1.0,), 2: (0.4, 2.5), 3: (0.15, 1.0, 5.0)}
"""Where EM starts, by the number of levels."""
HEAVY_LEVELS = (0.5, 2.0, 30.0)
"""Where it starts with three levels if outliers are to be expected."""
NORMAL_MEDIAN, HEAVY_MEDIAN = 0.45493642, 0.54858377
"""Of the squares of a standard normal variable, and of one of t_4;"""
HEAVY_CONSTANT = math.log(0.375)
"""and log t_4(0)."""
GATE_PRECISION = 1.0
"""λ of the coefficients of gates, for standardised columns;"""
CONSTANT_PRECISION = 0.01
"""and of their constant."""
NEVER = -1e6
"""Log density of what a member holds for impossible, or has no finite answer to."""


def elbo_weights(elbos: Floats, tempering: float) -> Floats:
    """softmax(zeta ELBO); a bound that is not finite has no weight."""
    elbos = np.asarray(elbos, dtype=float)
    if not np.isfinite(elbos).any():
        return equal_weights(len(elbos))
    finite = np.isfinite(elbos)
    return np.asarray(softmax(np.where(finite, tempering * np.where(finite, elbos, 0.0), -np.inf)))


def equal_weights(n_members: int) -> Floats:
    """1 / K."""
    return np.full(n_members, 1.0 / n_members)


def stacking_weights(
    log_densities: Floats,
    row_weights: Floats,
    *,
    prior_rows: float = 0.0,
    max_iterations: int = 1000,
    tolerance: float = 1e-6,
) -> Floats:
    """Weights w that maximise Σ_n c_n log Σ_k w_k p_k(y_n) + (prior_rows / K) Σ_k log w_k, by EM.

    Parameters
    ----------
    log_densities : array (n, K)
        log p_k(y_n) of rows that member k was not fitted to.
    row_weights : array (n,)
        How many times each row counts.
    prior_rows : float
        Pull towards equal weights, as strong as this many rows that all members predict alike.
    max_iterations : int
        Most EM steps; each can only raise the objective.
    tolerance : float
        Stop when no weight moves by more.
    """
    n_members = log_densities.shape[1]
    counted = row_weights > 0.0
    log_densities, row_weights = log_densities[counted], row_weights[counted]
    # Densities relative to the best of each row: the factor has no part in the maximum.
    relative = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    total = row_weights.sum() + prior_rows
    weights = equal_weights(n_members)
    for _ in range(max_iterations):
        counts = weights * (relative.T @ (row_weights / (relative @ weights)))
        renewed = (counts + prior_rows / n_members) / total
        moved = np.abs(renewed - weights).max()
        weights = renewed
        if moved <= tolerance:
            break
    return np.asarray(weights / weights.sum())


def variance_ratio(
    errors: Floats,
    variances: Floats,
    row_weights: Floats,
    *,
    prior_rows: float = PRIOR_ROWS,
    heavy: bool = False,
) -> Floats:
    """r = (Σ_n c_n e_n² / v_n + prior_rows) / (Σ_n c_n + prior_rows), for each target.

    Without the prior the r under which the densities N(e_n | 0, r v_n) of rows that the forecasts
    have not seen are highest: above one where a forecaster is too sure of itself. Where tails are
    heavy a few errors would say all of it: r is then such that half of the errors are within the
    quartiles of N(0, r v_n).

    Parameters
    ----------
    errors : array (n, D)
        Targets minus predicted means, of held-out rows.
    variances : array (n, D)
        Predicted variances.
    row_weights : array (n,)
        How many times each row counts.
    prior_rows : float
        Pull towards one, as strong as this many rows that find the variances right.
    heavy : bool
        Whether outliers are to be expected.
    """
    with np.errstate(all="ignore"):
        squares = np.nan_to_num(errors**2 / variances, nan=0.0, posinf=LARGEST_RATIO)
    if heavy:
        found = _weighted_medians(squares, row_weights) / NORMAL_MEDIAN
    else:
        found = (row_weights @ squares + prior_rows) / (row_weights.sum() + prior_rows)
    return np.asarray(np.clip(found, 1.0 / LARGEST_RATIO, LARGEST_RATIO))


def normal_log_densities(errors: Floats, variances: Floats) -> Floats:
    """Σ_d log N(e_d | 0, v_d) over the last axis; very low, and finite, where there is none."""
    with np.errstate(all="ignore"):
        terms = -0.5 * (np.log(2.0 * np.pi * variances) + errors**2 / variances)
    return np.nan_to_num(terms.sum(axis=-1), nan=NEVER, neginf=NEVER, posinf=NEVER)


def heavy_log_densities(errors: Floats, variances: Floats) -> Floats:
    """Σ_d log t_4(e_d) of the quartiles of N(0, v_d), over the last axis."""
    scale = variances * NORMAL_MEDIAN / HEAVY_MEDIAN
    with np.errstate(all="ignore"):
        terms = -0.5 * np.log(scale) - 2.5 * np.log1p(errors**2 / (4.0 * scale)) + HEAVY_CONSTANT
    return np.nan_to_num(terms.sum(axis=-1), nan=NEVER, neginf=NEVER, posinf=NEVER)


def _weighted_medians(values: Floats, row_weights: Floats) -> Floats:
    """Medians (D,) of values (n, D)."""
    order = np.argsort(values, axis=0)
    ends = np.cumsum(row_weights[order], axis=0)
    place = np.argmax(ends >= 0.5 * ends[-1], axis=0)
    return np.take_along_axis(np.take_along_axis(values, order, axis=0), place[None], axis=0)[0]


@dataclass(frozen=True, kw_only=True)
class Forecasts:
    """What R recipes say of n held-out rows with D targets, each in its own warp."""

    errors: Floats
    """Targets minus predicted means (R, n, D)."""
    variances: Floats
    """Predicted variances (R, n, D)."""
    log_slopes: Floats
    """log j (R, n): how fast the scale of a recipe's errors changes with that of the targets."""
    row_weights: Floats
    """How many times each row counts (n,)."""


def stack_with_levels(
    forecasts: Forecasts,
    inputs: Floats,
    n_levels: int,
    *,
    first: Sequence[float] | None = None,
    max_iterations: int = 300,
    tolerance: float = 1e-4,
) -> tuple[Floats, Floats, Floats]:
    """Weights w (R,), levels s (K, D) and gates β (K - 1, 1 + Q, D) of highest held-out density.

    It is Σ_n c_n log Σ_r w_r j_nr Π_d Σ_k π_kd(x_n) N(e_nrd | 0, s_kd v_nrd), less a penalty that
    finds s = 1 right with `PRIOR_ROWS` rows for each level and holds gates near constant,
    ½ λ |β|². EM can only raise it: with shares q_nrkd of recipes and levels,

        w_r  = Σ_n c_n q_nr / Σ_n c_n
        s_kd = (Σ_nr c_n q_nrkd e² / v + n0) / (Σ_nr c_n q_nrkd + n0)
        β_j  = (Λ + Σ_n R_nj ω_nj x~ x~')^{-1} Σ_n (q_nj - R_nj / 2) x~

    where R_nj is the share that reaches stick j, q_nj what stops there, and ω = tanh(A/2) / (2A),
    A = |β_j'x~|, the mean of a Polya-Gamma variable. With one level it is one factor for all
    variances. Recipes that disagree widen their mixture, so levels are lower where each of them has
    a variance that would be right for it alone.

    Parameters
    ----------
    forecasts : Forecasts
        Of rows that no network of theirs was fitted to.
    inputs : array (n, 1 + Q)
        x~: what the gates see of the rows, a one first.
    n_levels : int
        K.
    first : sequence of float, optional
        Levels to start from.
    max_iterations : int
        Most EM steps.
    tolerance : float
        Stop when the objective has risen by no more than this for each unit of row weight.
    """
    counted = forecasts.row_weights > 0.0
    errors, variances = forecasts.errors[:, counted], forecasts.variances[:, counted]
    state = _LevelState(
        squares=_squares(errors, variances),
        constants=_constants(variances),
        slopes=forecasts.log_slopes[:, counted],
        counts=forecasts.row_weights[counted],
        inputs=inputs[counted],
    )
    n_recipes, _, n_targets = errors.shape
    weights = equal_weights(n_recipes)
    scale = np.tile(FIRST_LEVELS[n_levels] if first is None else first, (n_targets, 1)).T
    gates = np.zeros((n_levels - 1, inputs.shape[1], n_targets))
    total, before = float(state.counts.sum()), -np.inf
    for _ in range(max_iterations):
        shares, reached = _shares(state, weights, scale, gates)
        reached -= _penalty(scale, gates)
        if reached - before <= tolerance * total:
            break
        before = reached
        weights = np.asarray(shares.sum(axis=(1, 2))[:, 0] / total)
        wanted = np.einsum("rnkd,rnd->kd", shares, state.squares)
        scale = (wanted + PRIOR_ROWS) / (shares.sum(axis=(0, 1)) + PRIOR_ROWS)
        gates = _renewed_gates(gates, shares.sum(axis=0), state.inputs)
    return weights / weights.sum(), np.clip(scale, 1.0 / LARGEST_RATIO, LARGEST_RATIO), gates


@dataclass(frozen=True, kw_only=True)
class _LevelState:
    """What EM steps read of the held-out rows."""

    squares: Floats  # e² / v (R, n, D)
    constants: Floats  # -½ log 2 pi v (R, n, D)
    slopes: Floats  # (R, n)
    counts: Floats  # (n,)
    inputs: Floats  # (n, 1 + Q)


def _squares(errors: Floats, variances: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.nan_to_num(errors**2 / variances, nan=LARGEST_RATIO, posinf=LARGEST_RATIO)


def _constants(variances: Floats) -> Floats:
    with np.errstate(all="ignore"):
        found = -0.5 * np.log(2.0 * np.pi * variances)
    return np.nan_to_num(found, nan=NEVER, neginf=NEVER, posinf=NEVER)


def _shares(
    state: _LevelState, weights: Floats, scale: Floats, gates: Floats
) -> tuple[Floats, float]:
    """Shares c q (R, n, K, D) of recipes and levels in the rows, and the log density of the rows.

    Given the recipe, the level of each target is drawn for itself.
    """
    log_levels = log_gates(gates, state.inputs).transpose(1, 0, 2)  # (n, K, D)
    densities = -0.5 * (state.squares[:, :, None] / scale + np.log(scale)) + log_levels
    densities += state.constants[:, :, None]
    of_targets = logsumexp(densities, axis=2)  # (R, n, D)
    with np.errstate(divide="ignore"):
        of_recipes = np.log(weights)[:, None] + of_targets.sum(axis=2) + state.slopes
    of_rows = logsumexp(of_recipes, axis=0)
    shares = np.exp(densities - of_targets[:, :, None])
    shares *= (state.counts * np.exp(of_recipes - of_rows))[:, :, None, None]
    return shares, float(state.counts @ of_rows)


def _penalty(scale: Floats, gates: Floats) -> float:
    """-log prior of levels and gates, up to a constant."""
    levels = 0.5 * PRIOR_ROWS * np.sum(np.log(scale) + 1.0 / scale)
    precision = _gate_precision(gates.shape[1])
    return float(levels + 0.5 * np.sum(precision[:, None] * gates**2))


def _gate_precision(size: int) -> Floats:
    return np.array([CONSTANT_PRECISION, *[GATE_PRECISION] * (size - 1)])


def _renewed_gates(gates: Floats, shares: Floats, inputs: Floats) -> Floats:
    """β after a step up, of shares (n, K, D) of the levels in the rows."""
    precision = np.diag(_gate_precision(inputs.shape[1]))
    found = np.empty_like(gates)
    for stick, target in np.ndindex(gates.shape[0], gates.shape[2]):
        reached = shares[:, stick:, target].sum(axis=1)
        bounded = bounded_weights(reached, inputs)
        # Of rows that would drown the precision, shares are as before but count for less.
        less = np.divide(bounded, reached, out=np.ones_like(reached), where=bounded < reached)
        own, reached = less * shares[:, stick, target], bounded
        tilt = np.abs(inputs @ gates[stick, :, target])
        curvature = (reached * polya_gamma.mean(tilt))[:, None] * inputs
        linear = inputs.T @ (own - 0.5 * reached)
        found[stick, :, target] = solve(
            precision + inputs.T @ curvature, linear, assume_a="pos", check_finite=False
        )
    return found


def effective_members(weights: Floats) -> float:
    """1 / Σ w²: K for equal weights, 1 if one member has all of it."""
    return float(1.0 / np.sum(np.asarray(weights) ** 2))
