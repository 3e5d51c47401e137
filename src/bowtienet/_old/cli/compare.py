"""``bowtienet compare``: this library beside scikit-learn's own models, on the same splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output, note, number

if TYPE_CHECKING:
    from bowtienet._old.evaluation import Comparison

_SHOWN = {
    "numbers": {"rmse": "RMSE", "nll": "NLL", "crps": "CRPS", "coverage": "{:g} % coverage"},
    "classes": {
        "log_loss": "log loss",
        "brier_score": "Brier",
        "accuracy": "accuracy",
        "calibration_error": "calibration error",
    },
}
"""Scores in the order of a table."""


def compare(
    data: options.Data,
    target: options.Target,
    task: options.TargetTask = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    splits: Annotated[int, typer.Option("--splits", min=1, help="Random splits.")] = 3,
    test_size: Annotated[
        float, options.share("Share of the rows held out in each split.", "--test-size")
    ] = 0.1,
    coverage: options.Coverage = 0.9,
    hidden: options.Hidden = "50",
    prior: options.Prior = "student_t",
    features: options.Features = "auto",
    target_transform: options.TargetTransform = "auto",
    noise: options.Noise = "auto",
    effort: options.Effort = "balanced",
    members: options.Members = None,
    weighting: options.Weighting = "stacking",
    max_iter: options.Sweeps = 80,
    max_categories: options.Categories = 100,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    date_format: options.DateFormat = None,
    as_json: options.Json = False,
) -> None:
    """Compare with scikit-learn's models on the same splits.

    These are Bayesian ridge regression, a Gaussian process and boosted quantiles; of classes
    logistic regression, a random forest and boosted trees. Split i holds out a share of the rows
    with the seed plus i; figures are means over the splits, in the unit of the target. Seconds are
    those of a fit.
    """
    from bowtienet._old.cli.decisions import Asked, without_identifiers
    from bowtienet._old.cli.input_tables import (
        check_finite,
        check_names,
        known_rows,
        read,
        with_written_numbers,
    )
    from bowtienet._old.cli.tasks import Task, describe_task, find_task, read_task
    from bowtienet._old.evaluation import compare as compare_methods
    from bowtienet._old.evaluation import default_methods

    output, asked = Output(as_json), read_task(task)
    if len(target) > 1:
        raise ValueError("compare takes one target at a time: name --target once.")
    if asked == Task.COUNTS:
        raise ValueError("compare is for numbers and classes: give --task numbers, or leave it.")
    # Without a seed of its own, a fit has that of its split.
    ensemble = {"prior": prior, "n_estimators": members, "max_iter": max_iter}
    ensemble |= {"features": features, "target_transform": target_transform}
    ensemble |= {"noise": noise, "effort": effort}
    regressor = options.make_regressor(hidden, weighting, max_categories, jobs, **ensemble)
    table = read(data, output, (delimiter, decimal, encoding, date_format))
    columns = Asked(targets=target, drop=tuple(drop or ()), keep=tuple(keep or ()))
    check_names(table, data.name, [*target, *columns.drop, *columns.keep])
    check_finite(table.drop_columns(list(columns.drop)), data.name)
    if asked != Task.CLASSES:
        table, _ = with_written_numbers(table, target)
    table, left_out = without_identifiers(table, columns)
    for one in left_out:
        keeps = f"; {one.option} keeps it" if one.option.startswith("--keep") else ""
        note(f"column {one.subject!r}: {one.what}{keeps}.")
    kind = find_task(table, data.name, target, asked)
    rows = known_rows(table, data.name, targets=target, drop=drop or [], task=kind)
    words = describe_task(rows.table, rows.names, kind, asked or Task.NUMBERS)
    ours = {
        "classifier" if kind == Task.CLASSES else "regressor": options.for_task(regressor, kind)
    }
    total, done = splits * len(default_methods()), 0
    with output.stage("comparing") as bar:

        def advance(method: str, split: int) -> None:
            nonlocal done
            done += 1
            bar.show(f"comparing: {done} of {total} fits done", done / total)

        bar.show(f"comparing: 0 of {total} fits done", 0.0)

        found = compare_methods(
            rows.table,
            rows.target,
            task=str(kind),
            **ours,
            n_splits=splits,
            test_size=test_size,
            random_state=seed,
            coverage=coverage,
            max_categories=max_categories,
            callback=advance,
        )
    output.explain(words)
    output.say()
    _show(found, rows.n_rows, kind, coverage, output)


def _show(found: list[Comparison], n_rows: int, task: str, coverage: float, output: Output) -> None:
    """The table, what must be known to read it, and all of it for machines."""
    from bowtienet._old.evaluation import average_scores

    splits = len(found[0].scores)
    means = {one.method: average_scores(one.scores) for one in found}
    size = f"{n_rows:,} rows, {splits} split{'s' if splits > 1 else ''}"
    output.table(
        (size, *(words.format(100 * coverage) for words in _SHOWN[task].values()), "seconds"),
        [
            (
                one.method,
                *(number(getattr(means[one.method], name)) for name in _SHOWN[task]),
                f"{sum(one.seconds) / splits:.2f}",
            )
            for one in found
        ],
    )
    for one in found:
        if one.note:
            output.explain(f"{one.method}: {one.note}.")
    methods = [
        {
            "method": one.method,
            "mean": means[one.method],
            "splits": one.scores,
            "seconds": [round(s, 3) for s in one.seconds],
            "note": one.note,
        }
        for one in found
    ]
    output.result({"task": task, "rows": n_rows, "splits": splits, "methods": methods})
