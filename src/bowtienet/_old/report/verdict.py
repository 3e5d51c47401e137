"""The card at the top of a report: better than a line or not, intervals right, what to do."""

from __future__ import annotations

from dataclasses import dataclass

from bowtienet._old.evaluation import binomial_band
from bowtienet._old.report.classes import ClassContent
from bowtienet._old.report.content import ReportContent
from bowtienet._old.report.estimates import Estimate
from bowtienet._old.report.sentences import FEWEST, signed
from bowtienet._old.report.targets import TargetContent
from bowtienet._old.report.wording import count, number, percent, rarity

GOOD, FAIR, POOR = "good", "fair", "poor"
_RARE = 0.01
"""Expected number of rows as improbable as one that is worth a look."""
_LINE, _LOGISTIC = "a linear model", "logistic regression"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a reader should know first."""

    name: str
    """Of the target."""
    tone: str
    """"good", "fair" or "poor"."""
    headline: str
    facts: tuple[tuple[str, str], ...]
    """What, and how it stands."""
    advice: tuple[str, ...]


def verdicts(content: ReportContent) -> list[Verdict]:
    """One for each target."""
    if content.classes is not None:
        return [_of_classes(content, content.classes)]
    return [_of_numbers(content, target) for target in content.targets]


def _of_numbers(content: ReportContent, target: TargetContent) -> Verdict:
    few = content.n_effective < FEWEST
    change = target.scores["rmse"].difference
    headline, tone = _rank(None if few else change, few, _LINE)
    r2, sharpness = target.scores["r2"].model, target.scores["nll"].difference
    facts = [("Error", _error_words(target, few))]
    if r2.value == r2.value:
        share = f"R² {number(r2.value, 3)}"
        facts.append(("Explained", share + ("." if few else f" ({_ends(r2, 3)}).")))
    if sharpness is not None and not few:
        words = "higher" if sharpness.value < 0.0 else "lower"
        mirrored = sorted(abs(end) for end in (sharpness.low, sharpness.high))
        sided = sharpness.low * sharpness.high > 0.0
        ends = (
            f"{number(mirrored[0], 3)} to {number(mirrored[1], 3)}" if sided else "0 within chance"
        )
        facts.append(
            (
                "Density",
                f"Log density of a row {words} by {number(abs(sharpness.value), 3)} ({ends}).",
            )
        )
    state, words = coverage_words(content, target)
    facts.append(("Intervals", words))
    if tone == GOOD and state in ("narrow", "wide"):
        tone = FAIR
    advice = _general_advice(content)
    if state in ("narrow", "wide"):
        advice.append(
            "Ask for intervals that are set by held-out rows: "
            'predict_interval(X, method="conformal", calibration=(X_held, y_held)).'
        )
    advice += _advice_beside(None if few else change, _LINE)
    advice += _improbable_advice(target, content.n_rows)
    return Verdict(
        name=target.name,
        tone=tone,
        headline=headline,
        facts=tuple(facts),
        advice=tuple(advice) or ("Use it: nothing on this page speaks against it.",),
    )


def _of_classes(content: ReportContent, found: ClassContent) -> Verdict:
    few = content.n_effective < FEWEST
    loss = found.scores["log_loss"]
    headline, tone = _rank(None if few else loss.difference, few, _LOGISTIC)
    words = f"Log loss {number(found.model.log_loss)}; class shares {number(found.shares.log_loss)}"
    if loss.baseline is not None:
        words += f"; logistic regression {number(loss.baseline.value)}"
    if loss.difference is not None and not few:
        words += f" ({signed(loss.difference.value, 3)}, 95\N{NO-BREAK SPACE}% interval "
        words += f"{signed(loss.difference.low, 3)} to {signed(loss.difference.high, 3)})"
    accuracy = found.scores["accuracy"].model
    hits = f"The most probable class is right in {percent(accuracy.value)} of rows"
    if not few:
        hits += f" ({percent(accuracy.low)} to {percent(accuracy.high)})"
    hits += f"; always the most frequent one in {percent(found.shares.accuracy)}."
    state, calibrated = _calibration_words(content, found)
    if tone == GOOD and (state or found.model.log_loss >= found.shares.log_loss):
        tone = FAIR
    advice = _general_advice(content)
    if state:
        advice.append("Look at the calibration before you act on the probabilities.")
    advice += _advice_beside(None if few else loss.difference, _LOGISTIC)
    return Verdict(
        name=found.name,
        tone=tone,
        headline=headline,
        facts=(("Loss", f"{words}."), ("Hits", hits), ("Probabilities", calibrated)),
        advice=tuple(advice) or ("Use it: nothing on this page speaks against it.",),
    )


def _rank(change: Estimate | None, few: bool, line: str) -> tuple[str, str]:
    """Better, as good or worse than a baseline, by the interval of a difference of losses."""
    if change is None:
        return ("Too few rows to judge" if few else f"No {line[2:]} to compare with"), FAIR
    if change.high < 0.0:
        return f"Better than {line}", GOOD
    if change.low > 0.0:
        return f"Worse than {line}", POOR
    return f"As good as {line}, within chance", FAIR


def _error_words(target: TargetContent, few: bool) -> str:
    ours, line = target.scores["rmse"], target.baseline
    words = f"RMSE {number(ours.model.value)}"
    if line is None or ours.baseline is None or ours.difference is None:
        return f"{words}."
    words += f"; linear model {number(ours.baseline.value)}"
    if few:
        return f"{words}. Too few rows to tell which is better."
    return f"{words}: {relative_words(ours.difference)}."


def relative_words(change: Estimate) -> str:
    """A change of an error, with its interval."""
    if change.value > 1.0:
        return f"{number(1.0 + change.value, 3)} times as large"
    shown = [100.0 * abs(end) for end in (change.value, change.low, change.high)]
    word = "lower" if change.value <= 0.0 else "higher"
    if change.low * change.high > 0.0:
        low, high = sorted(shown[1:])
        ends = f"{low:.1f} to {high:.1f}"
    else:
        ends = f"{signed(100.0 * change.low, 1)} to {signed(100.0 * change.high, 1)}"
    return (
        f"{shown[0]:.1f}\N{NO-BREAK SPACE}% {word} "
        f"(95\N{NO-BREAK SPACE}% interval {ends}\N{NO-BREAK SPACE}%)"
    )


def coverage_words(content: ReportContent, target: TargetContent) -> tuple[str, str]:
    """Whether intervals are "right", "narrow" or "wide", or "" where one cannot tell; in words."""
    found, n_rows = target.model.coverage, content.n_effective
    low, high = (float(end[0]) for end in binomial_band([content.coverage], n_rows))
    lead = f"{percent(content.coverage)} intervals hold {percent(found)} of targets"
    if n_rows < FEWEST:
        return "", f"{lead}; too few rows to judge."
    chance = f"{percent(low)} to {percent(high)} by chance"
    if found < low:
        return "narrow", f"Too narrow: {lead} ({chance})."
    if content.is_seen:
        return "", f"{lead}; for rows that were fitted that says little about new ones."
    if found > high:
        return "wide", f"Too wide: {lead} ({chance})."
    return "right", f"As promised, within chance: {lead} ({chance})."


def _calibration_words(content: ReportContent, found: ClassContent) -> tuple[bool, str]:
    """Whether probabilities are off by more than chance, and in words."""
    error, limit = found.model.calibration_error, found.chance_error
    if content.n_effective < FEWEST:
        return False, "Too few rows to tell whether they are calibrated."
    lead = f"calibration error {percent(error)}, up to {percent(limit)} by chance"
    if error > limit:
        return True, f"Off: {lead}."
    if content.is_seen:
        return False, f"C{lead[1:]}; for rows that were fitted that says little about new ones."
    return False, f"Calibrated: {lead}."


def _general_advice(content: ReportContent) -> list[str]:
    found = []
    if content.is_seen:
        found.append("Hold rows out: scores of rows that were fitted are too good.")
    elif content.is_seen is None:
        found.append(
            "Make sure that none of these rows was fitted: their scores would be too good."
        )
    if content.n_effective < FEWEST:
        found.append(f"Score more rows: of fewer than {FEWEST} nothing can be told.")
    if not content.fit.is_fine:
        found.append(content.fit.reason)
    if content.n_far:
        share = content.n_far / content.n_rows
        found.append(
            f"Take care with {count(content.n_far, 'row')} ({percent(share)}) far outside the "
            "training range, or with a new category."
        )
    return found


def _advice_beside(change: Estimate | None, line: str) -> list[str]:
    if change is None or change.high < 0.0:
        return []
    if change.low > 0.0:
        return [f'Use {line} here, or fit again with more rows, or with effort="best".']
    return [f"{line[0].upper()}{line[1:]} is simpler and as exact here: prefer it if that matters."]


def _improbable_advice(target: TargetContent, n_rows: int) -> list[str]:
    rare = [one for one in target.surprises if one.probability * n_rows < _RARE]
    if not rare:
        return []
    more = f", and {count(len(rare) - 1, 'other')}" if rare[1:] else ""
    return [
        f"Check row {rare[0].row}{more} for an error in the data (probability "
        f"{rarity(rare[0].probability)})."
    ]


def _ends(found: Estimate, digits: int) -> str:
    low, high = number(found.low, digits), number(found.high, digits)
    return f"95\N{NO-BREAK SPACE}% interval {low} to {high}"
