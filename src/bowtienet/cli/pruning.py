"""``bowtienet prune``: a physically smaller model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bowtienet.cli import options, rendering
from bowtienet.cli.commands import guarded, stop_if_interrupted
from bowtienet.cli.console import Output
from bowtienet.cli.models import inputs_of, target_names
from bowtienet.cli.tables import check_place, read, split_columns
from bowtienet.estimators.progress import reporting_to
from bowtienet.estimators.table_pipeline import load
from bowtienet.plotting.fitted import network_of


@guarded
def prune(
    model: options.Model,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", show_default=False, help="File for it; MODEL's name with -pruned."
        ),
    ] = None,
    rate: Annotated[
        float,
        typer.Option("--rate", help="Estimated share of kept weights that have the wrong sign."),
    ] = 0.01,
    refit: Annotated[
        Path | None,
        typer.Option(
            "--refit", show_default=False, help="Table to go on fitting to what is left, all of it."
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            show_default=False,
            help="Column of the target in it, for a model that does not know its name.",
        ),
    ] = None,
    weight: options.Weight = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Keep the weights whose sign is sure, and take out the nodes that are left alone."""
    output = Output(as_json)
    if not 0.0 < rate < 1.0:
        raise ValueError(f"--rate must lie between 0 and 1, got {rate:g}.")
    before = load(model)
    place = out or model.with_name(f"{model.stem}-pruned{model.suffix}")
    check_place(place, model, *([] if refit is None else [refit]))
    rows: dict[str, Any] = {}
    if refit is not None:
        table = read(refit, output, delimiter, decimal, encoding)
        names = target_names(before, target or [])
        known = split_columns(table, names, [], weight, refit.name, output)
        rows = {"X": inputs_of(before, known.table, refit.name), "y": known.targets}
        rows |= {"refit": True, "sample_weight": known.weights}
    with output.stage("pruning") as bar, reporting_to(bar):
        after = before.prune(rate, **rows)
    stop_if_interrupted()
    after.save(place)
    old, new = rendering.sizes(network_of(before)), rendering.sizes(network_of(after))
    counts = {name: {"before": old[name]["now"], "after": new[name]["now"]} for name in new}
    output.table(
        ("all networks", "before", "after"),
        [(name, f"{n['before']:,}", f"{n['after']:,}") for name, n in counts.items()],
    )
    output.say(f"\nmodel: {place}")
    output.result({"model": str(place), "rate": rate, "refitted": refit is not None, **counts})
