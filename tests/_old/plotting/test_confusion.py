"""Confusion plots: shares of each row, counts, and letters that fit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

from bowtienet._old.plotting import ConfusionDisplay

ACTUAL = ["a"] * 4 + ["b"] * 6
TAKEN = ["a", "a", "a", "b", "b", "b", "b", "b", "b", "b"]


def test_shares_and_counts_by_hand() -> None:
    display = ConfusionDisplay.from_predictions(ACTUAL, TAKEN, ["a", "b", "c"])
    np.testing.assert_array_equal(display.counts, [[3, 1, 0], [0, 6, 0], [0, 0, 0]])
    expected = [[0.75, 0.25, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(display.shares, expected)
    np.testing.assert_array_equal(display.image_.get_array(), expected)
    texts = {place: text.get_text() for place, text in display.texts_.items()}
    assert texts == {(0, 0): "75 %\n3", (0, 1): "25 %\n1", (1, 1): "100 %\n6"}
    assert {place: text.get_position() for place, text in display.texts_.items()} == {
        (0, 0): (0, 0),
        (0, 1): (1, 0),
        (1, 1): (1, 1),
    }
    for labels in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        assert [text.get_text() for text in labels] == ["a", "b", "c"]
    assert display.ax_.get_ylabel() == "actual class"


def test_counts_are_those_of_scikit_learn_with_weights(rng: np.random.Generator) -> None:
    y, taken = rng.integers(0, 4, size=(2, 50))
    weight = rng.uniform(size=50)
    display = ConfusionDisplay.from_predictions(y, taken, [3, 2, 1, 0], sample_weight=weight)
    expected = confusion_matrix(y, taken, labels=[3, 2, 1, 0], sample_weight=weight)
    np.testing.assert_allclose(display.counts, expected)
    np.testing.assert_allclose(np.sum(display.shares, axis=1), 1.0)


def test_what_is_rare_is_not_zero() -> None:
    display = ConfusionDisplay(counts=[[9999, 1], [0, 10]]).plot()
    assert display.texts_[0, 1].get_text() == "<1 %\n1"
    assert display.texts_[0, 0].get_text().endswith("\n9,999")


@pytest.mark.parametrize("k", [2, 8, 30])
@pytest.mark.parametrize("name", ["c{}", "a class with a rather long name {}"])
def test_texts_lie_in_their_cells_and_names_apart(k: int, name: str) -> None:
    display = ConfusionDisplay(
        counts=np.full((k, k), 1234), class_names=[name.format(c) for c in range(k)]
    ).plot()
    display.figure_.canvas.draw()
    corners = display.ax_.transData.transform([[0.0, 0.0], [1.0, 1.0]])
    width, height = np.abs(corners[1] - corners[0])
    for text in display.texts_.values():
        box = text.get_window_extent()
        assert box.width <= width
        assert box.height <= height
    assert len(display.texts_) == k * k
    for labels, axis in ((display.ax_.get_xticklabels(), 0), (display.ax_.get_yticklabels(), 1)):
        boxes = [text.get_window_extent() for text in labels]
        ends = sorted((box.x0, box.x1) if axis == 0 else (box.y0, box.y1) for box in boxes)
        assert all(after[0] >= before[1] - 1.0 for before, after in pairwise(ends))


def test_axes_of_others_and_wrong_arguments() -> None:
    ax = Figure().add_subplot()
    display = ConfusionDisplay.from_predictions(ACTUAL, TAKEN, ["a", "b"], ax=ax)
    assert display.ax_ is ax
    with pytest.raises(ValueError, match="'b' in row 4"):
        ConfusionDisplay.from_predictions(ACTUAL, TAKEN, ["a", "c"])
    with pytest.raises(ValueError, match="predicted holds 'd'"):
        ConfusionDisplay.from_predictions(ACTUAL, ["d"] * 10, ["a", "b"])
    with pytest.raises(ValueError, match="10 rows, but predicted has 9"):
        ConfusionDisplay.from_predictions(ACTUAL, TAKEN[1:], ["a", "b"])
    with pytest.raises(ValueError, match="sample_weight"):
        ConfusionDisplay.from_predictions(ACTUAL, TAKEN, ["a", "b"], sample_weight=[1.0])
    with pytest.raises(ValueError, match="class_names"):
        ConfusionDisplay(counts=np.eye(2), class_names=["a"])
