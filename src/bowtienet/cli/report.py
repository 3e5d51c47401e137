"""`bowtienet report`: one page about a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bowtienet.cli import options
from bowtienet.cli.console import note, say
from bowtienet.cli.data import features_for, read_rows, target_of
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
    force: options.Force = False,
) -> None:
    """Write a page about a saved model, judged by rows that its fit has not seen."""
    from bowtienet.estimators.saving import load
    from bowtienet.report import write_report

    problems = Problems()
    out = out or Path(model.stem + ".html")
    problems.output(out, force=force)
    how = options.reading(missing_values, day_first, decimal, problems)
    fitted, rows, features = None, None, None
    with problems.gather():
        fitted = load(model)
    if fitted is not None:
        kind = {"BowTieClassifier": "classes", "BowTieCountRegressor": "counts"}
        outcome = kind.get(type(fitted).__name__, "numbers")
        rows = read_rows(
            data, how, problems, target=target_of(fitted), outcome=outcome, exposure=exposure
        )
    if rows is not None:
        features = features_for(fitted, rows.features, problems)
    problems.refuse_if_any()
    assert rows is not None
    for text in rows.notes:
        note(text)
    write_report(fitted, features, rows.target, out, exposure=rows.exposure)
    say(f"Wrote {out}.")
