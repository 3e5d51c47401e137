"""Linear functions of outcomes without a closed form: a ridge chosen by held-out loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from bowtienet._arrays import with_ones
from bowtienet.outcomes import Outcome

Floats = NDArray[np.float64]

PENALTIES = (5e3, 1e3, 200.0, 50.0, 10.0, 2.0, 0.5, 0.1, 0.02)
"""On ½ Σ w² next to the sum of the losses; each fit starts from that of the one before."""


def fit_by_loss(inputs: Floats, targets: Floats, weights: Floats, outcome: Outcome) -> Floats:
    """Layers (F+1, C, K+1) for row weights (F+1, n), with the penalty of least held-out loss."""
    basis = None
    if inputs.shape[1] > len(inputs):
        # Ridge weights are combinations of rows, so rotated columns lose nothing.
        basis, triangle = np.linalg.qr(inputs.T)
        inputs = triangle.T
    design, goals = with_ones(inputs), outcome.working_targets(targets)
    held_out = weights[-1] - weights[:-1]
    layers = np.zeros((len(weights), goals.shape[1], design.shape[1]))
    layers[:, :, 0] = weights @ goals / weights.sum(axis=1, keepdims=True)
    least, path, losses = np.inf, layers[:-1], []
    best, chosen = PENALTIES[0], path
    for penalty in PENALTIES:
        pairs = zip(path, weights[:-1], strict=True)
        path = np.stack([_minimize(*pair, design, targets, outcome, penalty) for pair in pairs])
        outputs = np.einsum("np,fcp->fnc", design, path)
        losses.append(float(np.sum(held_out * outcome.loss(targets, outputs)[0])))
        if losses[-1] < least:
            least, best, chosen = losses[-1], penalty, path
        # The path ends where two penalties gain next to nothing of what all before them have.
        if len(losses) > 2 and losses[-3] - min(losses[-2:]) <= 1e-3 * (losses[0] - least):
            break
    last = _minimize(layers[-1], weights[-1], design, targets, outcome, best)
    layers = np.concatenate([chosen, last[None]])
    if basis is None:
        return layers
    return np.concatenate([layers[:, :, :1], layers[:, :, 1:] @ basis.T], axis=2)


def _minimize(
    start: Floats,
    weights: Floats,
    design: Floats,
    targets: Floats,
    outcome: Outcome,
    penalty: float,
) -> Floats:
    """Layer (C, K+1) at the minimum of Σ c l(y, z) + ½ λ Σ w²."""
    total = weights.sum()

    def objective(flat: Floats) -> tuple[float, Floats]:
        layer = flat.reshape(start.shape)
        shrunk = layer * (penalty * (np.arange(start.shape[1]) > 0))
        # Outputs stand side by side in memory, the fast order for sums over few classes.
        loss, slope = outcome.loss(targets, (layer @ design.T).T)
        gradient = (weights * slope.T) @ design + shrunk
        return (weights @ loss + 0.5 * np.sum(layer * shrunk)) / total, gradient.ravel() / total

    options = {"maxiter": 500, "ftol": 1e-11, "gtol": 1e-6}
    solved = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return solved.x.reshape(start.shape)
