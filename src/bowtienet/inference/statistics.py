"""Section 3.2: sums over observations from which every global factor is updated.

Statistics of disjoint sets of rows are added; full-batch, stochastic, out-of-core and distributed
fits differ only in who adds them. A row of weight w counts w times.

The covariance S_L that all rows share is left out of the sums (it would enter as count · S_L):
it is a parameter of its own that the global step updates with the others.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

from bowtienet._arrays import Array, bordered, map_arrays, namespace, pack, transpose
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
    """Σ of the entropies of q(gamma) ()."""
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
    """Statistics of a block of rows with targets (n, D_out) and weights (n,)."""
    xp = namespace(targets)
    last = len(local.activations) - 1
    hidden = tuple(
        _hidden_statistics(local, moments, row_weights, index, index == last)
        for index in range(last + 1)
    )
    column = row_weights[:, None]
    root = xp.sqrt(column) * moments.inputs[-1]
    input_moment = root.T @ root
    if last >= 0 and moments.cross[last] is not None:
        input_moment = input_moment + _spread_of_last_layer(local, moments, row_weights)
    output = OutputStatistics(
        input_moment=pack(input_moment),
        target_cross=(column * targets).T @ moments.inputs[-1],
        target_square=row_weights @ targets**2,
    )
    return Statistics(hidden=hidden, output=output, count=xp.sum(row_weights))


def _hidden_statistics(
    local: LocalFactors, moments: ChainMoments, row_weights: Array, index: int, is_last: bool
) -> HiddenStatistics:
    xp = namespace(row_weights)
    column = row_weights[:, None]
    polya_gamma_mean, log_ratio = polya_gamma.mean_and_log_ratio(local.tilt[index])
    mean, second = moments.inputs[index], moments.second[index]
    weighted_gates = column * local.gate_probability[index]
    cross = (weighted_gates * moments.inputs[index + 1][:, 1:]).T @ mean
    covariance = moments.cross[index]
    if covariance is not None:
        by_unit = xp.permute_dims(covariance, (1, 0, 2))
        spread = (weighted_gates.T[:, None, :] @ by_unit)[:, 0, :]
        cross = cross + xp.concat([xp.zeros_like(spread[:, :1]), spread], axis=-1)
    log_determinant = local.activations[index].log_determinant
    entropy = xp.zeros_like(row_weights) if is_last else 0.5 * log_determinant * row_weights
    return HiddenStatistics(
        polya_gamma_moment=(column * polya_gamma_mean).T @ second,
        gate_moment=weighted_gates.T @ second,
        gate_cross=cross,
        half_gate_mean=weighted_gates.T @ mean - 0.5 * (row_weights @ mean),
        activation_square=row_weights @ own_squares(local.activations, moments, index),
        activation_entropy=xp.sum(entropy),
        gate_entropy=xp.sum(row_weights * local.gate_entropy[index]),
        polya_gamma_ratio=xp.sum(row_weights * log_ratio),
    )


def _spread_of_last_layer(local: LocalFactors, moments: ChainMoments, row_weights: Array) -> Array:
    """Σ blockdiag(0, M_L C_{L-1} M_L') (D_L + 1, D_L + 1)."""
    xp = namespace(row_weights)
    products = moments.cross[-1] @ transpose(local.activations[-1].gain)
    n, width, _ = products.shape
    spread = xp.reshape(row_weights @ xp.reshape(products, (n, width * width)), (width, width))
    return bordered(spread)
