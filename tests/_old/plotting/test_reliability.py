"""Reliability diagrams: points, bars of chance, shares below, and several curves on one plot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom

from bowtienet._old.evaluation.class_metrics import reliability_curve
from bowtienet._old.plotting import ReliabilityDisplay

CLASSES = np.array(["red", "green", "blue"])


def colors(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels that are drawn with the probabilities."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), size=n)
    return CLASSES[np.sum(np.cumsum(p, axis=1) < rng.uniform(size=(n, 1)), axis=1)], p


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("label", [None, "green"])
def test_points_and_bars_are_those_of_the_bins(label: str | None) -> None:
    y, p = colors(90)
    display = ReliabilityDisplay.from_predictions(
        y, p, CLASSES, label=label, bins=5, probability=0.8
    )
    curve = reliability_curve(y, p, CLASSES, label=label, bins=5)
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.predicted)
    np.testing.assert_array_equal(display.line_.get_ydata(), curve.observed)
    for segment, center in zip(display.band_.get_segments(), curve.predicted, strict=True):
        np.testing.assert_allclose(segment[:, 0], center)
        np.testing.assert_allclose(segment[:, 1], binom.ppf([0.1, 0.9], 18, center) / 18)
    beyond = (curve.observed < display.low) | (curve.observed > display.high)
    np.testing.assert_array_equal(display.outside_.get_xdata(), curve.predicted[beyond])
    name = display.below_ax_.get_xlabel()
    assert name == (
        "confidence in the predicted class" if label is None else "predicted probability of green"
    )


def test_the_second_of_two_classes_and_shares_below() -> None:
    p = np.array([0.01, 0.02, 0.12, 0.52, 0.99, 1.0])
    display = ReliabilityDisplay.from_predictions(
        ["n", "n", "n", "y", "y", "y"], p, ["n", "y"], bins=2
    )
    np.testing.assert_allclose(display.line_.get_xdata(), [0.05, 2.51 / 3])
    np.testing.assert_allclose(display.line_.get_ydata(), [0.0, 1.0])
    values, edges, _ = display.shares_.get_data()
    np.testing.assert_allclose(edges, np.arange(21) / 20)
    expected = np.zeros(20)
    expected[[0, 2, 10, 19]] = np.array([2, 1, 1, 2]) / 6
    np.testing.assert_allclose(values, expected)
    assert display.ax_.get_ylabel() == "observed share of y"
    assert display.below_ax_.get_ylim()[1] > 2 / 6


def test_points_outside_have_rings_and_are_counted() -> None:
    """Of 40 rows with probability 0.9 half come true: far outside. Those with 0.3 are right."""
    p = np.repeat([0.3, 0.9], 40)
    y = np.concatenate([np.arange(40) < 12, np.arange(40) < 20])
    display = ReliabilityDisplay.from_predictions(y, p, [False, True])
    assert display.outside.tolist() == [False, True]
    assert display.outside_.get_ydata().tolist() == [0.5]
    words = ["calibrated", "observed", "by chance, 95 %", "outside: 1 of 2"]
    assert legend(display.ax_) == words


def test_chance_keeps_points_in_their_bars() -> None:
    """300 tables of 15 bins: 95 % or more, as a binomial's steps have it, but not nearly all.

    4500 bins have a standard error of 0.3 %; five of them are a false alarm in a million.
    """
    kept = []
    for seed in range(500, 800):
        y, p = colors(600, seed)
        curve = reliability_curve(y, p, CLASSES)
        display = ReliabilityDisplay(curve=curve, values=np.max(p, axis=1))
        kept.append(~display.outside)
    error = np.sqrt(0.05 * 0.95 / np.size(kept))
    assert 0.95 - 5.0 * error < np.mean(kept) < 0.98 + 5.0 * error


def test_too_sure_probabilities_leave_their_bars() -> None:
    y, p = colors(3000)
    sharp = p**2 / np.sum(p**2, axis=1, keepdims=True)
    display = ReliabilityDisplay.from_predictions(y, sharp, CLASSES)
    assert np.mean(display.outside) > 0.5
    assert np.mean(display.curve.observed - display.curve.predicted) < -0.05


def test_rows_count_by_their_weights() -> None:
    y, p = colors(60)
    times = np.tile([1, 3], 30)
    one = ReliabilityDisplay.from_predictions(y, p, CLASSES, bins=1, sample_weight=times)
    two = ReliabilityDisplay.from_predictions(
        np.repeat(y, times), np.repeat(p, times, axis=0), CLASSES, bins=1
    )
    np.testing.assert_allclose(one.curve.observed, two.curve.observed)
    np.testing.assert_allclose(one.shares, two.shares)
    assert one.curve.n_rows.tolist() == [48]  # 120² / (30 + 270)
    assert one.high - one.low > two.high - two.low


def test_curves_of_all_classes_share_axes() -> None:
    y, p = colors(100)
    ax = Figure(layout="constrained").add_subplot()
    displays = [
        ReliabilityDisplay.from_predictions(y, p, CLASSES, label=name, name=name, bins=4, ax=ax)
        for name in CLASSES
    ]
    assert [display.diagonal_ is None for display in displays] == [False, True, True]
    assert len({id(display.below_ax_) for display in displays}) == 1
    assert len({display.line_.get_marker() for display in displays}) == 3
    assert ax.get_ylabel() == "observed share"
    assert [word for word in legend(ax) if "outside" not in word] == [
        "calibrated",
        "red",
        "by chance, 95 %",
        "green",
        "blue",
    ]
    tallest = max(np.max(display.shares) for display in displays)
    assert displays[0].below_ax_.get_ylim()[1] == pytest.approx(1.08 * tallest)
