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
        Pull towards equal weights, as strong as so many rows that like all members alike.
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


def effective_members(weights: Floats) -> float:
    """1 / Σ w²: K for equal weights, 1 if one member has all of it."""
    return float(1.0 / np.sum(np.asarray(weights) ** 2))
