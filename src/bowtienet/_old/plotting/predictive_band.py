"""Display of the predictive distribution along one feature: its mean and central bands."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._validation import chosen, shorten
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting._along import (
    as_drawn,
    find_column,
    forecast_along,
    has_two_values,
    n_averaged,
    partial_residuals,
    read_content,
    values_along,
)
from bowtienet._old.plotting.fitted import feature_names, open_rows, regressor_of, target_names
from bowtienet._old.prediction.intervals import check_coverage
from bowtienet._old.prediction.mixture import Mixture
from bowtienet._old.representation.kinds import DURATION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OTHERS = ("fixed", "average")
_LONGEST_CATEGORY = 22
"""Letters of a category below the axis."""
_SEED = 0
"""Of jitter: the same plot every time."""


class PredictiveBandDisplay:
    """Predictive mean and central intervals of the target along one feature.

    Along numbers and dates they are a line and bands; for categories, points with bars.

    Parameters
    ----------
    x : array (g,) of numbers or dates, or sequence of g texts
        Values of the feature.
    mean : array (g,)
        Predictive mean at each.
    intervals : array (g, 2, k), or (g, 2) for one coverage
        Lower and upper ends.
    coverages : sequence of k floats
        Probabilities of the intervals.
    data : pair of arrays, optional
        Values of the feature, and of the target or partial residuals of it, drawn as dots.
    feature_name, target_name : str
        For the labels of the axes.
    data_name : str
        What the dots are, for the legend.
    title : str, optional
        Above the plot; by default it names target and feature. "" for none.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    line_ : matplotlib artist
        The mean.
    bands_ : list of matplotlib artists
        One for each coverage, in their order.
    points_ : matplotlib artist or None
        The data.
    """

    def __init__(
        self,
        *,
        x: Any,
        mean: Any,
        intervals: Any,
        coverages: Sequence[float] = (0.5, 0.9),
        data: tuple[Any, Any] | None = None,
        feature_name: str = "x",
        target_name: str = "target",
        data_name: str = "data",
        title: str | None = None,
    ) -> None:
        self.coverages = np.atleast_1d(check_coverage(coverages))
        self.x, self.mean = _values(x), np.asarray(mean)
        self.is_categorical, self.is_dated = (self.x.dtype.kind == kind for kind in "OM")
        self.intervals = np.asarray(intervals).reshape(self.x.size, 2, self.coverages.size)
        self.data = None if data is None else (_values(data[0]), np.asarray(data[1]))
        self.feature_name, self.target_name = feature_name, target_name
        self.data_name = data_name
        words = f"Predicted {_axes.shorten(target_name)} along {_axes.shorten(feature_name)}"
        self.title = words if title is None else title

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        feature: str | int,
        *,
        others: str = "fixed",
        coverages: Sequence[float] = (0.5, 0.9),
        grid: Any = 100,
        y: Any = None,
        target: int = 0,
        target_name: str | None = None,
        ax: Axes | None = None,
        **line: Any,
    ) -> Self:
        """Draw what a fitted estimator predicts along one feature.

        Parameters
        ----------
        model : BowTieRegressor or pipeline that ends with one
            Fitted. The features of a pipeline are those that its last step sees.
        X : table (n, columns)
            Rows that say how the features are distributed.
        feature : str or int
            Name or number of the feature.
        others : {"fixed", "average"}
            Hold the other features at their medians (the lower of two) and most frequent
            categories, or mix the predictive distributions over the rows of X, or 200 of them at
            random, of counts 40.
        coverages : sequence of float
            Probabilities of the central bands.
        grid : int or array
            How many values of the feature, between those that 1 % of the rows are below and above,
            or which; dates and durations also as days. Up to 20 different numbers, and the 20 most
            frequent categories, are all shown.
        y : array (n,) or (n, outputs), or names, optional
            Targets of the rows, or columns of X that hold them. Dots are then partial residuals:
            the mean along the feature, and what each row (of 1,000 at most) is away from its own
            mean. They show whether the line is right, which the targets themselves do not: these
            move with the other features, too.
        target : int
            Which of several targets.
        target_name : str, optional
            For the label; by default its name in `y` or in the model.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **line
            Of the mean, for matplotlib's `plot`.
        """
        if others not in OTHERS:
            raise ValueError(f"unknown others {others!r}: choose one of {', '.join(OTHERS)}.")
        shares, network = np.atleast_1d(check_coverage(coverages)), regressor_of(model)
        source = open_rows(model, X, y)
        names, place = feature_names(network, source), chosen(target, network.n_outputs_, "target")
        index = find_column(names, feature)
        column = network.columns_[index]
        content = read_content(column, source, index)
        values = values_along(column, content, grid)
        average = others == "average"
        found = forecast_along(network, source, index, values, average=average)
        if isinstance(found, Mixture):
            found = found.of_target(place)
        two = np.ndim(grid) == 0 and has_two_values(column, content)
        shown = partial(_as_shown, column.kind, names=two)
        data = None
        if source.n_targets > 0:
            own, dots = partial_residuals(network, source, index, content, place, average=average)
            data = shown(own), dots
        target_words = target_name or target_names(network, source)[place]
        alone, unit = len(names) == 1, " in days" if column.kind == DURATION else ""
        words = f"averaged over {n_averaged(network, source)} rows"
        words = words if average else "others at typical values"
        display = cls(
            x=shown(values),
            mean=found.mean(),
            intervals=found.interval(shares),
            coverages=shares.tolist(),
            data=data,
            feature_name=names[index] + unit + ("" if alone else f" ({words})"),
            target_name=target_words,
            data_name="data" if alone else "partial residuals",
            title=f"Predicted {_axes.shorten(target_words)} along {_axes.shorten(names[index])}",
        )
        return display.plot(ax=ax, **line)

    @classmethod
    def from_predictions(
        cls, x: Any, mean: Any, intervals: Any, *, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Draw predictions along one feature; see the class for the arguments.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from bowtienet._old.plotting import PredictiveBandDisplay
        >>> ends = [[1.0, 3.0], [1.5, 4.5]]
        >>> ax = Figure(layout="constrained").add_subplot()
        >>> display = PredictiveBandDisplay.from_predictions(
        ...     [0.0, 1.0], [2.0, 3.0], ends, coverages=[0.9], ax=ax
        ... )
        >>> display.line_.get_ydata()
        array([2., 3.])
        """
        return cls(x=x, mean=mean, intervals=intervals, **settings).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, **line: Any) -> Self:
        """Draw again, elsewhere; with `ax` and `line` of `from_estimator`."""
        ax = _axes.axes_or_new(ax, 5.6, 3.8)
        draw = self._draw_categories if self.is_categorical else self._draw_line
        draw(ax, line)
        ax.set(xlabel=self.feature_name, ylabel=self.target_name)
        if not self.is_categorical and not self.is_dated:
            ax.locator_params(axis="x", nbins=6)  # long numbers would run into each other
            if np.all(np.asarray(self.x, dtype=float) % 1.0 == 0.0):
                _axes.whole_numbers(ax.xaxis)
            _axes.group_thousands(ax.xaxis)
        _axes.group_thousands(ax.yaxis)
        points = [] if self.points_ is None else [self.points_]
        handles = [self.line_, *self.bands_, *points]
        # Above the axes: bands and bars leave no corner free.
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": len(handles)}
        _axes.add_legend(ax, handles=handles, **place)
        _axes.add_title(ax, self.title, pad=24.0)
        _axes.tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_line(self, ax: Any, line: dict[str, Any]) -> None:
        order = np.argsort(self.x, kind="stable")
        x, ends = self.x[order], self.intervals[order]
        self.bands_ = [
            ax.fill_between(
                x,
                ends[:, 0, k],
                ends[:, 1, k],
                facecolor=shade,
                zorder=height,
                edgecolor=_axes.tint(_axes.POSITIVE, 0.6),
                lw=0.5,
                label=_axes.percent(coverage),
            )
            for k, (coverage, shade, height) in enumerate(self._shades())
        ]
        self.points_ = None if self.data is None else _draw_data(ax, *self.data, self.data_name)
        look: dict[str, Any] = {"color": "#00375A", "lw": 1.8, "label": "mean", "zorder": 3.0}
        (self.line_,) = ax.plot(x, self.mean[order], **(look | line))
        ax.margins(x=0.0)
        if self.is_dated:
            dates = _axes.load("dates")
            locator = dates.AutoDateLocator(minticks=3, maxticks=6)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))

    def _draw_categories(self, ax: Any, line: dict[str, Any]) -> None:
        places = np.arange(self.x.size)
        self.bands_ = [
            ax.vlines(
                places,
                self.intervals[:, 0, k],
                self.intervals[:, 1, k],
                color=shade,
                lw=9.0 + 5.0 * (height - 1.0),
                zorder=height,
                label=_axes.percent(coverage),
            )
            for k, (coverage, shade, height) in enumerate(self._shades())
        ]
        self.points_ = None
        if self.data is not None:
            where = {label: place for place, label in enumerate(self.x)}
            labels, targets = self.data
            kept = np.array([label in where for label in labels])
            at = np.array([where[label] for label in labels[kept]], dtype=float)
            # Beside the bars, which would hide them.
            aside = np.random.default_rng(_SEED).uniform(0.16, 0.36, size=at.size)
            self.points_ = _draw_data(ax, at + aside, targets[kept], self.data_name)
        look: dict[str, Any] = {"color": "#00375A", "linestyle": "none", "marker": "D", "ms": 5.0}
        look |= {"mec": "white", "mew": 0.8, "label": "mean", "zorder": 3.0}
        (self.line_,) = ax.plot(places, self.mean, **(look | line))
        letters_an_inch = 11.0
        room = letters_an_inch * ax.bbox.width / ax.figure.dpi
        names = [shorten(label, _LONGEST_CATEGORY) for label in self.x]
        crowded = self.x.size * (max(map(len, names)) + 1) > room
        turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        ax.set_xticks(places, names, **turned)
        ax.set_xlim(-0.6, self.x.size - 0.4)

    def _shades(self) -> list[tuple[float, tuple[float, ...], float]]:
        """Coverage, colour and height of each band: narrow ones are darker and on top."""
        narrower = np.argsort(np.argsort(-self.coverages, kind="stable"))
        steps = narrower / max(self.coverages.size - 1, 1)
        return [
            (float(coverage), _axes.tint(_axes.POSITIVE, 0.22 + 0.28 * step), 1.0 + 0.9 * step)
            for coverage, step in zip(self.coverages, steps, strict=True)
        ]


def _values(x: Any) -> np.ndarray:
    """Values of the feature as they are drawn: texts as objects, datetime64 or numbers."""
    found = np.asarray(x)
    if found.dtype.kind == "O" and all(isinstance(value, datetime.date) for value in found):
        return found.astype("datetime64[us]")
    return found.astype(object) if found.dtype.kind in "SU" else found


def _as_shown(kind: str, values: np.ndarray, *, names: bool) -> np.ndarray:
    """Values as they are drawn: dates as such, and 0 and 1 as names where there is nothing else."""
    if names:
        return np.array([f"{value:g}" for value in values], dtype=object)
    return as_drawn(values, kind)


def _draw_data(ax: Any, x: Any, y: Any, name: str) -> Any:
    return ax.scatter(
        x, y, s=7.0, color=_axes.INK, alpha=0.45, linewidths=0.0, label=name, zorder=2.5
    )
