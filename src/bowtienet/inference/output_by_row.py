"""Outcomes whose precision differs between rows, as the last hidden layer sees them.

A row of such an outcome is a parabola c (k z - ½ p z²) in every output z (`model/outcomes`), so the
covariance of the last hidden layer's activations differs between rows too.
"""

from __future__ import annotations

from collections.abc import Sequence

from bowtienet._arrays import (
    Array,
    diagonal_matrix,
    eigenvalues_and_vectors,
    inverse_and_log_determinant,
    namespace,
    transpose,
    with_ones,
)
from bowtienet.distributions import gaussian, inverse_gamma
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.posterior.factors import Covariances, LayerFactors


def squares_by_row(layers: Sequence[LayerFactors]) -> Array | tuple[Array, Array]:
    """E[W'W] of the outputs, with the noise of the last hidden layer.

    For several outputs diag(E[1/eta²_L]), then E[W_d'W_d] of each, (D_out + 1, D²). With one output
    no row needs an inverse: where H = diag(E[1/eta²_L])^{-½} and H E[W'W] H = U diag(l) U',
    S_n = V diag(1 / (1 + c p_n l)) V' with the axes V = H U (D, D). Those and l (D,) are returned.
    """
    noise_precision = inverse_gamma.mean_inverse(layers[-2].noise_variance)
    own = gaussian.second_moment(layers[-1].weights)[..., 1:, 1:]
    xp = namespace(own)
    if own.shape[-3] > 1:
        squares = xp.concat([diagonal_matrix(noise_precision)[..., None, :, :], own], axis=-3)
        return xp.reshape(squares, (*squares.shape[:-2], own.shape[-1] ** 2))
    scale = 1.0 / xp.sqrt(noise_precision)
    scaled = own[..., 0, :, :] * scale[..., :, None] * scale[..., None, :]
    values, vectors = eigenvalues_and_vectors(scaled)
    # Those that are zero up to rounding may come out a little below zero.
    return scale[..., :, None] * vectors, xp.maximum(values, xp.zeros_like(values))


def message_by_row(
    layers: Sequence[LayerFactors],
    squares: Array | tuple[Array, Array],
    precision: Array,
    linear: Array,
) -> tuple[Covariances, Array, Array]:
    """S_L of every row, log|S_L| (n,) and h_L (n, D), from c p and c k (n, D_out).

        S_n^{-1} = diag(E[1/eta²_L]) + Σ_d c_d p_nd E[W_d'W_d],
        h_n = Σ_d c_d (k_nd E[W_d] - p_nd E[W_d b_d])

    Common axes are multiplied out if there is a layer below, which needs the matrices.
    """
    output = layers[-1].weights
    message = linear @ output.mean[..., 1:] - precision @ mean_with_bias(output)
    xp = namespace(message)
    if not isinstance(squares, tuple):
        size = message.shape[-1]
        flat = with_ones(precision) @ squares
        square = xp.reshape(flat, (*flat.shape[:-1], size, size))
        covariance, minus = inverse_and_log_determinant(square)
        return covariance, -minus, message
    axes, curvature = squares
    # E[1/eta²]^{-1} along the axes, less what the targets say.
    shrunk = 1.0 + precision * curvature[..., None, :]
    noise = xp.log(inverse_gamma.mean_inverse(layers[-2].noise_variance))
    log_determinant = -xp.sum(noise, axis=-1)[..., None] - xp.sum(xp.log(shrunk), axis=-1)
    variances = 1.0 / shrunk
    if len(layers) == 2:
        return (axes, variances), log_determinant, message
    axes = axes[..., None, :, :]
    return (axes * variances[..., None, :]) @ transpose(axes), log_determinant, message


def mean_with_bias(weights: GaussianRows) -> Array:
    """E[W b] (D_out, D)."""
    return weights.mean[..., 1:] * weights.mean[..., :1] + weights.covariance[..., 0, 1:]
