"""``bowtienet report``: one page about a model that opens in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output

if TYPE_CHECKING:
    from bowtienet._old.cli.input_tables import NamedTable


def report(
    model: options.Model,
    data: options.KnownRows,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page.")] = Path(
        "report.html"
    ),
    target: options.KnownTarget = None,
    title: Annotated[str | None, options.unset("Heading of the page.", "TEXT", "--title")] = None,
    weight: options.Weight = None,
    max_features: Annotated[
        int,
        typer.Option("--max-features", min=1, help="Most features to plot predictions along."),
    ] = 12,
    coverage: options.Coverage = 0.9,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    date_format: options.DateFormat = None,
    as_json: options.Json = False,
) -> None:
    """Write one HTML page about a model and how it predicts some rows.

    It begins with a verdict and shows scores, calibration, residuals, features, improbable rows and
    a panel to ask what if. The page holds all it needs and asks the network for nothing. Scores of
    rows that the model was fitted to flatter it; fit --report writes the page for held-out rows.
    """
    from bowtienet._old.cli.input_tables import known_rows_of_model, read
    from bowtienet._old.cli.tasks import task_of
    from bowtienet._old.cli.writing import PAGES, check_place
    from bowtienet._old.estimators.saving import load

    output = Output(as_json)
    place = check_place(out, model, data, endings=PAGES, force=force)
    fitted = load(model)
    check_reportable(task_of(fitted))
    table = read(data, output, (delimiter, decimal, encoding, date_format), fitted)
    rows = known_rows_of_model(fitted, table, data.name, targets=target, weight=weight)
    settings = {"coverage": coverage, "title": title, "max_features": max_features}
    write_page(fitted, rows, place, output, model_file=str(model), **settings)
    output.say(f"report: {place}")
    output.result({"report": str(place), "bytes": place.stat().st_size, "rows": rows.n_rows})


def check_reportable(task: str) -> None:
    """Raise if there are no reports about such a model."""
    if task == "counts":
        raise ValueError("reports are for numbers and classes; for counts use inspect and plot.")


def write_page(model: Any, rows: NamedTable, place: Path, output: Output, **settings: Any) -> None:
    """Write the report about some rows, with a bar."""
    from bowtienet._old.report import write_report

    with output.stage("reporting") as bar:
        write_report(
            model,
            rows.features,
            rows.targets,
            place,
            sample_weight=rows.weights,
            row_numbers=rows.numbers,
            progress=bar.show,
            **settings,
        )
