"""Display of which classes are taken for which."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.metrics import confusion_matrix

from bowtienet._old._validation import named
from bowtienet._old.evaluation.checks import read_sample_weight
from bowtienet._old.evaluation.class_checks import read_classes, read_labels
from bowtienet._old.plotting import _axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL = 0.62
"""Inches of a cell of few classes."""
_MOST_INCHES = 9.0
"""Of all cells together."""
_BOTH_LINES = 24.0
"""Points of a cell that has room for its count below its share."""
_DARK = 0.93
"""Share from which white letters have more contrast than black ones, 4.5 or more in both cases."""


class ConfusionDisplay:
    """Shares of the rows of each actual class (row) that are taken for each class (column).

    Shares of a row sum to 100 %; on the diagonal is what is right. Below a share is the count of
    rows, where there is room. What never happened is empty.

    Parameters
    ----------
    counts : array (C, C)
        Rows by actual and predicted class; sums of weights, if rows have weights.
    class_names : sequence of str, optional
        Names of the classes; c0, c1, ... by default.

    Attributes
    ----------
    shares : array (C, C)
        Counts over the sums of their rows; zero for classes without rows.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    image_ : matplotlib artist
    texts_ : dict of matplotlib texts
        By row and column.
    """

    def __init__(self, *, counts: Any, class_names: Iterable[str] | None = None) -> None:
        self.counts = np.asarray(counts)
        self.class_names = named(class_names, len(self.counts), "class_names", "c")
        totals = np.sum(self.counts, axis=1, keepdims=True)
        self.shares = self.counts / np.where(totals > 0, totals, 1)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, **settings: Any) -> Self:
        """Draw which classes a classifier takes for which.

        Parameters
        ----------
        model : fitted classifier
            Fitted; a pipeline that ends with one, too.
        X : table (n, columns)
            Held-out rows.
        y : array (n,)
            Labels.
        **settings
            Those of `from_predictions`.
        """
        if not hasattr(model, "classes_"):
            raise TypeError(
                f"{type(model).__name__} has no classes_: use a fitted classifier, or "
                "from_predictions."
            )
        return cls.from_predictions(y, model.predict(X), model.classes_, **settings)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        predicted: Any,
        classes: Any,
        *,
        sample_weight: Any = None,
        ax: Axes | None = None,
        **image: Any,
    ) -> Self:
        """Draw which labels are taken for which.

        Parameters
        ----------
        y, predicted : array (n,)
            Labels, and what they are taken for.
        classes : array (C,)
            All classes, in the order of rows and columns.
        sample_weight : array (n,), optional
            How many times each row counts.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **image
            For matplotlib's `imshow`.
        """
        known = read_classes(classes)
        actual, taken = read_labels(y, known), read_labels(predicted, known, "predicted")
        if actual.size != taken.size:
            raise ValueError(f"y has {actual.size} rows, but predicted has {taken.size}.")
        weights = None
        if sample_weight is not None:
            read_sample_weight(sample_weight, actual.astype(float))  # says what is wrong with them
            weights = np.asarray(sample_weight, dtype=float)
        counts = confusion_matrix(actual, taken, labels=range(len(known)), sample_weight=weights)
        display = cls(counts=counts, class_names=map(str, known))
        return display.plot(ax=ax, **image)

    def plot(self, *, ax: Axes | None = None, **image: Any) -> Self:
        """Draw again, elsewhere; with `ax` and `image` as above."""
        n = len(self.counts)
        names = [_axes.shorten(name) for name in self.class_names]
        side = min(_CELL * n + 1.0, _MOST_INCHES)
        room = 0.7 + _axes.inches_wide(names)
        ax = _axes.axes_or_new(ax, side + room, side + room)
        colors = _axes.load("colors").LinearSegmentedColormap.from_list(
            "share", ["white", _axes.POSITIVE]
        )
        look: dict[str, Any] = {"cmap": colors, "vmin": 0.0, "vmax": 1.0}
        self.image_ = ax.imshow(self.shares, **(look | image))
        points = _axes.points_high(ax) / n
        size = _axes.fitted_size(points)
        upright = max(map(len, names)) * 0.6 * size > points
        ax.set_xticks(range(n), names, fontsize=size, rotation=90 if upright else 0)
        ax.set_yticks(range(n), names, fontsize=size)
        ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="#E5E5E5", lw=0.6)
        ax.tick_params(which="both", length=0)
        ax.spines[:].set_visible(False)
        ax.set(xlabel="predicted class", ylabel="actual class")
        self._write(ax, points)
        hint = "% of each actual class" + ", and rows" * (points >= _BOTH_LINES)
        ax.set(xlabel=f"predicted class\n({hint})")
        _axes.add_title(ax, "Confusion matrix")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _write(self, ax: Any, points: float) -> None:
        """Shares in percent, and counts below where a cell has room for both."""
        size = _axes.fitted_size((0.42 if points >= _BOTH_LINES else 0.55) * points)
        self.texts_ = {}
        for row, column in np.argwhere(self.counts > 0):
            share = self.shares[row, column]
            text = share_text(share, points)
            if points >= _BOTH_LINES:
                text += f"\n{self.counts[row, column]:,.4g}"
            self.texts_[int(row), int(column)] = ax.text(
                column,
                row,
                text,
                ha="center",
                va="center",
                fontsize=size,
                color="white" if share > _DARK else "black",
            )


def share_text(share: float, points: float) -> str:
    """A share in percent, with its sign where there is room; what rounds to zero is not zero."""
    number = f"{100.0 * share:.0f}"
    if number == "0":
        number = "<1"
    return f"{number} %" if points >= _BOTH_LINES else number
