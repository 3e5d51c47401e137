"""``bowtienet check``: what a fit would make of a table, and what would stop it."""

from __future__ import annotations

import typer

from bowtienet._old.cli import MISTAKE
from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output, fail


def check(
    data: options.Data,
    target: options.Target,
    task: options.TargetTask = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    drop_duplicates: options.DropDuplicates = False,
    weight: options.Weight = None,
    exposure: options.Exposure = None,
    test_size: options.TestSize = None,
    max_categories: options.Categories = 100,
    seed: options.Seed = 0,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    date_format: options.DateFormat = None,
    as_json: options.Json = False,
) -> None:
    """Show how fit would read a table, and every problem.

    Nothing is fitted and nothing is written. One table has every decision about the file, its rows
    and its columns, with the option of fit that changes it. The exit code is 2 if a fit would be
    refused.
    """
    from bowtienet._old.cli.decisions import Asked, as_plain, look, show
    from bowtienet._old.cli.input_tables import read_with_dialect
    from bowtienet._old.cli.tasks import read_task

    output = Output(as_json)
    asked = Asked(
        targets=target,
        task=read_task(task),
        drop=tuple(drop or ()),
        keep=tuple(keep or ()),
        weight=weight,
        exposure=exposure,
        drop_duplicates=drop_duplicates,
        max_categories=max_categories,
        test_size=test_size,
        seed=seed,
    )
    table, dialect = read_with_dialect(data, output, (delimiter, decimal, encoding, date_format))
    with output.stage("looking at the columns"):
        found = look(table, dialect, data.name, asked)
    if found.sentence:
        output.explain(found.sentence)
        output.say()
    show(found, output)
    output.result(
        {
            "problems": [as_plain(one) for one in found.problems],
            "decisions": [as_plain(one) for one in found.decisions],
            "dialect": dialect,
        }
    )
    if not found.problems:
        output.say("\nno problems: fit can begin")
        return
    several = len(found.problems) > 1
    fail(f"{len(found.problems)} problem{'s' * several} would stop a fit: see the table.")
    raise typer.Exit(MISTAKE)
