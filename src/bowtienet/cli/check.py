"""`bowtienet check`: what a fit would make of a table, and what stands in its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from bowtienet._format import listed, shorten
from bowtienet.cli import options
from bowtienet.cli.console import note, say, table
from bowtienet.cli.data import announce, read_rows

if TYPE_CHECKING:  # slow to import, and not needed for --help
    from bowtienet.tables.texts import Column

    Described = Sequence[tuple[Column, str, int, list[str]]]
    """Columns, what they become, how many cells are missing, and examples."""


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
) -> None:
    """Say what a fit would make of each column, without fitting."""
    from bowtienet.evaluation.competitors import OURS
    from bowtienet.tables.door import open_rows
    from bowtienet.tables.notes import describe_columns
    from bowtienet.tables.representation import learn_representation

    how = {"missing_values": missing_values, "decimal": decimal, "day_first": day_first}
    roles: Any = {"target": target, "weight": weight, "exposure": exposure}
    rows = read_rows(data, how, outcome=outcome, exclude=exclude, **roles)
    estimator, labels = OURS[rows.outcome](), rows.outcome == "classes"
    training = open_rows(estimator, rows.features, rows.target, labels=labels, **rows.extra)
    if labels and len(set(training.targets.tolist())) < 2:
        raise ValueError("--target: there is one class, and a classifier needs two at least.")
    representation, _ = learn_representation(training, estimator.max_categories)
    columns = describe_columns(representation.columns, training.table)
    announce(data, rows)
    show = list_columns if len(columns) <= 60 else summarize  # three screens
    show(columns)
    for text in dict.fromkeys((*rows.notes, *representation.notes)):
        note(text)
    say(f"Next: bowtienet fit {quote(data)} --target {quote(target)}", style="dim")


def list_columns(columns: Described) -> None:
    """A line for each column."""
    lines = []
    for column, becomes, missing, examples in columns:
        shown = ", ".join(shorten(example, 12) for example in examples)
        lines.append([shorten(column.name, 30), column.kind, becomes, str(missing or ""), shown])
    table(["column", "kind", "becomes", "missing", "such as"], lines, n_texts=5)


def summarize(columns: Described) -> None:
    """Kinds of many columns, those that are left out, and those with most values missing."""
    for kind, times in Counter(column.kind for column, *_ in columns).most_common():
        say(f"  {kind}: {times:,}")
    left_out = [column.name for column, becomes, *_ in columns if becomes == "left out"]
    if left_out:
        say(f"  {len(left_out):,} left out: {listed(left_out)}")
    gaps = sorted(((n, column.name) for column, _, n, _ in columns if n), key=lambda gap: -gap[0])
    if gaps:
        say(f"  most missing values: {listed(name for _, name in gaps[:5])}")
