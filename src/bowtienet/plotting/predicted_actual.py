"""Display of predictions against what happened, with their predictive intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._validation import whole
from bowtienet.evaluation.checks import single_coverage
from bowtienet.plotting import _axes
from bowtienet.plotting._scored import ScoredDisplay, one_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bowtienet.prediction.mixture import GaussianMixture

_SEED = 0
"""Of the rows that are drawn: the same plot every time."""
_MOST_BARS = 300


class PredictedActualDisplay(ScoredDisplay):
    """Actual targets over their predicted means, each with the bar of its predictive interval.

    A point lies inside its vertical bar if the interval holds the target; the others have another
    marker. On the dashed line predictions are exact.

    Parameters
    ----------
    actual, predicted : array (n,)
        Targets and predicted means.
    intervals : array (n, 2)
        Lower and upper ends.
    coverage : float
        Probability that the intervals promise.
    target_name : str
        For the labels of the axes.

    Attributes
    ----------
    outside : bool array (n,)
        Targets that lie outside their intervals.
    rows_with_points, rows_with_bars : int array
        Rows that were drawn last.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    inside_points_, outside_points_, bars_, diagonal_ : matplotlib artists
    """

    _names_its_target = True

    def __init__(
        self,
        *,
        actual: Any,
        predicted: Any,
        intervals: Any,
        coverage: float = 0.9,
        target_name: str = "target",
    ) -> None:
        self.actual, self.predicted = np.asarray(actual), np.asarray(predicted)
        self.intervals = np.asarray(intervals)
        self.coverage = single_coverage(coverage)
        self.target_name = target_name
        low, high = self.intervals.T
        self.outside = (self.actual < low) | (self.actual > high)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        distribution: GaussianMixture,
        *,
        target: int = 0,
        coverage: float = 0.9,
        target_name: str = "target",
        most_rows: int = 2000,
        ax: Axes | None = None,
        **points: Any,
    ) -> Self:
        """Draw predictive distributions against targets.

        Parameters
        ----------
        y : array (n,) or (n, outputs)
            Targets.
        distribution : GaussianMixture
            Prediction for each, as `predict_dist` gives it.
        target : int
            Which of several targets.
        coverage : float
            Probability of the central intervals.
        target_name : str
            For the labels of the axes.
        most_rows : int
            Of more rows a random sample is drawn, and bars for at most 300 of them; the share
            outside is that of all rows.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **points
            For matplotlib's `plot`, of all points.
        """
        values, forecast = one_target(y, distribution, target)
        display = cls(
            actual=values,
            predicted=forecast.mean(),
            intervals=forecast.interval(single_coverage(coverage)),
            coverage=coverage,
            target_name=target_name,
        )
        return display.plot(most_rows=most_rows, ax=ax, **points)

    def plot(self, *, most_rows: int = 2000, ax: Axes | None = None, **points: Any) -> Self:
        """Draw again, elsewhere; with the last arguments of `from_predictions`."""
        order = np.random.default_rng(_SEED).permutation(self.actual.size)
        self.rows_with_points = np.sort(order[: whole(most_rows, "most_rows")])
        self.rows_with_bars = np.sort(order[: min(most_rows, _MOST_BARS)])
        ax = _axes.axes_or_new(ax, 5.4, 4.6)
        low, high = self.intervals[self.rows_with_bars].T
        self.bars_ = ax.vlines(
            self.predicted[self.rows_with_bars],
            low,
            high,
            color=_axes.tint(_axes.POSITIVE, 0.3),
            lw=1.0,
            zorder=1,
            label=f"{_axes.percent(self.coverage)} interval" + self._remark(self.rows_with_bars),
        )
        middle = float(np.median(self.predicted))
        look: dict[str, Any] = {
            "color": _axes.MUTED,
            "lw": 1.2,
            "zorder": 2,
            "linestyle": (0, (5, 3)),
        }
        self.diagonal_ = ax.axline((middle, middle), slope=1.0, label="exact", **look)
        self._draw_points(ax, points)
        ax.set(xlabel=f"predicted {self.target_name}", ylabel=f"actual {self.target_name}")
        ax.locator_params(axis="x", nbins=5)  # long numbers would run into each other
        for axis in (ax.xaxis, ax.yaxis):
            _axes.group_thousands(axis)
        _axes.add_legend(ax, loc="upper left")  # off the diagonal, where the rows are
        _axes.tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_points(self, ax: Any, points: dict[str, Any]) -> None:
        drawn = self.rows_with_points
        inside, outside = drawn[~self.outside[drawn]], drawn[self.outside[drawn]]
        size = 3.2 if drawn.size <= 1000 else 2.2
        share = f"{100.0 * np.mean(self.outside):.3g} %"
        looks: tuple[dict[str, Any], ...] = (
            {"marker": "o", "color": _axes.POSITIVE, "ms": size, "mew": 0.0},
            {"marker": "X", "color": _axes.NEGATIVE, "ms": 2.0 * size, "mec": "white", "mew": 0.4},
        )
        looks[0]["label"] = "inside" + self._remark(drawn)
        looks[1]["label"] = f"outside: {share} of {self.actual.size} rows"
        artists = []
        for order, (rows, look) in enumerate(zip((inside, outside), looks, strict=True)):
            look = {"linestyle": "none", "zorder": 3 + order} | look | points
            artists += ax.plot(self.predicted[rows], self.actual[rows], **look)
        self.inside_points_, self.outside_points_ = artists

    def _remark(self, rows: np.ndarray) -> str:
        return "" if rows.size == self.actual.size else f" ({rows.size} rows drawn)"
