"""One contract for every source: the same rows, names, targets and weights, as often as wanted."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.door import open_features, open_source
from bowtienet._old.data.source import BLOCK_ROWS, PIECE_ROWS, Source, in_order
from bowtienet._old.data.tables import Block

N = PIECE_ROWS + 404
RNG = np.random.default_rng(0)
NAMES = ("size", "rooms", "garden")
X = np.column_stack([RNG.normal(size=N), np.arange(N) % 7, np.arange(N) % 2])
X[RNG.random(size=N) < 0.1, 0] = np.nan
Y = RNG.normal(size=(N, 2))
W = 1.0 + np.arange(N) % 3
FRAME = pd.DataFrame(X, columns=NAMES).assign(price=Y[:, 0], tax=Y[:, 1], count=W)
FRAME = FRAME.astype({"rooms": "int32", "garden": "bool"})
ARROW = pa.Table.from_pandas(FRAME)
CUTS = [slice(0, 1000), slice(1000, 1000), slice(1000, 4000), slice(4000, N)]


class Stream:
    """Batches that are made anew at each pass."""

    def __init__(self, make: Callable[[slice], Any]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return (self.make(cut) for cut in CUTS)


def array_batch(cut: slice) -> tuple[np.ndarray, ...]:
    return X[cut], Y[cut, 0], W[cut]


def frame_batch(cut: slice) -> pd.DataFrame:
    return FRAME[cut]


def memory_map(folder: Path, values: np.ndarray) -> np.memmap:
    path = folder / f"map-{values.ndim}"
    values.tofile(path)
    return np.memmap(path, dtype=values.dtype, mode="r", shape=values.shape)


def parquet_folder(folder: Path) -> Path:
    """Three files in row groups of 700, besides files that are no data."""
    folder = folder / "rows"
    folder.mkdir()
    for number, start in enumerate(range(0, N, 1500)):
        part = ARROW.slice(start, 1500)
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=700)
    (folder / "_SUCCESS").write_text("")
    (folder / "readme.txt").write_text("no data")
    return folder


def arrow_file(folder: Path) -> Path:
    path = folder / "rows.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, ARROW.schema) as writer:
        writer.write_table(ARROW, max_chunksize=1000)
    return path


ARRAYS: dict[str, Callable[[Path], Any]] = {
    "array": lambda _: X,
    "Fortran order": lambda _: np.asfortranarray(X),
    "big endian": lambda _: X.astype(">f8"),
    "list": lambda _: X.tolist(),
    "objects": lambda _: X.astype(object),
    "objects with None": lambda _: np.where(np.isnan(X), None, X.astype(object)),
    "JAX": lambda _: jnp.asarray(X),
    "torch": lambda _: pytest.importorskip("torch").tensor(X),
    "memory map": lambda folder: memory_map(folder, X),
    "Dask array": lambda _: da.from_array(X, chunks=(2000, 2)),
}
BATCHES: dict[str, Callable[[Path], Any]] = {
    "list of batches": lambda _: [array_batch(cut) for cut in CUTS],
    "stream of batches": lambda _: Stream(array_batch),
}
FRAMES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: FRAME,
    "pandas with gaps": lambda _: FRAME.convert_dtypes(),
    "pandas of pyarrow": lambda _: FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "pandas objects": lambda _: FRAME.astype(object),
    "pandas with an index": lambda _: FRAME.set_axis(np.arange(N)[::-1], axis=0),
    "polars": lambda _: pl.from_pandas(FRAME),
    "pyarrow": lambda _: ARROW,
    "record batch": lambda _: ARROW.combine_chunks().to_batches()[0],
    "dataset in memory": lambda _: ds.dataset(ARROW),
    "Parquet file": lambda folder: parquet_folder(folder) and _one_file(folder),
    "Parquet folder": parquet_folder,
    "Parquet files": lambda folder: sorted(map(str, parquet_folder(folder).glob("*.parquet"))),
    "URI": lambda folder: _one_file(folder).as_uri(),
    "dataset": lambda folder: ds.dataset(sorted(parquet_folder(folder).glob("*.parquet"))),
    "Arrow file": arrow_file,
    "list of frames": lambda _: [frame_batch(cut) for cut in CUTS],
    "stream of frames": lambda _: Stream(frame_batch),
    "Dask frame": lambda _: dd.from_pandas(FRAME, npartitions=3, sort=False),
}


def _one_file(folder: Path) -> Path:
    pq.write_table(ARROW, folder / "all.parquet", row_group_size=1000)
    return folder / "all.parquet"


def joined(blocks: Iterator[Block] | list[Block]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, targets and weights of all blocks, each of which has the shapes it must have."""
    found = list(blocks)
    for block in found:
        n = block.table.n_rows
        assert 0 < n <= BLOCK_ROWS
        assert block.table.matrix.shape == (n, block.table.n_columns)
        assert block.targets.shape[0] == n
        assert block.weights.shape == (n,)
        for values in (block.table.matrix, block.targets, block.weights):
            assert to_numpy(values).dtype == np.float64
    return (
        np.concatenate([to_numpy(block.table.matrix) for block in found]),
        np.concatenate([to_numpy(block.targets) for block in found]),
        np.concatenate([to_numpy(block.weights) for block in found]),
    )


def check_contract(source: Source, targets: np.ndarray, weights: np.ndarray) -> None:
    """All rows come in order, again, in any order of the pieces, and after pickling."""
    assert source.n_features == 3
    assert source.n_targets == targets.shape[1]
    for opened in (source, source, pickle.loads(pickle.dumps(source))):
        found = joined(in_order(opened))
        np.testing.assert_array_equal(found[0], X)
        np.testing.assert_array_equal(found[1], targets)
        np.testing.assert_array_equal(found[2], weights)
        opened.check_unchanged()
    backwards = [list(source.read(piece)) for piece in reversed(range(source.n_pieces))]
    again = joined([block for blocks in reversed(backwards) for block in blocks])
    np.testing.assert_array_equal(again[0], X)
    assert all(block.table.names == source.feature_names for block in in_order(source))
    if source.in_memory:
        np.testing.assert_array_equal(joined([source.block])[0], X)  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", ARRAYS)
def test_arrays(form: str, tmp_path: Path) -> None:
    table = ARRAYS[form](tmp_path)
    one = open_source(table, Y[:, 0], W)
    check_contract(one, Y[:, :1], W)
    assert one.single_target
    several = open_source(table, Y)
    check_contract(several, Y, np.ones(N))
    assert not several.single_target
    check_contract(open_features(table), np.empty((N, 0)), np.ones(N))
    assert (one.feature_names, one.target_names) == (None, None)


@pytest.mark.parametrize("form", BATCHES)
def test_batches(form: str, tmp_path: Path) -> None:
    batches = BATCHES[form](tmp_path)
    source = open_source(batches)
    check_contract(source, Y[:, :1], W)
    assert source.single_target
    check_contract(open_features(batches), np.empty((N, 0)), np.ones(N))


@pytest.mark.parametrize("form", FRAMES)
def test_tables_with_names(form: str, tmp_path: Path) -> None:
    table = FRAMES[form](tmp_path)
    one = open_source(table, "price", "count", features=NAMES)
    check_contract(one, Y[:, :1], W)
    assert (one.feature_names, one.target_names, one.single_target) == (NAMES, ("price",), True)
    several = open_source(table, ["price", "tax"], "count")
    check_contract(several, Y, W)
    assert several.target_names == ("price", "tax")
    assert (several.feature_names, several.single_target) == (NAMES, False)
    alone = open_features(table, features=NAMES)
    check_contract(alone, np.empty((N, 0)), np.ones(N))
    assert (alone.target_names, alone.single_target) == (None, False)
    assert open_features(table).feature_names == (*NAMES, "price", "tax", "count")


# Columns of every kind

DAYS = [datetime.datetime(2024, 1, 1), None, datetime.datetime(2024, 2, 29, 12)]
KINDS: dict[str, list[Any]] = {
    "size": [1.5, None, -2.0],
    "colour": ["red", None, "blue"],
    "day": DAYS,
    "spell": [None if day is None else day - datetime.datetime(2024, 1, 1) for day in DAYS],
    "flag": [True, None, False],
}
MIXED = pa.table({**KINDS, "y": [1.0, 2.0, 3.0]})


def mixed_file(folder: Path) -> Path:
    pq.write_table(MIXED, folder / "mixed.parquet", row_group_size=2)
    return folder / "mixed.parquet"


MIXTURES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: MIXED.to_pandas(),
    "pandas with categories": lambda _: MIXED.to_pandas().astype({"colour": "category"}),
    "polars": lambda _: pl.from_arrow(MIXED),
    "pyarrow": lambda _: MIXED,
    "pyarrow dictionary": lambda _: MIXED.set_column(
        1, "colour", MIXED["colour"].dictionary_encode()
    ),
    "Parquet": mixed_file,
    "batches": lambda _: [MIXED.slice(0, 2), MIXED.slice(2)],
    "Dask": lambda _: dd.from_pandas(MIXED.to_pandas().astype({"flag": "boolean"}), npartitions=2),
    "objects": lambda _: np.array([*zip(*KINDS.values(), strict=True)], dtype=object),
    "lists": lambda _: [list(row) for row in zip(*KINDS.values(), strict=True)],
}


def plain(value: Any) -> Any:
    """A value as Python has it; None where it is missing."""
    if pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.to_pytimedelta() if isinstance(value, pd.Timedelta) else value


@pytest.mark.parametrize("form", MIXTURES)
def test_columns_of_every_kind(form: str, tmp_path: Path) -> None:
    table = MIXTURES[form](tmp_path)
    named = form not in ("objects", "lists")
    source = open_source(table, "y" if named else [1.0, 2.0, 3.0])
    for opened in (source, pickle.loads(pickle.dumps(source))):
        blocks = list(in_order(opened))
        np.testing.assert_array_equal(
            np.concatenate([block.targets for block in blocks])[:, 0], [1.0, 2.0, 3.0]
        )
        for index, expected in enumerate(KINDS.values()):
            found: list[Any] = []
            for block in blocks:
                assert block.table.matrix is None
                assert block.table.names == (tuple(KINDS) if named else None)
                column = block.table.columns[index]
                found += column.tolist() if isinstance(column, np.ndarray) else column.to_list()
            assert [plain(value) for value in found] == expected


# Dask


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_each_dask_partition_is_a_block(kind: str) -> None:
    """Lengths need not be known."""
    if kind == "array":
        source = open_source(
            da.from_array(X, chunks=(1500, 3)), da.from_array(Y, chunks=1000), da.from_array(W)
        )
        expected = Y
    else:
        frame = dd.from_pandas(FRAME, npartitions=3, sort=False)
        frame = frame[frame["size"].isna() | (frame["size"] > -100.0)]
        source = open_source(frame[list(NAMES)], frame["price"], frame["count"])
        expected = Y[:, :1]
        assert (source.target_names, source.single_target) == (("price",), True)
    blocks = dask.compute(*source.partitions())  # type: ignore[attr-defined]
    assert len(blocks) == source.n_pieces > 1
    for values, wanted in zip(joined(list(blocks)), (X, expected, W), strict=True):
        np.testing.assert_array_equal(values, wanted)
