"""What a pass over batches of rows says: a sample, folds and weights, in any order of the rows.

The sample are the rows with the smallest keys, which are hashes of their values: samples of parts
of the rows merge to that of all of them, whatever the parts. Folds are the keys modulo `PARTS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import hash_columns
from bowtienet.tables.door import Table, TrainingTable, arrays_of, take_training

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]

PARTS, HELD_OUT = 25, 5
"""Rows are cut into this many parts, of which the second number are held out by a network each."""
BUFFER_BYTES = 64_000_000
"""Rows that are shuffled together: hundreds of thousands of twenty columns."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of rows that were read once."""

    sample: TrainingTable
    """Rows with the smallest keys, in their order."""
    keys: Keys
    folds: NDArray[np.intp]
    """Of the sample; -1 for rows that no network holds out."""
    n_rows: int
    fold_weights: Floats
    """(HELD_OUT + 1,): total weight of each fold; the last is of rows that are never held out."""
    labels: Counter[Any]
    """Rows of each class; empty for numbers."""
    n_without_target: int = 0
    """Rows that were left out."""


def facts_of(rows: TrainingTable, size: int) -> Facts:
    """Facts of a batch, with a sample of at most `size` rows."""
    keys, folds = keys_and_folds(rows)
    facts = Facts(
        sample=rows,
        keys=keys,
        folds=folds,
        n_rows=len(keys),
        fold_weights=np.roll(np.bincount(folds + 1, rows.weights, HELD_OUT + 1), -1),
        labels=Counter(rows.targets.tolist() if rows.is_labels else ()),
    )
    return merge([facts], size)


def merge(parts: Sequence[Facts], size: int) -> Facts:
    """Facts of disjoint sets of rows together."""
    keys = np.concatenate([part.keys for part in parts])
    first = np.argsort(keys, kind="stable")[:size]
    return Facts(
        sample=take_training(joined([part.sample for part in parts]), first),
        keys=keys[first],
        folds=np.concatenate([part.folds for part in parts])[first],
        n_rows=sum(part.n_rows for part in parts),
        fold_weights=np.sum([part.fold_weights for part in parts], axis=0),
        labels=sum((part.labels for part in parts), Counter()),
        n_without_target=sum(part.n_without_target for part in parts),
    )


def collect(batches: Iterable[tuple[TrainingTable | None, int]], size: int) -> Facts | None:
    """Facts of all batches, which come with their numbers of rows without a target."""
    waiting: list[Facts] = []
    n_without = 0
    for rows, n_absent in batches:
        n_without += n_absent
        if rows is None:
            continue
        waiting.append(facts_of(rows, size))
        if sum(len(each.keys) for each in waiting) >= 2 * size:
            waiting = [merge(waiting, size)]
    return replace(merge(waiting, size), n_without_target=n_without) if waiting else None


def keys_and_folds(rows: TrainingTable) -> tuple[Keys, NDArray[np.intp]]:
    """Key and fold of each row, from its values alone.

    Equal rows have keys of their own, by their number in the batch, or all of them or none would
    be in a sample. They share a fold, unless they alone are half a part.
    """
    n, columns = len(rows.weights), (*arrays_of(rows.table), *np.atleast_2d(rows.targets.T))
    hashes = hash_columns([_bits(each) for each in columns], n)
    order = np.argsort(hashes, kind="stable")
    _, first, counts = np.unique(hashes[order], return_index=True, return_counts=True)
    number, count = np.empty(n, np.uint64), np.empty(n, np.intp)
    number[order] = np.arange(n) - np.repeat(first, counts)
    count[order] = np.repeat(counts, counts)
    keys = hash_columns([hashes, number], n)
    shared = hash_columns([hashes, np.zeros(n, np.uint64)], n)
    chosen = np.asarray(np.where(count > 0.5 * n / PARTS, keys, shared))
    folds = (chosen % np.uint64(PARTS)).astype(np.intp)
    return keys, np.where(folds < HELD_OUT, folds, -1)


def joined(parts: Sequence[TrainingTable]) -> TrainingTable:
    """Rows one after the other."""
    tables, first = [part.table for part in parts], parts[0].table
    matrices = [table.matrix for table in tables if table.matrix is not None]
    is_matrix = len(matrices) == len(tables)
    columns = () if is_matrix else tuple(map(_joined, zip(*map(arrays_of, tables), strict=True)))
    weights = np.concatenate([part.weights for part in parts])
    exposures = [part.exposure for part in parts if part.exposure is not None]
    return replace(
        parts[0],
        table=Table(
            names=first.names,
            matrix=np.concatenate(matrices) if is_matrix else None,
            columns=columns,
            n_rows=len(weights),
        ),
        targets=np.concatenate([part.targets for part in parts]),
        weights=weights,
        exposure=np.concatenate(exposures) if exposures else None,
    )


def mixed(
    chunks: Iterable[tuple[NDArray[Any], ...]], rng: np.random.Generator
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Arrays of rows, joined up to `BUFFER_BYTES` and shuffled."""
    held: list[tuple[NDArray[Any], ...]] = []
    for chunk in chunks:
        held.append(chunk)
        if sum(array.nbytes for each in held for array in each) >= BUFFER_BYTES:
            yield _shuffled(held, rng)
            held = []
    if held:
        yield _shuffled(held, rng)


def _shuffled(
    held: list[tuple[NDArray[Any], ...]], rng: np.random.Generator
) -> tuple[NDArray[Any], ...]:
    order = rng.permutation(sum(len(chunk[0]) for chunk in held))
    return tuple(np.concatenate(arrays)[order] for arrays in zip(*held, strict=True))


def _joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    kinds = {"number" if column.dtype.kind in "fiub" else column.dtype.kind for column in columns}
    # A column that is a number in one batch and a text in the next is a category.
    return np.concatenate(columns if len(kinds) == 1 else [c.astype(object) for c in columns])


def _bits(column: NDArray[Any]) -> Keys:
    """A column as unsigned whole numbers, equal where the values are."""
    if column.dtype.kind in "fiub":
        return (column + np.float64(0.0)).view(np.uint64)
    if column.dtype.kind in "mM":
        return column.astype(f"{column.dtype.kind}8[us]").view(np.uint64)
    known: dict[Any, int] = {}
    for value in column:
        if value not in known:
            digest = blake2b(str(value).encode(), digest_size=8).digest()
            known[value] = int.from_bytes(digest, "little")
    return np.array([known[value] for value in column], dtype=np.uint64)
