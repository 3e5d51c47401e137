"""`bowtienet check`: what a fit would make of a table, and what stands in its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Any

from bowtienet._format import listed, shorten
from bowtienet.cli import options
from bowtienet.cli.console import as_json, note, say, table
from bowtienet.cli.data import Rows, estimator_of, read_rows
from bowtienet.cli.fit import announce
from bowtienet.cli.refusals import Problems

if TYPE_CHECKING:  # slow to import, and not needed for --help
    from bowtienet.tables.notes import ColumnFacts

MOST_LINES = 60
"""Columns that are listed one by one; of more there is a summary."""


def check(
    data: options.Data,
    target: options.Target,
    outcome: options.Outcome = "auto",
    exclude: options.Exclude = [],  # noqa: B006 (typer copies it)
    weight: options.Weight = None,
    exposure: options.Exposure = None,
    missing_values: options.MissingValues = [],  # noqa: B006
    decimal: options.Decimal = None,
    day_first: options.DayFirst = None,
    json: options.Json = False,
) -> None:
    """Say what a fit makes of each column, without fitting."""
    problems = Problems()
    problems.choice("--outcome", outcome, options.OUTCOMES)
    how = options.reading(missing_values, day_first, decimal, problems)
    roles: Any = {"target": target, "weight": weight, "exposure": exposure}
    rows = read_rows(data, how, problems, outcome=outcome, exclude=exclude, **roles)
    columns: Sequence[ColumnFacts] = ()
    notes: Sequence[str] = ()
    if rows is not None:
        with problems.gather():
            columns, notes = learnt(rows)
    problems.refuse_if_any()
    assert rows is not None
    notes = tuple(dict.fromkeys((*rows.notes, *notes)))
    if json:
        facts = [asdict(column) for column in columns]
        content = {"rows": len(rows.target), "outcome": rows.outcome, "columns": facts}
        as_json({**content, "notes": notes})
        return
    announce(data, rows)
    if len(columns) <= MOST_LINES:
        show(columns)
    else:
        summarize(columns)
    for text in notes:
        note(text)
    say(f"Next: bowtienet fit {quote(data)} --target {quote(target)}", style="dim")


def learnt(rows: Rows) -> tuple[tuple[ColumnFacts, ...], tuple[str, ...]]:
    """What a fit learns of the columns, and its notes."""
    from bowtienet.tables.door import open_rows
    from bowtienet.tables.notes import describe_columns
    from bowtienet.tables.representation import learn_representation

    estimator = estimator_of(rows.outcome, {})
    training = open_rows(
        estimator,
        rows.features,
        rows.target,
        rows.weights,
        rows.exposure,
        labels=rows.outcome == "classes",
    )
    representation, _ = learn_representation(training, estimator.max_categories)
    return describe_columns(representation.columns, training.table), representation.notes


def show(columns: Sequence[ColumnFacts]) -> None:
    """A line for each column."""
    lines = [
        [
            shorten(column.name, 30),
            column.kind,
            column.becomes,
            str(column.missing or ""),
            ", ".join(shorten(example, 12) for example in column.examples),
        ]
        for column in columns
    ]
    table(["column", "kind", "becomes", "missing", "such as"], lines, n_texts=5)


def summarize(columns: Sequence[ColumnFacts]) -> None:
    """Kinds of many columns, those that are left out, and those with most values missing."""
    for kind, times in Counter(column.kind for column in columns).most_common():
        say(f"  {kind}: {times:,}")
    left_out = [column.name for column in columns if column.becomes == "left out"]
    if left_out:
        say(f"  {len(left_out):,} left out: {listed(left_out)}")
    gaps = sorted(columns, key=lambda column: -column.missing)
    if gaps[0].missing:
        say(f"  most missing values: {listed(c.name for c in gaps[:5] if c.missing)}")
