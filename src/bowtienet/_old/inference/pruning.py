"""Section 3.4: a physically smaller network from the weights that were selected.

Weights that were not selected are zero from now on. The others of their unit then have the
conditional distribution given those zeros, which is what their next update with the same statistics
would be:

    B_new = ((B^{-1})_kk)^{-1},   m_new = B_new (B^{-1} m)_k.

(The paper keeps m and only the diagonal of B; the variances of preactivations are then out by
orders of magnitude, docs/theory/errata, 13.) A hidden unit that no input reaches is a constant: its
activation a, with mean mu and variance e + h (what the weights leave open, and chance), moves into
the bias of the next layer (the paper forgets it, docs/theory/errata, 12),

    b <- b + Σ W a:   (m, B) <- (A m, A B A') with A = [1 mu'; 0 I],   Var[b] += Σ E[W²] e,

and Σ E[W²] h goes to the noise of an output; in a hidden layer and in an output without noise,
which have no place for it, to the bias too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import (
    diagonal,
    diagonal_matrix,
    inverse_and_log_determinant,
    to_numpy,
)
from bowtienet._old.distributions import gaussian, inverse_gamma
from bowtienet._old.distributions.gated import gated_moments
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.inference.global_step import (
    prior_precision,
    update_global_shrinkage,
    update_shared_covariance,
)
from bowtienet._old.model.architecture import Architecture
from bowtienet._old.model.priors import BowTieModel, RemovedWeights
from bowtienet._old.model.shrinkage import Shrinkage
from bowtienet._old.posterior.factors import GlobalFactors, LayerFactors, check_factors
from bowtienet._old.posterior.selection import Mask, Selection, existing, select

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """What is left of a network, in terms of the one it was."""

    architecture: Architecture
    """The network before."""
    inputs: Indices
    """Places of the inputs that are left."""
    units: tuple[Indices, ...]
    """Places of the hidden units that are left, layer by layer."""


def prune(
    model: BowTieModel, factors: GlobalFactors, *, false_sign_rate: float = 0.01
) -> tuple[BowTieModel, GlobalFactors, Pruning]:
    """A smaller network that keeps the weights whose sign is sure enough.

    Parameters
    ----------
    model : BowTieModel
        The fitted model.
    factors : GlobalFactors
        Its fitted factors.
    false_sign_rate : float in (0, 1)
        Share of kept weights that have the wrong sign, by what q says of them: it is not verified,
        and holds at best where a fit has converged. From ½ on nothing is dropped.

    Returns
    -------
    model, factors : BowTieModel, GlobalFactors
        The smaller network. Its inputs are the columns ``pruning.inputs`` of the old ones; it may
        have none, and is a constant then.
    pruning : Pruning
        What is left of the old network.
    """
    check_factors(model.architecture, factors)
    selection = select(model, factors, false_sign_rate)
    smaller = shrink(model, factors, selection)
    return *smaller, build_pruning(model.architecture, selection)


def build_pruning(architecture: Architecture, selection: Selection) -> Pruning:
    """What a selection leaves of an architecture."""
    return Pruning(
        architecture=architecture,
        inputs=np.flatnonzero(selection.inputs),
        units=tuple(np.flatnonzero(unit) for unit in selection.units),
    )


def check_pruning(model: BowTieModel, pruning: Pruning | None) -> None:
    """Raise a clear error if a network is not what its pruning says is left of another."""
    shapes = [(above, below) for below, above in pairwise(model.architecture.widths)]
    if model.connections is not None and (
        [np.shape(m) for m in model.connections] != shapes
        or any(np.asarray(m).dtype != bool for m in model.connections)
    ):
        raise ValueError("the connections are those of another network")
    removed = model.removed
    if removed is not None and (
        len(removed) != len(shapes) or not all(r.count >= 0 and r.held > 0.0 for r in removed)
    ):
        raise ValueError("the weights that were removed are those of another network")
    if pruning is None:
        return
    widths = (pruning.inputs.size, *(units.size for units in pruning.units))
    before = (pruning.architecture.n_inputs, *pruning.architecture.hidden)
    # A constant has lost its hidden layers, and with them what led to them.
    left = model.architecture.widths[:-1]
    if not (widths == left or (left == (0,) and not any(widths))) or len(widths) != len(before):
        raise ValueError("what is left after pruning is not what the network has")
    for places, width in zip((pruning.inputs, *pruning.units), before, strict=True):
        if places.ndim != 1 or not np.issubdtype(places.dtype, np.integer):
            raise ValueError("pruning names units by other than whole numbers")
        if len(set(places.tolist())) < len(places) or not all(0 <= p < width for p in places):
            raise ValueError("pruning names units that the network never had")


def restore_shape(values: Sequence[Floats], pruning: Pruning | None) -> list[Floats]:
    """Weights (..., D, K+1) of every layer at their places in the network before pruning.

    What is gone is zero. A constant that moved into a bias stays there.
    """
    if pruning is None:
        return list(values)
    widths = pruning.architecture.widths
    outputs = np.arange(widths[-1])
    places = [pruning.inputs, *pruning.units, outputs]
    filled = []
    for index, (below, above) in enumerate(pairwise(widths)):
        full = np.zeros((*values[-1].shape[:-2], above, below + 1))
        from_end = index - (len(widths) - 1)
        if -from_end <= len(values):
            columns = np.concatenate([[0], 1 + places[index]]).astype(np.intp)
            full[..., places[index + 1][:, None], columns] = values[from_end]
        filled.append(full)
    return filled


def shrink(
    model: BowTieModel, factors: GlobalFactors, selection: Selection
) -> tuple[BowTieModel, GlobalFactors]:
    """The selected part of a network, in arrays of its own size."""
    layers: list[LayerFactors] = []
    below, constants, activation = selection.inputs, np.zeros(len(selection.inputs), bool), None
    last = len(factors.layers) - 1
    for index, layer in enumerate(factors.layers):
        mask = selection.connections[index]
        alive = np.ones(len(mask), bool) if index == last else selection.units[index]
        # Units that go for good need no new weights.
        gone = np.zeros(len(mask), bool) if index == last else selection.varying[index] & ~alive
        weights, lost = condition(layer.weights, mask | constants | gone[:, None])
        has_noise = index < last or model.outcome.has_noise
        noise = _with_lost_fit(model, layer, weights, lost) if has_noise else layer.noise_variance
        if activation is not None:
            to_noise = index == last and has_noise
            weights, noise = _fold(weights, noise, constants, activation, to_noise)
        layers.append(
            LayerFactors(
                weights=_taken(weights, alive, below),
                noise_variance=_taken_noise(noise, alive),
                global_shrinkage=layer.global_shrinkage,
                local_shrinkage=_taken_shrinkage(layer.local_shrinkage, mask, alive, below),
                slab_variance=_taken_slab(layer.slab_variance, alive, below),
            )
        )
        if index < last:
            constants = ~selection.varying[index]
            activation = _constant_activation(weights, noise, model.gate_temperature)
            below = alive
    return _assemble(model, layers, selection, _removed(model, factors, selection))


def condition(weights: GaussianRows, keep: Mask) -> tuple[GaussianRows, Floats]:
    """Rows (b, W) given that the weights outside `keep` (D, K) are zero.

    With them comes (m - m_new)'B^{-1}(m - m_new) (D,), how far the mean had to move.
    """
    mean, covariance = _host(weights)
    there = diagonal(covariance) > 0.0
    kept = np.column_stack([np.ones(len(keep), dtype=bool), keep]) & there
    changed = np.flatnonzero((there & ~kept).any(axis=1))
    result_mean, result_covariance = np.where(kept, mean, 0.0), covariance.copy()
    lost = np.zeros(len(mean))
    if changed.size:
        precision, _ = inverse_and_log_determinant(
            covariance[changed] + diagonal_matrix(1.0 * ~there[changed])
        )
        linear = (precision @ mean[changed, :, None])[:, :, 0]
        both = kept[changed, :, None] & kept[changed, None, :]
        rest = diagonal_matrix(1.0 * ~kept[changed])
        found, _ = inverse_and_log_determinant(np.where(both, precision, 0.0) + rest)
        found = np.where(both, found, 0.0)
        result_covariance[changed] = found
        result_mean[changed] = (found @ linear[:, :, None])[:, :, 0]
        moved = (mean - result_mean)[changed]
        lost[changed] = np.einsum("di,dij,dj->d", moved, precision, moved)
    return GaussianRows(mean=result_mean, covariance=result_covariance), lost


def _with_lost_fit(
    model: BowTieModel, layer: LayerFactors, weights: GaussianRows, lost: Floats
) -> InverseGamma:
    """Noise that has taken in what the weights that go had explained.

    At their update the means minimise E[1/eta²] Σ E[(a - gamma z)²] + m'D^{-1} m. Moving them costs
    `lost`, of which the prior gives back its part; the rest is residual, and half of it scale.
    """
    noise = layer.noise_variance
    before, after = to_numpy(layer.weights.mean) ** 2, weights.mean**2
    relieved = np.sum(to_numpy(prior_precision(model, layer)) * (before - after), axis=1)
    residual = np.maximum(lost + relieved, 0.0) / to_numpy(inverse_gamma.mean_inverse(noise))
    return replace(noise, scale=to_numpy(noise.scale) + 0.5 * np.where(lost > 0.0, residual, 0.0))


def _host(weights: GaussianRows) -> tuple[Floats, Floats]:
    return to_numpy(weights.mean).astype(float), to_numpy(weights.covariance).astype(float)


def _constant_activation(
    weights: GaussianRows, noise: InverseGamma, gate_temperature: float
) -> tuple[Floats, Floats, Floats]:
    """Mean, variance that the weights leave open, and variance by chance, (D,), of constants."""
    mean, open_, gates = gated_moments(
        weights.mean[:, 0].copy(), weights.covariance[:, 0, 0].copy(), gate_temperature
    )
    return mean, open_, gates + to_numpy(inverse_gamma.mean(noise))


def _fold(
    weights: GaussianRows,
    noise: InverseGamma,
    constants: Mask,
    activation: tuple[Floats, Floats, Floats],
    to_noise: bool,
) -> tuple[GaussianRows, InverseGamma]:
    """Rows whose bias has taken in the units of the layer below that are constant."""
    center, open_, chance = (np.where(constants, part, 0.0) for part in activation)
    squares = gaussian.squares(weights)[:, 1:]
    map_ = np.eye(weights.mean.shape[1])
    map_[0, 1:] = center
    map_[1:, 1:][constants] = 0.0
    mean = weights.mean @ map_.T
    covariance = map_ @ weights.covariance @ map_.T
    extra = squares @ (open_ if to_noise else open_ + chance)
    covariance[:, 0, 0] += extra
    if to_noise:
        # The mean of an inverse gamma, scale / (concentration - 1), grows by the chance.
        concentration = to_numpy(noise.concentration)
        grown = to_numpy(noise.scale) + np.maximum(concentration - 1.0, 0.0) * (squares @ chance)
        noise = replace(noise, scale=grown)
    return GaussianRows(mean=mean, covariance=covariance), noise


def _taken(weights: GaussianRows, units: Mask, below: Mask) -> GaussianRows:
    rows, columns = np.flatnonzero(units), np.flatnonzero(np.concatenate([[True], below]))
    return GaussianRows(
        mean=weights.mean[np.ix_(rows, columns)],
        covariance=weights.covariance[np.ix_(rows, columns, columns)],
    )


def _taken_noise(noise: InverseGamma, units: Mask) -> InverseGamma:
    full = np.ones(len(units))
    return InverseGamma(
        concentration=(to_numpy(noise.concentration) * full)[units],
        scale=(to_numpy(noise.scale) * full)[units],
    )


def _taken_shrinkage(scales: Shrinkage, mask: Mask, units: Mask, below: Mask) -> Shrinkage:
    """psi of the units that are left, with 1 as the scale of weights that are not."""
    if not isinstance(scales, GeneralizedInverseGaussian):
        return scales
    scale = np.where(mask, to_numpy(scales.scale), 1.0)[np.ix_(units, below)]
    return replace(scales, scale=scale)


def _taken_slab(slab: InverseGamma | None, units: Mask, below: Mask) -> InverseGamma | None:
    if slab is None:
        return None
    places = np.ix_(units, below)
    return InverseGamma(
        concentration=to_numpy(slab.concentration)[places], scale=to_numpy(slab.scale)[places]
    )


def _assemble(
    model: BowTieModel,
    layers: list[LayerFactors],
    selection: Selection,
    removed: tuple[RemovedWeights, ...],
) -> tuple[BowTieModel, GlobalFactors]:
    """Model and factors of the layers that are left: the output alone if nothing varies."""
    prior, varies = model.prior, bool(selection.inputs.any())
    if not varies:
        layers, prior = layers[-1:], replace(prior, local_shrinkage=prior.local_shrinkage[-1:])
    shapes = [layer.weights.mean.shape for layer in layers]
    alive = [selection.inputs, *selection.units, np.ones(shapes[-1][0], dtype=bool)]
    connections = tuple(
        selection.connections[i][np.ix_(alive[i + 1], alive[i])]
        for i in range(len(alive) - 1 - len(layers), len(alive) - 1)
    )
    smaller = BowTieModel(
        architecture=Architecture(
            n_inputs=shapes[0][1] - 1,
            hidden=tuple(shape[0] for shape in shapes[:-1]),
            n_outputs=shapes[-1][0],
        ),
        prior=prior,
        gate_temperature=model.gate_temperature,
        connections=connections,
        removed=removed if varies else None,
        outcome=model.outcome,
    )
    factors = GlobalFactors(layers=tuple(layers), shared_covariance=None)
    factors = update_global_shrinkage(smaller, factors)
    return smaller, update_shared_covariance(factors, by_row=smaller.outcome.by_row)


def _removed(
    model: BowTieModel, factors: GlobalFactors, selection: Selection
) -> tuple[RemovedWeights, ...]:
    """The weights that go, and went before, as evidence about the global scales.

    At rest E[omega] = ¼ and rho = ½, so that gates and hidden noise hold the weights of
    standardised inputs to 1 / held = N (1 / (4 T²) + E[1/eta²] / 2). Weights of the output are not
    held at all, and those that lead from a unit that goes see nothing: they say nothing of tau.
    """
    # The noise of every layer has seen the rows, but for an output without noise.
    seen = len(factors.layers) - 1 if model.outcome.has_noise else 0
    noise, prior = factors.layers[seen].noise_variance, model.prior.noise(seen)
    doubled = 2.0 * (to_numpy(noise.concentration) - prior.concentration)
    n_rows = max(float(np.max(doubled)), 1.0)
    found = []
    sources = [np.ones(len(selection.inputs), dtype=bool), *selection.units]
    for index, there in enumerate(existing(model, factors)):
        gone = there & ~selection.connections[index] & sources[index]
        count = model.removed_weights(index).count + int(gone.sum())
        is_output = index == len(factors.layers) - 1
        precision = np.mean(inverse_gamma.mean_inverse(factors.layers[index].noise_variance))
        held = 1.0 / (n_rows * (0.25 / model.gate_temperature**2 + 0.5 * float(precision)))
        found.append(RemovedWeights(count=0 if is_output else count, held=held))
    return tuple(found)
