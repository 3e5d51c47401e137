"""Bars: length, colour, errors and names of what was given, the first on top."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_rgb

from bowtienet._old.plotting._axes import MUTED, NEGATIVE, POSITIVE
from bowtienet._old.plotting._bars import draw_bars


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


def test_errors_are_lines_around_the_ends_of_bars() -> None:
    ax = draw_bars(["a", "b"], [2.0, -1.0], errors=[0.5, 0.1])
    [lines] = ax.collections
    ends = [segment[:, 0].tolist() for segment in lines.get_segments()]
    np.testing.assert_allclose(ends, [[1.5, 2.5], [-1.1, -0.9]])
