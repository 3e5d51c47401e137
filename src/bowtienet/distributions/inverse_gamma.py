"""Inverse gamma distribution, density b^a / Γ(a) x^{-a-1} exp(-b/x).

Here a is the concentration and b the scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowtienet._arrays import Array, like, namespace, special, to_numpy


@dataclass(frozen=True, kw_only=True)
class InverseGamma:
    """Inverse gamma distributions with `concentration` and `scale`, broadcast together."""

    concentration: Array | float
    scale: Array | float


def mean(q: InverseGamma) -> Array:
    """E[x] = b / (a - 1); infinite for a <= 1."""
    concentration, scale = _parameters(q)
    xp = namespace(concentration, scale)
    excess = concentration - 1.0
    finite = excess > 0.0
    value = scale / xp.where(finite, excess, xp.ones_like(excess))
    return xp.where(finite, value, xp.full_like(value, float("inf")))


def mean_inverse(q: InverseGamma) -> Array:
    """E[1/x] = a / b."""
    concentration, scale = _parameters(q)
    return concentration / scale


def mean_log(q: InverseGamma) -> Array:
    """E[log x] = log b - ψ(a)."""
    concentration, scale = _parameters(q)
    return namespace(scale).log(scale) - special("digamma", concentration)


def log_normalizer(q: InverseGamma) -> Array:
    """Log of ∫ x^{-a-1} exp(-b/x) dx: log Γ(a) - a log b."""
    concentration, scale = _parameters(q)
    return special("gammaln", concentration) - concentration * namespace(scale).log(scale)


def expected_log_ratio(q: InverseGamma, p: InverseGamma) -> Array:
    """E_q[log p(x) - log q(x)], which is minus the Kullback-Leibler divergence from p to q.

    log Z_q - log Z_p + (a_q - a_p) E_q[log x] + (b_q - b_p) E_q[1/x].
    """
    return (
        log_normalizer(q)
        - log_normalizer(p)
        + (q.concentration - p.concentration) * mean_log(q)
        + (q.scale - p.scale) * mean_inverse(q)
    )


def sample(q: InverseGamma, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draws of the given shape, to which the parameters broadcast."""
    return np.asarray(to_numpy(q.scale) / rng.gamma(to_numpy(q.concentration), size=shape))


def _parameters(q: InverseGamma) -> tuple[Array, Array]:
    """(a, b) as arrays of one library; a number takes the dtype of the array beside it."""
    numbers = (int, float, np.generic)
    a, b = q.concentration, q.scale
    if isinstance(a, numbers) and isinstance(b, numbers):
        return np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if isinstance(a, numbers):
        return like(b, float(a)), b
    return a, like(a, float(b)) if isinstance(b, numbers) else b
