"""What a report about classes says in words."""

from __future__ import annotations

import math

from bowtienet._old.evaluation import ClassScores
from bowtienet._old.report.content import ReportContent
from bowtienet._old.report.sentences import FEWEST

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


def scores(found: ClassScores) -> list[tuple[str, str, str]]:
    """Fields, names and meanings of the scores that there are: some are for two classes."""
    return [entry for entry in _SCORES if not math.isnan(getattr(found, entry[0]))]


def reliability(content: ReportContent) -> str:
    """Under the reliability diagram."""
    if content.n_effective < FEWEST:
        return "Too few rows to tell whether the probabilities are calibrated."
    seen = " For rows that were fitted it says little about new ones." if content.is_seen else ""
    return (
        "On the diagonal a probability is as large as the share that comes true; bars show where "
        f"points of a calibrated model lie by chance. Below, how many rows have it.{seen}"
    )
