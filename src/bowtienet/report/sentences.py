"""What a report says in words."""

from __future__ import annotations

from dataclasses import dataclass

from bowtienet.evaluation import Scores, binomial_band
from bowtienet.report.content import MOST_ROWS, MOST_TARGETS, ReportContent, TargetContent
from bowtienet.report.figures import MOST_BARS
from bowtienet.report.wording import count, number, percent

SCORES = (
    ("rmse", "RMSE", "root mean squared error, in the unit of the target; lower is better"),
    ("nll", "negative log density", "mean of −log p(target); lower is better"),
    ("crps", "CRPS", "continuous ranked probability score; lower is better"),
    ("coverage", "coverage", "share of targets inside their intervals"),
    ("interval_score", "interval score", "width of intervals plus misses; lower is better"),
    ("calibration_error", "calibration error", "mean distance of the curve below from its line"),
)
_SHARES = ("coverage", "calibration_error")
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
            f"Scored on {rows}. If the model was fitted to any of them, the scores are too good: "
            "give held-out rows."
        )
    if content.is_seen:
        return (
            f"Scored on {rows} that the model was fitted to: the scores are too good. Hold rows "
            "out to see how it predicts new ones."
        )
    train = "" if content.n_train is None else f"; fitted to {count(content.n_train, 'other')}"
    return f"Scored on {rows} held out from the fit{train}."


def glance(content: ReportContent) -> list[str]:
    """The whole report in a few sentences."""
    found = []
    for target in content.targets:
        found += [_error(content, target), _coverage(content, target), _strongest(content, target)]
    if content.fit.caveat and any(target.strong for target in content.targets):
        found.append(content.fit.caveat)
    return found


def _error(content: ReportContent, target: TargetContent) -> str:
    ours, line = target.model.rmse, target.baseline
    words = f"RMSE of {target.name}: {number(ours)}"
    if line is None:
        return f"{words}."
    if content.n_effective < FEWEST:
        return f"{words}; linear model: {number(line.rmse)}. Too few rows to tell which is better."
    return f"{words}, {_compared(ours, line.rmse)} a linear model's {number(line.rmse)}."


def _compared(ours: float, line: float) -> str:
    if line == 0.0:
        return "equal to" if ours == 0.0 else "larger than"
    change = ours / line - 1.0
    if change > _MOST_PERCENT:
        return f"{number(ours / line, 3)} times"
    if abs(change) < 0.005:
        return "equal to"
    return f"{percent(round(abs(change), 3))} {'lower' if change < 0.0 else 'higher'} than"


def _coverage(content: ReportContent, target: TargetContent) -> str:
    found, n_rows = target.model.coverage, content.n_effective
    low, high = (float(end[0]) for end in binomial_band([content.coverage], n_rows))
    lead = (
        f"{percent(content.coverage)} intervals of {target.name} hold {percent(found)} of targets"
    )
    if n_rows < FEWEST:
        return f"{lead}; too few rows to judge."
    chance = f"{percent(low)} to {percent(high)} by chance"
    if found < low:
        return f"{lead}: too narrow ({chance})."
    if content.is_seen:
        return f"{lead}; for rows that were fitted that says little about new ones."
    return f"{lead}: too wide ({chance})." if found > high else f"{lead} ({chance})."


def _strongest(content: ReportContent, target: TargetContent) -> str:
    aim = f" for {target.name}" if content.n_targets > 1 else ""
    if not target.strong:
        return f"No feature has any strength{aim}: no weight is sure of its sign."
    shown = ", ".join(target.strong[:_MOST_NAMED])
    more = ", …" if len(target.strong) > _MOST_NAMED else "."
    return f"Strongest features{aim}: {shown}{more}"


def cuts(content: ReportContent) -> list[str]:
    """What is not shown of something large."""
    found = []
    if content.n_rows < content.n_given:
        found.append(f"A random {content.n_rows:,} of {content.n_given:,} rows are scored.")
    if content.n_train is not None and content.n_train > MOST_ROWS:
        found.append(
            f"The linear model is fitted to a random {MOST_ROWS:,} of {content.n_train:,} training "
            "rows."
        )
    if content.n_targets > MOST_TARGETS:
        found.append(f"The first {MOST_TARGETS} of {content.n_targets} targets are shown.")
    return found


def scored(content: ReportContent) -> str:
    """Above the table of scores."""
    words = f"Scores of {count(content.n_rows, 'row')}"
    if content.n_effective == content.n_rows:
        return words
    return f"{words}, weighted; effectively {content.n_effective:,}"


def score_rows(ours: Scores, line: Scores | None) -> list[ScoreRow]:
    """Scores side by side."""
    rows = []
    for field, name, meaning in SCORES:
        write = percent if field in _SHARES else number
        a, b = getattr(ours, field), None if line is None else getattr(line, field)
        if field == "coverage":
            name = f"coverage of {percent(ours.nominal_coverage)} intervals"
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
    if field in _SHARES:
        return f"{_signed(100.0 * (ours - line), 1)} points"
    if field == "nll" or line == 0.0:
        return _signed(ours - line, 3)
    change = ours / line - 1.0
    if change > _MOST_PERCENT:
        return f"{number(1.0 + change, 3)} times"
    return f"{_signed(100.0 * change, 1)}\N{NO-BREAK SPACE}%"


def _signed(value: float, digits: int) -> str:
    return f"{value:+,.{digits}f}".replace("-", "−")


def calibration(content: ReportContent, target: TargetContent) -> str:
    """Under the calibration curve."""
    if content.n_effective < FEWEST:
        return "Too few rows to tell whether the model is calibrated."
    levels, below, above = target.levels
    seen = " For rows that were fitted it says little about new ones." if content.is_seen else ""
    if below + above == 0:
        return f"At all {levels} levels the curve lies in the band of chance.{seen}"
    side = "below it: intervals are too narrow" if below else "above it: intervals are too wide"
    if below and above:
        side = f"below it at {below}, above it at {above}"
    return (
        f"At {below + above} of {levels} levels the curve leaves the band, {side}. About one level "
        f"leaves it by chance.{seen}"
    )


def relevance(target: TargetContent) -> str:
    """Under the strengths of the features."""
    words = "In brackets the probability of an effect, by this fit, where it is below 0.995."
    hidden = target.n_features - MOST_BARS
    return f"{words} {count(hidden, 'weaker feature')} not shown." if hidden > 0 else words


def bands(target: TargetContent) -> str:
    """Above the choice of a feature."""
    if not target.strong:
        return "No feature moves the prediction: no weight is sure of its sign."
    if not target.bands:
        return f"These rows do not vary in {', '.join(target.strong[:_MOST_NAMED])}."
    if len(target.bands) == len(target.strong):
        return ""
    return f"{len(target.bands)} of {count(len(target.strong), 'feature')} with any strength."


def network(content: ReportContent) -> str:
    """Above the plots of the network."""
    found = content.network
    drawn = ""
    if found.n_drawn < found.n_inputs:
        drawn = f" {found.n_drawn} of {found.n_inputs} inputs are drawn, the strongest."
    rate = (
        ""
        if found.rate is None
        else (f" The estimated false sign rate of kept weights is {percent(found.rate)}.")
    )
    if found.was_pruned:
        return f"This model was pruned; the weights before that are not kept.{rate}{drawn}"
    return f"Pruning keeps weights whose sign is sure, without another fit.{rate}{drawn}"


def pruned_scores(content: ReportContent) -> list[tuple[str, str, str]]:
    """Scores before and after pruning."""
    return [
        (
            f"{name}, {target.name}" if content.n_targets > 1 else name,
            number(getattr(target.model, field)),
            number(getattr(target.pruned, field)),
        )
        for target in content.targets
        for field, name, _ in SCORES[:2]
    ]


def surprise(content: ReportContent) -> str:
    """Above the table of surprises."""
    naming = {
        "file": "Rows are numbered as in the file, from 1 below its header.",
        "index": "Rows are named by the index of the table.",
        "place": "Rows are counted from 0.",
    }[content.rows_named_by]
    return (
        "Surprise is −log p(target): large for errors in the data, or for what the model does not "
        f"know. ✗ marks targets outside their {percent(content.coverage)} intervals; "
        f"{percent(1.0 - content.coverage)} of all rows are expected there. {naming}"
    )
