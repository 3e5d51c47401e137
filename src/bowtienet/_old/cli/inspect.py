"""``bowtienet inspect``: what a model file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bowtienet._old.cli import shared_options as options
from bowtienet._old.cli.console import Output, number

if TYPE_CHECKING:
    from bowtienet._old.cli.input_tables import NamedTable

_SHOWN = 20


def inspect(
    model: options.Model,
    data: options.OptionalKnownRows = None,
    target: options.KnownTarget = None,
    weight: options.Weight = None,
    exposure: options.Exposure = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    date_format: options.DateFormat = None,
    as_json: options.Json = False,
) -> None:
    """Show what a model file holds, and how strong its features are.

    With rows also what these lose, in log density and RMSE, when a feature is permuted; of classes
    in log probability and in the root of the Brier score.
    """
    from bowtienet._old.cli.input_tables import known_rows_of_model, read
    from bowtienet._old.cli.model_facts import column_uses, fit_facts, relevance, sizes
    from bowtienet._old.cli.tasks import describe_classes, task_of
    from bowtienet._old.data.dialect import describe_dialect
    from bowtienet._old.data.limits import size_text
    from bowtienet._old.estimators.saving import load

    output, fitted, n_bytes = Output(as_json), load(model), model.stat().st_size
    rows = None
    if data is not None:
        table = read(data, output, (delimiter, decimal, encoding, date_format), fitted)
        rows = known_rows_of_model(
            fitted, table, data.name, targets=target, weight=weight, exposure=exposure
        )
    kind, targets, task = type(fitted).__name__, list(fitted.target_names_), task_of(fitted)
    classes = getattr(fitted, "classes_", None)
    words = str(task) if classes is None else describe_classes(classes)
    output.explain(f"{model}: {size_text(n_bytes)}, a {kind} for {', '.join(targets)}: {words}")
    dialect = getattr(fitted, "dialect_", None)
    if dialect is not None:
        output.explain(f"fitted to a text file: {describe_dialect(dialect)}")
    output.say()
    columns = column_uses(fitted.columns_)
    output.table(("column", "use"), [(one["name"], one["use"]) for one in columns], n_texts=2)
    output.say()
    settings = {"hidden_layer_sizes": fitted.hidden_layer_sizes, "prior": fitted.prior}
    facts = settings | fit_facts(fitted)
    listed = [
        (
            name.replace("_", " "),
            number(value) if value is None or isinstance(value, float) else str(value),
        )
        for name, value in facts.items()
        if name != "converged"  # the status says more: a fit that stopped early need not converge
    ]
    output.table(("fit", ""), listed, n_texts=2)
    output.say()
    size = sizes(fitted)
    output.table(
        ("all networks", "before pruning", "now"),
        [(name, f"{n['before']:,}", f"{n['now']:,}") for name, n in size.items()],
    )
    output.say()
    features = relevance(fitted)
    output.table(
        ("feature", "strength", "p-value"),
        [
            (one["name"], number(one["strength"], 3), number(one["p_value"], 2))
            for one in features[:_SHOWN]
        ],
    )
    if len(features) > _SHOWN:
        output.say(f"and {len(features) - _SHOWN} more (--json has them all)")
    losses = None if rows is None else _show_losses(fitted, rows, output)
    output.result(
        {
            "file": str(model),
            "bytes": n_bytes,
            "kind": kind,
            "task": task,
            "targets": targets,
            "classes": classes,
            "columns": columns,
            "dialect": dialect,
            "fit": facts,
            "size": size,
            "relevance": features,
            "importance": losses,
        }
    )


def _show_losses(model: Any, rows: NamedTable, output: Output) -> list[dict[str, Any]]:
    """What rows lose when a feature is permuted."""
    from bowtienet._old.cli.model_facts import importance
    from bowtienet._old.cli.tasks import Task
    from bowtienet._old.estimators.text_tables import with_error

    log, error = {
        Task.NUMBERS: ("drop in log density", "rise in RMSE"),
        Task.COUNTS: ("drop in log probability", "rise in RMSE"),
        Task.CLASSES: ("drop in log probability", "rise in root Brier score"),
    }[rows.task]

    with output.stage("permuting features"):
        found = importance(model, rows)
    for target in dict.fromkeys(one["target"] for one in found):
        own = [one for one in found if one["target"] == target]
        output.say()
        output.table(
            (f"{target}, permuted", log, error),
            [
                (
                    one["name"],
                    with_error(one["log_density_drop"], one["log_density_error"]),
                    with_error(one["rmse_rise"], one["rmse_error"]),
                )
                for one in own[:_SHOWN]
            ],
        )
    return found
