"""Labels of classes: the same numbers from every source, in the order of np.unique."""

from __future__ import annotations

import decimal
import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bowtienet._old.data.arrow import _read_group
from bowtienet._old.data.door import open_features, open_source
from bowtienet._old.data.labels import check_classes
from bowtienet._old.data.source import PIECE_ROWS, Source, find_classes, in_order
from tests._old.data.forms import ARRAYS, FRAMES, cuts, mapped, targets_of

N = 30
X = np.arange(2.0 * N).reshape(N, 2)
LABELS: dict[str, np.ndarray] = {
    "text": np.array(["oak", "ash", "elm tree"])[np.arange(N) % 3],
    "whole numbers": np.array([12, -7, 3])[np.arange(N) % 3],
    "whole floats": np.array([2.0, -1.0, 0.0])[np.arange(N) % 3],
    "booleans": np.arange(N) % 3 == 1,
}
NUMBERS = [(kind, form) for kind in LABELS for form in (*FRAMES, *ARRAYS, "batches")]


def opened(kind: str, form: str, folder: Path, **settings: Any) -> Source:
    """The rows with labels of a kind in a form."""
    labels, settings = LABELS[kind], {"target": "label", **settings}
    if form in FRAMES:
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=labels)
        return open_source(FRAMES[form](frame, folder), "y", **settings)
    if form == "batches":
        return open_source(list(zip(cuts(X), cuts(labels), strict=True)), **settings)
    return open_source(ARRAYS[form](X, folder), labels, **settings)


def coded(y: Any, X: Any = None, **settings: Any) -> Source:
    """A table in memory with labels."""
    table = np.ones((len(y), 1)) if X is None else X
    return open_source(table, y, target="label", **settings)


@pytest.mark.parametrize(("kind", "form"), NUMBERS)
def test_every_source_codes_labels_alike(kind: str, form: str, tmp_path: Path) -> None:
    classes, codes = np.unique(LABELS[kind], return_inverse=True)
    source = opened(kind, form, tmp_path)
    assert source.classes is not None
    np.testing.assert_array_equal(source.classes, classes)
    if kind != "text":
        assert source.classes.dtype == classes.dtype or form == "pandas with gaps"
    assert (source.n_targets, source.single_target, source.has_exposure) == (1, True, False)
    assert source.target_names == (("y",) if form in FRAMES else None)
    np.testing.assert_array_equal(targets_of(source), codes[:, None])
    np.testing.assert_array_equal(find_classes(source), classes)
    features = np.concatenate([np.asarray(block.table.matrix) for block in in_order(source)])
    np.testing.assert_array_equal(features, X)


@pytest.mark.parametrize("form", [*FRAMES, *ARRAYS, "batches"])
def test_classes_that_are_given(form: str, tmp_path: Path) -> None:
    """More than occur, and in any order; one that is left out is named with its row."""
    codes = np.array([2, 0, 1])[np.arange(N) % 3]
    (folder := tmp_path / "more").mkdir()
    source = opened("text", form, folder, classes=["yew", "oak", "elm tree", "ash"])
    np.testing.assert_array_equal(source.classes, ["ash", "elm tree", "oak", "yew"])
    np.testing.assert_array_equal(targets_of(source)[:, 0], codes)
    again = open_source(source, target="label", classes=["ash", "box", "elm tree", "oak"])
    np.testing.assert_array_equal(targets_of(again)[:, 0], np.array([3, 0, 2])[np.arange(N) % 3])
    np.testing.assert_array_equal(targets_of(source)[:, 0], codes)
    with pytest.raises(ValueError, match=r"'elm tree' in row 2.*2 classes, 'ash', 'oak'"):
        list(in_order(opened("text", form, tmp_path, classes=["ash", "oak"])))
    with pytest.raises(ValueError, match="'elm tree' in row 2"):
        list(in_order(open_source(source, target="label", classes=["ash", "oak"])))


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (["b", "a", "b"], np.array(["a", "b"])),
        (np.array(["b", "a"], dtype=object), np.array(["a", "b"], dtype=object)),
        (np.array([b"b", b"a"]), np.array([b"a", b"b"])),
        (np.array(["b", "a"], dtype=np.dtypes.StringDType()), np.array(["a", "b"], dtype=object)),
        ([3, 1], np.array([1, 3])),
        ([True, False], np.array([False, True])),
        (np.array([3, 1], dtype="int8"), np.array([1, 3], dtype="int8")),
        (np.array([3, 1], dtype="float32"), np.array([1, 3], dtype="float32")),
        (np.array([3, 1], dtype=object), np.array([1, 3])),
        (np.array([True, False], dtype=object), np.array([False, True])),
        ([decimal.Decimal(3), decimal.Decimal(1)], np.array([1.0, 3.0])),
        ((2**70, 1), np.array([1.0, 2.0**70])),
        (jnp.asarray([3, 1]), np.array([1, 3])),
        (pd.Categorical(["b", "a"], categories=["c", "b", "a"]), np.array(["a", "b"], object)),
        (pd.Series(["b", "a"], dtype="category"), np.array(["a", "b"], object)),
        (pd.Series([3, 1], dtype="category"), np.array([1, 3])),
        (pd.Series([3, 1], dtype="Int64"), np.array([1, 3])),
        (pd.Series([True, False], dtype="boolean"), np.array([False, True])),
        (pd.Series(["b", "a"], dtype="string"), np.array(["a", "b"], object)),
        (pd.array([3, 1], dtype="Int64"), np.array([1, 3])),
        (pl.Series(["b", "a"], dtype=pl.Categorical), np.array(["a", "b"], object)),
        (pl.Series(["b", "a"], dtype=pl.Enum(["b", "a", "c"])), np.array(["a", "b"], object)),
        (pa.array(["b", "a"]), np.array(["a", "b"], object)),
        (pa.array(["b", "a"]).dictionary_encode(), np.array(["a", "b"], object)),
        (pa.chunked_array([["b"], ["a"]]).dictionary_encode(), np.array(["a", "b"], object)),
    ],
)
def test_types_of_classes(y: Any, expected: np.ndarray) -> None:
    source = coded(y)
    np.testing.assert_array_equal(source.classes, expected)
    assert source.classes is not None
    assert source.classes.dtype == expected.dtype
    np.testing.assert_array_equal(targets_of(source)[:2, 0], [1.0, 0.0])
    assert source.single_target


@pytest.mark.parametrize("make", [np.array, list, pd.DataFrame, pa.table, pl.DataFrame])
def test_a_table_with_one_column_is_a_column(make: Any) -> None:
    y = [["b"], ["a"]] if make in (np.array, list) else {"kind": ["b", "a"]}
    source = open_source(np.ones((2, 1)), make(y), target="label")
    np.testing.assert_array_equal(targets_of(source), [[1.0], [0.0]])
    assert not source.single_target
    assert source.target_names == (None if make in (np.array, list) else ("kind",))


def test_lists_of_texts_are_labels_unless_they_are_names() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "kind": ["u", "v"]})
    assert coded(["kind"], frame).feature_names == ("a", "b")
    for y in (["a", "a"], ["a", "w"]):
        source = coded(y, frame)
        np.testing.assert_array_equal(source.classes, sorted(set(y)))
        assert source.n_features == 3
    with pytest.raises(ValueError, match="one column"):
        coded(["a", "b"], frame)
    batches = open_source([(frame, ["q", "p"])], target="label")
    np.testing.assert_array_equal(targets_of(batches)[:, 0], [1.0, 0.0])
    table = da.from_array(np.ones((3, 1)), chunks=2)
    np.testing.assert_array_equal(targets_of(coded(["v", "u", "v"], table))[:, 0], [1, 0, 1])


def test_parts_of_different_types() -> None:
    """Whole numbers may come as floats or as categories in some batches."""
    later = pd.Series([1, 7], dtype="category")
    batches = [(np.ones((2, 1)), y) for y in (np.array([3, 1]), np.array([3.0, 5.0]), later)]
    source = open_source(batches, target="label")
    np.testing.assert_array_equal(source.classes, [1, 3, 5, 7])
    np.testing.assert_array_equal(targets_of(source)[:, 0], [1, 0, 1, 2, 0, 3])
    texts = [(np.ones((1, 1)), y) for y in (np.array(["b"]), pl.Series(["long"]), ["a"])]
    np.testing.assert_array_equal(open_source(texts, target="label").classes, ["a", "b", "long"])
    with pytest.raises(ValueError, match="mixes numbers and text"):
        open_source([batches[0], texts[0]], target="label")


def test_only_the_labels_are_read_to_find_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns: list[tuple[str, ...]] = []

    def noted(file: Any, group: int, names: Any) -> Any:
        columns.append(tuple(names))
        return _read_group(file, group, names)

    monkeypatch.setattr("bowtienet._old.data.arrow._read_group", noted)
    source = opened("text", "Parquet folder", tmp_path)
    assert columns == [("y",)] * source.n_pieces
    list(in_order(source))
    assert columns[source.n_pieces :] == [("a", "b", "y")] * source.n_pieces
    columns.clear()
    open_source(tmp_path / "rows", "y", target="label", classes=["ash", "oak", "elm tree"])
    assert columns == []


def test_folders_and_categories_of_files_are_labels(tmp_path: Path) -> None:
    """Row groups have dictionaries of their own."""
    for kind in ("oak", "ash"):
        (folder := tmp_path / "trees" / f"kind={kind}").mkdir(parents=True)
        size = pd.Series(["s", "l"] if kind == "oak" else ["m", "s"], dtype="category")
        pq.write_table(pa.table({"a": [1.0, 2.0], "size": size}), folder / "a.parquet")
    source = open_source(tmp_path / "trees", "kind", target="label", features=["a"])
    np.testing.assert_array_equal(source.classes, ["ash", "oak"])
    np.testing.assert_array_equal(targets_of(source)[:, 0], [0, 0, 1, 1])
    source = open_source(tmp_path / "trees", "size", target="label", features=["a"])
    np.testing.assert_array_equal(source.classes, ["l", "m", "s"])
    np.testing.assert_array_equal(targets_of(source)[:, 0], [1, 2, 2, 0])


def test_many_classes(tmp_path: Path) -> None:
    """Identifiers as text, and numbers beyond those that floats can hold, in several pieces."""
    n = 2 * PIECE_ROWS
    order = np.random.default_rng(500).permutation(n)
    for y in (np.array([f"id {i:05d}" for i in range(n)])[order], 2**60 + order):
        for table in (np.ones((n, 1)), mapped(tmp_path, np.ones((n, 1)))):
            np.testing.assert_array_equal(targets_of(coded(y, table))[:, 0], order)


def test_rows_that_are_taken_keep_their_classes() -> None:
    source = coded(["c", "a", "b"])
    some = source.take(np.array([2, 0]))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(some.block.targets, [[1.0], [2.0]])
    assert some.classes is source.classes


def test_empty_partitions_have_no_labels() -> None:
    frame = pd.DataFrame({"x": np.arange(20.0), "y": ["b", "a"] * 10})
    table = dd.from_pandas(frame, npartitions=2)
    table = table[table["x"] >= 15]
    for source in (coded("y", table), coded(table["y"], table[["x"]])):
        np.testing.assert_array_equal(source.classes, ["a", "b"])
        np.testing.assert_array_equal(targets_of(source)[:, 0], [0, 1, 0, 1, 0])
        assert source.partitions()[0].compute().targets.shape == (0, 1)  # type: ignore[attr-defined]


# What is refused

GAPS: list[Any] = [
    ["a", None, "b", None],
    [1.0, np.nan, 2.0, np.nan],
    np.array(["a", np.nan, "b", None], dtype=object),
    np.array([1, decimal.Decimal("NaN"), 2, pd.NA], dtype=object),
    pd.Series(["a", None, "b", None]),
    pd.Series(["a", None, "b", None], dtype="category"),
    pd.Series(["a", None, "b", None], dtype="string"),
    pd.Series([1, None, 2, None], dtype="Int64"),
    pd.Series([True, None, False, None], dtype="boolean"),
    pd.array([True, None, False, None], dtype="boolean"),
    pl.Series(["a", None, "b", None]),
    pl.Series([1.0, float("nan"), 2.0, float("nan")]),
    pa.array([1, None, 2, None]),
    pa.array([True, None, False, None]),
    pa.chunked_array([["a", None], ["b", None]]).dictionary_encode(),
]


@pytest.mark.parametrize("y", GAPS)
def test_missing_labels_are_counted(y: Any) -> None:
    with pytest.raises(ValueError, match=r"2 missing labels.*row 1"):
        coded(y, np.ones((4, 1)))


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([0.5, 1.5, 2.0], "^Unknown label type: continuous.*0.5 in row 0.*BowTieRegressor"),
        (np.array([1, 2, 0.5], dtype=object), "^Unknown label type: continuous"),
        (pl.Series([1.0, 2.0, 0.5]), "^Unknown label type: continuous"),
        ([1.0, 2.0, np.inf], "infinity"),
        (["a", 1, "b"], "mixes numbers and text"),
        (["a", True, b"b"], "mixes bytes and numbers and text"),
        (np.array(["a", ("b",), "c"], dtype=object), "mixes text and tuple"),
        (np.array([{"a"}, {"b"}, {"c"}]), "type set"),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "datetime64"),
        (pd.Series(pd.date_range("2020", periods=3)), "datetime64"),
        (pl.Series([[1], [2], [3]]), "lists"),
        (np.array([1j, 2j, 3j]), "Complex data not supported"),
        (np.array([["a", "b"]] * 3), "2 columns.*give one column"),
        (pd.DataFrame({"a": ["u"] * 3, "b": ["v"] * 3}), "give one column"),
        (["a", "b"], "inconsistent numbers of samples"),
        (3, "y must have shape"),
        (None, "requires y to be passed"),
    ],
)
def test_refused_labels(y: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        coded(y, np.ones((3, 1)))


@pytest.mark.parametrize("form", ["file", "batches", "Dask", "memory map"])
@pytest.mark.parametrize(
    ("labels", "match"), [(["a", None, "c"], "1 missing label .*row 1"), ([0.5] * 3, "continuous")]
)
def test_bad_labels_of_streams_are_told_by_their_place(
    labels: list[Any], match: str, form: str, tmp_path: Path
) -> None:
    """The first part is good."""
    good = ["a", "b"] if labels[0] == "a" else [1.0, 2.0]
    parts = [pa.table({"x": np.ones(len(y)), "y": y}) for y in (good, labels)]
    X: Any = parts
    y: Any = "y"
    if form == "file":
        for number, part in enumerate(parts):
            pq.write_table(part, tmp_path / f"{number}.parquet")
        X = tmp_path
    if form == "Dask":
        X = dd.from_map(lambda t: t.to_pandas(), parts)
    if form == "memory map":
        X = mapped(tmp_path, np.ones((PIECE_ROWS + 3, 1)))
        y = [*(good * (PIECE_ROWS // 2)), *labels]
    with pytest.raises(
        ValueError, match=rf"(1.parquet.*|batch 1|partition 1|rows 4096.*): .*{match}"
    ):
        open_source(X, y, target="label")


def test_columns_of_files_that_hold_no_labels(tmp_path: Path) -> None:
    days = pa.array([1, 2], pa.date32())
    table = pa.table({"x": [1.0, 2.0], "kind": ["a", "b"], "day": days, "flag": [True, False]})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"rows\.parquet, row group 0: y holds .*date"):
        open_source(tmp_path, "day", target="label")
    for several in (tmp_path, dd.from_pandas(table.to_pandas(), npartitions=1)):
        with pytest.raises(ValueError, match="give one column"):
            open_source(several, ["kind", "flag"], target="label")
    for name in ("kind", "flag"):
        for other in (tmp_path, [table], dd.from_pandas(table.to_pandas(), npartitions=1)):
            with pytest.raises(ValueError, match=f"'{name}'.*BowTieClassifier"):
                list(in_order(open_source(other, name)))


def test_settings_that_do_not_fit() -> None:
    source = coded(["a", "b"])
    for settings, match in (
        ({"target": "labels"}, "target must be one of"),
        ({"classes": ["a", "b"]}, "target='label'"),
        ({"target": "label", "classes": []}, "classes is empty"),
        ({"target": "label", "classes": ["a", None]}, "classes has 1 missing"),
        ({"target": "label", "classes": [1, 2]}, "holds text, but the classes are numbers, 1, 2"),
    ):
        with pytest.raises(ValueError, match=match):
            open_source(np.ones((2, 1)), ["a", "b"], **settings)
    with pytest.raises(ValueError, match=r"target='label', but 'number'.*target='number'"):
        open_source(source)
    with pytest.raises(ValueError, match=r"target='number', but 'label'"):
        open_source(open_source(np.ones((2, 1)), [1, 2]), target="label")
    assert open_source(source, target="label") is source is open_features(source)
    assert pickle.loads(pickle.dumps(source)).classes.tolist() == ["a", "b"]


def test_one_class_is_left_to_the_classifier() -> None:
    source = coded(["oak", "oak"])
    assert source.classes is not None
    with pytest.raises(ValueError, match="one class, 'oak'"):
        check_classes(source.classes)
    check_classes(np.array(["ash", "oak"]))
