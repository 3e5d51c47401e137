"""The plots of a report about classes: displays of `bowtienet._old.plotting`, drawn in `page_style`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old.evaluation import BINS
from bowtienet._old.evaluation.checks import effective_rows
from bowtienet._old.plotting import (
    ConfusionDisplay,
    PrecisionRecallCurvesDisplay,
    ReliabilityDisplay,
    RocCurvesDisplay,
)
from bowtienet._old.report.figures import WIDTH
from bowtienet._old.report.svg import Plot, inline_svg, new_figure
from bowtienet._old.report.wording import count, percent

_ROWS_OF_BIN = 20
_FEWEST_BINS = 4
"""Of a reliability diagram, however few the rows."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Labels and probabilities of n rows."""

    codes: np.ndarray
    """Numbers (n,) of the classes."""
    probabilities: np.ndarray
    """(n, C)."""
    classes: tuple[str, ...]
    weights: np.ndarray
    """(n,)."""

    @property
    def labels(self) -> np.ndarray:
        """Classes (n,)."""
        return np.array(self.classes, dtype=object)[self.codes]


def confusion_plot(name: str, found: Judged) -> Plot:
    """Which classes are taken for which."""
    figure = new_figure(WIDTH, WIDTH)
    predicted = np.array(found.classes, dtype=object)[np.argmax(found.probabilities, axis=1)]
    ConfusionDisplay.from_predictions(
        found.labels,
        predicted,
        list(found.classes),
        sample_weight=found.weights,
        ax=figure.add_subplot(),
    )
    hits = int(np.sum(predicted == found.labels))
    words = (
        f"Actual and most probable classes: {hits:,} of {count(found.codes.size, 'row')} "
        f"({percent(hits / found.codes.size)}) are right."
    )
    return inline_svg(figure, name, words)


def reliability_plot(name: str, found: Judged, who: str) -> Plot:
    """Observed shares over predicted probabilities, in bins of at least about 20 rows."""
    figure = new_figure(WIDTH, WIDTH)
    rows = effective_rows(found.codes.size, found.weights)
    ReliabilityDisplay.from_predictions(
        found.labels,
        found.probabilities,
        list(found.classes),
        bins=int(np.clip(rows // _ROWS_OF_BIN, _FEWEST_BINS, BINS)),
        sample_weight=found.weights,
        name=who,
        ax=figure.add_subplot(),
    )
    what = f"class {found.classes[1]}" if len(found.classes) == 2 else "the most probable class"
    return inline_svg(figure, name, f"Observed share over the probability of {what}, {who}.")


def roc_plot(name: str, found: Judged) -> Plot | None:
    """True over false positive rates; None of rows of a single class."""
    if np.unique(found.codes).size < 2:
        return None
    figure = new_figure(WIDTH, WIDTH)
    _draw_curves(RocCurvesDisplay, found, figure)
    return inline_svg(figure, name, "True over false positive rate, as the threshold goes down.")


def precision_recall_plot(name: str, found: Judged) -> Plot | None:
    """Precision over recall; None of rows of a single class."""
    if np.unique(found.codes).size < 2:
        return None
    figure = new_figure(WIDTH, WIDTH)
    _draw_curves(PrecisionRecallCurvesDisplay, found, figure)
    return inline_svg(figure, name, "Precision over recall, as the threshold goes down.")


def _draw_curves(
    display: type[RocCurvesDisplay] | type[PrecisionRecallCurvesDisplay],
    found: Judged,
    figure: Any,
) -> None:
    display.from_predictions(
        found.labels,
        found.probabilities,
        list(found.classes),
        sample_weight=found.weights,
        ax=figure.add_subplot(),
    )
