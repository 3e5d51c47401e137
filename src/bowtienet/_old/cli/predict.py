"""``bowtienet predict``: means, deviations and intervals, or probabilities, for new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output, number

if TYPE_CHECKING:
    import numpy as np

    from bowtienet._old.data.dialect import Dialect
    from bowtienet._old.prediction.mixture import Mixture

SHOWN = 20
"""Rows that people see at a terminal."""


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
    entropy: Annotated[
        bool,
        typer.Option(
            "--entropy",
            help="Of classes: also the epistemic and the aleatoric part of their entropy, in nats.",
        ),
    ] = False,
    exposure: options.Exposure = None,
    ids: Annotated[
        list[str] | None,
        options.unset(
            "Column of DATA to put before the predictions, unchanged; repeat it for several.",
            "COLUMN",
            "--id",
        ),
    ] = None,
    with_columns: Annotated[
        bool, typer.Option("--with-columns", help="Put the columns of DATA before the predictions.")
    ] = False,
    raw: options.Raw = False,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    date_format: options.DateFormat = None,
    as_json: options.Json = False,
) -> None:
    """Predict the rows of a table, with intervals or probabilities.

    The predictions have the columns mean, std, lower and upper, the ends of the interval; of counts
    these are whole numbers. Of classes they have class, the most probable one, and the probability
    of each, such as p_no and p_yes. Columns of DATA are found by their names, in any order; others
    are ignored. Several targets have columns such as mean_price and mean_size.
    """
    from bowtienet._old.cli.input_tables import check_exposure, check_names, read_with_dialect
    from bowtienet._old.cli.tasks import Task, task_of
    from bowtienet._old.cli.writing import TABLES, check_place, write
    from bowtienet._old.estimators.saving import load

    output = Output(as_json)
    if method not in ("central", "conformal"):
        raise ValueError(f"--method must be central or conformal; got {method!r}.")
    if out is not None:
        check_place(out, data, model, endings=TABLES, force=force)
    fitted = load(model)
    task = task_of(fitted)
    if method == "conformal" and task != Task.NUMBERS:
        raise ValueError(f"conformal intervals are for numbers, but the model is of {task}.")
    if entropy and task != Task.CLASSES:
        raise ValueError(f"--entropy is for classes, but the model is of {task}: leave it out.")
    check_exposure(task, exposure)
    marks = (delimiter, decimal, encoding, date_format)
    table, dialect = read_with_dialect(data, output, marks, fitted)
    check_names(table, data.name, [] if exposure is None else [exposure])
    check_names(table, data.name, ids or [])
    if task == Task.CLASSES:
        found = _predict_classes(fitted, table, data.name, entropy, output)
    elif task == Task.COUNTS:
        found = _predict_counts(fitted, table, data.name, coverage, exposure, output)
    else:
        found = _predict(fitted, table, data.name, coverage, method, output)
    if with_columns:
        found = _beside(table, found, "--with-columns")
    elif ids:
        found = _beside(_identifiers(data, table, dialect, ids), found, "--id")
    if out is not None:
        write(found, out, raw=raw)
        output.say(f"predictions of {found.num_rows:,} rows: {out}")
    elif not as_json:
        _print(found, raw, coverage, output)
    columns = {} if out is not None else {"columns": found.to_pydict()}
    output.result({"rows": found.num_rows, "out": None if out is None else str(out), **columns})


def _predict(
    model: Any, table: Any, label: str, coverage: float, method: str, output: Output
) -> Any:
    """A table of predictions, made chunk by chunk."""
    from bowtienet._old.cli.input_tables import needed_columns
    from bowtienet._old.data.arrow_files import pyarrow
    from bowtienet._old.ensemble.ensemble import mixture
    from bowtienet._old.ensemble.parquet import prediction_columns
    from bowtienet._old.estimators.known_columns import encoded_chunks, open_known_features
    from bowtienet._old.estimators.scoring import held_out_scores
    from bowtienet._old.prediction.conformal import conformal_interval

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


def _predict_classes(model: Any, table: Any, label: str, entropy: bool, output: Output) -> Any:
    """The most probable class, the probability of each, and perhaps the parts of entropy."""
    from bowtienet._old.cli.input_tables import needed_columns
    from bowtienet._old.cli.tasks import label_texts
    from bowtienet._old.data.arrow_files import pyarrow

    features = needed_columns(model, table, label)
    parts: dict[str, Any] = {}
    with output.stage("predicting"):
        found = model.predict_proba(features)
        if entropy:
            components = model.predict_components(features)
            parts = {"epistemic": components.epistemic, "aleatoric": components.aleatoric}
    names = [f"p_{text}" for text in label_texts(model.classes_)]
    columns = {"class": model.classes_[found.argmax(axis=1)]}
    columns |= dict(zip(names, found.T, strict=True))
    return pyarrow().table(columns | parts)


def _predict_counts(
    model: Any, table: Any, label: str, coverage: float, exposure: str | None, output: Output
) -> Any:
    """Mean, deviation and an interval of whole numbers for every row."""
    from bowtienet._old.cli.input_tables import column_numbers, needed_columns
    from bowtienet._old.data.arrow_files import pyarrow

    exposures = None if exposure is None else column_numbers(table, exposure, label)
    with output.stage("predicting"):
        found = model.predict_dist(needed_columns(model, table, label), exposure=exposures)
        ends = found.interval(coverage).astype("int64")
    columns = {"mean": found.mean(), "std": found.std(), "lower": ends[:, 0], "upper": ends[:, 1]}
    return pyarrow().table(columns)


def _identifiers(data: Path, table: Any, dialect: Dialect | None, names: list[str]) -> Any:
    """Columns as the file has them: 007 stays 007."""
    from bowtienet._old.data.files import read_exactly

    return table.select(names) if dialect is None else read_exactly(data, dialect, names)


def _beside(table: Any, found: Any, option: str) -> Any:
    """The columns of both tables."""
    twice = [name for name in found.column_names if name in table.column_names]
    if twice:
        raise ValueError(
            f"the table has a column {twice[0]!r} already: leave {option} out, or rename it."
        )
    for name in found.column_names:
        table = table.append_column(name, found.column(name))
    return table


def _print(table: Any, raw: bool, coverage: float, output: Output) -> None:
    """A table as text; for people at a terminal the first rows, with numbers as they read them."""
    from bowtienet._old.cli.writing import write_text

    if raw or not sys.stdout.isatty():
        write_text(table, sys.stdout.buffer, raw=raw)
        return
    shown = table.slice(0, SHOWN).to_pydict()
    kinds = [column.type for column in table.columns]
    texts = next((i for i, kind in enumerate(kinds) if "string" not in str(kind)), len(kinds))
    rows = [tuple(map(_cell, row)) for row in zip(*shown.values(), strict=True)]
    output.table(table.column_names, rows, n_texts=texts)
    if table.num_rows > SHOWN:
        output.say(f"and {table.num_rows - SHOWN:,} more (--out FILE writes them all)")
    if any(name.startswith("lower") for name in table.column_names):
        output.say(f"lower to upper: {100.0 * coverage:g} % interval")


def _cell(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number(value) if is_number or value is None else str(value)
