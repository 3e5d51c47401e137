"""Section 3.5: intervals that hold a stated share of the predictive distribution.

The narrowest of S sorted draws y_(1) <= ... <= y_(S), with h = ceil(coverage S):

    [y_(i), y_(i+h-1)],   i = argmin_i y_(i+h-1) - y_(i).

Central intervals, the quantiles (1 - coverage)/2 and (1 + coverage)/2, are in `mixture`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, slices, to_numpy

_BLOCK = 2**17
"""Draws sorted at a time: three arrays of 1 MB, however many rows there are."""
_ROUNDING = 1.0 - 2.0**-50
"""The double 0.55 times 100 is a little above 55, but 55 of 100 draws are meant."""


def highest_density(samples: Array, coverage: Any) -> np.ndarray:
    """[y_(i), y_(i+h-1)] of least width: the shortest interval that holds ceil(coverage S) draws.

    Where the density has several peaks, a wider coverage may move the interval to another peak:
    intervals of growing coverage need not nest, unlike central ones.

    Parameters
    ----------
    samples : array (S, ...)
        Draws along the first axis; finite numbers.
    coverage : float or list of k floats
        Shares of the draws to hold, each strictly between 0 and 1.

    Returns
    -------
    array (..., 2) or (..., 2, k)
        Lower and upper ends; among intervals of equal width the lowest.

    Examples
    --------
    >>> highest_density([1.0, 9.0, 2.0, 2.5, 3.0], 0.6)
    array([2., 3.])
    """
    shares = check_coverage(coverage)
    draws = np.asarray(to_numpy(samples), dtype=np.float64)
    cells = draws.reshape(draws.shape[0], -1)
    ends = np.empty((cells.shape[1], 2, shares.size))
    for part in slices(cells.shape[1], max(1, _BLOCK // cells.shape[0])):
        # Draws of one cell side by side: sorting along the last axis is several times faster.
        ordered = np.sort(cells[:, part].T, axis=-1)
        for k, share in enumerate(shares.flat):
            ends[part, :, k] = _shortest(ordered, share)
    return ends.reshape(*draws.shape[1:], 2, *shares.shape)


def check_coverage(coverage: Any) -> np.ndarray:
    """`coverage` as an array of no or one axis if it lies strictly between 0 and 1."""
    shares = np.asarray(coverage)
    if shares.dtype.kind not in "fiu" or shares.ndim > 1 or shares.size == 0:
        raise ValueError(
            f"coverage must be a number or a list of numbers between 0 and 1, got {coverage!r}."
        )
    outside = shares[~((shares > 0.0) & (shares < 1.0))]
    if outside.size:
        found = float(outside[0])
        hint = f": write {found / 100.0:g} for {found:g} %." if 1.0 < found < 100.0 else "."
        raise ValueError(f"coverage must lie strictly between 0 and 1, got {found:g}{hint}")
    return shares.astype(np.float64)


def _shortest(ordered: np.ndarray, share: float) -> np.ndarray:
    """Ends (cells, 2) of the shortest run of ceil(share S) of the sorted draws (cells, S)."""
    n_draws = ordered.shape[1]
    held = min(n_draws, math.ceil(share * n_draws * _ROUNDING))
    # Halves, because the width of two numbers near ±1e308 would overflow.
    widths = 0.5 * ordered[:, held - 1 :] - 0.5 * ordered[:, : n_draws - held + 1]
    first = np.argmin(widths, axis=1)
    rows = np.arange(ordered.shape[0])
    return np.stack([ordered[rows, first], ordered[rows, first + held - 1]], axis=1)
