"""Section 3.1 and 3.5: the factors of single observations, for a block of rows at once.

Order: activations, then Polya-Gamma tilts, then gates. Without targets the output sends no
message, and the same step is the paper's variational prediction.
"""

from __future__ import annotations

from collections.abc import Sequence

from bowtienet._arrays import (
    Array,
    diagonal_matrix,
    inverse_and_log_determinant,
    namespace,
    special,
    transpose,
    with_ones,
)
from bowtienet.distributions import bernoulli, gaussian, inverse_gamma, polya_gamma
from bowtienet.model.priors import BowTieModel
from bowtienet.posterior.factors import (
    Activations,
    GlobalFactors,
    LayerFactors,
    LocalFactors,
    LocalMemory,
)
from bowtienet.posterior.moments import (
    ChainMoments,
    chain_moments,
    preactivation_mean,
    preactivation_square,
    product_with_preactivation,
)


def initialize_local(model: BowTieModel, factors: GlobalFactors, inputs: Array) -> LocalMemory:
    """Gates and tilts from a forward pass through the mean weights: rho = sigmoid(E[z] / T).

    No step asks for the tilts of the first layer before it has updated them.
    """
    xp = namespace(inputs)
    mean, gates, tilts = with_ones(inputs), [], []
    for index, layer in enumerate(factors.layers[:-1]):
        preactivation = preactivation_mean(layer.weights, mean)
        gates.append(special("expit", preactivation / model.gate_temperature))
        if index > 0:
            spread = xp.sum((mean @ layer.weights.covariance) * mean[None, :, :], axis=-1).T
            tilts.append(xp.sqrt(preactivation**2 + spread) / model.gate_temperature)
        mean = with_ones(gates[-1] * preactivation)
    return LocalMemory(gate_probability=tuple(gates), tilt=tuple(tilts))


def local_step(
    model: BowTieModel,
    factors: GlobalFactors,
    inputs: Array,
    targets: Array | None,
    memory: LocalMemory,
) -> tuple[LocalFactors, ChainMoments]:
    """Update q(a), q(omega), q(gamma) of a block once; the moments are those of the new q(a)."""
    activations = update_activations(model, factors, inputs, targets, memory)
    moments = chain_moments(activations, inputs)
    tilt = update_tilts(model, factors, moments)
    gates, entropy = update_gates(model, factors, moments, tilt)
    local = LocalFactors(
        activations=activations, gate_probability=gates, gate_entropy=entropy, tilt=tilt
    )
    return local, moments


def settle(
    model: BowTieModel,
    factors: GlobalFactors,
    inputs: Array,
    targets: Array | None,
    tolerance: float,
    max_iterations: int,
) -> tuple[LocalFactors, ChainMoments]:
    """Local factors from a forward pass on, iterated until nothing moves by more than `tolerance`.

    The paper watches the bound; the largest move of a row's gates and tilts is cheaper to see. A
    row stops by itself, so that what it gets does not depend on the rows beside it.
    """
    memory = initialize_local(model, factors, inputs)
    for _ in range(max_iterations):
        local, moments = local_step(model, factors, inputs, targets, memory)
        renewed = LocalMemory(gate_probability=local.gate_probability, tilt=local.tilt[1:])
        moving = _moves(renewed, memory, tolerance)
        if moving is None:
            break
        memory = LocalMemory(
            gate_probability=_renewed(moving, renewed.gate_probability, memory.gate_probability),
            tilt=_renewed(moving, renewed.tilt, memory.tilt),
        )
    return local, moments


def update_activations(
    model: BowTieModel,
    factors: GlobalFactors,
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
    covariance, log_determinant, linear = _output_message(factors, inputs, targets)
    for index in reversed(range(model.architecture.n_hidden)):
        layer = factors.layers[index]
        pull = inverse_gamma.mean_inverse(layer.noise_variance) * memory.gate_probability[index]
        # G, the preactivation's pull on its activation: the first layer's input is known.
        pulled = pull[:, :, None] * layer.weights.mean[None, :, 1:] if index > 0 else None
        factor = Activations(
            offset=_apply(covariance, pull * _constant_part(layer, inputs, index) + linear),
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
    model: BowTieModel, factors: GlobalFactors, moments: ChainMoments
) -> tuple[Array, ...]:
    """A = sqrt(E[z²]) / T."""
    xp = namespace(moments.inputs[0])
    return tuple(
        xp.sqrt(preactivation_square(layer.weights, second)) / model.gate_temperature
        for layer, second in zip(factors.layers[:-1], moments.second, strict=True)
    )


def update_gates(
    model: BowTieModel, factors: GlobalFactors, moments: ChainMoments, tilt: tuple[Array, ...]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """rho = sigmoid(E[1/eta²] (E[a z] - ½ E[z²]) + E[z] / T), where E[z²] = A² T² (fresh tilts).

    With the probabilities come the entropies, summed over the units.
    """
    gates, entropies = [], []
    for index, layer in enumerate(factors.layers[:-1]):
        noise_precision = inverse_gamma.mean_inverse(layer.noise_variance)
        preactivation = preactivation_mean(layer.weights, moments.inputs[index])
        product = product_with_preactivation(
            layer.weights, moments.inputs[index + 1][:, 1:], preactivation, moments.cross[index]
        )
        square = (tilt[index] * model.gate_temperature) ** 2
        log_odds = (
            noise_precision * (product - 0.5 * square) + preactivation / model.gate_temperature
        )
        probability, entropy = bernoulli.probability_and_entropy(log_odds)
        gates.append(probability)
        entropies.append(entropy)
    return tuple(gates), tuple(entropies)


def _output_message(
    factors: GlobalFactors, inputs: Array, targets: Array | None
) -> tuple[Array, Array, Array]:
    """S_L (1, D, D), log|S_L| (1,) and h_L (n, D): the last hidden layer's view of the output.

    h_L = Σ_d E[1/eta²_d] (y_d E[W_d] - E[W_d b_d]); without targets it is zero (and the caller
    hands in factors whose S_L is the noise alone, see `prediction`).
    """
    output, covariance = factors.layers[-1], factors.shared_covariance
    assert covariance is not None
    xp = namespace(covariance)
    _, log_determinant = xp.linalg.slogdet(covariance)
    mean = output.weights.mean[:, 1:]
    if targets is None:
        linear = xp.zeros_like(inputs[:, :1] * mean[:1, :])
    else:
        noise_precision = inverse_gamma.mean_inverse(output.noise_variance)
        bias_product = gaussian.second_moment(output.weights)[:, 0, 1:]
        linear = (targets * noise_precision) @ mean - noise_precision @ bias_product
    return covariance[None, :, :], xp.reshape(log_determinant, (1,)), linear


def _hidden_message(
    model: BowTieModel,
    factors: GlobalFactors,
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
    layer, gate_temperature = factors.layers[index], model.gate_temperature
    xp = namespace(pull)
    mean = layer.weights.mean[:, 1:]
    second = gaussian.second_moment(layer.weights)
    noise_precision = inverse_gamma.mean_inverse(factors.layers[index - 1].noise_variance)
    curvature = pull + polya_gamma.mean(memory.tilt[index - 1]) / gate_temperature**2
    # The diagonal rides along as one more unit with c = 1, which spares a pass over (n, K, K).
    squares = xp.concat([diagonal_matrix(noise_precision)[None, :, :], second[:, 1:, 1:]], axis=0)
    width, size = mean.shape
    quadratic = with_ones(curvature) @ xp.reshape(squares, (width + 1, size * size))
    half_gates = (memory.gate_probability[index] - 0.5) / gate_temperature
    linear = (half_gates + pull * offset) @ mean - curvature @ second[:, 0, 1:]
    return xp.reshape(quadratic, (-1, size, size)), linear


def _constant_part(layer: LayerFactors, inputs: Array, index: int) -> Array:
    """E[z] without its random input: E[b] (D,), and for the first layer all of it, (n, D)."""
    if index > 0:
        return layer.weights.mean[:, 0]
    return preactivation_mean(layer.weights, with_ones(inputs))


def _apply(covariance: Array, vectors: Array) -> Array:
    """S v for every row: one product where all rows share S."""
    if covariance.shape[0] == 1:
        return vectors @ covariance[0, :, :]
    return (covariance @ vectors[:, :, None])[:, :, 0]


def _moves(now: LocalMemory, before: LocalMemory, tolerance: float) -> Array | None:
    """Whether a gate or (relative to its size) a tilt of a row moves, (n, 1); None if none does."""
    pairs = [*zip(now.gate_probability, before.gate_probability, strict=True)]
    pairs += [(a / (1.0 + b), b / (1.0 + b)) for a, b in zip(now.tilt, before.tilt, strict=True)]
    moving: Array | None = None
    for a, b in pairs:
        xp = namespace(a)
        found = xp.any(xp.abs(a - b) > tolerance, axis=1, keepdims=True)
        moving = found if moving is None else moving | found
    return None if moving is None or not bool(namespace(moving).any(moving)) else moving


def _renewed(moving: Array, now: Sequence[Array], before: Sequence[Array]) -> tuple[Array, ...]:
    return tuple(namespace(a).where(moving, a, b) for a, b in zip(now, before, strict=True))
