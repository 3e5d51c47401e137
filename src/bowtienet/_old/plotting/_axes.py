"""What all plots share: matplotlib when it is needed, axes, colours and names that fit."""

from __future__ import annotations

import textwrap
from typing import Any

from bowtienet._old import _validation

POSITIVE = "#0072B2"
NEGATIVE = "#D55E00"
"""Blue and vermilion of Okabe and Ito: told apart with every kind of colour vision."""
ABSENT = "#B5B5B5"
"""What has no weights at all."""
INK = "#333333"
MUTED = "#6E6E6E"
"""Of references and remarks: light, but with enough contrast to be read."""
CURVES = (
    (POSITIVE, "-", "o"),
    (NEGATIVE, "--", "s"),
    ("#009E73", "-.", "^"),
    ("#CC79A7", ":", "D"),
)
"""Colour, line and marker of curves that share axes: each of the three tells them apart."""
NAME_SIZE = 9.0
SMALL_SIZE = 8.0
TITLE_SIZE = 10.5
_LONGEST_NAME = 40
_POINTS_PER_INCH = 72.0
_LARGE_UNITS = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
_IN_FULL = 2e7
"""Largest number on an axis up to which numbers are written in full."""


def load(module: str) -> Any:
    """A module of matplotlib, imported by the first plot and not before."""
    needed = "plots need matplotlib: pip install 'bowtienet[plot]'."
    return _validation.optional(f"matplotlib.{module}", needed)


def new_figure(width: float, height: float) -> Any:
    """A figure that notebooks show, with a layout that makes room for every text."""
    return load("pyplot").figure(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Any, width: float, height: float) -> Any:
    """`ax` itself, or axes of a new figure of so many inches."""
    return new_figure(width, height).add_subplot() if ax is None else ax


def tidy(ax: Any) -> None:
    """Axes without the frame's upper and right side."""
    ax.spines[["top", "right"]].set_visible(False)


def add_title(ax: Any, words: str, *, pad: float = 6.0) -> None:
    """A title, in lines that fit; one that axes have already stays."""
    if not words or ax.get_title():
        return
    inches = ax.get_position().width * ax.figure.get_figwidth()
    letters = int(inches * _POINTS_PER_INCH / (0.5 * TITLE_SIZE))
    lines = textwrap.wrap(words, max(letters, 16))
    ax.set_title("\n".join(lines), fontsize=TITLE_SIZE, pad=pad)


def add_figure_title(fig: Any, words: str) -> None:
    """A title above all axes of a figure; one that it has already stays."""
    if not fig.get_suptitle():
        letters = int(fig.get_figwidth() * _POINTS_PER_INCH / (0.5 * TITLE_SIZE))
        lines = textwrap.wrap(words, max(letters, 16))
        fig.suptitle("\n".join(lines), fontsize=TITLE_SIZE + 0.5)


def add_legend(ax: Any, **settings: Any) -> Any:
    """A legend without frame that hides no letters behind it."""
    return ax.legend(
        **{"fontsize": SMALL_SIZE + 0.5, "framealpha": 0.8, "edgecolor": "none"} | settings
    )


def add_figure_legend(fig: Any, handles: list[Any], place: str) -> None:
    """A legend above or below all axes of a figure."""
    look = {"ncols": len(handles), "frameon": False, "fontsize": SMALL_SIZE + 0.5}
    fig.legend(handles=handles, loc=f"outside {place} center", **look)


def tint(color: str, share: float) -> tuple[float, ...]:
    """So much of `color`, the rest white: lightness tells tints apart also in grey."""
    return tuple(1.0 - share * (1.0 - part) for part in load("colors").to_rgb(color))


def percent(share: float) -> str:
    """A share as readers say it: 90 %."""
    return f"{100.0 * share:.4g} %"


def signed(value: float, digits: int) -> str:
    """A number in a text, with the minus sign that numbers at axes have."""
    return f"{value:,.{digits}f}".replace("-", "−")


def group_thousands(axis: Any, *, least: float = 1e4) -> None:
    """Write large numbers for people, and no factor elsewhere: 20,000 or 250 million.

    Where none reaches `least` all stay as they are, so that years are 1891 and not 1,891.
    """
    largest = max(map(abs, axis.get_view_interval()))
    if not least <= largest < 1e15:
        return
    unit, words = 1.0, ""
    if largest >= _IN_FULL:
        unit, words = next(own for own in _LARGE_UNITS if largest >= own[0])
    formatter = load("ticker").FuncFormatter(
        lambda x, _: f"{x / unit:,.10g}{words if x else ''}".replace("-", "−")
    )
    axis.set_major_formatter(formatter)


def whole_numbers(axis: Any) -> None:
    """Ticks at whole numbers only."""
    axis.get_major_locator().set_params(integer=True)


def layer_title(layer: int, n_layers: int) -> str:
    """Where the weights of a layer, counted from 0, come from and go to."""
    source = "inputs" if layer == 0 else f"layer {layer}"
    return f"{source} → {'output' if layer == n_layers - 1 else f'layer {layer + 1}'}"


def points_high(area: Any) -> float:
    """Height of axes or of a figure in points, the unit of line widths and letters."""
    return float(area.bbox.height / area.figure.dpi * _POINTS_PER_INCH)


def fitted_size(room: float, size: float = NAME_SIZE) -> float:
    """Size of letters in lines that are `room` points apart; below 4 points nobody can read."""
    return max(4.0, min(size, 0.85 * room))


def shorten(name: str) -> str:
    """`name`, cut where it would take the room of the plot."""
    return _validation.shorten(name, _LONGEST_NAME)


def inches_wide(names: list[str]) -> float:
    """How much room the longest of `names` takes."""
    font = load("font_manager").FontProperties(size=NAME_SIZE)
    measure = load("textpath").text_to_path.get_text_width_height_descent
    widths = (measure(name, font, ismath=False)[0] for name in names)
    return float(max(widths, default=0.0)) / _POINTS_PER_INCH
