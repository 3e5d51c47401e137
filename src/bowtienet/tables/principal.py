"""Principal components: tables with many columns in the size of few.

Standardised columns x (E,) become P components V'x / c, with V the leading principal directions of
the training rows and c one scale for all, so that the components have a mean square of one. With no
fewer components than rows nothing is lost: rows lie in the space of their principal directions,
and so does every network that is fitted with a penalty on its squared weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def fit_principal(inputs: Floats, weights: Floats, most: int) -> Floats:
    """V / c (E, P): leading principal directions of standardised inputs (n, E), `most` or fewer.

    Of many rows every so many are looked at; row weights (n,) say how many times each counts.
    """
    if not inputs.any():
        return np.zeros((inputs.shape[1], 1))
    apart = -(-len(inputs) // 2_000)  # about so many rows tell the directions
    sample, share = inputs[::apart], weights[::apart]
    rooted = np.sqrt(share / share.sum())[:, None] * sample
    wide = rooted.shape[0] < rooted.shape[1]
    values, vectors = np.linalg.eigh(rooted @ rooted.T if wide else rooted.T @ rooted)
    values, vectors = values[::-1][:most], vectors[:, ::-1][:, :most]
    kept = values > 1e-10 * values[0]  # the others are rounding
    values, directions = values[kept], vectors[:, kept]
    if wide:
        directions = rooted.T @ (directions / np.sqrt(values))
    # The sign of a direction is nobody's choice: its largest loading is positive.
    largest = np.argmax(np.abs(directions), axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return np.ascontiguousarray(directions * signs / np.sqrt(np.mean(values)))
