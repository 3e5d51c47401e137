"""What each source of rows outside memory does on its own: files, memory maps, batches, Dask."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from bowtienet._old.data.door import open_features, open_source
from bowtienet._old.data.source import BLOCK_ROWS, in_order


def table(start: int, stop: int, **more: Any) -> pa.Table:
    """Column x counts the rows, z and y are functions of it, w is a weight."""
    x = np.arange(start, stop)
    return pa.table({"x": x, "z": -0.5 * x, "y": x**2.0, "w": 1.0 + x % 3, **more})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of 30 rows in row groups of 12, 12 and 6."""
    path = tmp_path / "rows"
    path.mkdir()
    for i in range(3):
        pq.write_table(table(30 * i, 30 * i + 30), path / f"part-{i}.parquet", row_group_size=12)
    return path


def column(source: Any, index: int = 0) -> np.ndarray:
    """A feature of all rows."""
    return np.concatenate([block.table.matrix[:, index] for block in in_order(source)])


# Parquet and Arrow


def test_row_groups_are_the_pieces(folder: Path) -> None:
    source = open_source(folder, "y", "w", features=np.array(["z", "x"]))
    assert source.feature_names == ("z", "x")
    assert [sum(b.table.n_rows for b in source.read(i)) for i in range(9)] == [12, 12, 6] * 3
    (block,) = source.read(4)
    np.testing.assert_array_equal(block.table.matrix[:, 1], np.arange(42, 54))


def test_hive_folders_are_columns(tmp_path: Path) -> None:
    for year in (2023, 2024):
        for city in ("oslo", "__HIVE_DEFAULT_PARTITION__"):
            path = tmp_path / "trips" / f"year={year}" / f"city={city}"
            path.mkdir(parents=True)
            pq.write_table(table(0, 4), path / "a.parquet")
    for X in (tmp_path / "trips", ds.dataset(tmp_path / "trips", partitioning="hive")):
        source = open_source(X, "y", "w")
        assert source.feature_names == ("x", "z", "year", "city")
        found = [block.table for block in in_order(source)]
        # A folder without a value is a column of missing values, so such a block is all numbers.
        assert all(np.isnan(t.matrix[:, 3]).all() for t in found[::2])
        assert [t.columns[3].to_list() for t in found[1::2]] == [["oslo"] * 4] * 2
        years = [b.targets for b in in_order(open_source(X, "year", features=["x"]))]
        np.testing.assert_array_equal(np.concatenate(years)[:, 0], np.repeat([2023.0, 2024.0], 8))
        with pytest.raises(ValueError, match="'city'"):
            list(in_order(open_source(X, "city")))


def test_other_forms_of_datasets(folder: Path) -> None:
    part = next(ds.dataset(folder / "part-0.parquet").get_fragments()).subset(row_group_ids=[1])
    some = ds.FileSystemDataset([part], part.physical_schema, part.format, part.filesystem)
    np.testing.assert_array_equal(column(open_features(some)), np.arange(12, 24))
    union = ds.dataset([ds.dataset(folder / f"part-{i}.parquet") for i in range(3)])
    np.testing.assert_array_equal(column(open_features(union)), np.arange(90))
    with pytest.raises(ValueError, match="filter"):
        open_features(ds.dataset(folder).filter(ds.field("x") > 3))


def test_relative_paths_are_read_from_any_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    sources = [open_features(X) for X in ("part-0.parquet", ds.dataset("part-0.parquet"))]
    monkeypatch.chdir(folder.parent)
    for source in sources:
        np.testing.assert_array_equal(column(source), np.arange(30.0))


def test_memory_is_bounded_by_a_row_group(tmp_path: Path) -> None:
    """Twenty row groups of 0.8 MB each: Arrow never holds more than a few of them."""
    rng = np.random.default_rng(0)
    X = pa.table({f"x{i}": rng.normal(size=200_000) for i in range(10)})
    pq.write_table(X, tmp_path / "many.parquet", row_group_size=10_000)
    del X
    source = open_source(tmp_path / "many.parquet", "x0")
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in in_order(source)]
    assert len(held) == 20
    assert max(held) < 3e6


def test_files_without_rows_and_the_unnamed_index_of_pandas(folder: Path) -> None:
    pq.write_table(table(0, 0), folder / "empty.parquet")
    frame = table(90, 99).to_pandas().sample(frac=1.0, random_state=0)
    frame.to_parquet(folder / "part-3.parquet")
    assert "__index_level_0__" in pq.read_schema(folder / "part-3.parquet").names
    source = open_source(folder, "y", "w")
    assert source.feature_names == ("x", "z")
    np.testing.assert_array_equal(np.sort(column(source)), np.arange(99))


def test_blocks_are_no_longer_than_allowed(tmp_path: Path) -> None:
    long = table(0, BLOCK_ROWS + 1000)
    path = tmp_path / "long.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, long.schema) as writer:
        writer.write_batch(long.combine_chunks().to_batches()[0])
    x = np.arange(float(len(long)))
    frame = dd.from_pandas(long.to_pandas(), npartitions=1)
    for X in (path, [(x[:, None], x)], frame):
        lengths = [block.table.n_rows for block in open_features(X).read(0)]
        assert lengths == [BLOCK_ROWS, 1000]


def test_types_of_numbers_and_orders_of_columns_may_differ(folder: Path) -> None:
    """pyarrow itself would cut 59.5 to 59, the type of the first file."""
    other = table(60, 89, x=np.arange(60, 89) - 0.5).select(list("wyzx"))
    pq.write_table(other, folder / "part-2.parquet")
    np.testing.assert_array_equal(
        column(open_source(folder, "y", "w"))[60:], np.arange(60, 89) - 0.5
    )


@pytest.mark.parametrize(
    ("third", "name"),
    [
        (table(0, 3).drop_columns("z"), "z"),
        (table(0, 3).drop_columns("y"), "y"),
        (table(0, 3, y=["a", "b", "c"]), "y"),
        (table(0, 3, w=pa.array([1, 2, 3], pa.date32())), "sample_weight"),
        (table(0, 3, z=[[1.0], [2.0], []]), "z"),
        (table(0, 3, more=[1, 2, 3]), "more"),
    ],
)
def test_a_third_file_with_other_columns(third: pa.Table, name: str, folder: Path) -> None:
    """pyarrow itself would give nulls for a missing column."""
    pq.write_table(third, folder / "part-2.parquet")
    with pytest.raises(ValueError, match=rf"part-2\.parquet.*{name}"):
        list(in_order(open_source(folder, "y", "w")))


@pytest.mark.parametrize(
    ("name", "values", "match"),
    [
        ("z", [1.0, np.inf, 2.0, 3.0, 4.0], "'z'"),
        ("y", [1, 2, None, 4, 5], "'y'"),
        ("w", [1.0, 1.0, 1.0, 1.0, None], "sample_weight"),
        ("w", [1.0, -1.0, 1.0, 1.0, 2.0], "sample_weight"),
    ],
)
def test_bad_values_are_told_by_their_place(
    name: str, values: list[Any], match: str, tmp_path: Path
) -> None:
    bad = pa.table(table(0, 5).to_pydict() | {name: values})
    both = pa.concat_tables([table(0, 5), bad], promote_options="permissive")
    pq.write_table(both, tmp_path / "bad.parquet", row_group_size=5)
    source = open_source(tmp_path / "bad.parquet", "y", "w")
    with pytest.raises(ValueError, match=rf"bad\.parquet, row group 1: .*{match}"):
        list(in_order(source))
    for X in ([table(0, 5), bad], dd.from_map(lambda t: t.to_pandas(), [table(0, 5), bad])):
        source = open_source(X, "y", "w")
        with pytest.raises(ValueError, match=rf"(batch|partition) 1: .*{match}"):
            list(in_order(source))


@pytest.mark.parametrize("kind", ["file", "Dask"])
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"y": "pris"}, "'price'"),
        ({"y": "price", "sample_weight": "rums"}, "'rooms'"),
        ({"y": "price", "features": ["siz"]}, "'size'"),
        ({"y": "price", "features": ["price"]}, "'price'"),
        ({"y": ["price", "price"]}, "'price'"),
        ({"y": "price", "features": "size"}, "features"),
        ({"y": "price", "features": []}, r"feature\(s\)"),
        ({"y": ["price", "size", "rooms"]}, r"feature\(s\)"),
        ({"y": np.ones(2)}, "y "),
        ({"y": "price", "sample_weight": np.ones(2)}, "sample_weight"),
    ],
)
def test_bad_names(arguments: dict[str, Any], match: str, kind: str, tmp_path: Path) -> None:
    houses = pa.table({"price": [1.0, 2.0], "size": [1, 2], "rooms": [3, 4]})
    pq.write_table(houses, tmp_path / "houses.parquet")
    X = tmp_path if kind == "file" else dd.from_pandas(houses.to_pandas(), npartitions=1)
    with pytest.raises(ValueError, match=match):
        open_source(X, **arguments)


def damaged(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda f: f / "none.parquet", "none.parquet"),
        (lambda f: (f / "none.parquet").as_uri(), "none.parquet"),
        (lambda f: damaged(f / "part-1.parquet", b"PAR1PAR1PAR1") and f, "part-1.parquet"),
        (lambda f: damaged(f / "rows.csv", b"x,y\n1,2\n"), "rows.csv"),
        (lambda f: (f / "sub").mkdir() or f / "sub", "sub"),
        (lambda f: [f / "part-0.parquet", f], "rows"),
        (lambda f: feather.write_feather(table(0, 3), f / "more.feather") or f, "both"),
        (lambda f: pq.write_table(table(0, 0), f / "e.parquet") or f / "e.parquet", "e.parquet"),
        (lambda _: table(0, 3).to_reader(), "Reader"),
        (lambda f: ds.dataset(f).scanner(), "Scanner"),
    ],
)
def test_files_that_cannot_be_read(make: Callable[[Path], Any], match: str, folder: Path) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=match):
        open_source(make(folder), "y")


def test_files_that_go_bad(folder: Path) -> None:
    """Bytes are damaged before the first file is opened; others change or go after that."""
    content = bytearray((folder / "part-0.parquet").read_bytes())
    content[4:40] = b"\xff" * 36
    damaged(folder / "part-0.parquet", bytes(content))
    source = open_source(folder, "y", "w")
    pq.write_table(table(0, 100), folder / "part-1.parquet", row_group_size=12)
    (folder / "part-2.parquet").unlink()
    for piece, name in ((0, "part-0"), (3, "part-1"), (8, "part-2")):
        for opened in (source, pickle.loads(pickle.dumps(source))):
            with pytest.raises(ValueError, match=name):
                next(opened.read(piece))
    with pytest.raises(ValueError, match="part-1"):
        source.check_unchanged()


# Memory maps


def mapped(path: Path, values: np.ndarray) -> np.memmap:
    values.tofile(path)
    return np.memmap(path, dtype=values.dtype, mode="r", shape=values.shape)


def looked_at(source: Any) -> tuple[bool, float]:
    """Whether another process maps the file too, and what it reads."""
    base = source._arrays[0]
    while not isinstance(base, np.memmap) and base is not None:
        base = getattr(base, "base", None)
    return base is not None, float(column(source).sum())


@pytest.mark.parametrize("view", [np.s_[:, :], np.s_[1000:9000, :], np.s_[::3, ::2], np.s_[::-1]])
def test_a_map_is_not_copied_to_other_processes(view: Any, tmp_path: Path) -> None:
    X = mapped(tmp_path / "x", np.arange(40_000.0).reshape(10_000, 4))[view]
    source = open_features(X)
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(looked_at)(source) for _ in range(2))
    assert found == [(True, X[:, 0].sum())] * 2


def test_bad_values_of_a_map_are_told_by_their_rows(tmp_path: Path) -> None:
    values, y = np.ones((9000, 3)), np.ones(9000)
    values[5000, 2] = np.inf
    y[8999] = np.nan
    source = open_source(mapped(tmp_path / "x", values), y)
    with pytest.raises(ValueError, match=r"rows 4096 to 8191 .*column 2"):
        next(source.read(1))
    with pytest.raises(ValueError, match=r"rows 8192 to 8999 .*target 0"):
        next(source.read(2))
    for bad in ("y", y[1:], ["a"] * 9000):
        with pytest.raises(ValueError, match=r"y |target 0"):
            open_source(mapped(tmp_path / "x", values), bad)


# Batches


class Stream:
    """Batches of a list that may be exchanged between passes."""

    def __init__(self, *batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)


class SameAgain:
    """Something that looks as if it could be read again."""

    def __init__(self) -> None:
        self.batches = iter([batch(0, 3)])

    def __iter__(self) -> Iterator[Any]:
        return self.batches


def batch(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(float(start), stop)
    return np.column_stack([x, -0.5 * x]), x**2


NAMED = pd.DataFrame({"x": [1.0], "z": [2.0]})


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        (batch(0, 4), (np.ones((2, 3)), np.ones(2)), "n_features = 3"),
        (batch(0, 4), (np.ones((2, 2)), np.ones((2, 2))), "n_targets = 2"),
        (batch(0, 4), (np.ones((2, 2)), np.ones((2, 1))), "single_target"),
        (batch(0, 4), np.ones((2, 2)), "n_targets = 0"),
        (batch(0, 4), (np.ones((3, 2)), np.ones(2)), "y has 2"),
        (batch(0, 4), (np.ones((0, 2)), np.ones(2)), r"0 sample\(s\)"),
        (batch(0, 4), (np.ones((2, 2)), np.ones(2), np.ones(3)), "sample_weight has 3"),
        (batch(0, 4), (NAMED, [1.0]), "feature_names"),
        (batch(0, 4), {"X": np.ones((2, 2))}, "dict"),
        (batch(0, 4), (1, 2, 3, 4), "4 parts"),
        (batch(0, 4), None, "NoneType"),
        ((NAMED, [1.0]), (NAMED[["z", "x"]], [1.0]), "feature_names"),
        ((NAMED, NAMED[["x"]]), (NAMED, NAMED[["z"]]), "target_names"),
    ],
)
def test_a_batch_that_is_not_as_the_first(first: Any, second: Any, match: str) -> None:
    """Batches are counted from 0, and the empty batch 1 counts too."""
    source = open_source([first, batch(4, 4), second])
    with pytest.raises(ValueError, match=f"batch 2.*{match}"):
        list(in_order(source))


@pytest.mark.parametrize(
    "make", [lambda: (b for b in [batch(0, 3)]), lambda: iter([batch(0, 3)]), SameAgain]
)
def test_batches_that_can_be_read_only_once(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="only once"):
        open_source(make())


def test_targets_and_weights_come_with_the_batches() -> None:
    for nothing in (Stream(), [batch(0, 0)]):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            open_source(nothing)
    with pytest.raises(ValueError, match="sample_weight"):
        open_source([batch(0, 3)], None, np.ones(3))
    with pytest.raises(ValueError, match="y is None"):
        open_source([batch(0, 3)[0]])
    nested = open_source([([[1, 2], [3, 4]], [5, 6]), [[[1.5, 2]], [7]]])
    np.testing.assert_array_equal(column(nested), [1.0, 3.0, 1.5])


# Dask


def test_empty_partitions_have_no_blocks() -> None:
    frame = dd.from_pandas(table(0, 20).to_pandas(), npartitions=2)
    source = open_source(frame[frame["x"] >= 15], "y", "w")
    assert source.n_pieces == 2
    assert list(source.read(0)) == []
    np.testing.assert_array_equal(column(source), np.arange(15, 20))
    assert source.partitions()[0].compute().table.n_columns == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("y", "weights", "match"),
    [
        (np.ones(9), None, "y has 9"),
        (da.ones(9), None, "y has 9"),
        (da.ones((10, 1, 1)), None, "y must have shape"),
        (dd.from_pandas(pd.Series(np.ones(10)), npartitions=3), None, "3 partitions"),
        (np.ones(10), np.ones(9), "sample_weight has 9"),
    ],
)
def test_dask_partitions_that_do_not_fit(y: Any, weights: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        open_source(da.ones((10, 2), chunks=(5, 1)), y, weights)
