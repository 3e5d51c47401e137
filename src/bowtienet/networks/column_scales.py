"""Closed-form local scales: columns that the networks do not use are penalised more.

The weights of column j have the paper's prior, W ~ N(0, tau psi_j), with one scale psi_j for all of
them. The prior of psi_j grows with their number m_j as its data do: each weight brings its share,
so that with w_j = |W_j|² / m_j

    q(psi_j) ∝ prior(psi_j) N(√w_j | 0, tau psi_j),      f_j = E[1 / psi_j],

and tau = mean w_j. For Student-t, psi_j ~ IG(a, a), this is

    f_j = (a + ½) / (a + ½ w_j / tau),

with m_j a in the place of a: (a m_j + ½ m_j) / (a m_j + ½ |W_j|² / tau). The penalty holds the
global scale, so the f are normalised: the mean of 1 / f_j is one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.model.shrinkage import (
    Shrinkage,
    ShrinkagePrior,
    build_shrinkage,
    conjugate_update,
    mean_inverse,
)
from bowtienet.networks.networks import Single

STUDENT_T_ORDER = 5e-4
"""a: the ratio of two columns is at most 1 + ½ / a, about 1,000."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which networks have local scales, and for which groups of inputs."""

    owners: NDArray[np.intp]
    """(K,): the user's column of each input."""
    shrinks: NDArray[np.bool_]
    """(R,): networks whose columns have scales of their own."""
    prior: ShrinkagePrior
    """Prior of every psi_j."""


def local_prior(family: str) -> ShrinkagePrior:
    """The prior of psi_j by name."""
    if family == "student_t":
        return GeneralizedInverseGaussian(order=-STUDENT_T_ORDER, scale=STUDENT_T_ORDER, rate=0.0)
    return build_shrinkage(family)


def local_scales(columns: Columns, weights: Single) -> tuple[Shrinkage, NDArray[np.float64]]:
    """q(psi) and tau (R, 1) at first-layer weights (R, D, K)."""
    squares = np.mean(np.square(weights, dtype=np.float64), axis=1)
    group, size = _groups(columns)
    grouped = np.zeros((len(squares), len(size)))
    np.add.at(grouped.T, group, squares.T)
    grouped /= size
    tau = np.mean(grouped, axis=1, keepdims=True)
    relative = grouped / np.where(tau > 0.0, tau, 1.0)
    # Smaller ones are rounding; only of networks that training emptied are weights exactly zero.
    return conjugate_update(columns.prior, 1, 0.5 * np.maximum(relative, 1e-12)), tau


def relative_penalties(columns: Columns, weights: Single) -> Single:
    """f (R, K) of every input, mean of 1 / f one; one for networks without local scales."""
    scales, _ = local_scales(columns, weights)
    group, size = _groups(columns)
    inverse = np.broadcast_to(mean_inverse(scales), (len(weights), len(size)))
    factors = inverse * np.mean(1.0 / inverse, axis=1, keepdims=True)
    factors = np.where(columns.shrinks[:, None], factors, 1.0)
    return factors[:, group].astype(np.float32)


def _groups(columns: Columns) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number of each input's group, and the size of each: a constant column has no inputs."""
    _, group, size = np.unique(columns.owners, return_inverse=True, return_counts=True)
    return group, size
