"""Display of the evidence bound: how it rose, and what it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old.plotting._axes import (
    POSITIVE,
    add_title,
    group_thousands,
    new_figure,
    signed,
    tidy,
    whole_numbers,
)
from bowtienet._old.plotting._bars import draw_bars
from bowtienet._old.plotting.fitted import network_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROOM = 3.0
"""Height of the plot, in heights of the second half: the first sweeps may come from below."""
_STILL = 1e-9
"""The least height of the second half that counts, relative to the whole rise."""


class ElboDisplay:
    """The evidence bound after every sweep, and by block at the end, of the heaviest member.

    The first panel shows as much of the beginning as leaves the second half readable. In the second
    the terms of the gates and of their Pólya-Gamma variables, which are large at low temperature
    and cancel, are one bar.

    Parameters
    ----------
    history : array (sweeps,)
        The bound after every sweep, or step.
    terms : mapping of str to float
        The last bound by block.
    unit : {"sweep", "step"}
        What the bound was computed after.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and its two axes
        Where it was drawn last; after a single sweep there is only the bound by block.
    line_, bars_ : matplotlib artists
        The line is None after a single sweep.
    """

    def __init__(self, *, history: Any, terms: Mapping[str, float], unit: str = "sweep") -> None:
        self.history = np.asarray(history, dtype=float)
        self.terms = {str(name): float(value) for name, value in terms.items()}
        self.unit = unit

    @classmethod
    def from_estimator(cls, model: Any, *, fig: Figure | None = None, **line: Any) -> Self:
        """Draw the bound of a fitted estimator.

        Parameters
        ----------
        model : BowTieRegressor, BowTieClassifier, or pipeline that ends with one
            Fitted.
        fig : matplotlib figure, optional
            Where to draw; a new one by default.
        **line
            Of the bound, for matplotlib's `plot`.
        """
        network = network_of(model)
        if len(network.elbo_history_) == 0 or network.elbo_terms_ is None:
            raise ValueError(
                "model has no history of its bound, as after partial_fit: draw it after fit."
            )
        found = asdict(network.elbo_terms_)
        terms = {name: float(to_numpy(value)) for name, value in found.items()}
        unit = "step" if network.solver_ == "svi" else "sweep"
        history = network.elbo_history_[np.isfinite(network.elbo_history_)]
        return cls(history=history, terms=terms, unit=unit).plot(fig=fig, **line)

    def plot(self, *, fig: Figure | None = None, **line: Any) -> Self:
        """Draw again, in another figure; with the arguments of `from_estimator`."""
        alone = self.history.size == 1  # one sweep is a dot, and no history
        fig = new_figure(5.4 if alone else 9.0, 3.4) if fig is None else fig
        is_wide = fig.get_figwidth() > fig.get_figheight()
        shape = (1, 1) if alone else (1, 2) if is_wide else (2, 1)
        axes = np.ravel(fig.subplots(*shape, squeeze=False))
        right, self.line_ = axes[-1], None
        if not alone:
            self._draw_history(axes[0], line)
        blocks = joined_terms(self.terms)
        draw_bars(list(blocks), list(blocks.values()), ax=right)
        right.xaxis.get_major_locator().set_params(nbins=5)
        right.set(xlabel=f"total {signed(sum(self.terms.values()), 1)}")
        after = f" after 1 {self.unit}" if alone else ""
        add_title(right, f"Evidence bound by block{after}")
        self.bars_ = list(right.patches)
        self.figure_, self.axes_ = fig, axes
        return self

    def _draw_history(self, ax: Any, line: dict[str, Any]) -> None:
        count = self.history.size
        look = {"color": POSITIVE, "lw": 1.5, "marker": "o" if count <= 40 else "", "ms": 3.0}
        (self.line_,) = ax.plot(np.arange(1, count + 1), self.history, **(look | line))
        ax.set_ylim(*readable_limits(self.history))
        whole_numbers(ax.xaxis)
        group_thousands(ax.yaxis, least=1e3)
        ax.set(xlabel=self.unit, ylabel="evidence bound")
        add_title(ax, f"Evidence bound by {self.unit}")
        tidy(ax)


def joined_terms(terms: Mapping[str, float]) -> dict[str, float]:
    """Terms to draw, in words: gates and their Pólya-Gamma variables as one."""
    gates = [name for name in ("gates", "polya_gamma") if name in terms]
    joined: dict[str, float] = {}
    for name, value in terms.items():
        words = " + ".join(gates) if name in gates else name
        words = words.replace("polya_gamma", "Pólya-Gamma").replace("_", " ")
        joined[words] = joined.get(words, 0.0) + value
    return joined


def readable_limits(history: np.ndarray) -> tuple[float, float]:
    """Limits in which the second half of the bound takes a third of the height, or all is seen."""
    top, bottom = float(np.max(history)), float(np.min(history))
    late = top - float(np.min(history[(history.size - 1) // 2 :]))
    # A second half that stands still would leave a picture of rounding errors.
    low = max(bottom, top - _ROOM * max(late, _STILL * (top - bottom)))
    margin = 0.05 * (top - low) or 1e-3 * max(abs(top), 1.0)
    return low - margin, top + margin
