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

from benchmarks.paper.cases import Case
from benchmarks.paper.comparison import (
    average_ranks,
    critical_difference,
    friedman_p,
    win_tie_loss,
)
from benchmarks.paper.experiments.uci_figures import draw
from benchmarks.paper.methods import METHODS
from benchmarks.paper.tables import (
    COUNTERPARTS,
    COVERAGE,
    NLL,
    NOMINAL,
    NOTHING,
    RMSE,
    Cell,
    Results,
    compare_runs,
    difference_text,
    label_of,
    loss_of,
    markdown,
    mean_of,
    notes_of,
    page,
    published_cell,
    score_cell,
    score_column,
    seconds_text,
    values_of,
)

__all__ = ["cases", "draw", "pages"]

EXPERIMENT, HIDDEN = "uci", (50,)
SETS = ("slump", "yacht", "boston", "energy", "concrete")
"""In the order of the paper's table."""
OURS = ("ensemble", "single")
"""What others are compared with."""
REFERENCES = ("nuts", "nuts_deep")
"""Samplers whose accuracy is the bar."""
TOLERANCE = 0.03
"""A coverage so far from 0.95 is as good as it."""
_ROUNDING = 1e-9
"""Of sums in binary: 0.95 - 0.92 is a little more than 0.03."""
_JUDGED = {RMSE: "RMSE", NLL: "NLL", "nll": "NLL of the forecast's own density", "crps": "CRPS"}
"""Scores of paired comparisons, less is better."""
_RANKED = {**_JUDGED, COVERAGE: "distance of the mean coverage to 0.95"}
_VARIANTS = ("svi", "svi_ensemble", "gaussian", "pruned", "pruned_signs")
"""Of ours; ranked they would only push others down."""
SCORES = {
    RMSE: "RMSE",
    NLL: "NLL of N(mean, variance), as in the paper",
    COVERAGE: "Coverage of 95 % intervals of N(mean, variance), as in the paper",
    "nll": "NLL of the forecast's own density",
    "crps": "CRPS",
    "coverage": "Coverage of the forecast's own 95 % intervals",
}
_INTERVALS = (
    "In brackets is the 95 % interval of the mean difference, by Student's t with the correction "
    "for overlapping splits (Nadeau and Bengio, 2003); bold where it excludes zero, without any "
    "allowance for the number of comparisons. Splits on which one of the two failed are left out."
)


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
    results = Results(frame[frame["experiment"] == EXPERIMENT])
    if results.frame.empty:
        return {}
    return {
        "uci_summary": _summary(results),
        "uci_scores": _scores(results),
        "uci_paper": _paper(results),
        "uci_nuts": _nuts(results),
        "uci_paired": _paired(results),
        "uci_wins": _wins_page(results),
        "uci_ranks": _ranks(results),
    }


def results_of(frame: pd.DataFrame) -> tuple[Results, list[str]]:
    """Records of the experiment, and the sets that they are of."""
    results = Results(frame[frame["experiment"] == EXPERIMENT])
    return results, _sets(results)


def _sets(results: Results) -> list[str]:
    found = set(results.frame["dataset"])
    return [dataset for dataset in SETS if dataset in found]


def _splits(results: Results) -> int:
    return max(results.splits(dataset) for dataset in _sets(results))


def _was_run(results: Results, dataset: str, method: str) -> bool:
    """Whether a method was run on all splits of a set."""
    count = values_of(results.runs(dataset, method), RMSE).size
    return 0 < count == results.splits(dataset)


def _parted(results: Results, methods: Sequence[str]) -> tuple[list[str], str]:
    """Methods that were run on all splits of all sets, and the names of the others."""
    sets = _sets(results)
    complete = [m for m in methods if all(_was_run(results, s, m) for s in sets)]
    return complete, ", ".join(label_of(m) for m in methods if m not in complete)


def _summary(results: Results) -> str:
    """RMSE and NLL of the methods that were run on all splits, and the mean seconds of a fit."""
    sets = _sets(results)
    words = (
        f"RMSE / NLL (of N(mean, variance)), means over {_splits(results)} splits, and CPU seconds "
        "of a fit, mean over the sets."
    )
    complete, absent = _parted(results, results.methods)
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
        "Rows in italics are the paper's own numbers, from other splits."
    )
    parts = [words]
    for score, heading in SCORES.items():
        parts += [f"## {heading}", _score_table(results, score)]
    parts += ["## CPU seconds of a fit, one thread", _score_table(results, "seconds")]
    return page("UCI data sets: scores", *parts, notes_of(results))


def _score_table(results: Results, score: str) -> str:
    sets, methods = _sets(results), results.methods
    columns = [
        score_column(
            [results.runs(dataset, method) for method in methods],
            score,
            2,
            results.splits(dataset),
            bold=score != "seconds",
        )
        for dataset in sets
    ]
    rows = [list(row) for row in zip(map(label_of, methods), *columns, strict=True)]
    for name in COUNTERPARTS.values():
        cells = [published_cell(name, score, dataset) for dataset in sets]
        if any(math.isfinite(cell.mean) for cell in cells):
            rows.append([f"*{name}, paper*", *(cell.text for cell in cells)])
    return markdown(["method", *sets], rows)


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
    words = "Ours minus NUTS on the same splits: below zero ours is better. " + _INTERVALS
    parts = []
    for reference in REFERENCES:
        if reference == REFERENCES[0] or reference in results.methods:
            parts += [f"## {label_of(reference)}", _nuts_table(results, reference)]
    return page("UCI data sets: distance to NUTS", words, *parts)


def _nuts_table(results: Results, reference: str) -> str:
    rows = []
    for dataset in _sets(results):
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


def _paired(results: Results) -> str:
    """Every method minus ours, set by set."""
    sets = _sets(results)

    def text(dataset: str, method: str, ours: str, score: str) -> str:
        theirs, own = (results.runs(dataset, name) for name in (method, ours))
        return difference_text(compare_runs(theirs, own, score), results.splits(dataset))

    parts = ["Above zero ours is better. " + _INTERVALS]
    for ours in OURS:
        for score, name in _JUDGED.items():
            rows = [
                [label_of(method), *(text(dataset, method, ours, score) for dataset in sets)]
                for method in results.methods
                if method != ours
            ]
            parts += [f"## {name}: minus {label_of(ours)}", markdown(["method", *sets], rows)]
    return page("UCI data sets: paired differences", *parts, notes_of(results))


def _wins_page(results: Results) -> str:
    """Sets on which ours wins, ties and loses against every other method."""
    words = (
        "Sets on which ours wins / ties / loses: it wins where the 95 % interval of the paired "
        "difference, corrected for overlapping splits, lies on its side of zero. A method that "
        "failed on a split where the other did not cannot win that set. Only methods that were run "
        "on all splits are counted, and with five sets and so few splits a tie says little."
    )
    parts = [words]
    for ours in OURS:
        rows = [
            [label_of(method), *(_wins(results, ours, method, score) for score in _JUDGED)]
            for method in results.methods
            if method != ours
        ]
        header = [f"{label_of(ours)} against", *_JUDGED.values()]
        parts += [f"## {label_of(ours)}", markdown(header, rows)]
    return page("UCI data sets: wins, ties and losses", *parts)


def _wins(results: Results, ours: str, other: str, score: str) -> str:
    sets = _sets(results)
    differences = [
        compare_runs(results.runs(s, ours), results.runs(s, other), score)
        for s in sets
        if _was_run(results, s, ours) and _was_run(results, s, other)
    ]
    found = [each for each in differences if each is not None]
    if not found:
        return NOTHING
    rest = "" if len(found) == len(sets) else f" ({len(found)} of {len(sets)} sets)"
    return " / ".join(map(str, win_tie_loss(found))) + rest


def _ranks(results: Results) -> str:
    """Average ranks of the methods that were run on all splits, with Friedman's test."""
    sets = _sets(results)
    ranked, absent = _parted(results, [m for m in results.methods if m not in _VARIANTS])
    left = f"Not ranked, as not run on all splits: {absent}." if absent else ""
    if len(ranked) < 2:
        return page("UCI data sets: ranks", "Fewer than two methods were run on all splits.", left)
    losses = {score: _losses(results, sets, ranked, score) for score in _RANKED}
    ranks = pd.DataFrame({score: average_ranks(found) for score, found in losses.items()})
    ranks = ranks.loc[ranks.mean(axis=1).sort_values(kind="stable").index]
    rows = [[label_of(m), *(f"{rank:.1f}" for rank in row)] for m, row in ranks.T.items()]
    tests = [f"{friedman_p(found):.2g}" for found in losses.values()]
    rows.append(["*p of Friedman's test*", *tests])
    words = (
        f"Average rank over {len(sets)} sets, 1 is best; equal means share their ranks, and who "
        "failed on a set is last there. In the order of the mean of all columns. By chance no two "
        f"of {len(ranked)} equal methods are more than "
        f"{critical_difference(len(ranked), len(sets)):.1f} ranks apart (Nemenyi, 95 %)."
    )
    return page("UCI data sets: ranks", words, markdown(["method", *_RANKED.values()], rows), left)


def _losses(
    results: Results, sets: Sequence[str], methods: Sequence[str], score: str
) -> pd.DataFrame:
    """Means by set and method, less is better; of a coverage the distance of its mean to 0.95.

    Distances of single splits would favour intervals that are too wide: a share of few rows is
    seldom near 0.95.
    """
    return pd.DataFrame(
        {m: [loss_of(mean_of(results.runs(s, m), score), score) for s in sets] for m in methods}
    )
