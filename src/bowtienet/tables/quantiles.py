"""Quantiles of weighted values: a row of weight 2 is as good as two rows; values out of line."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def weighted_quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """The value below which a share of the weight lies; the middle of the two that part it exactly.

    Values (n,), at least one, with positive weights (n,), at shares (m,) in [0, 1].
    """
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order] / np.max(weights))
    # Sums of weights are rounded: a share is one to twelve digits.
    wanted = levels * share[-1]
    below, above = (
        values[order[np.minimum(np.searchsorted(share, wanted * slack), len(values) - 1)]]
        for slack in (1.0 - 1e-12, 1.0 + 1e-12)
    )
    return np.asarray(0.5 * below + 0.5 * above)


def in_line(values: Floats) -> Floats:
    """Values (n, K) without those out of line, which stand at the limit of their column.

    It is five ranges of the middle nine tenths beyond these: a hundred rows of any usual
    distribution have no such value, and a total among the rows is one. A column whose middle nine
    tenths are equal stays as it is.
    """
    low, high = np.quantile(values, (0.05, 0.95), axis=0)
    # Halves, so that no difference overflows.
    reach = 10.0 * (0.5 * high - 0.5 * low)
    reach = np.where(reach > 0.0, reach, np.inf)
    return np.clip(values, low - reach, high + reach)
