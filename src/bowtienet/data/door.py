"""The one door: whatever holds rows in, a checked `Source` out.

source = open_source("trips/", "fare")     rows with targets and weights
source = open_features(new_frame)          features alone
for block in in_order(source): ...         once through all rows
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet.data.arrow import is_arrow, open_arrow
from bowtienet.data.batches import BatchSource, gives_batches
from bowtienet.data.dask_tables import DaskSource, is_dask
from bowtienet.data.in_memory import InMemory
from bowtienet.data.memory_map import MemoryMap
from bowtienet.data.source import Source
from bowtienet.data.tables import check_features, is_names


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    features: Sequence[str] | None = None,
    min_rows: int = 1,
) -> Source:
    """Open rows with targets and weights, to be read block by block and as often as wanted.

    Parameters
    ----------
    X : table, path, dataset, memory map, batches, Dask table or Source
        An array, a list of rows, a data frame (pandas, polars, pyarrow or another that narwhals
        knows) or a torch or JAX array; a Parquet or Arrow file, a folder of them (hive folders such
        as ``year=2024`` are columns), a list of files, or the URI of Parquet files in other
        storage; a ``pyarrow.dataset.Dataset``; a ``numpy.memmap``; anything that can be iterated
        over again and again and gives ``(X, y)`` or ``(X, y, weights)``, or frames; a Dask array or
        data frame; or what this function returned.
    y : name, list of names, array, series or frame, optional
        The targets. Names of columns wherever these have names; nothing for batches that hold
        their targets, and for a Source.
    sample_weight : name, array or series, optional
        How many times each row counts, in the same way; 1 by default.
    features : list of names, optional
        The columns that are features; by default all others, without the unnamed index of a pandas
        frame in a file. Tables in memory and batches must have them in this order.
    min_rows : int
        Refuse a table in memory with fewer rows.

    Returns
    -------
    Source
        With `in_memory` and `block` if all rows are in memory.
    """
    source = _open(X, y, sample_weight, features)
    if source.n_targets == 0:
        raise ValueError(
            "fit requires y to be passed, but the target y is None: name it, as in "
            "fit(frame, 'price'), or give it, as in fit(X, y)."
        )
    if isinstance(source, InMemory) and source.block.table.n_rows < min_rows:
        raise ValueError(
            f"X has {source.block.table.n_rows} sample(s), but at least {min_rows} are needed: "
            "give more rows."
        )
    return source


def open_features(X: Any, *, features: Sequence[str] | None = None) -> Source:
    """Open features alone, for prediction; see `open_source`. Other columns are passed over."""
    if not isinstance(X, Source) and not is_arrow(X) and gives_batches(X):
        return BatchSource(X, features=features, with_targets=False)
    return _open(X, None, None, features)


def _open(X: Any, y: Any, sample_weight: Any, features: Sequence[str] | None) -> Source:
    if isinstance(X, Source):
        return _opened(X, y, sample_weight, features)
    if is_dask(X):
        return DaskSource(X, y, sample_weight, features=features)
    if is_arrow(X):
        return open_arrow(X, y, sample_weight, features)
    if isinstance(X, np.memmap):
        return MemoryMap(X, y, sample_weight)
    if (y is None or is_names(y)) and gives_batches(X):
        if sample_weight is not None and not is_names(sample_weight):
            raise ValueError(
                "sample_weight must come with the batches: let each be (X, y, weights)."
            )
        return BatchSource(X, y, sample_weight, features=features)
    return InMemory(X, y, sample_weight, features=features)


def _opened(source: Source, y: Any, sample_weight: Any, features: Sequence[str] | None) -> Source:
    if y is not None or sample_weight is not None:
        raise ValueError("a Source knows its y and sample_weight: give it alone.")
    if features is not None and source.feature_names is not None:
        check_features(source.feature_names, features)
    return source
