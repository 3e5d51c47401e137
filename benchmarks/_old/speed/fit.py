"""Processor seconds and memory of a fit, beside other methods, by the shape of the table.

Fits the default `BowTieRegressor` and peers (the Gaussian process and BART as the experiments of
`benchmarks._old.paper.methods` configure them, and `HistGradientBoostingRegressor`) to tables of several
shapes. `concrete` is a split of that set, nine tenths of 1,030 rows with 8 columns and the split
seeds 500, 501, ..., from the folder that the environment variable BOWTIENET_DATA names or from
OpenML, or a simulated table of that shape where neither has it. `1000x100` is a simulated table of
1,000 rows and 100 columns, `1000000x20.parquet` one that is written to a file in a temporary folder
first and fitted from there. The simulated target is a function of up to five uniform columns, with
an interaction, and noise,

    10 sin(π x0 x1) + 20 (x2 - ½)² + 10 x3 + 5 x4 + N(0, 1).

Each fit runs in a process of its own, on one thread of one core, after a fit to a few rows that
brings in all modules; `time.process_time` around the fit is what is reported, and the largest
resident memory at its end. A peer is left out where it would need too much memory or where its time
is out of proportion (`LIMITS`), and is stopped after `--longest` seconds.

`make bench-fit` runs it and prints Markdown; progress goes to standard error. With `--plot` a
figure of seconds by rows (of 10 columns) and by columns (of 1,000 rows) is drawn, too.

This file imports no NumPy at the top: a child starts its count of the peak at what its parent held.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FIRST_SEED = 500
CONCRETE = "concrete"
CONCRETE_ROWS, CONCRETE_COLUMNS = 927, 8
SHAPES = (
    CONCRETE,
    "10000x10",
    "1000x100",
    "200x200",
    "200x2000",
    "100000x10",
    "1000000x20.parquet",
)
OURS, EFFORTS = "bowtienet", ("fast", "best")
PEERS = ("Gaussian process", "BART", "HistGradientBoosting")
MODELS = (OURS, *(f"{OURS}, {effort}" for effort in EFFORTS), *PEERS)
LIMITS: dict[str, tuple[float, float]] = {
    "Gaussian process": (10_000, 1e9),
    "BART": (10_000, math.inf),
}
"""Most rows of a peer, and most rows² x columns x 8 bytes: what scikit-learn's gradient of a kernel
with a length scale for each column holds, several times."""
SMALL = 1_000
"""Rows up to which there are several splits, or tables."""
PLOT_ROWS, PLOT_COLUMNS = (300, 1_000, 3_000, 10_000, 30_000, 100_000), (5, 10, 30, 100, 300, 1_000)
FIGURE = Path(__file__).parents[3] / "docs" / "figures" / "fit_time.png"
GROUP_ROWS = 100_000
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)

Fit = Callable[[Any, Any, int], Any]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A table to fit."""

    rows: int
    columns: int
    is_concrete: bool = False
    in_file: bool = False


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one fit took; no seconds if it was stopped."""

    seconds: float | None
    megabytes: float = math.nan
    simulated: bool = True


def read_shape(text: str) -> Shape:
    """`concrete`, `1000x100` or `1000000x20.parquet`."""
    if text == CONCRETE:
        return Shape(rows=CONCRETE_ROWS, columns=CONCRETE_COLUMNS, is_concrete=True)
    numbers, dot, kind = text.partition(".")
    try:
        rows, columns = (int(number) for number in numbers.split("x"))
    except ValueError:
        rows = columns = 0
    if min(rows, columns) < 1 or (dot and kind != "parquet"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no shape: write {CONCRETE}, 1000x100 or 1000000x20.parquet."
        )
    return Shape(rows=rows, columns=columns, in_file=bool(dot))


def simulate(rng: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Uniform columns (n, E) and targets (n,)."""
    import numpy as np

    X = rng.uniform(size=(rows, columns))
    x = [X[:, place % columns] for place in range(5)]
    signal = 10.0 * np.sin(np.pi * x[0] * x[1]) + 20.0 * (x[2] - 0.5) ** 2
    return X, signal + 10.0 * x[3] + 5.0 * x[4] + rng.normal(size=rows)


def write_parquet(path: str, shape: Shape, seed: int) -> None:
    """A simulated table, its target called y, a row group at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(seed), None
    for first in range(0, shape.rows, GROUP_ROWS):
        X, y = simulate(rng, min(GROUP_ROWS, shape.rows - first), shape.columns)
        table = pa.table({**{f"x{i}": column for i, column in enumerate(X.T)}, "y": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def rows_of(shape: Shape, seed: int, path: str | None) -> tuple[Any, Any, bool]:
    """What `fit` is given, and whether the rows are simulated."""
    import numpy as np

    if path is not None:
        return path, "y", True
    if shape.is_concrete:
        from benchmarks._old.paper.cases import lacks_data
        from benchmarks._old.paper.sets import rows_of as rows_of_set

        if lacks_data(CONCRETE) is None:
            X, y = rows_of_set(CONCRETE)
            chosen = np.random.default_rng(seed).permutation(len(X))[len(X) // 10 :]
            return X[chosen], y[chosen], False
    return *simulate(np.random.default_rng(seed), shape.rows, shape.columns), True


def fitter(model: str) -> Fit:
    """The fit of a model, with its library imported."""
    if model.startswith(OURS):
        from bowtienet._old import BowTieRegressor

        effort = {"effort": model.split(", ")[1]} if ", " in model else {}
        return lambda X, y, seed: BowTieRegressor(random_state=seed, **effort).fit(X, y)
    if model == "Gaussian process":
        from bowtienet._old.evaluation import gaussian_process

        return lambda X, y, seed: gaussian_process(10**9).fit(X, y, seed, 0.95)
    if model == "BART":
        from benchmarks._old.paper.methods.trees import bart

        return bart()
    from sklearn.ensemble import HistGradientBoostingRegressor

    return lambda X, y, seed: HistGradientBoostingRegressor(random_state=seed).fit(X, y)


def measure(model: str, shape: Shape, seed: int, path: str | None) -> Cost:
    """One fit in this process."""
    import numpy as np

    warnings.simplefilter("ignore")
    fit = fitter(model)
    fit(*simulate(np.random.default_rng(0), 30, 2), 0)
    X, y, simulated = rows_of(shape, seed, path)
    if path is not None and model in PEERS:
        import pandas as pd

        table = pd.read_parquet(path).to_numpy()
        X, y = table[:, :-1], table[:, -1]
    begin = time.process_time()
    fit(X, y, seed)
    seconds = time.process_time() - begin
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return Cost(seconds=seconds, megabytes=peak, simulated=simulated)


def child(job: dict[str, Any], longest: float | None = None) -> Any:
    """What a process of its own answers to a job; None if it takes too long."""
    command = [sys.executable, "-m", "benchmarks._old.speed.fit", "--job", json.dumps(job)]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=longest,
            env={**os.environ, **ONE_THREAD},
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


def do(job: dict[str, Any]) -> Any:
    """The job of a child."""
    shape = Shape(**job["shape"])
    if "model" not in job:
        return write_parquet(job["path"], shape, job["seed"])
    return asdict(measure(job["model"], shape, job["seed"], job["path"]))


def why_not(model: str, shape: Shape) -> str | None:
    """Why a model is not fitted to a table, or None if it is."""
    if model == "BART" and importlib.util.find_spec("stochtree") is None:
        return "stochtree is not installed"
    most_rows, most_bytes = LIMITS.get(model, (math.inf, math.inf))
    if shape.rows > most_rows or 8.0 * shape.rows**2 * shape.columns > most_bytes:
        return "the table is too large for it"
    return None


class Bench:
    """Fits tables once, however often they are asked for."""

    def __init__(self, folder: str, longest: float, splits: int) -> None:
        self.folder, self.longest, self.splits = folder, longest, splits
        self.costs = functools.cache(self._costs)

    def _costs(self, model: str, shape: Shape) -> list[Cost]:
        """Those of each split or table; none if the model is left out."""
        reason = why_not(model, shape)
        if reason is not None:
            say(f"{name_of(shape)}, {model}: left out, {reason}")
            return []
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + (self.splits if shape.rows <= SMALL else 1)):
            job = {"shape": asdict(shape), "seed": seed, "model": model, "path": None}
            if shape.in_file:
                job["path"] = self._path(shape, seed)
            answer = child(job, self.longest if model in PEERS else None)
            cost = Cost(seconds=None) if answer is None else Cost(**answer)
            took = "stopped" if cost.seconds is None else f"{cost.seconds:.1f} s"
            say(f"{name_of(shape)}, seed {seed}, {model}: {took}, {cost.megabytes:.0f} MB")
            found.append(cost)
            if cost.seconds is None:
                break
        return found

    def _path(self, shape: Shape, seed: int) -> str:
        path = Path(self.folder) / f"{shape.rows}x{shape.columns}-{seed}.parquet"
        if not path.is_file():
            child({"shape": asdict(shape), "seed": seed, "path": str(path)})
        return str(path)


def seconds_of(costs: Sequence[Cost]) -> float | None:
    """Mean over splits; None if nothing was fitted to the end."""
    known = [cost.seconds for cost in costs if cost.seconds is not None]
    return sum(known) / len(known) if known and len(known) == len(costs) else None


def name_of(shape: Shape) -> str:
    name = f"{shape.rows:,} x {shape.columns:,}"
    if shape.is_concrete:
        return f"{name}, concrete"
    return f"{name}, Parquet" if shape.in_file else name


def tables(bench: Bench, shapes: Sequence[Shape], models: Sequence[str]) -> str:
    """Seconds, memory and ratios by shape; and the efforts on small tables."""
    named = [model for model in models if model in (OURS, *PEERS)]
    header = ["rows x columns"]
    for model in named:
        header += [f"{model}, s", "MB"] + ([] if model == OURS else ["times ours"])
    lines = []
    for shape in shapes:
        line, own = [_row_name(bench, shape, named)], seconds_of(bench.costs(OURS, shape))
        for model in named:
            line += cells(bench, model, shape, own)
        lines.append(line)
    found = [markdown(header, lines)]
    efforts = [model for model in models if model not in named]
    small = [shape for shape in shapes if shape.is_concrete]
    if efforts and small:
        lines = [[model, *cells(bench, model, small[0], None)[:2]] for model in (OURS, *efforts)]
        found.append(markdown([name_of(small[0]), "s", "MB"], lines))
    return "\n\n".join(found)


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    first, *rest = (f"| {' | '.join(line)} |" for line in (header, *lines))
    return "\n".join([first, "|---" * len(header) + "|", *rest])


def _row_name(bench: Bench, shape: Shape, models: Sequence[str]) -> str:
    """The shape, and that it is a stand-in where the set was not to be had."""
    costs = [cost for model in models for cost in bench.costs(model, shape)]
    stand_in = shape.is_concrete and any(cost.simulated for cost in costs)
    return name_of(shape) + (" (simulated)" if stand_in else "")


def cells(bench: Bench, model: str, shape: Shape, own: float | None) -> list[str]:
    """Seconds, megabytes and, of a peer, seconds over ours."""
    costs = bench.costs(model, shape)
    ratios = 0 if model.startswith(OURS) else 1
    if not costs:
        return ["–"] * (2 + ratios)
    seconds = seconds_of(costs)
    if seconds is None:
        return [f"> {bench.longest:.0f}", "–", "–"]
    peak = max(cost.megabytes for cost in costs)
    ratio = "–" if own is None else f"{seconds / own:.2g}"
    return [f"{seconds:.3g}", f"{peak:.0f}", *[ratio] * ratios]


def plot(bench: Bench, models: Sequence[str], most_rows: float, path: Path) -> None:
    """Seconds of a fit by rows and by columns, on logarithmic axes."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    named = [model for model in models if model in (OURS, *PEERS)]
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
    rows = [Shape(rows=n, columns=10) for n in PLOT_ROWS if n <= most_rows]
    columns = [Shape(rows=int(min(1_000, most_rows)), columns=n) for n in PLOT_COLUMNS]
    panels = (
        (axes[0], rows, [shape.rows for shape in rows], "rows (10 columns)"),
        (
            axes[1],
            columns,
            [shape.columns for shape in columns],
            f"columns ({columns[0].rows:,} rows)",
        ),
    )
    markers, colours = "osD^", ("#0072B2", "#D55E00", "#009E73", "#555555")  # Okabe and Ito
    for axis, shapes, places, label in panels:
        for model, marker, colour in zip(named, markers, colours, strict=False):
            known = [seconds_of(bench.costs(model, shape)) for shape in shapes]
            drawn = [(x, y) for x, y in zip(places, known, strict=True) if y is not None]
            if drawn:
                axis.loglog(*zip(*drawn, strict=True), marker=marker, color=colour, label=model)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("processor seconds of a fit")
    axes[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    say(f"drawn: {path.name}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def options(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--shapes", nargs="*", type=read_shape, default=list(map(read_shape, SHAPES))
    )
    parser.add_argument("--most-rows", type=float, default=math.inf, help="no larger tables")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--splits", type=int, default=3, help="of tables up to 1,000 rows")
    parser.add_argument("--longest", type=float, default=600.0, help="seconds of a peer, at most")
    parser.add_argument(
        "--plot", nargs="?", type=Path, const=FIGURE, help=f"draw to a file ({FIGURE.name})"
    )
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    chosen = options(given)
    if chosen.job:
        print(json.dumps(do(chosen.job)))
        return
    shapes = [shape for shape in chosen.shapes if shape.rows <= chosen.most_rows]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, chosen.longest, chosen.splits)
        if shapes:
            print(tables(bench, shapes, chosen.models))
            print(
                "\nProcessor seconds of a fit on one core, each in a process of its own, and its "
                f"peak memory; tables up to {SMALL:,} rows: means over {chosen.splits} splits or "
                "tables. A dash: left out."
            )
        if chosen.plot:
            plot(bench, chosen.models, chosen.most_rows, chosen.plot)


if __name__ == "__main__":
    main()
