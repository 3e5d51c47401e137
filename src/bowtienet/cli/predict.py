"""``bowtienet predict``: means, deviations and intervals for new rows."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bowtienet.cli import shared_options as options
from bowtienet.cli.console import Output, printable

if TYPE_CHECKING:
    import numpy as np

    from bowtienet.prediction.mixture import Mixture


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path | None,
        options.unset(
            "File for the predictions (.csv, .tsv, .parquet, .arrow); by default they are "
            "printed as CSV.",
            "FILE",
            "--out",
            "-o",
        ),
    ] = None,
    coverage: options.Coverage = 0.9,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="Intervals: central ones of the model, or conformal ones, which held the stated "
            "share of the rows that the fit held out.",
        ),
    ] = "central",
    with_columns: Annotated[
        bool, typer.Option("--with-columns", help="Put the columns of DATA before the predictions.")
    ] = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Predict the rows of a table, with intervals.

    The predictions have the columns mean, std, lower and upper, the ends of the interval. Columns
    of DATA are found by their names, in any order; others are ignored. Several targets have columns
    such as mean_price and mean_size.
    """
    from bowtienet.cli.input_tables import read
    from bowtienet.cli.writing import TABLES, check_place, write
    from bowtienet.estimators.saving import load

    output = Output(as_json)
    if method not in ("central", "conformal"):
        raise ValueError(f"--method must be central or conformal; got {method!r}.")
    if out is not None:
        check_place(out, data, model, endings=TABLES)
    fitted = load(model)
    table = read(data, output, delimiter, decimal, encoding)
    found = _predict(fitted, table, data.name, coverage, method, output)
    if with_columns:
        found = _beside(table, found)
    if out is not None:
        write(found, out)
        output.say(f"predictions of {found.num_rows:,} rows: {out}")
    elif not as_json:
        _print(found)
    columns = {} if out is not None else {"columns": found.to_pydict()}
    output.result({"rows": found.num_rows, "out": None if out is None else str(out), **columns})


def _predict(
    model: Any, table: Any, label: str, coverage: float, method: str, output: Output
) -> Any:
    """A table of predictions, made chunk by chunk."""
    from bowtienet.cli.input_tables import needed_columns
    from bowtienet.data.arrow_files import pyarrow
    from bowtienet.ensemble.ensemble import mixture
    from bowtienet.ensemble.parquet import prediction_columns
    from bowtienet.estimators.known_columns import encoded_chunks, open_known_features
    from bowtienet.estimators.scoring import held_out_scores
    from bowtienet.prediction.conformal import conformal_interval

    scores = held_out_scores(model) if method == "conformal" else None

    def limits(found: Mixture) -> np.ndarray:
        if scores is None:
            return found.interval(coverage)
        return conformal_interval(found, scores, coverage)

    source = open_known_features(model, needed_columns(model, table, label))
    parts, n_done = [], 0
    with output.stage("predicting") as bar:
        for chunk in encoded_chunks(model, source):
            found = mixture(model.ensemble_, chunk)
            columns = prediction_columns(found, limits(found), model.target_names_)
            parts.append(pyarrow().table(columns))
            n_done += len(chunk)
            bar.show("predicting", n_done / table.num_rows)
    return pyarrow().concat_tables(parts)


def _beside(table: Any, found: Any) -> Any:
    """The columns of both tables."""
    twice = [name for name in found.column_names if name in table.column_names]
    if twice:
        raise ValueError(
            f"the table has a column {twice[0]!r} already: leave --with-columns out, or rename it."
        )
    for name in found.column_names:
        table = table.append_column(name, found.column(name))
    return table


def _print(table: Any) -> None:
    """A table as text; a terminal gets no character that it would obey."""
    from bowtienet.cli.writing import write_text

    if sys.stdout.isatty():
        text = io.BytesIO()
        write_text(table, text)
        print(printable(text.getvalue().decode()), end="")
    else:
        write_text(table, sys.stdout.buffer)
