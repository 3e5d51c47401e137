"""The same rows in other containers: those in memory, and those that are read block by block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq

Rows = tuple[Any, Any]
"""Features and target, as `fit` takes them."""


def arrow_of(frame: pd.DataFrame) -> pa.Table:
    """A table without the frame's index."""
    return pa.Table.from_pandas(frame, preserve_index=False)


def _joined(X: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=y)


def _parquet(frame: pd.DataFrame, folder: Path) -> Path:
    pq.write_table(arrow_of(frame), folder / "rows.parquet", row_group_size=7)
    return folder / "rows.parquet"


def _feather(frame: pd.DataFrame, folder: Path) -> Path:
    feather.write_feather(arrow_of(frame), folder / "rows.arrow", chunksize=9)
    return folder / "rows.arrow"


def _parts(frame: pd.DataFrame, folder: Path) -> Path:
    place = folder / "rows"
    place.mkdir(exist_ok=True)
    half = len(frame) // 2
    for number, part in enumerate((frame[:half], frame[half:])):
        pq.write_table(arrow_of(part), place / f"{number}.parquet")
    return place


def _mapped(values: np.ndarray, folder: Path) -> np.memmap:
    place = folder / "rows.map"
    np.ascontiguousarray(values).tofile(place)
    return np.memmap(place, dtype=values.dtype, mode="r", shape=values.shape)


def _read_only(values: np.ndarray) -> np.ndarray:
    found = values.copy()
    found.flags.writeable = False
    return found


IN_MEMORY: dict[str, Callable[[np.ndarray, np.ndarray], Rows]] = {
    "Fortran order": lambda X, y: (np.asfortranarray(X), y),
    "a view": lambda X, y: (np.repeat(X, 2, axis=0)[::2], np.repeat(y, 2)[::2]),
    "read-only": lambda X, y: (_read_only(X), _read_only(y)),
    "swapped bytes": lambda X, y: (X.astype(X.dtype.newbyteorder()), y),
    "lists": lambda X, y: (X.tolist(), y.tolist()),
    "objects": lambda X, y: (X.astype(object), y),
    "pandas": lambda X, y: (_joined(X, y).drop(columns="y"), _joined(X, y)["y"]),
    "pandas, named": lambda X, y: (_joined(X, y), "y"),
    "another index": lambda X, y: (_joined(X, y).set_index(np.arange(len(y))[::-1]), "y"),
    "Arrow dtypes": lambda X, y: (_joined(X, y).convert_dtypes(dtype_backend="pyarrow"), "y"),
    "polars": lambda X, y: (pl.from_pandas(_joined(X, y)), "y"),
    "pyarrow": lambda X, y: (arrow_of(_joined(X, y)), "y"),
}
SINGLE = ("Fortran order", "a view", "read-only", "swapped bytes")
"""Where single precision stays what it is; elsewhere rows are in double precision."""
STREAMED: dict[str, Callable[[np.ndarray, np.ndarray, Path], Rows]] = {
    "Parquet": lambda X, y, folder: (_parquet(_joined(X, y), folder), "y"),
    "Arrow file": lambda X, y, folder: (_feather(_joined(X, y), folder), "y"),
    "folder": lambda X, y, folder: (_parts(_joined(X, y), folder), "y"),
    "dataset": lambda X, y, folder: (ds.dataset(_parquet(_joined(X, y), folder)), "y"),
    "batches": lambda X, y, _: ([(X[:9], y[:9]), (X[9:9], y[9:9]), (X[9:], y[9:])], None),
    "memory map": lambda X, y, folder: (_mapped(X, folder), y),
}
"""Dask tables need a cluster, and have tests of their own."""
NEW_ROWS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "polars": lambda frame, _: pl.from_pandas(frame),
    "pyarrow": lambda frame, _: arrow_of(frame),
    "Parquet": _parquet,
    "Arrow file": _feather,
    "dataset in memory": lambda frame, _: ds.dataset(arrow_of(frame)),
    "batches": lambda frame, _: [frame[:5], frame[5:]],
    "one more column": lambda frame, _: frame.assign(**{"not known": "?"}),
    "another index": lambda frame, _: frame.set_index(np.arange(len(frame))[::-1]),
}
"""Rows to predict, of a frame whose names are unique texts."""
