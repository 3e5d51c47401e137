"""The door: tables of any library read alike, targets, weights, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from bowtienet.tables.door import TrainingTable, arrays_of, open_features, open_known, open_rows

NUMBERS = {"size": [1.5, 2.0, 4.0, 8.0], "rooms": [1, 2, 3, 4], "new": [True, False, True, True]}
MATRIX = np.array([[1.5, 1.0, 1.0], [2.0, 2.0, 0.0], [4.0, 3.0, 1.0], [8.0, 4.0, 1.0]])
FULL = {**NUMBERS, "city": ["Rome", "Oslo", "Rome", None], "price": [3.0, 1.0, 4.0, 1.5]}
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def opened(X: Any, y: Any, weights: Any = None, **options: Any) -> TrainingTable:
    return open_rows(BaseEstimator(), X, y, weights, **options)


@pytest.mark.parametrize(
    ("table", "names"),
    [
        *((build(NUMBERS), tuple(NUMBERS)) for build in LIBRARIES.values()),
        (pd.DataFrame(NUMBERS).convert_dtypes(), tuple(NUMBERS)),
        (pd.DataFrame(NUMBERS).convert_dtypes(dtype_backend="pyarrow"), tuple(NUMBERS)),
        (pd.DataFrame(NUMBERS, index=[7, 7, 3, 1]), tuple(NUMBERS)),
        (pd.DataFrame(MATRIX, columns=[2, 0, 1]), ("2", "0", "1")),
        *((X, ("x0", "x1", "x2")) for X in (MATRIX.tolist(), sparse.csr_matrix(MATRIX))),
        *((MATRIX.astype(kind), ("x0", "x1", "x2")) for kind in ("f4", int)),
    ],
)
def test_numbers_of_any_table(table: Any, names: tuple[str, ...]) -> None:
    estimator = BaseEstimator()
    read = open_features(estimator, table, reset=True)
    assert read.matrix.dtype == np.float64
    expected = table if isinstance(table, np.ndarray) else MATRIX
    np.testing.assert_array_equal(read.matrix, expected)
    assert read.names == tuple(getattr(estimator, "feature_names_in_", names)) == names
    assert (read.n_rows, read.columns, estimator.n_features_in_) == (4, (), 3)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("names", ["price", ["price"], ("rooms", "price")], ids=str)
def test_targets_by_name(library: str, names: Any) -> None:
    estimator, table = BaseEstimator(), LIBRARIES[library](FULL)
    training = open_rows(estimator, table, names)
    wanted = (names,) if isinstance(names, str) else tuple(names)
    assert training.target_names == wanted
    np.testing.assert_array_equal(training.targets, np.column_stack([FULL[n] for n in wanted]))
    assert training.is_single == (len(wanted) == 1)
    features = tuple(name for name in FULL if name not in wanted)
    assert training.table.names == features
    # New rows may still have the targets' columns, or not.
    estimator._target_names = training.target_names
    for X in (table, LIBRARIES[library]({name: FULL[name] for name in features})):
        assert open_known(estimator, X).names == features


def test_a_target_with_the_name_of_a_feature_takes_nothing_away() -> None:
    estimator, X = BaseEstimator(), pd.DataFrame(FULL)
    estimator._target_names = open_rows(estimator, X, X["price"]).target_names
    assert estimator._target_names == ("price",)
    assert open_known(estimator, X).names == tuple(FULL)


VALUES = np.array([3.0, 1.0, 4.0, 1.5])


@pytest.mark.parametrize(
    ("y", "names", "is_single"),
    [
        (VALUES.tolist(), ("y",), True),
        (VALUES[:, None], ("y",), False),
        (np.column_stack([VALUES, VALUES]), ("y0", "y1"), False),
        (pd.Series(VALUES, name="price"), ("price",), True),
        (pd.Series(VALUES, dtype="Float64"), ("y",), True),
        (pl.Series("price", VALUES), ("price",), True),
        (pa.chunked_array([VALUES[:1], VALUES[1:]]), ("y",), True),
        (pd.DataFrame({"a": VALUES, "b": VALUES}), ("a", "b"), False),
        (pl.DataFrame({"a": VALUES}), ("a",), False),
    ],
)
def test_targets_in_every_form(y: Any, names: tuple[str, ...], is_single: bool) -> None:
    training = opened(MATRIX, y)
    assert training.target_names == names
    assert training.is_single == is_single
    assert training.targets.dtype == np.float64
    np.testing.assert_array_equal(training.targets, VALUES[:, None].repeat(len(names), axis=1))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["b", "a", "b", "a"], ["b", "a", "b", "a"]),  # no names of columns
        (np.array([2, 1, 2, 2]), [2, 1, 2, 2]),
        (pd.Series(["x", "y", "x", "x"], dtype="category"), ["x", "y", "x", "x"]),
        (pl.Series([True, False, True, True]), [True, False, True, True]),
    ],
)
def test_labels(labels: Any, expected: list[Any]) -> None:
    for X in (MATRIX, pd.DataFrame(FULL)):
        training = opened(X, labels, labels=True)
        assert training.targets.tolist() == expected
        assert (training.target_names, training.table.n_rows) == (("y",), 4)


def test_a_column_of_labels_is_taken_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning, match="y"):
        training = opened(MATRIX, [["b"], ["a"], ["b"], ["b"]], labels=True)
    assert training.targets.tolist() == ["b", "a", "b", "b"]
    with pytest.raises(ValueError, match="one label"):
        opened(MATRIX, np.ones((4, 2)), labels=True)


@pytest.mark.parametrize(
    "weights",
    [2.5, [1, 0, 2, 0.5], pd.Series([1, 0, 2, 0.5]), pl.Series([1.0, 0.0, 2.0, 0.5])],
    ids=["number", "list", "pandas", "polars"],
)
def test_weights_and_rows_without_any(weights: Any) -> None:
    full = np.broadcast_to(np.asarray(weights, dtype=float), 4)
    present = full > 0.0
    for X in (MATRIX, pd.DataFrame(FULL)):
        training = opened(X, VALUES, weights)
        np.testing.assert_array_equal(training.weights, full[present])
        np.testing.assert_array_equal(training.targets[:, 0], VALUES[present])
        assert training.table.n_rows == present.sum()
        removed = opened(X[present], VALUES[present])
        for a, b in zip(arrays_of(training.table), arrays_of(removed.table), strict=True):
            np.testing.assert_array_equal(a, b)


def test_weights_by_name() -> None:
    training = opened(pd.DataFrame(FULL), "price", "size")
    assert training.table.names == ("rooms", "new", "city")
    np.testing.assert_array_equal(training.weights, FULL["size"])


INFINITE = pd.DataFrame({"size": [1.0, np.inf], "city": ["a", "b"]})


@pytest.mark.parametrize(
    ("X", "y", "weights", "words"),
    [
        (MATRIX, None, None, "y"),
        (MATRIX[:, 0], VALUES, None, "2D"),
        (MATRIX, VALUES[:3], None, "samples"),
        (MATRIX, np.ones((4, 2, 2)), None, "y"),
        (MATRIX, ["1", "2", "3", "four"], None, "classifier"),
        (MATRIX, ["yes", "no", "no", "yes"], None, "classifier"),
        (MATRIX, [1.0, np.inf, 2.0, 3.0], None, "y contains infinity"),
        (MATRIX, "price", None, "price"),
        (MATRIX, VALUES, "price", "price"),
        (pd.DataFrame(NUMBERS), ["size", "price"], None, "price"),
        (np.where(MATRIX > 7.0, np.inf, MATRIX), VALUES, None, "infinity"),
        (INFINITE, VALUES[:2], None, "size"),
        (INFINITE[["size"]], VALUES[:2], None, "size"),
        (pl.DataFrame({"size": []}), [], None, "minimum of 1"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [1, 2], None, "a"),
        (sparse.csr_matrix((10**6, 10**6)), VALUES, None, "TruncatedSVD"),
        (MATRIX, VALUES, np.ones(3), "sample_weight"),
        (MATRIX, VALUES, np.ones((4, 1)), "sample_weight"),
        (MATRIX, VALUES, [1, -1, 1, 1], "sample_weight"),
        (MATRIX, VALUES, [1, np.nan, 1, 1], "sample_weight"),
        (MATRIX, VALUES, np.zeros(4), "[Ss]ample weights"),
    ],
)
def test_refused(X: Any, y: Any, weights: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        opened(X, y, weights)


MISSING = np.array(["a", None, "b", "b"], dtype=object)


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        ([1.0, np.nan, 2.0, 2.0], False),
        (np.array([[1.0, 1.0], [np.nan, 0.0], [2.0, 2.0], [2.0, 2.0]]), False),
        (["1,5 EUR", "k.A.", "2,25 EUR", "3 EUR"], False),
        ([1.0, np.nan, 2.0, 2.0], True),
        (MISSING, True),
        (pd.Series(MISSING, dtype="string"), True),
        (pd.Series(MISSING, dtype="category"), True),
    ],
)
def test_rows_without_a_target_are_left_out_with_a_warning(y: Any, labels: bool) -> None:
    with pytest.warns(UserWarning, match="1 row without a target"):
        training = opened(MATRIX, y, labels=labels)
    np.testing.assert_array_equal(training.table.matrix, MATRIX[[0, 2, 3]])
    assert len(training.targets) == 3
    assert any("target" in note for note in training.notes)
    with pytest.raises(ValueError, match="no row"):
        opened(MATRIX, [np.nan] * 4, labels=labels)


def test_targets_may_be_texts() -> None:
    targets = opened(MATRIX, ["1,5", "2", "1.003,5", "-1"]).targets[:, 0]
    assert targets.tolist() == [1.5, 2, 1003.5, -1]


def test_all_problems_are_refused_at_once() -> None:
    infinite = pd.DataFrame(np.full((2, 30), np.inf)).add_prefix("c")
    with pytest.raises(ValueError, match=r"(?s)30 problems.*'c0'.*'c9'.*20 more") as refusal:
        opened(infinite, [1.0, 2.0])
    assert "'c10'" not in str(refusal.value)


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_with_texts_are_read_by_name(library: str) -> None:
    estimator, names = BaseEstimator(), ["city", "new", "rooms", "size"]
    open_rows(estimator, pd.DataFrame(FULL), "price")
    other = LIBRARIES[library]({name: FULL[name] for name in names})
    assert open_known(estimator, other).names == ("size", "rooms", "new", "city")


@pytest.mark.parametrize(
    ("X", "new", "words"),
    [
        (pd.DataFrame(FULL), pd.DataFrame(FULL).assign(extra=1.0), "extra"),
        (pd.DataFrame(FULL), pd.DataFrame(FULL)[["size"]], "rooms"),
        (MATRIX, MATRIX[:, :2], "features"),
        # As scikit-learn demands of frames of numbers.
        (pd.DataFrame(NUMBERS), pd.DataFrame(NUMBERS)[["rooms", "size", "new"]], "same order"),
    ],
)
def test_other_columns_than_those_of_the_fit_are_refused(X: Any, new: Any, words: str) -> None:
    estimator = BaseEstimator()
    open_rows(estimator, X, VALUES)
    with pytest.raises(ValueError, match=words):
        open_known(estimator, new)
