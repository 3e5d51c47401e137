"""Section 3.1 and 3.5: the factors of single observations, for a block of rows at once.

Order: activations, then Polya-Gamma tilts, then gates, then the outcome's parabolas if those differ
between rows. Without targets the output sends no message, and the same step is the paper's
variational prediction.

M networks of one architecture that see the same rows stand on the leading axis of all arrays but
those of inputs and targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bowtienet._arrays import (
    Array,
    diagonal_matrix,
    inverse_and_log_determinant,
    map_arrays,
    namespace,
    pack_for_trace,
    special,
    transpose,
    with_ones,
)
from bowtienet.distributions import bernoulli, gaussian, inverse_gamma, polya_gamma
from bowtienet.inference.output_by_row import mean_with_bias, message_by_row, squares_by_row
from bowtienet.model.model import BowTieModel
from bowtienet.posterior.factors import (
    Activations,
    Covariances,
    LayerFactors,
    LocalFactors,
    LocalMemory,
    Posterior,
)
from bowtienet.posterior.moments import (
    ChainMoments,
    chain_moments,
    covariance_with_preactivation,
    output_moments,
    preactivation_mean,
    weight_spread,
)


@dataclass(frozen=True, kw_only=True)
class FactorsForRows(Posterior):
    """Global factors with what every block of rows would have to work out of them again."""

    squares: tuple[Array, ...]
    """E[(b, W)'(b, W)] of every hidden layer, packed for traces, ((K+1)(K+2)/2, D)."""
    output_squares: Array | tuple[Array, Array] | None
    """See `squares_by_row`; None without hidden layers, and where rows share S_L."""


def for_rows(factors: Posterior) -> FactorsForRows:
    """Work out once what all blocks of rows need."""
    if isinstance(factors, FactorsForRows):
        return factors
    layers, covariance = factors.layers, factors.shared_covariance
    by_row = covariance is None and len(layers) > 1
    return FactorsForRows(
        layers=layers,
        shared_covariance=covariance,
        squares=tuple(
            transpose(pack_for_trace(gaussian.second_moment(layer.weights)))
            for layer in layers[:-1]
        ),
        output_squares=squares_by_row(layers) if by_row else None,
    )


def initialize_local(
    model: BowTieModel, factors: Posterior, inputs: Array, targets: Array | None = None
) -> LocalMemory:
    """Gates and tilts from a forward pass through the mean weights: rho = sigmoid(E[z] / T).

    Outcomes whose precision differs between rows begin at E[z] and E[z]² + mu~'B mu~ of the same
    pass.
    """
    xp = namespace(inputs)
    mean, gates, tilts = with_ones(inputs), [], []
    for index, layer in enumerate(factors.layers[:-1]):
        preactivation = preactivation_mean(layer.weights, mean)
        gates.append(special("expit", preactivation / model.temperature))
        if index > 0:
            spread = weight_spread(layer.weights, mean)
            tilts.append(xp.sqrt(preactivation**2 + spread) / model.temperature)
        mean = with_ones(gates[-1] * preactivation)
    parabola: tuple[Array, ...] = ()
    if targets is not None and model.outcome.by_row:
        weights = factors.layers[-1].weights
        output = preactivation_mean(weights, mean)
        square = output**2 + weight_spread(weights, mean)
        terms = model.outcome.row_terms(targets, output, square, output_precision(model, factors))
        parabola = (terms.precision, terms.linear)
    return tuple(gates), tuple(tilts), parabola


def noise_precision(layer: LayerFactors) -> Array:
    """E[1/eta²] (1, D)."""
    return inverse_gamma.mean_inverse(layer.noise_variance)[..., None, :]


def output_precision(model: BowTieModel, factors: Posterior) -> Array | float:
    """c = E[1/eta²] (1, D_out) of the output, 1 for outcomes without a noise variance."""
    return noise_precision(factors.layers[-1]) if model.outcome.has_noise else 1.0


def local_memory(local: LocalFactors) -> LocalMemory:
    """What the next local step reads of the local factors."""
    terms = local.outcome
    parabola = () if terms is None else (terms.precision, terms.linear)
    return local.gate_probability, local.tilt[1:], parabola


def local_step(
    model: BowTieModel,
    factors: Posterior,
    inputs: Array,
    targets: Array | None,
    memory: LocalMemory,
    *,
    input_second: Array | None = None,
) -> tuple[LocalFactors, ChainMoments]:
    """Update q(a), q(omega), q(gamma) of a block once; the moments are those of the new q(a).

    The packed second moments of the inputs may be handed in.
    """
    factors = for_rows(factors)
    activations = update_activations(model, factors, inputs, targets, memory)
    moments = chain_moments(activations, inputs, input_second)
    tilt = update_tilts(model, factors, moments)
    gates, entropy = update_gates(model, factors, moments, tilt)
    outcome = None
    if targets is not None and model.outcome.by_row:
        # The parabolas, whose own local factors suit E[z] and E[z²].
        mean, square = output_moments(factors.layers[-1].weights, activations, moments)
        outcome = model.outcome.row_terms(targets, mean, square, output_precision(model, factors))
    local = LocalFactors(
        activations=activations,
        gate_probability=gates,
        gate_entropy=entropy,
        tilt=tilt,
        outcome=outcome,
    )
    return local, moments


def settle(
    model: BowTieModel,
    factors: Posterior,
    inputs: Array,
    targets: Array | None,
    tolerance: float,
    max_iterations: int,
) -> tuple[LocalFactors, ChainMoments]:
    """Local factors from a forward pass on, iterated until nothing moves by more than `tolerance`.

    The paper watches the bound; the largest move of a row's gates and tilts is cheaper to see. A
    row stops by itself, so that what it gets does not depend on the other rows.
    """
    factors = for_rows(factors)
    memory = initialize_local(model, factors, inputs, targets)
    for _ in range(max_iterations):
        local, moments = local_step(model, factors, inputs, targets, memory)
        renewed = local_memory(local)
        moving = _moving(renewed, memory, tolerance)
        if not moving.any():
            break
        memory = map_arrays(partial(np.where, moving), renewed, memory)
    return local, moments


def update_activations(
    model: BowTieModel,
    factors: Posterior,
    inputs: Array,
    targets: Array | None,
    memory: LocalMemory,
) -> tuple[Activations, ...]:
    """Backward recursion for q(a_l | a_{l-1}) = N(t_l + M_l a_{l-1}, S_l), l = L..1.

        S_l^{-1} = diag(E[1/eta²_l]) + J_l,   t_l = S_l r_l,   M_l = S_l G_l,
        G_l = diag(E[1/eta²_l] rho_l) E[W_l],   r_l = E[1/eta²_l] rho_l E[b_l] + h_l,

    with J_l and h_l the message of the layer above.
    """
    if model.architecture.n_hidden == 0:
        return ()
    result: list[Activations] = []
    factors, (gates, _, parabola) = for_rows(factors), memory
    first = preactivation_mean(factors.layers[0].weights, with_ones(inputs))
    covariance: Covariances
    log_determinant: Array | None = None
    if factors.output_squares is None:
        covariance, linear = _output_message(factors, inputs, targets)
    else:
        weight = output_precision(model, factors)
        covariance, log_determinant, linear = message_by_row(
            factors.layers, factors.output_squares, *(weight * term for term in parabola)
        )
    for index in reversed(range(model.architecture.n_hidden)):
        layer = factors.layers[index]
        pull = noise_precision(layer) * gates[index]
        # E[z] without its random input; that of the first layer is known.
        constant = first if index == 0 else layer.weights.mean[..., None, :, 0]
        # G, the preactivation's pull on its activation.
        pulled = pull[..., None] * layer.weights.mean[..., None, :, 1:] if index > 0 else None
        factor = Activations(
            offset=_apply(covariance, pull * constant + linear),
            gain=None if pulled is None else covariance @ pulled,
            covariance=covariance,
            log_determinant=log_determinant,
        )
        result.append(factor)
        if pulled is not None:
            explained = transpose(pulled) @ factor.gain
            precision, linear = _hidden_message(model, factors, memory, index, pull, factor.offset)
            precision = precision - explained
            covariance, minus = inverse_and_log_determinant(precision)
            log_determinant = -minus
    return tuple(reversed(result))


def update_tilts(
    model: BowTieModel, factors: Posterior, moments: ChainMoments
) -> tuple[Array, ...]:
    """A = sqrt(E[z²]) / T."""
    xp = namespace(moments.inputs[0])
    return tuple(
        xp.sqrt(second @ (squares / model.temperature**2))
        for squares, second in zip(for_rows(factors).squares, moments.second, strict=True)
    )


def update_gates(
    model: BowTieModel,
    factors: Posterior,
    moments: ChainMoments,
    tilt: tuple[Array, ...],
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """rho = sigmoid(E[1/eta²] (E[a z] - ½ E[z²]) + E[z] / T), where E[z²] = A² T² (fresh tilts).

    With the probabilities come the entropies, summed over the units.
    """
    factors = for_rows(factors)
    gates, entropies = [], []
    for index, layer in enumerate(factors.layers[:-1]):
        precision = noise_precision(layer)
        preactivation = preactivation_mean(layer.weights, moments.inputs[index])
        # With E[a z] = E[a] E[z] + Cov(a, z), as few passes over (n, D) as there are terms.
        slope = precision * moments.means[index] + 1.0 / model.temperature
        curvature = precision * (0.5 * model.temperature**2)
        log_odds = slope * preactivation - curvature * tilt[index] ** 2
        cross = moments.cross[index]
        if cross is not None:
            covariance = covariance_with_preactivation(layer.weights, cross)
            log_odds = log_odds + precision * covariance
        probability, entropy = bernoulli.probability_and_entropy(log_odds)
        gates.append(probability)
        entropies.append(entropy)
    return tuple(gates), tuple(entropies)


def _output_message(
    factors: FactorsForRows, inputs: Array, targets: Array | None
) -> tuple[Array, Array]:
    """S_L (1, D, D) and h_L (n, D), the last hidden layer's view of the output.

        h_L = Σ_d E[1/eta²_d] (y_d E[W_d] - E[W_d b_d])

    Without targets h_L is zero (and the caller hands in factors whose S_L is the noise alone, see
    `prediction`).
    """
    assert factors.shared_covariance is not None
    covariance, output = factors.shared_covariance[..., None, :, :], factors.layers[-1].weights
    xp = namespace(covariance)
    if targets is None:
        return covariance, xp.zeros_like(inputs[..., :1] * covariance[..., 0, :1, :])
    weight = transpose(noise_precision(factors.layers[-1]))
    constant = xp.sum(weight * mean_with_bias(output), axis=-2, keepdims=True)
    message = xp.concat([weight * output.mean[..., :, 1:], -constant], axis=-2)
    return covariance, xp.concat([targets, xp.ones_like(targets[:, :1])], axis=-1) @ message


def _hidden_message(
    model: BowTieModel,
    factors: FactorsForRows,
    memory: LocalMemory,
    index: int,
    pull: Array,
    offset: Array,
) -> tuple[Array, Array]:
    """What hidden layer `index` tells the layer below: S^{-1} + G'S G (n, K, K) and h (n, K).

        c = E[1/eta²] rho + E[omega] / T²,
        S^{-1} = diag(E[1/eta²] of the layer below) + Σ_d c_d E[W_d'W_d] - G'S G,
        h = Σ_d (rho_d - ½)/T E[W_d] - Σ_d c_d E[W_d b_d] + G't.

    In the paper's prediction the gates of these sums carry the lower layer's index; they are this
    layer's (docs/theory/errata, 3).
    """
    layer, temperature, (gates, tilts, _) = factors.layers[index], model.temperature, memory
    xp = namespace(pull)
    mean = layer.weights.mean[..., 1:]
    second = gaussian.second_moment(layer.weights)
    curvature = pull + polya_gamma.mean(tilts[index - 1]) / temperature**2
    # The diagonal rides along as one more unit with c = 1, which spares a pass over (n, K, K).
    diagonals = diagonal_matrix(noise_precision(factors.layers[index - 1]))
    squares = xp.concat([diagonals, second[..., 1:, 1:]], axis=-3)
    *leading, width, size = mean.shape
    quadratic = with_ones(curvature) @ xp.reshape(squares, (*leading, width + 1, size * size))
    half_gates = (gates[index] - 0.5) / temperature
    linear = (half_gates + pull * offset) @ mean - curvature @ second[..., 0, 1:]
    return xp.reshape(quadratic, (*quadratic.shape[:-1], size, size)), linear


def _apply(covariance: Covariances, vectors: Array) -> Array:
    """S v for every row: one product where all rows share S, two where they share its axes."""
    if isinstance(covariance, tuple):
        axes, variances = covariance
        return ((vectors @ axes) * variances) @ transpose(axes)
    if covariance.shape[-3] == 1:
        return vectors @ covariance[..., 0, :, :]
    return (covariance @ vectors[..., None])[..., 0]


def _moving(now: LocalMemory, before: LocalMemory, tolerance: float) -> Array:
    """Whether a gate or, relative to its size, a tilt of a row moves, (n, 1).

    The outcome's parabola counts as a tilt where hidden layers hear of it.
    """
    moving = np.zeros((1, 1), dtype=bool)
    for kind, pairs in enumerate(zip(now, before, strict=True)):
        for a, b in zip(*pairs, strict=True):
            size = 1.0 + np.abs(b) if kind else 1.0
            moves = np.any(np.abs(a / size - b / size) > tolerance, axis=-1, keepdims=True)
            moving = moving | (moves & bool(now[0]))
    return moving
