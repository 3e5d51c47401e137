"""Which inputs matter: the paths that lead from an input to an output.

With R = 1 for an output, a unit below has R_u = 1 - Π_v (1 - Q_uv R_v) over its surviving weights,
the probability that some path from it to the output consists of weights of the sign they seem to
have, taking weights and paths for independent. The strength of an input is the sum over its paths
of the products of |E[W]|: a change of the input by one standard deviation moves the ReLU network
of these weights by no more, in standard deviations of the target.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import to_numpy
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.selection import Mask, sign_error

Floats = NDArray[np.float64]


def path_probability(factors: GlobalFactors, connections: Sequence[Mask]) -> Floats:
    """Probability (D_0, D_out) that an input reaches an output."""
    n_outputs = connections[-1].shape[0]
    reach = np.eye(n_outputs)
    for layer, mask in zip(reversed(factors.layers), reversed(connections), strict=True):
        sure = np.where(mask, 1.0 - sign_error(layer.weights), 0.0)
        # In logarithms a long product of small doubts keeps its digits.
        with np.errstate(divide="ignore"):
            missing = np.log1p(-sure[:, :, None] * reach[:, None, :])
        reach = -np.expm1(missing.sum(axis=0))
    return reach


def path_strength(factors: GlobalFactors, connections: Sequence[Mask]) -> Floats:
    """Σ over paths of Π |E[W]|, (D_0, D_out)."""
    total = np.eye(connections[-1].shape[0])
    for layer, mask in zip(reversed(factors.layers), reversed(connections), strict=True):
        total = np.where(mask, np.abs(to_numpy(layer.weights.mean)[:, 1:]), 0.0).T @ total
    return total
