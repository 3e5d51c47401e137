"""Drawn networks: every edge once, its width, colour and ends, and what has no edges."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb

from bowtienet.plotting import NetworkDisplay
from bowtienet.plotting._axes import ABSENT, MUTED, POSITIVE
from bowtienet.plotting.network import arrange


def draw_network(weights: Any, *, title: str | None = None, **names: Any) -> Any:
    return NetworkDisplay(weights=weights, **names).plot(title=title).ax_


def _network(rng: np.random.Generator, sizes: tuple[int, ...], keep: float) -> list[np.ndarray]:
    weights = []
    for below, units in pairwise(sizes):
        matrix = rng.normal(size=(units, below + 1))
        matrix[:, 1:] *= rng.uniform(size=(units, below)) < keep
        weights.append(matrix)
    return weights


def _grey_rims(ax: Any) -> list[list[bool]]:
    """Which circles of each layer are grey."""
    rims = [c.get_edgecolors() for c in ax.collections if isinstance(c, PathCollection)]
    return [[to_rgb(rim[:3]) == to_rgb(ABSENT) for rim in layer] for layer in rims]


def _edges(ax: Any) -> LineCollection:
    (found,) = (c for c in ax.collections if isinstance(c, LineCollection))
    return found


def _circles(ax: Any) -> list[np.ndarray]:
    """Heights of the circles of each layer."""
    return [c.get_offsets()[:, 1].data for c in ax.collections if isinstance(c, PathCollection)]


def _names(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def _legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def _headings(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_xticklabels()]


@pytest.mark.parametrize(
    "sizes", [(4, 3), (2, 20, 1), (20, 50, 1), (5, 8, 6, 3), (10, 20, 20, 20, 20, 1)]
)
@pytest.mark.parametrize("keep", [1.0, 0.2])
def test_every_weight_but_zero_is_one_edge_between_its_units(
    sizes: tuple[int, ...], keep: float, rng: np.random.Generator
) -> None:
    weights = _network(rng, sizes, keep)
    ax = draw_network(weights)
    heights = _circles(ax)
    expected = {
        (layer, heights[layer][source], heights[layer + 1][unit], matrix[unit, source + 1] > 0.0)
        for layer, matrix in enumerate(weights)
        for unit, source in zip(*np.nonzero(matrix[:, 1:]), strict=True)
    }
    found = {
        (x0, y0, y1, to_rgb(color[:3]) == to_rgb(POSITIVE))
        for ((x0, y0), (_, y1)), color in zip(
            _edges(ax).get_segments(), _edges(ax).get_colors(), strict=True
        )
    }
    assert found == expected
    assert len(_edges(ax).get_segments()) == sum(np.count_nonzero(w[:, 1:]) for w in weights)


def _by_edge(ax: Any) -> list[tuple[Any, Any]]:
    return list(zip(_edges(ax).get_segments(), _edges(ax).get_colors(), strict=True))


def test_larger_weights_are_wider_and_darker_and_lie_on_top() -> None:
    """Whatever their sign; the collection paints its lines in their order."""
    sizes = [0.5, -4.0, 1.0, -2.0, 0.01]
    ax = draw_network([[[100.0, *sizes]]])
    drawn = [np.abs(sizes)[round((1.0 - y0) * 5 - 0.5)] for ((_, y0), _), _ in _by_edge(ax)]
    assert drawn == sorted(np.abs(sizes))
    assert np.all(np.diff(_edges(ax).get_linewidths()) > 0.0)
    assert np.all(np.diff(_edges(ax).get_colors()[:, 3]) > 0.0)


def test_names_of_inputs_and_outputs(rng: np.random.Generator) -> None:
    weights = _network(rng, (3, 4, 2), 1.0)
    ax = draw_network(weights, input_names=["age", "sex", 7], output_names=["a", "b"], title="T")
    assert _names(ax) == ["age", "sex", "7", "a", "b"]
    assert ax.get_title() == "T"
    assert _headings(ax) == ["3 inputs", "4 units", "2 outputs"]
    assert _legend(ax) == ["positive", "negative"]


def test_units_without_edges_are_grey_and_counted(rng: np.random.Generator) -> None:
    weights = _network(rng, (4, 5, 1), 1.0)
    weights[0][:, 1 + 2] = 0.0
    weights[0][3, 1:] = weights[1][:, 1 + 3] = 0.0
    ax = draw_network(weights)
    assert [text.get_color() == MUTED for text in ax.texts] == [False, False, True, False, False]
    assert _grey_rims(ax) == [
        [False, False, True, False],
        [False, False, False, True, False],
        [False],
    ]
    assert _headings(ax) == ["3 of 4 inputs", "4 of 5 units", "1 output"]
    assert _legend(ax)[-1] == "no weights"


def test_a_network_of_nothing_is_constant() -> None:
    ax = draw_network([np.array([[3.0], [4.0]])], output_names=["a", "b" * 60])
    assert _names(ax)[0] == "a (constant)"
    assert _names(ax)[1].endswith("… (constant)")
    assert _headings(ax) == ["2 outputs"]
    assert _grey_rims(ax) == [[], [False, False]]
    assert len(_edges(ax).get_segments()) == 0
    left, right = ax.get_xlim()
    assert left < 1.0 < right  # where the outputs are


def test_an_output_that_no_input_reaches_is_constant() -> None:
    """The second output hangs on a unit that has no input; the third on nothing."""
    hidden = [[0.0, 1.0], [5.0, 0.0]]
    output = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert _names(draw_network([hidden, output])) == ["x", "y0", "y1 (constant)", "y2 (constant)"]


def test_units_stand_by_what_they_hang_on() -> None:
    """Three chains, given in disorder, and a unit without links, which goes below them."""
    first, second = np.zeros((4, 3)), np.ones((3, 4))
    first[[3, 0, 2], [0, 1, 2]] = [1.0, -2.0, 3.0]
    places = arrange([first, second])
    np.testing.assert_allclose(places[0], [1 / 6, 3 / 6, 5 / 6])
    np.testing.assert_allclose(places[1], [3 / 8, 7 / 8, 5 / 8, 1 / 8])
    np.testing.assert_allclose(places[2], places[0])
