"""Section 3.4: a physically smaller network from the weights that were selected.

Weights that were not selected are zero from now on. The others of their unit then have the
conditional distribution given those zeros, which is what their next update with the same statistics
would be:

    B_new = ((B^{-1})_kk)^{-1},   m_new = B_new (B^{-1} m)_k.

(The paper keeps m and only the diagonal of B; the variances of preactivations are then out by
orders of magnitude, docs/theory/errata, 13.) A hidden unit that no input reaches is a constant: its
activation a, with mean mu and variance v, moves into the bias of the next layer (the paper forgets
it, docs/theory/errata, 12),

    b <- b + Σ W a:   (m, B) <- (A m, A B A') with A = [1 mu'; 0 I],   Var[b] += Σ E[W²] v.

The result is where a fit of the smaller network starts; its noise and scales follow there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import diagonal, diagonal_matrix, inverse_and_log_determinant, map_arrays
from bowtienet.distributions import gaussian, inverse_gamma
from bowtienet.distributions.gated import gated_moments
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.model.architecture import Architecture
from bowtienet.model.model import BowTieModel
from bowtienet.posterior.factors import LayerFactors, Posterior
from bowtienet.posterior.selection import Mask, NetworkSelection

Floats = NDArray[np.float64]


def prune(
    model: BowTieModel, posterior: Posterior, selection: NetworkSelection
) -> tuple[BowTieModel, Posterior]:
    """The selected part of a single network (M = 1), in smaller arrays.

    Its inputs are the selected columns of the old ones. Without any it is a constant, and has no
    hidden layers.
    """
    layers: list[LayerFactors] = []
    below, constants, activation = selection.inputs, np.zeros(len(selection.inputs), bool), None
    last = len(posterior.layers) - 1
    for index, layer in enumerate(posterior.layers):
        mask = selection.connections[index]
        alive = np.ones(len(mask), bool) if index == last else selection.units[index]
        # Units that go for good need no new weights.
        gone = np.zeros(len(mask), bool) if index == last else selection.varying[index] & ~alive
        q = GaussianRows(mean=layer.weights.mean[0], covariance=layer.weights.covariance[0])
        q = condition(q, mask | constants | gone[:, None])
        if activation is not None:
            q = fold(q, constants, activation)
        layers.append(_part_of(layer, q, mask, alive, below))
        if index < last:
            constants = ~selection.varying[index]
            # Mean and variance of activations that no input reaches.
            mean, open_, gates = gated_moments(
                q.mean[:, 0], q.covariance[:, 0, 0], model.temperature
            )
            activation = mean, open_ + gates + inverse_gamma.mean(layer.noise_variance)[0]
            below = alive
    return _assembled(model, layers, selection)


def condition(q: GaussianRows, keep: Mask) -> GaussianRows:
    """Rows (b, W) given that the weights outside `keep` (D, K) are zero."""
    there = diagonal(q.covariance) > 0.0
    kept = np.column_stack([np.ones(len(keep), dtype=bool), keep]) & there
    changed = np.flatnonzero((there & ~kept).any(axis=1))
    mean, covariance = np.where(kept, q.mean, 0.0), q.covariance.copy()
    if changed.size:
        precision, _ = inverse_and_log_determinant(
            covariance[changed] + diagonal_matrix(1.0 * ~there[changed])
        )
        linear = (precision @ q.mean[changed, :, None])[:, :, 0]
        both = kept[changed, :, None] & kept[changed, None, :]
        rest = diagonal_matrix(1.0 * ~kept[changed])
        inverse, _ = inverse_and_log_determinant(np.where(both, precision, 0.0) + rest)
        covariance[changed] = np.where(both, inverse, 0.0)
        mean[changed] = (covariance[changed] @ linear[:, :, None])[:, :, 0]
    return GaussianRows(mean=mean, covariance=covariance)


def fold(q: GaussianRows, constants: Mask, activation: tuple[Floats, Floats]) -> GaussianRows:
    """Rows whose bias has taken in the units of the layer below that are constant."""
    center, variance = (np.where(constants, moment, 0.0) for moment in activation)
    squares = gaussian.squares(q)[:, 1:]
    map_ = np.eye(q.mean.shape[1])
    map_[0, 1:] = center
    map_[1:, 1:][constants] = 0.0
    covariance = map_ @ q.covariance @ map_.T
    covariance[:, 0, 0] += squares @ variance
    return GaussianRows(mean=q.mean @ map_.T, covariance=covariance)


def _part_of(
    layer: LayerFactors, q: GaussianRows, mask: Mask, units: Mask, below: Mask
) -> LayerFactors:
    """The factors of the units and inputs that are left, with a leading axis of 1."""
    rows, columns = np.flatnonzero(units), np.flatnonzero(np.concatenate([[True], below]))
    weights, psi = np.ix_(units, below), layer.local_shrinkage
    if isinstance(psi, GeneralizedInverseGaussian):
        # Any scale but 0 will do for weights that do not exist.
        psi = replace(psi, scale=np.where(mask, psi.scale, 1.0)[0][weights][None])
    return LayerFactors(
        weights=GaussianRows(
            mean=q.mean[None, rows[:, None], columns],
            covariance=q.covariance[None, rows[:, None, None], columns[:, None], columns],
        ),
        noise_variance=map_arrays(lambda x: x[:, units], layer.noise_variance),
        global_shrinkage=layer.global_shrinkage,
        local_shrinkage=psi,
        slab_variance=map_arrays(lambda x: x[0][weights][None], layer.slab_variance),
    )


def _assembled(
    model: BowTieModel, layers: list[LayerFactors], selection: NetworkSelection
) -> tuple[BowTieModel, Posterior]:
    """Model and posterior of the layers that are left: the output alone if nothing varies."""
    if not selection.inputs.any():
        layers = layers[-1:]
    shapes = [layer.weights.mean.shape[1:] for layer in layers]
    alive = [selection.inputs, *selection.units, np.ones(shapes[-1][0], dtype=bool)]
    first = len(alive) - 1 - len(layers)
    smaller = replace(
        model,
        architecture=Architecture(
            n_inputs=shapes[0][1] - 1,
            hidden=tuple(shape[0] for shape in shapes[:-1]),
            n_outputs=shapes[-1][0],
        ),
        local_shrinkage=model.local_shrinkage[first:],
        connections=tuple(
            selection.connections[i][np.ix_(alive[i + 1], alive[i])]
            for i in range(first, len(alive) - 1)
        ),
    )
    return smaller, Posterior(layers=tuple(layers))
