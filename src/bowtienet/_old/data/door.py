"""The one door: whatever holds rows in, a checked `Source` out.

source = open_source("trips/", "fare")     rows with targets and weights
source = open_features(new_frame)          features alone
for block in in_order(source): ...         once through all rows

With ``target="label"`` targets are numbers of the sorted `classes`, with ``target="count"`` counts
beside the logs of their exposures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet._old.data.arrow import is_arrow, open_arrow
from bowtienet._old.data.batches import BatchSource, gives_batches
from bowtienet._old.data.dask_tables import DaskSource, is_dask
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.labels import read_classes
from bowtienet._old.data.memory_map import MemoryMap
from bowtienet._old.data.source import Source, find_classes
from bowtienet._old.data.tables import check_features, is_names
from bowtienet._old.data.targets import TARGETS, Reading


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    features: Sequence[str] | None = None,
    min_rows: int = 1,
    target: str = "number",
    classes: Any = None,
    exposure: Any = None,
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
    target : str
        What the targets are: "number", "label" (text, categories, booleans or whole numbers) or
        "count" (whole numbers from 0 on).
    classes : sequence, optional
        All labels that may occur. By default those that occur: rows that are not in memory are
        read once to find them, only the column of labels where that is possible.
    exposure : name, array or series, optional
        For how long, or among how many, each count was taken: positive numbers, given as weights
        are; 1 by default.

    Returns
    -------
    Source
        With `in_memory` and `block` if all rows are in memory. Targets are numbers; the numbers
        of labels among the sorted `classes`; or counts beside the logs of their exposures.
    """
    reading = _reading(target, classes, exposure)
    source = _open(X, y, sample_weight, features=features, exposure=exposure, reading=reading)
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
    return _coded(source, reading)


def open_features(X: Any, *, features: Sequence[str] | None = None, exposure: Any = None) -> Source:
    """Open features alone, for prediction; see `open_source`. Other columns are passed over.

    With `exposure`, the blocks' targets are one column with its logs; see `log_exposures`.
    """
    settings = {"features": features, "exposure": exposure}
    if not isinstance(X, Source) and not is_arrow(X) and gives_batches(X):
        _check_named(exposure)
        return BatchSource(X, **settings, with_targets=False)
    return _open(X, None, None, reading=Reading(), **settings)


def _open(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    features: Sequence[str] | None,
    exposure: Any,
    reading: Reading,
) -> Source:
    settings = {"features": features, "exposure": exposure, "reading": reading}
    if isinstance(X, Source):
        if any(given is not None for given in (y, sample_weight, exposure)):
            raise ValueError("a Source knows its y and sample_weight, and exposure: give it alone.")
        if features is not None and X.feature_names is not None:
            check_features(X.feature_names, features)
        return X
    if is_dask(X):
        return DaskSource(X, y, sample_weight, **settings)
    if is_arrow(X):
        return open_arrow(X, y, sample_weight, **settings)
    if isinstance(X, np.memmap):
        return MemoryMap(X, y, sample_weight, exposure=exposure, reading=reading)
    if (y is None or is_names(y)) and gives_batches(X):
        if sample_weight is not None and not is_names(sample_weight):
            raise ValueError(
                "sample_weight must come with the batches: let each be (X, y, weights)."
            )
        _check_named(exposure)
        return BatchSource(X, y, sample_weight, **settings)
    return InMemory(X, y, sample_weight, **settings)


def _reading(target: str, classes: Any, exposure: Any) -> Reading:
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(map(repr, TARGETS))}, got {target!r}.")
    if classes is not None and target != "label":
        raise ValueError(f"classes go with target='label', got target={target!r}.")
    if exposure is not None and target != "count":
        raise ValueError(f"exposure goes with target='count', got target={target!r}.")
    return Reading(target=target, classes=None if classes is None else read_classes(classes))


def _check_named(exposure: Any) -> None:
    if exposure is not None and not isinstance(exposure, str):
        raise ValueError(
            "exposure must come with the batches: let each be a frame, and name its column."
        )


def _coded(source: Source, reading: Reading) -> Source:
    """A source of what is asked for; labels coded by the classes that are given, or found."""
    if source.reading.target != reading.target:
        raise ValueError(
            f"the Source was opened with target={source.reading.target!r}, but {reading.target!r} "
            f"is needed: open it with open_source(..., target={reading.target!r})."
        )
    if reading.target == "number":
        return source
    if source.n_targets > 1:
        raise ValueError(
            f"y has {source.n_targets} columns, but a {reading.target} is one: give one column."
        )
    if reading.target == "count" or (reading.classes is source.classes is not None):
        return source
    if reading.classes is not None:
        return source.with_classes(reading.classes)
    return source if source.classes is not None else source.with_classes(find_classes(source))
