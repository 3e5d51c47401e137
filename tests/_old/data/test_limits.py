"""What needs more memory than there is, is refused early, with its size and the remedy."""

from __future__ import annotations

import bz2
import gzip
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from bowtienet._old import BowTieClassifier, BowTieRegressor, load
from bowtienet._old.data import limits
from bowtienet._old.data.files import read_table
from bowtienet._old.data.limits import (
    VARIABLE,
    available_memory,
    check_memory,
    memory_limit,
    size_text,
)
from bowtienet._old.persistence.file import MOST_HEADER

RNG = np.random.default_rng(500)
X, Y = RNG.normal(size=(30, 3)), RNG.normal(size=30)


def test_the_memory_of_this_machine() -> None:
    """More than this process has taken in these tests, less than any machine has."""
    assert 1e8 < available_memory() < 1e15 or available_memory() == float("inf")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("1000", 1000.0), ("8e9", 8e9), ("8GB", 8e9), ("1.5 MB", 1.5e6), ("2T", 2e12)],
)
def test_a_limit_of_the_environment(
    given: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, given)
    assert memory_limit() == expected
    check_memory(expected, "this", "nothing")
    with pytest.raises(MemoryError, match=f"this needs at least .*{VARIABLE}"):
        check_memory(1.01 * expected, "this", "buy some")


@pytest.mark.parametrize("given", ["much", "-1", "8 bananas", "1e", "GB"])
def test_a_limit_that_is_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(ValueError, match=f"{VARIABLE}.*{given}"):
        memory_limit()


def test_sizes_in_words() -> None:
    texts = [size_text(size) for size in (0, 999, 1e3, 6.4e9, 8e18, 8e24)]
    assert texts == ["0 B", "999 B", "1 kB", "6.4 GB", "8 EB", "8e+06 EB"]


# Fits

TOO_LARGE: dict[str, tuple[dict[str, Any], tuple[int, int], str]] = {
    "units": ({"hidden_layer_sizes": (10**9,)}, (30, 3), "hidden_layer_sizes"),
    "two layers": ({"hidden_layer_sizes": (10**6, 10**6)}, (30, 3), "hidden_layer_sizes"),
    "members": ({"n_estimators": 10**9}, (30, 3), "1,000,000,000 networks"),
    "a stream": ({"hidden_layer_sizes": 10**7, "solver": "svi"}, (30, 3), "10000000"),
    "many columns as they are": (
        {"features": "standard", "hidden_layer_sizes": (20_000,)}, (3, 4000), "4,000 inputs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TOO_LARGE)
@pytest.mark.parametrize("classifies", [False, True])
def test_networks_that_no_memory_holds(case: str, classifies: bool) -> None:
    """At once, and without taking any of it."""
    settings, shape, words = TOO_LARGE[case]
    features = RNG.normal(size=shape)
    estimator: Any = (BowTieClassifier if classifies else BowTieRegressor)(**settings)
    targets = np.arange(shape[0]) % 2 + (0.0 if classifies else 0.5)
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=f"{words}.*needs at least .*B of memory"):
            estimator.fit(features, targets)
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()


def test_a_small_limit_refuses_a_small_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "10kB")
    with pytest.raises(MemoryError, match="10 kB are free"):
        BowTieRegressor().fit(X, Y)


def test_a_covariance_that_no_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    model = BowTieRegressor((), n_estimators=1, effort="fast", random_state=0).fit(X, Y)
    monkeypatch.setenv(VARIABLE, "1MB")
    with pytest.raises(MemoryError, match="covariance of 1,000 rows needs at least 8 MB"):
        model.predict(np.zeros((1000, 3)), return_cov=True)


@pytest.mark.parametrize("form", [np.asarray, lambda x: [list(row) for row in x]])
def test_more_columns_than_can_be_learnt(form: Callable[[np.ndarray], Any]) -> None:
    with pytest.raises(ValueError, match="X has 1,000,000 columns"):
        BowTieRegressor().fit(form(np.zeros((2, 10**6))), np.arange(2.0))


def test_four_thousand_columns_and_three_rows() -> None:
    """They are three points of a plane: the networks see two principal components."""
    features = np.random.default_rng(501).normal(size=(3, 4000))
    began = time.process_time()
    model = BowTieRegressor(effort="fast", max_iter=2, random_state=0).fit(features, features[:, 0])
    assert time.process_time() - began < 60.0
    assert model.ensemble_.members[0].model.architecture.n_inputs <= 3


# Files that are small and become large


def packed(path: Path) -> Path:
    """A CSV of 8 MB in a file of some kB, packed by the ending of its name."""
    pack = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix)
    lines = b"1,2\n" * 100_000
    with pack(path, "wb") if pack else pa.output_stream(str(path)) as file:
        file.write(b"a,b\n")
        for _ in range(20):
            file.write(lines)
    assert path.stat().st_size < 1e5
    return path


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.csv.bz2", "bomb.csv.zst", "bomb.csv.lz4"])
def test_packed_text(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    if name.endswith((".zst", ".lz4")):
        codec = {"zst": "zstd", "lz4": "lz4"}[name.rpartition(".")[2]]
        data = b"a,b\n" + b"1,2\n" * 2_000_000
        path.write_bytes(pa.compress(data, codec=codec, asbytes=True))
    else:
        packed(path)
    monkeypatch.setenv(VARIABLE, "4MB")
    began = pa.total_allocated_bytes()
    with pytest.raises(MemoryError, match=rf"{name}, unpacked, needs at least .* 4 MB are free"):
        read_table(path)
    assert pa.total_allocated_bytes() - began < 1e8


@pytest.mark.parametrize("name", ["bomb.parquet", "bomb.feather"])
def test_tables_of_one_value(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, n_rows = tmp_path / name, 5_000_000
    table = pa.table({"a": np.zeros(n_rows), "b": np.zeros(n_rows)})
    if name.endswith("parquet"):
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path, compression="zstd")
    assert path.stat().st_size < 1e6
    monkeypatch.setenv(VARIABLE, "20MB")
    with pytest.raises(MemoryError, match=rf"{name}, of 5,000,000 rows and 2 columns, .* 80 MB"):
        read_table(path)


@pytest.mark.parametrize("name", ["wide.csv", "wide.parquet"])
def test_files_with_too_many_columns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_COLUMNS", 1000)
    path = tmp_path / name
    names = [f"c{place}" for place in range(1001)]
    if name.endswith("csv"):
        path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    else:
        row = pa.array([1], pa.int8())
        pq.write_table(pa.Table.from_arrays([row] * len(names), names=names), path)
    with pytest.raises(ValueError, match="X has 1,001 columns"):
        read_table(path)


def test_a_file_that_is_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.csv"
    path.write_text("a,b\n" + "1,2\n" * 1000)
    monkeypatch.setenv(VARIABLE, "1kB")
    with pytest.raises(MemoryError, match=r"large\.csv needs at least 4 kB"):
        read_table(path)


def test_headers_of_model_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a header claims is never taken at its word; what is there counts."""
    path = tmp_path / "model"
    opening = b'{"__metadata__":{"bowtienet":'
    path.write_bytes((MOST_HEADER + 1).to_bytes(8, "little") + opening + b'"{}"}}')
    with pytest.raises(ValueError, match="header of 100,000,"):
        load(path)
    BowTieRegressor((), n_estimators=1, effort="fast", random_state=0).fit(X, Y).save(path)
    monkeypatch.setenv(VARIABLE, "10kB")
    with pytest.raises(MemoryError, match=r"the model in .*10 kB are free"):
        load(path)
