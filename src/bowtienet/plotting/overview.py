"""Display of the one figure that people want first: how well new rows are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet.data.in_memory import InMemory
from bowtienet.ensemble.count_ensemble import is_counts
from bowtienet.estimators.base import EnsembleEstimator
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.plotting import _axes
from bowtienet.plotting._checks import chosen
from bowtienet.plotting.calibration import CalibrationCurveDisplay
from bowtienet.plotting.class_curves import RocCurvesDisplay
from bowtienet.plotting.confusion import ConfusionDisplay
from bowtienet.plotting.fitted import network_of, open_rows, regressor_of, target_names
from bowtienet.plotting.pit import PitHistogramDisplay
from bowtienet.plotting.predicted_actual import PredictedActualDisplay
from bowtienet.plotting.predictive_band import PredictiveBandDisplay
from bowtienet.plotting.reliability import ReliabilityDisplay

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
        if not isinstance(network, BowTieRegressor):
            return cls._of_classes(network, source, fig)
        place = _strongest(network) if feature is None else feature
        return cls._of_numbers(regressor_of(model), source, place, target, coverage, fig)

    def plot(self, *, fig: Figure | None = None) -> Self:
        """Draw again, in another figure."""
        count = len(self.displays)
        rows = 2 if count == 4 else 1
        size = (10.0, 8.0) if rows == 2 else (4.8 * count, 5.2)
        figure: Any = _axes.new_figure(*size) if fig is None else fig
        self.axes_ = figure.subplots(rows, count // rows)
        for display, ax in zip(self.displays, self.axes_.flat, strict=True):
            display.plot(ax=ax)
        _axes.add_figure_title(figure, self.title)
        self.figure_ = figure
        return self

    @classmethod
    def _of_numbers(
        cls,
        network: BowTieRegressor,
        source: InMemory,
        feature: str | int,
        target: int,
        coverage: float,
        fig: Figure | None,
    ) -> Self:
        names = target_names(network, source)
        name = names[chosen(target, len(names), "target")]
        targets = to_numpy(source.block.targets)
        if is_counts(network.ensemble_):
            targets = targets[:, 0]  # beside it stand the logs of exposures
        found = network.predict_dist(source)
        figure: Any = _axes.new_figure(10.0, 8.0) if fig is None else fig
        axes = figure.subplots(2, 2)
        actual, band, calibration, pit = axes.flat
        settings: dict[str, Any] = {"target": target}
        displays = [
            PredictedActualDisplay.from_predictions(
                targets, found, coverage=coverage, target_name=name, ax=actual, **settings
            ),
            PredictiveBandDisplay.from_estimator(
                network,
                source,
                feature,
                others="average",
                coverages=(0.5, coverage) if coverage > 0.5 else (coverage,),
                target_name=name,
                ax=band,
                **settings,
            ),
            CalibrationCurveDisplay.from_predictions(targets, found, ax=calibration, **settings),
            PitHistogramDisplay.from_predictions(targets, found, ax=pit, **settings),
        ]
        return cls(displays=displays)._drawn(figure, axes, network, source, name)

    @classmethod
    def _of_classes(cls, network: Any, source: InMemory, fig: Figure | None) -> Self:
        codes = to_numpy(source.block.targets)[:, 0].astype(np.intp)
        classes = network.classes_
        labels, found = classes[codes], network.predict_proba(source)
        several = np.unique(codes).size > 1
        figure: Any = _axes.new_figure(4.8 * (2 + several), 5.2) if fig is None else fig
        axes = figure.subplots(1, 2 + several)
        displays = [
            ReliabilityDisplay.from_predictions(labels, found, classes, ax=axes[0]),
            ConfusionDisplay.from_predictions(
                labels, classes[np.argmax(found, axis=1)], classes, ax=axes[1]
            ),
        ]
        if several:
            displays.append(RocCurvesDisplay.from_predictions(labels, found, classes, ax=axes[2]))
        name = target_names(network, source)[0]
        return cls(displays=displays)._drawn(figure, axes, network, source, name)

    def _drawn(
        self, figure: Any, axes: Any, network: EnsembleEstimator, source: InMemory, name: str
    ) -> Self:
        kind, n_rows = type(network).__name__, source.block.table.n_rows
        self.title = f"{kind} of {_axes.shorten(name)}: {n_rows:,} rows"
        _axes.add_figure_title(figure, self.title)
        self.figure_, self.axes_ = figure, axes
        return self


def _strongest(network: EnsembleEstimator) -> int:
    """The place of the column that is strongest in the networks."""
    return int(np.argmax(network.feature_relevance_.strongest().strength))
