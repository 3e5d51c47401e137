"""Section 3.1: moments of the Gaussian chain q(a) and of preactivations.

With mu_l = t_l + M_l mu_{l-1} and C_l = S_l + M_l C_{l-1} M_l' (C_0 = 0, inputs are known),
Cov(a_l, a_{l-1}) = M_l C_{l-1}, and P~ = E[a~ a~'] = mu~ mu~' + blockdiag(0, C), for a row (m, B)
of the next layer's weights

    E[z] = m'mu~,   E[z²] = Tr((B + m m') P~),   E[a z] = m'(mu_a mu~ + (0, Cov(a, a_{l-1}))).

The paper writes E[a a'] with 2 M E[a] t'; it is M E[a] t' + t E[a]' M' (docs/theory/errata, 2).

All arrays have the leading axis M of the networks, except those of the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bowtienet._arrays import Array, namespace, pack, pack_outer, transpose, with_ones
from bowtienet.distributions import gaussian
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.posterior.factors import Activations


@dataclass(frozen=True, kw_only=True)
class ChainMoments:
    """Moments of q(a) for a block of rows."""

    inputs: tuple[Array, ...]
    """E[a~_{l-1}] (n, K+1) for every layer l = 1..L+1; the first is (1, x)."""
    means: tuple[Array, ...]
    """E[a_l] (n, D) for l = 1..L, the same without the constant."""
    second: tuple[Array, ...]
    """E[a~ a~'] packed (n, (K+1)(K+2)/2) for every hidden layer l = 1..L."""
    cross: tuple[Array | None, ...]
    """Cov(a_l, a_{l-1}) (n, D, K) for l = 1..L; None for l = 1."""
    own: tuple[Array, ...]
    """C_l (n, D, D) for l = 1..L-1 (or (1, D, D) where all rows share it)."""


def chain_moments(
    activations: Sequence[Activations], inputs: Array, input_second: Array | None = None
) -> ChainMoments:
    """Forward recursion over the hidden layers for inputs (n, D_0).

    Their packed second moments (n, (D_0+1)(D_0+2)/2) never change and may be handed in.
    """
    means: list[Array] = []
    extended = [with_ones(inputs)]
    second: list[Array] = []
    cross: list[Array | None] = []
    own: list[Array] = []
    covariance: Array | None = None
    for layer, factor in enumerate(activations):
        known = input_second if layer == 0 else None
        second.append(_second_moment(extended[-1], covariance) if known is None else known)
        mean = factor.offset
        if factor.gain is None or covariance is None:
            cross.append(None)
            covariance = factor.covariance
        else:
            mean = mean + (factor.gain @ means[-1][..., None])[..., 0]
            cross.append(factor.gain @ covariance)
            if layer + 1 < len(activations):
                covariance = factor.covariance + cross[-1] @ transpose(factor.gain)
        if layer + 1 < len(activations):
            own.append(covariance)
        means.append(mean)
        extended.append(with_ones(mean))
    return ChainMoments(
        inputs=tuple(extended),
        means=tuple(means),
        second=tuple(second),
        cross=tuple(cross),
        own=tuple(own),
    )


def last_covariance(activations: Sequence[Activations], moments: ChainMoments) -> Array:
    """C_L = S_L + M_L C_{L-1} M_L' (n, D_L, D_L), or (1, D_L, D_L) where one layer's rows share it.

    Not for common axes.
    """
    last = activations[-1]
    if last.gain is None:
        return last.covariance
    return last.covariance + moments.cross[-1] @ transpose(last.gain)


def preactivation_mean(weights: GaussianRows, mean: Array) -> Array:
    """E[z] = m'mu~ (n, D) from mu~ (n, K+1)."""
    return mean @ transpose(weights.mean)


def output_moments(
    weights: GaussianRows, activations: Sequence[Activations], moments: ChainMoments
) -> tuple[Array, Array]:
    """E[z] and E[z²] (n, D_out) of the output: the latter E[z]² + mu~'B mu~ + Tr(E[W'W] C_L)."""
    inputs = moments.inputs[-1]
    mean = preactivation_mean(weights, inputs)
    square = mean**2 + weight_spread(weights, inputs)
    if not activations:
        return mean, square
    return mean, square + activation_spread(weights, activations, moments)


def activation_spread(
    weights: GaussianRows, activations: Sequence[Activations], moments: ChainMoments
) -> Array:
    """Tr(E[W'W] C_L) (n, D_out): the variance that the last activations give to z."""
    xp = namespace(moments.inputs[-1])
    second = gaussian.second_moment(weights)[..., 1:, 1:]
    covariance = activations[-1].covariance
    if isinstance(covariance, tuple):
        axes, variances = covariance[0][..., None, :, :], covariance[1]
        along = xp.sum(axes * (second @ axes), axis=-2)  # diag(V' E[W'W] V) (D_out, D)
        return variances @ transpose(along)
    covariance = last_covariance(activations, moments)
    size = second.shape[-1] ** 2
    flat = xp.reshape(covariance, (*covariance.shape[:-2], size))
    return flat @ transpose(xp.reshape(second, (*second.shape[:-2], size)))


def weight_spread(weights: GaussianRows, mean: Array) -> Array:
    """mu~'B mu~ (n, D) from mu~ (n, K+1): the variance that the weights give to z."""
    rows = mean[..., None, :, :]
    return transpose(namespace(mean).sum((rows @ weights.covariance) * rows, axis=-1))


def covariance_with_preactivation(weights: GaussianRows, cross: Array) -> Array:
    """Cov(a, z) (n, D) from Cov(a_l, a_{l-1})."""
    return namespace(cross).vecdot(cross, weights.mean[..., None, :, 1:])


def _second_moment(mean: Array, covariance: Array | None) -> Array:
    """mu~ mu~' + blockdiag(0, C), packed: its first row is mu~ itself, for mu~ begins with 1."""
    if covariance is None:
        return pack_outer(mean)
    rest = pack_outer(mean[..., 1:]) + pack(covariance)
    return namespace(mean).concat([mean, rest], axis=-1)
