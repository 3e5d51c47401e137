"""``bowtienet prune``: a physically smaller model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from bowtienet.cli import shared_options as options
from bowtienet.cli.console import Output


def prune(
    model: options.Model,
    out: Annotated[
        Path | None,
        options.unset("File for it; MODEL's name with -pruned.", "FILE", "--out", "-o"),
    ] = None,
    false_sign_rate: Annotated[
        float,
        options.share(
            "Estimated share of kept weights that have the wrong sign.", "--false-sign-rate"
        ),
    ] = 0.01,
    refit: Annotated[
        Path | None,
        options.unset("Table to go on fitting to what is left, all of it.", "DATA", "--refit"),
    ] = None,
    target: options.KnownTarget = None,
    weight: options.Weight = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Write a smaller model, of the weights whose sign is sure.

    Nodes that no feature reaches, or that reach no target, go too.
    """
    from bowtienet.cli.input_tables import known_rows_of_model, read
    from bowtienet.cli.model_facts import sizes, without_column_notes
    from bowtienet.cli.writing import check_place
    from bowtienet.estimators.progress import reporting_to
    from bowtienet.estimators.saving import load

    output = Output(as_json)
    before = load(model)
    place = out or model.with_name(f"{model.stem}-pruned{model.suffix}")
    check_place(place, model, *([] if refit is None else [refit]))
    settings: dict[str, Any] = {}
    if refit is not None:
        table = read(refit, output, delimiter, decimal, encoding)
        rows = known_rows_of_model(before, table, refit.name, targets=target, weight=weight)
        settings = {"X": rows.features, "y": rows.targets, "sample_weight": rows.weights}
    with output.stage("pruning") as bar, reporting_to(bar), without_column_notes():
        after = before.prune(false_sign_rate, refit=refit is not None, **settings)
    after.save(place)
    old, new = sizes(before), sizes(after)
    counts = {name: {"before": old[name]["now"], "after": new[name]["now"]} for name in new}
    output.table(
        ("all networks", "before", "after"),
        [(name, f"{n['before']:,}", f"{n['after']:,}") for name, n in counts.items()],
    )
    output.say(f"\nmodel: {place}")
    facts = {"false_sign_rate": false_sign_rate, "refitted": refit is not None}
    output.result({"model": str(place), **facts, **counts})
