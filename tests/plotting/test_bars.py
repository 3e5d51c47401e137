"""Bars: length, colour, errors and names of what was given, the first on top."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from bowtienet.plotting._axes import MUTED, NEGATIVE, POSITIVE
from bowtienet.plotting.bars import draw_bars


def test_lengths_colours_and_names() -> None:
    ax = draw_bars(["a", "b", "c"], [1.5, -0.5, 0.0], title="coefficients")
    assert [bar.get_width() for bar in ax.patches] == [1.5, -0.5, 0.0]
    colors = [to_rgb(bar.get_facecolor()[:3]) for bar in ax.patches[:2]]
    assert colors == [to_rgb(POSITIVE), to_rgb(NEGATIVE)]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]
    assert [text.get_color() == MUTED for text in ax.get_yticklabels()] == [False, False, True]
    assert ax.get_title() == "coefficients"


def test_names_stand_at_their_bars_and_the_first_is_on_top() -> None:
    ax = draw_bars(["a", "b", "c"], [3.0, 2.0, 1.0])
    middles = [bar.get_y() + bar.get_height() / 2.0 for bar in ax.patches]
    np.testing.assert_allclose(middles, ax.get_yticks())
    down = ax.transData.transform([(0.0, middle) for middle in middles])[:, 1]
    assert np.all(np.diff(down) < 0.0)


def test_errors_reach_to_both_sides() -> None:
    ax = draw_bars(["a", "b"], [1.0, -2.0], errors=[0.25, 0.5])
    (lines,) = (c for c in ax.collections if isinstance(c, LineCollection))
    ends = [sorted(segment[:, 0]) for segment in lines.get_segments()]
    assert ends == [[0.75, 1.25], [-2.5, -1.5]]
    assert not draw_bars(["a"], [1.0]).collections


@pytest.mark.parametrize("count", [1, 10, 60])
def test_names_lie_within_the_figure_and_apart(count: int, rng: np.random.Generator) -> None:
    ax = draw_bars(["W" * 60] * count, rng.normal(size=count), title="T")
    fig = ax.figure
    fig.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_yticklabels()]
    assert all(upper.y0 >= lower.y1 for upper, lower in itertools.pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0.0
    assert ax.bbox.width > 2.0 * fig.dpi
    assert ax.title.get_window_extent().y1 <= fig.bbox.height
