"""`bowtienet compare`: other models on the same splits."""

from __future__ import annotations

from typing import Annotated

import typer

from bowtienet._format import SCORES, count
from bowtienet.cli import options
from bowtienet.cli.console import console, note, say, table
from bowtienet.cli.data import announce, read_rows


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
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
) -> None:
    """Compare with linear models and boosted trees on the same splits.

    LightGBM and CatBoost take part when they are installed.
    """
    from bowtienet.evaluation import compare as compare_models
    from bowtienet.evaluation import default_models

    how = {"missing_values": missing_values, "decimal": decimal, "day_first": day_first}
    rows = read_rows(data, how, target=target, outcome=outcome, exclude=exclude)
    announce(data, rows)
    for text in rows.notes:
        note(text)
    models = default_models(rows.outcome, seed)
    models["bow tie"].set_params(effort=effort, n_jobs=jobs)
    with console(stderr=True).status("comparing") as status:
        result = compare_models(
            rows.features,
            rows.target,
            models,
            outcome=rows.outcome,
            cv=splits,
            random_state=seed,
            callback=lambda done, total, name: status.update(f"{done} of {total} fits: {name}"),
        )
    header, *lines = result.lines()
    table(header, lines)
    first = next(SCORES[name] for name in result.columns if name in SCORES)
    say(
        f"Means over {count(len(rows.target), 'held-out row')} in {splits} folds. Differences in "
        f"{first} from the first model, with standard errors."
    )
    for name, text in result.notes.items():
        note(f"{name} {text}")
