"""Dask clusters of processes: the same fits as on one machine, also when workers die."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose

from bowtienet.ensemble import forecasts
from bowtienet.estimators.network import BowTieNetwork
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.tables import sources

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # Of a cluster whose processes are killed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Four times as many rows as a fit holds; it trains no longer for them."""
    monkeypatch.setattr(sources, "SAMPLE", 500)
    monkeypatch.setattr(forecasts, "MOST_LONGER", 1.0)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2_000, 3))
    y = np.abs(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=2_000)
    city = rng.choice(["Rome", "Oslo"], 2_000)
    return pd.DataFrame({**{f"x{j}": X[:, j] for j in range(3)}, "city": city, "y": y})


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with LocalCluster(dashboard_address=None, **options) as started, Client(started):
        yield started


@contextmanager
def after(seconds: float, action: Any, times: int = 1) -> Iterator[list[float]]:
    """`action` while something else goes on, and when it was."""
    done, ended = [], threading.Event()

    def run() -> None:
        while len(done) < times and not ended.wait(seconds):
            action()
            done.append(seconds)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def kill_a_worker(cluster: LocalCluster) -> None:
    worker = next(iter(cluster.workers.values()))
    os.kill(worker.process.pid, signal.SIGKILL)


def replace_a_worker(cluster: LocalCluster) -> None:
    """One dies, and one comes that has never been there."""
    kill_a_worker(cluster)
    cluster.scale(len(cluster.workers) + 1)


def test_coordinate_ascent_is_that_of_one_machine(
    cluster: LocalCluster, table: pd.DataFrame
) -> None:
    """Also with a worker killed twice: gate probabilities are made again from the first sweep."""
    model = BowTieNetwork((8,), n_members=2, random_state=0, max_iter=60, tol=1e-12)
    here, X = model.fit(table, "y").elbo_history_, table.drop(columns="y")
    predicted = model.predict(X)
    rows = dd.from_pandas(table, npartitions=5)
    with after(0.7, lambda: kill_a_worker(cluster), times=2) as killed:
        there = model.fit(rows, "y").elbo_history_
    assert len(killed) == 2
    assert_allclose(there, here, rtol=1e-8)
    assert_allclose(model.predict(X), predicted, atol=1e-8)


def test_practical_fits_on_a_cluster(cluster: LocalCluster, table: pd.DataFrame) -> None:
    """Killed and added workers change nothing: tasks are pure. Rows are drawn as on one machine."""
    few = {"encoding": "standard", "target_transform": "none", "effort": "fast"}
    model = BowTieRegressor((16,), **few, random_state=0)
    X = table.drop(columns="y")
    noise = np.mean((table["y"] - np.abs(X["x0"]) - X["x1"]) ** 2)
    here = model.fit([table[:1_000], table[1_000:]], "y").predict(X)
    rows = dd.from_pandas(table, npartitions=4)
    there = model.fit(rows, "y").predict(rows)
    errors = [np.mean((table["y"] - mean) ** 2) for mean in (here, there)]
    assert max(errors) < 1.15 * noise
    with after(0.5, lambda: replace_a_worker(cluster), times=2) as killed:
        again = model.fit(rows.persist(), "y").predict(X)
    assert len(killed) == 2
    assert_allclose(again, there, atol=1e-4)


def test_a_scheduler_that_goes_away_is_one_sentence(
    cluster: LocalCluster, table: pd.DataFrame
) -> None:
    rows = dd.from_pandas(table, npartitions=4)
    model = BowTieNetwork((8,), random_state=0, max_iter=2_000, tol=1e-15)
    with after(2.0, cluster.close), pytest.raises(RuntimeError, match="scheduler is gone"):
        model.fit(rows, "y")
