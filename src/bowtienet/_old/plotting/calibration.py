"""Display of calibration: how often targets lie in central intervals, and how often they should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old.evaluation.checks import effective_rows
from bowtienet._old.evaluation.metrics import binomial_band, coverage_curve
from bowtienet._old.plotting._axes import (
    CURVES,
    MUTED,
    add_legend,
    add_title,
    axes_or_new,
    percent,
    tidy,
    tint,
)
from bowtienet._old.plotting._scored import ScoredDisplay, pit_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVE = "calibration curve"


class CalibrationCurveDisplay(ScoredDisplay):
    """Observed against nominal coverage c of central intervals, with the band of chance.

    The curve is ``mean 1[|2 F(y) - 1| <= c]``. Below the diagonal intervals are too narrow, above
    it too wide. In the band, whose half-width is about 2 √(c (1 - c) / n), it may be by chance; the
    band holds level by level; of curves that share axes it is that of the first.

    Parameters
    ----------
    levels, observed : array (m,)
        Nominal and observed coverages.
    low, high : array (m,)
        Ends of the band of chance around the diagonal.
    probability : float
        That of the band.
    name : str, optional
        For the legend.
    n_rows : int, optional
        The n of the band, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    line_, band_, diagonal_ : matplotlib artists
        Band and diagonal are None where an earlier curve on the same axes has drawn them.
    """

    def __init__(
        self,
        *,
        levels: Any,
        observed: Any,
        low: Any,
        high: Any,
        probability: float = 0.95,
        name: str | None = None,
        n_rows: int | None = None,
    ) -> None:
        self.levels, self.observed = np.asarray(levels), np.asarray(observed)
        self.low, self.high = np.asarray(low), np.asarray(high)
        self.probability = probability
        self.name, self.n_rows = name, n_rows

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        distribution: Any,
        *,
        target: int = 0,
        levels: Any = None,
        probability: float = 0.95,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **line: Any,
    ) -> Self:
        """Draw how calibrated a predicted distribution is.

        Parameters
        ----------
        y, distribution, target
            Targets (n,) or (n, outputs), the mixture that `predict_dist` gives, and which target;
            or counts (n,) and a distribution with `logpmf`, whose F(y) is randomised.
        levels : array (m,), optional
            Nominal coverages; 0.05, 0.1, ..., 0.95 by default.
        probability : float
            That of the band of chance.
        sample_weight : array (n,), optional
            How many times each row counts; the band is that of the effective number of rows.
        name : str, optional
            For the legend.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default. Several curves may share axes.
        **line
            Of the curve, for matplotlib's `plot`.
        """
        values = pit_values(y, distribution, target)
        nominal, observed = coverage_curve(values, levels, sample_weight=sample_weight)
        n_rows = effective_rows(values.size, sample_weight)
        low, high = binomial_band(nominal, n_rows, probability)
        display = cls(
            levels=nominal,
            observed=observed,
            low=low,
            high=high,
            probability=probability,
            name=name,
            n_rows=n_rows,
        )
        return display.plot(ax=ax, **line)

    def plot(self, *, ax: Axes | None = None, **line: Any) -> Self:
        """Draw again, elsewhere or beside another curve; with `ax` and `line` as above."""
        ax = axes_or_new(ax, 4.2, 4.2)
        earlier = sum(artist.get_gid() == _CURVE for artist in ax.lines)
        color, style, marker = CURVES[earlier % len(CURVES)]
        self.diagonal_ = _draw_diagonal(ax) if earlier == 0 else None
        self.band_ = self._draw_band(ax) if earlier == 0 else None
        look: dict[str, Any] = {"color": color, "linestyle": style, "marker": marker}
        look |= {"markersize": 4.0, "zorder": 3, "label": self.name or "observed"}
        self.line_ = ax.plot(self.levels, self.observed, **(look | line))[0]
        self.line_.set_gid(_CURVE)
        add_legend(ax, loc="upper left")
        add_title(ax, "Calibration of central intervals")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_band(self, ax: Any) -> Any:
        """The band of chance; at 0 and 1 there is none, so it closes there."""
        rows = "" if self.n_rows is None else f", {self.n_rows:,} rows"
        x, low, high = (
            np.concatenate([[0.0], values, [1.0]]) for values in (self.levels, self.low, self.high)
        )
        order = np.argsort(x, kind="stable")
        look: dict[str, Any] = {"color": tint(MUTED, 0.3), "lw": 0.0, "zorder": 1}
        label = f"by chance, {percent(self.probability)}{rows}"
        return ax.fill_between(x[order], low[order], high[order], label=label, **look)


def _draw_diagonal(ax: Any) -> Any:
    ends = np.array([0.0, 1.0])
    (diagonal,) = ax.plot(
        ends, ends, color=MUTED, lw=1.0, linestyle=(0, (5, 3)), label="calibrated", zorder=2
    )
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    ax.set(xlabel="nominal coverage", ylabel="observed coverage")
    tidy(ax)
    return diagonal
