"""The same rows in every form that the door takes, for the contracts of labels and counts."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq

from bowtienet._old.data.source import Source, in_order


def _parquet(frame: pd.DataFrame, folder: Path) -> Path:
    path = folder / "rows"
    path.mkdir()
    half = len(frame) // 2
    for number, part in enumerate((frame[:half], frame[half:])):
        pq.write_table(_arrow(part), path / f"part-{number}.parquet", row_group_size=7)
    return path


def _arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _feather(frame: pd.DataFrame, folder: Path) -> Path:
    feather.write_feather(_arrow(frame), folder / "rows.arrow", chunksize=7)
    return folder / "rows.arrow"


def mapped(folder: Path, values: np.ndarray) -> np.memmap:
    """`values` in a file."""
    values.tofile(folder / "map")
    return np.memmap(folder / "map", dtype=values.dtype, mode="r", shape=values.shape)


def cuts(values: Any) -> list[Any]:
    """Three batches, the second of which is empty."""
    return [values[:9], values[9:9], values[9:]]


FRAMES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda frame, _: frame,
    "pandas with gaps": lambda frame, _: frame.convert_dtypes(),
    "pandas objects": lambda frame, _: frame.astype(object),
    "polars": lambda frame, _: pl.from_pandas(frame),
    "pyarrow": lambda frame, _: _arrow(frame),
    "dataset in memory": lambda frame, _: ds.dataset(_arrow(frame)),
    "Parquet folder": _parquet,
    "dataset": lambda frame, folder: ds.dataset(_parquet(frame, folder)),
    "Arrow file": _feather,
    "batches of frames": lambda frame, _: cuts(frame),
    "Dask frame": lambda frame, _: dd.from_pandas(frame, npartitions=3, sort=False),
}
"""Tables with names of columns."""
ARRAYS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "array": lambda values, _: values,
    "list": lambda values, _: values.tolist(),
    "memory map": lambda values, folder: mapped(folder, values),
    "Dask array": lambda values, _: da.from_array(values, chunks=(7, 1)),
}
"""Tables without names, beside which other columns are given."""


def targets_of(source: Source) -> np.ndarray:
    """Targets of all rows; the same again, and after pickling."""
    found = [
        np.concatenate([block.targets for block in in_order(opened)])
        for opened in (source, source, pickle.loads(pickle.dumps(source)))
    ]
    assert found[0].dtype == np.float64
    for again in found[1:]:
        np.testing.assert_array_equal(again, found[0])
    return found[0]
