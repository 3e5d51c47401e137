"""``bowtienet prune``: one small network in place of an ensemble."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output, number


def prune(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path | None,
        options.unset("File for it; MODEL's name with -pruned.", "FILE", "--out", "-o"),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0.0,
            help="By what share the error of held-out rows may grow.",
        ),
    ] = 0.02,
    target: options.KnownTarget = None,
    weight: options.Weight = None,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    date_format: options.DateFormat = None,
    as_json: options.Json = False,
) -> None:
    """Write one small network, and say what held-out rows lose by it.

    DATA has the rows to fit it to, mostly those of the model.
    """
    from bowtienet._old.cli.input_tables import known_rows_of_model, read
    from bowtienet._old.cli.tasks import Task, task_of
    from bowtienet._old.cli.writing import check_place
    from bowtienet._old.data.limits import size_text
    from bowtienet._old.estimators.saving import load

    output = Output(as_json)
    before = load(model)
    if task_of(before) != Task.NUMBERS:
        raise ValueError(f"prune is for models of numbers, but {model} is of {task_of(before)}.")
    place = out or model.with_name(f"{model.stem}-pruned{model.suffix}")
    check_place(place, model, data, force=force)
    table = read(data, output, (delimiter, decimal, encoding, date_format), before)
    rows = known_rows_of_model(before, table, data.name, targets=target, weight=weight)
    with output.stage("pruning"):
        after = before.prune(rows.features, rows.targets, rows.weights, tolerance=tolerance)
    if hasattr(before, "dialect_"):
        after.dialect_ = before.dialect_
    after.save(place)
    found = after.pruning_
    sizes = {
        "columns": {"before": len(found.columns), "after": len(found.columns_after)},
        "networks": {"before": found.networks_before, "after": found.networks_after},
        "units": {"before": found.units_before, "after": found.units_after},
        "weights": {"before": found.weights_before, "after": found.weights_after},
        "bytes": {"before": found.bytes_before, "after": found.bytes_after},
    }
    scores = {
        "rmse": {"before": found.rmse_before, "after": found.rmse_after},
        "nll": {"before": found.nll_before, "after": found.nll_after},
    }
    output.table(
        ("size", "ensemble", "pruned"),
        [
            (name, *(f"{n:,}" if name != "bytes" else size_text(n) for n in both.values()))
            for name, both in sizes.items()
        ],
    )
    output.say()
    output.table(
        ("out of fold", "single network", "pruned"),
        [(n.upper(), number(s["before"], 4), number(s["after"], 4)) for n, s in scores.items()],
    )
    output.say(f"\ncolumns left: {', '.join(found.columns_after)}")
    output.say(f"seconds: {found.seconds:.1f}")
    output.say(f"model: {place}")
    facts = {"columns_left": list(found.columns_after), "seconds": found.seconds}
    output.result(
        {"model": str(place), "tolerance": tolerance, **sizes, "out_of_fold": scores, **facts}
    )
