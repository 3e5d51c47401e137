"""Seconds and scores of one fit: bowtienet beside a Gaussian process and mean-field VI.

Puts a tenth of concrete aside with split seeds 130, 131, ... and fits methods of the experiments
(`benchmarks.paper.methods`) to the rest. `make bench-fit` runs it and prints Markdown;
progress goes to standard error. Scores are in the unit of the target. The defaults of bowtienet
were chosen with a look at other splits of this set (docs/measurements/accuracy.md).

Each fit runs in a process of its own, the methods in turn within a split, so that none finds the
caches, threads or compiled functions of another, and each may use all cores. Imports are not timed;
compilation is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

import joblib
import numpy as np

from benchmarks.paper.cases import Case, run_case
from benchmarks.paper.records import DONE
from benchmarks.paper.tables import markdown

FIRST_SEED = 130
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bowtienet": ("ensemble", {"n_jobs": -1}),
    "bowtienet, one job": ("ensemble", {"n_jobs": 1}),
    "Gaussian process": ("gpr", {}),
    "mean-field VI": ("mean_field", {}),
}
"""Method of the experiments and its settings, by the name in the table."""
COLUMNS = {"seconds": 1, "RMSE": 2, "NLL": 3, "CRPS": 2, "95 % coverage": 3}
"""And their decimals."""

Result = dict[str, float]


def measure(model: str, seed: int) -> Result:
    """Seconds and scores of one fit in this process."""
    method, settings = MODELS[model]
    record = run_case(
        Case(experiment="speed", dataset="concrete", method=method, seed=seed, settings=settings)
    )
    if record["status"] != DONE:
        sys.exit(f"{model}: {record['note']}")
    return {
        "rows": record["n_train"],
        "seconds": record["wall_seconds"],
        "RMSE": record["scores"]["rmse"],
        "NLL": record["scores"]["nll"],
        "CRPS": record["scores"]["crps"],
        "95 % coverage": record["scores"]["coverage"],
    }


def in_own_process(model: str, seed: int) -> Result:
    """The same in a new process, whose warnings and errors go to standard error."""
    command = [sys.executable, "-m", "benchmarks.speed.fit", "--measure", json.dumps([model, seed])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout)
    message = f"split {seed}, {model}: {result['seconds']:.1f} s, NLL {result['NLL']:.3f}"
    print(message, file=sys.stderr, flush=True)
    return result


def cell(runs: list[Result], name: str) -> str:
    """Mean ± standard deviation over the splits."""
    values, digits = [run[name] for run in runs], COLUMNS[name]
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def show(results: dict[str, list[Result]]) -> None:
    runs = next(iter(results.values()))
    splits = f"{len(runs)} splits of concrete" if len(runs) > 1 else "One split of concrete"
    over = "; mean ± standard deviation over the splits" if len(runs) > 1 else ""
    print(
        f"{splits} with {runs[0]['rows']:.0f} rows to fit{over}. Usable cores: "
        f"{joblib.cpu_count()}; absolute times are those of a shared machine.\n"
    )
    rows = [[name, *(cell(found, column) for column in COLUMNS)] for name, found in results.items()]
    print(markdown(["model", *COLUMNS], rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=3, help="number of splits")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*json.loads(arguments.measure))))
        return
    results: dict[str, list[Result]] = {model: [] for model in arguments.models}
    for seed in range(FIRST_SEED, FIRST_SEED + arguments.splits):
        for model, found in results.items():
            found.append(in_own_process(model, seed))
    show(results)


if __name__ == "__main__":
    main()
