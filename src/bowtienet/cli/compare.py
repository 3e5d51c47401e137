"""`bowtienet compare`: other models on the same splits."""

from __future__ import annotations

import math
from typing import Any

from bowtienet._format import count, duration, number
from bowtienet.cli import options
from bowtienet.cli.console import as_json, bar, note, say, table
from bowtienet.cli.data import estimator_of, hold_out, read_rows
from bowtienet.cli.fit import announce, check_options, score
from bowtienet.cli.refusals import Problems

HEADERS = {
    "crps": "CRPS",
    "rmse": "RMSE",
    "log_score": "log score",
    "brier_score": "Brier score",
    "coverage": "in 90 % intervals",
    "accuracy": "accuracy",
}


def compare(
    data: options.Data,
    target: options.Target,
    splits: options.Splits = 5,
    effort: options.Effort = "balanced",
    outcome: options.Outcome = "auto",
    exclude: options.Exclude = [],  # noqa: B006 (typer copies it)
    test_last: options.TestLast = None,
    missing_values: options.MissingValues = [],  # noqa: B006
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    json: options.Json = False,
) -> None:
    """Compare with a linear model, a constant and boosted trees on the same splits.

    LightGBM and CatBoost take part when they are installed.
    """
    from bowtienet.evaluation import compare as compare_models
    from bowtienet.evaluation import default_models

    problems = Problems()
    check_options(problems, effort, outcome, None, test_last)
    how = options.reading(missing_values, day_first, decimal, problems)
    rows = read_rows(data, how, problems, target=target, outcome=outcome, exclude=exclude)
    if rows is not None and splits > len(rows.target):
        problems.add(f"--splits must be at most the number of rows, got {splits}.")
    problems.refuse_if_any()
    assert rows is not None
    if not json:
        announce(data, rows)
    for text in rows.notes:
        note(text)
    task = "numbers" if rows.outcome == "student_t" else rows.outcome
    ours = {"effort": effort, "random_state": seed, "n_jobs": jobs}
    models = {**default_models(task, seed), "bow tie": estimator_of(rows.outcome, ours)}
    cv: Any = splits if test_last is None else [hold_out(rows.target, task, 0.0, test_last, seed)]
    with bar("comparing", len(models) * (splits if test_last is None else 1)) as step:
        result = compare_models(
            rows.features,
            rows.target,
            models,
            outcome=task,
            cv=cv,
            random_state=seed,
            callback=lambda done, total, name: step(name),
        )
    n_rows = len(rows.target) if test_last is None else len(cv[0][1])
    if json:
        as_json({"rows": n_rows, "models": result.columns, "notes": result.notes})
        return
    show(result.columns)
    held_out = f"in {splits} folds" if test_last is None else "the last ones"
    say(
        f"Means of {count(n_rows, 'held-out row')} ({held_out}); the difference from the first "
        "model in the first score is followed by its standard error."
    )
    for name, text in result.notes.items():
        note(f"{name} {text}")


def show(columns: dict[str, list[Any]]) -> None:
    """The comparison as a table."""
    scores = [name for name in columns if name in HEADERS]
    header = ["model", *(HEADERS[name] for name in scores), "seconds"]
    header.insert(2, "difference")
    lines = []
    for i, name in enumerate(columns["model"]):
        apart, error = columns["difference"][i], columns["standard_error"][i]
        sign = "\N{MINUS SIGN}" if apart < 0.0 else "+"
        words = (
            f"{sign}{number(abs(apart), 2)} ± {number(error, 2)}" if math.isfinite(apart) else ""
        )
        cells = [score(HEADERS[each], columns[each][i]) for each in scores]
        cells.insert(1, words if i else "")
        lines.append([name, *cells, duration(columns["seconds"][i])])
    table(header, lines)
