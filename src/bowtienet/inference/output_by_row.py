"""Outcomes whose precision differs between rows, as the last hidden layer sees them.

A row of such an outcome is a parabola c (k z - ½ p z²) in every output z (`model/outcomes`), so the
covariance of the last hidden layer's activations differs between rows too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from bowtienet.posterior.factors import CommonAxes, LayerFactors, LocalMemory


@dataclass(frozen=True, kw_only=True)
class OutputForRows:
    """What the last hidden layer hears from outputs whose precision differs between rows.

    With one output no row needs an inverse: where H = diag(E[1/eta²_L])^{-½} and
    H E[W'W] H = U diag(l) U', S_n = V diag(1 / (1 + c p_n l)) V' with V = H U.
    """

    mean: Array
    """E[W] (D_out, D)."""
    with_bias: Array
    """E[W b] (D_out, D)."""
    squares: Array | None
    """diag(E[1/eta²_L]), then E[W_d'W_d] of every output, (D_out + 1, D²); None with one output."""
    axes: Array | None
    """V (D, D); None with several outputs, as the next."""
    curvature: Array | None
    """l (D,)."""
    log_determinant: Array
    """log|V V'| (): that of the noise alone."""


def output_for_rows(layers: Sequence[LayerFactors]) -> OutputForRows:
    """E[W'W] of the outputs beside the noise of the last hidden layer, or their common axes."""
    weights = layers[-1].weights
    xp = namespace(weights.mean)
    noise_precision = inverse_gamma.mean_inverse(layers[-2].noise_variance)
    second = gaussian.second_moment(weights)
    own = second[..., 1:, 1:]
    squares = axes = curvature = None
    if own.shape[-3] == 1:
        scale = 1.0 / xp.sqrt(noise_precision)
        scaled = own[..., 0, :, :] * scale[..., :, None] * scale[..., None, :]
        values, vectors = eigenvalues_and_vectors(scaled)
        # Those that are zero up to rounding may come out a little below zero.
        curvature, axes = xp.maximum(values, xp.zeros_like(values)), scale[..., :, None] * vectors
    else:
        squares = xp.concat([diagonal_matrix(noise_precision)[..., None, :, :], own], axis=-3)
        squares = xp.reshape(squares, (*squares.shape[:-2], own.shape[-1] ** 2))
    return OutputForRows(
        mean=weights.mean[..., 1:],
        with_bias=second[..., 0, 1:],
        squares=squares,
        axes=axes,
        curvature=curvature,
        log_determinant=-xp.sum(xp.log(noise_precision), axis=-1),
    )


def message_by_row(
    output: OutputForRows,
    weight: Array | float,
    memory: LocalMemory,
    *,
    as_matrices: bool,
) -> tuple[Array | CommonAxes, Array, Array]:
    """S_L of every row, log|S_L| (n,) and h_L (n, D); `weight` is c (1, D_out).

        S_n^{-1} = diag(E[1/eta²_L]) + Σ_d c_d p_nd E[W_d'W_d],
        h_n = Σ_d c_d (k_nd E[W_d] - p_nd E[W_d b_d])

    Common axes are multiplied out if somebody needs the matrices.
    """
    assert memory.outcome is not None
    precision, linear = (weight * term for term in memory.outcome)
    message = linear @ output.mean - precision @ output.with_bias
    xp = namespace(message)
    if output.axes is None or output.curvature is None:
        size = message.shape[-1]
        flat = with_ones(precision) @ output.squares
        square = xp.reshape(flat, (*flat.shape[:-1], size, size))
        covariance, minus = inverse_and_log_determinant(square)
        return covariance, -minus, message
    # E[1/eta²]^{-1} along the axes, less what the targets say.
    shrunk = 1.0 + precision * output.curvature[..., None, :]
    log_determinant = output.log_determinant[..., None] - xp.sum(xp.log(shrunk), axis=-1)
    covariance = CommonAxes(axes=output.axes, variances=1.0 / shrunk)
    if as_matrices:
        axes = covariance.axes[..., None, :, :]
        covariance = (axes * covariance.variances[..., None, :]) @ transpose(axes)
    return covariance, log_determinant, message
