"""Checks of what users hand to a picture, with one sentence for what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from bowtienet.estimators.tables import read_table
from bowtienet.evaluation.checks import check_ends, read_numbers
from bowtienet.prediction.mixture import GaussianMixture


def read_weights(weights: Any, name: str) -> list[np.ndarray]:
    """Matrices (D, K + 1) that make a network: each has a column for every unit before it."""
    if getattr(weights, "ndim", 3) < 3 or not isinstance(weights, Sequence | np.ndarray):
        raise ValueError(
            f"{name} must be a sequence of matrices, one for each layer, got "
            f"{_found(weights)}: put a single matrix into a list."
        )
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


def read_vector(
    values: Any, name: str, length: int | None = None, *, each: str = "bar"
) -> np.ndarray:
    """Finite numbers in one row, `length` of them where it is known: one for `each` of what."""
    vector = _finite(values, name)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(
            f"{name} must be one row of numbers, got shape {vector.shape}: give one for each "
            f"{each}."
        )
    if length is not None and vector.size != length:
        raise ValueError(
            f"{name} has {vector.size} numbers, but there are {length} {each}s: give one for each."
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


def read_bands(intervals: Any, count: int, coverages: int) -> np.ndarray:
    """Ends (count, 2, coverages) with the lower ones first; (count, 2) will do for one coverage."""
    ends = _finite(intervals, "intervals")
    shapes = [(count, 2, coverages), *([(count, 2)] if coverages == 1 else [])]
    if ends.shape not in shapes:
        raise ValueError(
            f"intervals have shape {ends.shape}, but {count} predictions and {coverages} "
            f"coverage{'s' * (coverages > 1)} need {shapes[-1]}: lower and upper ends for each."
        )
    ends = ends.reshape(count, 2, coverages)
    check_ends(ends[:, 0], ends[:, 1])
    return ends


def one_target(
    y: Any, distribution: GaussianMixture, target: Any
) -> tuple[np.ndarray, GaussianMixture]:
    """Values (n,) of one of the targets and its predictive distribution."""
    forecast = distribution_of(distribution, target)
    values = read_table(y, "y")
    targets = distribution.means[0].reshape(len(distribution.means[0]), -1).shape
    if values.shape not in (targets, *([targets[:1]] if targets[1] == 1 else [])):
        raise ValueError(
            f"y has shape {values.shape}, but the distribution is for {targets[0]} rows and "
            f"{targets[1]} target{'s' * (targets[1] > 1)}: give one value for each."
        )
    return values.reshape(targets)[:, target], forecast


def distribution_of(distribution: GaussianMixture, target: Any) -> GaussianMixture:
    """Predictive distribution (n,) of one of the targets."""
    if not isinstance(distribution, GaussianMixture):
        raise TypeError(
            "distribution must be a GaussianMixture, such as predict_dist and build_mixture give, "
            f"got {type(distribution).__name__}."
        )
    count = distribution.means.shape[2] if distribution.means.ndim == 3 else 1
    place = chosen(target, count, "target")
    if distribution.means.ndim == 2:
        return distribution
    return GaussianMixture(
        weights=distribution.weights,
        means=distribution.means[..., place],
        deviations=distribution.deviations[..., place],
    )


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


def _found(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{value!r}" if shape is None else f"an array of shape {tuple(shape)}"
