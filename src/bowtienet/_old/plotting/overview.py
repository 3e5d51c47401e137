"""Display of the one figure that people want first: how well new rows are predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import chosen
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.ensemble.count_ensemble import is_counts
from bowtienet._old.estimators.base import EnsembleEstimator
from bowtienet._old.estimators.regressor import BowTieRegressor
from bowtienet._old.plotting import _axes
from bowtienet._old.plotting.calibration import CalibrationCurveDisplay
from bowtienet._old.plotting.class_curves import RocCurvesDisplay
from bowtienet._old.plotting.confusion import ConfusionDisplay
from bowtienet._old.plotting.fitted import network_of, open_rows, target_names
from bowtienet._old.plotting.pit import PitHistogramDisplay
from bowtienet._old.plotting.predicted_actual import PredictedActualDisplay
from bowtienet._old.plotting.predictive_band import PredictiveBandDisplay
from bowtienet._old.plotting.reliability import ReliabilityDisplay

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class OverviewDisplay:
    """How well a fitted model predicts rows that it has not seen, in one figure.

    Of numbers and counts: predicted against actual, the band along one feature with partial
    residuals, calibration, and the PIT histogram. Of classes: reliability, the confusion matrix
    and, if the rows have more than one class, ROC curves. ``model.plot(X, y)`` draws it.

    Parameters
    ----------
    displays : sequence of displays
        Those of the panels, which can each be drawn again by themselves.
    title : str
        Above all panels.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and array of its axes
        Where it was drawn last.
    """

    def __init__(self, *, displays: Sequence[Any], title: str = "") -> None:
        self.displays, self.title = list(displays), title

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        feature: str | int | None = None,
        target: int = 0,
        coverage: float = 0.9,
        exposure: Any = None,
        fig: Figure | None = None,
    ) -> Self:
        """Draw how well a fitted estimator predicts rows.

        Parameters
        ----------
        model : BowTieRegressor, BowTieClassifier, or pipeline that ends with one
            Fitted.
        X : table (n, columns)
            Held-out rows, in memory.
        y : array or names
            Targets or labels, or columns of X that hold them.
        feature : str or int, optional
            Of the band; by default the column that is strongest in the networks.
        target : int
            Which of several targets.
        coverage : float
            Probability of the intervals.
        exposure : array (n,) or name, optional
            Of counts, as for `fit`.
        fig : matplotlib figure, optional
            Where to draw; a new one by default.

        Examples
        --------
        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from bowtienet import BowTieRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-2.0, 2.0, size=(200, 2))
        >>> y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=200)
        >>> model = BowTieRegressor((20,), effort="fast", random_state=0).fit(X[:120], y[:120])
        >>> found = model.plot(X[120:], y[120:], fig=Figure(figsize=(10.0, 8.0)))
        >>> [ax.get_title() for ax in found.axes_.flat][:2]
        ['Actual against predicted y', 'Predicted y along x0']
        """
        network = network_of(model)
        given = {} if exposure is None else {"exposure": exposure}
        source = open_rows(model, X, y, **given)
        if source.n_targets == 0:
            raise ValueError("plot needs y: give targets, or name the columns of X that hold them.")
        names = target_names(network, source)
        name = names[chosen(target, len(names), "target")]
        if isinstance(network, BowTieRegressor):
            place = _strongest(network) if feature is None else feature
            draw = _draw_numbers(network, source, place, target, name, coverage)
        else:
            draw = _draw_classes(network, source)
        n_rows = source.block.table.n_rows
        title = f"{type(network).__name__} of {_axes.shorten(name)}: {n_rows:,} rows"
        found = cls(displays=[], title=title)
        axes = found._new_axes(len(draw), fig)
        found.displays = [one(ax=ax) for one, ax in zip(draw, axes, strict=True)]
        return found

    def plot(self, *, fig: Figure | None = None) -> Self:
        """Draw again, in another figure."""
        axes = self._new_axes(len(self.displays), fig)
        for display, ax in zip(self.displays, axes, strict=True):
            display.plot(ax=ax)
        return self

    def _new_axes(self, count: int, fig: Any) -> Iterator[Any]:
        """Axes of a figure with the title, one for each panel."""
        rows = 2 if count == 4 else 1
        size = (10.0, 8.0) if rows == 2 else (4.8 * count, 5.2)
        self.figure_ = _axes.new_figure(*size) if fig is None else fig
        self.axes_ = self.figure_.subplots(rows, count // rows)
        _axes.add_figure_title(self.figure_, self.title)
        return iter(self.axes_.flat)


def _draw_numbers(
    network: BowTieRegressor,
    source: InMemory,
    feature: str | int,
    target: int,
    name: str,
    coverage: float,
) -> list[Callable[..., Any]]:
    """What draws the panels of numbers and counts, each on given axes."""
    targets = to_numpy(source.block.targets)
    if is_counts(network.ensemble_):
        targets = targets[:, 0]  # beside it stand the logs of exposures
    forecast = (targets, network.predict_dist(source))
    named: dict[str, Any] = {"target": target, "target_name": name}
    coverages = (0.5, coverage) if coverage > 0.5 else (coverage,)
    return [
        partial(PredictedActualDisplay.from_predictions, *forecast, coverage=coverage, **named),
        partial(
            PredictiveBandDisplay.from_estimator,
            *(network, source, feature),
            others="average",
            coverages=coverages,
            **named,
        ),
        partial(CalibrationCurveDisplay.from_predictions, *forecast, target=target),
        partial(PitHistogramDisplay.from_predictions, *forecast, target=target),
    ]


def _draw_classes(network: Any, source: InMemory) -> list[Callable[..., Any]]:
    """What draws the panels of classes, each on given axes."""
    codes = to_numpy(source.block.targets)[:, 0].astype(np.intp)
    classes, found = network.classes_, network.predict_proba(source)
    labels, taken = classes[codes], classes[np.argmax(found, axis=1)]
    draw: list[Callable[..., Any]] = [
        partial(ReliabilityDisplay.from_predictions, labels, found, classes),
        partial(ConfusionDisplay.from_predictions, labels, taken, classes),
        partial(RocCurvesDisplay.from_predictions, labels, found, classes),
    ]
    return draw if np.unique(codes).size > 1 else draw[:2]


def _strongest(network: EnsembleEstimator) -> int:
    """The place of the column that is strongest in the networks."""
    return int(np.argmax(network.feature_relevance_.strongest().strength))
