"""Displays of what a fitted network is made of: its units, its weights and its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet.plotting._checks import read_names, read_vector
from bowtienet.plotting.bars import draw_bars
from bowtienet.plotting.fitted import (
    chosen_member,
    member_weights,
    names_of,
    network_of,
    target_names,
)
from bowtienet.plotting.matrices import draw_weights
from bowtienet.plotting.network import draw_network
from bowtienet.prediction.ensemble import original

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SURE = 0.995
"""Probabilities from here on would be written 1.00, and are left out."""


class NetworkDisplay:
    """The network of a member, with an edge for each weight that is not exactly zero.

    Best after `prune`. `draw_network` says how it looks.

    Parameters
    ----------
    weights : sequence of arrays (D, K + 1)
        One matrix for each layer, the output last, with the bias in column 0.
    input_names, output_names : sequence of str, optional
        One for each input and output.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    """

    def __init__(
        self,
        *,
        weights: Sequence[Any],
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        self.weights = weights
        self.input_names = input_names
        self.output_names = output_names

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        member: int | None = None,
        title: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the network of a member of a fitted estimator.

        Parameters
        ----------
        model : BowTieRegressor or pipeline that ends with one
            Fitted.
        member : int, optional
            Its place among the members; the heaviest by default.
        title : str, optional
            Above the picture.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        network = network_of(model)
        weights = member_weights(network, chosen_member(network, member))
        names = {"input_names": names_of(model), "output_names": target_names(model)}
        return cls(weights=weights, **names).plot(title=title, ax=ax)

    def plot(self, *, title: str | None = None, ax: Axes | None = None) -> Self:
        """Draw again, elsewhere; with the arguments of `from_estimator`."""
        names = {"input_names": self.input_names, "output_names": self.output_names}
        self.ax_ = draw_network(self.weights, **names, title=title, ax=ax)
        self.figure_ = self.ax_.figure
        return self


class WeightsDisplay:
    """The weight matrices of a member as heat maps, before and after pruning.

    `draw_weights` says how they look.

    Parameters
    ----------
    before : sequence of arrays (D, K + 1)
        One matrix for each layer, the output last, with the bias in column 0.
    after : sequence of arrays (D, K + 1), optional
        The same after pruning, with zeros where weights went.
    input_names, output_names : sequence of str, optional
        One for each input and output.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and list of its axes
        Where it was drawn last.
    """

    def __init__(
        self,
        *,
        before: Sequence[Any],
        after: Sequence[Any] | None = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.input_names = input_names
        self.output_names = output_names

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        pruned: Any = None,
        *,
        member: int | None = None,
        fig: Figure | None = None,
    ) -> Self:
        """Draw the weights of a member of a fitted estimator.

        Parameters
        ----------
        model : BowTieRegressor or pipeline that ends with one
            Fitted.
        pruned : the same, optional
            What ``model.prune(...)`` made of it.
        member : int, optional
            Its place among the members; the heaviest by default.
        fig : matplotlib figure, optional
            Where to draw; a new one by default.
        """
        network, after = network_of(model), None
        place = chosen_member(network, member)
        if pruned is not None:
            smaller = network_of(pruned)
            ours, theirs = ([original(m) for m in e.ensemble_.members] for e in (network, smaller))
            if ours != theirs:
                raise ValueError(
                    "pruned was not made from model: give the model first, and then what its "
                    "prune(...) returned."
                )
            after = member_weights(smaller, place, in_place=True)
        before = member_weights(network, place, in_place=True)
        names = {"input_names": names_of(model), "output_names": target_names(model)}
        return cls(before=before, after=after, **names).plot(fig=fig)

    def plot(self, *, fig: Figure | None = None) -> Self:
        """Draw again, in another figure."""
        names = {"input_names": self.input_names, "output_names": self.output_names}
        self.figure_ = draw_weights(self.before, self.after, **names, fig=fig)
        self.axes_ = self.figure_.axes
        return self


class RelevanceDisplay:
    """The strength of every input as a bar, the strongest on top.

    Behind a name stands the probability that the input matters, where that is below 0.995.

    Parameters
    ----------
    names : sequence of str
        One for each input.
    strength, probability : array (K,)
        As in ``feature_relevance_``.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    """

    def __init__(self, *, names: Sequence[str], strength: Any, probability: Any) -> None:
        self.strength = read_vector(strength, "strength", each="input")
        self.probability = read_vector(probability, "probability", self.strength.size, each="input")
        self.names = read_names(names, self.strength.size, "names", "x")

    @classmethod
    def from_estimator(
        cls, model: Any, *, title: str | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the relevance of the inputs of a fitted estimator, pruned or not.

        With several targets an input counts by the one it matters for most.

        Parameters
        ----------
        model : BowTieRegressor or pipeline that ends with one
            Fitted.
        title : str, optional
            Above the picture.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        found = network_of(model).feature_relevance_.strongest()
        display = cls(names=names_of(model), strength=found.strength, probability=found.probability)
        return display.plot(title=title, ax=ax)

    def plot(self, *, title: str | None = None, ax: Axes | None = None) -> Self:
        """Draw again, elsewhere; with the arguments of `from_estimator`."""
        order = np.argsort(-self.strength, kind="stable")
        labels = [_with_probability(self.names[i], self.probability[i]) for i in order]
        self.ax_ = draw_bars(labels, self.strength[order], title=title, ax=ax)
        self.ax_.set_xlabel("strength")
        self.figure_ = self.ax_.figure
        return self


def _with_probability(name: str, probability: float) -> str:
    return name if probability >= _SURE else f"{name} ({probability:.2f})"
