"""Numbers with names as horizontal bars: coefficients of a linear model, relevance of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bowtienet.plotting._axes import (
    INK,
    MUTED,
    NEGATIVE,
    POSITIVE,
    axes_or_new,
    fitted_size,
    inches_wide,
    points_high,
    shorten,
)
from bowtienet.plotting._checks import read_names, read_vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_bars(
    names: Sequence[str],
    values: Any,
    *,
    errors: Any = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a horizontal bar for each value, the first on top.

    Blue bars are positive, orange ones negative, as in the pictures of networks; the name of a
    value of exactly zero is grey.

    Parameters
    ----------
    names : sequence of str
        One for each bar.
    values : array (K,)
        Lengths of the bars.
    errors : array (K,), optional
        Half the length of the error bar around each value, such as a standard deviation.
    title : str, optional
        Above the picture.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bowtienet.plotting.bars import draw_bars
    >>> axes = Figure(layout="constrained").add_subplot()
    >>> ax = draw_bars(["age", "height"], [0.5, -0.2], errors=[0.1, 0.1], ax=axes)
    >>> [float(bar.get_width()) for bar in ax.patches]
    [0.5, -0.2]
    """
    lengths = read_vector(values, "values")
    labels = [shorten(name) for name in read_names(names, lengths.size, "names", "x")]
    spread = None if errors is None else read_vector(errors, "errors", lengths.size)
    if spread is not None and np.any(spread < 0.0):
        raise ValueError(f"errors must not be negative, got {spread.min():g}: give half-lengths.")
    ax = axes_or_new(ax, 4.0 + inches_wide(labels), min(0.9 + 0.21 * lengths.size, 40.0))
    places = np.arange(lengths.size)
    shades = [POSITIVE if length >= 0.0 else NEGATIVE for length in lengths]
    ax.barh(places, lengths, height=0.7, color=shades, zorder=2)
    if spread is not None:
        ax.errorbar(
            lengths, places, xerr=spread, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2.0
        )
    ax.axvline(0.0, color=INK, lw=0.8, zorder=3)
    size = fitted_size(points_high(ax) / lengths.size)
    ax.set_yticks(places, labels, fontsize=size)
    for text, length in zip(ax.get_yticklabels(), lengths, strict=True):
        text.set_color(MUTED if length == 0.0 else INK)
    ax.set_ylim(lengths.size - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color="#E5E5E5", lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    if title is not None:
        ax.set_title(title)
    return ax
