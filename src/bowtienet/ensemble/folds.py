"""Which rows are held out together, by a hash of their values.

Rows are ordered by the hash, within classes, and cut into equal parts: the order of a table does
not matter, and equal rows are held out together. Of many rows a fifth is enough to hold out, so
that every network sees 96 % of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import hash_rows
from bowtienet.networks.train import FEW_ROWS


def assign_folds(
    inputs: NDArray[np.floating],
    targets: NDArray[np.floating],
    classes: NDArray[np.integer] | None = None,
) -> tuple[NDArray[np.intp], int]:
    """Fold of every row, -1 for those that are never held out, and how many folds there are.

    Values (n, E) and (n, C) are hashed; every fold has its share of each class.
    """
    n = len(inputs)
    n_folds = 10 if n < FEW_ROWS else 5
    # A fifth of many rows is enough to hold out.
    parts = 5 * n_folds if n > 10_000 else min(n_folds, n)
    hashes = hash_rows(np.column_stack([inputs, targets]))
    fold = np.empty(n, dtype=np.intp)
    if classes is None:
        classes = np.zeros(n, dtype=np.intp)
    shift = 0
    for label in np.unique(classes):
        rows = np.flatnonzero(classes == label)
        # Small classes do not all begin in the first fold.
        fold[rows] = (_cut(hashes[rows], parts) + shift) % parts
        shift += len(rows)
    fold[fold >= n_folds] = -1
    return fold, min(n_folds, parts)


def _cut(hashes: NDArray[np.uint64], parts: int) -> NDArray[np.intp]:
    """Part of each row: equal rows together, unless they alone are half a part."""
    n = len(hashes)
    order = np.argsort(hashes, kind="stable")
    _, first, counts = np.unique(hashes[order], return_index=True, return_counts=True)
    middle = np.repeat(first + 0.5 * (counts - 1), counts)
    position = np.where(np.repeat(counts, counts) > 0.5 * n / parts, np.arange(n), middle)
    found = np.empty(n, dtype=np.intp)
    found[order] = np.minimum((position + 0.5) * parts // n, parts - 1).astype(np.intp)
    return found
