"""Pages that compare methods over several data sets: scores, differences, wins, ranks, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from benchmarks._old.paper.comparison import (
    Difference,
    average_ranks,
    critical_difference,
    friedman_p,
    win_tie_loss,
)
from benchmarks._old.paper.tables import (
    COUNTERPARTS,
    COVERAGE,
    NLL,
    NOTHING,
    RMSE,
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
    score_column,
    values_of,
)

OURS = ("ensemble", "single")
"""What others are compared with; the first is what users get."""
OWN_NLL = "nll"
"""NLL of the forecast's own density."""
JUDGED = {RMSE: "RMSE", OWN_NLL: "NLL of the forecast's own density", "crps": "CRPS"}
"""Scores of paired comparisons, less is better."""
WITH_PAPER = {RMSE: "RMSE", NLL: "NLL", **JUDGED}
"""With the paper's NLL, that of N(mean, variance)."""
COVERAGES = {
    COVERAGE: "distance of the mean coverage to 0.95",
    "coverage": "distance of the mean coverage to 0.95",
}
OWN_SCORES = {
    OWN_NLL: "NLL of the forecast's own density",
    "crps": "CRPS",
    "coverage": "Coverage of the forecast's own 95 % intervals",
    "interval_width": "Mean width of the forecast's own 95 % intervals",
    "seconds": "CPU seconds of a fit, one thread",
    "peak_mb": "Peak memory of the process in fit and prediction, MB",
}
"""Of every page of scores, after the RMSE."""
VARIANTS = ("svi", "svi_ensemble", "gaussian", "pruned", "pruned_signs")
"""Of ours; ranked they would only push others down."""
MEMORY = (
    "Memory is that of the whole process, imports included, and was not recorded by earlier runs."
)
INTERVALS = (
    "In brackets is the 95 % interval of the mean difference, by Student's t with the correction "
    "for overlapping splits (Nadeau and Bengio, 2003); bold where it excludes zero, without any "
    "allowance for the number of comparisons. Splits on which one of the two failed are left out."
)
_DIGITS = {"peak_mb": 0}
_UNJUDGED = ("seconds", "peak_mb", "interval_width")
"""Scores whose best is not bold."""


def was_run(results: Results, dataset: str, method: str) -> bool:
    """Whether a method was run on all splits of a set."""
    count = values_of(results.runs(dataset, method), RMSE).size
    return 0 < count == results.splits(dataset)


def parted(results: Results, methods: Sequence[str]) -> tuple[list[str], str]:
    """Methods that were run on all splits of all sets, and the names of the others."""
    complete = [m for m in methods if all(was_run(results, s, m) for s in results.sets)]
    return complete, ", ".join(label_of(m) for m in methods if m not in complete)


def ranked_methods(results: Results) -> tuple[list[str], str]:
    """Methods that have ranks, and the names of those that were not run on all splits."""
    return parted(results, [method for method in results.methods if method not in VARIANTS])


def score_parts(results: Results, scores: dict[str, str]) -> list[str]:
    """Headings and tables of scores."""
    return [
        part
        for score, heading in scores.items()
        for part in (f"## {heading}", score_table(results, score))
    ]


def score_table(results: Results, score: str) -> str:
    """A score of every method on every set, and the paper's numbers where it has them."""
    methods, digits = results.methods, _DIGITS.get(score, 2)
    columns = [
        score_column(
            [_recorded(results.runs(dataset, method), score) for method in methods],
            score,
            digits,
            results.splits(dataset),
            bold=score not in _UNJUDGED,
        )
        for dataset in results.sets
    ]
    rows = [list(row) for row in zip(map(label_of, methods), *columns, strict=True)]
    for name in COUNTERPARTS.values():
        cells = [published_cell(name, score, dataset) for dataset in results.sets]
        if any(math.isfinite(cell.mean) for cell in cells):
            rows.append([f"*{name}, paper*", *(cell.text for cell in cells)])
    return markdown(["method", *results.sets], rows)


def _recorded(runs: pd.DataFrame, score: str) -> pd.DataFrame:
    """Without runs of a time when memory was not recorded."""
    return runs[runs[score].notna()] if score == "peak_mb" else runs


def paired_page(
    results: Results,
    title: str,
    scores: dict[str, str] = WITH_PAPER,
    ours: Sequence[str] = OURS,
) -> str:
    """Every method minus ours, set by set."""

    def text(dataset: str, method: str, own: str, score: str) -> str:
        theirs, own_runs = (results.runs(dataset, name) for name in (method, own))
        return difference_text(compare_runs(theirs, own_runs, score), results.splits(dataset))

    parts = ["Above zero ours is better. " + INTERVALS]
    for own in ours:
        for score, name in scores.items():
            rows = [
                [label_of(method), *(text(dataset, method, own, score) for dataset in results.sets)]
                for method in results.methods
                if method != own
            ]
            header = ["method", *results.sets]
            parts += [f"## {name}: minus {label_of(own)}", markdown(header, rows)]
    return page(title, *parts, notes_of(results))


def wins_page(
    results: Results,
    title: str,
    scores: dict[str, str] = WITH_PAPER,
    ours: Sequence[str] = OURS,
) -> str:
    """Sets on which ours wins, ties and loses against every other method."""
    words = (
        "Sets on which ours wins / ties / loses: it wins where the 95 % interval of the paired "
        "difference, corrected for overlapping splits, lies on its side of zero. A method that "
        "failed on a split where the other did not cannot win that set. Only methods that were run "
        "on all splits are counted, and with few sets and splits a tie says little."
    )
    parts = [words]
    for own in ours:
        rows = [
            [label_of(method), *(_wins(results, own, method, score) for score in scores)]
            for method in results.methods
            if method != own
        ]
        header = [f"{label_of(own)} against", *scores.values()]
        parts += [f"## {label_of(own)}", markdown(header, rows)]
    return page(title, *parts)


def _wins(results: Results, ours: str, other: str, score: str) -> str:
    sets = results.sets
    differences = [
        compare_runs(results.runs(s, ours), results.runs(s, other), score)
        for s in sets
        if was_run(results, s, ours) and was_run(results, s, other)
    ]
    found = [each for each in differences if each is not None]
    if not found:
        return NOTHING
    rest = "" if len(found) == len(sets) else f" ({len(found)} of {len(sets)} sets)"
    return " / ".join(map(str, win_tie_loss(found))) + rest


def ranks_page(results: Results, title: str, scores: dict[str, str], coverage: str) -> str:
    """Average ranks of the methods that were run on all splits, with Friedman's test."""
    sets = results.sets
    ranked, absent = ranked_methods(results)
    left = f"Not ranked, as not run on all splits: {absent}." if absent else ""
    if len(ranked) < 2:
        return page(title, "Fewer than two methods were run on all splits.", left)
    names = {**scores, coverage: COVERAGES[coverage]}
    losses = {score: mean_losses(results, ranked, score) for score in names}
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
    return page(title, words, markdown(["method", *names.values()], rows), left)


def mean_losses(results: Results, methods: Sequence[str], score: str) -> pd.DataFrame:
    """Means by set and method, less is better; of a coverage the distance of its mean to 0.95.

    Distances of single splits would favour intervals that are too wide: a share of few rows is
    seldom near 0.95.
    """
    means = {m: [mean_of(results.runs(s, m), score) for s in results.sets] for m in methods}
    return pd.DataFrame({m: [loss_of(mean, score) for mean in row] for m, row in means.items()})


def losses_page(results: Results, title: str) -> str:
    """Who has lower means than our ensemble, set by set and score by score."""
    ours = OURS[0]
    words = (
        f"Methods whose mean is lower than that of {label_of(ours)} on the splits that both were "
        "run on, by how much, in the target's unit but for the NLL; the largest difference first. "
        "Bold: beyond chance, which is that the 95 % interval of the paired difference, corrected "
        "for overlapping splits, excludes zero. Other forms of ours are left out."
    )
    others = [m for m in results.methods if m not in (*OURS, *VARIANTS)]
    rows = []
    for dataset in results.sets:
        own = results.runs(dataset, ours)
        cells = []
        for score in JUDGED:
            found = {m: compare_runs(results.runs(dataset, m), own, score) for m in others}
            lower = [(m, d) for m, d in found.items() if d is not None and d.mean < 0.0]
            lower.sort(key=lambda each: each[1].mean)
            splits = results.splits(dataset)
            cells.append("; ".join(_lower(*each, splits) for each in lower) or "none")
        rows.append([dataset, *cells])
    return page(title, words, markdown(["set", *JUDGED.values()], rows))


def _lower(method: str, found: Difference, splits: int) -> str:
    fewer = "" if found.n_splits >= splits else f" ({found.n_splits} splits)"
    text = f"{label_of(method)} {found.mean:.3g}{fewer}".replace(" -", " −")
    return f"**{text}**" if found.high < 0.0 else text
