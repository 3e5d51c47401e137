"""Rows beyond memory: what a fit of a folder of Parquet takes and reaches, here and on a cluster.

python -m benchmarks streams --rows 2000000 10000000 --page docs/measurements/streams.md
"""

from __future__ import annotations

import argparse
import os
import resource
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
from bowtienet import BowTieNetwork, BowTieRegressor, load
from bowtienet.tables import sources

Row = tuple[Any, ...]
"""Name, seconds, peak, RMSE and mean log density."""
COLUMNS, FILE_ROWS, TEST_ROWS, NOISE = 20, 100_000, 100_000, 0.3
FEW = 100_000
"""Rows of the fit in memory beside it, and of the folder for sums."""
LIMIT = 1_000
"""Megabytes that fits and predictions of the folder may take beyond what the start has."""
MODELS = 10_000
"""Models that are saved, loaded and dropped."""
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


@contextmanager
def limited() -> Iterator[None]:
    """Beyond `LIMIT` more megabytes the system refuses memory to this process."""
    # Its own pool reserves much more than it uses, and the system counts that.
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    taken = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (taken + LIMIT * 1_000_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def scores(predict: Callable[[Any], Any], X: Any, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.asarray(predict(X)) - y) ** 2)))


def few_of(folder: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(folder / "00000.parquet")


def of_folder(folder: Path, count: int, X: Any, y: np.ndarray) -> list[Row]:
    """A fit and predictions within `LIMIT`."""
    with limited(), measured() as cost:
        model = BowTieRegressor(effort="fast", random_state=0).fit(folder, "y")
    found = scores(model.predict, X, y), model.log_score(X, y)
    results: list[Row] = [(f"folder of {count:,} rows", cost.seconds, cost.peak, *found)]
    with limited(), measured() as cost:
        predicted = model.predict(folder)
    name = f"its prediction of those {len(predicted):,} rows"
    return [*results, (name, cost.seconds, cost.peak, "", "")]


def in_memory(folder: Path, X: Any, y: np.ndarray) -> list[Row]:
    """What a hundredth of the rows gives, and LightGBM with all of them."""
    few = few_of(folder)[:FEW]
    with measured() as cost:
        model = BowTieRegressor(effort="fast", random_state=0).fit(few, "y")
    found = scores(model.predict, X, y), model.log_score(X, y)
    name = f"{len(few):,} of its rows in memory"
    return [(name, cost.seconds, cost.peak, *found), lightgbm(folder, X, y)]


def models(X: Any, y: np.ndarray) -> Row:
    """What models leave behind that are saved, loaded, predict a row and go."""
    model = BowTieRegressor(effort="fast", random_state=0).fit(X[:200], y[:200])
    with tempfile.TemporaryDirectory() as folder, measured() as cost:
        for number in range(MODELS):
            if number == MODELS // 10:  # the first ones fill caches
                start = psutil.Process().memory_info().rss
            model.save(Path(folder) / "model.btn")
            load(Path(folder) / "model.btn").predict(X[:1])
        growth = (psutil.Process().memory_info().rss - start) / 1e6
    name = f"{MODELS:,} models saved, loaded and dropped; the last 90 % leave {growth:.1f} MB"
    return name, cost.seconds, cost.peak, "", ""


def lightgbm(folder: Path, X: Any, y: np.ndarray) -> Row:
    """All rows in memory, its own number of threads held to one."""
    import pandas as pd
    from lightgbm import LGBMRegressor

    with measured() as cost:
        table = pd.read_parquet(folder)
        # Of such tables more trees and leaves than its defaults are the usual choice.
        model = LGBMRegressor(n_estimators=500, num_leaves=63, n_jobs=1, verbose=-1)
        model.fit(table.drop(columns="y"), table["y"])
    return "LightGBM, all rows in memory", cost.seconds, cost.peak, scores(model.predict, X, y), ""


def on_cluster(folder: Path, X: Any, y: np.ndarray) -> list[Row]:
    """Two workers of one thread, one of which is killed twice in each fit."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    results: list[Row] = []
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


def page(results: list[Row], counts: list[int]) -> str:
    files = COLUMNS * 8 * max(counts) / 1e9
    lines = [
        "# Rows beyond memory",
        "",
        f"`python -m benchmarks streams --rows {' '.join(map(str, counts))}`: folders of Parquet "
        f"with {COLUMNS} normal columns, of which five matter, and noise {NOISE}; {TEST_ROWS:,} "
        'new rows; `effort="fast"`, one core. Memory is the peak above the start, of the process '
        f"that fits. While it fits or predicts a folder (the largest has {files:.1f} GB), the "
        f"system refuses it more than {LIMIT:,} MB beyond what it has at the start.",
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
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, help="for the files; a temporary one by default")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    import pandas as pd

    from benchmarks._run import write

    test = pd.DataFrame(rows(999_999, TEST_ROWS))
    X, y = test.drop(columns="y"), test["y"].to_numpy()
    results = []
    for count in given.rows:
        with tempfile.TemporaryDirectory(dir=given.folder) as name:
            folder = Path(name)
            write_folder(folder, count)
            results += of_folder(folder, count, X, y)
            print(page(results, given.rows), flush=True)
            if count == max(given.rows):
                results += in_memory(folder, X, y)
                print(page(results, given.rows), flush=True)
                results += on_cluster(folder, X, y)
    results.append(models(X, y))
    write(page(results, given.rows), given.page)


if __name__ == "__main__":
    main()
