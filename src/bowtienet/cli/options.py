"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="CSV, Excel, Parquet or Feather file; - for standard input."
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File that `fit` wrote.")]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="What to predict.")]
Effort = Annotated[
    Literal["fast", "balanced", "best"], typer.Option(help="How long networks may train.")
]
Outcome = Annotated[
    Literal["auto", "numbers", "classes", "counts"],
    typer.Option(help="What the target is; auto looks at its values."),
]
Exclude = Annotated[
    list[str],
    typer.Option("--exclude", metavar="COLUMN", help="Column to leave out; may be repeated."),
]
Exposure = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Time or area that counts refer to.")
]
Weight = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="How many times each row counts.")
]
TestSize = Annotated[
    float, typer.Option(min=0, max=1, help="Share of rows to hold out; 0 for none.")
]
TestLast = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="The share of last rows instead: for rows in order of time."),
]
Report = Annotated[
    Path | None, typer.Option(metavar="PAGE", help="Write a page about the model as well.")
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A parameter of the estimator; may be repeated."
    ),
]
Identify = Annotated[
    list[str],
    typer.Option(
        "--id", metavar="COLUMN", help="Column to carry into the predictions; may be repeated."
    ),
]
Calibration = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Rows with known targets that the fit has not seen: intervals become conformal.",
    ),
]
Quantiles = Annotated[
    str, typer.Option(metavar="LEVELS", help="Further quantiles, as 0.1,0.5,0.9.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")]
MissingValues = Annotated[
    list[str],
    typer.Option("--na", metavar="TEXT", help="Text of a missing value; may be repeated."),
]
Decimal = Annotated[
    str | None, typer.Option(metavar="MARK", help="Decimal mark, . or , if not plain to see.")
]
DayFirst = Annotated[
    bool | None,
    typer.Option("--day-first/--month-first", help="How to read dates such as 03/04/2024."),
]
