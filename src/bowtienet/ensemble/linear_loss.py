"""Linear functions of outcomes without a closed form: a ridge chosen by held-out loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from bowtienet._arrays import with_ones
from bowtienet.outcomes import Outcome

Floats = NDArray[np.float64]

PENALTIES = (1e4, 3e3, 1e3, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
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
        path = np.stack(
            [
                _minimize(layer, design, targets, each, outcome, penalty)
                for layer, each in zip(path, weights[:-1], strict=True)
            ]
        )
        outputs = np.einsum("np,fcp->fnc", design, path)
        losses.append(float(np.sum(held_out * outcome.loss(targets, outputs)[0])))
        if losses[-1] < least:
            least, best, chosen = losses[-1], penalty, path
        if len(losses) > 2 and min(losses[-2:]) > least:
            break
    last = _minimize(layers[-1], design, targets, weights[-1], outcome, best)
    layers = np.concatenate([chosen, last[None]])
    if basis is None:
        return layers
    return np.concatenate([layers[:, :, :1], layers[:, :, 1:] @ basis.T], axis=2)


def _minimize(
    start: Floats,
    design: Floats,
    targets: Floats,
    weights: Floats,
    outcome: Outcome,
    penalty: float,
) -> Floats:
    """Layer (C, K+1) at the minimum of Σ c l(y, z) + ½ λ Σ w²."""
    total = weights.sum()

    def objective(flat: Floats) -> tuple[float, Floats]:
        layer = flat.reshape(start.shape)
        shrunk = layer * (penalty * (np.arange(start.shape[1]) > 0))
        loss, slope = outcome.loss(targets, design @ layer.T)
        gradient = (weights[:, None] * slope).T @ design + shrunk
        return (weights @ loss + 0.5 * np.sum(layer * shrunk)) / total, gradient.ravel() / total

    options = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-7}
    solved = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return solved.x.reshape(start.shape)
