"""The predictive distribution along one feature, the others held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bowtienet.evaluation.competitors import features_and_targets, outcome_of, rows_of
from bowtienet.plotting import _display
from bowtienet.plotting._display import BLUE, ORANGE, SKY, Display, column_of, shortened
from bowtienet.tables.frames import frame_of
from bowtienet.tables.texts import is_missing


class PredictiveBandDisplay(Display):
    """Predictive mean, its epistemic uncertainty, and where new targets lie, along one feature.

    The dark band is the epistemic uncertainty of the mean, the pale one holds new targets, noise
    included. For classes, the probability of each. Other columns are held at their median or most
    frequent value.

    Parameters
    ----------
    values : array (m,)
        Values of the feature in the table.
    mean : array (m,), or (m, classes) of probabilities
        Predictive means.
    epistemic, interval : array (m, 2), optional
        Ends of the two bands, for numbers and counts.
    points : (values, targets), optional
        Dots: the prediction at typical other columns plus the residual of the row, for counts times
        actual over predicted, so that dots scatter about the mean as targets do.
    coverage : float
        Stated probability of both bands.
    feature, name : str
        Names of the feature and the target.
    classes : sequence, optional
        Names of the columns of probabilities.
    """

    def __init__(
        self,
        *,
        values: Any,
        mean: Any,
        epistemic: Any = None,
        interval: Any = None,
        points: Any = None,
        coverage: float = 0.9,
        feature: str = "x",
        name: str = "y",
        classes: Any = (),
    ) -> None:
        self.values, self.mean = np.asarray(values), np.asarray(mean)
        self.epistemic, self.interval, self.points = epistemic, interval, points
        self.coverage, self.feature, self.name, self.classes = coverage, feature, name, classes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        feature: Any,
        y: Any = None,
        *,
        coverage: float = 0.9,
        target: int = 0,
        ax: Any = None,
    ) -> Self:
        """Draw predictions along a feature of the rows X, with dots if targets are given.

        The feature is the name of a column of a frame, or the number of a column of an array, where
        2 is also called "x2".
        """
        if y is not None:
            X, y = features_and_targets(X, y)
        columns = columns_of(X)
        if frame_of(X) is None:
            feature = {f"x{i}": i for i in columns}.get(feature, feature)
        if feature not in columns:
            raise ValueError(f"feature must be one of {list(columns)}, got {feature!r}.")
        chosen = _along(columns[feature])
        if not len(chosen):
            raise ValueError(f"feature {feature!r} has no value in these rows.")
        rows = _held(X, columns, feature, chosen)
        shared: dict[str, Any] = {
            "values": columns[feature][chosen],
            "coverage": coverage,
            "feature": f"x{feature}" if isinstance(feature, int) else str(feature),
            "name": _display.target_name(estimator, target),
        }
        if hasattr(estimator, "predict_proba"):
            shares = estimator.predict_proba(rows)
            return cls(mean=shares, classes=estimator.classes_, **shared).plot(ax)
        parts = estimator.predict_components(rows)
        mean, spread = column_of(parts.mean, target), column_of(parts.epistemic, target)
        reach = float(ndtri(0.5 + 0.5 * coverage)) * spread
        points = None
        if y is not None and columns[feature].dtype.kind in "iuf":
            some = np.random.default_rng(0).permutation(len(y))[:1000]
            held = _held(X, columns, feature, some)
            along, each = (
                column_of(estimator.predict(table), target) for table in (held, rows_of(X, some))
            )
            known = column_of(y, target)[some]
            # Errors of counts grow with their means.
            is_count = outcome_of(estimator) == "counts"
            dots = along * known / each if is_count else along + known - each
            points = columns[feature][some], dots
        return cls(
            mean=mean,
            epistemic=np.stack([mean - reach, mean + reach], axis=-1),
            interval=_display.interval_of(estimator, rows, coverage, target),
            points=points,
            **shared,
        ).plot(ax)

    def _draw(self, ax: Any) -> None:
        is_line, is_date = self.values.dtype.kind in "iuf", self.values.dtype.kind == "M"
        places = self.values if is_line or is_date else np.arange(len(self.values))
        title, name = "other columns at typical values", self.name
        if self.mean.ndim == 2:
            self._draw_classes(ax, places, "-" if is_line else "o")
            name = "probability" + f" of {self.classes[1]}" * (len(self.classes) == 2)
        else:
            draw = self._draw_line if is_line else self._draw_bars
            draw(ax, places)
            _display.plain_numbers(ax.yaxis)
            share = f"{100.0 * self.coverage:g} %"
            title = f"{share} bands of the mean (dark) and new targets (pale)\n{title}"
        if is_line:
            _display.plain_numbers(ax.xaxis)
        elif is_date:
            from matplotlib import dates

            ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(ax.xaxis.get_major_locator()))
        else:
            names = [shortened(value) for value in self.values]
            crowded = sum(map(len, names)) > 50
            ax.set_xticks(places, names, rotation=30 * crowded, ha="right" if crowded else "center")
            ax.set_xlim(-0.6, len(places) - 0.4)
        _display.label(ax, title, self.feature, name)

    def _draw_line(self, ax: Any, places: Any) -> None:
        if self.points is not None:
            size = float(np.clip(3000.0 / len(self.points[1]), 2.0, 14.0))
            ax.scatter(*self.points, s=size, color="dimgrey", alpha=0.35, linewidths=0.0, zorder=1)
        ax.fill_between(places, *np.transpose(self.interval), color=SKY, alpha=0.3, linewidth=0.0)
        ax.fill_between(
            places, *np.transpose(self.epistemic), color=BLUE, alpha=0.35, linewidth=0.0
        )
        ax.plot(places, self.mean, color=BLUE, linewidth=2.0, zorder=3)

    def _draw_bars(self, ax: Any, places: Any) -> None:
        ax.vlines(places, *np.transpose(self.interval), color=SKY, alpha=0.5, linewidth=7.0)
        ax.vlines(places, *np.transpose(self.epistemic), color=BLUE, linewidth=2.5)
        ax.plot(places, self.mean, "o", color=BLUE, markersize=6.0, zorder=3)

    def _draw_classes(self, ax: Any, places: Any, style: str) -> None:
        """With two classes the second alone; with many those that are likely somewhere."""
        colors = [BLUE, ORANGE, "#009E73", "#CC79A7", SKY, "#E69F00"]
        largest = np.argsort(-self.mean.max(axis=0), kind="stable")[: len(colors)]
        shown = [1] if len(self.classes) == 2 else sorted(largest)
        for color, index in zip(colors, shown, strict=False):
            name = shortened(self.classes[index])
            ax.plot(places, self.mean[:, index], style, color=color, linewidth=2.0, label=name)
        ax.set_ylim(-0.02, 1.02)
        _display.percent(ax.yaxis)
        if len(self.classes) > 2:
            ax.legend(title=self.name, fontsize="small", title_fontsize="small", frameon=False)


def columns_of(X: Any) -> dict[Any, NDArray[Any]]:
    """Columns of a frame by name, or of an array by number."""
    frame = frame_of(X)
    if frame is None:
        return dict(enumerate(np.asarray(X).T))
    return {name: frame[name].to_numpy() for name in frame.columns}


def gather(X: Any, rows: Mapping[Any, NDArray[np.intp]], default: NDArray[np.intp]) -> Any:
    """A table whose columns take values from different rows; their types stay."""
    table, frame = rows_of(X, default), frame_of(X)
    if frame is not None:
        columns = (frame[name][index] for name, index in rows.items())
        return frame_of(table).with_columns(*columns).to_native()
    for name, index in rows.items():
        table[:, name] = np.asarray(X)[index, name]
    return table


def _held(X: Any, columns: dict[Any, Any], feature: Any, chosen: NDArray[np.intp]) -> Any:
    """Rows that differ in one feature; others have their median or most frequent value."""
    held = {feature: chosen}
    for name, values in columns.items():
        if name != feature:
            rows = _ranked(values)[: None if values.dtype.kind in "iufM" else 1]
            held[name] = np.full(len(chosen), rows[len(rows) // 2] if len(rows) else 0)
    return gather(X, held, chosen)


def _along(values: NDArray[Any]) -> NDArray[np.intp]:
    """Rows with the values that a plot shows: spread evenly, or the most frequent levels."""
    rows = _ranked(values)
    if values.dtype.kind not in "iufM" or not len(rows):
        return np.asarray(sorted(rows[:12], key=lambda row: str(values[row])))
    numbers = values[rows].astype(np.int64 if values.dtype.kind == "M" else float)
    wanted = np.linspace(numbers[0], numbers[-1], 12 if values.dtype.kind == "M" else 80)
    near = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    _, first = np.unique(numbers[near], return_index=True)
    return np.asarray(rows[near[first]])


def _ranked(values: NDArray[Any]) -> NDArray[np.intp]:
    """Rows by their numbers or dates; else a row of each level, the most frequent first."""
    if values.dtype.kind in "iufM":
        present = np.flatnonzero(values == values)
        return np.asarray(present[np.argsort(values[present], kind="stable")])
    present = np.flatnonzero([not is_missing(value) for value in values])
    _, first, times = np.unique(values[present].astype(str), return_index=True, return_counts=True)
    return np.asarray(present[first[np.argsort(-times, kind="stable")]])
