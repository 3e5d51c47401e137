"""Results as tables for people and as plain numbers for machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bowtienet.cli.console import Output, number
from bowtienet.cli.tables import Rows
from bowtienet.evaluation import Scores

_WORDS = {
    "rmse": "RMSE",
    "nll": "negative log density",
    "crps": "CRPS",
    "coverage": "coverage",
    "interval_score": "interval score",
    "calibration_error": "calibration error",
}


def columns(output: Output, found: list[tuple[str, str]], rows: Rows) -> None:
    """What becomes of every column."""
    shown = [*found, *((name, "target") for name in rows.names)]
    if rows.weight is not None:
        shown.append((rows.weight, "weight"))
    output.table(("column", "use"), shown, n_texts=2)


def fitted(output: Output, model: Any, train: Rows, test: Rows | None, seconds: float) -> None:
    """What was fitted, and how it ended."""
    facts = fit_facts(model, seconds)
    held = "" if test is None else f", {test.n_rows:,} held out"
    output.say(
        f"\n{train.n_rows:,} rows fitted{held}; {facts['members']} network(s), "
        f"{facts['sweeps']} sweeps, {'converged' if facts['converged'] else facts['status']}, "
        f"{seconds:.1f} s"
    )


def fit_facts(model: Any, seconds: float) -> dict[str, Any]:
    """How a fit ended."""
    network = model.regressor_
    return {
        "members": len(network.ensemble_.members),
        "sweeps": int(network.n_iter_),
        "solver": network.solver_,
        "status": str(network.status_),
        "converged": bool(network.converged_),
        "elbo": float(network.elbo_),
        "seconds": round(seconds, 3),
    }


def sizes(network: Any) -> dict[str, dict[str, int]]:
    """Inputs, nodes and weights of all members, before pruning and now."""
    found = network.sparsity_
    return {
        name: {
            "before": int(getattr(found, f"{name}_before").sum()),
            "now": int(getattr(found, f"{name}_after").sum()),
        }
        for name in ("inputs", "nodes", "weights")
    }


def scores(output: Output, found: Mapping[str, Mapping[str, Scores]] | None) -> None:
    """Scores of every target, in its unit."""
    if found is None:
        output.say("no rows were held out: there is nothing to score")
        return
    for target, methods in found.items():
        _target_scores(output, target, methods)


def _target_scores(output: Output, target: str, found: Mapping[str, Scores]) -> None:
    nominal = next(iter(found.values())).nominal_coverage
    rows = [
        (
            word if name != "coverage" else f"coverage of {100.0 * nominal:g} % intervals",
            *(number(getattr(score, name)) for score in found.values()),
        )
        for name, word in _WORDS.items()
    ]
    output.table((f"{target}, rows held out", *found), rows)
