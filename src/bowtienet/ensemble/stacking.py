"""Stacking: which recipes, which noise levels, and where, by the density of held-out rows.

For one target, with the error e_rn of recipe r on held-out row n, its noise variance v_r, and the
slope g' of its warp,

    p(y_n) = Σ_r w_r Σ_k π_k(x_n) N(e_rn | 0, v_r s_k) g'_rn,     π(x) = softmax(G' (1, x)),

whose weights w, levels s and gates G rise the likelihood by EM: each recipe and level takes its
share of each row, and the gates take one step of Newton's method with Böhning's bound of their
Hessian, so that no step lowers it. Levels have a prior at one, gates a ridge penalty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from bowtienet._arrays import with_ones

Floats = NDArray[np.float64]

LEVELS = (0.2, 0.8, 3.0)
"""Where the levels of the noise variance start."""
LEVEL_PRIOR = 2.0
"""Rows at level one that the prior of a level counts for."""
GATE_PENALTY = 10.0
"""Ridge penalty of the gates, in rows."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Weights of R recipes, K noise levels and their gates, for one target."""

    weights: Floats
    """w (R,)."""
    levels: Floats
    """s (K,), factors of the noise variance."""
    gates: Floats
    """G (1 + gate inputs, K)."""
    log_density: float
    """Mean log density of the held-out rows, in the user's unit."""


def stack(
    squares: Floats,
    constants: Floats,
    row_weights: Floats,
    gate_inputs: Floats,
    first_levels: tuple[float, ...] = LEVELS,
    max_iter: int = 100,
    tol: float = 1e-5,
) -> Stack:
    """Weights, levels and gates that maximise the held-out density of one target.

    `squares` and `constants` (R, m) are e² / v and log g' - ½ log 2πv of recipes and held-out rows,
    `gate_inputs` (m, G). EM ends after `max_iter` steps, or where one gains less than `tol` a row.
    """
    design = with_ones(gate_inputs)
    n_rows = row_weights.sum()
    share = row_weights / n_rows
    weights = np.full(len(squares), 1.0 / len(squares))
    levels = np.array(first_levels)
    gates = np.zeros((design.shape[1], len(levels)))
    # The step of Newton's method with the bound ½ X'CX of the Hessian of every level.
    bound = 0.5 * (design.T * row_weights) @ design
    ridge = np.full(len(bound), GATE_PENALTY)
    ridge[0] = 1e-9 * n_rows
    inverse = np.linalg.inv(bound + np.diag(ridge))
    before, density = -np.inf, -np.inf
    for _ in range(max_iter):
        log_gates = log_softmax(design @ gates, axis=1)
        logs = squares[:, :, None] * (-0.5 / levels) + log_gates - 0.5 * np.log(levels)
        with np.errstate(divide="ignore"):
            logs += (constants + np.log(weights)[:, None])[:, :, None]
        total = logsumexp(logs, axis=(0, 2))
        density = float(share @ total)
        objective = density - _penalty(levels, gates) / n_rows
        if objective - before < tol:
            break
        before = objective
        taken = np.exp(logs - total[:, None]) * row_weights[:, None]
        weights = taken.sum(axis=(1, 2)) / n_rows
        by_level = taken.sum(axis=0)
        levels = np.einsum("rnk,rn->k", taken, squares) + LEVEL_PRIOR
        levels /= taken.sum(axis=(0, 1)) + LEVEL_PRIOR
        if len(levels) > 1:
            slopes = design.T @ (by_level - row_weights[:, None] * np.exp(log_gates))
            slopes[1:] -= GATE_PENALTY * gates[1:]
            gates = gates + inverse @ slopes
    return Stack(weights=weights, levels=levels, gates=gates, log_density=density)


def stack_likelihoods(
    logs: Floats, row_weights: Floats, max_iter: int = 100, tol: float = 1e-5
) -> Stack:
    """Weights alone, from log likelihoods (R, m) of recipes that have no noise levels."""
    # Errors of one keep the level at one, and log N(1 | 0, 1) is that of logs + ½.
    nothing = np.zeros((len(row_weights), 0))
    return stack(np.ones_like(logs), logs + 0.5, row_weights, nothing, (1.0,), max_iter, tol)


def log_gates_of(stack: Stack, gate_inputs: Floats) -> Floats:
    """log π (n, K)."""
    return log_softmax(stack.gates[0] + gate_inputs @ stack.gates[1:], axis=1)


def _penalty(levels: Floats, gates: Floats) -> float:
    """Minus the logs of the priors of levels and gates."""
    of_levels = LEVEL_PRIOR * np.sum(np.log(levels) + 1.0 / levels)
    return float(0.5 * (of_levels + GATE_PENALTY * np.sum(gates[1:] ** 2)))
