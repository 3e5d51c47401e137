"""Tables in memory: which numbers are read of them, and what is refused by name."""

from __future__ import annotations

import decimal
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from bowtienet._old.data.door import open_features, open_source
from bowtienet._old.data.tables import Table

N = 4
X = np.arange(12.0).reshape(N, 3) - 5.0
Y = np.arange(4.0)
NAMES = ["age", "height", "weight"]
FRAME = pd.DataFrame(X, columns=NAMES)
POLARS = pl.DataFrame(X, schema=NAMES)
ARROW = pa.Table.from_pandas(FRAME)


def altered(values: Any, place: Any, value: Any) -> np.ndarray:
    values = np.array(values)
    values[place] = value
    return values


def features(table: Any, **settings: Any) -> Table:
    source = open_features(table, **settings)
    assert source.in_memory
    return source.block.table  # type: ignore[attr-defined]


# Numbers


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([2**62 + 1, None, -1, 0]), [2.0**62, np.nan, -1.0, 0.0]),
        (pa.array([2**64 - 1, 0, 1, 2], pa.uint64()), [2.0**64, 0.0, 1.0, 2.0]),
        (pa.array([decimal.Decimal("1.25"), None, None, None]), [1.25, np.nan, np.nan, np.nan]),
        (pa.array([True, None, False, True]), [1.0, np.nan, 0.0, 1.0]),
        (pa.array(np.array([0.5, 1, 2, 3], dtype=np.float16)), [0.5, 1.0, 2.0, 3.0]),
        (pa.nulls(4), [np.nan] * 4),
        (pl.Series([None] * 4), [np.nan] * 4),
        (pl.Series([decimal.Decimal("1.5")] * 4), [1.5] * 4),
        (pd.Series([decimal.Decimal("1.5"), None, 2, True], dtype=object), [1.5, np.nan, 2.0, 1.0]),
        (pd.Series([1, pd.NA, 2, 3], dtype=object), [1.0, np.nan, 2.0, 3.0]),
        (pd.Series([1, None, 2, 3], dtype="Int64"), [1.0, np.nan, 2.0, 3.0]),
        (pd.Series([0.0, 1.0, 0.0, 2.0], dtype="Sparse[float]"), [0.0, 1.0, 0.0, 2.0]),
        (pd.Series([0.1, 1, 2, 3], dtype="float32"), [float(np.float32(0.1)), 1.0, 2.0, 3.0]),
    ],
)
def test_columns_that_are_numbers(column: Any, expected: list[float]) -> None:
    name = type(column).__module__.split(".")[0]
    make = {"pyarrow": pa.table, "polars": pl.DataFrame, "pandas": pd.DataFrame}[name]
    found = features(make({"x": column}))
    assert found.matrix.dtype == np.float64
    np.testing.assert_array_equal(found.matrix[:, 0], expected)


@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
@pytest.mark.parametrize(("dtype", "read"), [("float32",) * 2, ("float64",) * 2, ("int32", "")])
def test_arrays_stay_where_and_what_they_are(library: str, dtype: str, read: str) -> None:
    """Weights follow the features; targets keep the digits they came with."""
    libraries = {"numpy": np, "jax": jnp}
    xp = libraries[library] if library in libraries else pytest.importorskip("torch")
    array = xp.asarray(X, dtype=getattr(xp, dtype))
    block = open_source(array, 1.7e9 + Y, [1, 2, 3, 4]).block  # type: ignore[attr-defined]
    assert type(block.table.matrix) is type(array)
    assert type(block.weights) is type(array)
    assert str(block.table.matrix.dtype).endswith(read or "float64")
    assert block.weights.dtype == block.table.matrix.dtype
    if library == "numpy" and read:
        assert np.shares_memory(block.table.matrix, array)
    np.testing.assert_array_equal(np.asarray(block.targets)[:, 0], 1.7e9 + Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_order_of_bytes_does_not_change_the_precision(dtype: Any) -> None:
    array = np.asarray(X, dtype=dtype)
    found = features(array.astype(array.dtype.newbyteorder()))
    assert found.matrix.dtype == dtype
    np.testing.assert_array_equal(found.matrix, array)


@pytest.mark.parametrize(
    "y",
    [
        *(Y.tolist(), Y.astype(object), Y.astype(int), pl.Series(Y), pa.array(Y)),
        *(pd.Series(Y, dtype="Float64"), pd.Series(Y, index=[9, 8, 7, 6])),
        pa.chunked_array([Y[:1], Y[1:]]),
    ],
)
def test_every_form_of_targets_and_weights(y: Any) -> None:
    source = open_source(X, y, y)
    np.testing.assert_array_equal(source.block.targets, Y[:, None])  # type: ignore[attr-defined]
    np.testing.assert_array_equal(source.block.weights, Y)  # type: ignore[attr-defined]
    assert source.single_target
    assert source.target_names is None


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_names_of_targets_come_from_their_table(make: Any) -> None:
    source = open_source(X, make({"price": Y, "tax": -Y}))
    assert (source.target_names, source.single_target) == (("price", "tax"), False)
    assert open_source(X, pd.Series(Y, name="price")).target_names == ("price",)
    with pytest.raises(ValueError, match=r"'sold'.*BowTieClassifier"):
        open_source(X, make({"price": Y, "sold": Y > 1}))


def test_an_opened_source_is_taken_as_it_is() -> None:
    source = open_source(FRAME, "weight")
    assert open_source(source) is open_features(source, features=["age", "height"]) is source
    with pytest.raises(ValueError, match="y and sample_weight"):
        open_source(source, Y)
    with pytest.raises(ValueError, match="order"):
        open_features(source, features=["height", "age"])


# Texts stay texts


@pytest.mark.parametrize(
    "table",
    [
        np.array([["1", "a"]] * N),
        np.array([["1", "a"]] * N, dtype="S"),
        [[1, "a"]] * N,
        [["1", 2.0]] * N,
        np.array([["2020-01-01"]] * N, dtype="datetime64[D]"),
        np.array([[{"a": 1}, 2.0]] * N, dtype=object),
        pd.DataFrame({"a": ["1"] * N}),
        pd.DataFrame({"a": pd.Categorical([1, 2, 1, 2])}),
        pl.DataFrame({"a": ["x"] * N}, schema={"a": pl.Enum(["x"])}),
    ],
)
def test_other_columns_come_as_they_are(table: Any) -> None:
    found = features(table)
    assert found.matrix is None
    assert len(found.columns) == found.n_columns
    assert all(len(column) == N for column in found.columns)
    if isinstance(table, list):
        assert [column[0] for column in found.columns] == table[0]


# Names


def test_names_that_are_no_text() -> None:
    assert features(pd.DataFrame(X)).names is None
    with pytest.raises(TypeError, match="int"):
        open_features(pd.DataFrame(X, columns=["a", 1, 2]))


def test_features_are_chosen_by_name_and_must_be_in_order() -> None:
    for table in (FRAME, POLARS, ARROW):
        found = features(table, features=["age", "weight"])
        assert found.names == ("age", "weight")
        np.testing.assert_array_equal(found.matrix, X[:, [0, 2]])
        with pytest.raises(ValueError, match="order"):
            open_features(table, features=["weight", "age"])
        with pytest.raises(ValueError, match="seen at fit time, yet now missing:\n- size\n"):
            open_features(table, features=["age", "size"])
        with pytest.raises(ValueError, match="unseen at fit time:\n- age\n- height\n- weight\nF"):
            open_features(table, features=["size"])
    with pytest.raises(ValueError, match=r"X has 3 features.* 2 features"):
        open_features(X, features=["age", "weight"])


# What is refused

HEIGHTS: dict[str, Any] = {
    "infinity": [np.inf, 1.0, 2.0, 3.0],
    "infinity beside texts": [-np.inf, 1.0, 2.0, 3.0],
    "lists": [[1.0]] * N,
    "structures": [{"a": 1}] * N,
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("kind", HEIGHTS)
def test_bad_columns_are_named(kind: str, make: Any) -> None:
    other: list[Any] = ["a"] * N if "texts" in kind else [1.0] * N
    table = make({"age": other, "height": HEIGHTS[kind]})
    with pytest.raises(ValueError, match="'height'"):
        open_features(table)


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (None, "X is None"),
        (X[:, 0], "Expected 2D array.*Reshape your data"),
        (FRAME["age"], "Expected 2D array.*Reshape your data"),
        (X[None], "Expected 2D array"),
        (3.0, "Expected 2D array"),
        ({"a": [1]}, "Expected 2D array"),
        (X[:0], r"0 sample\(s\)"),
        (X[:, :0], r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required"),
        (FRAME[[]], r"0 feature\(s\)"),
        ([[1.0], [1.0, 2.0]], "rectangular"),
        (X + 0j, "Complex data not supported"),
        (jnp.asarray(X) + 0j, "Complex data not supported"),
        (FRAME.assign(height=1j), "Complex data not supported.*'height'"),
        (altered(X.astype(object), (1, 2), 1j), "Complex data not supported.*column 2"),
        (altered(X.astype(object), (1, 2), 10**400), "column 2"),
        (altered(X, (1, 2), np.inf), "column 2"),
        (jnp.asarray(altered(X, (1, 2), np.inf)), "column 2"),
        (altered(X, (1, 2), -np.inf).tolist(), "column 2"),
        (np.ma.masked_array(X), "masked"),
        (np.zeros(4, dtype=[("a", float)])[:, None], "structured"),
        (POLARS.lazy(), r"collect\(\)"),
        (pd.DataFrame(X, columns=["a", "b", "a"]), "^X has several.*'a'.*rename"),
        (
            pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]),
            "^X has several.*'a'.*rename",
        ),
    ],
)
def test_refused_features(table: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        open_features(table)


@pytest.mark.parametrize("table", [sparse.csr_matrix(X), sparse.coo_array(X)])
def test_sparse_tables_are_refused(table: Any) -> None:
    with pytest.raises(TypeError, match="Sparse"):
        open_features(table)


@pytest.mark.parametrize(
    ("table", "y", "match"),
    [
        (X, None, "requires y to be passed, but the target y is None"),
        (X[:0], Y[:0], r"0 sample\(s\)"),
        (X, Y[:2], "inconsistent numbers of samples"),
        (X, np.ones((N, 1, 1)), "y must have shape"),
        (X, np.ones((N, 0)), "y has no columns"),
        (X, 3.0, "y must have shape"),
        (X, altered(Y, 1, np.nan), "target 0"),
        (X, altered(np.ones((N, 2)), (1, 1), np.inf), "target 1"),
        (X, pd.DataFrame({"price": [1.0, None, 2.0, 3.0]}), "'price'"),
        (X, ["a"] * N, "target 0.*BowTieClassifier"),
        (X, pd.Series(["a"] * N, name="price"), "'price'.*BowTieClassifier"),
        (X, pd.Series([1, 2, 1, 2], dtype="category"), "BowTieClassifier"),
        (X, [True, False] * 2, "target 0 holds booleans.*BowTieClassifier"),
        (X, jnp.asarray([True, False] * 2), "BowTieClassifier"),
        (X, np.array([True, None, False, True], dtype=object), "BowTieClassifier"),
        (X, pd.Series([True, None, False, True]), "BowTieClassifier"),
        (X, pd.Series([True, None, False, True], dtype="boolean"), "BowTieClassifier"),
        (X, pl.DataFrame({"tax": Y, "price": ["a"] * N}), "'price'"),
        (X, pd.Series(pd.date_range("2020", periods=N), name="price"), "'price'"),
        (X, Y + 0j, "Complex data not supported"),
        (X, np.ma.masked_array(Y), "masked"),
        (X, "price", "names"),
        (FRAME, "heigth", "'height'"),
        (FRAME, ["age", "size"], "'size'"),
        (FRAME, ["age", "age"], "'age'"),
        (FRAME, NAMES, r"0 feature\(s\)"),
    ],
)
def test_refused_targets(table: Any, y: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        open_source(table, y)


@pytest.mark.parametrize(
    "weights",
    [
        *(Y[:2], -Y, Y * np.nan, Y + np.inf, np.zeros(N), ["a"] * N, Y[:, None]),
        *(2.0, "nothing", np.ma.masked_array(Y), Y + 0j),
    ],
)
@pytest.mark.parametrize("table", [X, FRAME], ids=["array", "frame"])
def test_refused_weights(table: Any, weights: Any) -> None:
    with pytest.raises(ValueError, match=r"sample_weight|names"):
        open_source(table, Y, weights)
