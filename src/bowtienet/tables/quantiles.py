"""Quantiles of weighted values: a row of weight 2 is as good as two rows."""

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
