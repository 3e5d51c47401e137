"""Calibration: coverage at every level and the PIT histogram, or the reliability of classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from bowtienet._format import number
from bowtienet.evaluation.competitors import features_and_targets
from bowtienet.evaluation.scores import calibration_error, chance_band, pit
from bowtienet.plotting._display import BLUE, PALE, SKY, Display, column_of, label, percent

BINS = 10
"""Bins of histograms, and of reliability with equally many rows each."""


class CalibrationDisplay(Display):
    """Observed against stated probabilities; grey is the 95 % range of a calibrated model.

    For numbers and counts, the share of targets in central intervals of every level, and the
    histogram of the probability integral transform (randomised for counts) with its 95 % range: a
    hump in the middle means intervals too wide, a hollow too narrow, a slope biased predictions.
    For classes, the share of hits against the stated probability, in bins of equally many rows, and
    the histogram of these probabilities.

    Parameters
    ----------
    pit : array (n,), optional
        F(y) of numbers or counts.
    probabilities, hits : arrays (n,), optional
        With two classes the probability of the second and whether it occurred; with more that of
        the predicted class and whether it was right.
    name : str
        Whose probabilities these are.
    note : str
        The title.
    """

    def __init__(
        self,
        *,
        pit: Any = None,
        probabilities: Any = None,
        hits: Any = None,
        name: str = "",
        note: str = "",
    ) -> None:
        self.pit, self.probabilities, self.hits = pit, probabilities, hits
        self.name, self.note = name, note

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, target: int = 0, ax: Any = None
    ) -> Self:
        """Draw the calibration of the predictive distributions or probabilities of the rows."""
        X, y = features_and_targets(X, y)
        if not hasattr(estimator, "predict_proba"):
            values = column_of(pit(y, estimator.predict_dist(X)), target)
            inside = 100.0 * np.mean(np.abs(2.0 * values - 1.0) <= 0.9)
            low, high = (100.0 * end for end in chance_band(0.9, len(values)))
            note = f"90 % intervals hold {inside:.0f} % (calibrated: {low:.0f} to {high:.0f} %)"
            return cls(pit=values, note=note).plot(ax)
        classes, shares = estimator.classes_, estimator.predict_proba(X)
        error, by_chance = calibration_error(y, shares, classes)
        note = f"calibration error {number(error, 2)} (calibrated: {number(by_chance, 2)})"
        if len(classes) == 2:
            hits, stated, name = y == classes[1], shares[:, 1], f"probability of {classes[1]}"
        else:
            hits, stated = classes[np.argmax(shares, axis=1)] == y, shares.max(axis=1)
            name = "probability of the predicted class"
        return cls(probabilities=stated, hits=hits, name=name, note=note).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax.plot([0.0, 1.0], [0.0, 1.0], color="dimgrey", linewidth=1.0, linestyle="--", zorder=2)
        draw = self._draw_reliability if self.pit is None else self._draw_coverage
        draw(ax)
        percent(ax.xaxis, ax.yaxis)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))

    def _draw_coverage(self, ax: Any) -> None:
        levels = np.linspace(0.0, 1.0, 101)
        observed = np.mean(np.abs(2.0 * self.pit - 1.0) <= levels[:, None], axis=1)
        ax.fill_between(levels, *chance_band(levels, len(self.pit)), color=PALE, linewidth=0.0)
        ax.plot(levels, observed, color=BLUE, linewidth=2.0, zorder=3)
        corner = (0.05, 0.66) if observed.mean() <= 0.5 else (0.63, 0.08)  # away from the line
        inset = self._inset(ax, corner, self.pit, "PIT of targets")
        low, high = (BINS * end for end in chance_band(1.0 / BINS, len(self.pit)))
        inset.hlines([low, high], 0.0, 1.0, color="dimgrey", linewidth=1.0, linestyle="--")
        label(ax, self.note, "stated coverage of intervals", "observed coverage")

    def _draw_reliability(self, ax: Any) -> None:
        order = np.argsort(self.probabilities, kind="stable")
        groups = np.array_split(order, min(BINS, len(order)))
        stated = [np.mean(self.probabilities[rows]) for rows in groups]
        observed = [np.mean(self.hits[rows]) for rows in groups]
        for rows, share in zip(groups, stated, strict=True):
            ax.vlines(share, *chance_band(share, len(rows)), color=PALE, linewidth=7.0, zorder=1)
        ax.plot(stated, observed, "o-", color=BLUE, linewidth=1.2, markersize=5.0, zorder=3)
        self._inset(ax, (0.05, 0.66), self.probabilities, "rows")
        label(ax, self.note, self.name, "observed share")

    def _inset(self, ax: Any, corner: tuple[float, float], values: Any, title: str) -> Any:
        """A small histogram."""
        inset = ax.inset_axes((*corner, 0.35, 0.26))
        inset.hist(values, bins=BINS, range=(0.0, 1.0), density=True, color=SKY, ec="white")
        inset.set(xlim=(0.0, 1.0), xticks=[0.0, 1.0], yticks=[])
        inset.tick_params(labelsize="x-small")
        inset.set_title(title, fontsize="x-small", pad=2.0)
        inset.spines[["top", "right", "left"]].set_visible(False)
        return inset
