"""Display of the relevance of the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet.plotting._bars import draw_bars
from bowtienet.plotting._checks import chosen, named
from bowtienet.plotting.fitted import network_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SURE = 0.995
"""Probabilities from here on would be written 1.00, and are left out."""


class RelevanceDisplay:
    """The strength of every feature as a bar, the strongest on top.

    Behind a name stands the probability of an effect, by this fit, where that is below 0.995.

    Parameters
    ----------
    names : sequence of str
        One for each feature.
    strength, probability : array (K,)
        As in ``feature_relevance_``.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    """

    def __init__(self, *, names: Sequence[str], strength: Any, probability: Any) -> None:
        self.strength, self.probability = np.asarray(strength), np.asarray(probability)
        self.names = named(names, self.strength.size, "names", "x")

    @classmethod
    def from_estimator(
        cls, model: Any, *, target: int | None = None, ax: Axes | None = None, **look: Any
    ) -> Self:
        """Draw the relevance of the features of a fitted estimator, pruned or not.

        Parameters
        ----------
        model : BowTieRegressor or pipeline that ends with one
            Fitted.
        target : int, optional
            Which of several targets; by default a feature counts by the target that it moves most.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **look
            Those of `plot`.
        """
        found = network_of(model).feature_relevance_
        strength, probability = (
            values.reshape(len(found.name), -1) for values in (found.strength, found.probability)
        )
        if target is not None:
            place = chosen(target, strength.shape[1], "target")
            strength, probability = strength[:, [place]], probability[:, [place]]
        display = cls(
            names=found.name.tolist(),
            strength=strength.max(axis=1),
            probability=probability.max(axis=1),
        )
        return display.plot(ax=ax, **look)

    def plot(
        self, *, title: str | None = None, most: int | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw again, elsewhere.

        Parameters
        ----------
        title : str, optional
            Above the plot.
        most : int, optional
            How many bars to draw, the strongest; all by default.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        order = np.argsort(-self.strength, kind="stable")[:most]
        labels = [_with_probability(self.names[i], self.probability[i]) for i in order]
        self.ax_ = draw_bars(labels, self.strength[order], title=title, ax=ax)
        self.ax_.set_xlabel("strength")
        self.figure_ = self.ax_.figure
        return self


def _with_probability(name: str, probability: float) -> str:
    return name if probability >= _SURE else f"{name} ({probability:.2f})"
