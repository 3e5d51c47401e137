"""`bowtienet demo`: the commands on a real table, and pictures of it."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Annotated, Any

import typer

from bowtienet.cli.check import check
from bowtienet.cli.compare import compare
from bowtienet.cli.console import say
from bowtienet.cli.fit import fit
from bowtienet.cli.predict import predict

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


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where files go.")
    ] = Path("bowtienet-demo"),
) -> None:
    """Run the commands on a real table of patients with diabetes."""
    from sklearn.datasets import load_diabetes

    table = load_diabetes(as_frame=True, scaled=False).frame.rename(columns=NAMES)
    table["sex"] = table["sex"].map({1.0: "a", 2.0: "b"})  # the source does not say which is which
    table, new = table.iloc[:-4], table.iloc[-4:].drop(columns="progression")
    new.insert(0, "patient", [f"patient {i}" for i in range(1, 5)])
    out.mkdir(parents=True, exist_ok=True)
    say("442 patients (Efron and others, 2004): how far will their diabetes progress in a year?")
    say(f"All files go to the folder {out}.", style="dim")
    with chdir(out):
        table.to_csv("patients.csv", index=False)
        new.to_csv("new.csv", index=False)
        say_command("bowtienet check patients.csv --target progression")
        check("patients.csv", "progression")
        say_command("bowtienet fit patients.csv --target progression --report patients.html")
        fit("patients.csv", "progression", report=Path("patients.html"))
        say_command("bowtienet predict patients.btn new.csv --id patient")
        predict(Path("patients.btn"), "new.csv", identify=["patient"])
        say_command("bowtienet compare patients.csv --target progression --splits 2")
        compare("patients.csv", "progression", splits=2)
        plots = draw(table.drop(columns="progression"), table["progression"])
    say()
    say("To look at:", style="bold")
    for name in ("patients.html", *plots):
        say(f"  {out / name}")


def say_command(command: str) -> None:
    """The command above what it prints."""
    say()
    say(f"$ {command}", style="bold cyan")


def draw(X: Any, y: Any) -> list[str]:
    """Plots of the fitted model."""
    from matplotlib.figure import Figure

    from bowtienet import load
    from bowtienet.plotting import PredictiveBandDisplay

    model, names = load("patients.btn"), []
    for column in ("bmi", "log triglycerides"):
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        PredictiveBandDisplay.from_estimator(model, X, column, y, ax=figure.subplots())
        names.append(f"{column.replace(' ', '-')}.png")
        figure.savefig(names[-1], dpi=150)
    return names
