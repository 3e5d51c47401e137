"""`bowtienet demo`: the commands on a real table, and plots of it."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Annotated, Any

import typer

from bowtienet.cli.console import say


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where files go.")
    ] = Path("bowtienet-demo"),
) -> None:
    """Run the commands on a real table of patients with diabetes."""
    from sklearn.datasets import load_diabetes

    from bowtienet.cli.app import app

    names = {"bp": "blood pressure", "s1": "cholesterol", "s2": "LDL", "s3": "HDL"}
    names |= {"s4": "cholesterol by HDL", "s5": "log triglycerides", "s6": "glucose"}
    table = load_diabetes(as_frame=True, scaled=False).frame
    table = table.rename(columns={**names, "target": "progression"})
    table["sex"] = table["sex"].map({1.0: "a", 2.0: "b"})  # the source does not say which is which
    table, new = table.iloc[:-4], table.iloc[-4:].drop(columns="progression")
    new.insert(0, "patient", [f"patient {i}" for i in range(1, 5)])
    out.mkdir(parents=True, exist_ok=True)
    say("442 patients (Efron and others, 2004): how far does their diabetes progress in a year?")
    say(f"The last four are new rows for predict. All files go to the folder {out}.", style="dim")
    with chdir(out):
        table.to_csv("patients.csv", index=False)
        new.to_csv("new.csv", index=False)
        for command in (
            "check patients.csv --target progression",
            "fit patients.csv --target progression --report patients.html",
            "predict patients.btn new.csv --id patient",
            "compare patients.csv --target progression --splits 2",
        ):
            say()
            say(f"$ bowtienet {command}", style="bold cyan")
            app(command.split(), standalone_mode=False)
        plots = draw(table.drop(columns="progression"), table["progression"])
    say()
    say("Open in a browser or viewer:", style="bold")
    for name in ("patients.html", *plots):
        say(f"  {out / name}")


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
