"""`bowtienet compare`: other models on the same splits."""

from __future__ import annotations

import math

from bowtienet._format import duration, number, percent
from bowtienet.cli import options
from bowtienet.cli.console import as_json, bar, note, say, table
from bowtienet.cli.data import estimator_of, hold_out, outcome_of, read_rows
from bowtienet.cli.fit import announce, check_options
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
    rows = read_rows(data, how, problems, target=target, exclude=exclude)
    if rows is not None and splits > len(rows.target):
        problems.add(f"--splits must be at most the number of rows, got {splits}.")
    problems.refuse_if_any()
    assert rows is not None
    outcome, doubt = outcome_of(rows.target, outcome)
    if not json:
        announce(data, rows, outcome, [doubt] if doubt else [])
    task = "numbers" if outcome == "student_t" else outcome
    ours = {"effort": effort, "random_state": seed, "n_jobs": jobs}
    models = {**default_models(task, seed), "bow tie": estimator_of(outcome, ours)}
    cv = splits if test_last is None else [hold_out(rows.target, task, 0.0, test_last, seed)]
    n_splits = splits if test_last is None else 1
    with bar("comparing", len(models) * n_splits) as step:
        result = compare_models(
            rows.features,
            rows.target,
            models,
            outcome=task,
            cv=cv,
            random_state=seed,
            callback=lambda done, total, name: step(name),
        )
    if json:
        as_json({"rows": result.n_rows, "models": result.columns, "notes": result.notes})
        return
    show(result.columns, n_splits, result.n_rows)
    for name, text in result.notes.items():
        note(f"{name} {text}")


def show(columns: dict[str, list], n_splits: int, n_rows: int) -> None:
    """The comparison as a table."""
    scores = [name for name in columns if name in HEADERS]
    first = HEADERS[scores[0]]
    header = ["model", first, "difference", *(HEADERS[name] for name in scores[1:]), "seconds"]
    lines = []
    for i, name in enumerate(columns["model"]):
        difference, error = columns["difference"][i], columns["standard_error"][i]
        apart = "" if i == 0 else f"{difference:+.2g} ± {number(error, 2)}"
        values = [cell(score, columns[score][i]) for score in scores]
        lines.append([name, values[0], apart, *values[1:], duration(columns["seconds"][i])])
    table(header, lines)
    better = "higher" if first == "log score" else "lower"
    held = "the last rows held out" if n_splits == 1 else f"{n_splits} splits"
    say(
        f"Means of {n_rows:,} held-out rows, {held}; a {better} {first} is better; the difference "
        "from the first model is followed by its standard error."
    )


def cell(score: str, value: float) -> str:
    """A score for people."""
    if not math.isfinite(value):
        return "failed"
    return percent(value, 1) if score in ("coverage", "accuracy") else number(value, 4)
