"""Display of the calibration of class probabilities: predicted, and how often they came true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old.evaluation.class_checks import read_forecast
from bowtienet._old.evaluation.class_metrics import BINS, Reliability, judged, reliability_curve
from bowtienet._old.evaluation.metrics import binomial_band
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting._scored import ClassifiedDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVE = "reliability curve"
_EDGES = np.linspace(0.0, 1.0, 21)
"""Of the shares below the diagram."""
_BELOW = (0.0, -0.24, 1.0, 0.18)
"""Place of the shares: left, bottom, width and height, in those of the axes above."""


class ReliabilityDisplay(ClassifiedDisplay):
    """How often a class came true over its predicted probability, in bins of equal count.

    On the diagonal probabilities are right; below it they are too high. If they are right, a
    vertical bar holds its point with the given probability or more: its ends are quantiles of
    Binomial(n, p) / n, with the n rows of the bin and their mean probability p. Bars hold one by
    one, so of 15 points one may be outside by chance; those outside have rings. Below are shares of
    the rows by predicted probability.

    Parameters
    ----------
    curve : Reliability
        Bins, as `reliability_curve` gives them.
    values : array (n,)
        Predicted probability of every row, for the shares below.
    weights : array (n,), optional
        How many times each row counts there.
    label : str, optional
        Name of the class; None for the predicted class of each row.
    probability : float
        That of the bars of chance.
    name : str, optional
        For the legend.

    Attributes
    ----------
    low, high : array (bins,)
        Ends of the bars of chance.
    outside : bool array (bins,)
        Points beyond them.
    shares : array (20,)
        Shares of the rows below, in twentieths of the probability.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    below_ax_ : matplotlib axes
        Those of the shares.
    line_, outside_, band_, diagonal_, shares_ : matplotlib artists
        The diagonal is None where an earlier curve on the same axes has drawn it.
    """

    def __init__(
        self,
        *,
        curve: Reliability,
        values: Any,
        weights: Any = None,
        label: str | None = None,
        probability: float = 0.95,
        name: str | None = None,
    ) -> None:
        self.curve, self.label, self.name = curve, label, name
        self.probability = probability
        ends = [
            binomial_band([p], int(n), probability)
            for p, n in zip(curve.predicted, curve.n_rows, strict=True)
        ]
        self.low, self.high = np.array(ends)[..., 0].T
        self.outside = (curve.observed < self.low) | (curve.observed > self.high)
        counts = np.histogram(np.clip(values, 0.0, 1.0), bins=_EDGES, weights=weights)[0]
        self.shares = counts / np.sum(counts)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        probabilities: Any,
        classes: Any,
        *,
        label: Any = None,
        bins: int = BINS,
        probability: float = 0.95,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **line: Any,
    ) -> Self:
        """Draw how calibrated class probabilities are.

        Parameters
        ----------
        y, probabilities, classes
            Labels (n,), probabilities (n, C) or (n,) of the second of two classes, and the classes.
        label : class, optional
            Whose probabilities are drawn, against all others. By default the second of two classes;
            of more classes the predicted one of each row, with the share that is right.
        bins : int
            Number of bins of equal count.
        probability : float
            That of the bars of chance.
        sample_weight : array (n,), optional
            How many times each row counts; bars of chance are those of the effective number.
        name : str, optional
            For the legend.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default. Several curves may share axes; the shares
            stand below them.
        **line
            Of the points, for matplotlib's `plot`.
        """
        found = read_forecast(y, probabilities, classes, sample_weight)
        if label is None and len(found.classes) == 2:
            label = found.classes[1]
        display = cls(
            curve=reliability_curve(
                y, probabilities, classes, label=label, bins=bins, sample_weight=sample_weight
            ),
            values=judged(found, label)[0],
            weights=found.weights,
            label=None if label is None else str(label),
            probability=probability,
            name=name,
        )
        return display.plot(ax=ax, **line)

    def plot(self, *, ax: Axes | None = None, **line: Any) -> Self:
        """Draw again, elsewhere or beside another curve; with `ax` and `line` as above."""
        axes: Any = _axes.axes_or_new(ax, 4.4, 5.2)
        earlier = sum(artist.get_gid() == _CURVE for artist in axes.lines)
        color, style, marker = _axes.CURVES[earlier % len(_axes.CURVES)]
        if earlier == 0:
            self.below_ax_ = _add_axes_below(axes)
            self.diagonal_ = _draw_diagonal(axes)
        else:
            self.below_ax_ = next(child for child in axes.child_axes if child.get_gid() == _CURVE)
            self.diagonal_ = None
        look: dict[str, Any] = {"color": color, "linestyle": style, "lw": 1.0, "marker": marker}
        look |= {"markersize": 4.5, "zorder": 3, "label": self.name or "observed"}
        (self.line_,) = axes.plot(self.curve.predicted, self.curve.observed, **(look | line))
        self.line_.set_gid(_CURVE)
        shade = _axes.tint(self.line_.get_color(), 0.25)
        ends = (self.curve.predicted, self.low, self.high)
        self.band_ = axes.vlines(*ends, color=shade, lw=5.0, zorder=1)
        if earlier == 0:
            self.band_.set_label(f"by chance, {_axes.percent(self.probability)}")
        self._draw_outside(axes)
        self._draw_shares(self.line_.get_color(), style)
        self._name_axes(axes, earlier)
        _axes.add_legend(axes, loc="upper left")
        _axes.add_title(axes, "Reliability of class probabilities")
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _draw_outside(self, ax: Any) -> None:
        """Rings around points beyond their bars of chance."""
        at = self.curve.predicted[self.outside], self.curve.observed[self.outside]
        look: dict[str, Any] = {"marker": "o", "markersize": 9.0, "fillstyle": "none"}
        look |= {"color": _axes.INK, "linestyle": "none", "mew": 0.9, "zorder": 4}
        if self.outside.any():
            look["label"] = f"outside: {self.outside.sum()} of {self.outside.size}"
        (self.outside_,) = ax.plot(*at, **look)

    def _draw_shares(self, color: Any, style: str) -> None:
        earlier = (float(np.max(drawn.get_data().values)) for drawn in self.below_ax_.patches)
        top = max(earlier, default=0.0)
        look: dict[str, Any] = {"color": color, "linestyle": style, "lw": 1.2}
        self.shares_ = self.below_ax_.stairs(self.shares, _EDGES, **look)
        self.below_ax_.set_ylim(0.0, 1.08 * max(top, float(np.max(self.shares))))

    def _name_axes(self, ax: Any, earlier: int) -> None:
        words = "confidence in the predicted class", "share that is right"
        if self.label is not None:
            name = _axes.shorten(self.label)
            words = f"predicted probability of {name}", f"observed share of {name}"
        if earlier > 0 and ax.get_ylabel() != words[1]:
            words = "predicted probability", "observed share"
        ax.set(ylabel=words[1])
        self.below_ax_.set(xlabel=words[0])


def _add_axes_below(ax: Any) -> Any:
    """Axes of the shares, which have the numbers of the common horizontal axis."""
    below = ax.inset_axes(_BELOW, sharex=ax)
    below.set_gid(_CURVE)
    below.set(ylabel="rows")
    below.yaxis.set_major_formatter(_axes.load("ticker").PercentFormatter(1.0, 0, " %"))
    _axes.tidy(below)
    ax.tick_params(axis="x", labelbottom=False)
    return below


def _draw_diagonal(ax: Any) -> Any:
    look: dict[str, Any] = {"color": _axes.MUTED, "lw": 1.0, "linestyle": (0, (5, 3))}
    (diagonal,) = ax.plot([0.0, 1.0], [0.0, 1.0], label="calibrated", zorder=2, **look)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    _axes.tidy(ax)
    return diagonal
