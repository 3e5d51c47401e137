"""What a report says in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowtienet.evaluation import Scores, binomial_band
from bowtienet.plotting.elbo import readable_limits
from bowtienet.report.content import MOST_ROWS, MOST_TARGETS, ReportContent, TargetContent
from bowtienet.report.inputs import Dependence
from bowtienet.report.structure import FitFacts
from bowtienet.report.wording import clean, count, number, percent

_SCORES = (
    ("rmse", "RMSE", "root mean squared error, in the unit of the target; lower is better"),
    ("nll", "negative log density", "how unlikely targets were, on average; lower is better"),
    ("crps", "CRPS", "distance of the forecast from the target; lower is better"),
    ("coverage", "coverage", "share of targets inside their intervals; best close to"),
    ("interval_score", "interval score", "width of intervals and misses; lower is better"),
    ("calibration_error", "calibration error", "mean distance from the dotted line below"),
)
_SMALL = 0.005


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """One score of both models, in words."""

    name: str
    model: str
    baseline: str
    difference: str
    meaning: str


def provenance(content: ReportContent) -> str:
    """How far the scores can be trusted."""
    rows = count(content.n_given, "row")
    if content.is_seen is None:
        return (
            f"Scored on {rows}. If any of them were used to fit the model, the scores below "
            "flatter it: give rows that it has not seen."
        )
    if content.is_seen:
        return (
            f"No rows were held out: the {rows} scored below were used to fit the model, and "
            "flatter it. Hold rows out to know how it predicts new ones."
        )
    known = "" if content.n_train is None else f", and fitted to {count(content.n_train, 'other')}"
    return f"Scored on {rows} that were held out{known}: the model has not seen them."


def scores_heading(content: ReportContent) -> str:
    """Heading of the scores: only rows that were held out may be called so."""
    lead = "Held-out scores" if content.is_seen is False else "Scores"
    return f"{lead} beside a linear model"


def glance(content: ReportContent) -> list[str]:
    """The whole report in a few sentences."""
    return [
        words
        for target in content.targets
        for words in (_error(content, target), _coverage(content, target), _strongest(target))
    ]


def _error(content: ReportContent, target: TargetContent) -> str:
    ours, line = target.scores.model, target.scores.baseline
    words = f"The error of {target.name} (RMSE) is {number(ours.rmse)}"
    if line is None:
        return words + "."
    change = ours.rmse / line.rmse - 1.0 if line.rmse > 0.0 else 0.0
    if abs(change) < _SMALL:
        return f"{words}, as large as that of a linear model, {number(line.rmse)}."
    side = "smaller" if change < 0.0 else "larger"
    return (
        f"{words}, {percent(round(abs(change), 3))} {side} than that of a linear model, "
        f"{number(line.rmse)}."
    )


def _coverage(content: ReportContent, target: TargetContent) -> str:
    found = target.scores.model.coverage
    low, high = (float(end[0]) for end in binomial_band([content.coverage], content.n_rows))
    lead = f"Its {percent(content.coverage)} intervals hold {percent(found)} of the targets"
    if low <= found <= high:
        return f"{lead}, as they should: by chance it may be {percent(low)} to {percent(high)}."
    fault = "too narrow" if found < low else "too wide"
    return f"{lead}: they are {fault}, as chance explains {percent(low)} to {percent(high)}."


def _strongest(target: TargetContent) -> str:
    strong = [clean(one.column) for one in target.relevance if one.strength > 0.0]
    if not strong:
        return "No input matters for sure."
    if len(strong) == 1:
        return f"Only {strong[0]} matters for sure."
    more = f"; {len(strong)} of {len(target.relevance)} matter" if len(strong) > 3 else ""
    return f"The inputs that matter most are {', '.join(strong[:3])}{more}."


def cuts(content: ReportContent) -> list[str]:
    """What is not shown of something large."""
    found = []
    if content.n_rows < content.n_given:
        found.append(
            f"All figures are of {content.n_rows:,} rows, chosen at random from "
            f"{content.n_given:,}."
        )
    if content.n_train is not None and content.n_train > MOST_ROWS:
        found.append(
            f"Of the {content.n_train:,} rows of training {MOST_ROWS:,} are looked at, chosen at "
            "random."
        )
    if content.n_targets > MOST_TARGETS:
        found.append(f"The first {MOST_TARGETS} of {content.n_targets} targets are shown.")
    return found


def data(content: ReportContent) -> str:
    """How much data there is."""
    inputs = content.n_columns - content.n_targets
    shown = content.columns[0].n_rows if content.columns else content.n_rows
    which = "scored" if content.n_train is None else "scored or used in fitting"
    gaps = sum(column.n_missing > 0 for column in content.columns)
    missing = f"{count(gaps, 'column')} with gaps" if gaps else "no gaps"
    return (
        f"{count(shown, 'row')} {which}; {count(inputs, 'input')} and "
        f"{count(content.n_targets, 'target')}; {missing}."
    )


def bound(fit: FitFacts) -> str:
    """What the picture of the bound shows, and what it leaves out."""
    if not fit.bound:
        return ""
    lead = f"The bound of the heaviest network after every {fit.unit}. {fit.bound_words}"
    low, _ = readable_limits(np.asarray(fit.bound))
    hidden = int(np.argmax(np.asarray(fit.bound) >= low))
    if hidden == 0:
        return lead
    which = f"{fit.unit} 1 lies" if hidden == 1 else f"{fit.unit}s 1 to {hidden} lie"
    return f"{lead} {which.capitalize()} below the picture, from {number(fit.bound[0], 6)}."


def score_rows(ours: Scores, line: Scores | None) -> list[ScoreRow]:
    """Scores side by side."""
    rows = []
    for field, name, meaning in _SCORES:
        is_share = field in ("coverage", "calibration_error")
        write = percent if is_share else number
        a = getattr(ours, field)
        b = None if line is None else getattr(line, field)
        if field == "coverage":
            name = f"coverage of {percent(ours.nominal_coverage)} intervals"
            meaning = f"{meaning} {percent(ours.nominal_coverage)}"
        rows.append(
            ScoreRow(
                name=name,
                model=write(a),
                baseline="" if b is None else write(b),
                difference="" if b is None else _difference(field, a, b),
                meaning=meaning,
            )
        )
    return rows


def _difference(field: str, ours: float, line: float) -> str:
    if field in ("coverage", "calibration_error"):
        return f"{_signed(100.0 * (ours - line), 1)} points"
    if field == "nll" or line == 0.0:
        return _signed(ours - line, 3)
    return f"{_signed(100.0 * (ours / line - 1.0), 1)}\N{NO-BREAK SPACE}%"


def _signed(value: float, digits: int) -> str:
    return f"{value:+,.{digits}f}".replace("-", "−")


def pairs(content: ReportContent, target: TargetContent) -> str:
    """Under the picture of predictions and targets."""
    shown = target.scores.pairs.actual.size
    some = f" {shown:,} rows, chosen at random, are shown." if shown < content.n_rows else ""
    return f"Predictions against what happened. On the dotted line a prediction is exact.{some}"


def calibration(content: ReportContent, target: TargetContent) -> str:
    """Under the calibration curve."""
    found = target.scores.calibration
    outside = int(np.sum((found.observed < found.low) | (found.observed > found.high)))
    if outside == 0:
        return "At every level the model is as calibrated as chance lets one see."
    mean = float(np.mean(found.observed - found.levels))
    side = "too narrow" if mean < 0.0 else "too wide"
    return (
        f"At {outside} of {found.levels.size} levels the curve leaves the band: on average {side}."
    )


def relevance(target: TargetContent) -> str:
    """Under the strengths of the inputs."""
    more = len(target.relevance) - 20
    hidden = f" {count(more, 'weaker input')} not shown." if more > 0 else ""
    return (
        f"The strongest inputs first; point at a bar for the probability that it matters.{hidden}"
    )


def dependence(found: Dependence) -> str:
    """Under the partial dependence of one input."""
    return (
        f"Predictions along {found.name}, averaged over {count(found.n_averaged, 'row')} with all "
        "else as it is in them; the bands hold targets of such rows."
    )


def network(content: ReportContent) -> str:
    """Above the drawings of the network."""
    found = content.network
    drawn = (
        f" Of {found.n_inputs} inputs the {found.n_shown} strongest are drawn."
        if found.n_shown < found.n_inputs
        else ""
    )
    if found.was_pruned:
        return f"This model has been pruned; the weights it had before are not kept.{drawn}"
    return (
        "Pruning keeps the weights whose sign is sure, at an estimated share of wrong signs of "
        f"{percent(found.rate)}, and takes out what is left alone. Nothing was fitted again.{drawn}"
    )


def pruned_scores(content: ReportContent) -> list[tuple[str, str, str]]:
    """Scores before and after pruning."""
    return [
        (
            f"{name}, {target.name}" if content.n_targets > 1 else name,
            number(getattr(target.scores.model, field)),
            number(getattr(target.scores.pruned, field)),
        )
        for target in content.targets
        for field, name, _ in _SCORES[:2]
    ]


def surprise(content: ReportContent) -> str:
    """Above the table of surprises."""
    naming = {
        "file": "Rows are numbered as in the file, from 1 below its header.",
        "index": "Rows are named by the index of the table.",
        "place": "Rows are counted from 0.",
    }[content.rows_named_by]
    return (
        "The surprise of a row is −log p(target), minus the logarithm of its predicted density: "
        f"errors in the data, or what the model does not know. A cross marks targets outside their "
        f"{percent(content.coverage)} intervals, of which {percent(1.0 - content.coverage)} are to "
        f"be expected. {naming}"
    )
