"""Predicted against actual values of numbers and counts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.metrics import r2_score

from bowtienet._format import number
from bowtienet.evaluation.competitors import features_and_targets
from bowtienet.plotting import _display
from bowtienet.plotting._display import BLUE, ORANGE, PALE, Display


class PredictedActualDisplay(Display):
    """Actual values against predicted means; targets outside their intervals are orange.

    On the diagonal the mean is right. Intervals are grey bars, drawn for up to 300 rows.

    Parameters
    ----------
    actual, predicted : array (n,)
        Targets and predictive means.
    intervals : array (n, 2)
        Central intervals.
    coverage : float
        Stated share of targets in the intervals.
    name : str
        The target's name.
    """

    def __init__(
        self, *, actual: Any, predicted: Any, intervals: Any, coverage: float, name: str = "y"
    ) -> None:
        self.actual, self.predicted = np.asarray(actual), np.asarray(predicted)
        self.intervals, self.coverage, self.name = np.asarray(intervals), coverage, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        coverage: float = 0.9,
        target: int = 0,
        ax: Any = None,
    ) -> Self:
        """Draw predictive means and intervals of the rows."""
        X, y = features_and_targets(X, y)
        return cls(
            actual=_display.column_of(y, target),
            predicted=_display.column_of(estimator.predict(X), target),
            intervals=_display.interval_of(estimator, X, coverage, target),
            coverage=coverage,
            name=_display.target_name(estimator, target),
        ).plot(ax)

    def _draw(self, ax: Any) -> None:
        low, high = self.intervals.T
        outside = (self.actual < low) | (self.actual > high)
        both = np.concatenate([self.actual, self.predicted])
        margin = 0.04 * float(np.ptp(both)) or 1.0
        limits = float(np.min(both)) - margin, float(np.max(both)) + margin
        if len(self.actual) <= 300:  # more hide each other
            ax.vlines(self.predicted, low, high, color=PALE, linewidth=0.8, zorder=1)
        ax.plot(limits, limits, color="dimgrey", linewidth=1.0, linestyle="--", zorder=2)
        size = float(np.clip(4000.0 / len(self.actual), 4.0, 22.0))
        style = {"s": size, "linewidths": 0.0, "rasterized": len(self.actual) > 2000}
        for chosen, color, alpha in ((~outside, BLUE, 0.55), (outside, ORANGE, 0.9)):
            dots = self.predicted[chosen], self.actual[chosen]
            ax.scatter(*dots, color=color, alpha=alpha, **style)
        ax.set(xlim=limits, ylim=limits)
        _display.plain_numbers(ax.xaxis, ax.yaxis)
        explained = number(float(r2_score(self.actual, self.predicted)), 2)
        share = f"{100.0 * np.mean(outside):.0f} % of {len(outside):,}"
        title = f"R² {explained}; orange: {share} outside {100.0 * self.coverage:g} % intervals"
        _display.label(ax, title, f"predicted {self.name}", f"actual {self.name}")
