"""Rows beyond memory: batches that can be read again, from files, Dask, or the user's own.

A path, a `pyarrow.dataset`, a Dask frame or array, or an object that gives (X, y) batches whenever
it is iterated. The door checks each batch as it does a table; rows without a target are left out.

A pass over them keeps a sample, the rows with the smallest keys, which are hashes of their values:
samples of parts of the rows merge to that of all of them, whatever the parts and their order. Folds
are the keys modulo `PARTS`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import hash_columns
from bowtienet.tables.door import TrainingTable, arrays_of, open_batch, take_training
from bowtienet.tables.files import form_of, pieces_of
from bowtienet.tables.frames import frame_of, is_in_memory, is_lazy

Keys = NDArray[np.uint64]
Batch = tuple[Any, Any]
"""X, and targets or their names."""
Source = tuple[partial[Iterator[Batch]], ...]
"""Parts that give their batches whenever they are called: Dask partitions, of other sources one."""
Reader = Callable[[Any, Any], tuple[TrainingTable | None, int]]
"""`open_batch` for an estimator that has seen the columns of the first batch, without its fit."""

SAMPLE = 100_000
"""Rows that stay in memory: tables of no more are fitted as if they had come in memory."""

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
    """Folds of the sample; -1 for rows that no network holds out."""
    n_rows: int
    fold_weights: NDArray[np.float64]
    """(HELD_OUT + 1,): total weight of each fold; the last is of rows that are never held out."""
    labels: Counter[Any]
    """Rows of each class; empty for numbers."""
    n_without_target: int = 0
    """Rows that were left out."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Rows of which a fit holds no more than a sample."""

    source: Source
    reader: Reader
    facts: Facts


def source_of(X: Any, y: Any = None) -> Source | None:
    """The source that X is; None for tables in memory."""
    if isinstance(X, (str, os.PathLike)):
        return (partial(_read_dataset, _dataset(X), y),)
    if hasattr(X, "to_delayed"):  # a Dask collection
        return tuple(partial(_read_partition, *pair) for pair in _partitions(X, y))
    if is_in_memory(X):
        return None
    if hasattr(X, "to_batches"):  # a dataset of pyarrow
        return (partial(_read_dataset, X, y),)
    if not _is_batches(X):
        return None
    if iter(X) is X:
        raise ValueError(
            f"rows are read several times, and a {type(X).__name__} can be read once: give a "
            "list, or an object whose __iter__ starts anew."
        )
    return (partial(_read_batches, X, y),)


def batches_of(source: Source) -> Iterator[Batch]:
    """All batches that have rows, in the order of the source."""
    for part in source:
        yield from filter(has_rows, part())


def partitions_of(source: Source) -> list[tuple[Any, Any]]:
    """Dask partitions with their targets, none of them computed; nothing of other sources."""
    return [(X, y) for part in source if part.func is _read_partition for X, y in [part.args]]


def has_rows(batch: Batch) -> bool:
    """Whether a batch is not empty."""
    frame = frame_of(batch[0])
    return bool(len(batch[0] if frame is None else frame))


def reader_of(estimator: Any, source: Source, sample_weight: Any, *, labels: bool) -> Reader:
    """How to read a source, by its first rows with targets; the estimator learns their columns."""
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError(
            "sample_weight of rows that are read in batches must be the name of a column, got "
            f"{type(sample_weight).__name__}."
        )
    for X, y in batches_of(source):
        rows, _ = open_batch(estimator, X, y, sample_weight, labels=labels, reset=True)
        if rows is not None:
            known = type(estimator)()
            vars(known).update({k: v for k, v in vars(estimator).items() if k.endswith("_in_")})
            return partial(
                open_batch, known, sample_weight=sample_weight, labels=labels, reset=False
            )
    raise ValueError("the source has no row with a target: there is nothing to fit.")


def reread(stream: Stream) -> Iterator[TrainingTable]:
    """All rows again."""
    n_rows = 0
    for rows, _ in starmap(stream.reader, batches_of(stream.source)):
        if rows is not None:
            n_rows += len(rows.weights)
            yield rows
    if n_rows != stream.facts.n_rows:
        raise ValueError(
            f"the source gave {stream.facts.n_rows} rows first and {n_rows} later: rows must not "
            "change during a fit."
        )


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
    tables = [part.table for part in parts]
    matrices = [table.matrix for table in tables if table.matrix is not None]
    is_matrix = len(matrices) == len(tables)
    columns = () if is_matrix else tuple(map(_joined, zip(*map(arrays_of, tables), strict=True)))
    weights = np.concatenate([part.weights for part in parts])
    return replace(
        parts[0],
        table=replace(
            tables[0],
            matrix=np.concatenate(matrices) if is_matrix else None,
            columns=columns,
            n_rows=len(weights),
        ),
        targets=np.concatenate([part.targets for part in parts]),
        weights=weights,
    )


def mixed(
    chunks: Iterable[tuple[NDArray[Any], ...]], rng: np.random.Generator
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Arrays of rows, joined up to `BUFFER_BYTES` and shuffled."""
    held: list[tuple[NDArray[Any], ...]] = []
    for chunk in chain(chunks, [None]):
        held += [] if chunk is None else [chunk]
        is_full = sum(array.nbytes for each in held for array in each) >= BUFFER_BYTES
        if held and (is_full or chunk is None):
            order = rng.permutation(sum(len(each[0]) for each in held))
            columns = list(zip(*held, strict=True))
            held = []
            # Taken one by one: what is joined need not stay in parts beside it.
            yield tuple(np.concatenate(columns.pop(0))[order] for _ in range(len(columns)))


def _is_batches(X: Any) -> bool:
    """Whether X gives batches: pairs, frames or matrices; a list of rows is a table."""
    if isinstance(X, (Mapping, bytes)) or is_lazy(X) or not hasattr(X, "__iter__"):
        return False
    if not isinstance(X, Sequence):
        return True
    is_pair = bool(X) and isinstance(X[0], tuple) and np.ndim(X[0][0]) == 2
    return is_pair or (bool(X) and frame_of(X[0]) is not None)


def _read_batches(batches: Any, y: Any) -> Iterator[Batch]:
    for batch in batches:
        yield batch if isinstance(batch, tuple) else (batch, y)


def _read_dataset(dataset: Any, y: Any) -> Iterator[Batch]:
    import pyarrow as pa

    for batch in pieces_of(dataset, 65_536):
        yield pa.Table.from_batches([batch]), y


def _read_partition(X: Any, y: Any) -> Iterator[Batch]:
    from dask.base import compute

    yield compute(X, y)


def _dataset(path: Any) -> Any:
    """Files below a path, or a URI of a file system that pyarrow knows, as one dataset."""
    try:
        from pyarrow import dataset, fs
    except ImportError:
        raise ImportError("files are read by pyarrow: pip install 'bowtienet[bigdata]'.") from None
    text = os.fspath(path)
    system, inside = fs.FileSystem.from_uri(text) if "://" in text else (fs.LocalFileSystem(), text)
    entries = [system.get_file_info(inside)]
    if entries[0].type == fs.FileType.NotFound:
        raise FileNotFoundError(f"there is no file or folder {text!r}.")
    if not entries[0].is_file:
        entries = system.get_file_info(fs.FileSelector(inside, recursive=True))
    kinds = ("csv", "parquet", "feather")
    names = sorted(each.path for each in entries if each.is_file and form_of(each.path) in kinds)
    forms = set(map(form_of, names))
    if len(forms) != 1:
        raise ValueError(
            f"{text!r} must be or hold files of one kind, CSV, Parquet or Feather: it has "
            f"{len(forms)} of these kinds."
        )
    return dataset.dataset(names, format=forms.pop(), filesystem=system)


def _partitions(X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    """Partitions of a Dask collection with their targets, none of them computed."""
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
    rows = np.ravel(np.array(X.to_delayed(), dtype=object)).tolist()
    if y is None or isinstance(y, (str, list, tuple)):
        return ((row, y) for row in rows)
    if not hasattr(y, "to_delayed"):
        raise ValueError(
            f"y of a Dask collection must be one too, or the name of a column, got "
            f"{type(y).__name__}."
        )
    if hasattr(y, "rechunk") and hasattr(X, "rechunk"):
        y = y.rechunk({0: X.chunks[0], **({1: -1} if y.ndim == 2 else {})})
    targets = np.ravel(np.array(y.to_delayed(), dtype=object)).tolist()
    if len(targets) != len(rows):
        raise ValueError(
            f"X has {len(rows)} partitions and y {len(targets)}: they must have the same rows."
        )
    return zip(rows, targets, strict=True)


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
