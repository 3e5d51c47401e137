"""The paper's five UCI data sets: one hidden layer of 50 units, ten random splits, all methods.

Tables hold the scores beside the paper's, how ours compare with the paper's and with NUTS, and
which differences between methods are more than chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks._old.paper.cases import Case
from benchmarks._old.paper.experiments.uci_figures import draw
from benchmarks._old.paper.methods import METHODS
from benchmarks._old.paper.score_pages import (
    INTERVALS,
    MEMORY,
    OURS,
    OWN_SCORES,
    WITH_PAPER,
    paired_page,
    parted,
    ranks_page,
    score_parts,
    wins_page,
)
from benchmarks._old.paper.tables import (
    COUNTERPARTS,
    COVERAGE,
    NLL,
    NOMINAL,
    RMSE,
    Cell,
    Results,
    compare_runs,
    difference_text,
    label_of,
    markdown,
    mean_of,
    notes_of,
    page,
    published_cell,
    score_cell,
    seconds_text,
)

__all__ = ["cases", "draw", "pages"]

EXPERIMENT, HIDDEN = "uci", (50,)
SETS = ("slump", "yacht", "boston", "energy", "concrete")
"""In the order of the paper's table."""
REFERENCES = ("nuts", "nuts_deep")
"""Samplers whose accuracy is the bar."""
TOLERANCE = 0.03
"""A coverage so far from 0.95 is as good as it."""
_ROUNDING = 1e-9
"""Of sums in binary: 0.95 - 0.92 is a little more than 0.03."""
SCORES = {
    RMSE: "RMSE",
    NLL: "NLL of N(mean, variance), as in the paper",
    COVERAGE: "Coverage of 95 % intervals of N(mean, variance), as in the paper",
    **OWN_SCORES,
}


def cases(seeds: Iterable[int], methods: Sequence[str] | None = None) -> list[Case]:
    """Every method on every split of every set, the small sets first."""
    return [
        Case(experiment=EXPERIMENT, dataset=dataset, method=method, seed=seed, hidden=HIDDEN)
        for dataset in SETS
        for method in methods or METHODS
        for seed in seeds
    ]


def pages(frame: pd.DataFrame) -> dict[str, str]:
    """Tables that records alone can make, by the names of their files."""
    results = results_of(frame)
    if results.frame.empty:
        return {}
    return {
        "uci_summary": _summary(results),
        "uci_scores": _scores(results),
        "uci_paper": _paper(results),
        "uci_nuts": _nuts(results),
        "uci_paired": paired_page(results, "UCI data sets: paired differences"),
        "uci_wins": wins_page(results, "UCI data sets: wins, ties and losses"),
        "uci_ranks": ranks_page(results, "UCI data sets: ranks", WITH_PAPER, COVERAGE),
    }


def results_of(frame: pd.DataFrame) -> Results:
    """Records of the experiment."""
    return Results(frame[frame["experiment"] == EXPERIMENT], SETS)


def _splits(results: Results) -> int:
    return max(map(results.splits, results.sets))


def _summary(results: Results) -> str:
    """RMSE and NLL of the methods that were run on all splits, and the mean seconds of a fit."""
    sets = results.sets
    words = (
        f"RMSE / NLL (of N(mean, variance)), means over {_splits(results)} splits, and CPU seconds "
        "of a fit, mean over the sets."
    )
    complete, absent = parted(results, results.methods)
    rows = []
    for method in complete:
        found = [results.runs(dataset, method) for dataset in sets]
        seconds = float(np.mean([mean_of(runs, "seconds") for runs in found]))
        rows.append([label_of(method), *map(_pair, found), seconds_text(seconds)])
    left = f"Not run on all splits, and so not here: {absent}." if absent else ""
    table = markdown(["method", *sets, "seconds"], rows)
    return page("UCI data sets in short", words, table, left)


def _pair(runs: pd.DataFrame) -> str:
    """Both scores of a method on a set."""
    error, loss = (score_cell(runs, score, 2, 0) for score in (RMSE, NLL))
    return f"{error.mean:.2f} / {loss.mean:.2f}" if math.isfinite(error.mean) else error.text


def _scores(results: Results) -> str:
    """Every score of every method beside the paper's, and the seconds of a fit."""
    words = (
        f"Mean ± standard deviation over {_splits(results)} random splits, nine tenths of the rows "
        f"to fit and one to score; networks have one hidden layer of {HIDDEN[0]} units. Bold: the "
        "best of a column, without the paper's rows; for coverages that is the nearest to 0.95. "
        f"Rows in italics are the paper's own numbers, from other splits. {MEMORY}"
    )
    parts = score_parts(results, SCORES)
    return page("UCI data sets: scores", words, *parts, notes_of(results))


class Verdict(NamedTuple):
    """A number of ours beside the paper's; `met` is None where ours was not run."""

    score: str
    dataset: str
    ours: Cell
    paper: Cell
    met: bool | None


def judge(
    results: Results, method: str, scores: Sequence[str], *, strict: bool = False
) -> list[Verdict]:
    """Ours against the paper's counterpart: RMSE and NLL no higher (or lower, if `strict`).

    Coverage must be near 0.95 or nearer to it than the paper's.
    """
    found = []
    for score in scores:
        for dataset in SETS:
            runs, splits = results.runs(dataset, method), results.splits(dataset)
            ours = score_cell(runs, score, 3, splits)
            paper = published_cell(COUNTERPARTS[method], score, dataset)
            met: bool | None = ours.mean < paper.mean + (-_ROUNDING if strict else _ROUNDING)
            if math.isnan(ours.mean):
                met = False if ours.text.startswith("failed") else None
            elif score == COVERAGE:
                met = covers(ours.mean, paper.mean)
            found.append(Verdict(score, dataset, ours, paper, met))
    return found


def covers(ours: float, paper: float) -> bool:
    """Whether a coverage is near 0.95, or nearer to it than the paper's."""
    distance = abs(ours - NOMINAL)
    return distance < TOLERANCE + _ROUNDING or distance < abs(paper - NOMINAL) - _ROUNDING


def _paper(results: Results) -> str:
    """Cell by cell, whether ours does what the paper reports, and how many cells do."""
    single = judge(results, "single", (RMSE, NLL, COVERAGE))
    ensemble = judge(results, "ensemble", (RMSE, NLL), strict=True)
    words = (
        "Ours beside the paper's numbers, cell by cell. Means are compared as they are, not "
        "rounded; the paper's splits are not known, so they are others. What failed is missed."
    )
    return page(
        "UCI data sets: ours and the paper's",
        words,
        f"## {label_of('single')} and VBNN",
        "Met: RMSE and NLL no higher than the paper's; coverage within "
        f"{TOLERANCE:g} of {NOMINAL:g}, or nearer to it than the paper's.",
        _verdict_table(single, ("met", "missed")),
        count_line(single, "met"),
        f"## {label_of('ensemble')} and 4VBNN",
        "Better: RMSE and NLL lower than the paper's.",
        _verdict_table(ensemble, ("better", "not better")),
        count_line(ensemble, "better"),
    )


def _verdict_table(verdicts: Sequence[Verdict], words: tuple[str, str]) -> str:
    names = {RMSE: "RMSE", NLL: "NLL", COVERAGE: "coverage"}
    said = {True: words[0], False: f"**{words[1]}**", None: "not run"}
    return markdown(
        ["score", "set", "ours", "paper", "verdict"],
        [[names[v.score], v.dataset, v.ours.text, v.paper.text, said[v.met]] for v in verdicts],
    )


def count_line(verdicts: Sequence[Verdict], word: str) -> str:
    """How many verdicts are good, and how many there are not yet."""
    good, absent = (sum(v.met is met for v in verdicts) for met in (True, None))
    rest = f"; {absent} not run" if absent else ""
    return f"**{good} of {len(verdicts)} {word}{rest}.**"


def _nuts(results: Results) -> str:
    """How far ours are from NUTS, and what NUTS costs."""
    words = "Ours minus NUTS on the same splits: below zero ours is better. " + INTERVALS
    parts = []
    for reference in REFERENCES:
        if reference == REFERENCES[0] or reference in results.methods:
            parts += [f"## {label_of(reference)}", _nuts_table(results, reference)]
    return page("UCI data sets: distance to NUTS", words, *parts)


def _nuts_table(results: Results, reference: str) -> str:
    rows = []
    for dataset in results.sets:
        nuts, splits = results.runs(dataset, reference), results.splits(dataset)
        for method in OURS:
            ours = results.runs(dataset, method)
            differences = [
                difference_text(compare_runs(ours, nuts, score), splits)
                for score in (RMSE, NLL, "nll")
            ]
            own, theirs = mean_of(ours, "seconds"), mean_of(nuts, "seconds")
            times = [seconds_text(each) for each in (own, theirs, theirs / own)]
            rows.append([dataset, label_of(method), *differences, *times])
    header = ["set", "method", "RMSE − NUTS", "NLL − NUTS", "own NLL − NUTS"]
    return markdown([*header, "CPU seconds", "of NUTS", "ratio"], rows)
