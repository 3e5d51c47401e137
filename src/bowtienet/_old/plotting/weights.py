"""Display of the weight matrices of a network as heat maps, before and after pruning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._validation import named
from bowtienet._old.ensemble.ensemble import original
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting.fitted import (
    chosen_member,
    member_input_names,
    member_weights,
    network_of,
    output_names,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ZERO = {"facecolor": "#F0F0F0", "edgecolor": "#C8C8C8", "hatch": "//////", "linewidth": 0.0}
"""What shows where a weight is exactly zero."""
_COLORS = ("#7A3500", _axes.NEGATIVE, "white", _axes.POSITIVE, "#003F66")
_NAMES_APART = 7.0
"""Points from a name to the next; where there are fewer, some names are left out."""


class WeightsDisplay:
    """The weight matrices of a member as heat maps, before and after pruning.

    There is a column of panels for each layer. Rows of a panel are the inputs of its layer, columns
    are its units. Blue weights are positive, orange ones negative, and white ones close to zero;
    the panels of a layer share one scale. Weights of exactly zero are hatched. Biases are left out.

    Parameters
    ----------
    before : sequence of arrays (D, K + 1)
        One matrix for each layer, the output last, with the bias in column 0.
    after : sequence of arrays (D, K + 1), optional
        The same after pruning, with zeros where weights went: a second row of panels.
    input_names, output_names : sequence of str, optional
        One for each input and output; x, or x0, x1, ..., and y, or y0, y1, ..., by default.

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
        self.before = [np.asarray(matrix, dtype=float) for matrix in before]
        self.after = None if after is None else [np.asarray(m, dtype=float) for m in after]
        n_inputs, n_outputs = self.before[0].shape[1] - 1, self.before[-1].shape[0]
        self.input_names = named(input_names, n_inputs, "input_names", "x")
        self.output_names = named(output_names, n_outputs, "output_names", "y")

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
        model : BowTieRegressor, BowTieClassifier, or pipeline that ends with one
            Fitted.
        pruned : the same, optional
            What ``model.prune(...)`` returned: a network with the same inputs and units that was
            estimated anew, so that its units are not those of the member.
        member : int, optional
            Its place among the members; the one with the largest weight by default.
        fig : matplotlib figure, optional
            Where to draw; a new one by default. It needs ``layout="constrained"`` to make room for
            the names.
        """
        network, after = network_of(model), None
        place = chosen_member(network, member)
        if pruned is not None:
            smaller = network_of(pruned)
            alone = len(smaller.ensemble_.members) == 1
            other = 0 if alone else chosen_member(smaller, place)
            if _inputs_and_units(network, place) != _inputs_and_units(smaller, other):
                raise ValueError(
                    f"pruned has not the inputs and units of member {place} of model: give the "
                    "model first, then what its prune(...) returned, and a member that sees what "
                    "the pruned network sees."
                )
            after = member_weights(smaller, other, in_place=True)
        display = cls(
            before=member_weights(network, place, in_place=True),
            after=after,
            input_names=member_input_names(network, place),
            output_names=output_names(network),
        )
        return display.plot(fig=fig)

    def plot(self, *, fig: Figure | None = None) -> Self:
        """Draw again, in another figure."""
        rows = [self.before] if self.after is None else [self.before, self.after]
        grids = [[matrix[:, 1:].T for matrix in row] for row in rows]
        left = [_axes.shorten(name) for name in self.input_names]
        right = [_axes.shorten(name) for name in self.output_names]
        widths = [float(np.clip(0.09 * grid.shape[1], 0.8, 3.2)) for grid in grids[0]]
        turned = _axes.inches_wide(right) * len(right) > widths[-1]
        if fig is None:
            tallest = max(0.15 * len(left), *(0.05 * grid.shape[0] for grid in grids[0]))
            height = 0.7 + len(rows) * (0.2 + float(np.clip(tallest, 1.7, 6.0)))
            width = 0.3 + _axes.inches_wide(left) + sum(widths) + 0.9 * len(widths)
            fig = _axes.new_figure(width, height + _axes.inches_wide(right) * turned)
        panels = fig.subplots(len(rows), len(widths), squeeze=False, width_ratios=widths)
        for layer, column in enumerate(panels.T):
            _draw_layer(fig, column, [row[layer] for row in grids])
            title = _axes.layer_title(layer, len(widths))
            column[0].set_title(title, fontsize=_axes.NAME_SIZE)
        _label_inputs(panels[:, 0], left, 0.8 * _axes.points_high(fig) / len(rows))
        for ax in panels[-1, :-1]:
            ax.set_xlabel("unit", fontsize=_axes.SMALL_SIZE)
        look = {"fontsize": _axes.SMALL_SIZE, "rotation": 90 if turned else 0}
        panels[-1, -1].set_xticks(range(len(right)), right, **look)
        if self.after is not None:
            for ax, words in zip(panels[:, 0], ("before pruning", "after pruning"), strict=True):
                ax.set_ylabel(words, fontsize=_axes.NAME_SIZE)
        _axes.add_figure_title(fig, "Mean weights of the network")
        if any(np.any(grid == 0.0) for row in grids for grid in row):
            patch = _axes.load("patches").Patch(**_ZERO, label="exactly zero")
            _axes.add_figure_legend(fig, [patch], "lower")
        self.figure_, self.axes_ = fig, fig.axes
        return self


def _inputs_and_units(model: Any, member: int) -> tuple[Any, list[str]]:
    """What a member was before anything was pruned."""
    return original(model.ensemble_.members[member]), member_input_names(model, member)


def _draw_layer(fig: Any, panels: Sequence[Any], grids: list[np.ndarray]) -> None:
    """The panels of one layer, which share a scale of colours around zero, and its bar."""
    limit = max(float(np.max(np.abs(grid), initial=0.0)) for grid in grids)
    colors = _axes.load("colors").LinearSegmentedColormap.from_list("signed", _COLORS)
    for ax, grid in zip(panels, grids, strict=True):
        ax.tick_params(length=2.0, labelsize=_axes.SMALL_SIZE)
        ax.patch.set(**_ZERO)
        # An image cannot be empty, but a layer without inputs is.
        shown = grid if grid.size else np.zeros((1, grid.shape[1]))
        image = ax.imshow(
            np.ma.masked_equal(shown, 0.0),
            cmap=colors,
            vmin=-limit,
            vmax=limit,
            aspect="auto",
            interpolation="nearest",
        )
        ax.set_yticks(*_numbers(grid.shape[0]))
        ax.set_xticks(*(_numbers(grid.shape[1]) if ax is panels[-1] else ([], [])))
    if limit > 0.0:
        ticks = _axes.load("ticker").MaxNLocator(6, symmetric=True)
        bar = fig.colorbar(image, ax=list(panels), ticks=ticks, aspect=40.0, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=2.0, labelsize=_axes.SMALL_SIZE)


def _numbers(count: int) -> tuple[list[int], list[str]]:
    """Places and labels of a few units, counted from 1."""
    step = next(step for step in (1, 5, 10, 20, 50, 100, 10**9) if count <= 6 * step)
    shown = sorted({*range(1, min(count, 1) + 1), *range(step, count + 1, step)})
    return [number - 1 for number in shown], [str(number) for number in shown]


def _label_inputs(column: Iterable[Any], names: list[str], room: float) -> None:
    """Names at the rows of the first layer; every second or third where not all of them fit."""
    step = max(1, int(np.ceil(len(names) * _NAMES_APART / room)))
    size = _axes.fitted_size(room * step / max(len(names), 1), _axes.SMALL_SIZE)
    for ax in column:
        ax.set_yticks(range(0, len(names), step), names[::step], fontsize=size)
