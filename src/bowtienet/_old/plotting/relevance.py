"""Display of the relevance of the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._validation import chosen, named
from bowtienet._old.plotting._bars import draw_bars
from bowtienet._old.plotting.fitted import network_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALL = 0.01
"""p-values below are left out: these columns are sure enough."""


class RelevanceDisplay:
    """The strength of every feature as a bar, the strongest on top.

    Behind a name stands its p-value, where that is known and not below 0.01: strength alone does
    not say that a feature matters.

    Parameters
    ----------
    names : sequence of str
        One for each feature.
    strength, p_value : array (K,)
        As in ``feature_relevance_``; without p-values none is shown.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    """

    def __init__(self, *, names: Sequence[str], strength: Any, p_value: Any = None) -> None:
        self.strength = np.asarray(strength)
        unknown = np.full(self.strength.size, np.nan)
        self.p_value = unknown if p_value is None else np.asarray(p_value)
        self.names = named(names, self.strength.size, "names", "x")

    @classmethod
    def from_estimator(
        cls, model: Any, *, target: int | None = None, ax: Axes | None = None, **look: Any
    ) -> Self:
        """Draw the relevance of the features of a fitted estimator, pruned or not.

        Parameters
        ----------
        model : BowTieRegressor, BowTieClassifier, or pipeline that ends with one
            Fitted.
        target : int, optional
            Which of several targets; by default a feature counts by the target that it moves most.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **look
            Those of `plot`.
        """
        found = network_of(model).feature_relevance_
        strength = found.strength.reshape(len(found.name), -1)
        if target is not None:
            strength = strength[:, [chosen(target, strength.shape[1], "target")]]
        display = cls(
            names=found.name.tolist(), strength=strength.max(axis=1), p_value=found.p_value
        )
        return display.plot(ax=ax, **look)

    def plot(
        self, *, title: str | None = None, most: int | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw again, elsewhere.

        Parameters
        ----------
        title : str, optional
            Above the plot; "" for none.
        most : int, optional
            How many bars to draw, the strongest; all by default.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        order = np.argsort(-self.strength, kind="stable")[:most]
        labels = [_with_p_value(self.names[i], self.p_value[i]) for i in order]
        words = "Strength of the features in the networks" if title is None else title
        self.ax_ = draw_bars(labels, self.strength[order], title=words, ax=ax)
        self.ax_.set_xlabel("strength")
        self.figure_ = self.ax_.figure
        return self


def _with_p_value(name: str, p_value: float) -> str:
    return f"{name} (p = {p_value:.2f})" if p_value >= _SMALL else name
