"""Histograms of the probability integral transform: heights, band and shape."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from bowtienet._old.plotting import PitHistogramDisplay

VALUES = [0.05, 0.1, 0.3, 0.31, 0.32, 0.99, 1.0, 0.0]


def test_bars_are_densities() -> None:
    """Four bars of width 1/4: shares 3/8, 3/8, 0 and 2/8, four times as high."""
    display = PitHistogramDisplay(values=VALUES, bins=4).plot()
    assert [bar.get_height() for bar in display.bars_] == [1.5, 1.5, 0.0, 1.0]
    assert [bar.get_x() for bar in display.bars_] == [0.0, 0.25, 0.5, 0.75]
    assert {bar.get_width() for bar in display.bars_} == {0.25}


def test_the_band_is_binomial() -> None:
    display = PitHistogramDisplay(values=np.linspace(0.0, 1.0, 40), bins=5, probability=0.8).plot()
    low, high = binom.ppf([0.1, 0.9], 40, 0.2) / 40 * 5
    assert (display.low, display.high) == pytest.approx((low, high))
    box = display.band_.get_extents().transformed(display.ax_.transData.inverted())
    np.testing.assert_allclose([box.y0, box.y1], [low, high])
    assert set(display.line_.get_ydata()) == {1.0}
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == ["by chance, 80 %", "calibrated"]
    assert "overconfident" in display.ax_.get_xlabel()
