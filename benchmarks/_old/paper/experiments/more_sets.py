"""More tables than the paper has, small and large, and the methods that one would try on them.

Splits are random as on the UCI sets, nine tenths of the rows to fit, but fewer of them on larger
tables; of kin40k also 5,000 rows to fit and 5,000 others to score. A Gaussian process and BART are
left out where they would take too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from benchmarks._old.paper.cases import Case
from benchmarks._old.paper.score_pages import (
    JUDGED,
    MEMORY,
    OURS,
    OWN_SCORES,
    paired_page,
    ranks_page,
    score_parts,
    wins_page,
)
from benchmarks._old.paper.tables import RMSE, Results, notes_of, page

NAME, HIDDEN = "more_sets", (50,)


class Part(NamedTuple):
    """A data set, or some rows of it."""

    dataset: str
    n_train: int
    """Rows to fit."""
    splits: int
    """At most."""
    train_rows: int | None = None
    """As `Case` has it."""


PARTS = {
    "diabetes": Part("diabetes", 397, 10),
    "autompg": Part("autompg", 352, 10),
    "airfoil": Part("airfoil", 1352, 10),
    "power": Part("power", 8611, 5),
    "kin40k 5,000": Part("kin40k", 5000, 5, 5000),
    "kin40k": Part("kin40k", 36_000, 2),
}
METHODS = (
    *("ensemble", "lasso", "gpr", "ngboost", "catboost", "hist_quantiles", "stochtree"),
    *("deep_ensemble", "laplace", "mlp_piecewise"),
)
MOST_ROWS = {"gpr": 1600, "stochtree": 10_000}
"""Training rows that a method is run on."""


def cases(seeds: Iterable[int], methods: Sequence[str] | None = None) -> list[Case]:
    """Every method on every split of every set that it is for, the small sets first."""
    seeds = list(seeds)
    return [
        Case(
            experiment=NAME,
            dataset=part.dataset,
            method=method,
            seed=seed,
            hidden=HIDDEN,
            train_rows=part.train_rows,
        )
        for part in PARTS.values()
        for method in methods or METHODS
        if part.n_train <= MOST_ROWS.get(method, part.n_train)
        for seed in seeds[: part.splits]
    ]


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """Records of this experiment with the names of `PARTS` in place of those of data sets."""
    own = frame[frame["experiment"] == NAME]
    if own.empty:
        return own
    rows = own["train_rows"]
    names = own["dataset"].where(rows.isna(), own["dataset"] + rows.map(" {:,.0f}".format))
    return own.assign(dataset=names)


def pages(frame: pd.DataFrame) -> dict[str, str]:
    """Tables that records alone can make, by the names of their files."""
    results = Results(named(frame), PARTS)
    if results.frame.empty:
        return {}
    ours = OURS[:1]
    small = Results(results.frame[results.frame["dataset"] != "kin40k"], PARTS)
    counts = ", ".join(f"{results.splits(each)} on {each}" for each in results.sets)
    words = (
        f"Mean ± standard deviation over random splits ({counts}), in the target's unit; nine "
        "tenths of the rows to fit and one to score, of kin40k 5,000 as many rows each. Networks "
        f"have one hidden layer of {HIDDEN[0]} units, but for the tuned ones. Bold: the best of a "
        f"column; for coverages that is the nearest to 0.95. {MEMORY}"
    )
    scores = score_parts(results, {RMSE: "RMSE", **OWN_SCORES})
    return {
        f"{NAME}_scores": page("More data sets: scores", words, *scores, notes_of(results)),
        f"{NAME}_paired": paired_page(
            results, "More data sets: paired differences", JUDGED, ours=ours
        ),
        f"{NAME}_wins": wins_page(
            results, "More data sets: wins, ties and losses", JUDGED, ours=ours
        ),
        f"{NAME}_ranks": ranks_page(small, "More data sets: ranks", JUDGED, "coverage"),
    }
