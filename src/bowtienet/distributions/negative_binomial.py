"""The negative binomial distribution of mean m and dispersion α, whose variance is m + α m².

With r = 1/α and q = α m / (1 + α m),

    P(y) = Γ(y + r) / (Γ(r) y!) q^y (1 - q)^r,      P(y <= k) = 1 - I_q(k + 1, r).

α near zero, such as 1e-30, is Poisson's distribution.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, gammaln

Floats = NDArray[np.float64]


def log_probability(y: Floats, means: Floats, alpha: Floats) -> Floats:
    """log P(y) by Loader's saddle point, in which large terms do not cancel.

    With r = 1/α, n = y + r and S the error of Stirling's formula,

        S(n) - S(r) - S(y) - ½ log(1 + α y) - ½ log(2π y) + r A + y B,

    A = log((1 + α y) / (1 + α m)) and B = log(m / y) + A; -r log(1 + α m) for y = 0.
    """
    none = y == 0.0
    y = np.where(none, 1.0, y)
    grown, shift = np.log1p(alpha * y), (y - means) / (1.0 + alpha * means)
    with np.errstate(divide="ignore"):
        A = np.where(
            np.abs(alpha * shift) < 0.5,
            np.log1p(np.maximum(alpha * shift, -0.5)),
            grown - np.log1p(alpha * means),
        )
        near = np.abs(shift) < 0.5 * y
        B = np.where(near, np.log1p(-np.where(near, shift, 0.0) / y), np.log(means / y) + A)
    logs = _stirling(y + 1.0 / alpha) - _stirling(1.0 / alpha) - _stirling(y) - 0.5 * grown
    logs = logs - 0.5 * np.log(2.0 * math.pi * y) + A / alpha + y * B
    return np.where(none, -np.log1p(alpha * means) / alpha, logs)


def tail(k: Floats, means: Floats, alpha: Floats, *, upper: bool) -> Floats:
    """P(y > k) or P(y <= k), from the smaller of q and p = 1 - q, which has all its digits."""
    k, means, alpha = np.broadcast_arrays(k + 1.0, means, alpha)
    odds, found = alpha * means, np.empty(k.shape)
    by_q, by_p = (betainc, betaincc) if upper else (betaincc, betainc)
    by_q(k, 1.0 / alpha, odds / (1.0 + odds), out=found, where=odds < 1.0)
    by_p(1.0 / alpha, k, 1.0 / (1.0 + odds), out=found, where=odds >= 1.0)
    return found


def _stirling(x: Floats) -> Floats:
    """log Γ(x + 1) - (x + ½) log x + x - ½ log 2π, by its series for large x."""
    s = 1.0 / np.maximum(x, 10.0)
    series = s * (1 / 12 - s**2 * (1 / 360 - s**2 * (1 / 1260 - s**2 * (1 / 1680 - s**2 / 1188))))
    small = np.minimum(x, 10.0)
    plain = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small
    return np.where(x < 10.0, plain - 0.5 * math.log(2.0 * math.pi), series)
