"""Rows beyond memory: batches that can be read again, from files, Dask, or the user's own.

A path, a `pyarrow.dataset`, a Dask frame or array, or an object that gives (X, y) batches whenever
it is iterated. The door checks each batch as it does a table; rows without a target are left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from bowtienet.tables.door import TrainingTable, open_batch
from bowtienet.tables.files import form_of
from bowtienet.tables.frames import frame_of, is_in_memory
from bowtienet.tables.sample import Facts, collect

Batch = tuple[Any, Any]
"""X, and targets or their names."""
Source = tuple[partial[Iterator[Batch]], ...]
"""Parts that give their batches whenever they are called: Dask partitions, of other sources one."""
Reader = Callable[[Any, Any], tuple[TrainingTable | None, int]]
"""`open_batch` for an estimator that has seen the columns of the first batch, without its fit."""

SAMPLE = 100_000
"""Rows that stay in memory: tables of no more are fitted as if they had come in memory."""


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
    if "pyarrow.dataset" in sys.modules:
        from pyarrow.dataset import Dataset

        if isinstance(X, Dataset):
            return (partial(_read_dataset, X, y),)
    if "dask" in sys.modules:
        from dask.base import is_dask_collection

        if is_dask_collection(X):
            return tuple(partial(_read_partition, *pair) for pair in _partitions(X, y))
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


def collect_facts(source: Source, reader: Reader) -> Facts:
    """One pass over a source."""
    facts = collect(starmap(reader, batches_of(source)), SAMPLE)
    assert facts is not None
    return facts


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


def _is_batches(X: Any) -> bool:
    """Whether X gives batches: pairs, frames or matrices; a list of rows is a table."""
    is_lazy = isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame)
    if is_lazy or is_in_memory(X) or isinstance(X, (Mapping, bytes)) or not hasattr(X, "__iter__"):
        return False
    if not isinstance(X, Sequence):
        return True
    is_pair = bool(X) and isinstance(X[0], tuple) and np.ndim(X[0][0]) == 2
    return is_pair or (bool(X) and frame_of(X[0]) is not None)


def _read_batches(batches: Any, y: Any) -> Iterator[Batch]:
    for batch in batches:
        yield batch if isinstance(batch, tuple) else (batch, y)


def _read_dataset(dataset: Any, y: Any) -> Iterator[Batch]:
    """Batches of a dataset, no more of them in memory than the one that is read next."""
    import pyarrow as pa

    for batch in dataset.to_batches(batch_size=65_536, batch_readahead=1, fragment_readahead=1):
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
    kind = system.get_file_info(inside).type
    if kind == fs.FileType.NotFound:
        raise FileNotFoundError(f"there is no file or folder {text!r}.")
    names = [inside]
    if kind == fs.FileType.Directory:
        listed = system.get_file_info(fs.FileSelector(inside, recursive=True))
        names = [info.path for info in listed if info.type == fs.FileType.File]
    files = {name: form_of(name) for name in sorted(names)}
    forms = set(files.values()) & {"csv", "parquet", "feather"}
    if len(forms) != 1:
        raise ValueError(
            f"{text!r} must be or hold files of one kind, CSV, Parquet or Feather: it has "
            f"{len(forms)} of these kinds."
        )
    form = forms.pop()
    wanted = [name for name in names if files[name] == form]
    return dataset.dataset(sorted(wanted), format=form, filesystem=system)


def _partitions(X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    """Partitions of a Dask collection with their targets, none of them computed."""
    from dask.base import is_dask_collection

    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
    rows = np.ravel(np.array(X.to_delayed(), dtype=object)).tolist()
    if y is None or isinstance(y, (str, list, tuple)):
        return ((row, y) for row in rows)
    if not is_dask_collection(y):
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
