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
from bowtienet.posterior.moments import ChainMoments, last_covariance, own_squares


@dataclass(frozen=True, kw_only=True)
class HiddenStatistics:
    """Sums of one hidden layer, for each of its D units; K+1 inputs with the constant first.

    All arrays have the leading axis M of the networks.
    """

    polya_gamma_moment: Array
    """Σ E[omega] E[a~ a~'] packed (D, (K+1)(K+2)/2)."""
    gate_moment: Array
    """Σ rho E[a~ a~'] packed (D, (K+1)(K+2)/2)."""
    gate_cross: Array
    """Σ rho E[a_d a~] (D, K+1)."""
    half_gate_mean: Array
    """Σ (rho - ½) E[a~] (D, K+1)."""
    activation_square: Array
    """Σ E[a_d²] (D,); for the last hidden layer without count · diag(S_L) if rows share it."""
    activation_entropy: Array
    """Σ ½ log|S| (); zero for the last hidden layer if all rows share S_L."""
    gate_entropy: Array
    """Σ of the entropies of q(gamma) ()."""
    polya_gamma_ratio: Array
    """Σ E[log PG(omega | 1, 0) - log PG(omega | 1, A)] ()."""


@dataclass(frozen=True, kw_only=True)
class OutputStatistics:
    """Sums of the output layer with D outputs and K+1 inputs; p, k and others are of `RowTerms`."""

    input_moment: Array
    """Σ E[a~ a~'] packed ((K+1)(K+2)/2,) without count · S_L; where p differs between rows,
    Σ p E[a~ a~'] of every output (D, (K+1)(K+2)/2), complete."""
    target_cross: Array
    """Σ k E[a~] (D, K+1), where k is y of Gaussian outcomes."""
    target_square: Array | None
    """Σ p y² (D,); None without a noise variance."""
    constant: Array | None = None
    """Σ of the constants of the rows' parabolas (); None, as the next, where p is 1."""
    parameter: Array | None = None
    """Σ of what the outcome's parameters are renewed by (Q,); None for an outcome without any."""


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """All sums of a set of rows."""

    hidden: tuple[HiddenStatistics, ...]
    output: OutputStatistics
    count: Array
    """Sum of the row weights ()."""


def add(first: Statistics, second: Statistics) -> Statistics:
    """Statistics of two disjoint sets of rows together."""
    return map_arrays(operator.add, first, second)


def block_statistics(
    local: LocalFactors,
    moments: ChainMoments,
    targets: Array,
    row_weights: Array,
    *,
    has_noise: bool = True,
) -> Statistics:
    """Statistics of a block of rows with targets (n, D_out) and weights (n,), for M networks.

    Outcomes without a noise variance have no sum of squares of the targets.
    """
    if local.outcome is not None:
        return _statistics_by_row(local, moments, targets, row_weights, has_noise)
    xp = namespace(targets)
    last = len(local.activations) - 1
    column = row_weights[..., :, None]
    root = xp.sqrt(column) * moments.inputs[-1]
    input_moment = transpose(root) @ root
    if last >= 0 and moments.cross[last] is not None:
        input_moment = input_moment + bordered(_spread_of_last_layer(local, moments, row_weights))
    hidden = tuple(
        _hidden_statistics(
            local, moments, row_weights, index, last_squares=diagonal(input_moment)[..., 1:]
        )
        for index in range(last + 1)
    )
    output = OutputStatistics(
        input_moment=pack(input_moment),
        target_cross=transpose(column * targets) @ moments.inputs[-1],
        target_square=row_weights @ targets**2,
    )
    return Statistics(hidden=hidden, output=output, count=xp.sum(row_weights, axis=-1))


def _statistics_by_row(
    local: LocalFactors, moments: ChainMoments, targets: Array, row_weights: Array, has_noise: bool
) -> Statistics:
    """Statistics of rows whose outcome has a precision of its own in each of them."""
    terms, mean = local.outcome, moments.inputs[-1]
    assert terms is not None
    xp = namespace(mean)
    column = row_weights[..., :, None]
    precision = column * terms.precision
    # Weights of all sums of the last layer's covariances, which are then taken together: one for
    # each output and, last, that of the row alone.
    ones = xp.ones_like(precision[..., :1])
    spreads = _summed_covariances(local, moments, xp.concat([precision, column * ones], axis=-1))
    weighted = transpose(precision)[..., None] * mean[..., None, :, :]
    moment = transpose(weighted) @ mean[..., None, :, :]
    if spreads is not None:
        moment = moment + bordered(spreads[..., :-1, :, :])
    squares: Array = 0.0
    if spreads is not None:
        squares = _weighted(row_weights, moments.means[-1] ** 2) + diagonal(spreads[..., -1, :, :])
    hidden = tuple(
        _hidden_statistics(local, moments, row_weights, index, last_squares=squares)
        for index in range(len(local.activations))
    )
    output = OutputStatistics(
        input_moment=pack(moment),
        target_cross=transpose(column * terms.linear) @ mean,
        target_square=_weighted(row_weights, terms.linear * targets) if has_noise else None,
        constant=xp.sum(row_weights * terms.constant, axis=-1),
        parameter=_weighted(row_weights, terms.parameter) if terms.parameter.shape[-1] else None,
    )
    return Statistics(hidden=hidden, output=output, count=xp.sum(row_weights, axis=-1))


def _summed_covariances(local: LocalFactors, moments: ChainMoments, weights: Array) -> Array | None:
    """Σ_n w_nq C_L (Q, D_L, D_L) for weights (n, Q); None without hidden layers."""
    if not local.activations:
        return None
    xp, covariance = namespace(weights), local.activations[-1].covariance
    if isinstance(covariance, tuple):
        axes = covariance[0][..., None, :, :]
        sums = transpose(weights) @ covariance[1]
        return (axes * sums[..., None, :]) @ transpose(axes)
    covariance = last_covariance(local.activations, moments)
    *leading, width, _ = covariance.shape
    if covariance.shape[-3] == 1:
        return xp.sum(weights, axis=-2)[..., :, None, None] * covariance
    sums = transpose(weights) @ xp.reshape(covariance, (*leading, width * width))
    return xp.reshape(sums, (*sums.shape[:-1], width, width))


def _hidden_statistics(
    local: LocalFactors,
    moments: ChainMoments,
    row_weights: Array,
    index: int,
    *,
    last_squares: Array,
) -> HiddenStatistics:
    """Sums of one layer; those of the last layer's squares are known from the output's moments."""
    xp = namespace(row_weights)
    column = row_weights[..., :, None]
    mean, second = moments.inputs[index], moments.second[index]
    own = moments.means[index]
    size, is_last = mean.shape[-1], index == len(local.activations) - 1
    polya_gamma_mean, log_ratio = polya_gamma.mean_and_log_ratio(local.tilt[index])
    weighted_gates = column * local.gate_probability[index]
    gate_moment = transpose(weighted_gates) @ second
    if is_last:
        squares = last_squares
    else:
        squares = _weighted(row_weights, own_squares(local.activations, moments, index))
    log_determinant = local.activations[index].log_determinant
    entropy = 0.0 * row_weights if log_determinant is None else 0.5 * log_determinant * row_weights
    return HiddenStatistics(
        polya_gamma_moment=transpose(column * polya_gamma_mean) @ second,
        gate_moment=gate_moment,
        gate_cross=_gate_cross(weighted_gates, own, mean, moments.cross[index]),
        # The constant comes first: the first row of a second moment is the mean.
        half_gate_mean=gate_moment[..., :size] - 0.5 * _weighted(row_weights, mean)[..., None, :],
        activation_square=squares,
        activation_entropy=xp.sum(entropy, axis=-1),
        gate_entropy=xp.sum(row_weights * local.gate_entropy[index], axis=-1),
        polya_gamma_ratio=xp.sum(row_weights * log_ratio, axis=-1),
    )


def _gate_cross(weighted_gates: Array, own: Array, mean: Array, covariance: Array | None) -> Array:
    """Σ rho (E[a_d] mu~ + (0, Cov(a_d, a_{l-1}))) (D, K+1)."""
    cross = transpose(weighted_gates * own) @ mean
    if covariance is None:
        return cross
    xp = namespace(cross)
    axes = tuple(range(covariance.ndim - 3))
    by_unit = xp.permute_dims(covariance, (*axes, *(len(axes) + i for i in (1, 0, 2))))
    spread = (transpose(weighted_gates)[..., None, :] @ by_unit)[..., 0, :]
    return cross + xp.concat([xp.zeros_like(spread[..., :1]), spread], axis=-1)


def _spread_of_last_layer(local: LocalFactors, moments: ChainMoments, row_weights: Array) -> Array:
    """Σ M_L C_{L-1} M_L' (D_L, D_L)."""
    products = moments.cross[-1] @ transpose(local.activations[-1].gain)
    *leading, width, _ = products.shape
    flat = namespace(products).reshape(products, (*leading, width * width))
    sums = _weighted(row_weights, flat)
    return namespace(sums).reshape(sums, (*sums.shape[:-1], width, width))


def _weighted(row_weights: Array, values: Array) -> Array:
    """Σ w x (..., D) of rows x (..., n, D)."""
    return (row_weights[..., None, :] @ values)[..., 0, :]
