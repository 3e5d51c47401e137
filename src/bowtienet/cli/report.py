"""``bowtienet report``: one page about a model that opens in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bowtienet.cli import options
from bowtienet.cli.console import Output
from bowtienet.cli.exits import guarded, stop_if_interrupted

if TYPE_CHECKING:
    from bowtienet.cli.reading import Rows


@guarded
def report(
    model: options.Model,
    data: options.KnownRows,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page.")] = Path(
        "report.html"
    ),
    target: options.KnownTarget = None,
    title: Annotated[
        str | None, options.unset_option("--title", metavar="TEXT", words="Heading of the page.")
    ] = None,
    weight: options.Weight = None,
    max_features: Annotated[
        int,
        typer.Option("--max-features", min=1, help="Most features to plot predictions along."),
    ] = 12,
    coverage: options.Coverage = 0.9,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Write one HTML page about a model and how it predicts some rows.

    It shows the data, the fit, scores, calibration, features and surprises. The page holds all it
    needs and asks the network for nothing. Scores of rows that the model was fitted to flatter it;
    fit --report writes the page for held-out rows.
    """
    from bowtienet.cli.reading import open_known_rows, read, target_columns
    from bowtienet.cli.writing import check_page_place
    from bowtienet.estimators.files import load

    output = Output(as_json)
    place = check_page_place(out, model, data)
    fitted = load(model)
    names = target_columns(fitted, target or [])
    table = read(data, output, delimiter, decimal, encoding)
    rows = open_known_rows(fitted, table, data.name, output, targets=names, weight=weight)
    settings = {"coverage": coverage, "title": title, "max_features": max_features}
    write_page(fitted, rows, place, output, model_file=str(model), **settings)
    output.say(f"report: {place}")
    output.result({"report": str(place), "bytes": place.stat().st_size, "rows": rows.n_rows})


def write_page(model: Any, rows: Rows, place: Path, output: Output, **settings: Any) -> None:
    """Write the report about some rows, with a bar."""
    from bowtienet.report import write_report

    with output.stage("reporting") as bar:

        def show(words: str, share: float) -> None:
            stop_if_interrupted()
            bar.show(words, share)

        write_report(
            model,
            rows.features,
            rows.named_targets,
            place,
            sample_weight=rows.weights,
            row_numbers=rows.numbers,
            progress=show,
            **settings,
        )
