"""One contract for every source: the same model, predictions and scores as from memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieRegressor, open_source
from bowtienet._old.ensemble import fit_ensemble
from bowtienet._old.estimators import progress
from tests._old.estimators.models import answers, assert_same, small

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 240
NAMES = ["first", "second", "third"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)) * (1.0, 20.0, 0.1) + (0.0, 300.0, 5.0)
X[::9, 1] = np.nan
Y = np.sin(2.0 * X[:, 0]) + 30.0 * X[:, 2] + 0.1 * RNG.normal(size=N)
WEIGHTS = np.where(np.arange(N) % 4 == 0, 0.0, 1.0 + np.arange(N) % 2)
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y, w=WEIGHTS)
MIXED = FRAME.assign(
    kind=np.where(X[:, 0] > 0.0, "up", "down"),
    day=[pd.Timestamp("2024-01-01") + pd.Timedelta(days=i % 50) for i in range(N)],
    flag=np.arange(N) % 3 == 0,
)
"""Targets and weights do not stand at the end: columns are found by name."""


class Stream:
    """Batches that are made anew at each pass."""

    def __init__(self, make: Callable[[slice], Any], *cuts: int) -> None:
        self.make, self.cuts = make, cuts or (0, 70, 140, N)

    def __iter__(self) -> Iterator[Any]:
        return (self.make(slice(*ends)) for ends in zip(self.cuts, self.cuts[1:], strict=False))


def parquet(path: Path, table: pd.DataFrame = FRAME, **settings: Any) -> Path:
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, **settings)
    return path


def folder(path: Path, table: pd.DataFrame = FRAME) -> Path:
    path = path / "folder"
    path.mkdir()
    for number, part in enumerate(np.array_split(np.arange(N), 3)):
        parquet(path / f"{number}.parquet", table.iloc[part])
    return path


def mapped(path: Path, values: np.ndarray) -> np.memmap:
    values.tofile(path)
    return np.memmap(path, dtype=float, mode="r", shape=values.shape)


def array_batch(cut: slice) -> tuple[np.ndarray, ...]:
    return X[cut], Y[cut], WEIGHTS[cut]


def dask_array(folder: Path) -> tuple[Any, ...]:
    return tuple(da.from_array(values, chunks=100) for values in (X, Y, WEIGHTS))


NAMED = ("y", "w")
SOURCES: dict[str, Callable[[Path], tuple[Any, ...]]] = {
    "array": lambda _: (X, Y, WEIGHTS),
    "pandas": lambda _: (FRAME, *NAMED),
    "polars": lambda _: (pl.from_pandas(FRAME), *NAMED),
    "pyarrow": lambda _: (pa.Table.from_pandas(FRAME), *NAMED),
    "opened": lambda _: (open_source(FRAME, *NAMED),),
    "memory map": lambda path: (mapped(path / "map", X), Y, WEIGHTS),
    "Parquet file": lambda path: (parquet(path / "rows.parquet"), *NAMED),
    "path in words": lambda path: (str(parquet(path / "rows.parquet")), *NAMED),
    "dataset": lambda path: (ds.dataset(parquet(path / "rows.parquet")), *NAMED),
    "one batch": lambda _: ([(X, Y, WEIGHTS)],),
    "row groups": lambda path: (parquet(path / "r.parquet", row_group_size=70), *NAMED),
    "Parquet folder": lambda path: (folder(path), *NAMED),
    "opened folder": lambda path: (open_source(folder(path), *NAMED),),
    "batches of arrays": lambda _: (Stream(array_batch),),
    "batches of frames": lambda _: ([FRAME[:100], FRAME[100:]], *NAMED),
}
SEVERAL_BLOCKS = list(SOURCES)[-5:]
DASK: dict[str, Callable[[Path], tuple[Any, ...]]] = {
    "Dask array": dask_array,
    "Dask frame": lambda _: (dd.from_pandas(FRAME, npartitions=3), *NAMED),
}


def source_of(kind: str, path: Path) -> tuple[Any, ...]:
    return (SOURCES | DASK)[kind](path)


@pytest.fixture(scope="module")
def fitted() -> dict[str, BowTieRegressor]:
    """The fit of each solver to arrays in memory."""
    return {
        solver: small(solver=solver, **settings).fit(X, Y, WEIGHTS)
        for solver, settings in SETTINGS.items()
    }


SETTINGS: dict[str, dict[str, Any]] = {
    "auto": {},
    "svi": {"weighting": "stacking", "init_penalty": 1.0, "batch_size": 80, "max_iter": 3},
}


def features_for(model: BowTieRegressor) -> Any:
    return FRAME[NAMES] if hasattr(model, "feature_names_in_") else X


def check_answers(model: BowTieRegressor, given: tuple[Any, ...]) -> None:
    """Predictions and scores through the source are those from memory."""
    features = features_for(model)
    assert_allclose(answers(model, given[0]), answers(model, features), rtol=1e-9)
    assert_allclose(model.predict_interval(given[0]), model.predict_interval(features), rtol=1e-9)
    for score in (model.score, model.log_score):
        assert_allclose(score(*given), score(features, Y, WEIGHTS), rtol=1e-9)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_model_of_the_array(
    kind: str, fitted: dict[str, BowTieRegressor], tmp_path: Path
) -> None:
    given = source_of(kind, tmp_path)
    model = small().fit(*given)
    assert_same(model, fitted["auto"])
    check_answers(model, given)
    names = getattr(model, "feature_names_in_", None)
    nameless = kind in ("array", "memory map", "one batch", "batches of arrays")
    assert names is None if nameless else names.tolist() == NAMES


@pytest.mark.parametrize("kind", SOURCES)
def test_the_stochastic_solver_on_every_source(
    kind: str, fitted: dict[str, BowTieRegressor], tmp_path: Path
) -> None:
    """Blocks are read in a random order, so that other blocks give another, as good a fit."""
    given = source_of(kind, tmp_path)
    model, expected = small(solver="svi", **SETTINGS["svi"]).fit(*given), fitted["svi"]
    assert model.solver_ == expected.solver_ == "svi"
    if kind in SEVERAL_BLOCKS:
        assert_allclose(model.score(*given), expected.score(X, Y, WEIGHTS), atol=0.1)
        scaling = model.ensemble_.representation.feature_scaling
        wanted = expected.ensemble_.representation.feature_scaling
        assert_allclose(scaling.center, wanted.center, rtol=1e-10)
        assert_allclose(scaling.scale, wanted.scale, rtol=1e-10)
    else:
        assert_same(model, expected)
    check_answers(model, given)


MIXED_SOURCES: dict[str, Callable[[Path], Any]] = {
    "file": lambda path: parquet(path / "mixed.parquet", MIXED, row_group_size=70),
    "folder": lambda path: folder(path, MIXED),
    "dataset": lambda path: ds.dataset(folder(path, MIXED)),
    "batches": lambda _: Stream(lambda cut: MIXED[cut]),
    "polars batches": lambda _: [pl.from_pandas(MIXED[:100]), pl.from_pandas(MIXED[100:])],
}


@pytest.mark.parametrize("kind", MIXED_SOURCES)
def test_streams_hold_the_same_kinds_of_columns(kind: str, tmp_path: Path) -> None:
    table = MIXED_SOURCES[kind](tmp_path)
    expected = small().fit(MIXED, *NAMED)
    assert {column.kind for column in expected.columns_} == {"number", "category", "date"}
    found = small().fit(table, *NAMED)
    assert found.columns_ == expected.columns_
    assert_same(found, expected)
    check = MIXED[[*NAMES, "kind", "day", "flag"]]
    assert_allclose(answers(found, table), answers(expected, check), rtol=1e-9)
    streamed = small(solver="svi", max_iter=2).fit(table, *NAMED)
    assert streamed.columns_ == expected.columns_


def test_unseen_categories_of_a_stream_are_warned_of_once() -> None:
    model = small(solver="svi", max_iter=2).fit([MIXED[:100], MIXED[100:]], *NAMED)
    strange = MIXED.assign(kind="sideways")
    with pytest.warns(UserWarning, match=r"'kind'.*sideways") as caught:
        found = model.predict([strange[:100], strange[100:]])
    assert len(caught) == 1
    assert np.isfinite(found).all()


# Targets, weights and features of streams


def test_several_targets(tmp_path: Path) -> None:
    table = FRAME.assign(z=-X[:, 2])
    path = parquet(tmp_path / "two.parquet", table)
    both = np.column_stack([Y, -X[:, 2]])
    for given in ((path, ["y", "z"], "w"), ([(X, both, WEIGHTS)],)):
        for solver in ("auto", "svi"):
            model = small(solver=solver, max_iter=2).fit(*given)
            assert_same(model, small(solver=solver, max_iter=2).fit(X, both, WEIGHTS))
            assert model.predict(given[0]).shape == (N, 2)
    # One name in a list is a table of one target.
    assert small().fit(path, ["y"]).predict(path).shape == (N, 1)


def test_only_the_features_that_are_named_are_used(tmp_path: Path) -> None:
    path = parquet(tmp_path / "rows.parquet")
    model = small().fit(open_source(path, "y", features=["third", "first"]))
    assert model.feature_names_in_.tolist() == ["third", "first"]
    assert_array_equal(model.predict(path), model.predict(FRAME[["third", "first"]]))
    with pytest.raises(ValueError, match="y"):
        small().fit(open_source(path, "y"), "y")


def test_columns_of_files_are_found_by_their_names(tmp_path: Path) -> None:
    model = small().fit(FRAME, *NAMED)
    expected = model.predict(FRAME)
    moved = FRAME.assign(more="text")[["third", "more", "first", "y", "second"]]
    path = parquet(tmp_path / "moved.parquet", moved)
    assert_array_equal(model.predict(path), expected)
    with pytest.raises(ValueError, match="second"):
        model.predict(parquet(tmp_path / "lacking.parquet", moved.drop(columns="second")))
    with pytest.raises(ValueError, match="2 features"):
        model.predict([X[:, :2]])


# Rows that change


@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_a_file_that_is_rewritten_during_a_fit(
    solver: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = parquet(tmp_path / "rows.parquet")
    after_sweep = progress.Reporter.__call__

    def rewrite(self: Any, found: Any) -> bool:
        if found.sweep == 2:
            parquet(path, FRAME.assign(first=X[:, 0] + 1e-3))
        return after_sweep(self, found)

    model = small(solver=solver, batch_size=80)
    monkeypatch.setattr(fit_ensemble, "LARGE", 0)  # fewer rows would be in memory by then
    monkeypatch.setattr(progress.Reporter, "__call__", rewrite)
    with pytest.raises(ValueError, match=r"rows\.parquet"):
        model.fit(path, *NAMED)
    assert not hasattr(model, "ensemble_")


# Dask


@pytest.mark.parametrize("kind", DASK)
def test_dask_tables_without_a_cluster(kind: str, tmp_path: Path) -> None:
    """Minibatches and predictions are computed here; all rows at once need a cluster."""
    given = source_of(kind, tmp_path)
    model = small(solver="svi", **SETTINGS["svi"]).fit(*given)
    check_answers(model, given)
    for solver in ("auto", "cavi"):
        with pytest.raises(ValueError, match=r"distributed\.Client"):
            small(solver=solver).fit(*given)
