"""Plain networks as good as a user's search makes them: piecewise linear features, tuned, five.

Features are the standardised columns or their piecewise linear components (those of this library),
the loss is that of deep ensembles, and AdamW stops by a tenth of the rows:

    p(y | x) = Σ_k N(y | m_k(x), d_k(x)²) / K.

One tenth of the training rows chooses bins, widths, rate and weight decay by its NLL. The networks
of the ensemble then have starts and held-out tenths of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks._old.paper.methods.common import Components, Fit, standardized
from benchmarks._old.paper.methods.deep_ensemble import deviations, loss
from benchmarks._old.paper.methods.torch_network import (
    draw_start,
    evaluate,
    layer_shapes,
    seeded_torch,
    shuffled_batches,
)
from bowtienet._old.representation.pieces import Pieces, components, fit_pieces

_STEPS = 16
"""Batches of an epoch, unless they would be smaller than the least size or larger than the most."""
_SMALLEST, _LARGEST = 32, 512


class Choice(NamedTuple):
    """What is chosen by held-out rows."""

    bins: int
    """Of a column; 0 for the standardised column itself."""
    widths: tuple[int, ...]
    learning_rate: float
    weight_decay: float


GRID = tuple(
    Choice(*each) for each in product((0, 8), ((64,), (128, 128)), (0.003, 0.01), (0.0, 0.1))
)


def mlp_piecewise(
    hidden: tuple[int, ...] = (),
    grid: Sequence[Choice] = GRID,
    networks: int = 5,
    epochs: int = 500,
    patience: int = 50,
) -> Fit:
    """An ensemble of tuned networks; widths are of the grid, and not of the experiment."""

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        rng = np.random.default_rng(seed)
        pieces = {bins: pieces_of(x, bins) for bins in {choice.bins for choice in grid}}
        with seeded_torch(seed):

            def trained(choice: Choice, held_out: np.ndarray) -> tuple[float, np.ndarray]:
                inputs = features(x, pieces[choice.bins])
                return train(inputs, y, held_out, choice, epochs, patience)

            held_out = tenth(len(y), rng)
            best = min(grid, key=lambda choice: trained(choice, held_out)[0])
            weights = [trained(best, tenth(len(y), rng))[1] for _ in range(networks)]
        shapes = layer_shapes(features(x[:1], pieces[best.bins]).shape[1], best.widths, outputs=2)

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            inputs = features(new, pieces[best.bins])
            outputs = np.stack([evaluate(w, shapes, inputs) for w in weights])
            return outputs[..., 0], deviations(outputs)

        chosen = f"{best.bins or 'no'} bins, widths {'-'.join(map(str, best.widths))}"
        return Components(predict, f"{chosen} chosen")

    return standardized(fit, np.float32)


def pieces_of(x: np.ndarray, bins: int) -> Pieces | None:
    """Bins of standardised columns (n, columns), or None for the columns themselves."""
    return fit_pieces(x.astype(float), np.ones(len(x)), bins) if bins else None


def features(x: np.ndarray, pieces: Pieces | None) -> np.ndarray:
    """What a network sees of standardised rows."""
    return x if pieces is None else components(pieces, x.astype(float)).astype(x.dtype)


def tenth(n: int, rng: np.random.Generator) -> np.ndarray:
    """Which rows (n,) are held out: a tenth, and at least one."""
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.choice(n, max(n // 10, 1), replace=False)] = True
    return chosen


def train(
    x: np.ndarray, y: np.ndarray, held_out: np.ndarray, choice: Choice, epochs: int, patience: int
) -> tuple[float, np.ndarray]:
    """Least loss of the held-out rows, and the flat weights that have it."""
    import torch

    shapes = layer_shapes(x.shape[1], choice.widths, outputs=2)
    inputs, targets, new, new_targets = (
        torch.from_numpy(each) for each in (x[~held_out], y[~held_out], x[held_out], y[held_out])
    )
    size = int(np.clip(len(inputs) // _STEPS, _SMALLEST, _LARGEST))
    weights = draw_start(shapes).requires_grad_()
    adam = torch.optim.AdamW(
        [weights], lr=choice.learning_rate, weight_decay=choice.weight_decay, fused=True
    )
    best: tuple[float, Any] = (np.inf, weights.detach().clone())
    since = 0
    for _ in range(epochs):
        for rows, values in shuffled_batches(inputs, targets, size):
            adam.zero_grad()
            loss(evaluate(weights, shapes, rows), values).backward()
            adam.step()
        with torch.no_grad():
            found = float(loss(evaluate(weights, shapes, new), new_targets))
        since += 1
        if found < best[0]:
            best, since = (found, weights.detach().clone()), 0
        if since == patience:
            break
    return best[0], best[1].numpy()
