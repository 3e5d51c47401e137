"""Errors name the user's column and row, whatever door the table came in by."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bowtienet._old import BowTieClassifier, BowTieRegressor
from bowtienet._old.data.door import open_features, open_source
from bowtienet._old.data.source import Source, in_order

N = 30
RNG = np.random.default_rng(500)
X, Y = RNG.normal(size=(N, 3)), RNG.normal(size=N)
NAMES = ["age", "size", "mass"]
Opening = Callable[[np.ndarray, np.ndarray, np.ndarray, Path], Source]


def frame(features: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(features, columns=NAMES).assign(price=targets, count=weights)


def named(convert: Callable[[pd.DataFrame], Any]) -> Opening:
    """A door for tables whose targets and weights are named columns."""
    return lambda x, y, w, _: open_source(convert(frame(x, y, w)), "price", "count")


def in_file(x: np.ndarray, y: np.ndarray, w: np.ndarray, folder: Path) -> Source:
    path = folder / "table.parquet"
    pq.write_table(pa.Table.from_pandas(frame(x, y, w)), path)
    return open_source(path, "price", "count")


def mapped(x: np.ndarray, y: np.ndarray, w: np.ndarray, folder: Path) -> Source:
    array = np.memmap(folder / "x", dtype=x.dtype, mode="w+", shape=x.shape)
    array[:] = x
    return open_source(array, y, w)


DOORS: dict[str, Opening] = {
    "array": lambda x, y, w, _: open_source(x, y, w),
    "lists": lambda x, y, w, _: open_source(x.tolist(), y.tolist(), w.tolist()),
    "pandas": named(lambda table: table),
    "polars": named(pl.from_pandas),
    "arrow": named(pa.Table.from_pandas),
    "record batch": named(pa.RecordBatch.from_pandas),
    "parquet": in_file,
    "memory map": mapped,
    "batches": lambda x, y, w, _: open_source([(x[:15], y[:15], w[:15]), (x[15:], y[15:], w[15:])]),
}
UNNAMED = ("array", "lists", "memory map", "batches")


def wrong(values: np.ndarray, value: float, *place: int) -> np.ndarray:
    changed = values.copy()
    changed[place] = value
    return changed


WRONG: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, str, str]] = {
    "infinity in X": (wrong(X, np.inf, 20, 1), Y, np.ones(N), "column 1", "column 'size'"),
    "NaN in y": (X, wrong(Y, np.nan, 20), np.ones(N), "target 0", "target 'price'"),
    "infinity in y": (X, wrong(Y, -np.inf, 20), np.ones(N), "target 0", "target 'price'"),
    "a negative weight": (X, Y, wrong(np.ones(N), -1.0, 20), "sample_weight", "sample_weight"),
    "NaN in weights": (X, Y, wrong(np.ones(N), np.nan, 20), "sample_weight", "sample_weight"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", WRONG)
def test_the_column_and_the_row_are_named(case: str, door: str, tmp_path: Path) -> None:
    """Of a part of a table, the row of that part, whose number is told too."""
    x, y, w, place, name = WRONG[case]
    with pytest.raises(ValueError, match="row ") as caught:
        list(in_order(DOORS[door](x, y, w, tmp_path)))
    message = str(caught.value)
    assert (place if door in UNNAMED else name) in message
    row = re.search(r"row (\d+)(?! to)", message.replace("row group", ""))
    assert row is not None
    assert int(row[1]) == (5 if door == "batches" else 20)
    assert ("batch 1" in message) == (door == "batches")
    assert "index" not in message
    assert "\n" not in message


def test_new_rows_are_named_too() -> None:
    table = pd.DataFrame(wrong(X, np.inf, 20, 1), columns=NAMES)
    for form in (table, pl.from_pandas(table), pa.RecordBatch.from_pandas(table)):
        with pytest.raises(ValueError, match=r"column 'size' \(row 20\)"):
            open_features(form)


# Types: weights, targets and exposures are read as features are

WHOLE = np.arange(N) % 7 + 1
FORMS: dict[str, Any] = {
    **{dtype: WHOLE.astype(dtype) for dtype in ("f2", "f4", "f8", ">f8", "i1", "u8", "O", "g")},
    "Decimal": [Decimal(int(value)) for value in WHOLE],
    "pandas Int64": pd.Series(WHOLE, dtype="Int64"),
    "pandas Float32": pd.Series(WHOLE, dtype="Float32"),
    "pandas arrow": pd.Series(WHOLE, dtype="int64[pyarrow]"),
    "arrow int8": pa.array(WHOLE, pa.int8()),
    "arrow chunks": pa.chunked_array([WHOLE[:10], WHOLE[10:]]),
    "arrow half": pa.array(WHOLE.astype("f2")),
    "arrow decimal": pa.array([Decimal(int(value)) for value in WHOLE]),
    "polars": pl.Series("w", WHOLE),
    "polars decimal": pl.Series("w", [Decimal(int(value)) for value in WHOLE]),
    "range": range(1, N + 1),
}
FLAGS = {
    "NumPy": WHOLE > 3,
    "pandas": pd.Series(WHOLE > 3, dtype="boolean"),
    "arrow": pa.array(WHOLE > 3),
    "polars": pl.Series("w", WHOLE > 3),
}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_every_type(form: str) -> None:
    values = FORMS[form]
    expected = np.arange(1.0, N + 1.0) if form == "range" else WHOLE.astype(float)
    block = open_source(X, values, values).block  # type: ignore[attr-defined]
    np.testing.assert_array_equal(block.targets[:, 0], expected)
    np.testing.assert_array_equal(block.weights, expected)
    counted = open_source(X, values, target="count", exposure=values)
    np.testing.assert_allclose(counted.block.targets[:, 1], np.log(expected))  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", FLAGS)
def test_truth_values_as_weights(form: str) -> None:
    """0 and 1, as in X; as targets they are classes."""
    block = open_source(X, Y, FLAGS[form]).block  # type: ignore[attr-defined]
    np.testing.assert_array_equal(block.weights, WHOLE > 3)
    with pytest.raises(ValueError, match="BowTieClassifier"):
        open_source(X, FLAGS[form])


# What is no table


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_objects_that_hold_no_rows(name: str) -> None:
    for value, words in ((object(), "must"), ({"a": [1, 2]}, "is a dict")):
        given: dict[str, Any] = {"X": X, "y": Y, "sample_weight": np.ones(N), name: value}
        with pytest.raises(ValueError, match=f"{name} {words}"):
            open_source(**given)


def test_texts_are_shown_with_their_row() -> None:
    texts = np.array(["a", "b", "c"])[np.arange(N) % 3]
    mixed = [*range(4), "many", *range(N - 5)]
    batch = pa.record_batch({"label": texts, "z": Y})
    with pytest.raises(ValueError, match=r"target 'label' \(row 0 has 'a'\)"):
        open_source(X, batch)
    for values, words in ((texts, r"row 0 has 'a'"), (mixed, r"row 4 has 'many'")):
        with pytest.raises(ValueError, match=rf"target 0 \({words}\)"):
            open_source(X, values)
        with pytest.raises(ValueError, match=rf"sample_weight \({words}\)"):
            open_source(X, Y, values)


@pytest.mark.parametrize("form", [pa.Table.from_pandas, pa.RecordBatch.from_pandas, pl.from_pandas])
def test_a_target_that_is_named_twice(form: Callable[[pd.DataFrame], Any]) -> None:
    with pytest.raises(ValueError, match="several columns called 'price'"):
        open_source(form(frame(X, Y, Y)), ["price", "price"])


def test_columns_with_one_name() -> None:
    arrays = [pa.array(X[:, 0]), pa.array(X[:, 1])]
    batch = pa.RecordBatch.from_arrays(arrays, names=["a", "a"])
    table = pa.Table.from_batches([batch])
    for repeated in (batch, table, pd.DataFrame(X[:, :2], columns=["a", "a"])):
        with pytest.raises(ValueError, match="X has several columns called 'a'") as caught:
            open_source(repeated, Y)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("estimator", [BowTieRegressor, BowTieClassifier])
def test_the_row_of_a_weight_of_an_estimator(estimator: Any) -> None:
    with pytest.raises(ValueError, match="row 7"):
        estimator().fit(X, WHOLE, wrong(np.ones(N), -1.0, 7))


def test_the_row_of_an_infinite_label() -> None:
    with pytest.raises(ValueError, match="infinity in row 7"):
        BowTieClassifier().fit(X, wrong(WHOLE.astype(float), np.inf, 7))
