"""Display of a network as circles and lines: its inputs, units and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._validation import named
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting.fitted import (
    chosen_member,
    member_column_names,
    member_column_weights,
    network_of,
    output_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ABSENT_FACE = "#F2F2F2"
_WIDEST = 2.4
_THINNEST = 1.0 / 6.0
"""Width of the weakest edge relative to the strongest."""
_FAINTEST = 0.3
_CROWD = 100
"""Edges between two layers beyond which all are drawn thinner and weak ones fainter."""
_MOST_EDGES = 80
"""Weights up to which a network is drawn whole."""


class NetworkDisplay:
    """The network of a member, from left to right, with an edge for each weight but exact zeros.

    The wider and darker an edge, the larger its weight; the largest of each layer are equally wide.
    Blue weights are positive, orange ones negative. Hidden units stand at the level of the units
    that they hang on. Inputs and units without any edge are grey, and an output that no input
    reaches is marked as constant. Biases are not drawn. Best after `prune`: of more than 80 weights
    only those on the strongest paths are drawn, with their units, and the title says so. A path is
    as strong as the product of the sizes of its weights, relative to the strongest to its output.

    Parameters
    ----------
    weights : sequence of arrays (D, K + 1)
        One matrix for each layer, the output last, with the bias in column 0. A dropped input is a
        column of zeros in the first one.
    input_names, output_names : sequence of str, optional
        One for each input and output; x, or x0, x1, ..., and y, or y0, y1, ..., by default.

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
        self.weights = [np.asarray(matrix, dtype=float) for matrix in weights]
        n_inputs, n_outputs = self.weights[0].shape[1] - 1, self.weights[-1].shape[0]
        self.input_names = named(input_names, n_inputs, "input_names", "x")
        self.output_names = named(output_names, n_outputs, "output_names", "y")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        member: int | None = None,
        title: str | None = None,
        most_edges: int | None = _MOST_EDGES,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the network of a member of a fitted estimator.

        A column in bins is one input: of the weights between its components and a unit, the
        largest is drawn.

        Parameters
        ----------
        model : BowTieRegressor, BowTieClassifier, or pipeline that ends with one
            Fitted.
        member : int, optional
            Its place among the members; the one with the largest weight by default.
        title : str, optional
            Above the plot, in place of what it says by itself.
        most_edges : int, optional
            Of more weights those on the strongest paths are drawn; None for all.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default. Names stand outside the axes as tick labels do:
            a figure with ``layout="constrained"`` makes room for them.
        """
        network = network_of(model)
        place = chosen_member(network, member)
        display = cls(
            weights=member_column_weights(network, place),
            input_names=member_column_names(network, place),
            output_names=output_names(network),
        )
        return display.plot(title=title, most_edges=most_edges, ax=ax)

    def plot(
        self,
        *,
        title: str | None = None,
        most_edges: int | None = _MOST_EDGES,
        ax: Axes | None = None,
    ) -> Self:
        """Draw again, elsewhere; with the arguments of `from_estimator`."""
        whole = [matrix[:, 1:] for matrix in self.weights]
        right = _marked(self.output_names, whole)
        n_weights = sum(int(np.count_nonzero(edge)) for edge in whole)
        is_cut = most_edges is not None and n_weights > most_edges
        edges, inputs = whole, np.arange(whole[0].shape[1])
        if is_cut:
            edges, inputs = linked_part(strongest_paths(whole, most_edges or 0))
        left = [_axes.shorten(self.input_names[place]) for place in inputs]
        linked = linked_units(edges)
        ax = _axes.axes_or_new(ax, *_figure_size([unit.size for unit in linked], left, right))
        heights = [1.0 - place for place in arrange(edges)]
        most = max(int(np.count_nonzero(edge)) for edge in edges)
        crowding = min(1.0, _CROWD / max(most, 1))
        widest = _WIDEST * crowding**0.25
        _add_edges(ax, edges, heights, widest, _FAINTEST * crowding**0.5)
        _add_units(ax, heights, linked)
        _add_names(ax, 0, heights[0], left, linked[0])
        _add_names(ax, len(edges), heights[-1], right, np.ones(len(right), dtype=bool))
        sizes = [whole[0].shape[1], *(len(edge) for edge in whole)]
        _finish(ax, linked, sizes)
        drawn = sum(int(np.count_nonzero(edge)) for edge in edges)
        words = f"Strongest paths: {drawn:,} of" if is_cut else "Network:"
        _axes.add_title(ax, f"{words} {n_weights:,} weights" if title is None else title)
        _add_legend(ax, linked, widest)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def strongest_paths(edges: Sequence[np.ndarray], most: int) -> list[np.ndarray]:
    """The weights on the strongest paths from inputs to outputs, at most so many; zeros elsewhere.

    An edge counts by the strongest path through it, the product of |weight| along the path over the
    largest of all paths to the same output. A path is then drawn as a whole, or not at all.
    """
    sizes = [np.abs(edge) for edge in edges]
    ahead = [np.ones(edges[0].shape[1])]
    for size in sizes:
        ahead.append(np.max(size * ahead[-1], axis=1, initial=0.0))
    # The strongest path to an output has strength one.
    behind = [np.divide(1.0, ahead[-1], out=np.zeros(len(ahead[-1])), where=ahead[-1] > 0.0)]
    for size in reversed(sizes[1:]):
        behind.insert(0, np.max(size * behind[0][:, None], axis=0, initial=0.0))
    strength = [ahead[layer] * size * behind[layer][:, None] for layer, size in enumerate(sizes)]
    every = np.sort(np.concatenate([own.ravel() for own in strength]))[::-1]
    least = every[most] if every.size > most else 0.0
    # Beyond the last: rounding parts the edges of one path.
    return [
        np.where(own > least * (1.0 + 1e-9), edge, 0.0)
        for own, edge in zip(strength, edges, strict=True)
    ]


def linked_part(edges: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """The edges of inputs and hidden units that have some, and the places of these inputs."""
    linked = linked_units(edges)
    linked[-1] = np.ones(len(edges[-1]), dtype=bool)
    kept = [
        edge[np.ix_(above, below)]
        for edge, below, above in zip(edges, linked, linked[1:], strict=False)
    ]
    return kept, np.flatnonzero(linked[0])


def linked_units(edges: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Which units of each layer, inputs first, have an edge on either side."""
    incoming = [np.any(edge, axis=1) for edge in edges]
    outgoing = [np.any(edge, axis=0) for edge in edges]
    hidden = [a | b for a, b in zip(incoming[:-1], outgoing[1:], strict=True)]
    return [outgoing[0], *hidden, incoming[-1]]


def arrange(edges: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Places in (0, 1), from top to bottom, of the units of each layer, inputs first.

    Inputs and outputs keep their order. Hidden units are ordered by the mean place of the units
    that they hang on, weighted by |weight|; those that hang on nothing stand below the others.
    """
    places = [_even(edges[0].shape[1])]
    for edge in edges[:-1]:
        size = np.abs(edge)
        total = np.sum(size, axis=1)
        wanted = np.where(total > 0.0, size @ places[-1] / np.where(total > 0.0, total, 1.0), 1.0)
        order = np.argsort(wanted, kind="stable")
        places.append(_even(order.size)[np.argsort(order)])
    return [*places, _even(len(edges[-1]))]


def _even(count: int) -> np.ndarray:
    return (np.arange(count) + 0.5) / max(count, 1)


def _relative(edge: np.ndarray) -> np.ndarray:
    size = np.abs(edge)
    largest = np.max(size, initial=0.0)
    return size / largest if largest > 0.0 else size


def _marked(names: list[str], edges: Sequence[np.ndarray]) -> list[str]:
    """Names of the outputs, with a note where no input reaches the output."""
    reached = np.ones(edges[0].shape[1], dtype=bool)
    for edge in edges:
        reached = np.any((edge != 0.0) & reached, axis=1)
    notes = ["" if yes else " (constant)" for yes in reached]
    return [_axes.shorten(name) + note for name, note in zip(names, notes, strict=True)]


def _figure_size(sizes: list[int], left: list[str], right: list[str]) -> tuple[float, float]:
    width = max(3.6, 1.8 * (len(sizes) - 1)) + _axes.inches_wide(left) + _axes.inches_wide(right)
    named, hidden = max(sizes[0], sizes[-1]), max(sizes[1:-1], default=0)
    height = 1.0 + max(0.19 * named, 0.8 * hidden**0.5)
    return max(width, 5.0), float(np.clip(height, 2.2, 14.0))


def _add_edges(
    ax: Any,
    edges: Sequence[np.ndarray],
    heights: Sequence[np.ndarray],
    widest: float,
    faintest: float,
) -> None:
    lines, sizes, signs = [], [], []
    for layer, edge in enumerate(edges):
        unit, source = np.nonzero(edge)
        start = np.column_stack([np.full(source.size, float(layer)), heights[layer][source]])
        end = np.column_stack([np.full(unit.size, layer + 1.0), heights[layer + 1][unit]])
        lines.append(np.stack([start, end], axis=1))
        sizes.append(_relative(edge)[unit, source])
        signs.append(edge[unit, source] > 0.0)
    size, positive = np.concatenate(sizes), np.concatenate(signs)
    shades = _axes.load("colors").to_rgba_array(
        np.where(positive, _axes.POSITIVE, _axes.NEGATIVE), faintest + (0.95 - faintest) * size
    )
    order = np.argsort(size, kind="stable")  # strong edges over weak ones
    collection = _axes.load("collections").LineCollection(
        np.concatenate(lines)[order],
        colors=shades[order],
        linewidths=widest * (_THINNEST + (1.0 - _THINNEST) * size[order]),
        capstyle="round",
        zorder=1,
        label="_edges",
    )
    ax.add_collection(collection, autolim=False)


def _add_units(ax: Any, heights: Sequence[np.ndarray], linked: Sequence[np.ndarray]) -> None:
    crowd = max(height.size for height in heights)
    diameter = min(7.0, 0.75 * _axes.points_high(ax) / crowd)
    last = len(heights) - 1
    for layer, (height, used) in enumerate(zip(heights, linked, strict=True)):
        used = used | (layer == last)
        ax.scatter(
            np.full(height.size, layer),
            height,
            s=diameter**2,
            c=["white" if yes else _ABSENT_FACE for yes in used],
            edgecolors=[_axes.INK if yes else _axes.ABSENT for yes in used],
            linewidths=0.8,
            zorder=2,
            clip_on=False,
        )


def _add_names(ax: Any, layer: int, height: np.ndarray, names: list[str], used: np.ndarray) -> None:
    size = _axes.fitted_size(_axes.points_high(ax) / max(len(names), 1))
    side = -1 if layer == 0 else 1
    for y, name, yes in zip(height, names, used, strict=True):
        ax.annotate(
            name,
            (layer, y),
            xytext=(8 * side, 0),
            textcoords="offset points",
            ha="right" if side < 0 else "left",
            va="center",
            fontsize=size,
            color=_axes.INK if yes else _axes.MUTED,
        )


def _finish(ax: Any, linked: Sequence[np.ndarray], sizes: Sequence[int]) -> None:
    last = len(linked) - 1
    kinds = ["input"] + ["unit"] * (last - 1) + ["output"]
    shown = [layer for layer in range(last + 1) if linked[layer].size > 0]
    labels = [_count(linked[layer], sizes[layer], kinds[layer]) for layer in shown]
    room = ax.get_position().width * ax.figure.get_figwidth() / len(shown)
    if _axes.inches_wide(labels) > 0.9 * room:
        labels = ["\n".join(label.rsplit(" ", 1)) for label in labels]
    ax.set_xticks(shown, labels, fontsize=_axes.SMALL_SIZE, color=_axes.MUTED)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.set_xlim(shown[0] - 0.08, last + 0.08)
    ax.set_ylim(0.0, 1.0)


def _count(linked: np.ndarray, total: int, kind: str) -> str:
    used = int(np.sum(linked))
    plural = "" if total == 1 else "s"
    if kind == "output" or used == total:
        return f"{total} {kind}{plural}"
    return f"{used} of {total} {kind}{plural}"


def _add_legend(ax: Any, linked: Sequence[np.ndarray], widest: float) -> None:
    line = _axes.load("lines").Line2D
    handles = [
        line([], [], color=_axes.POSITIVE, lw=widest, label="positive"),
        line([], [], color=_axes.NEGATIVE, lw=widest, label="negative"),
    ]
    if not all(np.all(unit) for unit in linked[:-1]):
        dot = {"ls": "", "marker": "o", "ms": 5.0, "mfc": _ABSENT_FACE, "mec": _axes.ABSENT}
        handles.append(line([], [], label="no weights", **dot))
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": len(handles)}
    _axes.add_legend(ax, handles=handles, **place)
