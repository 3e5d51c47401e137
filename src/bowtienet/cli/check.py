"""`bowtienet check`: what a fit would make of a table, and what stands in its way."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bowtienet._format import count, listed, shorten
from bowtienet.cli import options
from bowtienet.cli.console import as_json, say, table
from bowtienet.cli.data import Rows, outcome_of, read_rows
from bowtienet.cli.fit import announce
from bowtienet.cli.refusals import Problems

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
    rows = read_rows(
        data, how, problems, target=target, exclude=exclude, weight=weight, exposure=exposure
    )
    columns, doubt = [], None
    if rows is not None:
        outcome, doubt = outcome_of(rows.target, outcome)
        with problems.gather():
            columns = described(rows)
    problems.refuse_if_any()
    assert rows is not None
    if json:
        as_json({"rows": len(rows.target), "outcome": outcome, "columns": columns})
        return
    announce(data, rows, outcome, [doubt] if doubt else [])
    if len(columns) <= MOST_LINES:
        table(
            ["column", "kind", "use"],
            [[shorten(c["name"], 40), c["kind"], c["use"]] for c in columns],
            3,
        )
    else:
        summarize(columns)
    say("Nothing stands in the way of a fit.")


def described(rows: Rows) -> list[dict[str, str]]:
    """Name, kind and use of each column."""
    from sklearn.base import BaseEstimator

    from bowtienet.tables.door import open_features
    from bowtienet.tables.representation import learn_representation

    opened = open_features(BaseEstimator(), rows.features, reset=True)
    columns = learn_representation(opened, np.ones(opened.n_rows), 30).columns
    return [
        {"name": c.name, "kind": c.kind, "use": ", ".join(c.parts) or "left out"} for c in columns
    ]


def summarize(columns: list[dict[str, str]]) -> None:
    """Kinds and uses of many columns."""
    for kind, times in Counter(c["kind"] for c in columns).most_common():
        say(f"  {count(times, kind)}")
    left_out = [c["name"] for c in columns if c["use"] == "left out"]
    if left_out:
        say(f"  left out: {listed(left_out)}")
