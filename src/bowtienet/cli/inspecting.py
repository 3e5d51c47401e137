"""``bowtienet inspect``: what a model file holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet.cli import options, rendering
from bowtienet.cli.commands import guarded
from bowtienet.cli.console import Output, number
from bowtienet.cli.models import target_names
from bowtienet.estimators.preparing import describe
from bowtienet.estimators.table_pipeline import TablePipeline, load
from bowtienet.plotting.fitted import network_of

_SHOWN = 20


@guarded
def inspect(model: options.Model, as_json: options.Json = False) -> None:
    """Show the columns, settings, fit and size of a model, and which inputs matter."""
    output = Output(as_json)
    fitted = load(model)
    facts = model_facts(fitted)
    output.say(
        f"{model}: {model.stat().st_size / 1e3:,.0f} kB, a {type(fitted).__name__} for "
        f"{', '.join(facts['targets'])}"
    )
    if facts["columns"]:
        output.say()
        listed = [(column["name"], column["use"]) for column in facts["columns"]]
        output.table(("column", "use"), listed, n_texts=2)
    output.say()
    listed = [
        (name, number(value, 8) if isinstance(value, float) else str(value))
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
        ("input", "probability", "strength"),
        [
            (one["name"], number(one["probability"], 3), number(one["strength"], 3))
            for one in relevant[:_SHOWN]
        ],
    )
    if len(relevant) > _SHOWN:
        output.say(f"and {len(relevant) - _SHOWN} more (--json has them all)")
    output.result({"file": str(model), "bytes": model.stat().st_size, **facts})


def model_facts(model: Any) -> dict[str, Any]:
    """All that is told of a model."""
    inner = network_of(model)
    columns = model.preparer_.columns_ if isinstance(model, TablePipeline) else ()
    return {
        "kind": type(model).__name__,
        "targets": target_names(model),
        "columns": [{"name": column.name, "use": describe(column)} for column in columns],
        "fit": {
            "hidden_layer_sizes": inner.hidden_layer_sizes,
            "prior": inner.prior,
            "networks": len(inner.ensemble_.members),
            "effective_networks": round(float(inner.n_effective_members_), 2),
            "solver": inner.solver_,
            "sweeps": int(inner.n_iter_),
            "status": str(inner.status_),
            "converged": bool(inner.converged_),
            "elbo": float(inner.elbo_),
        },
        "size": rendering.sizes(inner),
        "relevance": _relevance(model),
    }


def _relevance(model: Any) -> list[dict[str, Any]]:
    """The inputs, the strongest first; with several targets by the one they matter for most."""
    found = model.feature_relevance_.strongest()
    return [
        {
            "name": str(found.name[index]),
            "probability": float(found.probability[index]),
            "strength": float(found.strength[index]),
        }
        for index in np.argsort(-found.strength, kind="stable")
    ]
