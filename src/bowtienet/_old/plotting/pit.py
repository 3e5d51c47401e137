"""Display of the probability integral transform, flat if the predictive distribution is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._validation import whole
from bowtienet._old.evaluation.checks import effective_rows
from bowtienet._old.evaluation.metrics import binomial_band
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting._scored import ScoredDisplay, pit_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HINT = "(U shape: overconfident; hump: underconfident)"


class PitHistogramDisplay(ScoredDisplay):
    """Density of F(y), the probability that was predicted for a target or anything below it.

    It is 1 everywhere if the predictive distribution is right. The band holds every bar by itself
    with the given probability, if only chance moves it.

    Parameters
    ----------
    values : array (n,)
        F(y) of every row.
    bins : int
        Number of bars, equally wide.
    probability : float
        That of the band.
    sample_weight : array (n,), optional
        How many times each row counts; the band is that of the effective number of rows.

    Attributes
    ----------
    edges, heights : array (bins + 1,), array (bins,)
        What the bars show.
    low, high : float
        Ends of the band.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    bars_, band_, line_ : matplotlib artists
    """

    def __init__(
        self,
        *,
        values: Any,
        bins: int = 10,
        probability: float = 0.95,
        sample_weight: Any = None,
    ) -> None:
        self.values = np.asarray(values, dtype=float)
        self.bins, self.probability = whole(bins, "bins"), probability
        n_rows = effective_rows(self.values.size, sample_weight)
        self.heights, self.edges = np.histogram(
            self.values, bins=self.bins, range=(0.0, 1.0), density=True, weights=sample_weight
        )
        shares = binomial_band([1.0 / self.bins], n_rows, probability)
        self.low, self.high = (float(share[0]) * self.bins for share in shares)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        distribution: Any,
        *,
        target: int = 0,
        bins: int = 10,
        probability: float = 0.95,
        sample_weight: Any = None,
        ax: Axes | None = None,
        **bars: Any,
    ) -> Self:
        """Draw where targets lie in their predictive distributions.

        Parameters
        ----------
        y, distribution, target
            Targets (n,) or (n, outputs), the mixture that `predict_dist` gives, and which target;
            or counts (n,) and a distribution with `logpmf`, whose F(y) is randomised.
        bins, probability, sample_weight :
            Those of the class.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **bars
            For matplotlib's `bar`.
        """
        values = pit_values(y, distribution, target)
        display = cls(
            values=values, bins=bins, probability=probability, sample_weight=sample_weight
        )
        return display.plot(ax=ax, **bars)

    def plot(self, *, ax: Axes | None = None, **bars: Any) -> Self:
        """Draw again, elsewhere; with `ax` and `bars` as above."""
        ax = _axes.axes_or_new(ax, 5.0, 3.6)
        look: dict[str, Any] = {
            "color": _axes.tint(_axes.POSITIVE, 0.45),
            "edgecolor": _axes.POSITIVE,
            "lw": 0.8,
        }
        self.bars_ = ax.bar(
            self.edges[:-1], self.heights, np.diff(self.edges), align="edge", **(look | bars)
        )
        self.band_ = ax.axhspan(
            self.low,
            self.high,
            facecolor=_axes.tint(_axes.MUTED, 0.25),
            edgecolor="none",
            label=f"by chance, {_axes.percent(self.probability)}",
            zorder=0,
        )
        for end in (self.low, self.high):
            ax.axhline(end, color=_axes.MUTED, lw=0.8, linestyle=":", zorder=3)
        self.line_ = ax.axhline(
            1.0, color=_axes.INK, lw=1.2, linestyle=(0, (5, 3)), label="calibrated", zorder=3
        )
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.3 * max(self.high, float(np.max(self.heights)))))
        ax.set(xlabel=f"probability integral transform, F(y)\n{_HINT}", ylabel="density")
        _axes.add_title(ax, "PIT histogram: flat if calibrated")
        _axes.add_legend(ax, loc="upper center", ncols=2)
        _axes.tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
