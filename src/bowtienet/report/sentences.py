"""What a report says in words."""

from __future__ import annotations

from bowtienet.evaluation import binomial_band
from bowtienet.report.classes import ClassContent
from bowtienet.report.content import ReportContent
from bowtienet.report.targets import TargetContent
from bowtienet.report.wording import number, percent

SCORES = (
    ("rmse", "RMSE", "root mean squared error, in the unit of the target; lower is better"),
    ("nll", "negative log density", "mean of −log p(target); lower is better"),
    ("crps", "CRPS", "continuous ranked probability score; lower is better"),
    ("coverage", "coverage", "share of targets inside their intervals"),
    ("interval_score", "interval score", "width of intervals plus misses; lower is better"),
    ("calibration_error", "calibration error", "mean distance of the curve below from its line"),
)
SHARES = ("coverage", "calibration_error")
_MOST_PERCENT = 10.0
"""A change beyond 1000 % is said in times."""
_MOST_NAMED = 3
FEWEST = 20
"""Rows below which nothing is said about what chance allows."""


def glance(content: ReportContent) -> list[str]:
    """The whole report in a few sentences."""
    found = []
    for target in content.targets:
        found += [_error(content, target), _coverage(content, target), strongest(content, target)]
    if content.fit.caveat and any(target.strong for target in content.targets):
        found.append(content.fit.caveat)
    return found


def _error(content: ReportContent, target: TargetContent) -> str:
    ours, line = target.model.rmse, target.baseline
    words = f"RMSE of {target.name}: {number(ours)}"
    if line is None:
        return f"{words}."
    words += f"; linear model: {number(line.rmse)}"
    if content.n_effective < FEWEST:
        return f"{words}. Too few rows to tell which is better."
    return f"{words} ({difference('rmse', ours, line.rmse)})."


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


def strongest(content: ReportContent, target: TargetContent | ClassContent) -> str:
    """Which features have most strength."""
    aim = f" for {target.name}" if content.n_targets > 1 else ""
    if not target.strong:
        return f"No feature has any strength{aim}: no weight is sure of its sign."
    shown = ", ".join(target.strong[:_MOST_NAMED])
    more = ", …" if len(target.strong) > _MOST_NAMED else "."
    return f"Strongest features{aim}: {shown}{more}"


def difference(field: str, ours: float, line: float) -> str:
    """A score beside that of the linear model."""
    if field in SHARES:
        return f"{signed(100.0 * (ours - line), 1)} points"
    if field == "nll" or line == 0.0:
        return signed(ours - line, 3)
    change = ours / line - 1.0
    if change > _MOST_PERCENT:
        return f"{number(1.0 + change, 3)} times"
    return f"{signed(100.0 * change, 1)}\N{NO-BREAK SPACE}%"


def signed(value: float, digits: int) -> str:
    """A difference."""
    return f"{value:+,.{digits}f}".replace("-", "−")


def calibration(content: ReportContent, target: TargetContent) -> str:
    """Under the calibration curve."""
    if content.n_effective < FEWEST:
        return "Too few rows to tell whether the model is calibrated."
    levels, below, above = target.levels
    seen = " For rows that were fitted it says little about new ones." if content.is_seen else ""
    if below + above == 0:
        return f"At all {levels} levels the curve lies in the band of chance.{seen}"
    sides = {"below (intervals are too narrow)": below, "above (too wide)": above}
    words = " and ".join(f"{side} at {n}" for side, n in sides.items() if n)
    return f"The curve leaves the band of chance {words} of {levels} levels.{seen}"
