"""``bowtienet demo``: the commands at work on two data sets that need no download."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bowtienet.cli import options
from bowtienet.cli.exits import guarded

if TYPE_CHECKING:
    from bowtienet.cli.console import Output

N_NEW = 42
"""Rows of the diabetes data, about a tenth, that no fit sees."""
TARGET = "progression"


@guarded
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for all files.")] = Path(
        "bowtienet-demo"
    ),
    seed: options.Seed = 0,
) -> None:
    """Run these commands on two data sets that need no download."""
    from bowtienet.cli.console import Output
    from bowtienet.cli.writing import check_folder

    output = Output(as_json=False)
    begin = time.perf_counter()
    if out.exists():
        check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    data, new, toy = (str(out / name) for name in ("diabetes.csv", "diabetes-new.csv", "toy.csv"))
    model, small, curve = (
        str(out / name) for name in ("diabetes.btn", "diabetes-small.btn", "toy.btn")
    )
    answers, plots, toy_plots = (
        str(out / name) for name in ("diabetes-predictions.csv", "diabetes-plots", "toy-plots")
    )
    report = str(out / "diabetes.html")
    _write_tables(Path(data), Path(new), Path(toy), seed)
    chosen = ["--seed", str(seed)]
    for arguments in (
        ["fit", data, "--target", TARGET, "--out", model, "--report", report, *chosen],
        ["predict", model, new, "--out", answers, "--coverage", "0.9"],
        ["plot", model, new, "--out", plots],
        ["prune", model, "--out", small, "--false-sign-rate", "0.05"],
        ["compare", data, "--target", TARGET, "--splits", "1", *chosen],
        ["fit", toy, "--target", "y", "--out", curve, *chosen],
        ["plot", curve, toy, "--out", toy_plots, "--kind", "band", "--kind", "activation"],
    ):
        _run(arguments, output)
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


def _write_tables(data: Path, new: Path, toy: Path, seed: int) -> None:
    import numpy as np
    from sklearn.datasets import load_diabetes

    from bowtienet.cli.writing import write
    from bowtienet.data.arrow_files import pyarrow
    from bowtienet.data.toy import simulate_toy

    bunch = load_diabetes(scaled=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True)) | {TARGET: bunch.target}
    table = pyarrow().table(columns)
    order = np.random.default_rng(seed).permutation(table.num_rows)
    write(table.take(order[N_NEW:]), data)
    write(table.take(order[:N_NEW]), new)
    inputs, targets = simulate_toy(300, np.random.default_rng(seed))
    write(pyarrow().table({"x1": inputs[:, 0], "x2": inputs[:, 1], "y": targets}), toy)
