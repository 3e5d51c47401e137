"""``bowtienet predict``: means, deviations and intervals for new rows."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from bowtienet.cli import options
from bowtienet.cli.commands import guarded
from bowtienet.cli.console import Output, printable
from bowtienet.cli.models import inputs_of, prepared, target_names
from bowtienet.cli.tables import check_table_place, read, write, write_text
from bowtienet.data.arrow_parts import pyarrow
from bowtienet.estimators.table_pipeline import load
from bowtienet.estimators.writing import prediction_columns
from bowtienet.plotting.fitted import network_of
from bowtienet.prediction.intervals import check_coverage

_BLOCK = 50_000
"""Rows that are predicted between two looks at the bar."""


@guarded
def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            show_default=False,
            help="File for the predictions (.csv, .tsv, .parquet, .arrow); by default they are "
            "printed as CSV.",
        ),
    ] = None,
    coverage: options.Coverage = 0.9,
    with_inputs: Annotated[
        bool, typer.Option("--with-inputs", help="Put the columns of DATA before the predictions.")
    ] = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Predict the rows of a table: mean, std, and the lower and upper end of an interval.

    Columns are found by their names, in any order; others are ignored. Several targets have columns
    such as mean_price and mean_size.
    """
    output = Output(as_json)
    check_coverage(coverage)
    if out is not None:
        check_table_place(out, data, model)
    fitted = load(model)
    table = read(data, output, delimiter, decimal, encoding)
    names = target_names(fitted)
    parts = list(_predicted(fitted, inputs_of(fitted, table, data.name), coverage, names, output))
    found = pyarrow().concat_tables(parts)
    if with_inputs:
        found = _beside(table, found)
    if out is not None:
        write(found, out)
        output.say(f"predictions of {found.num_rows:,} rows: {out}")
    elif not as_json:
        _print(found)
    columns = {} if out is not None else {"columns": found.to_pydict()}
    output.result({"rows": found.num_rows, "out": None if out is None else str(out), **columns})


def _predicted(
    model: Any, inputs: Any, coverage: float, names: list[str], output: Output
) -> Iterator[Any]:
    """Tables of predictions, block by block."""
    with output.stage("predicting") as bar:
        values, fitted = prepared(model, inputs), network_of(model)
        for start in range(0, values.num_rows, _BLOCK):
            bar.show("predicting", start / values.num_rows)
            found = fitted.predict_dist(values.slice(start, _BLOCK))
            yield pyarrow().table(prediction_columns(found, coverage, names))


def _beside(table: Any, found: Any) -> Any:
    """The columns of both tables."""
    twice = [name for name in found.column_names if name in table.column_names]
    if twice:
        raise ValueError(
            f"the table has a column {twice[0]!r} already: leave --with-inputs out, or rename it."
        )
    for name in found.column_names:
        table = table.append_column(name, found.column(name))
    return table


def _print(table: Any) -> None:
    """A table as text; a terminal gets no character that it would obey."""
    if not sys.stdout.isatty():
        write_text(table, sys.stdout.buffer)
        return
    text = io.BytesIO()
    write_text(table, text)
    sys.stdout.write(printable(text.getvalue().decode()))
