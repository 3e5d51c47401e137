"""Options that several commands share, and what their texts stand for."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bowtienet.cli.refusals import Problems

EFFORTS = ("fast", "balanced", "best")
OUTCOMES = ("auto", "numbers", "student_t", "classes", "counts")

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="CSV, Excel, Parquet or Feather file; - for standard input."
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File that `fit` wrote.")]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="What to predict.")]
Effort = Annotated[str, typer.Option(help="How long networks may train: fast, balanced or best.")]
Outcome = Annotated[
    str,
    typer.Option(
        help="What the target is: numbers, student_t (numbers with outliers), classes or counts; "
        "auto looks at its values."
    ),
]
Exclude = Annotated[
    list[str],
    typer.Option("--exclude", metavar="COLUMN", help="Column to leave out; may be repeated."),
]
Weight = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="How many times each row counts.")
]
Exposure = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Time or area that counts refer to.")
]
TestSize = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Rows to hold out at random; 0 for none. [0.2]"),
]
TestLast = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Hold out the last rows: for rows in the order of time."),
]
Splits = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]
Seed = Annotated[int, typer.Option(help="Source of all randomness.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A parameter of the estimator; may be repeated."
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
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


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read, where their values leave it open."""

    missing_values: tuple[str, ...]
    day_first: bool | None
    decimal: str | None


def reading(
    missing_values: list[str], day_first: bool | None, decimal: str | None, problems: Problems
) -> Reading:
    """The reading of these options."""
    if decimal is not None:
        problems.choice("--decimal", decimal, (".", ","))
    return Reading(
        missing_values=tuple(missing_values),
        day_first=day_first,
        decimal=decimal if decimal in (".", ",") else None,
    )


def settings_of(texts: list[str], known: list[str], problems: Problems) -> dict[str, Any]:
    """Parameters of an estimator from NAME=VALUE; values as in Python, or plain text."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or name not in known:
            problems.add(f"--set takes NAME=VALUE with one of {', '.join(known)}, got {text!r}.")
            continue
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    return settings


def levels_of(text: str | None, problems: Problems) -> list[float]:
    """Levels of quantiles from "0.1,0.5,0.9"."""
    if text is None:
        return []
    try:
        levels = [float(each) for each in text.split(",")]
    except ValueError:
        levels = []
    if not levels or not all(0.0 < level < 1.0 for level in levels):
        problems.add(f"--quantiles takes levels between 0 and 1 as 0.1,0.5,0.9, got {text!r}.")
        return []
    return levels
