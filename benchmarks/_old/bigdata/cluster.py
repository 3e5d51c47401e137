"""Seconds per sweep on two cluster workers against one.

A Dask array of a million rows with 20 inputs is made on the workers of a `LocalCluster` (processes
with one thread each) and stays there; a network with 50 units is fitted by coordinate ascent, ten
plain sweeps from the same start. One worker, two workers and, for reference, one and two threads of
a single process that holds all rows run in turn, several times. `make bench-bigdata` runs it and
prints Markdown; progress goes to standard error.

Seconds per sweep are the median over all sweeps but the first, which also waits for the rows to be
made and for their first local factors. The ratio is taken within each round; its median is printed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

from bowtienet._old import engine
from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble.cluster import ClusterRows

INPUTS, HIDDEN = 20, (50,)
NOISE = 0.22
CHUNKS = 8
SAMPLE = 2_000
"""Rows of which the start is made."""


def targets(x: Any, noise: Any) -> Any:
    """Of order 1, for NumPy and for Dask."""
    return np.sin(x[:, 0] * x[:, 1]) + 0.5 * x[:, 2] + 0.5 * abs(x[:, 3]) + NOISE * noise


def start(seed: int) -> tuple[engine.BowTieModel, engine.GlobalFactors]:
    """The same model and factors for all."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SAMPLE, INPUTS))
    rows = engine.build_rows(x, targets(x, rng.normal(size=SAMPLE)))
    model = engine.default_model(
        engine.build_architecture(INPUTS, HIDDEN, 1), rows.inputs, rows.targets
    )
    return model, engine.initialize(model, rows, seed, init="laplace")


class Clock:
    """Notes when each sweep ended."""

    def __init__(self) -> None:
        self.times = [time.perf_counter()]

    def __call__(self, progress: engine.Progress) -> None:
        self.times.append(time.perf_counter())

    def seconds(self) -> tuple[float, float]:
        """Of the first sweep, and the median of the others."""
        first, *others = np.diff(self.times)
        return float(first), statistics.median(others)


def sweeps(rows: Any, options: argparse.Namespace, n_threads: int = 1) -> tuple[float, float]:
    model, factors = start(options.seed)
    clock = Clock()
    engine.fit(
        model,
        rows,
        factors,
        max_iter=options.sweeps,
        tol=0.0,
        accelerate=False,  # so that no sweep is undone
        n_threads=n_threads,
        callback=clock,
    )
    return clock.seconds()


def on_cluster(n_workers: int, options: argparse.Namespace) -> tuple[float, float]:
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        Client(cluster) as client,
    ):
        rng = da.random.default_rng(options.seed)
        per_chunk = -(-options.rows // CHUNKS)
        x = rng.normal(size=(options.rows, INPUTS), chunks=(per_chunk, INPUTS))
        y = targets(x, rng.normal(size=options.rows, chunks=per_chunk))
        build = delayed(as_rows, pure=False)
        chunks = zip(x.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
        with ClusterRows(client, [build(*chunk) for chunk in chunks]) as rows:
            return sweeps(rows, options)


def as_rows(x: np.ndarray, y: np.ndarray) -> Rows:
    return Rows(inputs=x, targets=y[:, None], weights=np.ones(len(x)))


def in_threads(n_threads: int, options: argparse.Namespace) -> tuple[float, float]:
    rng = np.random.default_rng(options.seed)
    x = rng.normal(size=(options.rows, INPUTS))
    y = targets(x, rng.normal(size=options.rows))
    return sweeps(engine.build_rows(x, y), options, n_threads)


RUNS = {
    "1 worker": lambda options: on_cluster(1, options),
    "2 workers": lambda options: on_cluster(2, options),
    "1 thread": lambda options: in_threads(1, options),
    "2 threads": lambda options: in_threads(2, options),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=140)
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in RUNS}
    for repeat in range(options.repeats):
        for name, run in RUNS.items():
            seconds = run(options)
            found[name].append(seconds)
            print(
                f"round {repeat + 1}, {name}: {seconds[0]:.3f} s, then {seconds[1]:.3f} s",
                file=sys.stderr,
                flush=True,
            )
    print_table(found, options)


def print_table(found: dict[str, list[tuple[float, float]]], options: argparse.Namespace) -> None:
    print(
        f"{options.rows:,} rows, {INPUTS} inputs, {HIDDEN[0]} units, {options.sweeps} sweeps, "
        f"{options.repeats} rounds; medians.\n"
    )
    print("| | first sweep, s | s per sweep | times as fast as one |")
    print("|---|---|---|---|")
    for name, rounds in found.items():
        one = found["1 worker" if "worker" in name else "1 thread"]
        ratios = [a[1] / b[1] for a, b in zip(one, rounds, strict=True)]
        first, later = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"| {name} | {first:.3f} | {later:.3f} | {statistics.median(ratios):.2f} |")
    ratios = [a[1] / b[1] for a, b in zip(found["1 worker"], found["2 workers"], strict=True)]
    print(
        f"\nTwo workers are {statistics.median(ratios):.2f} times as fast as one "
        f"({min(ratios):.2f} to {max(ratios):.2f})."
    )


if __name__ == "__main__":
    main()
