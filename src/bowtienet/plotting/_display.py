"""What all plots share: scikit-learn's Display interface, colours, and plain numbers on axes."""

from __future__ import annotations

import textwrap
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Okabe and Ito's colours can be told apart by colour-blind readers.
BLUE, ORANGE, SKY, PALE = "#0072B2", "#D55E00", "#56B4E9", "#D9D9D9"


class Display:
    """A plot, drawn by `from_estimator` and redrawn elsewhere by `plot`.

    Its attributes are what it shows, and the parameters of its class. Every `from_estimator` takes
    some of these arguments:

    - `estimator`, fitted; `X` and `y`, held-out rows and their targets, or the target's name in X
    - `coverage` of intervals in (0, 1), 0.9 by default
    - `target`, the index of one of several targets
    - `ax`, matplotlib axes; a new figure by default

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    """

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw into `ax`, or into a new figure."""
        if ax is None:
            _, ax = pyplot().subplots(figsize=(6.0, 4.5), layout="constrained")
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def pyplot() -> Any:
    """matplotlib.pyplot, imported when something is drawn."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib.") from error
    return pyplot


def label(ax: Any, title: str, x: str = "", y: str = "") -> None:
    """Title, names of the axes, a quiet grid and no box."""
    # 58 characters fit above a plot of 600 pixels.
    lines = [textwrap.fill(line, 58) for line in title.splitlines()]
    ax.set_title("\n".join(lines), loc="left", fontsize="medium")
    ax.set(xlabel=shortened(x, 38), ylabel=shortened(y, 38), axisbelow=True)
    ax.grid(color=PALE, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def shortened(text: Any, width: int = 18) -> str:
    """A name without its middle if it is too long: names often differ in their ends.

    At a tick 18 characters fit, along an axis 38.
    """
    name, half = str(text), width // 2
    return name if len(name) <= width else f"{name[:half]}…{name[1 - half :]}"


def plain_numbers(*axes: Any) -> None:
    """Ticks such as 250,000 in place of 2.5e5, and few of them."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace("-", "\N{MINUS SIGN}"))
        axis.get_major_locator().set_params(nbins=6)


def percent(*axes: Any) -> None:
    """Ticks of shares in per cent."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{100.0 * value:.0f} %")


def column_of(values: Any, target: int) -> Floats:
    """The values (n,) of one target from (n,) or (n, targets)."""
    array = np.asarray(values, dtype=float)
    return array.reshape(len(array), -1)[:, target]


def interval_of(estimator: Any, X: Any, coverage: float, target: int) -> Floats:
    """The interval (n, 2) of one target."""
    ends = np.asarray(estimator.predict_interval(X, coverage))
    return ends.reshape(len(ends), -1, 2)[:, target]


def target_name(estimator: Any, target: int = 0) -> str:
    """The name of a target in the table of the fit, else "y"."""
    return str(getattr(estimator, "_target_names", ("y",))[target])
