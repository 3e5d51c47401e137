"""The whole estimator on Dask tables, with two worker processes."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import bowtienet as bt
from bowtienet.estimators import fitting, running
from bowtienet.estimators.checkpoint import Checkpoint
from bowtienet.estimators.cluster import ClusterRows
from bowtienet.estimators.tasks import Outcome, run_task
from tests.estimators.clusters import kill_worker, left_over, local_cluster, once, stored

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dask_array = pytest.importorskip("dask.array")
dask_frame = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")
pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="kills processes by signal"),
    pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"),
]

N = 120


def estimator(**settings: Any) -> bt.BowTieRegressor:
    """Two small members, of few sweeps."""
    usual = {
        "hidden_layer_sizes": (4,),
        "n_estimators": 2,
        "combine": "equal",
        "max_iter": 12,
        "random_state": 0,
        "solver": "cavi",
    }
    return bt.BowTieRegressor(**{**usual, **settings})


def numbers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, two targets and weights, of which some are zero."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    y = np.stack([np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1], X[:, 2] ** 2], axis=1)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=N)
    return X, y + rng.normal(0.0, 0.1, size=y.shape), weights


def tables() -> tuple[Any, Any, Any]:
    """The same as Dask arrays, cut at other places."""
    X, y, weights = numbers()
    chunk = dask_array.from_array
    return chunk(X, chunks=(35, 2)), chunk(y, chunks=(50, 2)), chunk(weights, chunks=35)


def frame(names: str) -> Any:
    """Columns of the same as a Dask data frame: inputs a, b and c, targets y and z, weights w."""
    X, y, weights = numbers()
    table = pandas.DataFrame(np.column_stack([X, y, weights]), columns=list("abcyzw"))
    return dask_frame.from_pandas(table[list(names)], npartitions=3)


def before_pass(
    monkeypatch: pytest.MonkeyPatch, number: int, deed: Callable[[], Any] = lambda: None
) -> list[int]:
    """Do a deed before a pass of the first fit on the workers; a list that grows by each pass."""
    passes: list[int] = []
    whole = ClusterRows.local_pass
    do = once(deed)

    def local_pass(self: ClusterRows, *arguments: Any) -> Any:
        passes.append(len(passes))
        if len(passes) == number:
            do()
        return whole(self, *arguments)

    monkeypatch.setattr(ClusterRows, "local_pass", local_pass)
    return passes


def assert_same_fit(found: bt.BowTieRegressor, expected: bt.BowTieRegressor) -> None:
    """The same numbers but for the rounding of sums over rows."""
    X, _, _ = numbers()
    if hasattr(found, "feature_names_in_"):
        X = frame("abc").compute()
    assert found.solver_ == expected.solver_ == "cavi"
    assert found.n_iter_ == expected.n_iter_
    np.testing.assert_allclose(found.elbo_, expected.elbo_, rtol=1e-8)
    np.testing.assert_allclose(found.elbo_history_, expected.elbo_history_, rtol=1e-8)
    np.testing.assert_allclose(found.member_weights_, expected.member_weights_, rtol=1e-12)
    for one, other in zip(
        found.predict(X, return_std=True), expected.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_without_a_client_only_svi_reads_dask_tables() -> None:
    """The first test of this file: the others share a client."""
    sentence = r"Dask tables need a scheduler: start one with distributed\.Client\(\) first"
    for solver in ("cavi", "auto"):
        with pytest.raises(ValueError, match=sentence):
            estimator(solver=solver).fit(*tables())
    assert estimator(solver="svi", max_iter=2).fit(*tables()).solver_ == "svi"


SETTINGS = {
    "equal": {},
    "stacking": {"combine": "stacking", "init_penalty": 0.1, "max_iter": 22},
    "two layers": {"hidden_layer_sizes": (4, 3), "n_estimators": 1},
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_dask_array_gives_the_fit_in_memory(
    client: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = before_pass(monkeypatch, 0)
    X, y, weights = numbers()
    expected = estimator(**SETTINGS[name]).fit(X, y[:, 0], weights)
    assert not passes
    X, y, weights = tables()
    found = estimator(**SETTINGS[name]).fit(X, y[:, 0], weights)
    assert len(passes) > 10
    assert_same_fit(found, expected)
    assert sum(map(len, client.run(stored).values())) == 0
    assert not left_over(client, "")


@pytest.mark.parametrize(
    ("names", "target"),
    [("abcyw", "y"), ("awbcyz", ["z", "y"])],
    ids=["one target", "two targets"],
)
def test_a_dask_frame_gives_the_fit_in_memory(client: Any, names: str, target: Any) -> None:
    expected = estimator().fit(frame(names).compute(), target, "w")
    found = estimator().fit(frame(names), target, "w")
    assert list(found.feature_names_in_) == ["a", "b", "c"]
    assert found.n_outputs_ == len(target)
    assert_same_fit(found, expected)


def test_auto_gathers_few_rows_and_fits_them_in_memory(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = before_pass(monkeypatch, 0)
    X, y, weights = numbers()
    expected = estimator(solver="auto").fit(X, y, weights)
    found = estimator(solver="auto").fit(*tables())
    assert not passes
    np.testing.assert_array_equal(found.elbo_history_, expected.elbo_history_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    monkeypatch.setattr(fitting, "LARGE", 0)
    assert_same_fit(estimator(solver="auto").fit(*tables()), expected)
    assert passes


def test_svi_and_predictions_read_partitions(client: Any) -> None:
    found = estimator(solver="svi", max_iter=6).fit(frame("abcyw"), "y", "w")
    assert found.solver_ == "svi"
    there, table = frame("abcyw"), frame("abcyw").compute()
    X, inputs = table[["a", "b", "c"]], there[["a", "b", "c"]]
    np.testing.assert_allclose(found.predict(inputs), found.predict(X), rtol=1e-12)
    np.testing.assert_allclose(found.predict_interval(inputs), found.predict_interval(X))
    for score in (found.score, found.log_score):
        expected = score(X, table["y"], table["w"])
        assert score(there, "y", "w") == pytest.approx(expected, rel=1e-10)
    assert found.score(inputs, there["y"]) > 0.5


def test_warm_start_goes_on_with_members_that_lost_inputs(client: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = 2.0 * np.abs(X[:, 0]) + rng.normal(0.0, 0.05, size=N)
    before = estimator(warm_start=True, max_iter=40).fit(X, y).prune()
    kept = {tuple(member.pruning.inputs) for member in before.ensemble_.members}
    assert len(kept) == 2
    before.set_params(max_iter=8)
    expected = copy.deepcopy(before).fit(X, y)
    found = before.fit(dask_array.from_array(X, chunks=(50, 3)), y)
    for one, other in zip(found.ensemble_.members, expected.ensemble_.members, strict=True):
        np.testing.assert_allclose(one.elbo_history, other.elbo_history, rtol=1e-8)
    assert sum(map(len, client.run(stored).values())) == 0
    assert not left_over(client, "")


def counted(X: np.ndarray, folder: str) -> np.ndarray:
    """Leave a file for every time that a partition is read."""
    if len(X):
        Path(folder, f"{X[0, 0]}_{len(os.listdir(folder))}").touch()
    return X


@pytest.mark.parametrize("solver", ["cavi", "auto"])
def test_every_partition_is_read_once(client: Any, solver: str, tmp_path: Path) -> None:
    X, y, weights = tables()
    X = X.rechunk({1: -1}).map_blocks(counted, str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    estimator(solver=solver, max_iter=2).fit(X, y, weights)
    assert len(list(tmp_path.iterdir())) == X.numblocks[0] == 4


def test_a_worker_that_dies_costs_little(doomed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = numbers()
    settings = {"max_iter": 60, "n_estimators": 1}
    expected = estimator(**settings).fit(X, y[:, 0])
    passes = before_pass(monkeypatch, 8, partial(kill_worker, doomed))
    X = dask_array.from_array(X, chunks=(35, 3))
    found = estimator(**settings).fit(X, y[:, 0])
    assert len(passes) > 20
    # It costs the momentum, and again when the new worker takes its share.
    assert found.elbo_ > expected.elbo_history_[30]
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=0.1)


def test_a_fit_on_a_cluster_can_be_resumed(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weights = numbers()
    expected = estimator(max_iter=30).fit(X, y, weights)
    model = estimator(max_iter=30, checkpoint=tmp_path / "fit", checkpoint_every=0.0)

    def stop() -> None:
        raise RuntimeError("the power failed")

    with monkeypatch.context() as patch:
        before_pass(patch, 45, stop)
        with pytest.raises(RuntimeError, match="the power failed"):
            model.fit(*tables())
    content = Checkpoint(tmp_path / "fit").read()
    assert len(content["outcomes"]) == 1
    assert content["under_way"] is not None
    passes = before_pass(monkeypatch, 0)
    model.resume(*tables())
    assert 0 < len(passes) < 45
    assert model.elbo_ == pytest.approx(expected.elbo_, rel=0.02)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=0.1)


def test_a_fit_goes_on_when_the_scheduler_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weights = numbers()
    model = estimator(n_estimators=1, checkpoint=tmp_path / "fit", checkpoint_every=0.0)
    with local_cluster() as client, monkeypatch.context() as patch:
        before_pass(patch, 8, client.processes.close)
        with pytest.raises(ConnectionError, match=r"the Dask scheduler at tcp://.* went away"):
            model.fit(*tables())
    assert Checkpoint(tmp_path / "fit").read()["under_way"]["engine"].n_sweeps == 7
    assert not hasattr(model, "ensemble_")
    with local_cluster():
        passes = before_pass(monkeypatch, 0)
        model.resume(*tables())
    assert 0 < len(passes) <= 5
    expected = estimator(n_estimators=1).fit(X, y, weights)
    assert model.elbo_ == pytest.approx(expected.elbo_, rel=0.02)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=0.2)


def signed_task(folder: str, *arguments: Any, **more: Any) -> Outcome:
    """Leave a file with the name of the process that runs a task."""
    Path(folder, str(os.getpid())).touch()
    return run_task(*arguments, **more)


def test_members_run_on_workers_through_joblib(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joblib = pytest.importorskip("joblib")
    X, y, weights = numbers()
    expected = estimator(n_estimators=4).fit(X, y, weights)
    monkeypatch.setattr(running, "run_task", partial(signed_task, str(tmp_path)))
    with joblib.parallel_config(backend="dask"):
        found = estimator(n_estimators=4, n_jobs=2).fit(X, y, weights)
    workers = set(map(str, client.run(os.getpid).values()))
    assert {path.name for path in tmp_path.iterdir()} <= workers
    assert list(tmp_path.iterdir())
    for one, other in zip(found.ensemble_.members, expected.ensemble_.members, strict=True):
        assert one.elbo_history == other.elbo_history
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_bad_input_is_named(client: Any) -> None:
    X, y, _ = numbers()
    X[80, 1] = np.nan
    X = dask_array.from_array(X, chunks=(35, 3))
    for solver in ("cavi", "auto", "svi"):
        with pytest.raises(ValueError, match=r"partition 2: NaN or infinity in column 1 \(1 NaN\)"):
            estimator(solver=solver).fit(X, y)
    assert not left_over(client, "")
    with pytest.raises(ValueError, match="the target is missing"):
        estimator().fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but BowTieRegressor is expecting 3"):
        estimator(max_iter=1).fit(X[:70], y[:70]).predict(X[:, :2])
