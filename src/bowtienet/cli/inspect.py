"""``bowtienet inspect``: what a model file holds."""

from __future__ import annotations

from bowtienet.cli import shared_options as options
from bowtienet.cli.console import Output, number

_SHOWN = 20


def inspect(model: options.Model, as_json: options.Json = False) -> None:
    """Show what a model file holds, and which features matter."""
    from bowtienet.cli.model_facts import column_uses, fit_facts, relevance, sizes
    from bowtienet.estimators.saving import load

    output, fitted, n_bytes = Output(as_json), load(model), model.stat().st_size
    kind, targets = type(fitted).__name__, list(fitted.target_names_)
    output.say(f"{model}: {n_bytes / 1e3:,.0f} kB, a {kind} for {', '.join(targets)}\n")
    columns = column_uses(fitted.columns_)
    output.table(("column", "use"), [(one["name"], one["use"]) for one in columns], n_texts=2)
    output.say()
    settings = {"hidden_layer_sizes": fitted.hidden_layer_sizes, "prior": fitted.prior}
    facts = settings | fit_facts(fitted)
    listed = [
        (name, number(value, 8) if value is None or isinstance(value, float) else str(value))
        for name, value in facts.items()
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
        ("feature", "probability", "strength"),
        [
            (one["name"], number(one["probability"], 3), number(one["strength"], 3))
            for one in features[:_SHOWN]
        ],
    )
    if len(features) > _SHOWN:
        output.say(f"and {len(features) - _SHOWN} more (--json has them all)")
    output.result(
        {
            "file": str(model),
            "bytes": n_bytes,
            "kind": kind,
            "targets": targets,
            "columns": columns,
            "fit": facts,
            "size": size,
            "relevance": features,
        }
    )
