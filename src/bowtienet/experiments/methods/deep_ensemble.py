"""Deep ensembles (Lakshminarayanan et al. 2017): networks that say their own mean and variance.

    (m, r) = f(x),   d² = log(1 + e^r) + 10^{-6},
    loss = mean over rows of ½ log d² + (y - m)² / (2 d²),
    p(y | x) = Σ_k N(y | m_k(x), d_k(x)²) / K.

Networks differ by their random start and by the order of the rows. With `adversarial`, every step
adds the loss at x + ε · range · sign(dloss/dx), the fast gradient sign of their paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet._validation import non_negative, positive, whole
from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.standardized import Fitted, standardized
from bowtienet.experiments.methods.torch_network import (
    Shapes,
    draw_start,
    evaluate,
    layer_shapes,
    load_torch,
    quiet_torch,
    shuffled_batches,
    widths,
)

_LEAST_VARIANCE = 1e-6
"""Added to the variance of standardised targets, as in their paper, for a loss that is finite."""


def deep_ensemble(
    hidden: Sequence[int],
    *,
    networks: int = 5,
    epochs: int = 40,
    batch_size: int = 100,
    learning_rate: float = 0.01,
    adversarial: float = 0.0,
) -> Method:
    """An ensemble of networks with a head for the mean and one for the variance.

    Parameters
    ----------
    hidden : sequence of int
        Units of the hidden layers.
    networks, epochs, batch_size, learning_rate : int, int, int, float
        Five networks, and 40 passes of Adam over batches of 100 rows, as Lakshminarayanan et al.
        have them on most of these tables with 50 hidden units. Their rate of 0.1 gave wild
        predictions here; 0.01 comes near the scores that they publish.
    adversarial : float
        ε, the step of adversarial rows in ranges of each input; their paper takes 0.01. It is an
        optional part of their method, and 0, none, is the default.

    Returns
    -------
    Method
        Whose forecasts are mixtures of `networks` normal distributions of equal weight.
    """
    units, members, passes = widths(hidden), whole(networks, "networks"), whole(epochs, "epochs")
    size, rate = whole(batch_size, "batch_size"), positive(learning_rate, "learning_rate")
    step = non_negative(adversarial, "adversarial")

    load_torch()

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        shapes = layer_shapes(x.shape[1], units, outputs=2)
        with quiet_torch(seed) as torch:
            rows, targets = torch.from_numpy(x), torch.from_numpy(y)
            trained = [
                train(rows, targets, shapes, passes, size, rate, step) for _ in range(members)
            ]
            weights = [vector.numpy() for vector in trained]

        def components(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            outputs = np.stack([evaluate(w, shapes, new) for w in weights])
            variances = np.logaddexp(0.0, outputs[..., 1].astype(float)) + _LEAST_VARIANCE
            return outputs[..., 0], np.sqrt(variances)

        return Fitted(components)

    return standardized("Deep ensemble", fit, np.float32)


def train(
    inputs: Any,
    targets: Any,
    shapes: Shapes,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    adversarial: float,
) -> Any:
    """Flat weights of one network after `epochs` passes of Adam, from the random state of torch."""
    weights = draw_start(shapes).requires_grad_()
    adam = load_torch().optim.Adam([weights], lr=learning_rate, fused=True)
    steps = adversarial * (inputs.amax(dim=0) - inputs.amin(dim=0))
    for _ in range(epochs):
        for rows, values in shuffled_batches(inputs, targets, batch_size):
            cost = loss(evaluate(weights, shapes, rows), values)
            if adversarial:
                moved = worsen(weights, shapes, rows, values, steps)
                cost = cost + loss(evaluate(weights, shapes, moved), values)
            adam.zero_grad()
            cost.backward()
            adam.step()
    return weights.detach()


def loss(outputs: Any, targets: Any) -> Any:
    """Mean over rows of ½ log d² + (y - m)² / (2 d²) for outputs (n, 2), without its constant."""
    variances = load_torch().nn.functional.softplus(outputs[:, 1]) + _LEAST_VARIANCE
    errors = targets - outputs[:, 0]
    return 0.5 * (variances.log() + errors.square() / variances).mean()


def worsen(weights: Any, shapes: Shapes, rows: Any, targets: Any, steps: Any) -> Any:
    """x + steps · sign(dloss/dx): rows (n, columns) a little further where the loss grows."""
    start = rows.clone().requires_grad_()
    cost = loss(evaluate(weights.detach(), shapes, start), targets)
    (gradient,) = load_torch().autograd.grad(cost, start)
    return rows + steps * gradient.sign()
