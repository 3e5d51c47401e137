"""``bowtienet prune``: a physically smaller model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from bowtienet.cli import options
from bowtienet.cli.console import Output
from bowtienet.cli.exits import guarded, stop_if_interrupted


@guarded
def prune(
    model: options.Model,
    out: Annotated[
        Path | None,
        options.unset_option(
            "--out", "-o", metavar="FILE", words="File for it; MODEL's name with -pruned."
        ),
    ] = None,
    false_sign_rate: Annotated[
        float,
        options.share_option(
            "--false-sign-rate", "Estimated share of kept weights that have the wrong sign."
        ),
    ] = 0.01,
    refit: Annotated[
        Path | None,
        options.unset_option(
            "--refit", metavar="DATA", words="Table to go on fitting to what is left, all of it."
        ),
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
    from bowtienet.cli.facts import sizes, without_column_notes
    from bowtienet.cli.reading import open_known_rows, read, target_columns
    from bowtienet.cli.writing import check_place
    from bowtienet.estimators.files import load
    from bowtienet.estimators.progress import reporting_to

    output = Output(as_json)
    before = load(model)
    place = out or model.with_name(f"{model.stem}-pruned{model.suffix}")
    check_place(place, model, *([] if refit is None else [refit]))
    settings: dict[str, Any] = {}
    if refit is not None:
        names = target_columns(before, target or [])
        table = read(refit, output, delimiter, decimal, encoding)
        rows = open_known_rows(before, table, refit.name, output, targets=names, weight=weight)
        settings = {"refit": True, "X": rows.features, "y": rows.named_targets}
        settings["sample_weight"] = rows.weights
    with output.stage("pruning") as bar, reporting_to(bar), without_column_notes():
        after = before.prune(false_sign_rate, **settings)
    stop_if_interrupted()
    after.save(place)
    old, new = sizes(before), sizes(after)
    counts = {name: {"before": old[name]["now"], "after": new[name]["now"]} for name in new}
    output.table(
        ("all networks", "before", "after"),
        [(name, f"{n['before']:,}", f"{n['after']:,}") for name, n in counts.items()],
    )
    output.say(f"\nmodel: {place}")
    output.result(
        {
            "model": str(place),
            "false_sign_rate": false_sign_rate,
            "refitted": refit is not None,
            **counts,
        }
    )
