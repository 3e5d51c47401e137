"""What a report says in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowtienet.evaluation import Scores, binomial_band
from bowtienet.plotting.elbo import readable_limits
from bowtienet.report.charts import MOST_BARS
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
_SMALL, _TINY = 0.005, 0.001
_MOST_PERCENT = 10.0
"""A change beyond 1000 % is said in times."""
_MOST_NAMED = 3
FEWEST = 20
"""Rows below which nothing is said about what chance allows."""


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
    rows = count(content.n_rows, "row")
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


def scored(content: ReportContent) -> str:
    """Above the table of scores."""
    words = f"Scores of {count(content.n_rows, 'row')}"
    if not content.has_weights:
        return words
    return f"{words}, weighted: they say as much as {content.n_effective:,} of equal weight"


def glance(content: ReportContent) -> list[str]:
    """The whole report in a few sentences."""
    found = [
        words
        for target in content.targets
        for words in (
            _error(content, target),
            _coverage(content, target),
            _strongest(content, target),
        )
    ]
    if content.fit.caveat and any(map(_strong, content.targets)):
        found.append(content.fit.caveat)
    return found


def _error(content: ReportContent, target: TargetContent) -> str:
    ours, line = target.scores.model.rmse, target.scores.baseline
    words = f"The error of {target.name} (RMSE) is {number(ours)}"
    if line is None:
        return words + "."
    that = "that of a linear model"
    if content.n_effective < FEWEST:
        return f"{words}, and {that} {number(line.rmse)}; so few rows cannot tell which is better."
    both = "; both were fitted to these rows" if content.is_seen else ""
    return f"{words}, {_compared(ours, line.rmse)} {that}, {number(line.rmse)}{both}."


def _compared(ours: float, line: float) -> str:
    """How large an error is beside another, up to the words "that of"."""
    if line == 0.0:
        return "as large as" if ours == 0.0 else "larger than"
    ratio = ours / line
    if ratio - 1.0 > _MOST_PERCENT:
        return f"{number(ratio, 3)} times"
    if 0.0 < ratio < _TINY:
        return "less than a thousandth of"
    if abs(ratio - 1.0) < _SMALL:
        return "as large as"
    side = "smaller" if ratio < 1.0 else "larger"
    return f"{percent(round(abs(ratio - 1.0), 3))} {side} than"


def _coverage(content: ReportContent, target: TargetContent) -> str:
    found, n_rows = target.scores.model.coverage, content.n_effective
    low, high = (float(end[0]) for end in binomial_band([content.coverage], n_rows))
    whose = f"The {percent(content.coverage)} intervals of {target.name}"
    if content.n_targets == 1:
        whose = f"Its {percent(content.coverage)} intervals"
    lead = f"{whose} hold {percent(found)} of the targets"
    if n_rows < FEWEST:
        return f"{lead}; these are too few rows to tell whether that is right."
    chance = f"{percent(low)} to {percent(high)}"
    if found < low:
        return f"{lead}: they are too narrow, as chance explains {chance}."
    if content.is_seen:
        return f"{lead}; of rows that were fitted that says little about new ones."
    if found > high:
        return f"{lead}: they are too wide, as chance explains {chance}."
    return f"{lead}, which chance allows: it may be {chance}."


def _strong(target: TargetContent) -> list[str]:
    return [clean(one.column) for one in target.relevance if one.strength > 0.0]


def _strongest(content: ReportContent, target: TargetContent) -> str:
    strong, aim = _strong(target), f" for {target.name}" if content.n_targets > 1 else ""
    if not strong:
        return f"The network is sure of no weight{aim} that leads from an input."
    if len(strong) == 1:
        return f"The only input that the network uses{aim} is {strong[0]}."
    shown = strong[:_MOST_NAMED]
    most = " most" if len(strong) > len(shown) else ""
    words = f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"The inputs that the network uses{most}{aim} are {words}."


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
    missing = f"{count(content.n_gaps, 'column')} with gaps" if content.n_gaps else "no gaps"
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
    change = ours / line - 1.0
    if change > _MOST_PERCENT:
        return f"{number(1.0 + change, 3)} times"
    return f"{_signed(100.0 * change, 1)}\N{NO-BREAK SPACE}%"


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
    if content.n_effective < FEWEST:
        return "There are too few rows to tell whether the model is calibrated."
    below = int(np.sum(found.observed < found.low))
    above = int(np.sum(found.observed > found.high))
    levels = found.levels.size
    seen = " Of rows that were fitted it says little about new ones." if content.is_seen else ""
    if below + above == 0:
        return f"At all {levels} levels the curve lies in the band, which chance allows.{seen}"
    if below and above:
        side = f"below it at {below}, above it at {above}"
    else:
        side = "below it: too narrow" if below else "above it: too wide"
    return (
        f"At {below + above} of {levels} levels the curve leaves the band, {side}. The band is for "
        f"each level by itself: about one of {levels} leaves it by chance.{seen}"
    )


def relevance(target: TargetContent) -> str:
    """Under the strengths of the inputs."""
    spread = (
        " A column that became several inputs, as categories do, has the strength of the strongest."
        if any(one.n_inputs > 1 for one in target.relevance)
        else ""
    )
    return (
        "The strongest inputs first; point at a bar for the probability of an effect, as this fit "
        f"has it.{spread}{_not_drawn(target)}"
    )


def _not_drawn(target: TargetContent) -> str:
    shown, hidden = target.relevance[:MOST_BARS], target.relevance[MOST_BARS:]
    if not hidden:
        return ""
    if hidden[0].strength == 0.0:
        return f" {count(len(hidden), 'more input')} of strength 0 not shown."
    which = "weaker" if hidden[0].strength < shown[-1].strength else "more"
    return f" {count(len(hidden), f'{which} input')} not shown."


def followed(target: TargetContent) -> str:
    """Above the choice of an input: which of them can be chosen; empty if all can."""
    strong, shown = _strong(target), len(target.dependence)
    if not strong:
        return "No input moves the prediction: no weight is sure enough of its sign."
    if not shown:
        named = ", ".join(strong[:_MOST_NAMED]) + (", …" if len(strong) > _MOST_NAMED else "")
        return (
            f"There is no line to show: these rows do not vary in {named}, or hold it in another "
            "form than training did."
        )
    if shown == len(strong):
        return ""
    return (
        f"{shown} of the {len(strong)} inputs with any strength can be chosen: the strongest, as "
        "far as these rows vary in them."
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
    sampled = (
        f" These are the largest of the {content.n_rows:,} sampled rows."
        if content.n_rows < content.n_given
        else ""
    )
    return (
        "The surprise of a row is −log p(target), minus the logarithm of its predicted density: "
        f"errors in the data, or what the model does not know.{sampled} A cross marks targets "
        f"outside their {percent(content.coverage)} intervals; of all rows "
        f"{percent(1.0 - content.coverage)} are expected to lie outside. {naming}"
    )
