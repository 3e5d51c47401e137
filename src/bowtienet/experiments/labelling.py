"""Names beside points, where they hide neither points nor other names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet.experiments.drawing import GREY

_NEAR = 8.0
_WAYS = (
    *((float(angle), _NEAR) for angle in (0, 180, 90, 270, 45, 315, 135, 225)),
    *((float(a), r) for r, a in itertools.product((18.0, 30.0, 45.0, 60.0), range(0, 360, 30))),
)
"""Angles and distances in pixels at which a name may stand, the nicest first."""
_MARKER = 5.0
"""Half the width of a point in pixels."""


def label_points(ax: Any, names: Sequence[str], size: float = 8.5) -> None:
    """Name the first points of axes: one name for each of its first lines, which are points."""
    figure = ax.figure
    figure.draw_without_rendering()  # so that the layout is known
    data = [line.get_xydata()[0] for line in ax.lines[: len(names)]]
    points = ax.transData.transform(data)
    taken = np.hstack([points - _MARKER, points + _MARKER])
    frame = np.asarray(ax.get_window_extent().extents)
    for place in np.argsort(-points[:, 1], kind="stable"):
        text = ax.annotate(
            names[place], data[place], (0, 0), textcoords="offset points", fontsize=size
        )
        text.set_in_layout(False)
        extent = text.get_window_extent()
        box, leader = find_room(points[place], (extent.width, extent.height), taken, frame)
        text.set_position(tuple((box[:2] - points[place]) * 72.0 / figure.dpi))
        taken = np.vstack([taken, box, leader])
        if len(leader):
            ends = [points[place], np.clip(points[place], box[:2], box[2:])]
            x, y = ax.transData.inverted().transform(ends).T
            ax.plot(x, y, color=GREY, lw=0.7, zorder=1, scalex=False, scaley=False)


def find_room(
    point: np.ndarray, size: tuple[float, float], taken: np.ndarray, frame: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The nicest box of a size near a point that overlaps least with what is taken.

    Parameters
    ----------
    point : array (2,)
        In pixels, as all below.
    size : pair of float
        Width and height of the box.
    taken : array (m, 4)
        Boxes in use: left, lower, right and upper end.
    frame : array (4,)
        The box that all should be in.

    Returns
    -------
    array (4,) and array (k, 4)
        The box, and small boxes along the line that leads to it if it is not beside the point.
    """
    found: list[tuple[float, np.ndarray, np.ndarray]] = []
    for place, (angle, reach) in enumerate(_WAYS):
        box = _beside(point, size, angle, reach)
        leader = _lead(point, box) if reach > _NEAR else np.empty((0, 4))
        outside = max(*(frame[:2] - box[:2]), *(box[2:] - frame[2:]), 0.0)
        cost = _overlap(box[None], taken) + 10.0 * _overlap(leader, taken) + 1e3 * outside
        found.append((cost + 0.01 * place, box, leader))
    _, box, leader = min(found, key=lambda each: each[0])
    return box, leader


def _beside(point: np.ndarray, size: tuple[float, float], angle: float, reach: float) -> np.ndarray:
    way = np.array([math.cos(math.radians(angle)), math.sin(math.radians(angle))])
    half = 0.5 * np.asarray(size)
    center = point + way * (reach + half)
    return np.concatenate([center - half, center + half])


def _lead(point: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Small boxes (k, 4) along the line from a point to its box, without both ends."""
    way = np.clip(point, box[:2], box[2:]) - point
    length = max(float(np.hypot(*way)), 1.0)
    dots = point + np.arange(6.0, length - 2.0, 3.0)[:, None] * way / length
    return np.hstack([dots - 1.0, dots + 1.0])


def _overlap(boxes: np.ndarray, others: np.ndarray) -> float:
    """Sum of the areas that boxes (k, 4) share with others (m, 4)."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return float(np.sum(np.prod(np.maximum(high - low, 0.0), axis=2)))
