"""Both solvers on ten thousand to ten million rows: seconds, memory and scores.

`power` (of `benchmarks._old.paper.sets`; a tenth held out) and simulated tables of 10⁴ to 10⁷ rows with
20 features are written to Parquet, several files with row groups of at most 100,000 rows.
`BowTieRegressor((50,), n_estimators=1)` with equal weights is fitted to them with `solver="svi"`
and, up to a million rows, `solver="cavi"`, at their defaults otherwise; from a million rows on also
with `solver="svi", max_iter=1`, a single pass over the rows. One member and equal weights make the
two differ in the solver alone. `make bench-bigdata` runs it and prints Markdown; progress goes to
standard error.

The simulated target is a function of 8 of the 20 standard normal inputs,

    10 sin(π x0 x1 / 2) + 5 (x2 - ½)² + 10 x3 + 5 x4 + 3 tanh(2 x5 + x6) + 4 |x7|,

and noise of 0.22 of its standard deviation. Scores are of 20,000 other rows, in units of the
standard deviation of the target, where the noise alone has RMSE 0.215 and NLL -0.119.

Each fit runs in an interpreter of its own and reports the peak of its resident memory at the end of
the fit, before anything is scored. Rows visited are steps x batch for SVI, sweeps x rows for CAVI;
the time for each contains the first reading and the start. At the end the last SVI model predicts a
million rows into a Parquet file.

This file imports no NumPy at the top: a child starts its count of the peak at what its parent held,
and the linear algebra library counts the cores when it is loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
HELD_OUT = 20_000
INPUTS = 20
HIDDEN = (50,)
NOISE = 0.22
GROUP_ROWS = 100_000
GROUPS_IN_FILE = 5
MEGABYTE = 1e6
ONE_PASS = ", one pass"
ONE_PASS_ROWS = 1_000_000
"""In fewer rows there are too few steps for a single pass."""
SOLVERS = ("svi" + ONE_PASS, "svi", "cavi")
CALIBRATION_SEED = 0
"""Of the rows that say how large the signal is: the same for every table."""


def signal(x: Any) -> Any:
    import numpy as np

    return (
        10.0 * np.sin(np.pi * x[:, 0] * x[:, 1] / 2.0)
        + 5.0 * (x[:, 2] - 0.5) ** 2
        + 10.0 * x[:, 3]
        + 5.0 * x[:, 4]
        + 3.0 * np.tanh(2.0 * x[:, 5] + x[:, 6])
        + 4.0 * np.abs(x[:, 7])
    )


def signal_deviation() -> float:
    """Standard deviation of the signal, to a thousandth."""
    import numpy as np

    rng = np.random.default_rng(CALIBRATION_SEED)
    return float(np.concatenate([signal(rng.normal(size=(50_000, 8))) for _ in range(20)]).std())


def write_simulated(folder: str, n_rows: int, seed: int, part: int) -> dict[str, float]:
    """Write a table group by group; the deviation of its target, which is that of all of them."""
    import numpy as np

    deviation = signal_deviation()
    size = max(1, min(GROUP_ROWS, n_rows // 4))

    def groups() -> Iterator[tuple[Any, Any]]:
        for number, start in enumerate(range(0, n_rows, size)):
            rng = np.random.default_rng((seed, part, number))
            x = rng.normal(size=(min(size, n_rows - start), INPUTS))
            yield x, signal(x) + rng.normal(0.0, NOISE * deviation, size=len(x))

    write_parquet(folder, groups())
    return {"deviation": deviation * (1.0 + NOISE**2) ** 0.5, "rows": n_rows}


def write_power(folder: str, new_folder: str, seed: int) -> dict[str, float]:
    """Write the rows to fit and the held-out rows; the deviation of the target of the first."""
    import numpy as np

    from benchmarks._old.paper.sets import load_set

    table = load_set("power").to_numpy()
    order = np.random.default_rng(seed).permutation(len(table))
    new, train = np.split(table[order], [len(table) // 10])
    write_parquet(new_folder, [(new[:, :-1], new[:, -1])])
    write_parquet(folder, [(part[:, :-1], part[:, -1]) for part in np.array_split(train, 4)])
    return {"deviation": float(train[:, -1].std()), "rows": len(train)}


def write_parquet(folder: str, groups: Any) -> None:
    """Row groups into files of a few each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    Path(folder).mkdir(parents=True)
    writer = None
    for number, (x, y) in enumerate(groups):
        table = pa.table({**{f"x{i}": x[:, i] for i in range(x.shape[1])}, "y": y})
        if number % GROUPS_IN_FILE == 0:
            if writer is not None:
                writer.close()
            path = Path(folder) / f"part-{number // GROUPS_IN_FILE:03d}.parquet"
            writer = pq.ParquetWriter(path, table.schema, compression="none")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def measure_fit(job: dict[str, Any]) -> dict[str, Any]:
    """Fit one estimator; seconds, peak memory and scores of held-out rows."""
    import numpy as np
    import pyarrow.dataset as ds
    from sklearn.exceptions import ConvergenceWarning

    from bowtienet._old import BowTieRegressor, FitOptions
    from bowtienet._old.ensemble.settings import batch_rows

    warnings.simplefilter("ignore", ConvergenceWarning)
    model = BowTieRegressor(
        HIDDEN,
        solver=job["solver"].removesuffix(ONE_PASS),
        max_iter=1 if job["solver"].endswith(ONE_PASS) else 80,
        n_estimators=job["members"],
        random_state=job["seed"],
        options=FitOptions(weighting="equal"),
    )
    begin = time.perf_counter()
    model.fit(ds.dataset(job["folder"], format="parquet"), "y")
    seconds, memory = time.perf_counter() - begin, peak()
    new = ds.dataset(job["new_folder"], format="parquet")
    y = new.to_table(columns=["y"])["y"].to_numpy()
    steps = [member.n_sweeps for member in model.ensemble_.members]
    size = batch_rows("auto", job["rows"]) if model.solver_ == "svi" else job["rows"]
    visited = sum(steps) * size
    if "model" in job:
        model.save(job["model"])
    return {
        "seconds": seconds,
        "memory": memory,
        "rmse": float(np.sqrt(np.mean((model.predict(new) - y) ** 2))) / job["deviation"],
        "nll": -model.log_score(new, "y") - float(np.log(job["deviation"])),
        "steps": max(steps),
        "batch": size,
        "visited": visited,
        "microseconds": 1e6 * seconds / visited,
        "rows_per_second": visited / seconds,
        "status": str(model.status_),
    }


def measure_predict(job: dict[str, Any]) -> dict[str, Any]:
    """Predict the rows of a folder into a file; seconds and memory."""
    import pyarrow.dataset as ds

    from bowtienet._old import BowTieRegressor

    model = BowTieRegressor.load(job["model"])
    source = ds.dataset(job["folder"], format="parquet")
    before = peak()
    begin = time.perf_counter()
    model.predict_to_parquet(source, job["output"])
    return {"seconds": time.perf_counter() - begin, "memory": peak(), "before": before}


def peak() -> int:
    """Largest resident size of this process so far, in bytes (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


TASKS = {
    "simulated": lambda job: write_simulated(**job),
    "power": lambda job: write_power(**job),
    "fit": measure_fit,
    "predict": measure_predict,
}


class Study:
    """Runs tasks in interpreters of their own and notes what they report."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.records: list[dict[str, Any]] = []

    def ask(self, task: str, **job: Any) -> dict[str, Any]:
        """The answer of a new interpreter, held to as many cores as there may be threads."""
        command = [
            sys.executable,
            "-m",
            "benchmarks._old.bigdata.scale",
            "--task",
            task,
            json.dumps(job),
        ]
        command += ["--threads", str(self.options.threads)]
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return json.loads(answer)

    def note(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if self.options.json is not None:
            with open(self.options.json, "a") as file:
                file.write(json.dumps(record) + "\n")

    def fits(self, data: str, folder: Path, new_folder: Path, facts: dict[str, float]) -> None:
        """All fits to one table."""
        for solver in self.options.solvers:
            if solver == "cavi" and facts["rows"] > self.options.cavi_up_to:
                continue
            if solver.endswith(ONE_PASS) and facts["rows"] < ONE_PASS_ROWS:
                continue
            for members in self.options.members:
                say(f"{data}: {facts['rows']:,} rows, {solver}, {members} of {HIDDEN}")
                job = {"solver": solver, "members": members, "seed": self.options.seed, **facts}
                if solver == "svi" and data == "simulated":
                    job["model"] = str(self.folder / "model.safetensors")
                found = self.ask("fit", folder=str(folder), new_folder=str(new_folder), **job)
                say(f"  {found['seconds']:.1f} s, {found['memory'] / MEGABYTE:.0f} MB")
                about = {"task": "fit", "data": data, "solver": solver, "members": members}
                self.note({**about, "rows": facts["rows"], **found})

    def power(self) -> None:
        folder, new_folder = self.folder / "power", self.folder / "power-new"
        seed = self.options.seed
        facts = self.ask("power", folder=str(folder), new_folder=str(new_folder), seed=seed)
        self.fits("power", folder, new_folder, facts)

    def simulated(self) -> None:
        new_folder, seed = self.folder / "new", self.options.seed
        self.ask("simulated", folder=str(new_folder), n_rows=HELD_OUT, seed=seed, part=0)
        for n_rows in self.options.sizes:
            part = 1 + SIZES.index(n_rows) if n_rows in SIZES else n_rows
            say(f"writing {n_rows:,} rows")
            folder = self.folder / str(n_rows)
            facts = self.ask("simulated", folder=str(folder), n_rows=n_rows, seed=seed, part=part)
            self.fits("simulated", folder, new_folder, facts)
            shutil.rmtree(folder)

    def prediction(self) -> None:
        """A million rows by the last model that SVI fitted."""
        model, rows = self.folder / "model.safetensors", self.options.predict_rows
        if not model.exists() or rows == 0:
            return
        say(f"predicting {rows:,} rows")
        folder, output = self.folder / "predict", self.folder / "predicted.parquet"
        self.ask("simulated", folder=str(folder), n_rows=rows, seed=self.options.seed, part=99)
        found = self.ask("predict", folder=str(folder), model=str(model), output=str(output))
        self.note({"task": "predict", "rows": rows, "members": self.options.members[-1], **found})

    def print(self) -> None:
        """The tables, and one line on what they say."""
        print(
            f"Seed {self.options.seed}, threads: {self.options.threads}. Scores in units of the "
            "target's standard deviation; the noise of the simulated target alone has RMSE 0.215 "
            "and NLL -0.119.\n"
        )
        print(
            "| data | rows | solver | members | fit, s | peak memory, MB | RMSE | NLL | steps "
            "or sweeps | µs per row visited | status |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for r in self.records:
            if r["task"] == "fit":
                print(
                    f"| {r['data']} | {r['rows']:,} | {r['solver']} | {r['members']} "
                    f"| {r['seconds']:.1f} | {r['memory'] / MEGABYTE:.0f} | {r['rmse']:.4f} "
                    f"| {r['nll']:.4f} | {r['steps']:,} | {r['microseconds']:.2f} | {r['status']} |"
                )
        for r in self.records:
            if r["task"] == "predict":
                print(
                    f"\nPrediction of {r['rows']:,} rows into Parquet with {r['members']} members: "
                    f"{r['seconds']:.1f} s, peak memory {r['memory'] / MEGABYTE:.0f} MB "
                    f"({r['before'] / MEGABYTE:.0f} MB before it began)."
                )
        print("\n" + self.summary())

    def summary(self) -> str:
        found = {
            (r["rows"], r["solver"]): r
            for r in reversed(self.records)
            if r["task"] == "fit" and r["data"] == "simulated"
        }
        both = [n for n in self.options.sizes if (n, "svi") in found and (n, "cavi") in found]
        parts = []
        for n in both[-1:]:
            cavi = found[n, "cavi"]
            for solver in [s for s in SOLVERS[:2] if (n, s) in found]:
                svi = found[n, solver]
                parts.append(
                    f"At {n:,} rows the NLL of {solver} minus that of cavi is "
                    f"{svi['nll'] - cavi['nll']:+.4f}, and cavi takes "
                    f"{cavi['seconds'] / svi['seconds']:.1f} times as long."
                )
        for n in [n for n in self.options.sizes if (n, "svi") in found][-1:]:
            memory = found[n, "svi"]["memory"] / MEGABYTE
            parts.append(f"SVI's peak memory at {n:,} rows is {memory:.0f} MB.")
        return " ".join(parts)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=SOLVERS)
    parser.add_argument("--members", type=int, nargs="+", default=(1,))
    parser.add_argument("--cavi-up-to", type=int, default=1_000_000, metavar="ROWS")
    parser.add_argument("--predict-rows", type=int, default=1_000_000)
    parser.add_argument("--without-power", action="store_true")
    parser.add_argument("--seed", type=int, default=140)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=Path, help="for the tables, which are removed at the end")
    parser.add_argument("--json", type=Path, help="file to which every result is added as a line")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task is not None:
        # The estimator has no thread setting, so the process is held to its cores.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
        task, job = options.task
        print(json.dumps(TASKS[task](json.loads(job))))
        return
    with_power = not options.without_power
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        study = Study(options, Path(folder))
        if with_power:
            study.power()
        if options.sizes:
            study.simulated()
            study.prediction()
    study.print()


if __name__ == "__main__":
    main()
