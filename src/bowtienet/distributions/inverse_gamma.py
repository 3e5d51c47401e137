"""Inverse gamma distribution, density b^a / Γ(a) x^{-a-1} exp(-b/x).

Here a is the concentration and b the scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowtienet._arrays import Array, as_arrays, namespace, special


@dataclass(frozen=True, kw_only=True)
class InverseGamma:
    """Inverse gamma distributions with `concentration` and `scale`, broadcast together."""

    concentration: Array | float
    scale: Array | float


def mean(q: InverseGamma) -> Array:
    """E[x] = b / (a - 1); infinite for a <= 1."""
    concentration, scale = as_arrays(q.concentration, q.scale)
    xp = namespace(concentration, scale)
    excess = concentration - 1.0
    finite = excess > 0.0
    value = scale / xp.where(finite, excess, xp.ones_like(excess))
    return xp.where(finite, value, xp.full_like(value, float("inf")))


def mean_inverse(q: InverseGamma) -> Array:
    """E[1/x] = a / b."""
    concentration, scale = as_arrays(q.concentration, q.scale)
    return concentration / scale


def mean_log(q: InverseGamma) -> Array:
    """E[log x] = log b - ψ(a)."""
    concentration, scale = as_arrays(q.concentration, q.scale)
    return namespace(scale).log(scale) - special("digamma", concentration)


def log_normalizer(q: InverseGamma) -> Array:
    """Log of ∫ x^{-a-1} exp(-b/x) dx: log Γ(a) - a log b."""
    concentration, scale = as_arrays(q.concentration, q.scale)
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
    return np.asarray(q.scale / rng.gamma(q.concentration, size=shape))
