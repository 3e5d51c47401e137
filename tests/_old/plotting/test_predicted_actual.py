"""Predicted against actual: points, bars, and what lies outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bowtienet._old import BowTieRegressor
from bowtienet._old.plotting import PredictedActualDisplay
from bowtienet._old.prediction.mixture import Mixture, build_mixture

Rows = tuple[pd.DataFrame, pd.Series]


def forecast(means: Any) -> Mixture:
    means = np.asarray(means, dtype=float)[None, :]
    return build_mixture([1.0], means, np.ones_like(means))


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_points_outside_their_bars_look_different_and_are_counted() -> None:
    y = [0.0, 5.0, 2.5, -3.0]
    display = PredictedActualDisplay.from_predictions(y, forecast([0.0, 1.0, 2.0, 3.0]))
    assert display.outside.tolist() == [False, True, False, True]
    np.testing.assert_array_equal(display.inside_points_.get_xydata(), [[0.0, 0.0], [2.0, 2.5]])
    np.testing.assert_array_equal(display.outside_points_.get_xydata(), [[1.0, 5.0], [3.0, -3.0]])
    assert display.inside_points_.get_marker() != display.outside_points_.get_marker()
    assert display.inside_points_.get_color() != display.outside_points_.get_color()
    assert legend(display.ax_) == ["90 % interval", "exact", "inside", "outside: 50 % of 4 rows"]


def test_bars_are_the_intervals_of_the_model(model: BowTieRegressor, rows: Rows) -> None:
    X, y = rows
    display = PredictedActualDisplay.from_estimator(model, X, y, coverage=0.8)
    ends, mean = model.predict_interval(X, 0.8).to_numpy(), model.predict(X)
    segments = np.array(display.bars_.get_segments())
    np.testing.assert_allclose(segments[:, :, 0], np.column_stack([mean, mean]))
    np.testing.assert_allclose(segments[:, :, 1], ends)
    np.testing.assert_array_equal(display.outside, (y < ends[:, 0]) | (y > ends[:, 1]))
    assert display.ax_.get_xlabel() == "predicted height"
    assert display.ax_.get_ylabel() == "actual height"


def test_of_many_rows_some_are_drawn(rng: np.random.Generator) -> None:
    y = rng.normal(size=600)
    display = PredictedActualDisplay.from_predictions(y, forecast(np.zeros(600)))
    rows = display.rows
    assert len(display.bars_.get_segments()) == len(set(rows)) == 500
    drawn = [display.inside_points_.get_ydata(), display.outside_points_.get_ydata()]
    assert sorted(np.concatenate(drawn)) == sorted(y[rows])
    share = f"{100.0 * np.sum(display.outside) / 600.0:.3g}"
    assert legend(display.ax_) == [
        "90 % interval (500 rows drawn)",
        "exact",
        "inside",
        f"outside: {share} % of 600 rows",
    ]
    np.testing.assert_array_equal(display.plot().rows, rows)
    assert display.plot(most_rows=600).rows.size == 600


def test_the_diagonal_moves_no_limits() -> None:
    """Also of predictions far from zero; it passes through points that are exact."""
    display = PredictedActualDisplay.from_predictions([1e6, 1e6 + 1.0], forecast([1e6, 1e6 + 1.0]))
    low, high = display.ax_.get_xlim()
    assert 1e6 - 1.0 < low < high < 1e6 + 2.0
    x, y = display.diagonal_.get_xy1()
    assert x == y
    assert display.diagonal_.get_slope() == 1.0
