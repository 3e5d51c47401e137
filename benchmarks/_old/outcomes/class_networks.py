"""Neural networks for classes on torch: deep ensembles and a Laplace approximation.

    p(y | x) = softmax(f(x; θ))_y,   loss = mean over rows of -log p(y | x).

A network is trained by Adam, and its weights are those of the epoch with the lowest loss on a
tenth of the rows, which are left out of the training. Features are standardised before.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.model_selection import train_test_split

from benchmarks._old.paper.methods.laplace import load_laplace
from benchmarks._old.paper.methods.torch_network import (
    Shapes,
    draw_start,
    evaluate,
    layer_shapes,
    seeded_torch,
    shuffled_batches,
)

HIDDEN = (64, 64)
NETWORKS = 5
BATCH_SIZE, LEARNING_RATE = 64, 0.003
MOST_EPOCHS, PATIENCE = 200, 15
HELD_OUT = 0.1


def deep_ensemble_probabilities(
    train: np.ndarray, codes: np.ndarray, test: np.ndarray, seed: int
) -> np.ndarray:
    """Mean over networks of their probabilities (n, c); codes (n,) are 0 to c - 1."""
    shapes = layer_shapes(train.shape[1], HIDDEN, outputs=int(codes.max()) + 1)
    with seeded_torch(seed):
        weights = [
            train_network(train, codes, shapes, seed * NETWORKS + place).numpy()
            for place in range(NETWORKS)
        ]
    logits = np.stack([evaluate(w, shapes, test.astype(np.float32)) for w in weights])
    return np.asarray(softmax(logits.astype(float), axis=-1).mean(axis=0))


def laplace_probabilities(
    train: np.ndarray, codes: np.ndarray, test: np.ndarray, seed: int
) -> np.ndarray:
    """Probabilities (n, c) of one network by laplace-torch, as its page for classifiers has it.

    The posterior is that of the last layer with a Kronecker-factored curvature over all rows; the
    prior precision is that of the greatest marginal likelihood, and logits are averaged over the
    posterior by the probit approximation.
    """
    laplace = load_laplace()
    shapes = layer_shapes(train.shape[1], HIDDEN, outputs=int(codes.max()) + 1)
    with seeded_torch(seed) as torch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, about the way it calls torch itself
        network = as_module(train_network(train, codes, shapes, seed), shapes)
        rows = torch.utils.data.TensorDataset(
            torch.from_numpy(train.astype(np.float32)), torch.from_numpy(codes)
        )
        posterior = laplace.Laplace(
            network,
            "classification",
            subset_of_weights="last_layer",
            hessian_structure="kron",
            backend=importlib.import_module("laplace.curvature").BackPackGGN,
        )
        posterior.fit(torch.utils.data.DataLoader(rows, batch_size=256))
        posterior.optimize_prior_precision(method="marglik")
        found = posterior(torch.from_numpy(test.astype(np.float32)), link_approx="probit")
    return found.detach().numpy().astype(float)


def train_network(features: np.ndarray, codes: np.ndarray, shapes: Shapes, seed: int) -> Any:
    """Flat weights at the epoch with the lowest loss on held-out rows."""
    import torch

    counts = np.bincount(codes)
    stratify = codes if counts.min() > 1 and len(codes) * HELD_OUT >= len(counts) else None
    parts = train_test_split(
        *(features.astype(np.float32), codes),
        test_size=HELD_OUT,
        stratify=stratify,
        random_state=seed,
    )
    inputs, held_out, labels, held_out_labels = map(torch.from_numpy, parts)
    cross_entropy = torch.nn.functional.cross_entropy
    weights = draw_start(shapes).requires_grad_()
    adam = torch.optim.Adam([weights], lr=LEARNING_RATE, fused=True)
    best, lowest, waited = weights.detach().clone(), np.inf, 0
    for _ in range(MOST_EPOCHS):
        for rows, values in shuffled_batches(inputs, labels, BATCH_SIZE):
            adam.zero_grad()
            cross_entropy(evaluate(weights, shapes, rows), values).backward()
            adam.step()
        with torch.no_grad():
            loss = float(cross_entropy(evaluate(weights, shapes, held_out), held_out_labels))
        if loss < lowest:
            best, lowest, waited = weights.detach().clone(), loss, 0
        else:
            waited += 1
        if waited == PATIENCE:
            break
    return best


def as_module(weights: Any, shapes: Shapes) -> Any:
    """The network of flat weights as layers of torch."""
    import torch

    layers: list[Any] = []
    for rows, columns in shapes:
        matrix, weights = (
            weights[: rows * columns].reshape(rows, columns),
            weights[rows * columns :],
        )
        if layers:
            layers.append(torch.nn.ReLU())
        layer = torch.nn.Linear(rows - 1, columns)
        with torch.no_grad():
            layer.weight.copy_(matrix[1:].T)
            layer.bias.copy_(matrix[0])
        layers.append(layer)
    return torch.nn.Sequential(*layers)
