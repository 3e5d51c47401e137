"""`bowtienet demo`: the commands on a real table, and pictures of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from bowtienet.cli import options
from bowtienet.cli.check import check
from bowtienet.cli.compare import compare
from bowtienet.cli.console import say
from bowtienet.cli.data import read
from bowtienet.cli.fit import fit
from bowtienet.cli.predict import predict
from bowtienet.cli.refusals import Problems

NAMES = {
    "bp": "blood pressure",
    "s1": "cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol by HDL",
    "s5": "log triglycerides",
    "s6": "glucose",
    "target": "progression",
}
"""What the letters of scikit-learn's table stand for."""
NEW_ROWS = 4
"""Patients that are predicted, and that the fit does not see."""


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where files go.")
    ] = Path("bowtienet-demo"),
    force: options.Force = False,
) -> None:
    """Run the commands on a real table of patients with diabetes."""
    problems = Problems()
    if out.exists() and not (out.is_dir() and (force or not any(out.iterdir()))):
        problems.add(f"{out} exists: --force writes into it, or name another folder with --out.")
    problems.refuse_if_any()
    out.mkdir(parents=True, exist_ok=True)
    say("442 patients (Efron and others, 2004): how far will their diabetes progress in a year?")
    say(f"All files go to the folder {out}.", style="dim")
    with contextlib.chdir(out):
        write_tables()
        with shown("bowtienet check patients.csv --target progression"):
            check("patients.csv", "progression")
        with shown("bowtienet fit patients.csv --target progression --report patients.html"):
            fit("patients.csv", "progression", report=Path("patients.html"), force=True)
        with shown("bowtienet predict patients.btn new.csv --id patient"):
            predict(Path("patients.btn"), "new.csv", identify=["patient"])
        with shown("bowtienet compare patients.csv --target progression --splits 2"):
            compare("patients.csv", "progression", splits=2)
        pictures = draw()
    say()
    say("To look at:", style="bold")
    for name in ("patients.html", *pictures):
        say(f"  {out / name}")


@contextlib.contextmanager
def shown(command: str) -> Iterator[None]:
    """The command above what it prints."""
    say()
    say(f"$ {command}", style="bold cyan")
    yield


def write_tables() -> None:
    """The table, and some patients apart."""
    from sklearn.datasets import load_diabetes

    table = load_diabetes(as_frame=True, scaled=False).frame.rename(columns=NAMES)
    table["sex"] = table["sex"].map({1.0: "a", 2.0: "b"})  # the source does not say which is which
    table.iloc[:-NEW_ROWS].to_csv("patients.csv", index=False)
    new = table.iloc[-NEW_ROWS:].drop(columns="progression")
    new.insert(0, "patient", [f"patient {i + 1}" for i in range(NEW_ROWS)])
    new.to_csv("new.csv", index=False)


def draw() -> list[str]:
    """Pictures of the fitted model."""
    from matplotlib.figure import Figure

    from bowtienet.estimators.saving import load
    from bowtienet.plotting import PredictiveBandDisplay

    model = load("patients.btn")
    table = read("patients.csv", options.Reading(missing_values=(), day_first=None, decimal=None))
    rows, names = table.drop(columns="progression"), []
    for column in ("bmi", "log triglycerides"):
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        PredictiveBandDisplay.from_estimator(
            model, rows, column, table["progression"], ax=figure.subplots()
        )
        names.append(f"{column.replace(' ', '-')}.png")
        figure.savefig(names[-1], dpi=150)
    return names
