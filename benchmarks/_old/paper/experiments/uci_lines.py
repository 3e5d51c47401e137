"""What README, comparison and when-not pages say of others: a small table, and a sentence each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks._old.paper.experiments.uci import results_of
from benchmarks._old.paper.score_pages import OWN_NLL
from benchmarks._old.paper.tables import (
    RMSE,
    Results,
    compare_runs,
    label_of,
    markdown,
    mean_of,
    seconds_text,
    values_of,
)

OURS = "ensemble"
SHOWN = (OURS, "gpr", "stochtree", "ngboost", "nuts_deep")
"""Rows of the README's table."""
TOLD = (
    *("gpr", "stochtree", "ngboost", "catboost", "hist_quantiles", "mlp_piecewise"),
    *("nuts", "nuts_deep", "bde", "laplace", "mean_field", "lasso"),
)
"""Methods that pages have a sentence of."""
NLL = OWN_NLL
"""Of the forecast's own density, which is what users get; the paper's is that of a Gaussian."""
_SCORES = {RMSE: "RMSE", NLL: "NLL of its own density"}


def lines(frame: pd.DataFrame) -> dict[str, str]:
    """The table `uci_readme`, and `beside_METHOD` for each method that was run."""
    results = results_of(frame)
    sets = results.sets
    told = [method for method in TOLD if method in results.methods]
    sentences = {f"beside_{method}": _sentence(results, sets, method) for method in told}
    return {"uci_readme": _table(results, sets), **sentences}


def _table(results: Results, sets: Sequence[str]) -> str:
    rows = []
    for method in SHOWN:
        runs = [results.runs(dataset, method) for dataset in sets]
        scores = [f"{mean_of(r, RMSE):.2f} / {mean_of(r, NLL):.2f}" for r in runs]
        seconds = float(np.mean([mean_of(r, "seconds") for r in runs]))
        n_splits = min(values_of(r, RMSE).size for r in runs)
        fewer = f" ({n_splits} splits)" * (n_splits < min(map(results.splits, sets)))
        rows.append([label_of(method) + fewer, *scores, seconds_text(seconds)])
    rows[0] = [f"**{rows[0][0]}**", *rows[0][1:]]
    return markdown(["RMSE / NLL", *sets, "seconds"], rows)


def _sentence(results: Results, sets: Sequence[str], method: str) -> str:
    """On how many sets its means are lower than ours, over splits that both were run on."""
    pairs = [(results.runs(s, method), results.runs(s, OURS)) for s in sets]
    n_splits = {len(set(theirs["seed"]) & set(ours["seed"])) for theirs, ours in pairs}
    parts = []
    for score, name in _SCORES.items():
        found = [compare_runs(theirs, ours, score) for theirs, ours in pairs]
        lower = sum(each is not None and each.mean < 0.0 for each in found)
        sure = sum(each is not None and each.high < 0.0 for each in found)
        worse = sum(each is not None and each.low > 0.0 for each in found)
        parts.append(
            f"its {name} is lower than ours on {lower}, beyond chance on {sure} "
            f"(higher beyond chance on {worse})"
        )
    own, other = (float(np.mean([mean_of(p[i], "seconds") for p in pairs])) for i in (1, 0))
    splits = " to ".join(map(str, sorted({min(n_splits), max(n_splits)})))
    return (
        f"*Measured* on {len(sets)} UCI sets, {splits} splits: {'; '.join(parts)}. "
        f"A fit takes {seconds_text(other)} s of one core, ours {seconds_text(own)} s."
    )
