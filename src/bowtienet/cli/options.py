"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="Table with named columns: CSV, TSV, Parquet or Arrow.",
    ),
]
Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", show_default=False, help="File that fit or save wrote."),
]
Target = Annotated[
    list[str],
    typer.Option(
        "--target", "-t", show_default=False, help="Column to predict; repeat it for several."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", show_default=False, help="Column to leave out; repeat it for several."),
]
Weight = Annotated[
    str | None,
    typer.Option("--weight", show_default=False, help="Column that says how often a row counts."),
]
Coverage = Annotated[
    float, typer.Option("--coverage", help="Probability of the intervals, between 0 and 1.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Fits at the same time; -1 for all cores.")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        show_default=False,
        help="Character between the columns of a text file: ',' or a tab for .tsv by default.",
    ),
]
Decimal = Annotated[str, typer.Option("--decimal", help="Decimal point of a text file.")]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of a text file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Categories = Annotated[
    int,
    typer.Option("--max-categories", min=1, help="Most different texts that a column may hold."),
]
Hidden = Annotated[
    str, typer.Option("--hidden", help="Widths of the hidden layers, such as 50 or 50,20.")
]
Prior = Annotated[str, typer.Option("--prior", help="Shrinkage prior of the weights.")]
Members = Annotated[int, typer.Option("--members", min=1, help="Networks in the ensemble.")]
Combine = Annotated[
    str, typer.Option("--combine", help="How networks are weighed: stacking, elbo or equal.")
]
Sweeps = Annotated[int, typer.Option("--max-iter", min=1, help="Most sweeps of a fit.")]
