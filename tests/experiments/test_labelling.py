"""Room for names, by hand and in a crowd."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from bowtienet.experiments.labelling import find_room, label_points

FRAME = np.array([0.0, 0.0, 500.0, 500.0])


def test_alone_a_name_stands_on_the_right() -> None:
    box, leader = find_room(np.array([100.0, 100.0]), (40.0, 10.0), np.empty((0, 4)), FRAME)
    assert box.tolist() == [108.0, 95.0, 148.0, 105.0]
    assert len(leader) == 0


def test_at_the_right_edge_it_stands_on_the_left() -> None:
    box, _ = find_room(np.array([490.0, 100.0]), (40.0, 10.0), np.empty((0, 4)), FRAME)
    np.testing.assert_allclose(box, [442.0, 95.0, 482.0, 105.0])


def test_a_name_goes_around_what_is_taken_and_a_line_leads_to_it() -> None:
    taken = np.array([[82.0, 60.0, 90.0, 140.0], [110.0, 60.0, 118.0, 140.0]])
    box, leader = find_room(np.array([100.0, 100.0]), (40.0, 10.0), taken, FRAME)
    low, high = np.maximum(box[:2], taken[:, :2]), np.minimum(box[2:], taken[:, 2:])
    assert not np.any(np.all(low < high, axis=1))
    assert len(leader) > 0


def test_names_of_points_hide_neither_points_nor_names() -> None:
    rng = np.random.default_rng(0)
    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    ax = figure.add_subplot()
    places = rng.normal(size=(14, 2)) * [1.0, 0.5]
    for x, y in places:
        ax.plot(x, y, "o")
    ax.margins(0.2)
    label_points(ax, [f"a method of number {i}" for i in range(14)])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    dots = ax.transData.transform(places)
    assert len(boxes) == 14
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        assert not any(box.contains(*dot) for dot in dots)
