"""What the figures share: colours, axes, legends, and fits that a folder keeps.

folder/figures/*.png    folder/tables/*.md    folder/fits
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Report = Callable[[str], None]
"""Is told how far an experiment is, a sentence at a time."""

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, YELLOW, INK, GREY = "#56B4E9", "#E69F00", "#333333", "#B5B5B5"
"""Of Okabe and Ito: told apart with every kind of colour vision."""
_STYLES = {
    "single": (BLUE, "-", "o"),
    "ensemble": (SKY, "-", "D"),
    "gaussian": (ORANGE, "--", "s"),
    "mean_field": (GREEN, "-.", "^"),
    "nuts": (INK, ":", "P"),
    "nuts_deep": (INK, "-", "P"),
    "backprop": (PINK, "--", "v"),
    "horseshoe": (YELLOW, "-.", "X"),
    "lasso": (INK, ":", "x"),
    "pruned": (ORANGE, "--", "s"),
    "pruned_signs": (ORANGE, "--", "s"),
}
"""Colour, line and marker of methods, the same in every figure."""


def style(method: str, **changes: Any) -> dict[str, Any]:
    """Colour, line and marker of a method, for matplotlib's `plot`."""
    color, line, marker = _STYLES.get(method, (GREY, "-", "."))
    look = {"color": color, "linestyle": line, "marker": marker, "linewidth": 1.4, "markersize": 5}
    return look | changes


def new_figure(width: float, height: float) -> Figure:
    """A figure that no window shows, with a layout that makes room for every text."""
    return Figure(figsize=(width, height), layout="constrained")


def tidy(ax: Axes, title: str = "") -> None:
    """Axes without the frame's upper and right side."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, fontsize=10.0)


def shared_legend(figure: Figure, columns: int = 8) -> None:
    """One legend below the figure with every label of its axes once."""
    found: dict[str, Any] = {}
    for ax in figure.axes:
        found = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True)) | found
    look = {"frameon": False, "fontsize": 9.0, "ncols": min(columns, max(len(found), 1))}
    figure.legend(list(found.values()), list(found), loc="outside lower center", **look)


def band(
    ax: Axes, x: np.ndarray, mean: np.ndarray, ends: np.ndarray, look: dict[str, Any], name: str
) -> None:
    """A mean (g,) along x with the intervals (g, 2) around it."""
    look = {**look, "marker": ""}
    ax.plot(x, mean, **look, label=name)
    ax.fill_between(x, ends[:, 0], ends[:, 1], color=look["color"], alpha=0.12, lw=0.0)
    # Where bands lie on each other, their colours mix, and only the edges tell them apart.
    ax.plot(x, ends, **{**look, "linewidth": 0.7})


def label_points(ax: Axes, x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> None:
    """Names in a column right of the axes, in the order of the points, with lines to them."""
    heights = np.linspace(0.02, 0.98, len(names))
    for height, place in zip(heights, np.argsort(y, kind="stable"), strict=True):
        ax.annotate(
            names[place],
            (x[place], y[place]),
            (1.04, height),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            arrowprops={"arrowstyle": "-", "color": GREY, "lw": 0.6, "relpos": (0.0, 0.5)},
        )


def save_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write folder/figures/name.png."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "figures" / f"{name}.png", dpi=120)


def save_table(text: str, folder: Path, name: str) -> None:
    """Write folder/tables/name.md."""
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "tables" / f"{name}.md").write_text(text, encoding="utf-8")


def remembered(
    function: Callable[..., Any], folder: Path, ignore: Sequence[str] = ()
) -> Callable[..., Any]:
    """The function, whose results are kept in folder/fits by its arguments, but those to ignore."""
    return Memory(folder / "fits", verbose=0).cache(function, ignore=list(ignore))
