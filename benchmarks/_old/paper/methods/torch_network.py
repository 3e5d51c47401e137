"""What the methods on torch share: one flat vector of weights, and a contained random state.

    f(x) = W_{L+1} relu(... relu(W_1 x + b_1) ...) + b_{L+1}.

All weights of a network are one vector, layer by layer, each layer's biases in the first row of
its matrix. torch is imported when a method is fitted, and not with this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

Shapes = tuple[tuple[int, int], ...]
"""(inputs + 1, outputs) of the layers, the first row of a layer being its biases."""


@contextmanager
def seeded_torch(seed: int) -> Iterator[Any]:
    """torch with the random state of `seed`, on one thread; both are as before at the end."""
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield torch
        finally:
            torch.set_num_threads(threads)


def layer_shapes(columns: int, hidden: tuple[int, ...], outputs: int = 1) -> Shapes:
    """The `Shapes` of a network."""
    return tuple((below + 1, above) for below, above in pairwise((columns, *hidden, outputs)))


def count(shapes: Shapes) -> int:
    """The number of weights and biases."""
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
    import torch

    layers = []
    for rows, columns in shapes:
        uniform = torch.rand(rows * columns, dtype=torch.float32)
        layers.append((2.0 * uniform - 1.0) / (rows - 1) ** 0.5)
    return torch.cat(layers)


def shuffled_batches(inputs: Any, targets: Any, size: int) -> Iterator[tuple[Any, Any]]:
    """One pass over all rows in random order, `size` at a time; the last batch may be smaller."""
    import torch

    for chosen in torch.randperm(len(inputs)).split(size):
        yield inputs[chosen], targets[chosen]
