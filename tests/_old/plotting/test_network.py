"""Drawn networks: every edge once, its width, colour and ends, and what has no edges."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb

from bowtienet._old.plotting import NetworkDisplay
from bowtienet._old.plotting._axes import ABSENT, MUTED, POSITIVE
from bowtienet._old.plotting.network import arrange, linked_part, strongest_paths


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
    ax = NetworkDisplay(weights=weights).plot(most_edges=None).ax_
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


def _path_strengths(edges: list[np.ndarray]) -> dict[tuple[int, ...], float]:
    """Strength of every path, by its units from input to output, one after the other."""
    paths = {(place,): 1.0 for place in range(edges[0].shape[1])}
    for edge in edges:
        paths = {
            (*path, unit): strength * abs(edge[unit, path[-1]])
            for path, strength in paths.items()
            for unit in range(len(edge))
        }
    return paths


def test_the_strongest_paths_are_whole_and_the_strongest(rng: np.random.Generator) -> None:
    """Against all paths, listed: those through an edge that is left out are weaker."""
    edges = [rng.normal(size=(5, 4)), rng.normal(size=(3, 5)), rng.normal(size=(2, 3))]
    kept = strongest_paths(edges, 14)
    assert sum(np.count_nonzero(edge) for edge in kept) <= 14
    paths = _path_strengths(edges)
    best = {o: max(s for path, s in paths.items() if path[-1] == o) for o in range(2)}
    relative = {path: strength / best[path[-1]] for path, strength in paths.items()}
    through: dict[bool, list[float]] = {True: [], False: []}
    for layer, edge in enumerate(edges):
        for unit, source in np.ndindex(edge.shape):
            own = [p for p in paths if p[layer] == source and p[layer + 1] == unit]
            strongest = max(own, key=lambda path: relative[path])
            drawn = bool(kept[layer][unit, source])
            through[drawn].append(relative[strongest])
            whole = all(kept[i][strongest[i + 1], strongest[i]] != 0.0 for i in range(3))
            assert whole == drawn
    assert min(through[True]) > max(through[False])
    assert all(np.any(row) for row in kept[-1])  # each output has its best path


def test_an_unpruned_network_shows_its_strongest_paths_and_says_so(
    rng: np.random.Generator,
) -> None:
    weights = _network(rng, (10, 30, 2), 1.0)
    weights[0][:, 1:4] = 0.0
    ax = draw_network(weights, input_names=[f"in{i}" for i in range(10)])
    n_drawn = len(_edges(ax).get_segments())
    assert 40 <= n_drawn <= 80
    assert ax.get_title().replace("\n", " ") == f"Strongest paths: {n_drawn} of 270 weights"
    edges, inputs = linked_part(strongest_paths([w[:, 1:] for w in weights], 80))
    assert _names(ax)[:-2] == [f"in{place}" for place in inputs]
    assert [circle.size for circle in _circles(ax)] == [len(inputs), len(edges[0]), 2]
    assert _headings(ax)[1] == f"{len(edges[0])} of 30 units"
    assert "no weights" not in _legend(ax)
    small = draw_network(_network(rng, (3, 4, 1), 1.0))
    assert small.get_title() == "Network: 16 weights"
