"""Sources of rows: what they give, that they give it again, and what they refuse."""

from __future__ import annotations

import decimal
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowtienet.data.rows import Rows, split
from bowtienet.data.sources import (
    BLOCK_ROWS,
    ArraySource,
    ArrowSource,
    BatchSource,
    RowSample,
    Source,
    in_order,
    open_source,
    shuffled,
)


def opened(*arguments: Any, **settings: Any) -> Source:
    source = open_source(*arguments, **settings)
    assert source is not None
    return source


def joined(blocks: Iterator[Rows]) -> Rows:
    found = list(blocks)
    for block in found:
        n = block.inputs.shape[0]
        assert 0 < n <= BLOCK_ROWS
        assert block.targets.shape[0] == n
        assert block.weights.shape == (n,)
        for values in (block.inputs, block.targets, block.weights):
            assert type(values) is np.ndarray
            assert values.dtype == np.float64
    return Rows(
        inputs=np.concatenate([block.inputs for block in found]),
        targets=np.concatenate([block.targets for block in found]),
        weights=np.concatenate([block.weights for block in found]),
    )


def table(start: int, stop: int, **more: Any) -> pa.Table:
    """Column x counts the rows, z and y are functions of it, w is a weight."""
    x = np.arange(start, stop)
    columns = {"x": x, "z": -0.5 * x, "y": x**2.0, "w": 1.0 + x % 3}
    return pa.table({**columns, **more})


def assert_counted(rows: Rows, n: int) -> None:
    """That `rows` are those of `table(0, n)`, with x and z as inputs and y as target."""
    x = np.arange(float(n))
    np.testing.assert_array_equal(rows.inputs, np.column_stack([x, -0.5 * x]))
    np.testing.assert_array_equal(rows.targets, x[:, None] ** 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of 30 rows in row groups of 12, 12 and 6, besides files that are no data."""
    path = tmp_path / "rows"
    path.mkdir()
    for i in range(3):
        pq.write_table(table(30 * i, 30 * i + 30), path / f"part-{i}.parquet", row_group_size=12)
    (path / "_SUCCESS").write_text("")
    (path / ".part-0.parquet.crc").write_text("no data")
    (path / "readme.txt").write_text("no data")
    return path


# Parquet and Arrow


def test_row_groups_of_all_files_are_the_pieces(folder: Path) -> None:
    source = opened(folder, "y", "w")
    assert isinstance(source, ArrowSource)
    assert source.input_names == ("x", "z")
    assert source.target_names == ("y",)
    assert (source.n_inputs, source.n_targets, source.single_target) == (2, 1, True)
    assert source.n_pieces == 9
    assert [len(joined(source.read(i)).weights) for i in range(9)] == [12, 12, 6] * 3
    for _ in range(2):
        rows = joined(in_order(source))
        assert_counted(rows, 90)
        np.testing.assert_array_equal(rows.weights, 1.0 + np.arange(90) % 3)
    np.testing.assert_array_equal(joined(source.read(4)).inputs[:, 0], np.arange(42, 54))


@pytest.mark.parametrize("form", ["str", "path", "relative", "dataset", "files", "union"])
def test_every_way_to_name_the_files(
    form: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    files = [str(folder / f"part-{i}.parquet") for i in range(3)]
    X = {
        "str": str(folder),
        "path": folder,
        "relative": "rows",
        "dataset": ds.dataset(files),
        "files": files,
        "union": ds.dataset([ds.dataset(file) for file in files]),
    }[form]
    source = opened(X, "y", inputs=["x", "z"])
    monkeypatch.chdir(folder)
    assert_counted(joined(in_order(source)), 90)


def test_a_uri(folder: Path) -> None:
    """Other storage is reached through one; all files of a folder there must be Parquet."""
    (folder / "readme.txt").unlink()
    for X, n in ((folder, 90), (folder / "part-0.parquet", 30)):
        assert_counted(joined(in_order(opened(X.as_uri(), "y", "w"))), n)
    with pytest.raises(ValueError, match=r"none.parquet cannot be read"):
        open_source((folder / "none.parquet").as_uri(), "y")


def test_a_dataset_with_relative_paths_is_read_from_any_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    source = opened(ds.dataset("part-0.parquet"), "y", "w")
    monkeypatch.chdir(folder.parent)
    assert_counted(joined(in_order(source)), 30)


def test_a_pickled_source_reads_in_another_process(folder: Path) -> None:
    source = opened(folder, "y")
    joined(in_order(source))
    code = (
        "import pickle, sys; source = pickle.load(sys.stdin.buffer);"
        "print(sum(rows.targets.sum() for i in range(source.n_pieces) for rows in source.read(i)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(source), capture_output=True, check=True
    )
    assert float(found.stdout) == np.sum(np.arange(90.0) ** 2)


def test_only_the_columns_that_are_needed_are_read(folder: Path, tmp_path: Path) -> None:
    """A text column is no hindrance if it is not wanted, and inputs keep the order asked for."""
    path = tmp_path / "text.parquet"
    pq.write_table(table(0, 5, city=list("abcde")), path)
    source = opened(path, ["y"], inputs=["z", "x"])
    rows = joined(in_order(source))
    np.testing.assert_array_equal(rows.inputs[:, 1], np.arange(5.0))
    assert source.input_names == ("z", "x")
    assert source.single_target is False
    with pytest.raises(ValueError, match=r"text.parquet has no numbers in 'city' \(string\): enc"):
        open_source(path, "y")


def test_without_targets_for_prediction(folder: Path) -> None:
    source = opened(folder, inputs=["z"])
    assert (source.n_targets, source.target_names, source.single_target) == (0, None, False)
    rows = joined(in_order(source))
    assert rows.inputs.shape == (90, 1)
    assert rows.targets.shape == (90, 0)
    np.testing.assert_array_equal(rows.weights, 1.0)
    assert opened(folder).input_names == ("x", "z", "y", "w")


def test_several_targets(folder: Path) -> None:
    source = opened(folder, ["y", "z"], "w")
    rows = joined(in_order(source))
    assert source.input_names == ("x",)
    assert source.target_names == ("y", "z")
    np.testing.assert_array_equal(rows.targets[:, 1], -0.5 * np.arange(90))


def test_hive_folders_are_columns_if_they_are_numbers(tmp_path: Path) -> None:
    for year in (2023, 2024):
        for city in ("oslo", "rome"):
            path = tmp_path / "trips" / f"year={year}" / f"city={city}"
            path.mkdir(parents=True)
            pq.write_table(table(0, 4), path / "a.parquet")
    source = opened(tmp_path / "trips", "y", "w")
    assert source.input_names == ("x", "z", "year")
    np.testing.assert_array_equal(
        joined(in_order(source)).inputs[:, 2], np.repeat([2023.0, 2024.0], 8)
    )
    hive = ds.dataset(tmp_path / "trips", partitioning="hive")
    year = opened(hive, "year", inputs=["x"])
    np.testing.assert_array_equal(joined(in_order(year)).targets[[0, 15], 0], [2023, 2024])
    with pytest.raises(ValueError, match=r"year=2023.city=oslo.a.parquet has no numbers in 'city'"):
        open_source(hive, "y", inputs=["city"])


def test_a_hive_folder_without_value_is_refused(tmp_path: Path) -> None:
    for year in ("2023", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(table(0, 4), tmp_path / f"year={year}" / "a.parquet")
    with pytest.raises(ValueError, match="year=None"):
        open_source(tmp_path, "y", inputs=["year"])


def test_all_kinds_of_numbers(tmp_path: Path) -> None:
    large = 2**62 + 1
    X = pa.table(
        {
            "half": np.array([0.5, 1.5], dtype=np.float16),
            "single": np.array([0.1, 0.2], dtype=np.float32),
            "whole": pa.array([large, -large]),
            "natural": pa.array([2**64 - 1, 0], pa.uint64()),
            "tiny": pa.array([-1, 2], pa.int8()),
            "flag": [True, False],
            "price": pa.array([decimal.Decimal("1.25"), decimal.Decimal("-3.50")]),
            "with.dot": [7.0, 8.0],
        }
    )
    pq.write_table(X, tmp_path / "a.parquet")
    feather.write_feather(X, tmp_path / "a.feather")
    expected = [
        [0.5, float(np.float32(0.1)), float(large), 2.0**64, -1.0, 1.0, 1.25, 7.0],
        [1.5, float(np.float32(0.2)), -float(large), 0.0, 2.0, 0.0, -3.5, 8.0],
    ]
    for source in (
        opened(tmp_path / "a.parquet"),
        opened(tmp_path / "a.feather"),
        opened(X, inputs=X.column_names),
        opened(X, "with.dot"),
    ):
        found = joined(in_order(source))
        both = np.concatenate([found.inputs, found.targets], axis=1)
        np.testing.assert_array_equal(both, expected)


@pytest.mark.parametrize("suffix", ["arrow", "feather"])
def test_record_batches_of_arrow_files_are_the_pieces(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{suffix}"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table(0, 1).schema) as writer:
        for start in (0, 10, 20):
            writer.write_table(table(start, start + 10))
        writer.write_table(table(0, 0))
    for X in (path, tmp_path):
        source = opened(X, "y", "w")
        assert source.n_pieces == 3
        assert_counted(joined(in_order(pickle.loads(pickle.dumps(source)))), 30)
        np.testing.assert_array_equal(joined(source.read(1)).inputs[:, 0], np.arange(10, 20))


def test_arrow_batches_longer_than_a_block_are_cut(tmp_path: Path) -> None:
    n = BLOCK_ROWS + 1000
    path = tmp_path / "long.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table(0, 1).schema) as writer:
        writer.write_batch(table(0, n).combine_chunks().to_batches()[0])
    source = opened(path, "y", "w")
    assert source.n_pieces == 1
    assert [len(rows.weights) for rows in source.read(0)] == [BLOCK_ROWS, 1000]
    assert_counted(joined(source.read(0)), n)


@pytest.mark.parametrize("form", ["table", "batch", "tables", "batches", "dataset"])
def test_tables_in_memory_are_cut_into_slices(form: str) -> None:
    whole = table(0, 10_000)
    halves = [whole.slice(0, 5000), whole.slice(5000)]
    batches = [half.combine_chunks().to_batches()[0] for half in halves]
    X = {
        "table": whole,
        "batch": whole.combine_chunks().to_batches()[0],
        "tables": halves,
        "batches": batches,
        "dataset": ds.dataset(whole),
    }[form]
    source = opened(X, "y", "w")
    assert source.n_pieces == (3 if form in ("table", "batch", "dataset") else 4)
    assert_counted(joined(in_order(pickle.loads(pickle.dumps(source)))), 10_000)


def test_a_dataset_that_leaves_row_groups_out(folder: Path) -> None:
    fragment = next(ds.dataset(folder / "part-0.parquet").get_fragments())
    part = fragment.subset(row_group_ids=[1])
    X = ds.FileSystemDataset([part], part.physical_schema, part.format, part.filesystem)
    rows = joined(in_order(opened(X, "y", "w")))
    np.testing.assert_array_equal(rows.inputs[:, 0], np.arange(12, 24))


def test_names_of_inputs_may_be_an_array(folder: Path) -> None:
    assert opened(folder, "y", inputs=np.array(["z", "x"])).input_names == ("z", "x")


def test_other_formats_of_pyarrow_datasets(tmp_path: Path) -> None:
    for i in range(2):
        pa_csv.write_csv(table(5 * i, 5 * i + 5), tmp_path / f"{i}.csv")
    source = opened(ds.dataset(tmp_path, format="csv"), "y", "w")
    assert source.n_pieces == 2
    assert_counted(joined(in_order(source)), 10)


def test_memory_is_bounded_by_a_row_group(tmp_path: Path) -> None:
    """Twenty row groups of 0.8 MB each: Arrow never holds more than a few of them."""
    path = tmp_path / "many.parquet"
    rng = np.random.default_rng(0)
    X = pa.table({f"x{i}": rng.normal(size=200_000) for i in range(10)})
    pq.write_table(X, path, row_group_size=10_000)
    del X
    source = opened(path, "x0")
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in in_order(source)]
    assert len(held) == 20
    assert max(held) < 3e6


def test_more_files_than_footers_are_kept(tmp_path: Path) -> None:
    for i in range(20):
        pq.write_table(table(3 * i, 3 * i + 3), tmp_path / f"{i:02d}.parquet", row_group_size=2)
    source = opened(tmp_path, "y", "w")
    for _ in range(2):
        assert_counted(joined(in_order(source)), 60)


def test_the_unnamed_index_of_a_frame_is_no_input(tmp_path: Path) -> None:
    frame = table(0, 10).to_pandas().sample(frac=1.0, random_state=0)
    frame.to_parquet(tmp_path / "frame.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "frame.parquet").names
    assert opened(tmp_path, "y", "w").input_names == ("x", "z")


@pytest.mark.parametrize(
    ("third", "message"),
    [
        (table(0, 3).drop_columns("z"), "part-2.parquet has no column 'z', which the first file"),
        (table(0, 3).drop_columns("y"), "part-2.parquet has no column 'y', which the first file"),
        (table(0, 3, z=["a", "b", "c"]), r"part-2.parquet has no numbers in 'z' \(string\)"),
        (table(0, 3, y=pa.array([1, 2, 3], pa.date32())), r"numbers in 'y' \(date32\[day\]\)"),
        (table(0, 3, z=[[1.0], [2.0], []]), r"part-2.parquet has no numbers in 'z' \(list<"),
        (table(0, 3, z=pa.nulls(3)), r"part-2.parquet has no numbers in 'z' \(null\)"),
        (table(0, 3, more=[1, 2, 3]), "part-2.parquet has the column 'more', which the first file"),
    ],
)
def test_a_third_file_with_another_schema(third: pa.Table, message: str, folder: Path) -> None:
    """pyarrow itself would give nulls for a missing column."""
    pq.write_table(third, folder / "part-2.parquet")
    with pytest.raises(ValueError, match=message):
        open_source(folder, "y", "w")


def test_other_number_types_and_orders_of_columns_are_no_other_schema(folder: Path) -> None:
    """pyarrow itself would cut 59.5 to 59, the type of the first file."""
    pq.write_table(
        table(60, 89, x=np.arange(60, 89) - 0.5).select(list("wyzx")), folder / "part-2.parquet"
    )
    inputs = joined(in_order(opened(folder, "y", "w"))).inputs
    np.testing.assert_array_equal(inputs[60:, 0], np.arange(60, 89) - 0.5)


def test_files_without_rows_are_passed_over(folder: Path) -> None:
    pq.write_table(pa.table({"x": pa.nulls(0)}), folder / "part-.parquet")
    pq.write_table(table(0, 0), folder / "part-3.parquet")
    source = opened(folder, "y", "w")
    assert source.n_pieces == 9
    assert_counted(joined(in_order(source)), 90)


def test_no_rows_at_all(tmp_path: Path) -> None:
    pq.write_table(table(0, 0), tmp_path / "none.parquet")
    with pytest.raises(ValueError, match=r"none.parquet has no rows"):
        open_source(tmp_path / "none.parquet", "y")
    with pytest.raises(ValueError, match="X has no rows"):
        open_source(table(0, 0), "y")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("z", [1.0, None, None, np.nan, 5.0], r"column 'z' \(3 NaN\): impute"),
        ("z", [1.0, np.inf, 2.0, 3.0, -np.inf], r"column 'z' \(2 infinite\)"),
        ("y", [1, 2, None, 4, 5], r"target 'y' \(1 NaN\)"),
        ("w", [1.0, 1.0, 1.0, 1.0, None], r"the weights \(1 NaN\)"),
        ("w", [1.0, -1.0, 1.0, 1.0, -2.0], "2 of the weights are negative: use 0"),
    ],
)
def test_values_that_are_no_numbers(
    column: str, values: list[Any], message: str, folder: Path
) -> None:
    bad = table(0, 5).to_pydict() | {column: values}
    parts = pa.concat_tables(
        [table(0, 5), table(0, 5), pa.table(bad)], promote_options="permissive"
    )
    pq.write_table(parts, folder / "part-1.parquet", row_group_size=5)
    source = opened(folder, "y", "w")
    with pytest.raises(
        ValueError, match=rf"part-1.parquet, row group 2 \(rows 0 to 4\): .*{message}"
    ):
        joined(in_order(source))
    memory = opened(parts, "y", "w")
    with pytest.raises(ValueError, match=rf"rows 0 to 14 of X: .*{message}"):
        joined(in_order(memory))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": "pris"}, "X has no column 'pris', which y names; did you mean 'price'"),
        ({"y": "qqq"}, "X has no column 'qqq', which y names; there are 'price', 'size', 'rooms'"),
        ({"y": "price", "weights": "rums"}, "'rums', which weights names; .* 'rooms'"),
        ({"y": "price", "inputs": ["siz"]}, "'siz', which inputs names; .* 'size'"),
        ({"y": "price", "inputs": ["price"]}, "'price' is named several times"),
        ({"y": "price", "inputs": ["size", "size"]}, "'size' is named several times"),
        ({"y": ["price", "price"]}, "'price' is named several times"),
        ({"y": "price", "weights": "price"}, "'price' is named several times"),
        ({"y": "price", "inputs": "size"}, "inputs must be a list of names"),
        ({"y": "price", "inputs": []}, "inputs must be a list of names"),
        ({"y": ["price", "size", "rooms"]}, "no columns left for inputs"),
        ({"y": np.ones(2)}, "y must be the name of the target column .* got ndarray"),
        ({"y": "price", "weights": np.ones(2)}, "weights must be the name of a column"),
    ],
)
def test_bad_names(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "houses.parquet"
    pq.write_table(pa.table({"price": [1.0, 2.0], "size": [1, 2], "rooms": [3, 4]}), path)
    with pytest.raises(ValueError, match=message):
        open_source(path, **arguments)


def test_equal_names_are_refused(tmp_path: Path) -> None:
    twice = pa.table([[1.0], [2.0], [3.0]], names=["x", "x", "y"])
    pq.write_table(table(0, 3), tmp_path / "a.parquet")
    pq.write_table(twice, tmp_path / "b.parquet")
    for X, owner in ((tmp_path / "b.parquet", "b.parquet"), (tmp_path, "b.parquet"), (twice, "X")):
        with pytest.raises(ValueError, match=f"{owner} has several columns called 'x': rename"):
            open_source(X, "y", inputs=["x"])


def test_paths_without_rows_in_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"'no/such.parquet', which does not exist: give"):
        open_source("no/such.parquet", "y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty is an empty folder"):
        open_source(tmp_path / "empty", "y")
    (tmp_path / "empty" / "rows.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="empty has no Parquet or Arrow file"):
        open_source(tmp_path / "empty", "y")
    with pytest.raises(ValueError, match=r"rows.csv is no Parquet or Arrow file: write"):
        open_source(tmp_path / "empty" / "rows.csv", "y")


def test_a_damaged_file(folder: Path) -> None:
    file = folder / "part-1.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"part-1.parquet cannot be read"):
        open_source(folder, "y")
    with pytest.raises(ValueError, match=r"part-1.parquet cannot be read"):
        open_source(file, "y")


def test_bytes_that_go_bad_inside_a_file(folder: Path) -> None:
    file = folder / "part-1.parquet"
    content = bytearray(file.read_bytes())
    content[4:40] = b"\xff" * 36
    file.write_bytes(content)
    source = opened(folder, "y", "w")
    with pytest.raises(ValueError, match=r"part-1.parquet, row group 0 cannot be read"):
        joined(in_order(source))


def test_both_kinds_of_files(folder: Path) -> None:
    feather.write_feather(table(0, 3), folder / "more.feather")
    with pytest.raises(ValueError, match="both Parquet and Arrow files"):
        open_source(folder, "y")


def test_a_file_rewritten_while_it_is_read(folder: Path) -> None:
    source = opened(folder, "y", "w")
    source.check_unchanged()
    blocks = in_order(source)
    next(blocks)
    size = (folder / "part-0.parquet").stat().st_size
    pq.write_table(table(0, 100), folder / "part-0.parquet", row_group_size=12)
    now = (folder / "part-0.parquet").stat().st_size
    message = (
        rf"part-0.parquet changed during the fit \(it had {size:,} bytes and has {now:,} now\): "
        "leave the files alone while they are read, and fit again"
    )
    with pytest.raises(ValueError, match=message):
        list(blocks)
    with pytest.raises(ValueError, match=message):
        source.check_unchanged()
    with pytest.raises(ValueError, match=message):
        list(pickle.loads(pickle.dumps(source)).read(0))


def test_a_file_of_the_same_size_with_another_time(folder: Path) -> None:
    source = opened(folder, "y", "w")
    file = folder / "part-2.parquet"
    found = file.stat()
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    with pytest.raises(ValueError, match=r"part-2.parquet changed during the fit \(it was written"):
        source.check_unchanged()
    with pytest.raises(ValueError, match=r"part-2.parquet changed during the fit"):
        next(source.read(8))  # before a single row of it is used


def test_a_file_that_is_gone(folder: Path) -> None:
    source = opened(folder, "y", "w")
    (folder / "part-1.parquet").unlink()
    with pytest.raises(ValueError, match=r"part-1.parquet cannot be read any more"):
        source.check_unchanged()
    with pytest.raises(ValueError, match=r"part-1.parquet cannot be read any more"):
        list(source.read(3))


@pytest.mark.parametrize("form", ["reader", "scanner", "file"])
def test_what_pyarrow_can_read_only_once(form: str, folder: Path) -> None:
    X = {
        "reader": lambda: table(0, 3).to_reader(),
        "scanner": lambda: ds.dataset(folder / "part-0.parquet").scanner(),
        "file": lambda: pq.ParquetFile(folder / "part-0.parquet"),
    }[form]()
    with pytest.raises(ValueError, match=r"cannot be read several times: give the path"):
        open_source(X, "y")


def test_a_filtered_dataset(folder: Path) -> None:
    X = ds.dataset(folder / "part-0.parquet").filter(ds.field("x") > 3)
    with pytest.raises(ValueError, match="dataset with a filter"):
        open_source(X, "y")


def test_pyarrow_is_asked_for_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'bowtienet\[bigdata\]'"):
        open_source(str(folder), "y")


# Memory maps and arrays


def mapped(path: Path, values: np.ndarray, mode: str = "r", **settings: Any) -> np.memmap:
    values.tofile(path)
    return np.memmap(path, dtype=values.dtype, mode=mode, shape=values.shape, **settings)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_, ">f8"])
def test_memory_maps(dtype: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    values = (10.0 * rng.normal(size=(10_000, 3))).astype(dtype)
    y, weights = rng.normal(size=10_000), rng.uniform(size=10_000)
    source = opened(mapped(tmp_path / "x", values), mapped(tmp_path / "y", y), weights)
    assert isinstance(source, ArraySource)
    assert (source.n_inputs, source.n_targets, source.single_target) == (3, 1, True)
    assert (source.input_names, source.target_names) == (None, None)
    assert source.n_pieces == 3
    rows = joined(in_order(source))
    np.testing.assert_array_equal(rows.inputs, values.astype(np.float64))
    np.testing.assert_array_equal(rows.targets[:, 0], y)
    np.testing.assert_array_equal(rows.weights, weights)
    np.testing.assert_array_equal(joined(source.read(2)).inputs, values[8192:].astype(float))


def test_memory_maps_without_targets_and_with_several(tmp_path: Path) -> None:
    X = mapped(tmp_path / "x", np.ones((5, 2)))
    rows = joined(in_order(opened(X)))
    assert rows.targets.shape == (5, 0)
    np.testing.assert_array_equal(rows.weights, 1.0)
    source = opened(X, np.arange(10.0).reshape(5, 2))
    assert (source.n_targets, source.single_target) == (2, False)
    np.testing.assert_array_equal(joined(in_order(source)).targets[4], [8.0, 9.0])


@pytest.mark.parametrize(
    "view",
    [
        np.s_[:, :],
        np.s_[1000:9000, :],
        np.s_[::3, ::2],
        np.s_[::-1, 1:],
        np.s_[5:50, ::-1],
    ],
)
def test_a_pickled_map_is_its_place_in_the_file(
    view: Any, tmp_path: Path, rng: np.random.Generator
) -> None:
    values = rng.normal(size=(10_000, 4))
    path = tmp_path / "x"
    path.write_bytes(b"head" * 4 + values.tobytes())
    X = np.memmap(path, dtype=np.float64, mode="r", shape=values.shape, offset=16)[view]
    source = opened(X, np.ones(len(X)))
    small = pickle.dumps(opened(X))
    assert len(small) < 2_000
    for copy in (pickle.loads(small), pickle.loads(pickle.dumps(source))):
        np.testing.assert_array_equal(joined(in_order(copy)).inputs, values[view])
        np.testing.assert_array_equal(
            joined(in_order(pickle.loads(pickle.dumps(copy)))).inputs, values[view]
        )


def test_columns_of_a_fortran_map(tmp_path: Path, rng: np.random.Generator) -> None:
    values = rng.normal(size=(3, 100))
    values.tofile(tmp_path / "x")
    X = np.memmap(tmp_path / "x", dtype=float, mode="r", shape=(100, 3), order="F")
    copy = pickle.loads(pickle.dumps(opened(X)))
    np.testing.assert_array_equal(joined(in_order(copy)).inputs, values.T)


def test_what_was_written_to_a_private_map_is_kept(tmp_path: Path) -> None:
    X = mapped(tmp_path / "x", np.zeros((4, 2)), mode="c")
    X[1] = 5.0
    copy = pickle.loads(pickle.dumps(opened(X)))
    np.testing.assert_array_equal(joined(in_order(copy)).inputs, X)


def test_arrays_in_memory_are_not_copied(rng: np.random.Generator) -> None:
    X = rng.normal(size=(9000, 2))
    source = ArraySource(X, X[:, 0])
    assert all(np.shares_memory(rows.inputs, X) for rows in in_order(source))
    assert_same(joined(in_order(pickle.loads(pickle.dumps(source)))), joined(in_order(source)))
    source.check_unchanged()


def test_a_file_of_a_map_that_changes(tmp_path: Path) -> None:
    source = opened(mapped(tmp_path / "x.bin", np.ones((5000, 2))), np.ones(5000))
    blocks = in_order(source)
    next(blocks)
    with (tmp_path / "x.bin").open("ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=r"x.bin changed during the fit .it had 80,000 bytes"):
        list(blocks)
    with pytest.raises(ValueError, match=r"x.bin changed"):
        source.check_unchanged()


def test_only_a_map_that_is_not_written_to_keeps_its_time(tmp_path: Path) -> None:
    reading = opened(mapped(tmp_path / "r", np.ones((5, 2))))
    writing = opened(mapped(tmp_path / "w", np.ones((5, 2)), mode="r+"))
    for name in ("r", "w"):
        found = (tmp_path / name).stat()
        os.utime(tmp_path / name, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    writing.check_unchanged()
    with pytest.raises(ValueError, match=r"r changed during the fit \(it was written to"):
        reading.check_unchanged()


def test_holes_in_a_map_are_named_by_rows_and_column(tmp_path: Path) -> None:
    values = np.ones((9000, 3))
    values[5000, 2], values[6000, 2], values[7000, 1] = np.nan, np.inf, np.nan
    source = opened(mapped(tmp_path / "x", values), np.ones(9000))
    message = (
        r"rows 4096 to 8191 of X: .* column 1 \(1 NaN\), column 2 \(1 NaN, 1 infinite\): impute"
    )
    with pytest.raises(ValueError, match=message):
        joined(in_order(source))
    y = np.ones(9000)
    y[8999] = np.nan
    with pytest.raises(ValueError, match=r"rows 8192 to 8999 of X: .* target 0 \(1 NaN\)"):
        joined(in_order(ArraySource(np.ones((9000, 3)), y)))
    with pytest.raises(ValueError, match=r"rows 0 to 2 of X: 1 of the weights are negative"):
        joined(in_order(ArraySource(np.ones((3, 1)), np.ones(3), [1.0, -1.0, 0.0])))


@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        (np.ones(3), None, None, r"X must have shape \(rows, columns\)"),
        (np.ones((0, 2)), None, None, "X has no rows"),
        (np.ones((2, 0)), None, None, "X has no columns"),
        (np.ones((2, 2), dtype=complex), None, None, "X must be an array of real numbers"),
        (np.array([["a"], ["b"]]), None, None, "X must be an array of real numbers"),
        (np.ma.masked_array(np.ones((2, 1))), None, None, "X must not be a masked array"),
        (np.ones((3, 2)), np.ones(4), None, "y has 4 rows, but X has 3"),
        (np.ones((3, 2)), np.ones((3, 1, 1)), None, "y must have shape"),
        (np.ones((3, 2)), np.ones((3, 0)), None, "y has no columns"),
        (np.ones((3, 2)), "name", None, "y must be an array of real numbers"),
        (np.ones((3, 2)), np.ones(3), np.ones(2), "weights has 2 rows, but X has 3"),
        (np.ones((3, 2)), np.ones(3), np.ones((3, 1)), "weights must have shape"),
    ],
)
def test_bad_arrays(X: Any, y: Any, weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArraySource(X, y, weights)


# Batches


class Stream:
    """Batches that are made anew at each pass."""

    def __init__(self, *passes: list[Any]) -> None:
        self.passes, self.count = passes, 0

    def __iter__(self) -> Iterator[Any]:
        self.count += 1
        return iter(self.passes[min(self.count, len(self.passes)) - 1])


def stream(*batches: Any) -> Stream:
    return Stream(list(batches))


def batch(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(float(start), stop)
    return np.column_stack([x, -0.5 * x]), x**2


@pytest.mark.parametrize("form", ["list", "tuple", "stream"])
def test_batches(form: str) -> None:
    batches = [batch(0, 4), batch(4, 4), batch(4, 9), (*batch(9, 10), np.array([3.0]))]
    X = {"list": batches, "tuple": tuple(batches), "stream": Stream(batches)}[form]
    source = opened(X)
    assert isinstance(source, BatchSource)
    assert (source.n_inputs, source.n_targets, source.single_target) == (2, 1, True)
    assert (source.n_pieces, source.input_names, source.target_names) == (1, None, None)
    source.check_unchanged()
    for _ in range(3):
        rows = joined(in_order(source))
        assert_counted(rows, 10)
        np.testing.assert_array_equal(rows.weights, [1.0] * 9 + [3.0])
    assert_counted(joined(in_order(pickle.loads(pickle.dumps(source)))), 10)


@pytest.mark.parametrize(
    "convert", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_names_of_frames(convert: Any) -> None:
    def frames(start: int, stop: int) -> tuple[Any, Any]:
        frame = pd.DataFrame(table(start, stop).to_pydict())
        return convert(frame[["x", "z"]]), convert(frame[["y"]])

    source = opened(stream(frames(0, 3), frames(3, 5)))
    assert source.input_names == ("x", "z")
    assert source.target_names == ("y",)
    assert source.single_target is False
    assert_counted(joined(in_order(source)), 5)


def test_batches_of_inputs_alone_of_lists_and_with_single_precision() -> None:
    alone = opened([np.ones((2, 3)), np.zeros((1, 3))])
    assert (alone.n_inputs, alone.n_targets) == (3, 0)
    assert joined(in_order(alone)).targets.shape == (3, 0)
    assert joined(in_order(opened(stream([np.ones((2, 3))])))).inputs.shape == (2, 3)
    lists = opened([([[1, 2], [3, 4]], [5, 6]), [[[1.5, 2]], [7]]])
    np.testing.assert_array_equal(joined(in_order(lists)).targets[:, 0], [5, 6, 7])
    single = opened([(np.full((2, 1), 0.1, dtype=np.float32), np.ones((2, 2), dtype=bool))])
    np.testing.assert_array_equal(joined(in_order(single)).inputs, float(np.float32(0.1)))


def test_long_batches_are_cut() -> None:
    n = 2 * BLOCK_ROWS + 5
    source = opened([batch(0, n)])
    assert [len(rows.weights) for rows in source.read(0)] == [BLOCK_ROWS, BLOCK_ROWS, 5]
    assert_counted(joined(source.read(0)), n)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ((np.ones((2, 3)), np.ones(2)), "batch 2 has 3 columns, but the first has 2"),
        ((np.ones((2, 2)), np.ones((2, 2))), "batch 2 has 2 targets, but the first has 1"),
        ((np.ones((2, 2)), np.ones((2, 1))), r"batch 2 has a y of shape \(rows, outputs\), but"),
        (np.ones((2, 2)), "batch 2 has 0 targets, but the first has 1"),
        ((np.ones((3, 2)), np.ones(2)), r"batch 2 has different .*\(3 in X, 2 in y\)"),
        ((np.ones((2, 2)), np.ones(2), np.ones(3)), r"batch 2 has different .*3 in weights"),
        ((np.ones((0, 2)), np.ones(2)), r"batch 2 has different .*\(0 in X, 2 in y\)"),
        ((np.array([["a", "b"]]), np.ones(1)), "batch 2: X must be an array of real numbers"),
        ((np.ones(2), np.ones(2)), r"batch 2: X must have shape \(rows, columns\), got \(2,\)"),
        ((np.ones((2, 2)), np.ones((2, 2, 1))), "batch 2: y must have shape"),
        ((np.ones((2, 2)), np.ones(2), np.ones((2, 1))), "batch 2: weights must have shape"),
        ((np.ones((2, 2)), np.ones(2), -np.ones(2)), "batch 2: 2 of the weights are negative"),
        ((np.array([[1, np.nan]]), np.ones(1)), r"batch 2: .* in column 1 \(1 NaN\): impute"),
        ((np.ones((1, 2)), np.array([np.inf])), r"batch 2: .* in target 0 \(1 infinite\)"),
        (([[1.0, 2.0], [3.0]], np.ones(2)), "batch 2: X must be a rectangular array"),
        ((pd.DataFrame({"x": [1.0], "z": [2.0]}), [1.0]), "batch 2 has names of columns, but"),
        ({"X": np.ones((2, 2))}, r"batch 2 is of type dict: let it be \(X, y\)"),
        ((1, 2, 3, 4), r"batch 2 has 4 parts: let it be \(X, y\)"),
        ((), r"batch 2 has 0 parts"),
        (None, "batch 2 is of type NoneType"),
    ],
)
def test_a_batch_that_is_not_as_the_first(second: Any, message: str) -> None:
    """Batches are counted from 0, and the empty batch 1 counts too."""
    for X in ([batch(0, 4), batch(4, 4), second], stream(batch(0, 4), batch(4, 4), second)):
        source = opened(X)
        with pytest.raises(ValueError, match=message):
            joined(in_order(source))


def test_frames_with_other_names_or_another_order() -> None:
    first = pd.DataFrame({"x": [1.0], "z": [2.0]})
    for second, message in (
        (first[["z", "x"]], "batch 1 has 'z' where the first has 'x' among its columns"),
        (first.rename(columns={"z": "u"}), "batch 1 has 'u' where the first has 'z'"),
        (first.to_numpy(), "batch 1 has no names of columns, but the first has names"),
    ):
        with pytest.raises(ValueError, match=message):
            joined(in_order(opened([(first, [1.0]), (second, [1.0])])))
    twice = pd.DataFrame(np.ones((1, 2)), columns=["x", "x"])
    with pytest.raises(ValueError, match="batch 0 has several columns called 'x'"):
        open_source([(twice, [1.0])])
    y = pd.DataFrame({"a": [1.0]})
    with pytest.raises(ValueError, match="batch 1 has 'b' where the first has 'a' among its tar"):
        joined(in_order(opened([(first, y), (first, y.rename(columns={"a": "b"}))])))


def test_the_thousandth_batch_is_named_with_its_column() -> None:
    frame = pd.DataFrame({"age": [1.0, 2.0], "height": [3.0, 4.0]})
    hole = frame.assign(height=[np.nan, 1.0])
    source = opened([(frame, [0.0, 1.0])] * 1000 + [(hole, [0.0, 1.0])])
    with pytest.raises(ValueError, match=r"batch 1000: .* column 'height' \(1 NaN\)"):
        joined(in_order(source))


def read_tenfold(values: Any, name: str) -> np.ndarray:
    found = 10.0 * np.asarray(values, dtype=float)
    if np.isnan(found).any():
        raise ValueError(f"{name} has a hole, says the reader")
    return found


def test_a_reader_of_tables() -> None:
    source = opened([batch(0, 3)], read=read_tenfold)
    rows = joined(in_order(pickle.loads(pickle.dumps(source))))
    np.testing.assert_array_equal(rows.inputs[:, 0], [0.0, 10.0, 20.0])
    np.testing.assert_array_equal(rows.targets[:, 0], [0.0, 10.0, 40.0])
    np.testing.assert_array_equal(rows.weights, 1.0)
    hole = (np.ones((1, 2)), np.array([np.nan]))
    with pytest.raises(ValueError, match="batch 1: y has a hole, says the reader"):
        joined(in_order(opened([batch(0, 3), hole], read=read_tenfold)))
    with pytest.raises(ValueError, match="batch 0: y has a hole, says the reader"):
        open_source([hole], read=read_tenfold)


def generator() -> Iterator[Any]:
    yield batch(0, 3)


class SameAgain:
    """Something that looks as if it could be read again."""

    def __init__(self) -> None:
        self.batches = generator()

    def __iter__(self) -> Iterator[Any]:
        return self.batches


@pytest.mark.parametrize("make", [generator, lambda: iter([batch(0, 3)]), SameAgain])
def test_what_can_be_read_only_once(make: Any) -> None:
    with pytest.raises(ValueError, match=r"can be read only once.*: give a list of batches, or"):
        open_source(make())


@pytest.mark.parametrize("X", [stream(), stream(batch(0, 0)), [batch(0, 0)]])
def test_no_batches(X: Any) -> None:
    with pytest.raises(ValueError, match=r"X gave no rows: let it give batches \(X, y\)"):
        open_source(X)


def test_passes_must_have_the_same_number_of_rows() -> None:
    """Opening iterates three times: twice for the iterator alone, once more for each pass."""
    full = [batch(0, 4), batch(4, 8)]
    for later, found in (([batch(0, 4)], "4"), ([*full, batch(8, 9)], "more than 8"), ([], "0")):
        X = Stream(full)
        source = opened(X)
        interrupted = source.read(0)
        next(interrupted)
        interrupted.close()
        assert_counted(joined(source.read(0)), 8)
        X.passes = (later,)
        with pytest.raises(ValueError, match=f"8 rows in the first pass and {found} in a later"):
            list(source.read(0))


def test_an_order_that_differs_between_passes_is_fine() -> None:
    X = Stream([batch(0, 4), batch(4, 8)])
    source = opened(X)
    joined(source.read(0))
    X.passes = ([batch(4, 8), batch(0, 4)],)
    assert joined(source.read(0)).inputs[0, 0] == 4.0


def test_weights_come_with_the_batches() -> None:
    with pytest.raises(ValueError, match="weights must come with the batches"):
        open_source([batch(0, 3)], None, np.ones(3))


# Ordinary tables are left to others

ARRAY = np.ones((3, 2))


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (ARRAY, np.ones(3)),
        (ARRAY, None),
        (ARRAY.tolist(), [1, 2, 3]),
        (ARRAY.tolist(), None),
        (ARRAY.tolist(), ["a", "b", "c"]),
        ([1.0, 2.0], None),
        ([], None),
        ([[]], None),
        ([ARRAY[0], ARRAY[1]], None),
        ([ARRAY, ARRAY], np.ones(2)),
        ([[[1, 2], [3, 4]]], None),
        (pd.DataFrame(ARRAY), None),
        (pd.DataFrame(ARRAY), np.ones(3)),
        (pl.DataFrame(ARRAY), None),
        (table(0, 3), np.ones(3)),
        (table(0, 3), None),
        (table(0, 3).to_batches()[0], None),
        (pd.Series([1, 2]), None),
        (None, None),
        (3.0, None),
        ({"x": [1, 2]}, None),
        ({1, 2}, None),
        (range(3), None),
        (np.float64(3), None),
    ],
)
def test_ordinary_tables_are_no_sources(X: Any, y: Any) -> None:
    assert open_source(X, y) is None


def test_sparse_tables_and_tensors_are_no_sources() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    assert open_source(sparse.csr_matrix(ARRAY)) is None
    jnp = pytest.importorskip("jax.numpy")
    assert open_source(jnp.ones((3, 2))) is None


def test_an_array_is_no_target_of_a_path_and_a_name_none_of_a_frame(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"y must be the name of the target column.* got list"):
        open_source(str(folder), [1.0, 2.0])
    assert open_source(pd.DataFrame({"x": [1.0]}), "x") is None


# Minibatches


def assert_same(first: Rows, second: Rows) -> None:
    np.testing.assert_array_equal(first.inputs, second.inputs)
    np.testing.assert_array_equal(first.targets, second.targets)
    np.testing.assert_array_equal(first.weights, second.weights)


class Cut:
    """Rows 0 ... n - 1 in pieces and blocks of given lengths; all columns are the row's number."""

    def __init__(self, pieces: list[list[int]]) -> None:
        self.n_pieces = len(pieces)
        self.n_rows = sum(map(sum, pieces))
        self.blocks: list[list[Rows]] = []
        start = 0
        for piece in pieces:
            self.blocks.append([])
            for length in piece:
                x = np.arange(float(start), start + length)
                self.blocks[-1].append(Rows(inputs=x[:, None], targets=x[:, None], weights=x + 1.0))
                start += length

    def read(self, piece: int) -> Iterator[Rows]:
        return iter(self.blocks[piece])


cuts = st.lists(st.lists(st.integers(1, 9), max_size=4), min_size=1, max_size=8).map(Cut)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(cuts, st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32))
def test_an_epoch_has_each_row_once(cut: Cut, size: int, pool: int, seed: int) -> None:
    batches = list(shuffled(cut, size, np.random.default_rng(seed), pool))
    lengths = [len(rows.weights) for rows in batches]
    assert all(length == size for length in lengths[:-1])
    assert all(0 < length <= size for length in lengths)
    found = np.concatenate([rows.inputs[:, 0] for rows in batches] or [np.empty(0)])
    np.testing.assert_array_equal(np.sort(found), np.arange(cut.n_rows))
    for rows in batches:
        np.testing.assert_array_equal(rows.targets, rows.inputs)
        np.testing.assert_array_equal(rows.weights, rows.inputs[:, 0] + 1.0)
    again = list(shuffled(cut, size, np.random.default_rng(seed), pool))
    for first, second in zip(batches, again, strict=True):
        assert_same(first, second)


def test_every_place_is_equally_likely() -> None:
    """Position of row 0 among 40, 4000 epochs: the 39-degree chi-square stays below its 1e-6."""
    rng = np.random.default_rng(7)
    cut = Cut([[5], [5], [5], [5], [5], [5], [5], [5]])
    counts = np.zeros(40)
    for _ in range(4000):
        order = joined(shuffled(cut, 10, rng, pool_rows=15)).inputs[:, 0]
        counts[np.flatnonzero(order == 0.0)[0]] += 1
    assert np.sum((counts - 100.0) ** 2 / 100.0) < 96.1


def test_a_pool_mixes_pieces_and_epochs_differ(rng: np.random.Generator) -> None:
    source = ArraySource(np.arange(20_000.0)[:, None])
    first = next(shuffled(source, 256, rng)).inputs[:, 0]
    assert len(np.unique(first // 4096)) == 5
    assert not np.array_equal(first, next(shuffled(source, 256, rng)).inputs[:, 0])


def test_the_pool_bounds_what_is_read_ahead(rng: np.random.Generator) -> None:
    read: list[int] = []

    class Watched(Cut):
        def read(self, piece: int) -> Iterator[Rows]:
            read.append(piece)
            return super().read(piece)

    next(shuffled(Watched([[10]] * 100), 5, rng, pool_rows=40))
    assert len(read) == 4


@pytest.mark.parametrize("size", [0, -1, 1.5, "many"])
def test_bad_batch_sizes(size: Any, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="batch_size must be a whole number"):
        next(shuffled(Cut([[3]]), size, rng))


# Samples


def sampled(blocks: list[Rows], size: int, seed: int) -> RowSample:
    sample, start = RowSample(size, np.random.default_rng(seed)), 0
    for rows in blocks:
        sample.add(rows, start)
        start += len(rows.weights)
    return sample


def numbered(n: int, absent: tuple[int, ...] = ()) -> Rows:
    x = np.arange(float(n))
    weights = np.ones(n)
    weights[list(absent)] = 0.0
    return Rows(inputs=x[:, None], targets=2.0 * x[:, None], weights=weights)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.integers(1, 60),
    st.integers(1, 20),
    st.integers(1, 70),
    st.integers(0, 2**32),
    st.data(),
)
def test_a_sample_does_not_depend_on_the_blocks(
    n: int, size: int, length: int, seed: int, data: st.DataObject
) -> None:
    absent = tuple(data.draw(st.sets(st.integers(0, n - 1), max_size=n)))
    rows = numbered(n, absent)
    whole, cut = sampled([rows], size, seed), sampled(split(rows, length), size, seed)
    assert_same(whole.rows, cut.rows)
    np.testing.assert_array_equal(whole.positions, cut.positions)
    np.testing.assert_array_equal(whole.rows.inputs[:, 0], whole.positions)
    np.testing.assert_array_equal(whole.rows.targets[:, 0], 2.0 * whole.positions)
    assert len(set(whole.positions)) == len(whole.positions) == min(size, n - len(absent))
    assert not set(whole.positions) & set(absent)
    larger = sampled([rows], size + 5, seed)
    np.testing.assert_array_equal(larger.positions[:size], whole.positions)


def test_samples_and_their_first_parts_are_uniform() -> None:
    """20 rows, 6 sampled, 4000 times: chi-squares of 19 degrees stay below their 1e-6."""
    rows, counts, firsts = numbered(20), np.zeros(20), np.zeros(20)
    for seed in range(4000):
        found = sampled(split(rows, 7), 6, seed).positions
        counts[found] += 1
        firsts[found[0]] += 1
    # Counts without replacement have variance n p (1 - p) and sum to a constant.
    assert np.sum((counts - 1200.0) ** 2) / (4000 * 0.3 * 0.7) * 19 / 20 < 63.6
    assert np.sum((firsts - 200.0) ** 2 / 200.0) < 63.6


def test_samples_of_parts_make_a_sample_of_the_whole() -> None:
    """Keys drawn from one generator: merged parts are what one sample of all rows would be."""
    rows = numbered(50, absent=(3, 30))
    whole = sampled([rows], 8, 5)
    rng, total = np.random.default_rng(5), RowSample(8, np.random.default_rng(0))
    for number, block in enumerate(split(rows, 20)):
        part = RowSample(8, rng)
        part.add(block, 0)
        total.merge(pickle.loads(pickle.dumps(part)), 20 * number)
    assert_same(total.rows, whole.rows)
    np.testing.assert_array_equal(total.positions, whole.positions)
    total.merge(RowSample(8, rng), 50)
    assert_same(total.rows, whole.rows)
    with pytest.raises(ValueError, match="sample of size 7, but at least 8 is needed"):
        total.merge(RowSample(7, rng), 50)


def test_a_sample_of_nothing(rng: np.random.Generator) -> None:
    sample = RowSample(3, rng)
    with pytest.raises(ValueError, match="no rows: add a block first"):
        _ = sample.rows
    sample.add(numbered(2, absent=(0, 1)), 0)
    assert sample.rows.inputs.shape == (0, 1)


def test_a_sample_size_must_be_whole(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="size must be a whole number"):
        RowSample(0, rng)
