"""Seconds and memory of predicting a mean and a deviation for a million rows.

One member with 50 hidden units is fitted to 2,000 simulated rows with 8 inputs and saved; then, for
one core and for all and by both propagations, a fresh process loads it and predicts.
`make bench-predict` runs it and prints Markdown.

The estimator has no thread setting for prediction, so the process is held to its cores. Extra
memory is the rise of the peak resident size over three predictions: the inputs are there before,
the outputs are subtracted, and a small prediction beforehand has loaded what is loaded late.

This file imports no NumPy at the top: a child starts its count of the peak at what its parent held,
and the linear algebra library counts the cores when it is loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

TRAINING_ROWS = 2_000
ROWS = 1_000_000
INPUTS = 8
REPEATS = 3
MEGABYTE = 1e6
PROPAGATIONS = ("push_forward", "variational")


def training_rows(rows: int = TRAINING_ROWS) -> tuple[Any, Any]:
    """Simulated rows."""
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, INPUTS))
    return x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.normal(size=rows)


def fitted(rows: int = TRAINING_ROWS) -> Any:
    """An estimator fitted to simulated rows."""
    from sklearn.exceptions import ConvergenceWarning

    from bowtienet._old import BowTieRegressor, FitOptions

    x, y = training_rows(rows)
    options = FitOptions(weighting="equal")
    estimator = BowTieRegressor(n_estimators=1, max_iter=20, random_state=0, options=options)
    with warnings.catch_warnings():
        # Twenty sweeps give something to predict with; nobody asks how well.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(x, y)


def measure(path: str, cores: list[int], propagation: str, rows: int) -> dict[str, float]:
    """Seconds of each prediction and bytes beyond input and output, on the given cores."""
    os.sched_setaffinity(0, cores)
    import numpy as np

    from bowtienet._old import BowTieRegressor

    estimator = propagated(BowTieRegressor.load(path), propagation)
    x = np.random.default_rng(1).normal(size=(rows, INPUTS))
    mean, _ = estimator.predict(x[:1000], return_std=True)
    before = peak()
    seconds = [timed(estimator, x) for _ in range(REPEATS)]
    output = 2 * rows * mean.itemsize
    return {
        "best": min(seconds),
        "median": statistics.median(seconds),
        "input": x.nbytes,
        "output": output,
        "extra": peak() - before - output,
    }


def propagated(estimator: Any, propagation: str) -> Any:
    """The same estimator, which predicts by the named propagation from now on."""
    estimator.ensemble_ = replace(estimator.ensemble_, propagation=propagation)
    return estimator


def timed(estimator: object, x: object) -> float:
    """Seconds of one prediction, whose result is dropped before the next."""
    begin = time.perf_counter()
    estimator.predict(x, return_std=True)  # type: ignore[attr-defined]
    return time.perf_counter() - begin


def peak() -> int:
    """Largest resident size of this process so far, in bytes (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_own_process(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks._old.speed.predict", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def compare(rows: int) -> None:
    """A line for each propagation on one core and on all."""
    usable = sorted(os.sched_getaffinity(0))
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "estimator.safetensors")
        print("fitting", file=sys.stderr, flush=True)
        in_own_process("--fit", path)
        for propagation, count in product(PROPAGATIONS, sorted({1, len(usable)})):
            print(f"{propagation} on {count} of {len(usable)} cores", file=sys.stderr, flush=True)
            cores = json.dumps(usable[:count])
            found = json.loads(in_own_process("--measure", path, cores, propagation, str(rows)))
            lines.append(
                f"| {propagation} | {count} | {found['best']:.2f} | {found['median']:.2f} "
                f"| {1e6 * found['best'] / rows:.2f} | {found['extra'] / MEGABYTE:.0f} |"
            )
    print(
        f"{rows:,} rows, {INPUTS} inputs, one member; {REPEATS} predictions each, on a shared "
        f"machine. The input is {found['input'] / MEGABYTE:.0f} MB and mean and deviation together "
        f"are {found['output'] / MEGABYTE:.0f} MB; neither is in the last column.\n"
    )
    print("| propagation | cores | best, s | median, s | µs per row | extra memory, MB |")
    print("|---|---|---|---|---|---|")
    print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="rows to predict")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        fitted().save(arguments.fit)
    elif arguments.measure:
        path, cores, propagation, rows = arguments.measure
        print(json.dumps(measure(path, json.loads(cores), propagation, int(rows))))
    else:
        compare(arguments.rows)


if __name__ == "__main__":
    main()
