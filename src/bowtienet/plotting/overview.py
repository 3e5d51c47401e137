"""The plots of a model that apply, in one figure: what `model.plot(X, y)` shows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from bowtienet.evaluation.competitors import features_and_targets, rows_of
from bowtienet.plotting._display import Display, pyplot
from bowtienet.plotting.accuracy import PredictedActualDisplay
from bowtienet.plotting.band import PredictiveBandDisplay, columns_of, gather
from bowtienet.plotting.calibration import CalibrationDisplay
from bowtienet.plotting.network import NetworkDisplay


class OverviewDisplay(Display):
    """Up to four plots: predicted and actual values, calibration, bands, the network.

    Bands run along the columns that change predictions most and fill the remaining places: classes
    have no plot of predicted and actual values, and only bow tie networks have a network.

    Parameters
    ----------
    displays : sequence of Display
        The plots, each drawn into its own axes.
    """

    def __init__(self, *, displays: Sequence[Display]) -> None:
        self.displays = list(displays)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Self:
        """Draw the plots of the rows; `ax` is a sequence of axes, one for each plot."""
        X, y = features_and_targets(X, y)
        is_network = hasattr(estimator, "selection")
        plots: list[Any] = [partial(CalibrationDisplay.from_estimator, estimator, X, y)]
        if not hasattr(estimator, "predict_proba"):
            plots.insert(0, partial(PredictedActualDisplay.from_estimator, estimator, X, y))
        strongest = _strongest_columns(estimator, X, 4 - len(plots) - is_network)
        band = PredictiveBandDisplay.from_estimator
        plots += [partial(band, estimator, X, name, y) for name in strongest]
        if is_network:
            plots.append(partial(NetworkDisplay.from_estimator, estimator))
        axes = _axes(len(plots)) if ax is None else ax
        overview = cls(displays=[draw(ax=each) for draw, each in zip(plots, axes, strict=True)])
        overview.ax_, overview.figure_ = list(axes), axes[0].figure
        return overview

    def plot(self, ax: Any = None) -> Self:
        """Draw into the axes of the sequence `ax`, or into a new figure."""
        axes = _axes(len(self.displays)) if ax is None else ax
        for display, each in zip(self.displays, axes, strict=True):
            display.plot(each)
        self.ax_, self.figure_ = list(axes), axes[0].figure
        return self


def _strongest_columns(estimator: Any, X: Any, count: int) -> list[Any]:
    """The columns whose permutation changes predictions most, in the mean over 200 rows."""
    columns, rng = columns_of(X), np.random.default_rng(0)
    some = rng.permutation(len(next(iter(columns.values()))))[:200]
    permuted = rng.permutation(some)
    predict = getattr(estimator, "predict_proba", estimator.predict)
    before = predict(rows_of(X, some))
    changes = {
        name: -np.mean(np.abs(predict(gather(X, {name: permuted}, some)) - before))
        for name in columns
    }
    return sorted(changes, key=changes.__getitem__)[:count]


def _axes(count: int) -> list[Any]:
    """Axes in rows of two; the last of an odd number is as wide as a row."""
    rows = [[2 * i, min(2 * i + 1, count - 1)] for i in range((count + 1) // 2)]
    size = (11.0, 4.3 * len(rows))
    figure, axes = pyplot().subplot_mosaic(rows, figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    return [axes[i] for i in range(count)]
