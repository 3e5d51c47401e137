"""What a report says in words."""

from __future__ import annotations

from bowtienet._old.report.classes import ClassContent
from bowtienet._old.report.content import ReportContent
from bowtienet._old.report.estimates import Estimate
from bowtienet._old.report.targets import TargetContent
from bowtienet._old.report.wording import number, percent

SCORES = (
    ("r2", "R²", "share of the variance of the target that predictions explain"),
    ("mae", "MAE", "mean absolute error, in the unit of the target"),
    ("rmse", "RMSE", "root mean squared error, in the unit of the target"),
    ("nll", "negative log density (NLL)", "mean of −log p(target); lower is better"),
    ("crps", "CRPS", "continuous ranked probability score; lower is better"),
    ("coverage", "coverage", "share of targets inside their intervals"),
    ("interval_score", "interval score", "width of intervals plus misses; lower is better"),
    (
        "calibration_error",
        "calibration error",
        "mean distance of the calibration curve from its line",
    ),
)
SHARES = ("coverage", "calibration_error", "accuracy", "balanced_accuracy")
_RELATIVE = ("mae", "rmse", "crps", "interval_score")
"""Errors whose differences are shares of the baseline's."""
_MOST_PERCENT = 10.0
"""A change beyond 1000 % is said in times."""
_MOST_NAMED = 3
FEWEST = 20
"""Rows below which nothing is said about what chance allows."""


def glance(content: ReportContent) -> list[str]:
    """What stands under the verdict."""
    told: list[TargetContent | ClassContent] = [*content.targets]
    if content.classes is not None:
        told = [content.classes]
    found = [strongest(content, target) for target in told]
    if not content.fit.is_fine and content.fit.caveat and any(own.strong for own in told):
        found.append(content.fit.caveat)
    return found


def strongest(content: ReportContent, target: TargetContent | ClassContent) -> str:
    """Which features have most strength."""
    aim = f" for {target.name}" if content.n_targets > 1 else ""
    if not target.strong:
        return f"No feature has any strength{aim}: no weight is sure of its sign."
    shown = ", ".join(target.strong[:_MOST_NAMED])
    more = ", …" if len(target.strong) > _MOST_NAMED else "."
    return f"Strongest features{aim}: {shown}{more}"


def score_text(field: str, value: float) -> str:
    """A score as the table has it."""
    return percent(value) if field in SHARES else number(value)


def ends_text(field: str, found: Estimate) -> str:
    """The interval of a score."""
    return f"{score_text(field, found.low)} to {score_text(field, found.high)}"


def difference(field: str, change: float) -> str:
    """A difference of scores; of errors it is a share of the baseline's."""
    if field in SHARES:
        return f"{signed(100.0 * change, 1)} points"
    if field not in _RELATIVE:
        return signed(change, 3)
    if change > _MOST_PERCENT:
        return f"{number(1.0 + change, 3)} times"
    return f"{signed(100.0 * change, 1)}\N{NO-BREAK SPACE}%"


def difference_ends(field: str, found: Estimate) -> str:
    """The interval of a difference, with its unit once."""
    low, high = difference(field, found.low), difference(field, found.high)
    for unit in (" points", "\N{NO-BREAK SPACE}%"):
        if high.endswith(unit):
            low = low.removesuffix(unit)
    return f"{low} to {high}"


def signed(value: float, digits: int) -> str:
    """A difference; what rounds to nothing is 0."""
    # Adding 0 turns -0 into 0.
    return f"{round(value, digits) + 0.0:+,.{digits}f}".replace("-", "−")


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
