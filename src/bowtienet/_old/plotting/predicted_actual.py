"""Display of predictions against what happened, with their predictive intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._validation import whole
from bowtienet._old.evaluation.checks import read_targets, single_coverage
from bowtienet._old.evaluation.count_metrics import is_discrete
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting._scored import ScoredDisplay, one_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SEED = 0
"""Of the rows that are drawn: the same plot every time."""


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
    rows : int array
        Those that were drawn last.
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
        distribution: Any,
        *,
        target: int = 0,
        coverage: float = 0.9,
        target_name: str = "target",
        most_rows: int = 500,
        ax: Axes | None = None,
        **points: Any,
    ) -> Self:
        """Draw predictive distributions against targets.

        Parameters
        ----------
        y, distribution, target
            Targets (n,) or (n, outputs), the mixture that `predict_dist` gives, and which target;
            or counts (n,) and a distribution with `logpmf`.
        coverage : float
            Probability of the central intervals.
        target_name : str
            For the labels of the axes.
        most_rows : int
            Of more rows a random sample is drawn; the share outside is that of all rows.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **points
            For matplotlib's `plot`, of all points.
        """
        values, forecast = (
            (read_targets(y).ravel(), distribution)
            if is_discrete(distribution)
            else one_target(y, distribution, target)
        )
        display = cls(
            actual=values,
            predicted=forecast.mean(),
            intervals=forecast.interval(single_coverage(coverage)),
            coverage=coverage,
            target_name=target_name,
        )
        return display.plot(most_rows=most_rows, ax=ax, **points)

    def plot(self, *, most_rows: int = 500, ax: Axes | None = None, **points: Any) -> Self:
        """Draw again, elsewhere; with the last arguments of `from_predictions`."""
        order = np.random.default_rng(_SEED).permutation(self.actual.size)
        self.rows = np.sort(order[: whole(most_rows, "most_rows")])
        some = "" if self.rows.size == self.actual.size else f" ({self.rows.size:,} rows drawn)"
        ax = _axes.axes_or_new(ax, 5.4, 4.6)
        self.bars_ = ax.vlines(
            self.predicted[self.rows],
            *self.intervals[self.rows].T,
            color=_axes.tint(_axes.POSITIVE, 0.3),
            lw=1.0,
            zorder=1,
            label=f"{_axes.percent(self.coverage)} interval{some}",
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
        _axes.add_title(ax, f"Actual against predicted {_axes.shorten(self.target_name)}")
        _axes.add_legend(ax, loc="upper left")  # off the diagonal, where the rows are
        _axes.tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_points(self, ax: Any, points: dict[str, Any]) -> None:
        outside = self.outside[self.rows]
        share = f"{100.0 * np.mean(self.outside):.3g} % of {self.actual.size:,} rows"
        inner: dict[str, Any] = {"marker": "o", "color": _axes.POSITIVE, "ms": 3.2, "mew": 0.0}
        outer: dict[str, Any] = {"marker": "X", "color": _axes.NEGATIVE, "ms": 6.4, "mew": 0.4}
        inner |= {"label": "inside", "zorder": 3}
        outer |= {"label": f"outside: {share}", "zorder": 4, "mec": "white"}
        artists = []
        for rows, look in ((self.rows[~outside], inner), (self.rows[outside], outer)):
            look = {"linestyle": "none"} | look | points
            artists += ax.plot(self.predicted[rows], self.actual[rows], **look)
        self.inside_points_, self.outside_points_ = artists
