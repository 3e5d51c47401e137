"""Section 3.2: sums over observations from which every global factor is updated.

Statistics of disjoint sets of rows are added; full-batch, stochastic, out-of-core and distributed
fits differ only in who adds them. A row of weight w counts w times.

The covariance S_L that all rows share is left out of the sums (it would enter as count · S_L):
it is a parameter of its own that the global step updates with the others.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

from bowtienet._arrays import Array, bordered, diagonal, map_arrays, namespace, pack, transpose
from bowtienet.distributions import polya_gamma
from bowtienet.posterior.factors import LocalFactors
from bowtienet.posterior.moments import ChainMoments, own_squares


@dataclass(frozen=True, kw_only=True)
class HiddenStatistics:
    """Sums of one hidden layer, for each of its D units; K+1 inputs with the constant first."""

    polya_gamma_moment: Array
    """Σ E[omega] E[a~ a~'] packed (D, (K+1)(K+2)/2)."""
    gate_moment: Array
    """Σ rho E[a~ a~'] packed (D, (K+1)(K+2)/2)."""
    gate_cross: Array
    """Σ rho E[a_d a~] (D, K+1)."""
    half_gate_mean: Array
    """Σ (rho - ½) E[a~] (D, K+1)."""
    activation_square: Array
    """Σ E[a_d²] (D,); for the last hidden layer without count · diag(S_L)."""
    activation_entropy: Array
    """Σ ½ log|S| (); zero for the last hidden layer."""
    gate_entropy: Array
    """Σ of the entropies of q(gamma) (); like the next NaN where nobody asked for the bound."""
    polya_gamma_ratio: Array
    """Σ E[log PG(omega | 1, 0) - log PG(omega | 1, A)] ()."""


@dataclass(frozen=True, kw_only=True)
class OutputStatistics:
    """Sums of the output layer with D outputs and K+1 inputs."""

    input_moment: Array
    """Σ E[a~ a~'] packed ((K+1)(K+2)/2,) without count · S_L."""
    target_cross: Array
    """Σ y E[a~] (D, K+1)."""
    target_square: Array
    """Σ y² (D,)."""


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
    local: LocalFactors, moments: ChainMoments, targets: Array, row_weights: Array
) -> Statistics:
    """Statistics of a block of rows with targets (n, D_out) and weights (n,).

    Several networks that see the same rows have weights (M, n) and moments with that leading axis.
    """
    xp = namespace(targets)
    last = len(local.activations) - 1
    column = row_weights[..., :, None]
    root = xp.sqrt(column) * moments.inputs[-1]
    input_moment = transpose(root) @ root
    if last >= 0 and moments.cross[last] is not None:
        input_moment = input_moment + bordered(_spread_of_last_layer(local, moments, row_weights))
    hidden = tuple(
        _hidden_statistics(local, moments, row_weights, index, input_moment)
        for index in range(last + 1)
    )
    output = OutputStatistics(
        input_moment=pack(input_moment),
        target_cross=transpose(column * targets) @ moments.inputs[-1],
        target_square=row_weights @ targets**2,
    )
    return Statistics(hidden=hidden, output=output, count=xp.sum(row_weights, axis=-1))


def _hidden_statistics(
    local: LocalFactors,
    moments: ChainMoments,
    row_weights: Array,
    index: int,
    output_moment: Array,
) -> HiddenStatistics:
    """Sums of one layer; those of the last layer's squares are known from the output's moments."""
    xp = namespace(row_weights)
    column = row_weights[..., :, None]
    mean, second = moments.inputs[index], moments.second[index]
    own = moments.means[index]
    size, is_last = mean.shape[-1], index == len(local.activations) - 1
    if local.gate_entropy is None:
        polya_gamma_mean = polya_gamma.mean(local.tilt[index])
        gate_entropy = log_ratio = xp.full_like(row_weights, float("nan"))
    else:
        gate_entropy = local.gate_entropy[index]
        polya_gamma_mean, log_ratio = polya_gamma.mean_and_log_ratio(local.tilt[index])
    weighted_gates = column * local.gate_probability[index]
    gate_moment = transpose(weighted_gates) @ second
    if is_last:
        squares = diagonal(output_moment)[..., 1:]
    else:
        squares = _weighted(row_weights, own_squares(local.activations, moments, index))
    entropy = 0.5 * local.activations[index].log_determinant * row_weights
    return HiddenStatistics(
        polya_gamma_moment=transpose(column * polya_gamma_mean) @ second,
        gate_moment=gate_moment,
        gate_cross=_gate_cross(weighted_gates, own, mean, moments.cross[index]),
        # The constant comes first: the first row of a second moment is the mean.
        half_gate_mean=gate_moment[..., :size] - 0.5 * _weighted(row_weights, mean)[..., None, :],
        activation_square=squares,
        activation_entropy=xp.sum(xp.zeros_like(row_weights) if is_last else entropy, axis=-1),
        gate_entropy=xp.sum(row_weights * gate_entropy, axis=-1),
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
    return namespace(flat).reshape(
        _weighted(row_weights, flat), (*row_weights.shape[:-1], width, width)
    )


def _weighted(row_weights: Array, values: Array) -> Array:
    """Σ w x (..., D) of rows x (..., n, D)."""
    return (row_weights[..., None, :] @ values)[..., 0, :]
