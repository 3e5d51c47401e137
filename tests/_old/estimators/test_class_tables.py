"""Classes of tables that are not arrays: frames, files, batches, memory maps and Dask tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieClassifier, open_source
from tests._old.estimators.class_models import rows, small, stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 150
NAMES = ["first", "second", "third"]
X, Y = rows(N, 510)
WEIGHTS = np.where(np.arange(N) % 4 == 0, 0.0, 1.0 + np.arange(N) % 2)
FRAME = pd.DataFrame(X, columns=NAMES).assign(tree=Y, w=WEIGHTS)
MIXED = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 7 == 0, np.nan, X[:, 0]),
        "color": np.where(X[:, 1] > 0.0, "red", "blue"),
        "churn": np.where(X[:, 1] + 0.3 * X[:, 2] > 0.0, "yes", "no"),
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N) % 50, unit="D"),
        "member": np.arange(N) % 3 == 0,
    }
)


def parquet(path: Path, table: pd.DataFrame, **settings: Any) -> Path:
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, **settings)
    return path


def mapped(path: Path) -> np.memmap:
    X.tofile(path)
    return np.memmap(path, dtype=float, mode="r", shape=X.shape)


NAMED = ("tree", "w")
SOURCES: dict[str, Callable[[Path], tuple[Any, ...]]] = {
    "pandas": lambda _: (FRAME, *NAMED),
    "polars": lambda _: (pl.from_pandas(FRAME), *NAMED),
    "pyarrow": lambda _: (pa.Table.from_pandas(FRAME), *NAMED),
    "categories": lambda _: (FRAME.astype({"tree": "category"}), *NAMED),
    "opened": lambda _: (open_source(FRAME, *NAMED, target="label"),),
    "memory map": lambda path: (mapped(path / "map"), Y, WEIGHTS),
    "file": lambda path: (parquet(path / "rows.parquet", FRAME, row_group_size=60), *NAMED),
    "batches": lambda _: ([(X[:80], Y[:80], WEIGHTS[:80]), (X[80:], Y[80:], WEIGHTS[80:])],),
    "batches of frames": lambda _: ([FRAME[:70], FRAME[70:]], *NAMED),
}
DASK: dict[str, Callable[[], tuple[Any, ...]]] = {
    "array": lambda: tuple(da.from_array(values, chunks=60) for values in (X, Y, WEIGHTS)),
    "frame": lambda: (dd.from_pandas(FRAME, npartitions=3), *NAMED),
}
STREAMED = {"solver": "svi", "weighting": "stacking", "batch_size": 50, "max_iter": 3}


def features_for(model: BowTieClassifier) -> Any:
    return FRAME[NAMES] if hasattr(model, "feature_names_in_") else X


def check_answers(model: BowTieClassifier, given: tuple[Any, ...]) -> None:
    """Predictions and scores through the source are those from memory."""
    own = features_for(model)
    assert_array_equal(model.classes_, ["ash", "elm", "oak"])
    assert_allclose(model.predict_proba(given[0]), model.predict_proba(own), rtol=1e-9)
    assert_array_equal(model.predict(given[0]), model.predict(own))
    for score in (model.score, model.log_score):
        assert_allclose(score(*given), score(own, Y, WEIGHTS), rtol=1e-9)


@pytest.mark.parametrize("kind", SOURCES)
def test_the_stochastic_solver_on_every_source(kind: str, tmp_path: Path) -> None:
    given = SOURCES[kind](tmp_path)
    model = small(**STREAMED).fit(*given)
    assert model.solver_ == "svi"
    check_answers(model, given)
    shares = np.bincount(np.unique(Y, return_inverse=True)[1], weights=WEIGHTS) / WEIGHTS.sum()
    assert model.log_score(*given) > float(shares @ np.log(shares))


@pytest.mark.parametrize("kind", ["file", "batches", "memory map"])
@pytest.mark.parametrize("class_weight", ["balanced", {"ash": 3.0}])
def test_weights_of_classes_of_streams(kind: str, class_weight: Any, tmp_path: Path) -> None:
    given = SOURCES[kind](tmp_path)
    model = small(class_weight=class_weight).fit(*given)
    whole = small(class_weight=class_weight).fit(X, Y, WEIGHTS)
    assert_allclose(model.predict_proba(given[0]), whole.predict_proba(X), atol=1e-9)
    streamed = small(class_weight=class_weight, **STREAMED).fit(*given)
    plain = small(**STREAMED).fit(*given)
    ash = [m.predict_proba(given[0])[:, 0].mean() for m in (streamed, plain)]
    assert ash[0] != ash[1]
    if class_weight != "balanced":
        assert ash[0] > ash[1]


@pytest.mark.parametrize("kind", DASK)
def test_dask_tables_without_a_cluster(kind: str) -> None:
    given = DASK[kind]()
    model = small(**STREAMED).fit(*given)
    check_answers(model, given)
    with pytest.raises(ValueError, match=r"distributed\.Client"):
        small().fit(*given)
    with pytest.raises(ValueError, match="class_weight is not for Dask tables"):
        small(class_weight="balanced", **STREAMED).fit(*given)


# Columns of every kind


@pytest.mark.parametrize("make", [lambda t: t, pl.from_pandas, pa.Table.from_pandas])
def test_columns_of_every_kind_by_the_name_of_the_target(make: Any) -> None:
    model = stacked().fit(make(MIXED), "churn")
    assert model.target_names_ == ["churn"]
    assert {column.kind for column in model.columns_} == {"number", "category", "date"}
    assert_array_equal(model.classes_, ["no", "yes"])
    assert model.score(make(MIXED), "churn") > 0.8
    found = model.importance(make(MIXED), "churn")
    assert found.name[np.argmax(found.log_density_drop)] == "color"
    assert "color" in model.structure(make(MIXED), "churn").selected_names


def test_unseen_values_are_warned_of() -> None:
    model = small().fit(MIXED, "churn")
    with pytest.warns(UserWarning, match=r"'color'.*green"):
        found = model.predict_proba(MIXED.assign(color="green"))
    assert_allclose(found.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="color"):
        model.predict(MIXED.drop(columns="color"))


def test_rows_arrive_from_frames_and_files(tmp_path: Path) -> None:
    model = small().partial_fit(MIXED[:100], "churn", classes=["yes", "no"])
    path = parquet(tmp_path / "later.parquet", MIXED[100:])
    model.partial_fit(path, "churn").partial_fit([MIXED[:20], MIXED[20:40]], "churn")
    assert model.score(MIXED, "churn") > 0.7
