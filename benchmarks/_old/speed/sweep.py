"""Milliseconds of a sweep against what the machine's matrix product could do.

For each shape: the fastest of a few sweeps with 1 and 2 threads, the floating-point work of the
sweep's matrix products and inverses, the rate of a large float64 product measured in between (one
thread, the same run), and the ratio of the sweep to work / rate. Then the same for networks that
sweep together, whose bound nobody looks at and whose work is that of all; time per row from 10³ to
10⁶ rows, the peak memory of the largest shape, and the same sweep on torch and JAX arrays where
those are installed. `make bench-speed` runs it and prints Markdown; docs/measurements/speed.md
holds a run.

Every measurement runs in a process of its own, so that peaks of memory do not mix.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
from threadpoolctl import threadpool_limits

from bowtienet._old import engine
from bowtienet._old._arrays import to_numpy
from bowtienet._old.inference.coordinate_ascent import DEFAULT_REPEATS, State, sweep
from bowtienet._old.inference.execution import workers
from bowtienet._old.inference.global_step import update_shared_covariance
from bowtienet._old.inference.row_providers import HeldRows
from bowtienet._old.inference.together import sweep_together

SHAPES = (
    (1_000, 8, (50,)),
    (50_000, 20, (100,)),
    (5_000, 8, (50, 50)),
    (1_000_000, 20, (50,)),
)
TOGETHER = (
    (1_000, 8, (50,)),
    (834, 64, (50,)),
    (834, 128, (50,)),
    (5_000, 8, (50, 50)),
)
MEMBERS = 8
ROWS = (1_000, 10_000, 100_000, 1_000_000)


def work(rows: int, inputs: int, hidden: tuple[int, ...]) -> float:
    """Floating-point operations of the products and inverses of one sweep, one output.

    Multiplications and additions both count. Symmetric products count as packed; the inverse of a
    symmetric K x K matrix counts K³.
    """
    widths = (inputs, *hidden)
    per_row, fixed = 0.0, 0.0
    for layer, (below, width) in enumerate(pairwise(widths)):
        packed = (below + 1) * (below + 2) / 2
        per_row += 2 * width * (below + 1)  # E[z]
        per_row += 2 * packed * width  # E[z²]
        per_row += 2 * 2 * packed * width  # sums with omega and rho
        per_row += 2 * 2 * width * (below + 1)  # sums of rho E[a a~] and (rho - ½) mu~
        per_row += 2 * width * width  # S r
        fixed += DEFAULT_REPEATS * width * (below + 1) ** 3
        if layer > 0:
            per_row += 2 * width * width * below  # M = S G
            per_row += 2 * width * below * below  # G'M
            per_row += 2 * (below * (below + 1) / 2) * width  # Σ c E[W'W], packed
            per_row += below**3  # inverse of the lower layer's precision
            per_row += 2 * width * below * below  # M C
            per_row += 2 * width * width * below  # (M C) M'
    per_row += (widths[-1] + 1) ** 2  # Σ mu~ mu~', symmetric
    fixed += DEFAULT_REPEATS * 2 * (widths[-1] + 1) ** 3
    return rows * per_row + fixed


def product_rate() -> float:
    """Operations per second of a float64 product of 1000 x 1000 matrices on one thread."""
    a = np.random.default_rng(0).normal(size=(1000, 1000))
    with threadpool_limits(limits=1, user_api="blas"):
        return 2e9 / min(_timed(lambda: a @ a) for _ in range(5))


def problem(
    rows: int,
    inputs: int,
    hidden: tuple[int, ...],
    library: str = "numpy",
    precision: str = "float64",
) -> tuple[State, HeldRows]:
    """A state to sweep from, with arrays of the named library and precision."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, inputs))
    y = np.sin(x[:, :1]) + 0.1 * rng.normal(size=(rows, 1))
    architecture = engine.build_architecture(inputs, hidden, 1)
    model = engine.default_model(architecture, x[:1000], y[:1000])
    x, y = x.astype(precision, copy=False), y.astype(precision, copy=False)
    if library == "torch":
        import torch

        torch.set_num_threads(1)
        x, y = torch.from_numpy(x), torch.from_numpy(y)
    elif library == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        x, y = jax.numpy.asarray(x), jax.numpy.asarray(y)
    table = engine.build_rows(x, y)
    factors = update_shared_covariance(engine.initialize(model, table, 1, init="laplace"))
    kept = HeldRows(table, architecture)
    memory = kept.begin(model, factors)
    return State(model=model, factors=factors, memory=memory), kept


@contextmanager
def sweeper(state: State, kept: HeldRows, threads: int) -> Iterator[Callable[[], float]]:
    """A function that does the next sweep and returns its bound."""
    with workers(threads) as apply:

        def advance() -> float:
            nonlocal state
            state, terms = sweep(
                state, kept, repeats=DEFAULT_REPEATS, empirical_bayes=True, apply=apply
            )
            return float(to_numpy(terms.total))

        yield advance


def measure(
    rows: int, inputs: int, hidden: tuple[int, ...], threads: int, library: str
) -> dict[str, float]:
    """Fastest and first sweep, product rate around them, and peak memory of this process."""
    before = product_rate()
    times: list[float] = []
    with sweeper(*problem(rows, inputs, hidden, library), threads) as advance:
        while len(times) < 3 or (sum(times) < 3.0 and len(times) < 200):
            begin = time.perf_counter()
            bound = advance()
            times.append(time.perf_counter() - begin)
    rate = max(before, product_rate())
    data = rows * (inputs + 2) * 8
    return {
        "first": times[0],
        "seconds": min(times),
        "rate": rate,
        "bound": bound,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
        "allowed": data + rows * sum(hidden) * 8 + 500e6,
    }


def measure_together(
    rows: int, inputs: int, hidden: tuple[int, ...], threads: int
) -> dict[str, float]:
    """Fastest sweep of `MEMBERS` networks side by side, and the product rate around it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, inputs))
    y = np.sin(x[:, :1]) + 0.1 * rng.normal(size=(rows, 1))
    model = engine.default_model(engine.build_architecture(inputs, hidden, 1), x, y)
    table = engine.build_rows(x, y)
    starts = [engine.initialize(model, table, seed, init="laplace") for seed in range(MEMBERS)]
    row_weights = np.asarray(rng.uniform(size=(MEMBERS, rows)) > 0.2, dtype=float)
    before = product_rate()
    ends: list[float] = []

    def note(number: int) -> bool:
        ends.append(time.perf_counter())
        return number >= 4 and ends[-1] - ends[0] > 3.0

    sweep_together(
        model, table, row_weights, starts, lengths=(200,), n_threads=threads, callback=note
    )
    return {"seconds": float(np.min(np.diff(ends))), "rate": max(before, product_rate())}


def in_own_process(*arguments: object) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks._old.speed.sweep", "--measure", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _timed(function: object) -> float:
    begin = time.perf_counter()
    function()  # type: ignore[operator]
    return time.perf_counter() - begin


def name(shape: tuple[int, int, tuple[int, ...]]) -> str:
    rows, inputs, hidden = shape
    return f"{rows:,}, {inputs}, {'-'.join(map(str, hidden))}"


def table_of_shapes(most_rows: float) -> None:
    print(
        "| rows, inputs, hidden | ms, 1 thread | ms, 2 threads | speed-up "
        "| GFlop | GFlop/s | ratio |"
    )
    print("|---|---|---|---|---|---|---|")
    for shape in [shape for shape in SHAPES if shape[0] <= most_rows]:
        one, two = (in_own_process(*shape, threads, "numpy") for threads in (1, 2))
        flops = work(*shape)
        print(
            f"| {name(shape)} | {1e3 * one['seconds']:.1f} | {1e3 * two['seconds']:.1f} "
            f"| {one['seconds'] / two['seconds']:.2f} | {flops / 1e9:.3f} "
            f"| {one['rate'] / 1e9:.0f} | {one['seconds'] * one['rate'] / flops:.1f} |",
            flush=True,
        )
        if shape is SHAPES[-1]:
            print(
                f"\nPeak memory of the last shape: {two['peak'] / 1e6:.0f} MB with two threads, "
                f"{one['peak'] / 1e6:.0f} MB with one; data, rows x hidden doubles and 500 MB are "
                f"{one['allowed'] / 1e6:.0f} MB."
            )
    print()


def table_of_networks(most_rows: float) -> None:
    print(
        f"| rows, inputs, hidden; {MEMBERS} networks | ms, 1 thread | ms, 2 threads | speed-up "
        "| GFlop | GFlop/s | ratio |"
    )
    print("|---|---|---|---|---|---|---|")
    for shape in [shape for shape in TOGETHER if shape[0] <= most_rows]:
        one, two = (in_own_process(*shape, threads, "together") for threads in (1, 2))
        flops = MEMBERS * work(*shape)
        print(
            f"| {name(shape)} | {1e3 * one['seconds']:.1f} | {1e3 * two['seconds']:.1f} "
            f"| {one['seconds'] / two['seconds']:.2f} | {flops / 1e9:.3f} "
            f"| {one['rate'] / 1e9:.0f} | {one['seconds'] * one['rate'] / flops:.1f} |",
            flush=True,
        )
    print()


def table_of_rows(most_rows: float) -> None:
    print("| rows (20 inputs, 50 units) | µs per row, 1 thread |")
    print("|---|---|")
    for rows in [rows for rows in ROWS if rows <= most_rows]:
        one = in_own_process(rows, 20, (50,), 1, "numpy")
        print(f"| {rows:,} | {1e6 * one['seconds'] / rows:.2f} |", flush=True)
    print()


def table_of_libraries(most_rows: float) -> None:
    print("| rows, inputs, hidden | library | ms, 1 thread | first sweep, ms | ratio |")
    print("|---|---|---|---|---|")
    for shape in [shape for shape in SHAPES[:3] if shape[0] <= most_rows]:
        for library in ("numpy", "torch", "jax"):
            if importlib.util.find_spec(library) is None:
                print(f"| {name(shape)} | {library} | not installed | | |")
                continue
            one = in_own_process(*shape, 1, library)
            print(
                f"| {name(shape)} | {library} | {1e3 * one['seconds']:.1f} "
                f"| {1e3 * one['first']:.0f} | {one['seconds'] * one['rate'] / work(*shape):.1f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most-rows", type=float, default=float("inf"), help="of any shape")
    parser.add_argument("--no-libraries", action="store_true", help="leave out torch and JAX")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        rows, inputs, hidden, threads, library = json.loads(arguments.measure)
        shape = (rows, inputs, tuple(hidden), threads)
        alone = library != "together"
        print(json.dumps(measure(*shape, library) if alone else measure_together(*shape)))
        return
    table_of_shapes(arguments.most_rows)
    table_of_networks(arguments.most_rows)
    table_of_rows(arguments.most_rows)
    if not arguments.no_libraries:
        table_of_libraries(arguments.most_rows)


if __name__ == "__main__":
    main()
