"""Pictures of a fitted estimator: its network, its weights, and which inputs matter."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import to_numpy
from bowtienet.estimators.tables import input_names
from bowtienet.inference.pruning import restore_shape
from bowtienet.plotting.bars import draw_bars
from bowtienet.plotting.matrices import draw_weights
from bowtienet.plotting.network import draw_network
from bowtienet.prediction.ensemble import original

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_network(
    model: Any, *, member: int | None = None, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the network of a member of a fitted estimator, best after `prune`.

    Parameters
    ----------
    model : BowTieRegressor
        Fitted.
    member : int, optional
        Its place among the members; the heaviest by default.
    title : str, optional
        Above the picture.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
    """
    weights = member_weights(model, chosen_member(model, member))
    return draw_network(weights, input_names=input_names(model), title=title, ax=ax)


def plot_weights(
    model: Any, pruned: Any = None, *, member: int | None = None, fig: Figure | None = None
) -> Figure:
    """Draw the weight matrices of a member as heat maps, before and after pruning.

    Parameters
    ----------
    model : BowTieRegressor
        Fitted.
    pruned : BowTieRegressor, optional
        What ``model.prune(...)`` made of it.
    member : int, optional
        Its place among the members; the heaviest by default.
    fig : matplotlib figure, optional
        Where to draw; a new one by default.

    Returns
    -------
    matplotlib figure
    """
    member = chosen_member(model, member)
    before = member_weights(model, member, in_place=True)
    after = None
    if pruned is not None:
        check_is_fitted(pruned)
        ours, theirs = ([original(m) for m in e.ensemble_.members] for e in (model, pruned))
        if ours != theirs:
            raise ValueError(
                "pruned was not made from model: give the model first, and then what its "
                "prune(...) returned."
            )
        after = member_weights(pruned, member, in_place=True)
    return draw_weights(before, after, input_names=input_names(model), fig=fig)


def plot_relevance(model: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the strength of every input as a bar, the strongest on top.

    Behind a name stands the probability that the input matters, where that is below 0.995. With
    several targets an input counts by the one it matters for most.

    Parameters
    ----------
    model : BowTieRegressor
        Fitted, pruned or not.
    title : str, optional
        Above the picture.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
    """
    found = model.feature_relevance_
    strength = found.strength.reshape(len(found.name), -1).max(axis=1)
    probability = found.probability.reshape(len(found.name), -1).max(axis=1)
    order = np.argsort(-strength, kind="stable")
    names = [
        str(found.name[i]) + ("" if probability[i] >= 0.995 else f" ({probability[i]:.2f})")
        for i in order
    ]
    ax = draw_bars(names, strength[order], title=title, ax=ax)
    ax.set_xlabel("strength")
    return ax


def chosen_member(model: Any, member: Any) -> int:
    """Place of a member: the heaviest for None."""
    check_is_fitted(model)
    count = len(model.ensemble_.members)
    if member is None:
        return int(np.argmax(model.member_weights_))
    if not isinstance(member, Integral) or member not in range(count):
        raise ValueError(f"member must be a whole number from 0 to {count - 1}, got {member!r}.")
    return int(member)


def member_weights(model: Any, member: int, *, in_place: bool = False) -> list[np.ndarray]:
    """Mean weights (D, K+1) of every layer, with the inputs in the order of the user's table.

    Hidden units are those that are left or, with `in_place`, all, at their places before pruning.
    """
    ensemble = model.ensemble_
    found = ensemble.members[member]
    means = [to_numpy(layer.weights.mean).astype(float) for layer in found.factors.layers]
    columns = ensemble.column_order
    if in_place:
        means = restore_shape(means, found.pruning)
    elif found.pruning is not None:
        columns = columns[found.pruning.inputs]
    first = np.zeros((len(means[0]), 1 + model.n_features_in_))
    first[:, 0], first[:, 1 + columns] = means[0][:, 0], means[0][:, 1:]
    return [first, *means[1:]]
