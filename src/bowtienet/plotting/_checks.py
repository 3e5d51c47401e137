"""Checks of the numbers and names that users hand to a plot."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from bowtienet.evaluation.checks import check_ends, read_numbers


def read_weights(weights: Any, name: str) -> list[np.ndarray]:
    """Matrices (D, K + 1) that make a network: each has a column for every unit before it."""
    if getattr(weights, "ndim", 3) < 3 or not isinstance(weights, Sequence | np.ndarray):
        raise ValueError(f"{name} must be a sequence of matrices, one for each layer.")
    matrices = [_finite(matrix, f"{name}[{i}]") for i, matrix in enumerate(weights)]
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


def read_vector(
    values: Any, name: str, length: int | None = None, *, each: str = "bar"
) -> np.ndarray:
    """Finite numbers (n,), `length` of them where it is known: one for `each` of what."""
    vector = _finite(values, name)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"{name} must have shape ({each}s,), got {vector.shape}.")
    check_length(vector, name, length, each)
    return vector


def check_length(values: np.ndarray, name: str, length: int | None, each: str) -> None:
    """Refuse more or fewer values than `length`."""
    if length is not None and values.size != length:
        raise ValueError(
            f"{name} has {values.size} values, but there are {length} {each}s: give one for each."
        )


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


def read_bands(intervals: Any, count: int, coverages: int) -> np.ndarray:
    """Ends (count, 2, coverages) with the lower ones first; (count, 2) will do for one coverage."""
    ends = _finite(intervals, "intervals")
    shapes = [(count, 2, coverages), *([(count, 2)] if coverages == 1 else [])]
    if ends.shape not in shapes:
        raise ValueError(f"intervals must have shape {shapes[-1]}, got {ends.shape}.")
    ends = ends.reshape(count, 2, coverages)
    check_ends(ends[:, 0], ends[:, 1])
    return ends


def chosen(value: Any, count: int, name: str) -> int:
    """`value` if it is a whole number from 0 to `count` - 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value not in range(count):
        raise ValueError(f"{name} must be a whole number from 0 to {count - 1}, got {value!r}.")
    return int(value)


def _finite(values: Any, name: str) -> np.ndarray:
    array = np.array(read_numbers(values, name))
    wrong = int(np.sum(~np.isfinite(array)))
    if wrong:
        raise ValueError(
            f"{name} holds {wrong} values that are not finite: replace or drop NaN and infinity."
        )
    return array
