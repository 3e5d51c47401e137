"""The paper's five UCI data sets: one hidden layer of 50 units, ten random splits, all methods.

Tables hold the scores beside the paper's, how ours compare with the paper's and with NUTS, and
which differences between methods are more than chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bowtienet.evaluation.paired import (
    average_ranks,
    critical_difference,
    friedman_test,
    win_tie_loss,
)
from bowtienet.experiments.cases import Case
from bowtienet.experiments.drawing import Report, markdown, save_table
from bowtienet.experiments.methods import METHODS
from bowtienet.experiments.paper import COUNTERPARTS, COVERAGE, NLL, RMSE, SETS, published
from bowtienet.experiments.records import Record
from bowtienet.experiments.tables import (
    NOMINAL,
    NOTHING,
    Cell,
    Results,
    collect,
    compare_runs,
    difference_text,
    distance_to_nominal,
    embolden,
    label_of,
    mean_of,
    methods_of,
    most_splits,
    notes_of,
    page,
    published_cell,
    score_cell,
    seconds_cell,
    seconds_text,
    sets_of,
    values_of,
)
from bowtienet.experiments.uci_figures import draw_coverage, draw_scores, draw_seconds

EXPERIMENT = "uci"
HIDDEN = (50,)
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
_VARIANTS = ("svi", "svi_ensemble", "gaussian", "pruned")
"""Of ours; ranked they would only push others down."""


class Table(NamedTuple):
    """A score as a table: its heading, decimals, and what makes a mean bad."""

    heading: str
    digits: int
    loss: Callable[[float], float]


SCORES: dict[str, Table] = {
    RMSE: Table("RMSE", 2, float),
    NLL: Table("NLL of N(mean, variance), as in the paper", 2, float),
    COVERAGE: Table(
        "Coverage of 95 % intervals of N(mean, variance), as in the paper", 2, distance_to_nominal
    ),
    "nll": Table("NLL of the forecast's own density", 2, float),
    "crps": Table("CRPS", 2, float),
    "coverage": Table("Coverage of the forecast's own 95 % intervals", 2, distance_to_nominal),
}


class Verdict(NamedTuple):
    """A number of ours beside the paper's; `met` is None where ours was not run."""

    score: str
    dataset: str
    ours: Cell
    paper: Cell
    met: bool | None


def cases(splits: int = 10, methods: Sequence[str] | None = None) -> list[Case]:
    """Every method on every split of every set, the small sets first."""
    chosen = list(METHODS) if methods is None else list(methods)
    return [
        Case(experiment=EXPERIMENT, dataset=dataset, method=method, seed=seed, hidden=HIDDEN)
        for dataset in SETS
        for method in chosen
        for seed in range(splits)
    ]


def write(records: Sequence[Record], folder: Path, report: Report) -> list[Path]:
    """Write all tables and figures that the records allow."""
    results = collect(records, EXPERIMENT)
    if not results:
        report("uci: there are no records yet")
        return []
    report("uci: tables")
    paths = [save_table(text, folder, name) for name, text in pages(records).items()]
    report("uci: figures")
    for draw in (draw_scores, draw_seconds, draw_coverage):
        path = draw(results, folder)
        paths += [] if path is None else [path]
    return paths


def pages(records: Sequence[Record]) -> dict[str, str]:
    """Tables that records alone can make, by the names of their files."""
    results = collect(records, EXPERIMENT)
    if not results:
        return {}
    return {
        "uci_summary": summary_page(results),
        "uci_scores": scores_page(results),
        "uci_paper": paper_page(results),
        "uci_nuts": nuts_page(results),
        "uci_paired": paired_page(results),
        "uci_wins": wins_page(results),
        "uci_ranks": ranks_page(results),
    }


def summary_page(results: Results) -> str:
    """RMSE and NLL of the methods that were run on all splits, and the mean seconds of a fit."""
    sets, methods = sets_of(results, SETS), methods_of(results)
    splits = max(most_splits(results, dataset) for dataset in sets)
    words = (
        f"RMSE / NLL (of N(mean, variance)), means over {splits} splits, and CPU seconds of a fit, "
        "mean over the sets."
    )
    complete = [m for m in methods if all(_was_run(results, s, m) for s in sets)]
    rows = []
    for method in complete:
        found = [results[dataset, method, 1] for dataset in sets]
        seconds = float(np.mean([mean_of(records, "seconds") for records in found]))
        rows.append([label_of(method), *map(_pair, found), seconds_text(seconds)])
    absent = [label_of(method) for method in methods if method not in complete]
    left = f"Not run on all splits, and so not here: {', '.join(absent)}." if absent else ""
    table = markdown(["method", *sets, "seconds"], rows)
    return page("UCI data sets in short", words, table, left)


def _pair(records: Sequence[Record]) -> str:
    """Both scores of a method on a set."""
    error, loss = (score_cell(records, score, 2, len(records)) for score in (RMSE, NLL))
    return f"{error.mean:.2f} / {loss.mean:.2f}" if math.isfinite(error.mean) else error.text


def scores_page(results: Results) -> str:
    """Every score of every method beside the paper's, and the seconds of a fit."""
    sets, methods = sets_of(results, SETS), methods_of(results)
    splits = max(most_splits(results, dataset) for dataset in sets)
    words = (
        f"Mean ± standard deviation over {splits} random splits, nine tenths of the rows to fit "
        f"and one to score; networks have one hidden layer of {HIDDEN[0]} units. Bold: the best of "
        "a column, without the paper's rows; for coverages that is the nearest to 0.95. Rows in "
        "italics are the paper's own numbers, from other splits."
    )
    parts = [words]
    for score, table in SCORES.items():
        columns = [_score_column(results, score, table, dataset, methods) for dataset in sets]
        rows = _rows([label_of(method) for method in methods], columns)
        parts += [
            f"## {table.heading}",
            markdown(["method", *sets], rows + _paper_rows(score, sets)),
        ]
    seconds = [
        [seconds_cell(results.get((s, m, 1), ()), most_splits(results, s)).text for m in methods]
        for s in sets
    ]
    rows = _rows([label_of(method) for method in methods], seconds)
    parts += ["## CPU seconds of a fit, one thread", markdown(["method", *sets], rows)]
    return page("UCI data sets: scores", *parts, notes_of(results))


def _score_column(
    results: Results, score: str, table: Table, dataset: str, methods: Sequence[str]
) -> list[str]:
    splits = most_splits(results, dataset)
    cells = [
        score_cell(results.get((dataset, method, 1), ()), score, table.digits, splits)
        for method in methods
    ]
    return embolden(cells, table.digits, table.loss)


def _paper_rows(score: str, sets: Sequence[str]) -> list[list[str]]:
    rows = []
    for name in COUNTERPARTS.values():
        cells = [published_cell(published(name, score, dataset)) for dataset in sets]
        if any(math.isfinite(cell.mean) for cell in cells):
            rows.append([f"*{name}, paper*", *(cell.text for cell in cells)])
    return rows


def _rows(labels: Sequence[str], columns: Sequence[Sequence[str]]) -> list[list[str]]:
    return [list(row) for row in zip(labels, *columns, strict=True)]


def judge_single(results: Results) -> list[Verdict]:
    """Ours against VBNN: RMSE and NLL no higher, coverage near 0.95 or nearer than the paper's."""
    return [
        _judge(results, "single", "VBNN", score, dataset)
        for score in (RMSE, NLL, COVERAGE)
        for dataset in SETS
    ]


def judge_ensemble(results: Results) -> list[Verdict]:
    """Ours against 4VBNN: RMSE and NLL lower."""
    return [
        _judge(results, "ensemble", "4VBNN", score, dataset, strict=True)
        for score in (RMSE, NLL)
        for dataset in SETS
    ]


def _judge(
    results: Results, method: str, name: str, score: str, dataset: str, *, strict: bool = False
) -> Verdict:
    records = results.get((dataset, method, 1), ())
    ours = score_cell(records, score, 3, most_splits(results, dataset))
    paper = published_cell(published(name, score, dataset))
    met: bool | None
    if math.isnan(ours.mean):
        met = False if ours.text.startswith("failed") else None
    elif score == COVERAGE:
        met = _covers(ours.mean, paper.mean)
    else:
        met = ours.mean < paper.mean + (-_ROUNDING if strict else _ROUNDING)
    return Verdict(score, dataset, ours, paper, met)


def _covers(ours: float, paper: float) -> bool:
    near = distance_to_nominal(ours) < TOLERANCE + _ROUNDING
    return near or distance_to_nominal(ours) < distance_to_nominal(paper) - _ROUNDING


def paper_page(results: Results) -> str:
    """Cell by cell, whether ours does what the paper reports, and how many cells do."""
    single, ensemble = judge_single(results), judge_ensemble(results)
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
    good = sum(verdict.met is True for verdict in verdicts)
    absent = sum(verdict.met is None for verdict in verdicts)
    rest = f"; {absent} not run" if absent else ""
    return f"**{good} of {len(verdicts)} {word}{rest}.**"


def nuts_page(results: Results) -> str:
    """How far ours are from NUTS, and what NUTS costs."""
    words = "Ours minus NUTS on the same splits: below zero ours is better. " + _INTERVALS
    parts = []
    for reference in REFERENCES:
        if reference == REFERENCES[0] or any(method == reference for _, method, _ in results):
            parts += [f"## {label_of(reference)}", _nuts_table(results, reference)]
    return page("UCI data sets: distance to NUTS", words, *parts)


def _nuts_table(results: Results, reference: str) -> str:
    rows = []
    for dataset in sets_of(results, SETS):
        nuts, splits = results.get((dataset, reference, 1), ()), most_splits(results, dataset)
        for method in OURS:
            ours = results.get((dataset, method, 1), ())
            differences = [
                difference_text(compare_runs(ours, nuts, score), 3, splits)
                for score in (RMSE, NLL, "nll")
            ]
            times = mean_of(ours, "seconds"), mean_of(nuts, "seconds")
            ratio = times[1] / times[0] if times[0] else math.nan
            row = [dataset, label_of(method), *differences, *map(seconds_text, times)]
            rows.append([*row, seconds_text(ratio)])
    header = ["set", "method", "RMSE − NUTS", "NLL − NUTS", "own NLL − NUTS"]
    return markdown([*header, "CPU seconds", "of NUTS", "ratio"], rows)


_INTERVALS = (
    "In brackets is the 95 % interval of the mean difference, by Student's t with the correction "
    "for overlapping splits (Nadeau and Bengio, 2003); bold where it excludes zero, without any "
    "allowance for the number of comparisons. Splits on which one of the two failed are left out."
)


def paired_page(results: Results) -> str:
    """Every method minus ours, set by set."""
    sets, methods = sets_of(results, SETS), methods_of(results)
    parts = ["Above zero ours is better. " + _INTERVALS]
    for ours in OURS:
        for score, name in _JUDGED.items():
            rows = [
                [label_of(method), *(_difference(results, s, method, ours, score) for s in sets)]
                for method in methods
                if method != ours
            ]
            parts += [f"## {name}: minus {label_of(ours)}", markdown(["method", *sets], rows)]
    return page("UCI data sets: paired differences", *parts, notes_of(results))


def _difference(results: Results, dataset: str, method: str, ours: str, score: str) -> str:
    theirs, own = (results.get((dataset, name, 1), ()) for name in (method, ours))
    return difference_text(compare_runs(theirs, own, score), 3, most_splits(results, dataset))


def wins_page(results: Results) -> str:
    """Sets on which ours wins, ties and loses against every other method."""
    sets, methods = sets_of(results, SETS), methods_of(results)
    words = (
        "Sets on which ours wins / ties / loses: it wins where the 95 % interval of the paired "
        "difference, corrected for overlapping splits, lies on its side of zero. A method that "
        "failed on a split where the other did not cannot win that set. Only methods that were run "
        "on all splits are counted, and with five sets and so few splits a tie says little."
    )
    parts = [words]
    for ours in OURS:
        rows = []
        for method in methods:
            if method != ours:
                counts = [_wins(results, sets, ours, method, score) for score in _JUDGED]
                rows.append([label_of(method), *counts])
        header = [f"{label_of(ours)} against", *_JUDGED.values()]
        parts += [f"## {label_of(ours)}", markdown(header, rows)]
    return page("UCI data sets: wins, ties and losses", *parts)


def _wins(results: Results, sets: Sequence[str], ours: str, other: str, score: str) -> str:
    differences = [
        compare_runs(results.get((s, ours, 1), ()), results.get((s, other, 1), ()), score)
        for s in sets
        if _was_run(results, s, ours) and _was_run(results, s, other)
    ]
    found = [each for each in differences if each is not None]
    if not found:
        return NOTHING
    return " / ".join(map(str, win_tie_loss(found))) + (
        "" if len(found) == len(sets) else f" ({len(found)} of {len(sets)} sets)"
    )


def ranks_page(results: Results) -> str:
    """Average ranks of the methods that were run on all splits, with Friedman's test."""
    sets, methods = sets_of(results, SETS), methods_of(results)
    methods = [method for method in methods if method not in _VARIANTS]
    ranked = [m for m in methods if all(_was_run(results, s, m) for s in sets)]
    absent = [label_of(m) for m in methods if m not in ranked]
    left = f"Not ranked, as not run on all splits: {', '.join(absent)}." if absent else ""
    if len(ranked) < 2:
        return page("UCI data sets: ranks", "Fewer than two methods were run on all splits.", left)
    means = {
        score: np.array([[_ranked_by(results[s, m, 1], score) for m in ranked] for s in sets])
        for score in _RANKED
    }
    columns = np.array([average_ranks(values) for values in means.values()])
    order = np.argsort(columns.mean(axis=0), kind="stable")
    rows = [[label_of(ranked[j]), *(f"{rank:.1f}" for rank in columns[:, j])] for j in order]
    tests = [f"{friedman_test(values).p_value:.2g}" for values in means.values()]
    rows.append(["*p of Friedman's test*", *tests])
    words = (
        f"Average rank over {len(sets)} sets, 1 is best; equal means share their ranks, and who "
        "failed on a set is last there. In the order of the mean of all columns. By chance no two "
        f"of {len(ranked)} equal methods are more than "
        f"{critical_difference(len(ranked), len(sets)):.1f} ranks apart (Nemenyi, 95 %)."
    )
    return page("UCI data sets: ranks", words, markdown(["method", *_RANKED.values()], rows), left)


def _ranked_by(records: Sequence[Record], score: str) -> float:
    """A mean, less is better; of a coverage the distance of its mean to 0.95.

    Distances of single splits would favour intervals that are too wide: a share of few rows is
    seldom near 0.95.
    """
    mean = mean_of(records, score)
    return distance_to_nominal(mean) if score == COVERAGE else mean


def _was_run(results: Results, dataset: str, method: str) -> bool:
    count = values_of(results.get((dataset, method, 1), ()), RMSE).size
    return 0 < count == most_splits(results, dataset)
