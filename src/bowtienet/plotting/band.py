"""The predictive distribution along one feature, the others held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bowtienet.evaluation.competitors import features_and_targets, outcome_of, rows_of
from bowtienet.plotting._display import (
    BLUE,
    COLORS,
    GREY,
    SKY,
    Display,
    column_of,
    label,
    percent,
    plain_numbers,
    shortened,
    target_name,
)
from bowtienet.tables.texts import is_missing


class PredictiveBandDisplay(Display):
    """Predictive mean, its epistemic uncertainty, and where new targets lie, along one feature.

    The dark band is the epistemic uncertainty of the mean, the pale one holds new targets, noise
    included. For classes, the probability of each. Other columns are held at their median or most
    frequent value.

    Parameters
    ----------
    values : array (m,)
        Values of the feature, as they are in the table.
    mean : array (m,), or (m, classes) of probabilities
        Predictive means.
    epistemic, interval : array (m, 2), optional
        Ends of the two bands, of numbers and counts.
    points : (values, targets), optional
        Dots: the prediction for typical other columns plus the error of the row, for counts times
        actual over predicted, so that dots scatter about the mean as targets do.
    coverage : float
        Coverage of both bands.
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

        Parameters
        ----------
        estimator, X, y, coverage, target, ax :
            As everywhere.
        feature : str or int
            Name of a column of a frame, or number of a column of an array.
        """
        if y is not None:
            X, y = features_and_targets(X, y)
        columns = columns_of(X)
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
            "name": target_name(estimator, target),
        }
        if hasattr(estimator, "predict_proba"):
            shares = estimator.predict_proba(rows)
            return cls(mean=shares, classes=estimator.classes_, **shared).plot(ax)
        parts = estimator.predict_components(rows)
        mean, spread = column_of(parts.mean, target), column_of(parts.epistemic, target)
        reach = float(ndtri(0.5 + 0.5 * coverage)) * spread
        ends = np.asarray(estimator.predict_interval(rows, coverage))
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
            interval=ends.reshape(len(ends), -1, 2)[:, target],
            points=points,
            **shared,
        ).plot(ax)

    def _draw(self, ax: Any) -> None:
        is_line = self.values.dtype.kind in "iuf"
        places = self.values if self.values.dtype.kind in "iufM" else np.arange(len(self.values))
        if self.mean.ndim == 2:
            self._draw_classes(ax, places, is_line)
        else:
            draw_bands = _draw_line if is_line else _draw_bars
            draw_bands(ax, places, self)
            plain_numbers(ax.yaxis)
        if is_line:
            plain_numbers(ax.xaxis)
        elif self.values.dtype.kind == "M":
            from matplotlib import dates

            ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(ax.xaxis.get_major_locator()))
        else:
            names = [shortened(value) for value in self.values]
            crowded = sum(map(len, names)) > 50
            ax.set_xticks(places, names, rotation=30 * crowded, ha="right" if crowded else "center")
        title = "other columns at typical values"
        if self.mean.ndim == 1:
            share = f"{100.0 * self.coverage:g} %"
            title = f"{share} bands of the mean (dark) and new targets (pale)\n{title}"
        name = self.name if self.mean.ndim == 1 else "probability"
        if len(self.classes) == 2:
            name = f"probability of {self.classes[1]}"
        label(ax, title, self.feature, name)

    def _draw_classes(self, ax: Any, places: Any, is_line: bool) -> None:
        """The second of two classes; of more, those that are likely somewhere."""
        largest = np.argsort(-self.mean.max(axis=0), kind="stable")[: len(COLORS)]
        shown = [1] if len(self.classes) == 2 else sorted(largest)
        for color, index in zip(COLORS, shown, strict=False):
            name = shortened(self.classes[index])
            style = "-" if is_line else "o"
            ax.plot(places, self.mean[:, index], style, color=color, linewidth=2.0, label=name)
        ax.set_ylim(-0.02, 1.02)
        percent(ax.yaxis)
        if len(self.classes) > 2:
            ax.legend(title=self.name, fontsize="small", title_fontsize="small", frameon=False)


def columns_of(X: Any) -> dict[Any, NDArray[Any]]:
    """Columns of a frame by name, or of an array by number."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return {name: frame[name].to_numpy() for name in frame.columns}
    return dict(enumerate(np.asarray(X).T))


def strongest_columns(estimator: Any, X: Any, count: int) -> list[Any]:
    """The columns whose permutation changes predictions most, in the mean over 200 rows."""
    columns, rng = columns_of(X), np.random.default_rng(0)
    some = rng.permutation(len(next(iter(columns.values()))))[:200]
    permuted = rng.permutation(some)
    predict = getattr(estimator, "predict_proba", estimator.predict)
    before = predict(rows_of(X, some))
    moves = {
        name: float(np.mean(np.abs(predict(gather(X, {name: permuted}, some)) - before)))
        for name in columns
    }
    return sorted(moves, key=lambda name: -moves[name])[:count]


def _along(values: NDArray[Any]) -> NDArray[np.intp]:
    """Rows with the values that a plot shows: spread evenly, or the most frequent levels."""
    if values.dtype.kind not in "iufM":
        return np.asarray(sorted(_levels(values)[:12], key=lambda row: str(values[row])))
    order = _sorted(values)
    if not len(order):
        return order
    numbers = values[order].astype(np.int64 if values.dtype.kind == "M" else float)
    wanted = np.linspace(numbers[0], numbers[-1], 12 if values.dtype.kind == "M" else 80)
    near = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    _, first = np.unique(numbers[near], return_index=True)
    return np.asarray(order[near[first]])


def _typical(values: NDArray[Any]) -> int:
    """A row with the median number or date, or the most frequent level."""
    rows = _sorted(values) if values.dtype.kind in "iufM" else _levels(values)[:1]
    return int(rows[len(rows) // 2]) if len(rows) else 0


def _sorted(values: NDArray[Any]) -> NDArray[np.intp]:
    """Rows by their numbers or dates, without missing ones."""
    present = np.flatnonzero(values == values)
    return np.asarray(present[np.argsort(values[present], kind="stable")])


def _levels(values: NDArray[Any]) -> NDArray[np.intp]:
    """A row of each level, the most frequent first."""
    present = np.flatnonzero([not is_missing(value) for value in values])
    _, first, times = np.unique(values[present].astype(str), return_index=True, return_counts=True)
    return np.asarray(present[first[np.argsort(-times, kind="stable")]])


def _held(X: Any, columns: dict[Any, Any], feature: Any, chosen: NDArray[np.intp]) -> Any:
    """Rows that differ in one feature; others have their typical value."""
    typical = {name: np.full(len(chosen), _typical(values)) for name, values in columns.items()}
    return gather(X, {**typical, feature: chosen}, chosen)


def gather(X: Any, rows: Mapping[Any, NDArray[np.intp]], default: NDArray[np.intp]) -> Any:
    """A table whose columns take values from rows of their own: types stay as they are."""
    table = rows_of(X, default)
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        whole = nw.from_native(X, eager_only=True)
        return frame.with_columns(*(whole[name][index] for name, index in rows.items())).to_native()
    for name, index in rows.items():
        table[:, name] = np.asarray(X)[index, name]
    return table


def _draw_line(ax: Any, places: Any, band: PredictiveBandDisplay) -> None:
    if band.points is not None:
        size = float(np.clip(3000.0 / len(band.points[1]), 2.0, 14.0))
        ax.scatter(*band.points, s=size, color=GREY, alpha=0.35, linewidths=0.0, zorder=1)
    ax.fill_between(places, *np.transpose(band.interval), color=SKY, alpha=0.3, linewidth=0.0)
    ax.fill_between(places, *np.transpose(band.epistemic), color=BLUE, alpha=0.35, linewidth=0.0)
    ax.plot(places, band.mean, color=BLUE, linewidth=2.0, zorder=3)


def _draw_bars(ax: Any, places: Any, band: PredictiveBandDisplay) -> None:
    ax.vlines(places, *np.transpose(band.interval), color=SKY, alpha=0.5, linewidth=7.0)
    ax.vlines(places, *np.transpose(band.epistemic), color=BLUE, linewidth=2.5)
    ax.plot(places, band.mean, "o", color=BLUE, markersize=6.0, zorder=3)
    if places.dtype.kind != "M":
        ax.set_xlim(-0.6, len(places) - 0.4)
