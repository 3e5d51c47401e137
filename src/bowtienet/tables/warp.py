"""Targets on the scale that networks learn: standardised, or also made more Gaussian.

With u = (y - center) / scale, Yeo and Johnson's power transform of exponent λ in [0, 2] is

    Y(u) = ((1 + u)^λ - 1) / λ for u >= 0,      Y(u) = -((1 - u)^(2-λ) - 1) / (2 - λ) for u < 0,
    z    = (Y(u) - shift) / size,

and Y goes on linearly below `low` and above `high`, with the slope it has there, so that no
quantile, draw or moment overflows. λ = 1 is affine; λ < 1 is for a long upper tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet.tables.quantiles import in_line

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Warp:
    """z of y, target by target; arrays (D,) that are broadcast against the last axis of values."""

    center: Floats
    scale: Floats
    exponent: Floats
    """λ."""
    low: Floats
    """u below which z is a line: half the range below the least of training."""
    high: Floats
    shift: Floats
    size: Floats
    """Weighted mean and standard deviation of Y(u) in training."""


def fit_warp(targets: Floats, weights: Floats, *, transformed: bool) -> Warp:
    """Warps of targets (n, D) with positive row weights (n,); affine unless `transformed`.

    λ maximises -½ log Var[Y(u)] + E[log Y'(u)]; a constant target has scale, size and λ one.
    """
    share, unit = weights / weights.sum(), np.abs(targets).max(axis=0)
    unit = np.where(unit > 0.0, unit, 1.0)
    usual = in_line(targets / unit)
    center = share @ usual
    spread = np.sqrt(share @ (usual - center) ** 2)
    constant = spread <= 64.0 * np.finfo(float).eps
    u = np.where(constant, 0.0, (targets / unit - center) / np.where(constant, 1.0, spread))
    exponent = np.ones_like(center)
    if transformed:
        exponent = np.array([_best_exponent(column, share) for column in u.T])
    half = 0.5 * np.ptp(u, axis=0)
    bent = in_line(_bend(exponent, u))
    shift = share @ bent
    return Warp(
        center=unit * center,
        scale=np.where(constant, 1.0, unit * spread),
        exponent=exponent,
        low=u.min(axis=0) - half,
        high=u.max(axis=0) + half,
        shift=shift,
        size=np.where(constant, 1.0, np.sqrt(share @ (bent - shift) ** 2)),
    )


def forward(warp: Warp, y: Any) -> Floats:
    """z of y (..., D)."""
    return forward_and_slopes(warp, y)[0]


def forward_and_slopes(warp: Warp, y: Any) -> tuple[Floats, Floats, Floats]:
    """z, dz/dy and d log(dz/dy)/dy."""
    with np.errstate(over="ignore"):
        u = (y - warp.center) / warp.scale
        inside = np.clip(u, warp.low, warp.high)
        sign, power = _sign_and_power(warp.exponent, inside)
        grown = np.expm1(power * np.log1p(np.abs(inside)))
        slope = (1.0 + grown) / (1.0 + np.abs(inside))
        z = (sign * grown / power + slope * (u - inside) - warp.shift) / warp.size
        curvature = (inside == u) * (sign * (power - 1.0) / (1.0 + np.abs(inside)))
        return z, slope / warp.size / warp.scale, curvature / warp.scale


def inverse(warp: Warp, z: Any) -> Floats:
    """y of z (..., D)."""
    with np.errstate(over="ignore"):
        bent = z * warp.size + warp.shift
        inside = np.clip(bent, *(_bend(warp.exponent, end) for end in (warp.low, warp.high)))
        sign, power = _sign_and_power(warp.exponent, inside)
        size = np.expm1(np.log1p(power * np.abs(inside)) / power)
        u = sign * size + (bent - inside) * ((1.0 + size) / (1.0 + power * np.abs(inside)))
        return np.asarray(warp.center + warp.scale * u)


def log_slope(warp: Warp, y: Any) -> Floats:
    """log dz/dy."""
    return np.log(forward_and_slopes(warp, y)[1])


def is_affine(warp: Warp) -> bool:
    """Whether z is a line in y for every target."""
    return bool(np.all(warp.exponent == 1.0))


def _sign_and_power(exponent: Any, u: Floats) -> tuple[Floats, Floats]:
    """The side of zero, and λ above it or 2 - λ below it."""
    sign = np.copysign(1.0, u)
    # At the power 1e-20 the transform is log(1 + u) to rounding.
    return sign, np.maximum(1.0 + sign * (exponent - 1.0), 1e-20)


def _bend(exponent: Any, u: Floats) -> Floats:
    """Y(u) without ends."""
    sign, power = _sign_and_power(exponent, u)
    return np.asarray(sign * np.expm1(power * np.log1p(np.abs(u))) / power)


def _best_exponent(u: Floats, share: Floats) -> float:
    from scipy.optimize import minimize_scalar  # heavy to load

    if not np.ptp(u) > 0.0:
        return 1.0
    direction = share @ np.copysign(np.log1p(np.abs(u)), u)

    def loss(exponent: float) -> float:
        bent = _bend(exponent, u)
        return float(0.5 * np.log(share @ (bent - share @ bent) ** 2) - exponent * direction)

    # The search comes near the limits but never there.
    return min((minimize_scalar(loss, bounds=(0.0, 2.0), method="bounded").x, 0.0, 2.0), key=loss)
