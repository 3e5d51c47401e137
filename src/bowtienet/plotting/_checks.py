"""Checks of what users hand to a picture, with one sentence for what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet._arrays import to_numpy


def read_weights(weights: Any, name: str) -> list[np.ndarray]:
    """Matrices (D, K + 1) that make a network: each has a column for every unit before it."""
    if getattr(weights, "ndim", 3) < 3 or not isinstance(weights, Sequence | np.ndarray):
        raise ValueError(
            f"{name} must be a sequence of matrices, one for each layer, got "
            f"{_found(weights)}: put a single matrix into a list."
        )
    matrices = [_numbers(matrix, f"{name}[{i}]") for i, matrix in enumerate(weights)]
    if not matrices:
        raise ValueError(f"{name} is empty: give one matrix for each layer, the output last.")
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2 or matrix.shape[1] == 0:
            raise ValueError(
                f"{name}[{i}] must have shape (units, inputs + 1) with the bias in column 0, got "
                f"{matrix.shape}."
            )
        below = matrices[i - 1].shape[0] if i > 0 else matrix.shape[1] - 1
        if matrix.shape[1] != below + 1:
            raise ValueError(
                f"{name}[{i}] has {matrix.shape[1]} columns, but {name}[{i - 1}] has {below} rows: "
                f"give {below + 1} columns, the bias and one for each unit of the layer before."
            )
    if matrices[-1].shape[0] == 0:
        raise ValueError(f"{name}[{len(matrices) - 1}] has no rows: give one for each output.")
    return matrices


def read_pruned(after: Any, before: list[np.ndarray]) -> list[np.ndarray]:
    """Matrices of the same shapes as those of `before`."""
    matrices = read_weights(after, "after")
    shapes, needed = [m.shape for m in matrices], [m.shape for m in before]
    if shapes != needed:
        raise ValueError(
            f"after has shapes {shapes}, but before has {needed}: give the pruned matrices at full "
            "size, with zeros where weights went."
        )
    return matrices


def read_vector(values: Any, name: str, length: int | None = None) -> np.ndarray:
    """Finite numbers in one row, `length` of them where it is known."""
    vector = _numbers(values, name)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(
            f"{name} must be one row of numbers, got shape {vector.shape}: give one for each bar."
        )
    if length is not None and vector.size != length:
        raise ValueError(
            f"{name} has {vector.size} numbers, but there are {length} bars: give one for each."
        )
    return vector


def read_names(names: Any, count: int, argument: str, default: str) -> list[str]:
    """`count` names; without `names` the letter `default`, numbered if there are several."""
    if names is None:
        return [default] if count == 1 else [f"{default}{i}" for i in range(count)]
    if isinstance(names, str):
        raise ValueError(f"{argument} must be a list of names, got {names!r}: write [{names!r}].")
    listed = [str(name) for name in names]
    if len(listed) != count:
        raise ValueError(
            f"{argument} has {len(listed)} names, but {count} are needed: give one for each."
        )
    return listed


def _numbers(values: Any, name: str) -> np.ndarray:
    try:
        array = to_numpy(values)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers.") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if not np.all(np.isfinite(array)):
        wrong = int(np.sum(~np.isfinite(array)))
        raise ValueError(
            f"{name} holds {wrong} values that are not finite: replace or drop NaN and infinity."
        )
    return array.astype(np.float64)


def _found(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{value!r}" if shape is None else f"an array of shape {tuple(shape)}"
