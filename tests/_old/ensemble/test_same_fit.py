"""The same rows give the same fit, whatever holds them, on both sides of every threshold.

tests/ensemble/test_cluster_fit.py has the Dask tables whose rows stay on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bowtienet as bt
from bowtienet._old.data import chunks
from bowtienet._old.ensemble import fit_ensemble, large_tables, recipes, training
from bowtienet._old.ensemble.member import last_bound
from bowtienet._old.representation import facts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 150
RNG = np.random.default_rng(511)
X = RNG.normal(size=(N, 3)) * (1.0, 20.0, 0.1) + (0.0, 300.0, 5.0)
X[::7, 1] = np.nan
Y = np.sin(2.0 * X[:, 0]) + 10.0 * X[:, 2] + 0.1 * RNG.normal(size=N)
WEIGHTS = np.where(np.arange(N) % 5 == 0, 0.0, RNG.uniform(0.5, 2.0, size=N))
CLASSES = np.where(Y > 50.3, 2, np.where(Y > 49.5, 1, 0))
COUNTS = RNG.poisson(np.exp(np.sin(2.0 * X[:, 0])))
TARGETS = {"numbers": Y, "classes": CLASSES, "counts": COUNTS}


class Stream:
    """Batches that are made anew at each pass, of any lengths."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = arrays

    def __iter__(self) -> Iterator[Any]:
        for low, high in ((0, 1), (1, 61), (61, 61), (61, 140), (140, N)):
            yield tuple(array[low:high] for array in self.arrays)


def frame(y: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=WEIGHTS)


def parquet(path: Path, y: np.ndarray) -> tuple[Any, ...]:
    file = path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame(y), preserve_index=False), file, row_group_size=40)
    return file, "y", "w"


def mapped(path: Path, y: np.ndarray) -> tuple[Any, ...]:
    np.save(path / "X.npy", X)
    return np.load(path / "X.npy", mmap_mode="r"), y, WEIGHTS


def dask_array(path: Path, y: np.ndarray) -> tuple[Any, ...]:
    return tuple(
        da.from_array(values, chunks=(70, -1)[: values.ndim]) for values in (X, y, WEIGHTS)
    )


CONTAINERS: dict[str, Callable[[Path, np.ndarray], tuple[Any, ...]]] = {
    "Parquet": parquet,
    "batches": lambda _, y: (Stream(X, y, WEIGHTS),),
    "memory map": mapped,
}
DASK: dict[str, Callable[[Path, np.ndarray], tuple[Any, ...]]] = {
    "Dask array": dask_array,
    "Dask frame": lambda _, y: (dd.from_pandas(frame(y), npartitions=4), "y", "w"),
}

WAYS: dict[str, dict[str, Any]] = {
    "one member, coordinate ascent": {"solver": "cavi", "weighting": "equal", "n_estimators": 1},
    "an ensemble, coordinate ascent": {"solver": "cavi"},
    "an ensemble": {"solver": "auto"},
}


def model(outcome: str = "numbers", **changes: Any) -> Any:
    weighting = changes.pop("weighting", "stacking")
    options = bt.FitOptions(weighting=weighting, init_penalty=1.0, batch_size=25)
    settings = {"hidden_layer_sizes": (4,), "n_estimators": 2, "max_iter": 6, "effort": "fast"}
    settings |= {"random_state": 0, "options": options} | changes
    if outcome == "classes":
        return bt.BowTieClassifier(**settings)
    return bt.BowTieRegressor(**settings, outcome="counts" if outcome == "counts" else "gaussian")


@pytest.fixture(autouse=True)
def cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds among the rows that there are."""
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 32)
    monkeypatch.setattr(chunks, "FEWEST_ROWS", 8)
    monkeypatch.setattr(facts, "KEPT", 60)
    monkeypatch.setattr(large_tables, "SAMPLE_ROWS", 80)
    monkeypatch.setattr(large_tables, "HELD_OUT_ROWS", 30)
    monkeypatch.setattr(large_tables, "VISITS", 3 * N)


def assert_same_fit(found: Any, expected: Any, rtol: float = 1e-8) -> None:
    assert found.solver_ == expected.solver_
    members = list(zip(found.ensemble_.members, expected.ensemble_.members, strict=True))
    bounds = np.array([[last_bound(one), last_bound(other)] for one, other in members])
    np.testing.assert_allclose(bounds[:, 0], bounds[:, 1], rtol=rtol)
    np.testing.assert_allclose(found.member_weights_, expected.member_weights_, rtol=rtol)
    new = X[:40] + 0.1
    values = []
    for one in (found, expected):
        table = pd.DataFrame(new, columns=["a", "b", "c"])
        given = table if hasattr(one, "feature_names_in_") else new
        if hasattr(one, "predict_proba"):
            values.append(one.predict_proba(given))
        else:
            values.append(np.stack(one.predict(given, return_std=True)))
    np.testing.assert_allclose(*values, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("large", [N, N - 1], ids=["small", "large"])
@pytest.mark.parametrize("way", WAYS)
def test_every_container_gives_the_fit_of_the_array(
    way: str, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_ensemble, "LARGE", large)
    expected = model(**WAYS[way]).fit(X, Y, WEIGHTS)
    assert expected.solver_ == ("svi" if WAYS[way]["solver"] == "auto" and large < N else "cavi")
    for container in CONTAINERS.values():
        assert_same_fit(model(**WAYS[way]).fit(*container(tmp_path, Y)), expected)


def test_members_of_a_sample_are_swept_over_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_ensemble, "LARGE", 80)
    expected = model(solver="cavi").fit(X, Y, WEIGHTS)
    counts = [float(member.statistics.count) for member in expected.ensemble_.members]
    np.testing.assert_allclose(counts, WEIGHTS.sum())
    for container in CONTAINERS.values():
        assert_same_fit(model(solver="cavi").fit(*container(tmp_path, Y)), expected)


@pytest.mark.parametrize("large", [N, N - 1], ids=["small", "large"])
def test_single_precision(large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_ensemble, "LARGE", large)
    way = WAYS["one member, coordinate ascent"]
    given = tuple(values.astype(np.float32) for values in (X, Y, WEIGHTS))
    np.save(tmp_path / "X.npy", given[0])
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = model(**way).fit(*given)
    for rows in ((Stream(*given),), (on_disk, *given[1:])):
        assert_same_fit(model(**way).fit(*rows), expected)


@pytest.mark.parametrize("many", [N - 1, N // 2], ids=["compared on all", "compared on a sample"])
def test_the_second_threshold(many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in memory are cross-fitted, or many of them trained on by minibatches."""
    for module in (recipes, training):
        monkeypatch.setattr(module, "MANY_ROWS", many)
    expected = model(solver="auto").fit(X, Y, WEIGHTS)
    for container in CONTAINERS.values():
        assert_same_fit(model(solver="auto").fit(*container(tmp_path, Y)), expected)


@pytest.mark.parametrize("outcome", ["classes", "counts"])
def test_classes_and_counts(outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_ensemble, "LARGE", N - 1)
    y, way = TARGETS[outcome], WAYS["one member, coordinate ascent"]
    expected = model(outcome, **way).fit(X, y, WEIGHTS)
    for container in CONTAINERS.values():
        assert_same_fit(model(outcome, **way).fit(*container(tmp_path, y)), expected)


@pytest.mark.parametrize("kind", DASK)
def test_minibatches_of_a_dask_table_are_those_of_the_array(kind: str, tmp_path: Path) -> None:
    expected = model(solver="svi").fit(X, Y, WEIGHTS)
    with dask.config.set(scheduler="synchronous"):
        assert_same_fit(model(solver="svi").fit(*DASK[kind](tmp_path, Y)), expected)


def test_rows_that_arrive_later(tmp_path: Path) -> None:
    first = model(solver="cavi").fit(X, Y, WEIGHTS)
    found = [
        deepcopy(first).partial_fit(*given)
        for given in ((X, Y, WEIGHTS), (Stream(X, Y, WEIGHTS),), mapped(tmp_path, Y))
    ]
    for one in found[1:]:
        assert_same_fit(one, found[0])
