"""Displays of how well class probabilities sort rows: ROC and precision-recall curves.

Each class is drawn against the rest, of two classes only the second. The curves are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from bowtienet._old.evaluation.class_checks import find_class, read_forecast
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting._scored import ClassifiedDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 8
"""Curves up to which each has its own line and name."""
_WORST_NAMED = 4
"""Of more curves those of the smallest areas have; the others are grey."""
_LOW_PRECISION = 0.5
"""Area below which a precision-recall curve runs through the lower left corner."""


class ClassCurve(NamedTuple):
    """The curve of one class against the rest."""

    name: str
    x: np.ndarray
    y: np.ndarray
    area: float
    share: float
    """Of the rows that are of this class."""


class _ClassCurvesDisplay(ClassifiedDisplay):
    """Curves of classes on common axes."""

    _area_name: ClassVar[str]
    _title: ClassVar[str]
    _axis_names: ClassVar[tuple[str, str]]
    _step: ClassVar[str]

    def __init__(self, *, curves: Iterable[ClassCurve], name: str | None = None) -> None:
        self.curves, self.name = tuple(curves), name
        self.areas = {curve.name: curve.area for curve in self.curves}

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        probabilities: Any,
        classes: Any,
        *,
        labels: Iterable[Any] | None = None,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **line: Any,
    ) -> Self:
        """Draw how well class probabilities sort rows.

        Parameters
        ----------
        y, probabilities, classes
            Labels (n,), probabilities (n, C) or (n,) of the second of two classes, and the classes.
        labels : classes, optional
            Which are drawn, each against the rest. By default the second of two classes; of more
            classes all that have rows.
        sample_weight : array (n,), optional
            How many times each row counts.
        name : str, optional
            Of the model, before the names of the classes in the legend.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default. Several displays may share axes.
        **line
            Of all curves, for matplotlib's `plot`.
        """
        found = read_forecast(y, probabilities, classes, sample_weight)
        counted = found.weights > 0.0
        places, weights = found.places[counted], found.weights[counted]
        totals = np.bincount(places, weights=weights, minlength=len(found.classes))
        shares = totals / np.sum(weights)
        if np.max(shares) == 1.0:
            raise ValueError("y holds one class only, so there is nothing to tell it apart from.")
        if labels is not None:
            chosen = [find_class(label, found.classes, "labels") for label in labels]
        else:
            chosen = [1] if len(found.classes) == 2 else list(np.flatnonzero(shares))
        for place in chosen:
            if shares[place] == 0.0:
                raise ValueError(f"labels holds {found.classes[place]!r}, but y has no such row.")
        curves = []
        for place in chosen:
            given = (places == place, found.probabilities[counted, place])
            drawn = cls._curve(*given, weights)
            curves.append(ClassCurve(str(found.classes[place]), *drawn, float(shares[place])))
        return cls(curves=curves, name=name).plot(ax=ax, **line)

    @staticmethod
    def _curve(
        truths: np.ndarray, scores: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """x and y of a curve, and its area."""
        raise NotImplementedError

    def plot(self, *, ax: Axes | None = None, **line: Any) -> Self:
        """Draw again, elsewhere or beside another one; with `ax` and `line` as above."""
        ax = _axes.axes_or_new(ax, 4.8, 4.8)
        earlier = sum(artist.get_gid() == self._area_name for artist in ax.lines)
        if earlier == 0:
            self._draw_axes(ax)
        named, others = self._named()
        self.lines_: dict[str, Any] = {}
        for number, curve in enumerate(named, start=earlier):
            color, style = line_of(number)
            look: dict[str, Any] = {"color": color, "linestyle": style, "lw": 1.6, "zorder": 3}
            look |= {"gid": self._area_name, "label": self._label(curve)}
            self._draw(ax, curve, look | line)
        for curve in others:
            self._draw(ax, curve, {"color": _axes.ABSENT, "lw": 0.8, "zorder": 2} | line)
        if others:
            areas = [curve.area for curve in others]
            span = f"{self._area_name} {min(areas):.3f} to {max(areas):.3f}"
            self.lines_[others[0].name].set_label(f"{len(others)} more classes ({span})")
        _axes.add_legend(ax, loc=self._legend_place())
        _axes.add_title(ax, self._title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any, curve: ClassCurve, look: dict[str, Any]) -> None:
        (self.lines_[curve.name],) = ax.plot(curve.x, curve.y, **({"drawstyle": self._step} | look))

    def _named(self) -> tuple[list[ClassCurve], list[ClassCurve]]:
        """Curves that have a name, all or those of the smallest areas, and the others."""
        if len(self.curves) <= _MOST_NAMED:
            return list(self.curves), []
        order = np.argsort([curve.area for curve in self.curves], kind="stable")
        worst, others = np.sort(order[:_WORST_NAMED]), np.sort(order[_WORST_NAMED:])
        return [self.curves[place] for place in worst], [self.curves[place] for place in others]

    def _label(self, curve: ClassCurve) -> str:
        model = "" if self.name is None else f"{self.name}, "
        return f"{model}{_axes.shorten(curve.name)} ({self._area_name} {curve.area:.3f})"

    def _legend_place(self) -> str:
        """Corner that curves leave empty."""
        raise NotImplementedError

    def _chance(self) -> tuple[float, float] | None:
        """Heights of the line of chance at both ends, if there is one."""
        raise NotImplementedError

    def _draw_axes(self, ax: Any) -> None:
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        ax.set(xlabel=self._axis_names[0], ylabel=self._axis_names[1])
        _axes.tidy(ax)
        chance = self._chance()
        if chance is not None:
            look: dict[str, Any] = {"color": _axes.MUTED, "lw": 1.0, "linestyle": (0, (5, 3))}
            ax.plot([0.0, 1.0], chance, label="chance", zorder=1, **look)


class RocCurvesDisplay(_ClassCurvesDisplay):
    """Receiver operating characteristics: true over false positive rate, class by class.

    The area (AUC) is the probability that a row of the class has a higher probability of it than
    another row has; 0.5, the dashed line, is that of chance.

    Parameters
    ----------
    curves : sequence of ClassCurve
        One for each class. Of more than eight the four with the smallest areas are named, and the
        others are grey.
    name : str, optional
        Of the model, for the legend.

    Attributes
    ----------
    areas : dict
        Area by the name of the class.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    lines_ : dict of matplotlib artists
        By the name of the class.
    """

    _area_name = "AUC"
    _title = "ROC curves"
    _axis_names = ("false positive rate", "true positive rate")
    _step = "default"

    @staticmethod
    def _curve(
        truths: np.ndarray, scores: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        x, y, _ = roc_curve(truths, scores, sample_weight=weights)
        return x, y, float(roc_auc_score(truths, scores, sample_weight=weights))

    def _legend_place(self) -> str:
        return "lower right"

    def _chance(self) -> tuple[float, float]:
        return 0.0, 1.0


class PrecisionRecallCurvesDisplay(_ClassCurvesDisplay):
    """Precision over recall, class by class: for rare classes more telling than ROC curves.

    Recall is the share of the rows of a class that are found, precision the share of the class
    among the rows that are taken for it. The area (AP) is the average precision; that of chance is
    the share of the class.

    Parameters
    ----------
    curves : sequence of ClassCurve
        As for `RocCurvesDisplay`. A single curve has the dashed line of chance.
    name : str, optional
        Of the model, for the legend.

    Attributes
    ----------
    areas, ax_, figure_, lines_ : as for `RocCurvesDisplay`
    """

    _area_name = "AP"
    _title = "Precision-recall curves"
    _axis_names = ("recall", "precision")
    _step = "steps-post"

    @staticmethod
    def _curve(
        truths: np.ndarray, scores: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        y, x, _ = precision_recall_curve(truths, scores, sample_weight=weights)
        return x, y, float(average_precision_score(truths, scores, sample_weight=weights))

    def _legend_place(self) -> str:
        worst = min(curve.area for curve in self.curves)
        return "upper right" if worst < _LOW_PRECISION else "lower left"

    def _chance(self) -> tuple[float, float] | None:
        return (self.curves[0].share,) * 2 if len(self.curves) == 1 else None


def line_of(number: int) -> tuple[str, str]:
    """Colour and style of a curve, from 0: sixteen pairs that differ."""
    n = len(_axes.CURVES)
    return _axes.CURVES[number % n][0], _axes.CURVES[(number + number // n) % n][1]
