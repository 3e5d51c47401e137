"""The Laplace approximation of a ReLU network by laplace-torch (Daxberger et al. 2021).

    log p(y | θ) + log p(θ) is greatest at θ*,   q(θ) = N(θ | θ*, (J'J / s² + δ)^{-1}),
    p(y | x) = N(y | f(x; θ*), j(x)' Cov[θ] j(x) + s²),

with j the gradient of f at θ*, J its rows at the training inputs, and one prior precision for each
layer's matrix and biases. Weights, precisions δ and noise s are trained in turns by the marginal
likelihood (Immer et al. 2021), which is `marglik_training` of the library: its regression example
does so after it warns that precisions found after the training cannot mend a network that fits
its data too closely.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.metadata import Distribution, PackageNotFoundError
from typing import Any
from unittest import mock

import numpy as np

from benchmarks._old.paper.methods.common import Components, Fit, standardized
from benchmarks._old.paper.methods.torch_network import seeded_torch


def laplace(
    hidden: tuple[int, ...],
    epochs: int = 1000,
    learning_rate: float = 0.01,
    structure: str = "full",
    every: int = 50,
    rounds: int = 10,
) -> Fit:
    """A network with a Laplace approximation of all its weights, on standardised data.

    Epochs, rate and structure of the curvature ("full", "kron" or "diag") are those of the
    library's regression example. After `every` epochs the curvature is computed anew, and the
    marginal likelihood is climbed by `rounds` steps in the precisions and the noise. The library
    does so after each epoch unless told; with a full curvature that takes minutes.
    """
    load_laplace()
    settings = {
        "hessian_structure": structure,
        "n_epochs": epochs,
        "optimizer_kwargs": {"lr": learning_rate},
        "marglik_frequency": min(every, epochs),
        "n_hypersteps": rounds,
    }

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Components:
        with seeded_torch(seed):
            approximation = approximate(x, y, hidden, settings)

        def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with seeded_torch(seed):
                mean, deviation = moments(approximation, new)
            return mean[None], deviation[None]

        return Components(predict)

    return standardized(fit, np.float32)


def approximate(
    inputs: np.ndarray, targets: np.ndarray, hidden: tuple[int, ...], settings: dict[str, Any]
) -> Any:
    """The library's approximation, trained on inputs (n, columns) and targets (n,)."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, about the way it calls torch itself
        rows = torch.utils.data.TensorDataset(
            torch.from_numpy(inputs), torch.from_numpy(targets)[:, None]
        )
        found, *_ = load_laplace().marglik_training(
            model=build_network(inputs.shape[1], hidden),
            # All rows at once, taken as one slice.
            train_loader=torch.utils.data.DataLoader(rows, batch_size=None, sampler=[slice(None)]),
            likelihood="regression",
            backend=importlib.import_module("laplace.curvature").BackPackGGN,
            **settings,
        )
    return found


def moments(approximation: Any, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (n,) of f at `inputs`, and deviations (n,) of y: the square root of Var[f] + s²."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean, variance = approximation(torch.from_numpy(inputs))
    noise = float(approximation.sigma_noise.detach())
    spread = variance.detach().numpy().reshape(-1).astype(float)
    # Rounding can leave a variance just below zero.
    return mean.detach().numpy().reshape(-1), np.sqrt(np.maximum(spread, 0.0) + noise**2)


def build_network(columns: int, hidden: tuple[int, ...]) -> Any:
    """Linear layers with ReLU between them, as torch starts them."""
    import torch

    layers: list[Any] = []
    for width in (*hidden, 1):
        if layers:
            layers.append(torch.nn.ReLU())
        layers.append(torch.nn.Linear(columns, width, dtype=torch.float32))
        columns = width
    return torch.nn.Sequential(*layers)


def load_laplace() -> Any:
    """laplace-torch, as if there were no torchvision.

    It needs none, but torchmetrics, which it imports, takes one that is installed for one that
    works. A build for CUDA beside a torch without it does not.
    """
    if "laplace" in sys.modules:
        return sys.modules["laplace"]
    find = Distribution.from_name

    def from_name(name: str) -> Distribution:
        if name == "torchvision":
            raise PackageNotFoundError(name)
        return find(name)

    loaded = {name: sys.modules[name] for name in list(sys.modules) if "torchvision" in name}
    sys.modules["torchvision"] = None  # type: ignore[assignment]  # says: cannot be found
    try:
        with mock.patch.object(Distribution, "from_name", from_name), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("laplace")
    finally:
        del sys.modules["torchvision"]
        sys.modules.update(loaded)
