"""Records as cells of tables: means over splits, differences, and what went wrong.

A method that failed on a split has no mean: it is not better for failing where it is hard. What
was not run is not held against a method; its cell says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bowtienet.evaluation.paired import PairedDifference, paired_difference
from bowtienet.experiments.drawing import mean_and_spread
from bowtienet.experiments.methods import METHODS
from bowtienet.experiments.paper import Published
from bowtienet.experiments.records import DONE, FAILED, MISSING, Record

NOMINAL = 0.95
"""Coverage that the intervals are meant to have."""
NOTHING = "–"
"""In a cell that nothing was run for."""
_MOST_NOTES = 3
"""Notes of one kind and method in full; more are counted."""

Results = Mapping[tuple[str, str, int], Sequence[Record]]
"""Records by data set, method and number of members, in the order of their seeds."""


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    mean: float
    """What it shows; NaN if it shows none."""
    complete: bool = True
    """Whether it is of all splits: a mean of some cannot be the best."""


def collect(records: Sequence[Record], experiment: str) -> Results:
    """The records of one experiment by data set, method and members."""
    found: dict[tuple[str, str, int], list[Record]] = {}
    for record in sorted(records, key=lambda record: record.seed):
        if record.experiment == experiment:
            found.setdefault((record.dataset, record.method, record.members), []).append(record)
    return found


def methods_of(results: Results) -> list[str]:
    """Methods that have records, in the order of `METHODS`, and then those it does not know."""
    return _in_order({method for _, method, _ in results}, list(METHODS))


def sets_of(results: Results, order: Sequence[str]) -> list[str]:
    """Data sets that have records, those of `order` first."""
    return _in_order({dataset for dataset, _, _ in results}, order)


def label_of(method: str, members: int = 1) -> str:
    """How tables name a method, and so many runs of it.

    Examples
    --------
    >>> label_of("nuts"), label_of("nuts", 4)
    ('NUTS', '4 × NUTS')
    """
    label = METHODS[method].label if method in METHODS else method
    return label if members == 1 else f"{members} × {label}"


def value_of(record: Record, score: str) -> float:
    """A score of a record, or its seconds; NaN where it has none."""
    if record.status != DONE:
        return math.nan
    if score == "seconds":
        return record.seconds
    return record.scores.get(score, math.nan)


def values_of(records: Sequence[Record], score: str) -> np.ndarray:
    """A score of all splits that were run; NaN where the method failed."""
    return np.array([value_of(r, score) for r in records if r.status != MISSING], dtype=float)


def distance_to_nominal(coverage: float) -> float:
    """|coverage - 0.95|."""
    return abs(coverage - NOMINAL)


def mean_of(records: Sequence[Record], score: str) -> float:
    """The mean over the splits that were run; NaN if one failed or there is none."""
    values = values_of(records, score)
    return float(values.mean()) if values.size else math.nan


def most_splits(results: Results, dataset: str) -> int:
    """The largest number of splits that a method was run on."""
    counts = [values_of(r, "rmse").size for (name, *_), r in results.items() if name == dataset]
    return max(counts, default=0)


def score_cell(records: Sequence[Record], score: str, digits: int, splits: int) -> Cell:
    """Mean ± standard deviation over splits, or what became of them.

    Parameters
    ----------
    records : sequence of Record
        One method on one data set.
    score : str
        Which.
    digits : int
        Decimals.
    splits : int
        What others have: the cell says if there are fewer.
    """
    values = values_of(records, score)
    if not values.size:
        return Cell("missing" if records else NOTHING, math.nan)
    failed = int(np.isnan(values).sum())
    if failed:
        return Cell(f"failed ({failed} of {values.size})", math.nan)
    if not np.all(np.isfinite(values)):
        return Cell("∞", math.inf)
    return Cell(
        mean_and_spread(values.tolist(), digits) + _fewer(values.size, splits),
        float(values.mean()),
        values.size >= splits,
    )


def seconds_cell(records: Sequence[Record], splits: int) -> Cell:
    """Mean CPU seconds of a fit."""
    cell = score_cell(records, "seconds", 1, splits)
    if not math.isfinite(cell.mean):
        return cell
    fewer = _fewer(values_of(records, "seconds").size, splits)
    return cell._replace(text=seconds_text(cell.mean) + fewer)


def seconds_text(seconds: float) -> str:
    """Seconds with two digits at least.

    Examples
    --------
    >>> seconds_text(0.0123), seconds_text(4.56), seconds_text(78.9), seconds_text(12345.6)
    ('0.012', '4.6', '79', '12,346')
    """
    if not math.isfinite(seconds):
        return NOTHING
    return f"{seconds:#.2g}" if seconds < 9.95 else f"{seconds:,.0f}"


def published_cell(found: Published | None) -> Cell:
    """A cell of the paper, with two decimals."""
    if found is None:
        return Cell(NOTHING, math.nan)
    return Cell(f"{found.mean:.2f} ± {found.deviation:.2f}", found.mean)


def embolden(
    cells: Sequence[Cell], digits: int, loss: Callable[[float], float] = float
) -> list[str]:
    """Texts of a column with the best in bold: those whose rounded mean has the least loss.

    Examples
    --------
    >>> embolden([Cell("1.204 ± 0.1", 1.204), Cell("1.198 ± 0.2", 1.198), Cell("2", 2.0)], 2)
    ['**1.204 ± 0.1**', '**1.198 ± 0.2**', '2']
    """
    # Rounded twice: 0.95 - 0.94 and 0.96 - 0.95 are not the same number, but the same loss.
    losses = [
        round(loss(round(cell.mean, digits)), digits + 6) if cell.complete else math.nan
        for cell in cells
    ]
    best = min((each for each in losses if math.isfinite(each)), default=math.nan)
    return [
        f"**{cell.text}**" if each == best else cell.text
        for cell, each in zip(cells, losses, strict=True)
    ]


def compare_runs(
    first: Sequence[Record], second: Sequence[Record], score: str
) -> PairedDifference | None:
    """Score of the first minus that of the second over the splits that both were run on."""
    ours, theirs = (
        {record.seed: record for record in records if record.status != MISSING}
        for records in (first, second)
    )
    seeds = sorted(ours.keys() & theirs.keys())
    sizes = [(r.n_train, r.n_test) for seed in seeds for r in (ours[seed], theirs[seed])]
    known = [(train, test) for train, test in sizes if train and test]
    if not known:
        return None
    return paired_difference(
        [value_of(ours[seed], score) for seed in seeds],
        [value_of(theirs[seed], score) for seed in seeds],
        n_train=known[0][0],
        n_test=known[0][1],
    )


def difference_text(found: PairedDifference | None, digits: int, splits: int) -> str:
    """Mean and interval of a difference, in bold if the interval excludes zero."""
    if found is None:
        return NOTHING
    if not math.isfinite(found.mean):
        return "failed" if found.n_splits == 0 else "∞"
    fewer = _fewer(found.n_splits, splits)
    mean = _signed(found.mean, digits)
    if not math.isfinite(found.low):
        return mean + fewer
    text = f"{mean} [{_signed(found.low, digits)}, {_signed(found.high, digits)}]{fewer}"
    return f"**{text}**" if found.low > 0.0 or found.high < 0.0 else text


def notes_of(results: Results) -> str:
    """A list of what failed or is missing, where and why, and of what readers must know."""
    found: dict[tuple[str, str], dict[str, list[Record]]] = {}
    order = methods_of(results)
    for key in sorted(results, key=lambda key: (order.index(key[1]), key[2], key[0])):
        for record in results[key]:
            if record.note:
                kind = found.setdefault((label_of(*key[1:]), record.status), {})
                kind.setdefault(record.note, []).append(record)
    lines: list[str] = []
    for (label, status), notes in found.items():
        shown = list(notes.items())[:_MOST_NOTES]
        lines += [_note(label, status, note, records) for note, records in shown]
        if len(notes) > _MOST_NOTES:
            rest = len(notes) - _MOST_NOTES
            lines.append(f"- {label}: {rest} more of such notes are in results.jsonl.")
    return "\n".join(lines)


def page(title: str, *parts: str) -> str:
    """A page of Markdown: title and parts, without those that are empty."""
    return "\n\n".join([f"# {title}", *(part for part in parts if part)]) + "\n"


def _in_order(names: set[str], order: Sequence[str]) -> list[str]:
    return [name for name in order if name in names] + sorted(names - set(order))


def _fewer(count: int, splits: int) -> str:
    return "" if count >= splits else f" ({count} of {splits} splits)"


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return (text[1:] if float(text) == 0.0 else text).replace("-", "−")


def _note(label: str, status: str, note: str, records: Sequence[Record]) -> str:
    text = " ".join(note.split()).rstrip(".")
    places = dict.fromkeys(record.dataset for record in records)
    if status == FAILED:
        seeds = {place: [str(r.seed) for r in records if r.dataset == place] for place in places}
        where = "; ".join(
            f"{place}, split{'s' * (len(found) > 1)} {', '.join(found)}"
            for place, found in seeds.items()
        )
        return f"- {label} failed ({where}): {text}."
    if status == MISSING:
        return f"- {text}." if text.startswith(label) else f"- {label} is missing: {text}."
    return f"- {label} ({', '.join(places)}): {text}."
