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
    typer.Option(help="Kind of target; auto looks at its values."),
]
Exclude = Annotated[
    list[str],
    typer.Option("--exclude", metavar="COLUMN", help="Column to leave out; may be repeated."),
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="Weights of the rows.")]
Exposure = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Exposure of counts, such as time or area.")
]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")]
MissingValues = Annotated[
    list[str],
    typer.Option("--na", metavar="TEXT", help="Text of a missing value; may be repeated."),
]
Decimal = Annotated[
    str | None, typer.Option(metavar="MARK", help="Decimal mark (. or ,) where it is in doubt.")
]
DayFirst = Annotated[
    bool | None,
    typer.Option("--day-first/--month-first", help="How to read dates such as 03/04/2024."),
]
