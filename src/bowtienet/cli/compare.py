"""`bowtienet compare`: other models on the same splits."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from bowtienet._format import SCORES, count, duration, number, score
from bowtienet.cli import options
from bowtienet.cli.console import console, note, say, table
from bowtienet.cli.data import announce, read_rows
from bowtienet.cli.refusals import Problems


def compare(
    data: options.Data,
    target: options.Target,
    splits: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    effort: options.Effort = "balanced",
    outcome: options.Outcome = "auto",
    exclude: options.Exclude = [],  # noqa: B006 (typer copies it)
    missing_values: options.MissingValues = [],  # noqa: B006
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
    jobs: options.Jobs = 1,
) -> None:
    """Compare with a linear model, a constant and boosted trees on the same splits.

    LightGBM and CatBoost take part when they are installed.
    """
    from bowtienet.evaluation import compare as compare_models
    from bowtienet.evaluation import default_models

    problems = Problems()
    how = {"missing_values": missing_values, "decimal": decimal, "day_first": day_first}
    rows = read_rows(data, how, problems, target=target, outcome=outcome, exclude=exclude)
    problems.refuse_if_any()
    announce(data, rows)
    for text in rows.notes:
        note(text)
    models = default_models(rows.outcome)
    models["bow tie"].set_params(effort=effort, n_jobs=jobs)
    screen, doing = console(stderr=True), TextColumn("{task.description}", markup=False)
    line = (doing, BarColumn(24), TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn())
    with Progress(*line, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("comparing")

        def step(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name)

        result = compare_models(
            rows.features,
            rows.target,
            models,
            outcome=rows.outcome,
            cv=splits,
            callback=step,
        )
    show(result.columns)
    say(
        f"Means of {count(len(rows.target), 'held-out row')} in {splits} folds; the difference "
        "from the first model in the first score is followed by its standard error."
    )
    for name, text in result.notes.items():
        note(f"{name} {text}")


def show(columns: dict[str, list[Any]]) -> None:
    """The comparison as a table."""
    scores = [name for name in columns if name in SCORES and name != "interval_score"]
    header = ["model", *(SCORES[name] for name in scores), "seconds"]
    header.insert(2, "difference")
    lines = []
    for i, name in enumerate(columns["model"]):
        apart, error = columns["difference"][i], columns["standard_error"][i]
        sign = "\N{MINUS SIGN}" if apart < 0.0 else "+"
        difference = f"{sign}{number(abs(apart), 2)} ± {number(error, 2)}"
        cells = [score(each, columns[each][i]) for each in scores]
        cells.insert(1, difference if i and math.isfinite(apart) else "")
        lines.append([name, *cells, duration(columns["seconds"][i])])
    table(header, lines)
