"""Polya-Gamma distribution PG(1, A), by its tilt A >= 0.

PG(ω | 1, A) = cosh(A/2) exp(-A² ω / 2) PG(ω | 1, 0), so neither moments nor the bound ever need the
density of PG(1, 0). With d = e^{-A} - 1, tanh(A/2) = -d / (2 + d) and
cosh(A/2) = e^{A/2} (1 + d/2): one exponential serves all, without cancellation or overflow.
"""

from __future__ import annotations

from bowtienet._arrays import Array, namespace, sum_of_logs


def mean(tilt: Array) -> Array:
    """E[ω] = tanh(A/2) / (2A), and 1/4 at A = 0."""
    decay, minus = _decay(tilt)
    return decay / ((4.0 + 2.0 * decay) * minus)


def mean_and_log_ratio(tilt: Array) -> tuple[Array, Array]:
    """E[ω] (..., D), and its sum over the last axis of E[log PG(ω | 1, 0) - log PG(ω | 1, A)].

    The latter is ½ A² E[ω] - log cosh(A/2) = A (½ A E[ω] - ½) - log(1 + d/2).
    """
    decay, minus = _decay(tilt)
    twice = 4.0 + 2.0 * decay
    value = decay / (twice * minus)
    linear = namespace(tilt).sum(minus * (0.5 + 0.5 * (minus * value)), axis=-1)
    return value, linear - sum_of_logs(0.25 * twice)


def _decay(tilt: Array) -> tuple[Array, Array]:
    """d = e^{-A} - 1 and -A."""
    xp = namespace(tilt)
    # At a tilt of 0 the mean is 0/0; the smallest normal number gives the limit ¼ exactly.
    minus = -float(xp.finfo(tilt.dtype).smallest_normal) - tilt
    return xp.expm1(minus), minus
