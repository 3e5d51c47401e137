"""Numbers with names as horizontal bars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bowtienet._old.plotting import _axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_bars(
    names: Iterable[str],
    values: Any,
    *,
    errors: Any = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a horizontal bar for each value, the first on top; names of zeros are grey.

    With `errors` a line goes so far to each side of a bar's end.
    """
    lengths = np.asarray(values, dtype=float)
    labels = [_axes.shorten(str(name)) for name in names]
    width, height = 4.0 + _axes.inches_wide(labels), min(0.9 + 0.21 * lengths.size, 40.0)
    ax = _axes.axes_or_new(ax, width, height)
    places = np.arange(lengths.size)
    shades = [_axes.POSITIVE if length >= 0.0 else _axes.NEGATIVE for length in lengths]
    ax.barh(places, lengths, height=0.7, color=shades, zorder=2)
    if errors is not None:
        ax.errorbar(lengths, places, xerr=errors, fmt="none", ecolor=_axes.INK, elinewidth=1.2)
    ax.axvline(0.0, color=_axes.INK, lw=0.8, zorder=3)
    size = _axes.fitted_size(_axes.points_high(ax) / lengths.size)
    ax.set_yticks(places, labels, fontsize=size)
    for text, length in zip(ax.get_yticklabels(), lengths, strict=True):
        text.set_color(_axes.MUTED if length == 0.0 else _axes.INK)
    ax.set_ylim(lengths.size - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color="#E5E5E5", lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    _axes.group_thousands(ax.xaxis, least=1e3)
    if title is not None:
        _axes.add_title(ax, title)
    return ax
