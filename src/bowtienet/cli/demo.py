"""``bowtienet demo``: the commands at work on two data sets that need no download."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from bowtienet.cli import shared_options as options
from bowtienet.cli.console import Output

N_NEW = 42
"""Rows of the diabetes data, about a tenth, that no fit sees."""
_STEPS = (
    "fit {out}/diabetes.csv --target progression --out {out}/diabetes.btn "
    "--report {out}/diabetes.html --seed {seed}",
    "predict {out}/diabetes.btn {out}/diabetes-new.csv --out {out}/diabetes-predictions.csv",
    "plot {out}/diabetes.btn {out}/diabetes-new.csv --out {out}/diabetes-plots",
    "prune {out}/diabetes.btn {out}/diabetes.csv --out {out}/diabetes-small.btn",
    "compare {out}/diabetes.csv --target progression --splits 1 --seed {seed}",
    "fit {out}/toy.csv --target y --out {out}/toy.btn --seed {seed}",
    "plot {out}/toy.btn {out}/toy.csv --out {out}/toy-plots --kind band --kind activation",
)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for all files.")] = Path(
        "bowtienet-demo"
    ),
    seed: options.Seed = 0,
) -> None:
    """Run these commands on two data sets that need no download."""
    from bowtienet.cli.writing import check_folder

    output = Output(as_json=False)
    begin = time.perf_counter()
    if out.exists():
        check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    _write_tables(out, seed)
    for step in _STEPS:
        _run([part.format(out=out, seed=seed) for part in step.split()], output)
    output.say(f"\nfiles in {out}:")
    for place in sorted(path for path in out.rglob("*") if path.is_file()):
        output.say(f"  {place}")
    output.say(f"seconds: {time.perf_counter() - begin:.0f}")


def _run(arguments: list[str], output: Output) -> None:
    """Show a command, and run it."""
    from bowtienet.cli.app import app

    output.say(f"\n$ bowtienet {shlex.join(arguments)}")
    code = app(arguments, standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _write_tables(out: Path, seed: int) -> None:
    import numpy as np
    from sklearn.datasets import load_diabetes

    from bowtienet.cli.writing import write
    from bowtienet.data.arrow_files import pyarrow
    from bowtienet.data.toy import simulate_toy

    bunch = load_diabetes(scaled=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    table = pyarrow().table({**columns, "progression": bunch.target})
    order = np.random.default_rng(seed).permutation(table.num_rows)
    write(table.take(order[N_NEW:]), out / "diabetes.csv")
    write(table.take(order[:N_NEW]), out / "diabetes-new.csv")
    inputs, targets = simulate_toy(300, np.random.default_rng(seed))
    toy = {"x1": inputs[:, 0], "x2": inputs[:, 1], "y": targets}
    write(pyarrow().table(toy), out / "toy.csv")
