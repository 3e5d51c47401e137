"""Section 3.6: how much each member of an ensemble counts.

By its ELBO, softmax(zeta ELBO_k); equally; or by stacking, the weights under which the mixture of
the members' predictive densities is highest on rows that no member has seen. ELBOs compare members
only if they share their hyperparameters; held-out densities compare any.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Floats = NDArray[np.float64]

PRIOR_ROWS = 5.0
"""Rows that speak for the variances as they are."""
LARGEST_RATIO = 1e6
"""A forecaster that is this wrong is not mended by wider intervals."""
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
    errors: Floats, variances: Floats, row_weights: Floats, *, prior_rows: float = PRIOR_ROWS
) -> Floats:
    """r = (Σ_n c_n e_n² / v_n + prior_rows) / (Σ_n c_n + prior_rows), for each target.

    Without the prior the r under which the densities N(e_n | 0, r v_n) of rows that the forecasts
    have not seen are highest: above one where a forecaster is too sure of itself.

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
    """
    with np.errstate(all="ignore"):
        squares = np.nan_to_num(errors**2 / variances, nan=0.0, posinf=LARGEST_RATIO)
    found = (row_weights @ squares + prior_rows) / (row_weights.sum() + prior_rows)
    return np.asarray(np.clip(found, 1.0 / LARGEST_RATIO, LARGEST_RATIO))


def normal_log_densities(errors: Floats, variances: Floats) -> Floats:
    """Σ_d log N(e_d | 0, v_d) over the last axis; very low, and finite, where there is none."""
    with np.errstate(all="ignore"):
        terms = -0.5 * (np.log(2.0 * np.pi * variances) + errors**2 / variances)
    return np.nan_to_num(terms.sum(axis=-1), nan=NEVER, neginf=NEVER, posinf=NEVER)


def stack_forecasts(
    errors: Floats,
    variances: Floats,
    row_weights: Floats,
    *,
    log_slopes: Floats | None = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-6,
) -> tuple[Floats, Floats]:
    """Weights w (K,) and a factor s (D,) that maximise the held-out log density.

    It is Σ_n c_n log Σ_k w_k j_nk N(e_nk | 0, s v_nk).

    EM can only raise it: with shares γ_nk ∝ w_k j_nk N(e_nk | 0, s v_nk) of the members in
    row n, w_k = Σ_n c_n γ_nk / Σ_n c_n and s = (Σ_nk c_n γ_nk e_nk² / v_nk + n) / (Σ_n c_n + n),
    each target for itself, with n = PRIOR_ROWS rows that find s = 1 right. Members that disagree
    widen their mixture, so s is below one where each of them has a variance that would be right
    for it alone.

    Parameters
    ----------
    errors, variances : array (K, n, D)
        Of the forecasts of K members for rows that they were not fitted to.
    row_weights : array (n,)
        How many times each row counts.
    log_slopes : array (K, n), optional
        log j_nk: how fast the scale of the member's errors changes with that of the targets, where
        members were fitted to warped targets.
    max_iterations : int
        Most EM steps.
    tolerance : float
        Stop when no weight moves by more, and no factor by more than that share of itself.
    """
    counted = row_weights > 0.0
    errors, variances, row_weights = errors[:, counted], variances[:, counted], row_weights[counted]
    with np.errstate(all="ignore"):
        squares = np.nan_to_num(errors**2 / variances, nan=0.0, posinf=LARGEST_RATIO)
    jacobians = np.zeros(errors.shape[:2]) if log_slopes is None else log_slopes[:, counted]
    total = row_weights.sum()
    weights, factor = equal_weights(len(errors)), np.ones(errors.shape[2])
    for _ in range(max_iterations):
        logs = normal_log_densities(errors, factor * variances) + jacobians
        shares = weights[:, None] * np.exp(logs - logs.max(axis=0))
        shares *= row_weights / shares.sum(axis=0)
        renewed = shares.sum(axis=1) / total
        wanted = np.einsum("kn,knd->d", shares, squares)
        widened = (wanted + PRIOR_ROWS) / (total + PRIOR_ROWS)
        moved = max(np.abs(renewed - weights).max(), np.abs(widened / factor - 1.0).max())
        weights, factor = renewed, widened
        if moved <= tolerance:
            break
    return weights / weights.sum(), factor


def effective_members(weights: Floats) -> float:
    """1 / Σ w²: K for equal weights, 1 if one member has all of it."""
    return float(1.0 / np.sum(np.asarray(weights) ** 2))
