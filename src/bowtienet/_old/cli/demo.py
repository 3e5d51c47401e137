"""``bowtienet demo``: the commands at work on two data sets that need no download."""

from __future__ import annotations

import shlex
import textwrap
import time
from pathlib import Path
from typing import Annotated

import typer

from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output

N_ROWS, N_NEW = 500, 50
"""Simulated flats to fit, and those that no fit sees."""
_STEPS = (
    (
        "Rents of flats: numbers, text, dates, missing cells, and curves that no line follows.",
        "fit {out}/rents.csv --target rent --out {out}/rents.btn --report {out}/rents.html "
        "--seed {seed}",
        "predict {out}/rents.btn {out}/rents-new.csv --out {out}/rents-predictions.csv",
        "compare {out}/rents.csv --target rent --splits 1 --seed {seed}",
    ),
    (
        "Diabetes: an honest case, where a line (BayesianRidge) is about as good, and faster.",
        "compare {out}/diabetes.csv --target progression --splits 1 --seed {seed}",
    ),
)
_WIDTH = 78
"""Letters of a command in a line, without the backslash at its end."""
_NEXT = """
Next:
  open {out}/rents.html in a browser
  bowtienet fit YOUR.csv --target COLUMN --report report.html
  bowtienet plot {out}/rents.btn {out}/rents-new.csv
In Python:
  from bowtienet import BowTieRegressor
  model = BowTieRegressor().fit(frame, "COLUMN")
  model.predict_interval(frame, coverage=0.9)"""


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for all files.")] = Path(
        "bowtienet-demo"
    ),
    seed: options.Seed = 0,
    force: options.Force = False,
) -> None:
    """Run these commands on two data sets that need no download."""
    from bowtienet._old.cli.writing import check_folder

    output = Output(as_json=False)
    begin = time.perf_counter()
    if out.exists():
        check_folder(out)
        if not force and any(out.iterdir()):
            raise ValueError(f"{out} is not empty: name another folder, or give --force.")
    out.mkdir(parents=True, exist_ok=True)
    _write_tables(out, seed)
    for title, *commands in _STEPS:
        output.say()
        output.explain(f"# {title}")
        for command in commands:
            arguments = [part.format(out=out, seed=seed) for part in command.split()]
            _run(arguments + ["--force"] * (force and "--out" in arguments), output)
    output.say(f"\nFiles in {out}, written in {time.perf_counter() - begin:.0f} s:")
    for place in sorted(path for path in out.rglob("*") if path.is_file()):
        output.say(f"  {place}")
    output.say(_NEXT.format(out=out))


def _run(arguments: list[str], output: Output) -> None:
    """Show a command, and run it."""
    from bowtienet._old.cli.app import app

    line = f"$ bowtienet {shlex.join(arguments)}"
    parts = textwrap.wrap(
        line, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    output.say("\n" + " \\\n".join(parts))
    code = app(arguments, standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _write_tables(out: Path, seed: int) -> None:
    import numpy as np

    from bowtienet._old.cli.demo_tables import diabetes, simulate_rents
    from bowtienet._old.cli.writing import write

    rents = simulate_rents(N_ROWS + N_NEW, np.random.default_rng(seed))
    write(rents.slice(N_NEW), out / "rents.csv")
    write(rents.slice(0, N_NEW), out / "rents-new.csv")
    write(diabetes(), out / "diabetes.csv")
