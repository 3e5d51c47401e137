"""Independent Gaussian vectors, the rows (bias, weights) of a layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bowtienet._arrays import (
    Array,
    diagonal,
    diagonal_matrix,
    log_determinant,
    namespace,
)


@dataclass(frozen=True, kw_only=True)
class GaussianRows:
    """Rows d = 1..D distributed as N(mean[d], covariance[d])."""

    mean: Array
    """(D, K)"""
    covariance: Array
    """(D, K, K)"""


def second_moment(q: GaussianRows) -> Array:
    """E[x x'] = m m' + B of every row, (D, K, K)."""
    return q.mean[..., :, None] * q.mean[..., None, :] + q.covariance


def squares(q: GaussianRows) -> Array:
    """E[x²] = m² + diag B elementwise, (D, K)."""
    return q.mean**2 + diagonal(q.covariance)


def entropy(q: GaussianRows) -> Array:
    """½ log |B| + ½ K (1 + log 2π) of every row, (D,); an entry with variance 0 has no part."""
    xp = namespace(q.mean)
    varies = xp.astype(diagonal(q.covariance) > 0.0, q.mean.dtype)
    determinant = log_determinant(q.covariance + diagonal_matrix(1.0 - varies))
    size = xp.sum(varies, axis=-1)
    return 0.5 * determinant + 0.5 * size * (1.0 + math.log(2.0 * math.pi))


def sample(q: GaussianRows, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Draws (*shape, D, K).

    The Cholesky factor is that of the correlation matrix, as in `inverse_and_log_determinant`; an
    entry with variance 0 (a pruned weight) stays at its mean.
    """
    mean, covariance = q.mean, q.covariance
    deviation = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    safe = np.where(deviation > 0.0, deviation, 1.0)
    correlation = covariance / (safe[..., :, None] * safe[..., None, :])
    constant = np.where(deviation > 0.0, 0.0, 1.0)[..., None] * np.eye(mean.shape[-1])
    factor = np.linalg.cholesky(correlation + constant)
    noise = rng.standard_normal((*shape, *mean.shape))
    return np.asarray(mean + deviation * np.einsum("...ij,...j->...i", factor, noise))
