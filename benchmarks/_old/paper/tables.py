"""Records as cells of tables: means over splits, differences, and what went wrong.

A method that failed on a split has no mean: it is not better for failing where it is hard. What
was not run is not held against a method; its cell says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks._old.paper.comparison import Difference, paired_difference
from benchmarks._old.paper.methods import METHODS
from benchmarks._old.paper.records import DONE, FAILED, MISSING

RMSE, NLL, COVERAGE = "rmse", "gaussian_nll", "gaussian_coverage"
"""The paper's three scores, as records name them.

Its NLL is that of the Gaussian with the mean and variance of the forecast, and its coverage that
of the Gaussian's 95 % interval.
"""
NOMINAL = 0.95
"""Coverage that the intervals are meant to have."""
NOTHING = "–"
"""In a cell that nothing was run for."""
COUNTERPARTS = {
    "single": "VBNN",
    "ensemble": "4VBNN",
    "svi": "SVBNN",
    "svi_ensemble": "4SVBNN",
    "gaussian": "GVBNN",
    "lasso": "LassoCV",
    "mean_field": "mfVI",
    "nuts": "HMC",
    "horseshoe": "HSBNN",
    "backprop": "BBB",
}
"""The paper's names for the methods of the experiments that it has, too."""
_MOST_NOTES = 3
"""Notes of one kind and method in full; more are counted."""

_GROUP, _ROWS = ["dataset", "method", "members"], ["n_train", "n_test"]
PUBLISHED = pd.read_csv(
    Path(__file__).parent / "published.csv", index_col=["method", "score", "dataset"]
)
"""The paper's own numbers: mean and ± over ten random splits.

Energy is the heating load; one table of the paper writes 4SVBNN as 4SVIBNN.
"""


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    mean: float = math.nan
    """What it shows; NaN if it shows none."""
    complete: bool = True
    """Whether it is of all splits: a mean of some cannot be the best."""


class Results:
    """Records of an experiment, by data set, method and number of members."""

    def __init__(self, frame: pd.DataFrame, sets: Iterable[str] = ()) -> None:
        self.frame = frame
        found = dict.fromkeys(frame["dataset"])
        self.sets = [dataset for dataset in sets or found if dataset in found]
        """Data sets that there are records of, in the order of `sets`."""
        self._runs = dict(iter(frame.groupby(_GROUP))) if len(frame) else {}
        counts = frame[frame["status"] != MISSING].groupby(_GROUP).size()
        self._splits = counts.groupby("dataset").max()

    @property
    def methods(self) -> list[str]:
        """Methods that have records, in the order of `METHODS`."""
        found = set(self.frame["method"])
        return [method for method in METHODS if method in found]

    def splits(self, dataset: str) -> int:
        """The largest number of splits that a method was run on."""
        return int(self._splits.get(dataset, 0))

    def runs(self, dataset: str, method: str, members: int = 1) -> pd.DataFrame:
        """Records of one method on one data set, by seed; none if it was not run."""
        return self._runs.get((dataset, method, members), self.frame.iloc[:0])


def label_of(method: str, members: int = 1) -> str:
    """The name of a method in tables, or of several runs of it."""
    label = METHODS[method].label
    return label if members == 1 else f"{members} × {label}"


def values_of(runs: pd.DataFrame, score: str) -> np.ndarray:
    """A score of all splits that were run; NaN where the method failed."""
    return runs.loc[runs["status"] != MISSING, score].to_numpy(dtype=float)


def mean_of(runs: pd.DataFrame, score: str) -> float:
    """The mean over the splits that were run; NaN if one failed or there is none."""
    values = values_of(runs, score)
    return float(values.mean()) if values.size else math.nan


def loss_of(mean: float, score: str) -> float:
    """What makes a mean bad: its distance to 0.95 for a coverage, itself for others."""
    return abs(mean - NOMINAL) if score.endswith("coverage") else mean


def score_cell(runs: pd.DataFrame, score: str, digits: int, splits: int) -> Cell:
    """Mean ± standard deviation over splits, or what became of them.

    `splits` is the number that others have: the cell says if there are fewer.
    """
    values = values_of(runs, score)
    if not values.size:
        return Cell(MISSING if len(runs) else NOTHING)
    if failed := int(np.isnan(values).sum()):
        return Cell(f"failed ({failed} of {values.size})")
    if not np.all(np.isfinite(values)):
        return Cell("∞", math.inf)
    text = seconds_text(values.mean()) if score == "seconds" else mean_and_spread(values, digits)
    return Cell(text + _fewer(values.size, splits), float(values.mean()), values.size >= splits)


def mean_and_spread(values: np.ndarray, digits: int) -> str:
    """Mean ± standard deviation; the mean alone of one value."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def seconds_text(seconds: float) -> str:
    """Seconds with two digits at least."""
    if not math.isfinite(seconds):
        return NOTHING
    return f"{seconds:#.2g}" if seconds < 9.95 else f"{seconds:,.0f}"


def published_cell(name: str | None, score: str, dataset: str) -> Cell:
    """What the paper reports for one of its methods, with two decimals."""
    if (name, score, dataset) not in PUBLISHED.index:
        return Cell(NOTHING)
    mean, deviation = PUBLISHED.loc[(name, score, dataset)]
    return Cell(f"{mean:.2f} ± {deviation:.2f}", float(mean))


def score_column(
    runs: Iterable[pd.DataFrame], score: str, digits: int, splits: int, *, bold: bool = True
) -> list[str]:
    """Texts of a column, the best in bold: those whose rounded mean has the least loss."""
    cells = [score_cell(each, score, digits, splits) for each in runs]
    return embolden(cells, score, digits) if bold else [cell.text for cell in cells]


def embolden(cells: Sequence[Cell], score: str, digits: int) -> list[str]:
    """Texts of cells with the best in bold."""
    # Rounded twice: 0.95 - 0.94 and 0.96 - 0.95 are not the same number, but the same loss.
    losses = [
        round(loss_of(round(cell.mean, digits), score), digits + 6) if cell.complete else math.nan
        for cell in cells
    ]
    best = min(filter(math.isfinite, losses), default=math.nan)
    return [
        f"**{cell.text}**" if loss == best else cell.text
        for cell, loss in zip(cells, losses, strict=True)
    ]


def compare_runs(first: pd.DataFrame, second: pd.DataFrame, score: str) -> Difference | None:
    """Score of the first minus that of the second over the splits that both were run on."""
    ours, theirs = (runs[runs["status"] != MISSING].set_index("seed") for runs in (first, second))
    seeds = ours.index.intersection(theirs.index)
    if not len(seeds):
        return None
    ours, theirs = ours.loc[seeds], theirs.loc[seeds]
    # A failure may not know its rows.
    n_train, n_test = np.maximum(ours[_ROWS].max(), theirs[_ROWS].max())
    return paired_difference(ours[score], theirs[score], n_train=n_train, n_test=n_test)


def difference_text(found: Difference | None, splits: int, digits: int = 3) -> str:
    """Mean and interval of a difference, in bold if the interval excludes zero."""
    if found is None:
        return NOTHING
    if not math.isfinite(found.mean):
        return "failed" if found.n_splits == 0 else "∞"
    mean, low, high = (_signed(value, digits) for value in found[:3])
    fewer = _fewer(found.n_splits, splits)
    if not math.isfinite(found.low):
        return mean + fewer
    text = f"{mean} [{low}, {high}]{fewer}"
    return f"**{text}**" if found.low > 0.0 or found.high < 0.0 else text


def notes_of(results: Results) -> str:
    """A list of what failed or is missing, where and why, and of what readers must know."""
    frame = results.frame
    place = {method: place for place, method in enumerate(METHODS)}
    frame = frame[frame["note"].notna()].assign(place=frame["method"].map(place))
    frame = frame.sort_values(["place", "members", "dataset", "seed"], kind="stable")
    lines: list[str] = []
    for (method, members, status), group in frame.groupby(
        ["method", "members", "status"], sort=False
    ):
        label = label_of(method, members)
        notes = list(group.groupby("note", sort=False))
        lines += [_note(label, status, note, found) for note, found in notes[:_MOST_NOTES]]
        if len(notes) > _MOST_NOTES:
            rest = len(notes) - _MOST_NOTES
            lines.append(f"- {label}: {rest} more of such notes are in results.jsonl.")
    return "\n".join(lines)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    first, *rest = (f"| {' | '.join(line)} |" for line in (header, *rows))
    return "\n".join([first, "|---" * len(header) + "|", *rest])


def page(title: str, *parts: str) -> str:
    """A page of Markdown: title and parts, without those that are empty."""
    return "\n\n".join([f"# {title}", *filter(None, parts)]) + "\n"


def _fewer(count: int, splits: int) -> str:
    return "" if count >= splits else f" ({count} of {splits} splits)"


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return (text[1:] if float(text) == 0.0 else text).replace("-", "−")


def _note(label: str, status: str, note: str, runs: pd.DataFrame) -> str:
    text = " ".join(note.split()).rstrip(".")
    if status == DONE:
        return f"- {label} ({', '.join(runs['dataset'].unique())}): {text}."
    if status == FAILED:
        places = [
            f"{place}, split{'s' * (len(found) > 1)} {', '.join(map(str, found['seed']))}"
            for place, found in runs.groupby("dataset", sort=False)
        ]
        return f"- {label} failed ({'; '.join(places)}): {text}."
    return f"- {text}." if text.startswith(label) else f"- {label} is missing: {text}."
