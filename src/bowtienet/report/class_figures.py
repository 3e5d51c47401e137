"""The plots of a report about classes: displays of `bowtienet.plotting`, drawn in `page_style`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet.plotting import (
    ConfusionDisplay,
    PrecisionRecallCurvesDisplay,
    ReliabilityDisplay,
    RocCurvesDisplay,
)
from bowtienet.report.figures import WIDTH
from bowtienet.report.svg import Plot, inline_svg, new_figure
from bowtienet.report.wording import count, percent


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


def reliability_plot(name: str, found: Judged, baseline: np.ndarray | None) -> Plot:
    """Observed shares over predicted probabilities, of the logistic regression too."""
    figure = new_figure(WIDTH, WIDTH)
    ax = figure.add_subplot()
    forecasts = {"this model": found.probabilities, "logistic regression": baseline}
    for words, probabilities in forecasts.items():
        if probabilities is not None:
            ReliabilityDisplay.from_predictions(
                found.labels,
                probabilities,
                list(found.classes),
                sample_weight=found.weights,
                name=words,
                ax=ax,
            )
    what = f"class {found.classes[1]}" if len(found.classes) == 2 else "the most probable class"
    return inline_svg(figure, name, f"Observed share over the probability of {what}.")


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
