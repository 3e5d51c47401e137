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
import importlib.metadata
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._validation import positive, suggestion, whole
from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods.standardized import Fitted, standardized
from bowtienet.experiments.methods.torch_network import (
    load_torch,
    quiet_torch,
    widths,
)

STRUCTURES = ("full", "kron", "diag")
"""How much of the curvature is kept: all of it, Kronecker factors of layers, or its diagonal."""


def laplace(
    hidden: Sequence[int],
    *,
    epochs: int = 1000,
    learning_rate: float = 0.01,
    structure: str = "full",
    every: int = 50,
    rounds: int = 10,
) -> Method:
    """A network with a Laplace approximation of all its weights, on standardised data.

    Parameters
    ----------
    hidden : sequence of int
        Units of the hidden layers; none make it a Bayesian linear regression.
    epochs, learning_rate : int, float
        1000 steps of Adam on all rows at 0.01, as in the regression example of laplace-torch.
    structure : {"full", "kron", "diag"}
        Of the curvature; the example takes "full".
    every, rounds : int
        After so many epochs the curvature is computed anew, and the marginal likelihood is
        climbed by so many steps in the precisions and the noise. The library does so after each
        epoch unless told; with a full curvature that takes minutes.

    Returns
    -------
    Method
        Whose forecasts are normal distributions.
    """
    if structure not in STRUCTURES:
        raise ValueError(
            f"structure must name a curvature, got {structure!r}"
            f"{suggestion(str(structure), STRUCTURES)}"
        )
    units, passes = widths(hidden), whole(epochs, "epochs")
    settings = {
        "hessian_structure": structure,
        "n_epochs": passes,
        "optimizer_kwargs": {"lr": positive(learning_rate, "learning_rate")},
        "marglik_frequency": min(whole(every, "every"), passes),
        "n_hypersteps": whole(rounds, "rounds"),
    }

    load_laplace()

    def fit(x: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        with quiet_torch(seed):
            approximation = approximate(x, y, units, settings)

        def components(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with quiet_torch(seed):
                mean, deviation = moments(approximation, new)
            return mean[None], deviation[None]

        return Fitted(components)

    return standardized("Laplace", fit, np.float32)


def approximate(
    inputs: np.ndarray, targets: np.ndarray, hidden: Sequence[int], settings: dict[str, Any]
) -> Any:
    """The library's approximation, trained on inputs (n, columns) and targets (n,)."""
    torch, library = load_torch(), load_laplace()
    rows = _AllRows(inputs=torch.from_numpy(inputs), targets=torch.from_numpy(targets)[:, None])
    with _without_remarks():
        found, *_ = library.marglik_training(
            model=build_network(inputs.shape[1], hidden),
            train_loader=rows,
            likelihood="regression",
            backend=importlib.import_module("laplace.curvature").BackPackGGN,
            **settings,
        )
    return found


def moments(approximation: Any, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (n,) of f at `inputs`, and deviations (n,) of y: the square root of Var[f] + s²."""
    with _without_remarks():
        mean, variance = approximation(load_torch().from_numpy(inputs))
    noise = float(approximation.sigma_noise.detach())
    spread = variance.detach().numpy().reshape(-1).astype(float)
    # Rounding can leave a variance just below zero.
    return mean.detach().numpy().reshape(-1), np.sqrt(np.maximum(spread, 0.0) + noise**2)


def build_network(columns: int, hidden: Sequence[int]) -> Any:
    """Linear layers with ReLU between them, as torch starts them."""
    torch = load_torch()
    layers: list[Any] = []
    for width in (*hidden, 1):
        if layers:
            layers.append(torch.nn.ReLU())
        layers.append(torch.nn.Linear(columns, width, dtype=torch.float32))
        columns = width
    return torch.nn.Sequential(*layers)


def load_laplace() -> Any:
    """laplace-torch, also where a torchvision that cannot be imported is installed beside torch.

    The library needs no torchvision, but torchmetrics, which it imports, takes one that is
    installed for one that works. A build for CUDA beside a torch without it does not.
    """
    if "laplace" in sys.modules:
        return sys.modules["laplace"]
    with warnings.catch_warnings():
        # What its libraries say about their own use of torch.
        warnings.simplefilter("ignore")
        try:
            if _is_broken("torchvision"):
                with hidden_package("torchvision"):
                    return importlib.import_module("laplace")
            return importlib.import_module("laplace")
        except ImportError as error:
            raise ImportError(
                f"the Laplace method needs laplace-torch, which cannot be imported ({error}): "
                "pip install laplace-torch."
            ) from error


@contextmanager
def hidden_package(name: str) -> Iterator[None]:
    """Let a package seem not to be installed: neither a module nor a distribution of this name."""
    find = importlib.metadata.Distribution.__dict__["from_name"]
    loaded = {key: module for key, module in sys.modules.items() if key.split(".")[0] == name}

    def from_name(cls: Any, wanted: str) -> Any:
        if wanted == name:
            raise importlib.metadata.PackageNotFoundError(wanted)
        return find.__get__(None, cls)(wanted)

    for key in loaded:
        del sys.modules[key]
    sys.modules[name] = None  # type: ignore[assignment]  # says: cannot be found
    setattr(importlib.metadata.Distribution, "from_name", classmethod(from_name))  # noqa: B010
    try:
        yield
    finally:
        setattr(importlib.metadata.Distribution, "from_name", find)  # noqa: B010
        del sys.modules[name]
        sys.modules.update(loaded)


@dataclass(frozen=True, kw_only=True)
class _AllRows:
    """What the library asks of a loader, with all rows in one batch."""

    inputs: Any
    targets: Any

    @property
    def dataset(self) -> Any:
        return load_torch().utils.data.TensorDataset(self.inputs, self.targets)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        yield self.inputs, self.targets


def _is_broken(name: str) -> bool:
    """Whether a package is installed and fails when it is imported."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        return error.name != name
    except Exception:
        return True
    return False


@contextmanager
def _without_remarks() -> Iterator[None]:
    """Without warnings of the library about the way it calls torch itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad", UserWarning)
        yield
