"""One form for all tables that say the same, so that a fit does not depend on how they say it.

Rows of weight zero go, rows that are equal become one with the sum of their weights, and rows and
columns are put into an order that follows from their values. Shuffling rows or columns, repeating
a row or giving it weight 2, leaving a row out or giving it weight 0: each pair then leads to the
same fit, random starts and held-out folds included.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import like, take, to_numpy
from bowtienet._old.data.rows import Rows, take_rows

Indices = NDArray[np.intp]

SIGNIFICANT = 9
"""Decimals to which columns' statistics are compared: sums over rows differ by rounding."""


def canonical_rows(rows: Rows) -> Rows:
    """The rows in the order of their targets (then inputs), each once and with positive weight."""
    inputs, targets = to_numpy(rows.inputs), to_numpy(rows.targets)
    weights = to_numpy(rows.weights)
    present = np.flatnonzero(weights > 0.0)
    order = present[_row_order(inputs[present], targets[present], weights[present])]
    starts = _first_of_equals(inputs, targets, order)
    counts = np.add.reduceat(weights[order].astype(np.float64), starts)
    return replace(take_rows(rows, order[starts]), weights=like(rows.weights, counts))


def column_order(rows: Rows) -> Indices:
    """An order of the input columns that follows from their values beside those of the targets."""
    inputs, targets = to_numpy(rows.inputs), to_numpy(rows.targets)
    share = to_numpy(rows.weights) / to_numpy(rows.weights).sum()
    total = (targets * np.arange(1.0, targets.shape[1] + 1.0)).sum(axis=1)
    keys = [(share * factor) @ inputs for factor in (total**2, total)]
    keys.append(share @ inputs**3)
    return np.lexsort([np.round(key, SIGNIFICANT) for key in keys])


def take_columns(rows: Rows, order: Indices) -> Rows:
    """The rows with their input columns in the given order."""
    return replace(rows, inputs=take(rows.inputs, order, axis=1))


def _row_order(
    inputs: NDArray[np.floating], targets: NDArray[np.floating], weights: NDArray[np.floating]
) -> Indices:
    """By the first target; only where it has ties by the other targets and the sorted inputs.

    Sorting each row's inputs first makes the order the same for every order of the columns; equal
    rows follow their weights, so that these are summed in one order too.
    """
    order = np.argsort(targets[:, 0], kind="stable")
    sorted_targets = targets[order, 0]
    tied = np.zeros(len(order), dtype=bool)
    equal = sorted_targets[1:] == sorted_targets[:-1]
    tied[1:] |= equal
    tied[:-1] |= equal
    if tied.any():
        among = order[tied]
        sorted_inputs = np.sort(inputs[among], axis=1)
        keys = [weights[among], *inputs[among].T, *sorted_inputs.T[::-1], *targets[among].T[::-1]]
        order[tied] = among[np.lexsort(keys)]
    return order


def _first_of_equals(
    inputs: NDArray[np.floating], targets: NDArray[np.floating], order: Indices
) -> Indices:
    """Positions in `order` at which a row differs from the one before it."""
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any(targets[order[1:]] != targets[order[:-1]], axis=1)
    same = np.flatnonzero(~new)
    new[same] = np.any(inputs[order[same]] != inputs[order[same - 1]], axis=1)
    return np.flatnonzero(new)
