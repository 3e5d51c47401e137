"""`bowtienet report`: one page about a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bowtienet.cli import options
from bowtienet.cli.console import note, say
from bowtienet.cli.data import features_for, read_rows
from bowtienet.cli.refusals import Problems


def report(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PAGE", help="The page. [MODEL.html]")
    ] = None,
    exposure: options.Exposure = None,
    missing_values: options.MissingValues = [],  # noqa: B006 (typer copies it)
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
) -> None:
    """Write a page about a saved model, evaluated on held-out rows."""
    from bowtienet import load
    from bowtienet.evaluation.competitors import outcome_of
    from bowtienet.report import write_report

    problems, fitted = Problems(), load(model)
    out = out or Path(model.stem + ".html")
    problems.output(out, model, data)
    how = {"missing_values": missing_values, "decimal": decimal, "day_first": day_first}
    target, outcome = fitted._target_names[0], outcome_of(fitted)
    problems.refuse_if_any()
    rows = read_rows(data, how, target=target, outcome=outcome, exposure=exposure)
    features = features_for(fitted, rows.features, problems)
    for text in rows.notes:
        note(text)
    write_report(fitted, features, rows.target, out, exposure=rows.extra.get("exposure"))
    say(f"Wrote {out}.")
