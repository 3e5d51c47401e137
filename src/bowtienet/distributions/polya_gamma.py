"""Polya-Gamma distribution PG(1, A), by its tilt A.

PG(ω | 1, A) = cosh(A/2) exp(-A² ω / 2) PG(ω | 1, 0), so neither moments nor the bound ever need the
density of PG(1, 0).
"""

from __future__ import annotations

import math

from bowtienet._arrays import Array, namespace

_SERIES_BELOW = 0.1
"""Below this |A|/2 the series of tanh(x)/x to x^10 is exact to 2e-15, derivatives included."""

_SERIES = (1.0, -1.0 / 3.0, 2.0 / 15.0, -17.0 / 315.0, 62.0 / 2835.0, -1382.0 / 155925.0)


def mean(tilt: Array) -> Array:
    """E[ω] = tanh(A/2) / (2A), and 1/4 at A = 0."""
    xp = namespace(tilt)
    x = 0.5 * xp.asarray(tilt)
    small = xp.abs(x) < _SERIES_BELOW
    near = xp.where(small, x, xp.zeros_like(x))
    far = xp.where(small, xp.ones_like(x), x)
    square = near * near
    series = xp.zeros_like(x)
    for coefficient in reversed(_SERIES):
        series = series * square + coefficient
    return 0.25 * xp.where(small, series, xp.tanh(far) / far)


def log_cosh_half(tilt: Array) -> Array:
    """log cosh(A/2), without overflow and with full relative accuracy near 0."""
    xp = namespace(tilt)
    x = 0.5 * xp.abs(xp.asarray(tilt))
    small = x < 1.0
    near = xp.where(small, x, xp.zeros_like(x))
    far = xp.where(small, xp.ones_like(x), x)
    return xp.where(
        small,
        0.5 * xp.log1p(xp.sinh(near) ** 2),
        far + xp.log1p(xp.exp(-2.0 * far)) - math.log(2.0),
    )


def log_ratio(tilt: Array) -> Array:
    """E_q[log PG(ω|1,0) - log PG(ω|1,A)] = ½ A² E[ω] - log cosh(A/2) under q = PG(1, A).

    Written as (A/4) tanh(A/2) - log cosh(A/2), which has no square to overflow.
    """
    xp = namespace(tilt)
    tilt = xp.asarray(tilt)
    return 0.25 * tilt * xp.tanh(0.5 * tilt) - log_cosh_half(tilt)
