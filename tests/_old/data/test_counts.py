"""Counts and the logs of their exposures, side by side from every source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bowtienet._old.data.door import open_features, open_source
from bowtienet._old.data.source import Source, in_order, log_exposures
from tests._old.data.forms import ARRAYS, FRAMES, cuts, targets_of

N = 30
X = np.arange(2.0 * N).reshape(N, 2)
COUNTS = np.arange(N) % 5
EXPOSURE = 0.5 + np.arange(N) % 4
WEIGHTS = 1.0 + np.arange(N) % 2
BOTH = np.column_stack([COUNTS, np.log(EXPOSURE)])
FRAME = pd.DataFrame(X, columns=["a", "b"]).assign(y=COUNTS, days=EXPOSURE, w=WEIGHTS)


def aligned(source: Source) -> np.ndarray:
    """Logs of the exposures of all rows, whose features and weights are those given."""
    blocks = list(in_order(source))
    features = np.concatenate([np.asarray(block.table.matrix) for block in blocks])
    np.testing.assert_array_equal(features, X)
    return np.concatenate([log_exposures(source, block) for block in blocks])


def check(source: Source, expected: np.ndarray) -> None:
    assert (source.n_targets, source.single_target, source.has_exposure) == (1, True, True)
    assert source.classes is None
    np.testing.assert_array_equal(targets_of(source), expected)
    np.testing.assert_array_equal(aligned(source), expected[:, 1])


@pytest.mark.parametrize("form", FRAMES)
def test_tables_with_names(form: str, tmp_path: Path) -> None:
    table = FRAMES[form](FRAME, tmp_path)
    source = open_source(table, "y", "w", target="count", exposure="days")
    check(source, BOTH)
    assert (source.feature_names, source.target_names) == (("a", "b"), ("y",))
    weights = np.concatenate([block.weights for block in in_order(source)])
    np.testing.assert_array_equal(weights, WEIGHTS)
    without = open_source(table, "y", "w", target="count")
    assert (without.n_targets, without.n_features) == (1, 3)
    np.testing.assert_array_equal(targets_of(without), BOTH * [1.0, 0.0])
    features = open_features(table, features=["a", "b"], exposure="days")
    assert (features.n_targets, features.target_names) == (0, None)
    np.testing.assert_array_equal(targets_of(features), BOTH[:, 1:])
    np.testing.assert_array_equal(aligned(features), BOTH[:, 1])
    np.testing.assert_array_equal(aligned(open_features(table, features=["a", "b"])), np.zeros(N))


@pytest.mark.parametrize("form", ARRAYS)
def test_arrays(form: str, tmp_path: Path) -> None:
    table = ARRAYS[form](X, tmp_path)
    check(open_source(table, COUNTS, target="count", exposure=EXPOSURE), BOTH)
    check(open_source(table, COUNTS.astype(float), target="count"), BOTH * [1.0, 0.0])
    features = open_features(table, exposure=EXPOSURE)
    assert features.n_targets == 0
    np.testing.assert_array_equal(aligned(features), BOTH[:, 1])


def test_batches_have_exposures_only_by_name() -> None:
    frames = cuts(FRAME[["a", "b", "days"]])
    batches = list(zip(frames, cuts(COUNTS), strict=True))
    check(open_source(batches, target="count", exposure="days"), BOTH)
    named = open_features(batches, exposure="days")
    np.testing.assert_array_equal(aligned(named), BOTH[:, 1])
    arrays = list(zip(cuts(X), cuts(COUNTS), strict=True))
    check(open_source(arrays, target="count"), BOTH * [1.0, 0.0])
    for opened in (
        lambda: open_source(arrays, target="count", exposure=EXPOSURE),
        lambda: open_features(arrays, exposure=EXPOSURE),
    ):
        with pytest.raises(ValueError, match="exposure must come with the batches"):
            opened()
    with pytest.raises(ValueError, match="names of columns"):
        open_source(arrays, target="count", exposure="days")


def test_other_forms_of_exposures() -> None:
    for form in (EXPOSURE.tolist(), pd.Series(EXPOSURE), pa.array(EXPOSURE), jnp.asarray(EXPOSURE)):
        check(open_source(X, jnp.asarray(COUNTS), target="count", exposure=form), BOTH)
    table = da.from_array(X, chunks=(7, 2))
    lazy = da.from_array(EXPOSURE, chunks=11)
    check(open_source(table, COUNTS, target="count", exposure=lazy), BOTH)
    frame = dd.from_pandas(FRAME, npartitions=3, sort=False)
    frame = frame[frame["a"] >= 0.0]
    check(open_source(frame[["a", "b"]], frame["y"], target="count", exposure=frame["days"]), BOTH)
    partition = open_source(frame[frame["a"] > 30.0], "y", target="count").partitions()[0]  # type: ignore[attr-defined]
    assert partition.compute().targets.shape == (0, 2)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([1, 2, -1], "row 2 has -1.0"),
        ([1, 2.5, 0.5], "row 1 has 2.5.*BowTieRegressor"),
        ([1, np.nan, 2], "NaN"),
        ([1, np.inf, 2], "infinity"),
        ([True, False, True], "BowTieClassifier"),
        (["a", "b", "c"], "must hold numbers"),
        (np.ones((3, 2)), "give one column"),
        (np.ones(2), "inconsistent"),
    ],
)
def test_refused_counts(y: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        open_source(np.ones((3, 1)), y, target="count")


@pytest.mark.parametrize(
    ("exposure", "match"),
    [
        ([1.0, 0.0, 2.0], "exposure .*row 1 has 0.0"),
        ([1.0, 2.0, -2.0], "exposure .*row 2 has -2.0"),
        ([np.inf, 2.0, 2.0], "exposure .*row 0 has inf"),
        ([np.nan, 2.0, 2.0], "exposure .*row 0 has nan"),
        (["a", "b", "c"], "names of columns"),
        (np.array(["a", "b", "c"]), "exposure must hold numbers"),
        (np.ones(2), "exposure has 2"),
        (np.ones((3, 1)), "exposure must have shape"),
        (1.0, "exposure must have shape"),
        ("days", "names of columns"),
    ],
)
def test_refused_exposures(exposure: Any, match: str) -> None:
    for opened in (
        lambda: open_source(np.ones((3, 1)), [1, 2, 3], target="count", exposure=exposure),
        lambda: open_features(np.ones((3, 1)), exposure=exposure),
    ):
        with pytest.raises(ValueError, match=match):
            opened()


def test_refused_exposures_of_streams(tmp_path: Path) -> None:
    parts = [pa.table({"x": [1.0, 2.0], "y": [1, 2], "days": [1.0, last]}) for last in (2.0, 0.0)]
    pq.write_table(pa.concat_tables(parts), tmp_path / "rows.parquet", row_group_size=2)
    frame = dd.from_map(lambda table: table.to_pandas(), parts)
    for X in (tmp_path, parts, frame):
        source = open_source(X, "y", target="count", exposure="days")
        with pytest.raises(ValueError, match=r"(group|batch|partition) 1: exposure.*row 1 has 0"):
            list(in_order(source))
        with pytest.raises(ValueError, match="'days'"):
            source = open_source(X, "y", target="count", exposure="dayz")
    for table in (tmp_path, frame):
        with pytest.raises(ValueError, match="exposure"):
            open_source(table, "y", target="count", exposure=np.ones(4))
        with pytest.raises(ValueError, match="'y'"):
            open_source(table, "y", target="count", exposure="y")
        with pytest.raises(ValueError, match="give one column"):
            open_source(table, ["y", "days"], target="count")


def test_exposures_go_with_counts() -> None:
    for target in ("number", "label"):
        with pytest.raises(ValueError, match="exposure goes with target='count'"):
            open_source(X, COUNTS, target=target, exposure=EXPOSURE)
    source = open_source(X, COUNTS, target="count", exposure=EXPOSURE)
    assert open_source(source, target="count") is source
    with pytest.raises(ValueError, match="a Source knows"):
        open_features(source, exposure=EXPOSURE)
    with pytest.raises(ValueError, match="target='number'"):
        open_source(source)
