"""How strong inputs are: the paths that lead from an input to an output.

The strength of an input is the sum over its paths of the products of |E[W]|: a change of the input
by one standard deviation moves the ReLU network of these weights by no more, in standard deviations
of the target.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import to_numpy
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.selection import Mask

Floats = NDArray[np.float64]


def path_strength(factors: GlobalFactors, connections: Sequence[Mask]) -> Floats:
    """Σ over paths of Π |E[W]|, (D_0, D_out)."""
    total = np.eye(connections[-1].shape[0])
    for layer, mask in zip(reversed(factors.layers), reversed(connections), strict=True):
        total = np.where(mask, np.abs(to_numpy(layer.weights.mean)[:, 1:]), 0.0).T @ total
    return total
