"""What the methods on torch share: one flat vector of weights, and quiet state.

    f(x) = W_{L+1} relu(... relu(W_1 x + b_1) ...) + b_{L+1}.

All weights of a network are one vector, layer by layer, each layer's biases in the first row of
its matrix. torch is imported when a method is made, so that no fit is charged with it.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bowtienet._validation import whole

Shapes = tuple[tuple[int, int], ...]
"""(inputs + 1, outputs) of the layers, the first row of a layer being its biases."""


def load_torch() -> Any:
    """torch, or a sentence that says how to get it."""
    try:
        # The first optimiser of a process would import it, which takes as long as a small fit.
        importlib.import_module("torch._dynamo")
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError("this method needs torch: pip install 'bowtienet[torch]'.") from error


@contextmanager
def quiet_torch(seed: int) -> Iterator[Any]:
    """torch on one thread with the random state of `seed`; threads and state return at the end."""
    torch = load_torch()
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield torch
        finally:
            torch.set_num_threads(threads)


def widths(hidden: Sequence[int]) -> tuple[int, ...]:
    """Units of the hidden layers, each a whole number of at least 1."""
    return tuple(whole(width, "hidden") for width in hidden)


def layer_shapes(columns: int, hidden: Sequence[int], outputs: int = 1) -> Shapes:
    """The `Shapes` of a network.

    Examples
    --------
    >>> layer_shapes(8, (50,))
    ((9, 50), (51, 1))
    """
    sizes = (columns, *hidden, outputs)
    return tuple((below + 1, above) for below, above in itertools.pairwise(sizes))


def count(shapes: Shapes) -> int:
    """How many weights and biases there are."""
    return sum(rows * columns for rows, columns in shapes)


def evaluate(weights: Any, shapes: Shapes, inputs: Any) -> Any:
    """f(x) (n, outputs) of flat `weights` at `inputs` (n, columns), both of NumPy or of torch."""
    signal, start = inputs, 0
    for layer, (rows, columns) in enumerate(shapes):
        if layer:
            signal = signal.clip(min=0.0)
        stop = start + rows * columns
        matrix = weights[start:stop].reshape(rows, columns)
        signal, start = signal @ matrix[1:] + matrix[0], stop
    return signal


def draw_start(shapes: Shapes) -> Any:
    """Flat weights from U(-1/√d, 1/√d), where d inputs enter a unit: the usual start of torch."""
    torch = load_torch()
    layers = []
    for rows, columns in shapes:
        uniform = torch.rand(rows * columns, dtype=torch.float32)
        layers.append((2.0 * uniform - 1.0) / (rows - 1) ** 0.5)
    return torch.cat(layers)


def shuffled_batches(inputs: Any, targets: Any, size: int) -> Iterator[tuple[Any, Any]]:
    """One pass over all rows in random order, `size` at a time; the last batch may be smaller."""
    order = load_torch().randperm(len(inputs))
    for chosen in order.split(size):
        yield inputs[chosen], targets[chosen]
