"""The penalty of a ReLU network, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bowtienet.networks.networks import Networks, outputs, random_networks
from bowtienet.networks.train import FEW_ROWS, batch_and_steps, minibatches, train
from bowtienet.outcomes import Outcome

Floats = NDArray[np.float64]

PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""On ½ Σ W² next to the sum of the losses, which are ½ (y - f)² of standardised targets."""


def choose_penalty(
    inputs: Floats,
    targets: Floats,
    weights: Floats,
    hidden: Sequence[int],
    outcome: Outcome,
    rng: np.random.Generator,
) -> tuple[float, Floats]:
    """The best of `PENALTIES` by the outcome's loss of held-out rows, and the noise variance.

    Equal rows stay in one fold. The noise variance (D_out,) is the mean squared held-out error less
    the variance between networks; it is meaningless for classes.
    """
    if len(inputs) > 5_000:  # more of them choose no better
        rows = np.sort(rng.choice(len(inputs), size=5_000, replace=False))
        inputs, targets, weights = inputs[rows], targets[rows], weights[rows]
    n_folds = 10 if len(inputs) < FEW_ROWS else 5
    _, same = np.unique(np.column_stack([inputs, targets]), axis=0, return_inverse=True)
    fold = (rng.permutation(same.max() + 1) % n_folds)[same.ravel()]
    # Two networks of each penalty and fold: how far they differ is not noise.
    each = np.tile(np.repeat(np.arange(n_folds), 2), len(PENALTIES))
    penalties = np.repeat(PENALTIES, 2 * n_folds)
    networks = fit_networks(inputs, targets, weights, hidden, penalties, outcome, rng, fold, each)
    predicted = outputs(networks, inputs).astype(np.float64)
    predicted = predicted.reshape(len(PENALTIES), n_folds, 2, len(inputs), -1)
    # Of each row what the networks without its fold say: (n, penalties, twins, D_out).
    held_out = predicted[:, fold, :, np.arange(len(inputs))]
    share = weights / weights.sum()
    losses = outcome.loss(targets[:, None, None, :], held_out)[0]
    best = int(np.argmin(np.einsum("n,npt->p", share, losses)))
    goals = outcome.working_targets(targets)
    errors = share @ np.mean((held_out[:, best] - goals[:, None]) ** 2, axis=1)
    spread = share @ np.var(held_out[:, best], axis=1, ddof=1)
    return PENALTIES[best], np.maximum(errors - spread, 0.0)


def fit_networks(
    inputs: Floats,
    targets: Floats,
    weights: Floats,
    hidden: Sequence[int],
    penalties: Floats,
    outcome: Outcome,
    rng: np.random.Generator,
    folds: NDArray[np.integer] | None = None,
    held_out: NDArray[np.integer] | None = None,
) -> Networks:
    """A network for each penalty (R,), without the fold that it holds out."""
    n_outputs = outcome.working_targets(targets[:1]).shape[1]
    start = random_networks(rng, inputs, hidden, n_outputs, len(penalties))
    size, n_steps = batch_and_steps(len(inputs))
    total = np.full(len(penalties), weights.sum())
    if folds is not None and held_out is not None:
        total = total - np.bincount(folds, weights, held_out.max() + 1)[held_out]
    return train(
        start,
        minibatches(inputs, targets, weights, size, rng, folds, held_out),
        outcome=outcome,
        penalties=penalties,
        total_weights=np.where(total > 0.0, total, 1.0),
        n_steps=n_steps,
    )
