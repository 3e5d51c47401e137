"""Sources: the same rows from files, Dask and batches; the sample of a pass; what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice, starmap
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, feather, parquet
from sklearn.base import BaseEstimator

from bowtienet.tables import sources
from bowtienet.tables.door import TrainingTable, open_rows
from bowtienet.tables.sources import (
    HELD_OUT,
    PARTS,
    batches_of,
    collect,
    joined,
    keys_and_folds,
    mixed,
    reader_of,
    source_of,
)


def frame(rng: np.random.Generator, n: int = 90) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
            "city": rng.choice(["Rome", "Oslo"], n),
            "y": rng.normal(size=n),
        }
    )


WRITERS = {"parquet": parquet.write_table, "feather": feather.write_feather, "csv": csv.write_csv}


def in_files(table: pd.DataFrame, folder: Path, form: str, n: int = 3) -> Path:
    for number, part in enumerate(np.array_split(np.arange(len(table)), n)):
        rows = pa.Table.from_pandas(table.iloc[part], preserve_index=False)
        WRITERS[form](rows, folder / f"{number}.{form}")
    (folder / "notes.txt").write_text("Files of other kinds are left alone.")
    return folder


def features(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="y")


WAYS: dict[str, Callable[[pd.DataFrame, Path], tuple[Any, Any]]] = {
    "parquet": lambda t, folder: (in_files(t, folder, "parquet"), "y"),
    "feather": lambda t, folder: (str(in_files(t, folder, "feather", 1) / "0.feather"), "y"),
    "csv": lambda t, folder: (in_files(t, folder, "csv", 1) / "0.csv", "y"),
    "uri": lambda t, folder: (in_files(t, folder, "parquet").as_uri(), ["y"]),
    "dataset": lambda t, folder: (dataset.dataset(pa.Table.from_pandas(t)), "y"),
    "dask": lambda t, folder: (dd.from_pandas(t, npartitions=4), "y"),
    "dask pair": lambda t, folder: (dd.from_pandas(features(t), 4), dd.from_pandas(t["y"], 4)),
    "pairs": lambda t, folder: ([(features(p), p["y"]) for p in (t[:0], t[:50], t[50:])], None),
    "frames": lambda t, folder: ([t[:20], t[["city", "y", "a", "day"]][20:]], "y"),
}


def read(X: Any, y: Any, weight: Any = None, *, labels: bool = False) -> Iterator[Any]:
    """Rows of each batch, and the number without a target."""
    source = source_of(X, y)
    assert source is not None
    return starmap(reader_of(BaseEstimator(), source, weight, labels=labels), batches_of(source))


def rows_of(X: Any, y: Any, weight: Any = None) -> list[TrainingTable]:
    return [rows for rows, _ in read(X, y, weight) if rows is not None]


@pytest.mark.parametrize("way", WAYS)
def test_every_source_has_the_rows_of_the_table(
    way: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    table = frame(rng)
    expected = open_rows(BaseEstimator(), table, "y")
    rows = joined(rows_of(*WAYS[way](table, tmp_path)))
    assert rows.table.names == ("a", "day", "city")
    assert (rows.is_single, rows.target_names) == (True, ("y",))
    np.testing.assert_array_equal(rows.targets, expected.targets)
    np.testing.assert_array_equal(keys_and_folds(rows)[0], keys_and_folds(expected)[0])


def test_files_are_not_read_far_ahead(rng: np.random.Generator, tmp_path: Path) -> None:
    table = pa.table({"a": rng.normal(size=1_000_000), "y": rng.normal(size=1_000_000)})
    for number in range(8):
        parquet.write_table(table, tmp_path / f"{number}.parquet", row_group_size=100_000)
    before, most = pa.total_allocated_bytes(), 0
    for _ in islice(batches_of(source_of(tmp_path, "y")), 8):
        time.sleep(0.05)  # a slow taker
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 16_000_000  # one of 128 MB


def test_arrays_of_dask(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    rows = rows_of(da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=(10, 1)))
    np.testing.assert_array_equal(joined(rows).table.matrix, X)
    np.testing.assert_array_equal(joined(rows).targets, y)
    assert len(rows) == 3


def test_tables_in_memory_are_no_sources(rng: np.random.Generator) -> None:
    table = frame(rng, 4)
    for X in (table, pa.Table.from_pandas(table), np.ones((2, 2)), [[1.0], [2.0]], [(1.0, 2.0)]):
        assert source_of(X, None) is None


def test_rows_without_target_or_weight_are_left_out(rng: np.random.Generator) -> None:
    table = frame(rng).assign(w=1.0)
    table.loc[:39, "y"] = np.nan
    table.loc[50:, "w"] = 0.0
    parts = [table[:30], table[30:70], table[70:]]
    rows = rows_of(parts, "y", "w")
    np.testing.assert_array_equal(joined(rows).targets[:, 0], table["y"][40:50])
    assert rows[0].table.names == ("a", "day", "city")
    facts = collect(read(parts, "y", "w"), 100)
    assert facts is not None
    assert (facts.n_rows, facts.n_without_target) == (10, 40)
    labels = table.assign(y=["no", None, "yes"] * 30)
    facts = collect(read([labels[:40], labels[40:]], "y", labels=True), 100)
    assert facts is not None
    assert facts.labels == {"no": 30, "yes": 30}
    assert facts.n_rows == len(facts.keys) == 60


# The sample


def facts_of(parts: list[TrainingTable], size: int) -> Any:
    return collect([(part, 0) for part in parts], size)


def numbers(X: np.ndarray, weights: Any = None) -> TrainingTable:
    return open_rows(BaseEstimator(), X, X[:, 0], weights)


def test_the_sample_depends_neither_on_order_nor_on_batches(rng: np.random.Generator) -> None:
    X, weights = rng.normal(size=(1_000, 2)), rng.uniform(1.0, 2.0, 1_000)
    once = facts_of([numbers(X, weights)], 100)
    order = rng.permutation(1_000)
    pieces = [numbers(X[part], weights[part]) for part in np.array_split(order, 13)]
    again = facts_of(pieces, 100)
    np.testing.assert_array_equal(once.sample.table.matrix, again.sample.table.matrix)
    np.testing.assert_array_equal(once.sample.weights, again.sample.weights)
    np.testing.assert_array_equal(once.folds, again.folds)
    np.testing.assert_allclose(once.fold_weights, again.fold_weights)
    assert once.n_rows == again.n_rows == 1_000
    assert np.all(np.diff(once.keys.astype(float)) > 0.0)
    np.testing.assert_array_equal(once.keys, np.sort(keys_and_folds(numbers(X))[0])[:100])


def test_the_sample_is_uniform_and_folds_are_a_fifth(rng: np.random.Generator) -> None:
    n, size = 20_000, 2_000
    facts = facts_of([numbers(np.arange(n, dtype=float)[:, None])], size)
    counts = np.histogram(facts.sample.targets, bins=10, range=(0.0, n))[0]
    # A count of ten bins has a deviation of 12.7; the false alarm is one in 10^5.
    assert np.all(np.abs(counts - size / 10) < 65)
    assert np.all(np.abs(facts.fold_weights[:-1] - n / PARTS) < 5.5 * np.sqrt(n / PARTS))
    assert facts.fold_weights.sum() == n
    assert set(facts.folds) == {-1, *range(HELD_OUT)}


def test_tables_of_few_values_have_a_sample_of_all_of_them(rng: np.random.Generator) -> None:
    pairs = np.repeat(rng.normal(size=(500, 2)), 2, axis=0)
    folds = keys_and_folds(numbers(pairs))[1]
    np.testing.assert_array_equal(folds[::2], folds[1::2])  # equal rows share a fold
    X = rng.integers(0, 3, size=(3_000, 1)).astype(float)
    facts = facts_of([numbers(part) for part in np.array_split(X, 3)], 300)
    assert np.bincount(facts.sample.targets[:, 0].astype(int)).min() > 60
    assert np.all(facts.fold_weights > 50.0)


def test_columns_of_other_kinds_in_later_batches(rng: np.random.Generator) -> None:
    first = pd.DataFrame({"a": [1, 2], "b": [1.0, 2.0], "y": [0.0, 1.0]})
    later = pd.DataFrame({"a": [1.5, None], "b": ["x", "y"], "y": [0.0, 1.0]})
    rows = joined(rows_of([first, later], "y"))
    np.testing.assert_array_equal(rows.table.columns[0], [1.0, 2.0, 1.5, np.nan])
    assert rows.table.columns[1].tolist() == [1.0, 2.0, "x", "y"]


def test_shuffling_keeps_all_rows_within_buffers(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BUFFER_BYTES", 8 * 2 * 25)
    x = np.arange(100.0)
    chunks = [(x[i : i + 10], 2.0 * x[i : i + 10]) for i in range(0, 100, 10)]
    buffers = list(mixed(chunks, rng))
    assert [len(buffer[0]) for buffer in buffers] == [30, 30, 30, 10]
    np.testing.assert_array_equal(np.sort(np.concatenate([b[0] for b in buffers])), x)
    for first, second in buffers:
        np.testing.assert_array_equal(second, 2.0 * first)
        assert np.any(np.diff(first) != 1.0)


# What is refused


@pytest.mark.parametrize(
    ("batches", "y", "weight", "message"),
    [
        (lambda f: [f, f[["city", "a", "y"]]], "y", None, "missing(.|\\n)*day"),
        (lambda f: [(np.eye(2), [1, 2]), (np.ones((2, 3)), [1, 2])], None, None, "3 features"),
        (lambda f: [f], None, None, "name of a column"),
        (lambda f: [f], "price", None, "no column 'price'"),
        (lambda f: [f[:0]], "y", None, "nothing to fit"),
        (lambda f: [f.assign(y=np.nan)], "y", None, "nothing to fit"),
        (lambda f: [f], "y", np.ones(90), "name of a column"),
        (lambda f: iter([f]), "y", None, "can be read once"),
        (lambda f: dd.from_pandas(f, npartitions=2), np.ones(90), None, "must be one too"),
        (lambda f: dd.from_pandas(f, 2), dd.from_pandas(pd.Series(range(90)), 3), None, "and y 3"),
    ],
)
def test_what_is_wrong_with_batches(
    batches: Any, y: Any, weight: Any, message: str, rng: np.random.Generator
) -> None:
    with pytest.raises(ValueError, match=message):
        rows_of(batches(frame(rng)), y, weight)


def test_paths_that_are_no_files_of_rows(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        source_of(tmp_path / "absent", "y")
    with pytest.raises(ValueError, match="files of one kind"):
        source_of(tmp_path, "y")
    for name in ("a.csv", "b.parquet"):
        (tmp_path / name).write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match="2 of these kinds"):
        source_of(tmp_path, "y")
