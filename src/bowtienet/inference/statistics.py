"""Section 3.2: sums over observations from which every global factor is updated.

Statistics of disjoint sets of rows are added; full-batch, stochastic, out-of-core and distributed
fits differ only in who adds them. A row of weight w counts w times.

The covariance S_L that all rows share is left out of the sums (it would enter as count · S_L):
it is a parameter of its own that the global step updates with the others. Where the precision of
the outcome differs between rows, so does S_L, and it is in all sums.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

from bowtienet._arrays import Array, bordered, diagonal, map_arrays, namespace, pack, transpose
from bowtienet.distributions import polya_gamma
from bowtienet.posterior.factors import LocalFactors
from bowtienet.posterior.moments import ChainMoments, last_covariance


@dataclass(frozen=True, kw_only=True)
class LayerStatistics:
    """Sums of one layer, for each of its D units; K+1 inputs with the constant first.

    In a hidden layer p is rho and k is rho a, in the output those of `RowTerms`: 1 and y of
    Gaussian targets. All arrays but those of the targets alone have the leading axis M.
    """

    moment: Array
    """Σ p E[a~ a~'] packed (D, (K+1)(K+2)/2); (1, ...) without count · S_L where rows share it."""
    cross: Array
    """Σ E[k a~] (D, K+1)."""
    square: Array
    """Σ E[a_d²] (D,), for the last hidden layer without count · diag(S_L) if rows share it; Σ k y
    of the output."""
    polya_gamma_moment: Array | None = None
    """Σ E[omega] E[a~ a~'] packed (D, (K+1)(K+2)/2); None, as the next, for the output."""
    half_gate_mean: Array | None = None
    """Σ (rho - ½) E[a~] (D, K+1)."""
    activation_entropy: Array | None = None
    """Σ ½ log|S| (); zero for the last hidden layer if all rows share S_L."""
    gate_entropy: Array | None = None
    """Σ of the entropies of q(gamma) ()."""
    polya_gamma_ratio: Array | None = None
    """Σ E[log PG(omega | 1, 0) - log PG(omega | 1, A)] ()."""


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """All sums of a set of rows."""

    layers: tuple[LayerStatistics, ...]
    count: Array
    """Sum of the row weights ()."""
    constant: Array | None
    """Σ of the constants of the rows' parabolas (); None, as the next, where p is 1."""
    parameter: Array | None
    """Σ of what the outcome's parameters are renewed by (Q,)."""


def add(first: Statistics, second: Statistics) -> Statistics:
    """Statistics of two disjoint sets of rows together."""
    return map_arrays(operator.add, first, second)


def block_statistics(
    local: LocalFactors, moments: ChainMoments, targets: Array, row_weights: Array
) -> Statistics:
    """Statistics of a block of rows with targets (n, C) and weights (n,), for M networks."""
    terms, mean = local.outcome, moments.inputs[-1]
    column = row_weights[:, None]
    if terms is None:
        linear, constant, parameter = targets, None, None
        moment, squares = _shared_moment(local, moments, column)
    else:
        linear, parameter = terms.linear, row_weights @ terms.parameter
        constant = namespace(mean).sum(row_weights * terms.constant, axis=-1)
        moment, squares = _moment_by_row(local, moments, terms.precision, column)
    hidden = [
        _hidden_statistics(local, moments, row_weights, index, last_squares=squares)
        for index in range(len(local.activations))
    ]
    output = LayerStatistics(
        moment=pack(moment),
        cross=transpose(column * linear) @ mean,
        square=row_weights @ (linear * targets),
    )
    return Statistics(
        layers=(*hidden, output),
        count=namespace(row_weights).sum(row_weights),
        constant=constant,
        parameter=parameter,
    )


def _shared_moment(
    local: LocalFactors, moments: ChainMoments, column: Array
) -> tuple[Array, Array]:
    """Σ E[a~_L a~_L'] (1, K+1, K+1) and Σ E[a_L²] (D_L,), both without count · S_L."""
    root = namespace(column).sqrt(column) * moments.inputs[-1]
    moment = transpose(root) @ root
    if local.activations and moments.cross[-1] is not None:
        products = moments.cross[-1] @ transpose(local.activations[-1].gain)
        moment = moment + bordered(_summed(column, products)[..., 0, :, :])
    return moment[..., None, :, :], diagonal(moment)[..., 1:]


def _moment_by_row(
    local: LocalFactors, moments: ChainMoments, precision: Array, column: Array
) -> tuple[Array, Array]:
    """Σ p E[a~_L a~_L'] (D_out, K+1, K+1) and Σ E[a_L²] (D_L,), both complete."""
    mean = moments.inputs[-1]
    xp, precision = namespace(mean), column * precision
    moment = transpose(transpose(precision)[..., None] * mean[..., None, :, :])
    moment = moment @ mean[..., None, :, :]
    if not local.activations:
        return moment, 0.0
    # All sums of the last layer's covariances are taken together: one for each output and, last,
    # that of the row alone.
    weights = xp.concat([precision, column * xp.ones_like(precision[..., :1])], axis=-1)
    covariance = local.activations[-1].covariance
    if isinstance(covariance, tuple):
        axes = covariance[0][..., None, :, :]
        sums = transpose(weights) @ covariance[1]
        spreads = (axes * sums[..., None, :]) @ transpose(axes)
    else:
        spreads = _summed(weights, last_covariance(local.activations, moments))
    squares = column[:, 0] @ moments.means[-1] ** 2 + diagonal(spreads[..., -1, :, :])
    return moment + bordered(spreads[..., :-1, :, :]), squares


def _summed(weights: Array, matrices: Array) -> Array:
    """Σ_n w_nq X_n (Q, D, D) of matrices (n, D, D) with weights (n, Q)."""
    *leading, width, _ = matrices.shape
    xp = namespace(matrices)
    sums = transpose(weights) @ xp.reshape(matrices, (*leading, width * width))
    return xp.reshape(sums, (*sums.shape[:-1], width, width))


def _hidden_statistics(
    local: LocalFactors,
    moments: ChainMoments,
    row_weights: Array,
    index: int,
    *,
    last_squares: Array,
) -> LayerStatistics:
    """Sums of one layer; those of the last layer's squares are known from the output's moments."""
    xp = namespace(row_weights)
    column = row_weights[:, None]
    mean, second = moments.inputs[index], moments.second[index]
    size, is_last = mean.shape[-1], index == len(local.activations) - 1
    polya_gamma_mean, log_ratio = polya_gamma.mean_and_log_ratio(local.tilt[index])
    weighted_gates = column * local.gate_probability[index]
    moment = transpose(weighted_gates) @ second
    cross, covariance = (
        transpose(weighted_gates * moments.means[index]) @ mean,
        moments.cross[index],
    )
    if covariance is not None:
        # E[a_d a~] = E[a_d] mu~ + (0, Cov(a_d, a_{l-1}))
        by_unit = xp.moveaxis(covariance, -3, -2)
        spread = (transpose(weighted_gates)[..., None, :] @ by_unit)[..., 0, :]
        cross = cross + xp.concat([xp.zeros_like(spread[..., :1]), spread], axis=-1)
    if is_last:
        squares = last_squares
    else:
        squares = row_weights @ (moments.means[index] ** 2 + diagonal(moments.own[index]))
    log_determinant = local.activations[index].log_determinant
    entropy = 0.0 * row_weights if log_determinant is None else 0.5 * log_determinant * row_weights
    return LayerStatistics(
        moment=moment,
        cross=cross,
        square=squares,
        polya_gamma_moment=transpose(column * polya_gamma_mean) @ second,
        # The constant comes first: the first row of a second moment is the mean.
        half_gate_mean=moment[..., :size] - 0.5 * (row_weights @ mean)[..., None, :],
        activation_entropy=xp.sum(entropy, axis=-1),
        gate_entropy=xp.sum(row_weights * local.gate_entropy[index], axis=-1),
        polya_gamma_ratio=xp.sum(row_weights * log_ratio, axis=-1),
    )
