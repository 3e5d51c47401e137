"""Ordinary networks trained side by side, which say where variational fits begin.

    L_r = ( Σ_n w_rn l(y_n, f_rn) + ½ penalty_r Σ W² ) / Σ_n w_rn

for networks r = 1..R of one architecture, with the loss l of an outcome: half of the squared errors
for a Gaussian one, which is the objective of the start `relu_network`. All networks see the same
rows, which are read once for all of them: by a vectorised L-BFGS, or by Adam on batches of many
rows. Rows may be arrays of any library: products are done there, on their device and in single
precision, and the optimiser's small vectors live on the host. A network has its own history, step
length and end; one that has ended takes no further part in the products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import Array, to_numpy, with_ones
from bowtienet._old._validation import non_negative, whole
from bowtienet._old.data.rows import Rows, subsample
from bowtienet._old.distributions.inverse_gamma import InverseGamma, mean_inverse
from bowtienet._old.inference import adam
from bowtienet._old.inference.blas_threads import one_blas_thread
from bowtienet._old.inference.global_step import update_global_shrinkage, update_local_shrinkage
from bowtienet._old.inference.lbfgs import Indices, minimize
from bowtienet._old.inference.network_loss import (
    SMOOTHING,
    Batch,
    Losses,
    enough_workspace,
    network_losses,
    outputs_of,
    split,
)
from bowtienet._old.model.outcomes import Gaussian, Outcome
from bowtienet._old.model.priors import BowTieModel, check_rows
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.initialize import (
    START_ROWS,
    Floats,
    build_factors,
    laplace_weights,
    mean_activations,
    random_weights,
    ridge,
    spike_slab_weights,
)

INITS = ("relu_network", "laplace", "spike_slab")
RowBatch = tuple[Array, Array, Floats]
"""Inputs (b, D_0), targets (b, C) and row weights (R, b)."""
LEARNING_RATE = 0.1
"""For batches of 256 rows. Short fits with weak penalties would take 0.2; in long fits with strong
ones that kills units. Batches of 64 rows ask for half of it."""
NOISE_STEPS = 20
"""Of rows' weights and the noise of their residuals in turn: near enough for a start."""
SQUARED_ERRORS = Gaussian()
NETWORK_VARIANCE = 1e-6
"""Of the weights of a network that a fit starts from: little beside the noise, also where there is
hardly any, or the first sweep forgets the network."""


@dataclass(frozen=True, kw_only=True)
class Networks:
    """R networks of one architecture; layer l has weights (R, D_l, K_l + 1), bias first."""

    layers: tuple[Floats, ...]


@dataclass(frozen=True, kw_only=True)
class _Problem:
    losses: Losses  # with weights of rows that add up to one for each network
    penalties: Floats  # (R,), divided by the sum of the row weights
    penalised: Floats  # (R, P), 0 for a bias
    kept: Floats | None = None  # (R, P), 0 for a weight that does not exist


def initialize(
    model: BowTieModel,
    rows: Rows,
    rng: np.random.Generator | int,
    *,
    init: str = "relu_network",
    init_penalty: float = 0.1,
    start_iterations: int = 200,
) -> GlobalFactors:
    """Global factors to start from.

    Parameters
    ----------
    model : BowTieModel
        Architecture and prior.
    rows : Rows
        Training rows, standardised.
    rng : numpy.random.Generator or int
        Source of all randomness, or its seed.
    init : {"relu_network", "laplace", "spike_slab"}
        How the hidden weights are found.
    init_penalty : float
        Ridge penalty of the network of `relu_network`: ½ Σ squared residuals + ½ penalty Σ W².
    start_iterations : int
        Most L-BFGS steps of `relu_network`.
    """
    if init not in INITS:
        raise ValueError(f"unknown start {init!r}: choose one of {', '.join(INITS)}.")
    init_penalty = non_negative(init_penalty, "init_penalty")
    start_iterations = whole(start_iterations, "start_iterations")
    check_rows(model.architecture, rows, model.outcome)
    rng = np.random.default_rng(rng)
    sample = subsample(rows, START_ROWS, rng)
    inputs = to_numpy(sample.inputs).astype(float)
    targets = model.outcome.working_targets(to_numpy(sample.targets).astype(float))
    row_weights = to_numpy(sample.weights).astype(float)
    draw = spike_slab_weights if init == "spike_slab" else laplace_weights
    hidden = model.architecture.hidden
    if init == "relu_network" and hidden:
        first = random_networks(hidden, inputs, targets, row_weights[None], rng)
        penalties = np.array([init_penalty])
        with one_blas_thread():
            [fitted] = fit_networks(
                inputs, targets, row_weights[None], first, penalties, lengths=[start_iterations]
            )
        means = [layer[0] for layer in fitted.layers[:-1]]
    else:
        means = random_weights(hidden, model.gate_temperature, inputs, rng, draw)
    features = mean_activations(means, inputs, model.gate_temperature)
    means = [*means, ridge(features, targets, row_weights)]
    return build_factors(model, means, rng)


def factors_of_network(
    model: BowTieModel,
    network: Sequence[Floats],
    rows: Rows,
    rng: np.random.Generator,
) -> GlobalFactors:
    """Global factors around the weights of an ordinary network, with scales that suit it.

    The noise of the outputs is that of its residuals in the rows that count, and the shrinkage is
    that of its weights: with scales of the prior the first sweep would forget the network.
    """
    factors = build_factors(model, network, rng, variance=NETWORK_VARIANCE)
    if model.outcome.has_noise:
        networks = Networks(layers=tuple(layer[None] for layer in network))
        [outputs] = network_outputs(networks, rows.inputs)
        noise = noise_of_residuals(model, rows, outputs)
        layers = (*factors.layers[:-1], replace(factors.layers[-1], noise_variance=noise))
        factors = replace(factors, layers=layers)
    return update_global_shrinkage(model, update_local_shrinkage(model, factors))


def noise_of_residuals(model: BowTieModel, rows: Rows, outputs: Floats) -> InverseGamma:
    """eta² ~ IG(alpha_0 + count/2, beta_0 + ½ Σ p (y - f)²) of outputs f (n, D_out).

    Where p of a row depends on eta² itself, as for Student's t, the two are updated in turn.
    """
    weights = np.asarray(to_numpy(rows.weights), dtype=np.float64)
    targets = np.asarray(to_numpy(rows.targets), dtype=np.float64)
    errors = targets - outputs
    prior = model.prior.noise(model.architecture.n_hidden)
    concentration = prior.concentration + 0.5 * weights.sum() * np.ones(errors.shape[1])
    noise = InverseGamma(concentration=concentration, scale=prior.scale + 0.5 * weights @ errors**2)
    for _ in range(NOISE_STEPS if model.outcome.by_row else 0):
        precision = mean_inverse(noise)
        terms = model.outcome.row_terms(targets, outputs, outputs**2, precision)
        squares = weights @ (terms.precision * errors**2)
        noise = InverseGamma(concentration=concentration, scale=prior.scale + 0.5 * squares)
    return noise


def random_networks(
    hidden: Sequence[int],
    inputs: Array,
    targets: Array,
    row_weights: Floats,
    rng: np.random.Generator,
    outcome: Outcome = SQUARED_ERRORS,
) -> Networks:
    """Networks to start from, one for each row of `row_weights` (R, n).

    Hidden weights are Laplace, knots lie inside the rows that the network sees, and the output
    layer is a ridge regression of the outcome's working targets on the last hidden layer.
    """
    inputs, targets = to_numpy(inputs), outcome.working_targets(to_numpy(targets))
    networks = []
    for weights in row_weights:
        seen = weights > 0.0
        values = inputs[seen]
        layers = random_weights(hidden, SMOOTHING, values, rng, laplace_weights)
        for layer in layers:
            z = with_ones(values) @ layer.T
            values = 0.5 * (z + np.sqrt(z * z + SMOOTHING**2))
        networks.append([*layers, ridge(values, targets[seen], weights[seen])])
    return Networks(layers=tuple(np.stack(layer) for layer in zip(*networks, strict=True)))


def fit_networks(
    inputs: Array,
    targets: Array,
    row_weights: Floats,
    start: Networks,
    penalties: Floats,
    *,
    lengths: Sequence[int],
    input_penalties: Floats | None = None,
    kept: Networks | None = None,
    outcome: Outcome = SQUARED_ERRORS,
) -> list[Networks]:
    """Networks after each of `lengths` L-BFGS steps on L_r; biases are not penalised.

    Parameters
    ----------
    inputs : array of shape (n, D_0)
        Standardised features, the same for all networks, in any array library.
    targets : array of shape (n, C)
        Targets of the outcome, in the same library; standardised if they are continuous.
    row_weights : array of shape (R, n)
        Weights of the rows for each network; 0 holds a row out.
    start : Networks
        R networks to start from.
    penalties : array of shape (R,)
        Ridge penalty of each network, on the scale of `init_penalty`.
    lengths : sequence of int
        Increasing numbers of steps.
    input_penalties : array of shape (R, D_0), optional
        What the penalty of the weights of each input is multiplied by.
    kept : Networks, optional
        1 for weights that exist, 0 for those that are zero and stay so.
    outcome : Outcome
        Likelihood whose loss is lowered. Its parameters are numbers, and stay as they are.
    """
    shapes = _shapes(start)
    totals = row_weights.sum(axis=1)
    batch = Batch(inputs=inputs, targets=targets, row_weights=row_weights / totals[:, None])
    problem = _Problem(
        losses=network_losses(batch, shapes, outcome),
        penalties=penalties / totals,
        penalised=_penalised(shapes, len(totals), input_penalties),
        kept=None if kept is None else _points(kept),
    )
    points = _points(start) if problem.kept is None else _points(start) * problem.kept
    found = minimize(partial(_evaluate, problem), points, lengths=lengths)
    return [_networks(points, shapes) for points in found]


def fit_networks_by_batches(
    batches: Callable[[int], Iterable[RowBatch]],
    start: Networks,
    penalties: Floats,
    total_weights: Floats,
    *,
    lengths: Sequence[int],
    learning_rate: float = LEARNING_RATE,
    input_penalties: Floats | None = None,
    outcome: Outcome = SQUARED_ERRORS,
) -> list[Networks]:
    """Networks after each of `lengths` passes of Adam over the rows, on L_r.

    The learning rate falls to zero in the last pass: earlier networks still carry the noise of
    their batches. About 256 rows are a good batch, in a random order in each pass.

    Parameters
    ----------
    batches : callable
        The batches of pass 0, 1, ...: inputs (b, D_0), targets (b, C), both in any array
        library, and row weights (R, b) on the host; 0 holds a row out.
    start : Networks
        R networks to start from.
    penalties : array of shape (R,)
        Ridge penalty of each network, on the scale of `init_penalty`.
    total_weights : array of shape (R,)
        Σ_n w_rn over the rows of a pass.
    lengths : sequence of int
        Increasing numbers of passes.
    learning_rate : float
        Highest step of a weight, for a layer with one input; with K inputs it is over sqrt(K).
    input_penalties : array of shape (R, D_0), optional
        What the penalty of the weights of each input is multiplied by.
    outcome : Outcome
        Likelihood whose loss is lowered. Its parameters are numbers, and stay as they are.
    """
    shapes = _shapes(start)
    state = adam.begin(_points(start))
    factors = _penalised(shapes, len(penalties), input_penalties)
    shrink = ((penalties / total_weights)[:, None] * factors).astype(np.float32)
    rates = learning_rate * _relative_rates(shapes)
    found, n_steps, workspace = [], 0, None
    for n_passes in range(lengths[-1] + 1):
        if n_passes in lengths:
            found.append(_networks(state.points.astype(np.float64), shapes))
        if n_passes == lengths[-1]:
            break
        seen = np.zeros(len(penalties))
        for inputs, targets, row_weights in batches(n_passes):
            totals = row_weights.sum(axis=1)
            batch = Batch(inputs=inputs, targets=targets, row_weights=_shares(row_weights, totals))
            workspace = enough_workspace(workspace, shapes, *row_weights.shape)
            losses = network_losses(batch, shapes, outcome, workspace)
            _, gradients = losses(state.points, np.arange(len(penalties)))
            gradients += shrink * state.points
            n_steps, seen = n_steps + 1, seen + totals / total_weights
            progress = (n_passes + np.minimum(1.0, seen)) / lengths[-1]
            adam.step(state, gradients, adam.fading(progress)[:, None] * rates, n_steps)
    return found


def network_outputs(networks: Networks, inputs: Array) -> Floats:
    """Outputs f (R, n, D_out) of the networks at `inputs` (n, D_0) of any array library."""
    return outputs_of(networks.layers, inputs)


def _evaluate(problem: _Problem, points: Floats, networks: Indices) -> tuple[Floats, Floats]:
    """L (A,) and its gradients (A, P) at points (A, P) of the networks (A,)."""
    shrunk = problem.penalties[networks, None] * problem.penalised[networks] * points
    values, gradients = problem.losses(points, networks)
    values += 0.5 * np.einsum("rp,rp->r", shrunk, points)
    shrunk += gradients
    if problem.kept is not None:
        # Steps are combinations of gradients: what has none stays where it is.
        shrunk *= problem.kept[networks]
    return values, shrunk


def _shares(row_weights: Floats, totals: Floats) -> Floats:
    """Row weights (R, n) that add up to one, or to zero where all rows are held out."""
    over = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
    return row_weights * over[:, None]


def _shapes(networks: Networks) -> tuple[tuple[int, int], ...]:
    return tuple((layer.shape[1], layer.shape[2]) for layer in networks.layers)


def _penalised(
    shapes: Sequence[tuple[int, int]], count: int, input_penalties: Floats | None
) -> Floats:
    """Factors (R, P) of the penalties: 0 of biases, 1 of weights, or those of their inputs."""
    flat = np.concatenate([np.tile(np.arange(k) > 0, d) for d, k in shapes]).astype(float)
    found = np.tile(flat, (count, 1))
    if input_penalties is not None:
        width, size = shapes[0]
        first = found[:, : width * size].reshape(count, width, size)
        first[:, :, 1:] *= input_penalties[:, None, :]
    return found


def _relative_rates(shapes: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
    """1 / sqrt(K) for the weights of a layer with K inputs and a bias."""
    rates = [np.full(d * k, 1.0 / math.sqrt(max(1, k - 1))) for d, k in shapes]
    return np.concatenate(rates).astype(np.float32)


def _points(networks: Networks) -> Floats:
    """Weights (R, P) of all layers, one after the other."""
    flat = [layer.reshape(len(layer), -1) for layer in networks.layers]
    return np.concatenate(flat, axis=1, dtype=np.float64)


def _networks(points: Floats, shapes: tuple[tuple[int, int], ...]) -> Networks:
    return Networks(layers=tuple(layer.copy() for layer in split(points, shapes)))
