"""Predictions of rows that take some of their columns from other rows.

Let b be a row, x another, and the inputs in groups g. The row that has the groups of a coalition S
from x and all others from b differs from b by δ_g = x_g - b_g for g in S. Under q the
preactivations of the first hidden layer have, with b~ = (1, b),

    E[z]   = m'b~ + Σ_{g in S} m_g'δ_g,
    Var[z] = b~'B b~ + Σ_{g in S} 2 (B b~)_g'δ_g + Σ_{g, h in S} δ_g'B_gh δ_h,

sums of numbers that are the same for every coalition. So a pair of rows costs about as much as a
prediction, and each of its coalitions hardly more than the gates of its units: permuted columns and
Shapley values ask for many coalitions of few pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import slices, to_numpy, with_ones
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.prediction.predictive import Predictive, output_noise, predict
from bowtienet._old.prediction.push_forward import push_preactivations

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

_BLOCK = 2**16
"""Numbers in the arrays of some coalitions, half a megabyte each,"""
_ROW_BLOCK = 2**18
"""and in those of some rows for all coalitions."""


def mix_rows(base: Floats, other: Floats, groups: Indices, coalitions: Mask) -> Floats:
    """Rows (C, R, n, P) with the groups of each coalition from `other`, the rest from `base`.

    Parameters
    ----------
    base : array (n, P)
    other : array (R, n, P)
        R rows for each of the base.
    groups : array (P,)
        The group of each column, counted from 0.
    coalitions : array (C, G)
        Whether a coalition has a group.
    """
    return np.where(coalitions[:, None, None, groups], other, base)


def predict_mixed(
    model: BowTieModel,
    factors: GlobalFactors,
    base: Floats,
    other: Floats,
    groups: Indices,
    coalitions: Mask,
    loadings: Floats | None = None,
) -> Predictive:
    """Predictive moments (C R n, D_out) of `mix_rows`, by the push-forward.

    With `loadings` L (P, K) the network sees K components x L of the columns; then the δ_g above
    are (x_g - b_g) L_g.
    """
    used, places = np.unique(groups, return_inverse=True)
    members, shape = coalitions[:, used], (len(coalitions), *other.shape[:2])
    if len(_pairs(members)) > model.architecture.n_inputs**2 // 2:
        # More sums than there are products of inputs.
        mixed = mix_rows(base, other, groups, coalitions).reshape(-1, base.shape[1])
        inputs = mixed if loadings is None else mixed @ loadings
        return predict(model, factors, inputs, n_threads=1)
    layer = _FirstLayer(factors.layers[0].weights, places, members, loadings)
    n_outputs = len(factors.layers[-1].weights.mean)
    mean, epistemic, chance = (np.empty((*shape, n_outputs)) for _ in range(3))
    for rows in slices(shape[2], max(1, _ROW_BLOCK // layer.n_numbers(shape[1]))):
        sums = layer.sums(base[rows], other[:, rows])
        for some in slices(shape[0], max(1, _BLOCK // max(sums.center[0].size, len(sums.pairs)))):
            center, variance = sums.of(members[some])
            with np.errstate(all="ignore"):
                found, spread = push_preactivations(model, factors, center, variance)
            part = (-1, shape[1], rows.stop - rows.start, n_outputs)
            mean[some, :, rows] = to_numpy(found).reshape(part)
            epistemic[some, :, rows] = to_numpy(spread.epistemic).reshape(part)
            chance[some, :, rows] = to_numpy(spread.chance).reshape(part)
    mean, epistemic, chance = (a.reshape(-1, n_outputs) for a in (mean, epistemic, chance))
    return Predictive(
        mean=mean,
        signal_variance=epistemic + chance,
        chance_variance=chance,
        noise_variance=np.zeros_like(mean) + to_numpy(output_noise(model, factors)),
    )


@dataclass(frozen=True, kw_only=True)
class _Sums:
    """What E[z] and Var[z] of D units are made of, for R changes of n rows."""

    center: Floats
    """m'b~, then m_g'δ_g of every group: (1 + G, R, n, D)."""
    variance: Floats
    """b~'B b~, then (2 B b~ + B_gg δ_g)_g'δ_g of every group: (1 + G, R, n, D)."""
    shared: Floats
    """2 δ_g'B_gh δ_h of pairs of groups: (pairs, R, n, D)."""
    pairs: Indices
    """Their places, (pairs, 2)."""

    def of(self, coalitions: Mask) -> tuple[Floats, Floats]:
        """E[z] and Var[z], each (C R n, D)."""
        n_units = self.center.shape[-1]
        chosen = np.concatenate([np.ones((len(coalitions), 1)), coalitions], axis=1)
        center, variance = (
            chosen @ values.reshape(len(values), -1) for values in (self.center, self.variance)
        )
        if len(self.pairs):
            both = coalitions[:, self.pairs].all(axis=2).astype(np.float64)
            variance += both @ self.shared.reshape(len(self.pairs), -1)
        # Positive but for rounding.
        return center.reshape(-1, n_units), np.maximum(variance, 0.0).reshape(-1, n_units)


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Columns that change together: δ_g = c A with coordinates c and a basis A of few inputs."""

    columns: Indices
    loadings: Floats | None
    """Of the coordinates, where these are components; None where they are the columns."""
    basis: Indices | Floats
    """Inputs of the network that the coordinates are, or rows (k, P) of A."""

    def coordinates(self, change: Floats) -> Floats:
        """c (..., k) of changes of all columns."""
        own = change[..., self.columns]
        return own if self.loadings is None else own @ self.loadings

    def along(self, values: Floats) -> Floats:
        """A'y (..., k) of numbers (..., P) of the inputs."""
        if self.basis.ndim == 1:
            return np.ascontiguousarray(values[..., self.basis])
        return values @ self.basis.T


def _group(columns: Indices, loadings: Floats | None) -> _Group:
    if loadings is None:
        return _Group(columns=columns, loadings=None, basis=columns)
    own = loadings[columns]
    if len(own) <= own.shape[1]:
        return _Group(columns=columns, loadings=None, basis=own)
    return _Group(columns=columns, loadings=own, basis=np.arange(own.shape[1]))


class _FirstLayer:
    """The weights of a first layer by groups of columns, as sums over coalitions need them."""

    def __init__(
        self, weights: GaussianRows, groups: Indices, coalitions: Mask, loadings: Floats | None
    ) -> None:
        mean, covariance = (to_numpy(a).astype(np.float64) for a in vars(weights).values())
        self.pairs = _pairs(coalitions)
        self.loadings, self.mean, self.n_units = loadings, mean.T, len(mean)
        # (K, D, K): products for all units are one.
        self.covariance = np.ascontiguousarray(covariance.transpose(1, 0, 2))
        places = [np.flatnonzero(groups == group) for group in range(coalitions.shape[1])]
        self.groups = [_group(columns, loadings) for columns in places]
        self.means = [group.along(mean[:, 1:]).T for group in self.groups]
        # A_g B, (k, D, P), and A_g B A_h'.
        half = [np.moveaxis(g.along(covariance[:, 1:, 1:]), -1, 0) for g in self.groups]
        self.own = [g.along(rows) for g, rows in zip(self.groups, half, strict=True)]
        self.across = [self.groups[h].along(half[g]) for g, h in self.pairs]

    def n_numbers(self, n_changes: int) -> int:
        """Numbers in the largest array that a row needs."""
        n_sums = max(1 + len(self.groups), len(self.pairs))
        return self.n_units * max(len(self.covariance), n_changes * n_sums)

    def sums(self, base: Floats, other: Floats) -> _Sums:
        """Of rows (n, P) and R changes of them (R, n, P)."""
        shape = (*other.shape[:2], self.n_units)
        inputs = base if self.loadings is None else base @ self.loadings
        extended = with_ones(inputs)
        product = _times(extended, self.covariance)
        center, variance = (np.empty((1 + len(self.groups), *shape)) for _ in range(2))
        shared = np.empty((len(self.pairs), *shape))
        center[0] = extended @ self.mean
        variance[0] = _dot(product, extended)
        change = other - base
        parts = [group.coordinates(change) for group in self.groups]
        for g, (group, part) in enumerate(zip(self.groups, parts, strict=True)):
            center[1 + g] = part @ self.means[g]
            slope = _times(part, self.own[g]) + 2.0 * group.along(product[..., 1:])
            variance[1 + g] = _dot(slope, part)
        for k, (g, h) in enumerate(self.pairs):
            shared[k] = 2.0 * _dot(_times(parts[g], self.across[k]), parts[h])
        return _Sums(center=center, variance=variance, shared=shared, pairs=self.pairs)


def _pairs(coalitions: Mask) -> Indices:
    """Pairs of groups that some coalition has both of."""
    together = coalitions.T.astype(np.int64) @ coalitions
    return np.argwhere(np.tril(together, -1))


def _times(x: Floats, block: Floats) -> Floats:
    """Σ_p x_p B_pdq, (..., D, q)."""
    return (x @ block.reshape(len(block), -1)).reshape(*x.shape[:-1], *block.shape[1:])


def _dot(product: Floats, x: Floats) -> Floats:
    """Σ_q y_dq x_q, (..., D)."""
    return (product @ x[..., None])[..., 0]
