"""Heat maps: the right cell at the right place, zeros blank, one scale for each layer."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bowtienet._old.plotting import WeightsDisplay


def draw_weights(before: Any, after: Any = None, **names: Any) -> Any:
    return WeightsDisplay(before=before, after=after, **names).plot().figure_


def _network(rng: np.random.Generator, *sizes: int) -> list[np.ndarray]:
    return [rng.normal(size=(d, k + 1)) for k, d in itertools.pairwise(sizes)]


def _pruned(weights: list[np.ndarray], threshold: float = 1.0) -> list[np.ndarray]:
    return [np.where(np.abs(matrix) > threshold, matrix, 0.0) for matrix in weights]


def _panels(fig: Figure) -> list[Any]:
    """Axes with an image: layer by layer, before and then after."""
    found = [ax for ax in fig.axes if ax.images]
    return sorted(found, key=lambda ax: ax.get_subplotspec().colspan.start)


def _cells(ax: Any) -> np.ma.MaskedArray:
    return ax.images[0].get_array()


def _labels(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.get_ticklabels()]


def test_inputs_are_rows_units_are_columns_and_biases_are_left_out(
    rng: np.random.Generator,
) -> None:
    before = _network(rng, 4, 7, 5, 2)
    after = _pruned(before)
    panels = _panels(draw_weights(before, after))
    shown = [matrix for pair in zip(before, after, strict=True) for matrix in pair]
    assert len(panels) == len(shown)
    for ax, matrix in zip(panels, shown, strict=True):
        np.testing.assert_array_equal(_cells(ax).filled(0.0), matrix[:, 1:].T)


def test_zeros_are_masked_over_a_hatch_and_small_weights_are_not() -> None:
    fig = draw_weights([[[0.0, 1e-12, 0.0, -2.0]]])
    (ax,) = _panels(fig)
    np.testing.assert_array_equal(np.ma.getmaskarray(_cells(ax))[:, 0], [False, True, False])
    assert ax.patch.get_hatch()
    assert ax.images[0].get_cmap()(np.ma.masked)[3] == 0.0  # the hatch shows through
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["exactly zero"]


def test_a_layer_has_one_symmetric_scale_and_layers_have_their_own() -> None:
    before = [np.array([[9.0, 1.0, -3.0]]), np.array([[9.0, 0.5]])]
    after = [np.array([[9.0, 1.0, 0.0]]), np.array([[9.0, 0.0]])]
    limits = [ax.images[0].get_clim() for ax in _panels(draw_weights(before, after))]
    assert limits == [(-3.0, 3.0), (-3.0, 3.0), (-0.5, 0.5), (-0.5, 0.5)]


def test_names_numbers_and_titles(rng: np.random.Generator) -> None:
    before = _network(rng, 3, 50, 20, 2)
    names = {"input_names": ["age", "sex", "bmi"], "output_names": ["slump", "flow"]}
    panels = _panels(draw_weights(before, _pruned(before), **names))
    titles = ["inputs → layer 1", "layer 1 → layer 2", "layer 2 → output"]
    assert [ax.get_title() for ax in panels[::2]] == titles
    assert [ax.get_ylabel() for ax in panels[:2]] == ["before pruning", "after pruning"]
    assert _labels(panels[0].yaxis) == _labels(panels[1].yaxis) == ["age", "sex", "bmi"]
    assert _labels(panels[5].xaxis) == ["slump", "flow"]
    assert _labels(panels[1].xaxis) == ["1", "10", "20", "30", "40", "50"]
    np.testing.assert_array_equal(panels[1].get_xticks(), [0, 9, 19, 29, 39, 49])
    assert _labels(panels[4].yaxis) == ["1", "5", "10", "15", "20"]
    assert _labels(panels[0].xaxis) == []  # as below


def test_a_network_of_nothing() -> None:
    fig = draw_weights([np.ones((2, 1))])
    assert np.all(np.ma.getmaskarray(_cells(_panels(fig)[0])))
    assert _labels(fig.axes[0].yaxis) == []
    assert _labels(fig.axes[0].xaxis) == ["y0", "y1"]


def test_a_network_pruned_to_zeros_keeps_its_panels(rng: np.random.Generator) -> None:
    before = _network(rng, 3, 4, 1)
    fig = draw_weights([np.zeros_like(before[0]), before[1]], [np.zeros_like(w) for w in before])
    fig.canvas.draw()
    assert [bool(np.all(np.ma.getmaskarray(_cells(ax)))) for ax in _panels(fig)] == [
        True,
        True,
        False,
        True,
    ]
