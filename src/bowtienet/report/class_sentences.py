"""What a report about classes says in words."""

from __future__ import annotations

import math

from bowtienet.evaluation import ClassScores
from bowtienet.report.classes import ClassContent
from bowtienet.report.content import ReportContent
from bowtienet.report.sentences import FEWEST, signed, strongest
from bowtienet.report.wording import number, percent

_SCORES = (
    ("log_loss", "log loss", "mean of −log p(class); lower is better"),
    ("brier_score", "Brier score", "squared error of the probabilities; lower is better"),
    ("accuracy", "accuracy", "share of rows whose most probable class is right"),
    ("balanced_accuracy", "balanced accuracy", "the same within each class, on average"),
    ("roc_auc", "area under the ROC curve", "how well probabilities sort rows; 0.5 is chance"),
    (
        "calibration_error",
        "calibration error",
        "mean distance of confidence and accuracy",
    ),
)
SHARES = ("accuracy", "balanced_accuracy", "calibration_error")


def scores(found: ClassScores) -> list[tuple[str, str, str]]:
    """Fields, names and meanings of the scores that there are: some are for two classes."""
    return [entry for entry in _SCORES if not math.isnan(getattr(found, entry[0]))]


def glance(content: ReportContent) -> list[str]:
    """The whole report in a few sentences."""
    found = content.classes
    assert found is not None
    told = [_loss(content, found), _accuracy(found), strongest(content, found)]
    if content.fit.caveat and found.strong:
        told.append(content.fit.caveat)
    return told


def _loss(content: ReportContent, found: ClassContent) -> str:
    ours, line = found.model.log_loss, found.baseline
    words = f"Log loss of {found.name}: {number(ours)}; class shares: "
    words += number(found.shares.log_loss)
    if line is None:
        return f"{words}."
    words += f"; logistic regression: {number(line.log_loss)}"
    if content.n_effective < FEWEST:
        return f"{words}. Too few rows to tell which is better."
    return f"{words} ({difference('log_loss', ours, line.log_loss)})."


def _accuracy(found: ClassContent) -> str:
    return (
        f"The most probable of {len(found.classes)} classes is right in "
        f"{percent(found.model.accuracy)} of rows; always the most frequent one in "
        f"{percent(found.shares.accuracy)}."
    )


def difference(field: str, ours: float, line: float) -> str:
    """A score beside that of the logistic regression."""
    if field in SHARES:
        return f"{signed(100.0 * (ours - line), 1)} points"
    return signed(ours - line, 3)


def reliability(content: ReportContent) -> str:
    """Under the reliability diagram."""
    if content.n_effective < FEWEST:
        return "Too few rows to tell whether the probabilities are calibrated."
    seen = " For rows that were fitted it says little about new ones." if content.is_seen else ""
    return (
        "On the diagonal a probability is as large as the share that comes true; bars show where "
        f"points of a calibrated model lie by chance. Below, how many rows have it.{seen}"
    )
