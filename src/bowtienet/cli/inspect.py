"""``bowtienet inspect``: what a model file holds."""

from __future__ import annotations

from typing import Any

from bowtienet.cli import options
from bowtienet.cli.console import Output, number
from bowtienet.cli.exits import guarded

_SHOWN = 20


@guarded
def inspect(model: options.Model, as_json: options.Json = False) -> None:
    """Show what a model file holds, and which features matter."""
    from bowtienet.estimators.files import load

    output = Output(as_json)
    facts = _model_facts(load(model))
    n_bytes = model.stat().st_size
    output.say(
        f"{model}: {n_bytes / 1e3:,.0f} kB, a {facts['kind']} for {', '.join(facts['targets'])}\n"
    )
    columns = [(column["name"], column["use"]) for column in facts["columns"]]
    output.table(("column", "use"), columns, n_texts=2)
    output.say()
    listed = [
        (name, number(value, 8) if value is None or isinstance(value, float) else str(value))
        for name, value in facts["fit"].items()
    ]
    output.table(("fit", ""), listed, n_texts=2)
    output.say()
    output.table(
        ("all networks", "before pruning", "now"),
        [(name, f"{n['before']:,}", f"{n['now']:,}") for name, n in facts["size"].items()],
    )
    output.say()
    relevant = facts["relevance"]
    output.table(
        ("feature", "probability", "strength"),
        [
            (one["name"], number(one["probability"], 3), number(one["strength"], 3))
            for one in relevant[:_SHOWN]
        ],
    )
    if len(relevant) > _SHOWN:
        output.say(f"and {len(relevant) - _SHOWN} more (--json has them all)")
    output.result({"file": str(model), "bytes": n_bytes, **facts})


def _model_facts(model: Any) -> dict[str, Any]:
    """All that is told of a model."""
    from bowtienet.cli.facts import column_uses, fit_facts, relevance, sizes

    settings = {"hidden_layer_sizes": model.hidden_layer_sizes, "prior": model.prior}
    return {
        "kind": type(model).__name__,
        "targets": list(model.target_names_),
        "columns": column_uses(model.columns_),
        "fit": {**settings, **fit_facts(model)},
        "size": sizes(model),
        "relevance": relevance(model),
    }
