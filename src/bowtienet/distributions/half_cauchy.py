"""Square x of a half-Cauchy variable, density A / (π sqrt(x) (A² + x)) with A² the scale.

It is a mixture of inverse gammas over an auxiliary variable,

    x | nu ~ IG(½, 1/nu),   nu ~ IG(½, 1/A²),

which makes q(x) q(nu) conjugate: q(x) is inverse gamma, and the best q(nu) for it is
IG(1, 1/A² + E[1/x]). That one is never stored: the functions below put it in, so that x alone
stands where a generalised inverse Gaussian does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bowtienet._arrays import Array, as_arrays, namespace
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian


@dataclass(frozen=True, kw_only=True)
class HalfCauchy:
    """Squares of half-Cauchy variables with median `scale`, A²."""

    scale: Array | float

    order: ClassVar[float] = -0.5
    """Parameter of x given nu, as a GIG."""
    rate: ClassVar[float] = 0.0
    """Parameter of x given nu, as a GIG."""


def sample(p: HalfCauchy, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draws of the given shape, to which the scale broadcasts."""
    return np.asarray(p.scale * rng.standard_cauchy(size=shape) ** 2)


def update(p: HalfCauchy, count: int, half_squares: Array) -> GeneralizedInverseGaussian:
    """q(x) of x with `count` squared Gaussians of variance x, with h half their sum.

    The updates q(x) = IG(a, E[1/nu] + h), a = ½ + count/2, and q(nu) = IG(1, 1/A² + E[1/x])
    meet where the scale of q(x) is A² y, y the positive root of

        y² + (a - 1 - h/A²) y - a h/A² = 0.
    """
    a = 0.5 + 0.5 * count
    squares, scale = as_arrays(half_squares, p.scale)
    xp = namespace(squares)
    u = squares / scale
    # Squares that are zero to rounding would put all of q(x) at zero. With the root the product
    # E[1/tau] E[1/psi] stays a number.
    smallest = math.sqrt(float(xp.finfo(u.dtype).smallest_normal))
    u = xp.maximum(u, smallest)
    slope = a - 1.0 - u
    root = xp.hypot(slope, 2.0 * xp.sqrt(a * u))
    # Either form is exact where the other one cancels.
    rising = slope > 0.0
    below = xp.where(rising, root + slope, xp.ones_like(root))
    y = xp.where(rising, 2.0 * a * u / below, 0.5 * (root - slope))
    return GeneralizedInverseGaussian(order=-a, scale=scale * y, rate=0.0)


def expected_log_ratio(q: GeneralizedInverseGaussian, p: HalfCauchy) -> Array:
    """E[log p(x | nu) p(nu) - log q(x) q(nu)] at the best q(nu), for an inverse gamma q(x).

        log Z_q + s_q E[1/x] + ½ log A² - log π - log(1 + A² E[1/x])

    As of `generalized_inverse_gaussian.expected_log_ratio`, E[log x] is left out: it cancels
    against that of the weights' prior.
    """
    inverse, scale = as_arrays(gig.mean_inverse(q), p.scale)
    xp = namespace(inverse)
    ratio = gig.log_normalizer(q) + q.scale * inverse - xp.log1p(scale * inverse)
    return ratio + 0.5 * xp.log(scale) - math.log(math.pi)
