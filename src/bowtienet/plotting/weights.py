"""Display of the weight matrices of a network as heat maps, before and after pruning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet.ensemble.ensemble import original
from bowtienet.plotting import _axes
from bowtienet.plotting._checks import named
from bowtienet.plotting.fitted import (
    chosen_member,
    encoded_names,
    member_weights,
    network_of,
    target_names,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DARK_NEGATIVE = "#7A3500"
_DARK_POSITIVE = "#003F66"
_ZERO_FACE = "#F0F0F0"
_ZERO_LINES = "#C8C8C8"
_HATCH = "//////"
_BAR_WIDTH = 0.1
"""Of a colour bar, in inches as the widths of the panels."""
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
        model : BowTieRegressor or pipeline that ends with one
            Fitted.
        pruned : the same, optional
            What ``model.prune(...)`` made of it.
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
            ours, theirs = ([original(m) for m in e.ensemble_.members] for e in (network, smaller))
            if ours != theirs:
                raise ValueError(
                    "pruned was not made from model: give the model first, and then what its "
                    "prune(...) returned."
                )
            after = member_weights(smaller, place, in_place=True)
        display = cls(
            before=member_weights(network, place, in_place=True),
            after=after,
            input_names=encoded_names(model),
            output_names=target_names(model) or None,
        )
        return display.plot(fig=fig)

    def plot(self, *, fig: Figure | None = None) -> Self:
        """Draw again, in another figure."""
        rows = [self.before] if self.after is None else [self.before, self.after]
        grids = [[matrix[:, 1:].T for matrix in row] for row in rows]
        left = [_axes.shorten(name) for name in self.input_names]
        right = [_axes.shorten(name) for name in self.output_names]
        widths = [_panel_width(grid) for grid in grids[0]]
        turned = _axes.inches_wide(right) * len(right) > widths[-1]
        if fig is None:
            width, height = _figure_size(grids[0], widths, left, len(rows))
            fig = _axes.new_figure(width, height + _axes.inches_wide(right) * turned)
        columns = _add_panels(fig, len(rows), widths)
        for layer, (panels, bar) in enumerate(columns):
            _draw_layer(fig, panels, bar, [row[layer] for row in grids])
            panels[0].set_title(_title(layer, len(widths), len(right)), fontsize=_axes.NAME_SIZE)
        first_panels, last_panels = columns[0][0], columns[-1][0]
        _label_inputs(first_panels, left, 0.8 * _axes.points_high(fig) / len(rows))
        rotation = 90 if turned else 0
        last_panels[-1].set_xticks(
            range(len(right)), right, fontsize=_axes.SMALL_SIZE, rotation=rotation
        )
        if self.after is not None:
            for ax, words in zip(first_panels, ("before pruning", "after pruning"), strict=True):
                ax.set_ylabel(words, fontsize=_axes.NAME_SIZE)
        if any(np.any(grid == 0.0) for row in grids for grid in row):
            _add_legend(fig)
        self.figure_, self.axes_ = fig, fig.axes
        return self


def _panel_width(grid: np.ndarray) -> float:
    """Inches: more for more units, and never so few that a single unit or the title vanishes."""
    return float(np.clip(0.09 * grid.shape[1], 0.8, 3.2))


def _figure_size(
    grids: Sequence[np.ndarray], widths: Sequence[float], names: list[str], rows: int
) -> tuple[float, float]:
    tallest = max(grid.shape[0] for grid in grids)
    height = float(np.clip(max(0.15 * len(names), 0.05 * tallest), 1.7, 6.0))
    return _axes.inches_wide(names) + sum(widths) + 0.9 * len(widths) + 0.3, 0.7 + (
        height + 0.2
    ) * rows


def _add_panels(fig: Any, rows: int, widths: Sequence[float]) -> list[tuple[list[Any], Any]]:
    """Panels of each layer, from top to bottom, and the place of their colour bar."""
    ratios = [ratio for width in widths for ratio in (width, _BAR_WIDTH)]
    grid = fig.add_gridspec(rows, len(ratios), width_ratios=ratios)
    return [
        (
            [fig.add_subplot(grid[row, 2 * layer]) for row in range(rows)],
            fig.add_subplot(grid[:, 2 * layer + 1]),
        )
        for layer in range(len(widths))
    ]


def _draw_layer(fig: Any, panels: list[Any], bar: Any, grids: list[np.ndarray]) -> None:
    limit = max(float(np.max(np.abs(grid), initial=0.0)) for grid in grids)
    for ax, grid in zip(panels, grids, strict=True):
        ax.tick_params(length=2.0, labelsize=_axes.SMALL_SIZE)
        ax.set_yticks(*_numbers(grid.shape[0]))
        ax.set_xticks(*(_numbers(grid.shape[1]) if ax is panels[-1] else ([], [])))
        # An image cannot be empty, but a layer without inputs is.
        ax.set(xlim=(-0.5, max(grid.shape[1], 1) - 0.5), ylim=(max(grid.shape[0], 1) - 0.5, -0.5))
        if grid.size == 0:
            ax.text(0.5, 0.5, "none", ha="center", va="center", transform=ax.transAxes)
            continue
        ax.patch.set(facecolor=_ZERO_FACE, edgecolor=_ZERO_LINES, hatch=_HATCH, linewidth=0.0)
        ax.imshow(
            np.ma.masked_equal(grid, 0.0),
            cmap=_color_map(),
            norm=_norm(limit),
            aspect="auto",
            interpolation="nearest",
        )
    if limit == 0.0:
        bar.set_axis_off()
        return
    shown = _axes.load("cm").ScalarMappable(norm=_norm(limit), cmap=_color_map())
    scale = fig.colorbar(shown, cax=bar, ticks=_axes.load("ticker").MaxNLocator(6, symmetric=True))
    scale.outline.set_visible(False)
    bar.tick_params(length=2.0, labelsize=_axes.SMALL_SIZE)


def _norm(limit: float) -> Any:
    return _axes.load("colors").Normalize(vmin=-limit, vmax=limit)


def _color_map() -> Any:
    shades = [_DARK_NEGATIVE, _axes.NEGATIVE, "white", _axes.POSITIVE, _DARK_POSITIVE]
    return _axes.load("colors").LinearSegmentedColormap.from_list("signed", shades)


def _numbers(count: int) -> tuple[list[int], list[str]]:
    """Places and labels of a few units, counted from 1."""
    step = next(step for step in (1, 5, 10, 20, 50, 100, 10**9) if count <= 6 * step)
    shown = sorted({*range(1, min(count, 1) + 1), *range(step, count + 1, step)})
    return [number - 1 for number in shown], [str(number) for number in shown]


def _title(layer: int, layers: int, outputs: int) -> str:
    source = "inputs" if layer == 0 else f"layer {layer}"
    target = f"layer {layer + 1}" if layer < layers - 1 else "output" + "s" * (outputs > 1)
    return f"{source} → {target}"


def _label_inputs(column: Sequence[Any], names: list[str], room: float) -> None:
    """Names at the rows of the first layer; every second or third where not all of them fit."""
    step = max(1, int(np.ceil(len(names) * _NAMES_APART / room)))
    size = _axes.fitted_size(room * step / max(len(names), 1), _axes.SMALL_SIZE)
    for ax in column:
        ax.set_yticks(range(0, len(names), step), names[::step], fontsize=size)


def _add_legend(fig: Any) -> None:
    patch = _axes.load("patches").Patch(
        facecolor=_ZERO_FACE,
        edgecolor=_ZERO_LINES,
        hatch=_HATCH,
        linewidth=0.0,
        label="exactly zero",
    )
    fig.legend(
        handles=[patch], loc="outside lower center", frameon=False, fontsize=_axes.SMALL_SIZE
    )
