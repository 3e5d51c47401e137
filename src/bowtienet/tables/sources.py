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
from bowtienet.tables.frames import frame_of, is_in_memory
from bowtienet.tables.sample import Facts, collect

Batch = tuple[Any, Any]
"""X, and targets or their names."""
Reader = Callable[[Any, Any], tuple[TrainingTable | None, int]]
"""`open_batch` for an estimator that has seen the columns of the first batch, without its fit."""

SAMPLE = 100_000
"""Rows that stay in memory: tables of no more are fitted as if they had come in memory."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Rows that can be read again and again."""

    parts: tuple[Any, ...]
    """Dask partitions; of other sources one."""
    read: Callable[[Any], Iterator[Batch]]
    """The batches of a part."""
    is_dask: bool = False


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Rows of which a fit holds no more than a sample."""

    source: Source
    reader: Reader
    facts: Facts


def source_of(X: Any, y: Any = None) -> Source | None:
    """The source that X is; None for tables in memory."""
    if isinstance(X, (str, os.PathLike)):
        return Source(parts=((_dataset(X), y),), read=_read_dataset)
    if "pyarrow.dataset" in sys.modules:
        from pyarrow.dataset import Dataset

        if isinstance(X, Dataset):
            return Source(parts=((X, y),), read=_read_dataset)
    if "dask" in sys.modules:
        from dask.base import is_dask_collection

        if is_dask_collection(X):
            return Source(parts=tuple(_partitions(X, y)), read=_read_partition, is_dask=True)
    if _is_batches(X):
        if iter(X) is X:
            raise ValueError(
                f"rows are read several times, and a {type(X).__name__} can be read once: give a "
                "list, or an object whose __iter__ starts anew."
            )
        return Source(parts=((X, y),), read=_read_batches)
    return None


def batches_of(source: Source) -> Iterator[Batch]:
    """All batches that have rows, in the order of the source."""
    for part in source.parts:
        yield from filter(has_rows, source.read(part))


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


def _read_batches(part: tuple[Any, Any]) -> Iterator[Batch]:
    batches, y = part
    for batch in batches:
        yield batch if isinstance(batch, tuple) else (batch, y)


def _read_dataset(part: tuple[Any, Any]) -> Iterator[Batch]:
    """Batches of a dataset, no more of them in memory than the one that is read next."""
    import pyarrow as pa

    dataset, y = part
    for batch in dataset.to_batches(batch_size=65_536, batch_readahead=1, fragment_readahead=1):
        yield pa.Table.from_batches([batch]), y


def _dataset(path: Any) -> Any:
    """Files below a path, or a URI of a file system that pyarrow knows, as one dataset."""
    try:
        from pyarrow import dataset, fs
    except ImportError:
        raise ImportError("files are read by pyarrow: pip install 'bowtienet[bigdata]'.") from None
    formats = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}
    formats |= {".feather": "feather", ".arrow": "feather"}
    text = os.fspath(path)
    system, inside = fs.FileSystem.from_uri(text) if "://" in text else (fs.LocalFileSystem(), text)
    kind = system.get_file_info(inside).type
    if kind == fs.FileType.NotFound:
        raise FileNotFoundError(f"there is no file or folder {text!r}.")
    names = [inside]
    if kind == fs.FileType.Directory:
        listed = system.get_file_info(fs.FileSelector(inside, recursive=True))
        names = [info.path for info in listed if info.type == fs.FileType.File]
    form_of = {name: formats.get(os.path.splitext(name)[1].lower()) for name in sorted(names)}
    known = set(form_of.values()) - {None}
    if len(known) != 1:
        raise ValueError(
            f"{text!r} must be or hold files of one kind, {', '.join(formats)}: it has "
            f"{len(known)} of these kinds."
        )
    wanted = [name for name, form in form_of.items() if form]
    return dataset.dataset(wanted, format=known.pop(), filesystem=system)


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


def _read_partition(part: tuple[Any, Any]) -> Iterator[Batch]:
    from dask.base import compute

    yield compute(*part)
