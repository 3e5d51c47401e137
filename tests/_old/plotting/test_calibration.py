"""Calibration curves: counted shares, the band of chance, and several curves on one picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import binom, norm

from bowtienet._old.plotting import CalibrationCurveDisplay
from bowtienet._old.prediction.mixture import Mixture, build_mixture

Rows = tuple[pd.DataFrame, pd.Series]


def standard(n: int) -> Mixture:
    return build_mixture([1.0], np.zeros((1, n)), np.ones((1, n)))


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_curve_counts_targets_inside(rng: np.random.Generator) -> None:
    y = rng.normal(size=50)
    display = CalibrationCurveDisplay.from_predictions(y, standard(50), levels=[0.1, 0.5, 0.9])
    shares = [np.mean(np.abs(y) <= norm.ppf((1.0 + c) / 2.0)) for c in (0.1, 0.5, 0.9)]
    np.testing.assert_allclose(display.line_.get_ydata(), shares)
    np.testing.assert_allclose(display.line_.get_xdata(), [0.1, 0.5, 0.9])


def test_the_band_is_that_of_chance_and_closes_at_the_corners() -> None:
    levels = [0.9, 0.25]
    display = CalibrationCurveDisplay.from_predictions(
        np.zeros(40), standard(40), levels=levels, probability=0.8
    )
    corners = display.band_.get_paths()[0].vertices
    for level in levels:
        ends = binom.ppf([0.1, 0.9], 40, level) / 40
        np.testing.assert_allclose(np.unique(corners[corners[:, 0] == level, 1]), ends)
    assert np.unique(corners[corners[:, 0] == 0.0, 1]).tolist() == [0.0]
    assert np.unique(corners[corners[:, 0] == 1.0, 1]).tolist() == [1.0]
    assert legend(display.ax_) == ["calibrated", "by chance, 80 %, 40 rows", "observed"]


def test_curves_that_share_axes_differ_in_more_than_colour() -> None:
    ax = Figure().add_subplot()
    displays = [
        CalibrationCurveDisplay.from_predictions(np.zeros(9), standard(9), name=name, ax=ax)
        for name in "uvw"
    ]
    assert len({display.line_.get_linestyle() for display in displays}) == 3
    assert len({display.line_.get_marker() for display in displays}) == 3
    assert len({display.line_.get_color() for display in displays}) == 3
    assert legend(ax) == ["calibrated", "by chance, 95 %, 9 rows", "u", "v", "w"]
    assert [display.band_ is None for display in displays] == [False, True, True]
