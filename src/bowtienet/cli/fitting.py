"""``bowtienet fit``: from a table to a saved model and its scores on rows held out."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.model_selection import train_test_split

from bowtienet.cli import options, rendering
from bowtienet.cli.commands import guarded, stop_if_interrupted
from bowtienet.cli.console import Output
from bowtienet.cli.drawing import check_folder, draw, painters_of
from bowtienet.cli.reporting import check_page_place, known_rows, report_fit
from bowtienet.cli.settings import make_regressor
from bowtienet.cli.tables import Rows, check_inputs, check_place, read, split_columns
from bowtienet.data.arrow_parts import pyarrow
from bowtienet.data.files import table_name
from bowtienet.estimators.preparing import TablePreparer, describe
from bowtienet.estimators.progress import reporting_to
from bowtienet.estimators.table_pipeline import TablePipeline, make_table_pipeline
from bowtienet.evaluation import Scores, evaluate
from bowtienet.prediction.intervals import check_coverage
from bowtienet.prediction.mixture import build_mixture

FEWEST = 20
"""Rows below which none are held out unless that is asked for: too few would be left to score."""
SHARE = 0.1
ModelPlace = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", show_default=False, help="File for the model; DATA's name with .btn."
    ),
]
PicturePlace = Annotated[
    Path | None,
    typer.Option(
        "--plots", show_default=False, help="Folder for pictures, drawn of the rows held out."
    ),
]
PagePlace = Annotated[
    Path | None,
    typer.Option(
        "--report", show_default=False, help="File for an HTML page about the rows held out."
    ),
]
TestSize = Annotated[
    float | None,
    typer.Option(
        "--test-size",
        show_default=False,
        help="Share of the rows to hold out and score: 0.1 from 20 rows on; 0 for none.",
    ),
]


@guarded
def fit(
    data: options.Data,
    target: options.Target,
    out: ModelPlace = None,
    plots: PicturePlace = None,
    report: PagePlace = None,
    drop: options.Drop = None,
    weight: options.Weight = None,
    test_size: TestSize = None,
    coverage: options.Coverage = 0.9,
    hidden: options.Hidden = "50",
    prior: options.Prior = "student_t",
    members: options.Members = 8,
    combine: options.Combine = "stacking",
    max_iter: options.Sweeps = 80,
    max_categories: options.Categories = 100,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Fit a model to a table, score it on rows held out, and save it.

    Text columns are one-hot encoded, missing values imputed by the median beside an indicator; the
    model file remembers both. The model that is saved is the one that was scored: rows held out are
    not used. With --test-size 0 all rows are.
    """
    output = Output(as_json)
    check_coverage(coverage)
    if plots is not None:
        check_folder(plots)
    place = check_place(out or Path(f"{table_name(data)}.btn"), data)
    if report is not None:
        check_page_place(report, data)
        if report == place:
            raise ValueError(f"--out and --report both name {place}: name two files.")
    regressor = make_regressor(hidden, prior, members, combine, max_iter, jobs, seed)
    table = read(data, output, delimiter, decimal, encoding)
    rows = split_columns(table, target, drop or [], weight, data.name, output)
    check_inputs(rows, data.name)
    train, test = hold_out(rows, test_size, seed)
    model = make_table_pipeline(regressor, max_categories=max_categories)
    columns = describe_columns(train, model.named_steps["prepare"], output)
    rendering.columns(output, columns, rows)
    begin = time.perf_counter()
    fit_rows(model, train, output)
    seconds = time.perf_counter() - begin
    with output.stage("scoring and saving"):
        scores = None if test is None else score(model, test, train, coverage)
        stop_if_interrupted()
        model.save(place)
    rendering.fitted(output, model, train, test, seconds)
    rendering.scores(output, scores)
    pictures = (
        [] if plots is None else draw(painters_of(model, test, coverage=coverage), plots, output)
    )
    if report is not None:
        numbers = _row_numbers(table, rows, test_size, seed)
        settings = {"row_numbers": numbers, "coverage": coverage, "model_file": str(place)}
        report_fit(model, train, test, report, output, **settings)
    output.say(f"\nmodel: {place}")
    if report is not None:
        output.say(f"report: {report}")
    for picture in pictures:
        output.say(f"picture: {picture}")
    output.result(
        {
            "model": str(place),
            "pictures": [str(picture) for picture in pictures],
            "report": None if report is None else str(report),
            "rows": {"fitted": train.n_rows, "held_out": 0 if test is None else test.n_rows},
            "columns": [{"name": name, "use": use} for name, use in columns],
            "targets": rows.names,
            "fit": rendering.fit_facts(model, seconds),
            "scores": scores,
        }
    )


def hold_out(rows: Rows, test_size: float | None, seed: int) -> tuple[Rows, Rows | None]:
    """Rows to fit and rows to score, parted by scikit-learn's `train_test_split`."""
    n_rows = rows.table.num_rows
    share = (SHARE if n_rows >= FEWEST else 0.0) if test_size is None else test_size
    if not 0.0 <= share < 1.0:
        raise ValueError(f"--test-size must be at least 0 and below 1, got {share:g}.")
    if share == 0.0:
        return rows, None
    left = n_rows - math.ceil(share * n_rows)
    if left < 2:
        raise ValueError(
            f"--test-size {share:g} leaves {left} of {n_rows} rows to fit: hold out fewer."
        )
    train, test = train_test_split(np.arange(n_rows), test_size=share, random_state=seed)
    return rows.take(train), rows.take(test)


def _row_numbers(table: Any, rows: Rows, test_size: float | None, seed: int) -> np.ndarray:
    """Numbers in the file of the rows held out, or of all: the same split of the numbers."""
    numbers = pyarrow().table({"number": known_rows(table, rows.names)})
    train, test = hold_out(replace(rows, table=numbers), test_size, seed)
    return (train if test is None else test).table.column("number").to_numpy()


def describe_columns(rows: Rows, preparer: TablePreparer, output: Output) -> list[tuple[str, str]]:
    """What becomes of each input, before the long part begins."""
    with output.stage("looking at the columns"):
        return [(column.name, describe(column)) for column in preparer.fit(rows.inputs).columns_]


def fit_rows(model: TablePipeline, rows: Rows, output: Output) -> None:
    """Fit with a bar."""
    with output.stage("fitting") as bar, reporting_to(bar):
        model.fit(rows.table, rows.y, sample_weight=rows.weight)
    stop_if_interrupted()


def score(model: Any, test: Rows, train: Rows, coverage: float) -> dict[str, dict[str, Scores]]:
    """Scores by target: of the model, and of the mean and deviation of the training targets."""
    found, found_scores = model.predict_dist(test.table), {}
    for index, name in enumerate(test.names):
        known, fitted = test.table.column(name).to_numpy(), train.table.column(name).to_numpy()
        mean = np.average(fitted, weights=train.weights)
        deviation = np.sqrt(np.average((fitted - mean) ** 2, weights=train.weights))
        # A target that never moves has no deviation: one of rounding stands for it.
        level = np.full((1, known.size), mean)
        spread = np.full((1, known.size), max(deviation, np.spacing(abs(mean))))
        forecasts = {
            "model": found if len(test.names) == 1 else found.of_target(index),
            "constant": build_mixture([1.0], level, spread),
        }
        found_scores[name] = {
            method: evaluate(known, forecast, coverage=coverage, sample_weight=test.weights)
            for method, forecast in forecasts.items()
        }
    return found_scores
