"""``bowtienet report``: one page about a model that opens in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bowtienet.cli import options
from bowtienet.cli.commands import guarded, stop_if_interrupted
from bowtienet.cli.console import Output
from bowtienet.cli.models import inputs_of, target_names
from bowtienet.cli.tables import Rows, check_place, read, split_columns
from bowtienet.estimators.table_pipeline import load
from bowtienet.prediction.intervals import check_coverage

_SUFFIXES = (".html", ".htm")


@guarded
def report(
    model: options.Model,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="Rows with targets, best such as the model has not seen.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page.")] = Path(
        "report.html"
    ),
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            show_default=False,
            help="Column of the target, for a model that does not know its name; repeat it for "
            "several.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", show_default=False, help="Heading of the page.")
    ] = None,
    weight: options.Weight = None,
    max_inputs: Annotated[
        int, typer.Option("--max-inputs", min=1, help="Most inputs to follow in pictures.")
    ] = 12,
    coverage: options.Coverage = 0.9,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Write one HTML page: the data, the fit, scores, calibration, inputs and surprises.

    The page holds all it needs and asks the network for nothing. Scores of rows that the model was
    fitted to flatter it; fit --report writes the page for rows held out.
    """
    output = Output(as_json)
    check_coverage(coverage)
    place = check_page_place(out, model, data)
    fitted = load(model)
    targets = target_names(fitted, target or [])
    table = read(data, output, delimiter, decimal, encoding)
    rows = split_columns(table, targets, [], weight, data.name, output)
    write_page(
        fitted,
        rows,
        place,
        output,
        inputs=inputs_of(fitted, rows.inputs, data.name),
        row_numbers=known_rows(table, targets),
        coverage=coverage,
        title=title,
        model_file=str(model),
        max_inputs=max_inputs,
    )
    output.say(f"report: {place}")
    output.result({"report": str(place), "bytes": place.stat().st_size, "rows": rows.n_rows})


def check_page_place(path: Path, *sources: Path) -> Path:
    """A file for a page, which is none of those that are read."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"{path} is no name for a page: let it end in .html.")
    return check_place(path, *sources)


def known_rows(table: Any, targets: Sequence[str]) -> np.ndarray:
    """Numbers, from 1, of the rows of a file whose targets are all known."""
    known = np.ones(table.num_rows, dtype=bool)
    for name in targets:
        missing = table.column(name).is_null(nan_is_null=True)
        known &= ~np.asarray(missing.to_numpy(), dtype=bool)
    return 1 + np.flatnonzero(known)


def write_page(
    model: Any, rows: Rows, place: Path, output: Output, *, inputs: Any, **settings: Any
) -> None:
    """Write the report about some rows, with a bar."""
    from bowtienet.report import write_report

    targets = rows.table.select(rows.names)
    with output.stage("reporting") as bar:

        def show(words: str, share: float) -> None:
            stop_if_interrupted()
            bar.show(words, share)

        write_report(
            model,
            inputs,
            targets,
            place,
            sample_weight=rows.weights,
            progress=show,
            **settings,
        )


def report_fit(
    model: Any,
    train: Rows,
    test: Rows | None,
    place: Path,
    output: Output,
    **settings: Any,
) -> None:
    """Write the report of a fit about the rows held out; about those fitted if there are none."""
    if test is None:
        output.note("no rows were held out: the report is of rows that were fitted.")
        write_page(
            model,
            train,
            place,
            output,
            inputs=train.inputs,
            seen=True,
            **settings,
        )
        return
    write_page(
        model,
        test,
        place,
        output,
        inputs=test.inputs,
        train=(train.inputs, train.table.select(train.names), train.weights),
        seen=False,
        **settings,
    )
