"""Rows that stay with a fitted model, so that it can be explained without its data.

What a column adds to a prediction is relative to rows in which the column has other values. A
random sample of the training rows, features without targets, stands for these. It is in memory and
in pickles; files that `save` writes hold no rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.rows import Rows
from bowtienet._old.representation.representation import Representation
from bowtienet._old.representation.scaling import restore_mean

Floats = NDArray[np.float64]

KEPT_ROWS = 200
"""Few enough to keep, and to predict with every column permuted."""


@dataclass(frozen=True, kw_only=True)
class Background:
    """Encoded rows in the user's units, in random order."""

    features: Floats
    """(m, E)."""
    weights: Floats
    """How many times each row counts, (m,); positive."""


def keep_rows(representation: Representation, rows: Rows) -> Background:
    """The first of standardised rows in random order, `KEPT_ROWS` or fewer."""
    standardized = to_numpy(rows.inputs[:KEPT_ROWS, ...]).astype(np.float64)
    inputs = np.empty_like(standardized)
    inputs[:, representation.column_order] = standardized
    return Background(
        features=np.asarray(restore_mean(representation.feature_scaling, inputs)),
        weights=to_numpy(rows.weights[:KEPT_ROWS]).astype(np.float64),
    )
