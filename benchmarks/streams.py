"""Rows beyond memory: what a fit of a folder of Parquet takes and reaches, here and on a cluster.

python -m benchmarks streams --rows 2000000 --page docs/measurements/streams.md
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.fit import smooth
from bowtienet.estimators.network import BowTieNetwork
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.tables import sources

COLUMNS, FILE_ROWS, TEST_ROWS, NOISE = 20, 100_000, 100_000, 0.3
FEW = 100_000
"""Rows of the fit in memory beside it, and of the folder for sums."""
CLUSTER_SAMPLE = 5_000
"""Rows that networks start from where sums are compared, so that there are many more."""


def rows(number: int, count: int) -> dict[str, np.ndarray]:
    """A file's rows; the truth has five columns, and a deviation of 1.9."""
    rng = np.random.default_rng([7, number])
    X = rng.normal(size=(count, COLUMNS))
    y = smooth(X) + NOISE * rng.normal(size=count)
    return {**{f"x{j}": X[:, j] for j in range(COLUMNS)}, "y": y}


def write_folder(folder: Path, count: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    for number in range(-(-count // FILE_ROWS)):
        size = min(FILE_ROWS, count - number * FILE_ROWS)
        table = pa.table(rows(number, size))
        parquet.write_table(table, folder / f"{number:05}.parquet", row_group_size=FILE_ROWS)


class Measured:
    """Seconds, and the peak of resident memory above that before the work, in MB."""

    seconds = peak = 0.0


@contextmanager
def measured() -> Iterator[Measured]:
    process, done, result = psutil.Process(), threading.Event(), Measured()
    before, began = process.memory_info().rss, time.perf_counter()

    def watch() -> None:
        while not done.wait(0.02):
            result.peak = max(result.peak, (process.memory_info().rss - before) / 1e6)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield result
    finally:
        done.set()
        thread.join()
        result.seconds = time.perf_counter() - began


def scores(predict: Callable[[Any], Any], X: Any, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.asarray(predict(X)) - y) ** 2)))


def few_of(folder: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(folder / "00000.parquet")


def fits(folder: Path, X: Any, y: np.ndarray) -> list[tuple[Any, ...]]:
    """Name, rows, seconds, peak, RMSE and mean log density."""
    results: list[tuple[Any, ...]] = []
    with measured() as cost:
        model = BowTieRegressor(effort="fast", random_state=0).fit(folder, "y")
    found = scores(model.predict, X, y), model.log_score(X, y)
    results.append(("folder, effort='fast'", cost.seconds, cost.peak, *found))
    with measured() as cost:
        predicted = model.predict(folder)
    results.append((f"prediction of the {len(predicted)} rows", cost.seconds, cost.peak, "", ""))
    few = few_of(folder)[:FEW]
    with measured() as cost:
        model = BowTieRegressor(effort="fast", random_state=0).fit(few, "y")
    found = scores(model.predict, X, y), model.log_score(X, y)
    results.append((f"{len(few)} of its rows in memory", cost.seconds, cost.peak, *found))
    results.append(lightgbm(folder, X, y))
    return results


def lightgbm(folder: Path, X: Any, y: np.ndarray) -> tuple[Any, ...]:
    """All rows in memory, its own number of threads held to one."""
    import pandas as pd
    from lightgbm import LGBMRegressor

    with measured() as cost:
        table = pd.read_parquet(folder)
        # Of such tables more trees and leaves than its defaults are the usual choice.
        model = LGBMRegressor(n_estimators=500, num_leaves=63, n_jobs=1, verbose=-1)
        model.fit(table.drop(columns="y"), table["y"])
    return "LightGBM, all rows in memory", cost.seconds, cost.peak, scores(model.predict, X, y), ""


def on_cluster(folder: Path, X: Any, y: np.ndarray) -> list[tuple[Any, ...]]:
    """Two workers of one thread, one of which is killed twice in each fit."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    results: list[tuple[Any, ...]] = []
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "silence_logs": 50,
    }
    with LocalCluster(**options) as cluster, Client(cluster):
        table = dd.read_parquet(folder)
        with killing(cluster), measured() as cost:
            model = BowTieRegressor(effort="fast", random_state=0).fit(table, "y")
        found = scores(model.predict, X, y), model.log_score(X, y)
        results.append(("two Dask workers, killed twice", cost.seconds, cost.peak, *found))
        sample, sources.SAMPLE = sources.SAMPLE, CLUSTER_SAMPLE
        try:
            first = dd.read_parquet(folder / "00000.parquet").repartition(npartitions=8)
            few = few_of(folder)
            here = BowTieNetwork((20,), random_state=0).fit(few, "y")
            with killing(cluster), measured() as cost:
                there = BowTieNetwork((20,), random_state=0).fit(first, "y")
        finally:
            sources.SAMPLE = sample
        apart = np.max(np.abs(there.elbo_history_ / here.elbo_history_ - 1.0))
        note = f"BowTieNetwork, {len(few)} rows, killed twice: bounds differ by {apart:.0e}"
        results.append((note, cost.seconds, cost.peak, scores(there.predict, X, y), ""))
    return results


@contextmanager
def killing(cluster: Any) -> Iterator[None]:
    """A worker is killed after five seconds, and again after another five, or sooner at the end."""
    ended = threading.Event()

    def kill() -> None:
        for _ in range(2):
            if ended.wait(5.0):
                return
            worker = next(iter(cluster.workers.values()))
            if worker.process is not None and worker.process.pid is not None:
                os.kill(worker.process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def page(results: list[tuple[Any, ...]], count: int) -> str:
    lines = [
        "# Rows beyond memory",
        "",
        f"`python -m benchmarks streams --rows {count}`: a folder of Parquet with {count} rows of "
        f"{COLUMNS} normal columns, of which five matter, and noise {NOISE}; "
        f"{TEST_ROWS} new rows; one core. Memory is the peak above the start, of the process that "
        "fits.",
        "",
        "| fit | seconds | memory, MB | RMSE | mean log density |",
        "|---|---|---|---|---|",
    ]
    for name, seconds, peak, *found in results:
        cells = [f"{value:.4f}" if isinstance(value, float) else value for value in found]
        lines.append(f"| {name} | {seconds:.0f} | {peak:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks streams", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, help="for the files; a temporary one by default")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    import pandas as pd

    from benchmarks._run import write

    test = pd.DataFrame(rows(999_999, TEST_ROWS))
    X, y = test.drop(columns="y"), test["y"].to_numpy()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        write_folder(folder, given.rows)
        results = fits(folder, X, y)
        results += on_cluster(folder, X, y)
    write(page(results, given.rows), given.page)


if __name__ == "__main__":
    main()
