"""Rows of a table: inputs, targets and weights, checked once at the door and cut into blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import array_api_compat
import numpy as np

from bowtienet._old._arrays import Array, like, namespace, slices, take, to_numpy
from bowtienet._old.data.parsing import check_finite, check_lengths, parse, refuse_texts


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Inputs (n, D_0), targets (n, D_out) and non-negative weights (n,) of n observations."""

    inputs: Array
    targets: Array
    weights: Array


def build_rows(inputs: Any, targets: Any, weights: Any = None) -> Rows:
    """Check and bring together the rows of a fit.

    Parameters
    ----------
    inputs : array (n, D_0)
        Real, finite numbers.
    targets : array (n,) or (n, D_out)
        Real, finite numbers.
    weights : array (n,), optional
        How many times each row counts; 1 by default. A row of weight 0 is as good as absent.
    """
    inputs = build_inputs(inputs)
    targets = _floats(targets, "targets", inputs)
    targets = targets[:, None] if targets.ndim == 1 else targets
    if targets.shape[1] == 0:
        raise ValueError("targets have no columns: at least one is needed.")
    check_lengths(targets.shape[0], inputs.shape[0], "targets")
    return Rows(inputs=inputs, targets=targets, weights=build_weights(weights, inputs))


def build_weights(
    weights: Any, rows: Array, name: str = "weights", *, allow_zero: bool = False
) -> Array:
    """Check the weights (n,) of `rows`; ones by default. A part of a table may have only zeros."""
    if weights is None:
        return namespace(rows).ones_like(rows[:, 0])
    weights = _floats(weights, name, rows)
    if weights.ndim != 1:
        raise ValueError(f"{name} must have shape (rows,), got {tuple(weights.shape)}.")
    check_lengths(weights.shape[0], rows.shape[0], name)
    xp = namespace(weights)
    if bool(xp.any(weights < 0.0)):
        row = int(np.argmax(to_numpy(weights) < 0.0))
        raise ValueError(
            f"{name} must not be negative, but row {row} (counted from 0) has "
            f"{float(weights[row]):g}: use 0 to leave a row out."
        )
    if not allow_zero and not bool(xp.any(weights > 0.0)):
        raise ValueError(f"{name} are all zero: at least one row must have a positive weight.")
    return weights


def build_inputs(inputs: Any, n_columns: int | None = None, name: str = "inputs") -> Array:
    """Check a table; with `n_columns`, one that must have the columns of an earlier one."""
    inputs = _floats(inputs, name, None)
    if inputs.ndim != 2:
        raise ValueError(
            f"{name} must be a table of shape (rows, columns), got {tuple(inputs.shape)}: "
            "reshape a single column with x[:, None]."
        )
    if inputs.shape[0] == 0:
        raise ValueError(f"{name} have no rows: at least one is needed.")
    if inputs.shape[1] == 0 and n_columns != 0:
        raise ValueError(f"{name} have no columns: at least one is needed.")
    if n_columns is not None and inputs.shape[1] != n_columns:
        raise ValueError(
            f"{name} have {inputs.shape[1]} columns, but {n_columns} are needed: give the columns "
            "of training in their order."
        )
    return inputs


def split(rows: Rows, size: int) -> list[Rows]:
    """Consecutive blocks of at most `size` rows, views where the library has them."""
    return [
        Rows(
            inputs=rows.inputs[part, ...],
            targets=rows.targets[part, ...],
            weights=rows.weights[part],
        )
        for part in slices(rows.inputs.shape[0], size)
    ]


def subsample(rows: Rows, size: int, rng: np.random.Generator) -> Rows:
    """At most `size` rows of positive weight, drawn without replacement."""
    candidates = np.flatnonzero(to_numpy(rows.weights) > 0.0)
    if candidates.size > size:
        candidates = np.sort(rng.choice(candidates, size=size, replace=False))
    return take_rows(rows, candidates)


def take_rows(rows: Rows, index: np.ndarray) -> Rows:
    """Some of the rows, in the given order."""
    return Rows(
        inputs=take(rows.inputs, index),
        targets=take(rows.targets, index),
        weights=take(rows.weights, index),
    )


def _floats(values: Any, name: str, reference: Array | None) -> Array:
    """`values` as finite floats in the library of `reference`, or in its own."""
    parsed = parse(values, name)
    if parsed.array is None:
        refuse_texts(parsed, name)
    if reference is not None and not _matches(parsed.array, reference):
        with np.errstate(over="ignore"):  # refused as not finite
            parsed = replace(parsed, array=like(reference, parsed.array))
    check_finite(parsed, name, allow_nan=False)
    return parsed.array


def _matches(values: Array, reference: Array) -> bool:
    return (
        namespace(values) is namespace(reference)
        and values.dtype == reference.dtype
        and array_api_compat.device(values) == array_api_compat.device(reference)
    )


def concatenate(parts: Sequence[Array]) -> Array:
    """Arrays of consecutive blocks as one."""
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(list(parts), axis=0)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Rows of consecutive blocks together."""
    return Rows(
        inputs=concatenate([part.inputs for part in parts]),
        targets=concatenate([part.targets for part in parts]),
        weights=concatenate([part.weights for part in parts]),
    )
