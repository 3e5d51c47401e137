"""Section 3.5: the predictive mean and variance in closed form, by one of two routes.

`variational`, the paper's: for new inputs the local step is iterated without targets until its
gates stand still; then

    E[y] = m'mu~_L,   Var[y] = Tr((B + m m') P~_L) - E[y]² + E[eta²].

It is the training code with the targets left out: the output sends no message, so the last hidden
layer's covariance is its noise alone. `push_forward` needs no iteration and lives in a module of
that name. docs/measurements/accuracy.md compares them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bowtienet._old._arrays import Array, diagonal_matrix, namespace, slices, to_numpy
from bowtienet._old._validation import non_negative, whole
from bowtienet._old.data.rows import build_inputs, concatenate
from bowtienet._old.distributions import gaussian, inverse_gamma
from bowtienet._old.inference.execution import block_rows, factors_beside, usable_cores, workers
from bowtienet._old.inference.local_step import settle
from bowtienet._old.model.outcomes import Outcome
from bowtienet._old.model.outcomes.counts import log_rates
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors, check_factors
from bowtienet._old.posterior.moments import last_covariance, preactivation_mean
from bowtienet._old.prediction.push_forward import push_forward

PROPAGATIONS = ("push_forward", "variational")


@dataclass(frozen=True, kw_only=True)
class Predictive:
    """Mean and variance of new targets, each (n, D_out)."""

    mean: Array
    signal_variance: Array
    """Var[z_{L+1}], all but the output's own noise."""
    chance_variance: Array
    """The part of it that gates and hidden noise make: more rows would not take it away."""
    noise_variance: Array
    """Of y given z: E[eta²] of the output, nu / (nu - 2) times that for Student's t, and zero for
    outcomes without a noise variance."""


def predict(
    model: BowTieModel,
    factors: GlobalFactors,
    inputs: Array,
    *,
    propagation: str = "push_forward",
    tolerance: float = 1e-4,
    max_iterations: int = 100,
    n_threads: int | None = None,
) -> Predictive:
    """Predictive moments for inputs (n, D_0) on the scale of training.

    Parameters
    ----------
    model : BowTieModel
        The fitted model.
    factors : GlobalFactors
        Its fitted factors.
    inputs : array (n, D_0)
        New inputs, scaled as those of training.
    propagation : {"push_forward", "variational"}
        Push the generative process forward, or iterate the local step as the paper does.
    tolerance : float
        Largest move of a gate probability at which the iteration of "variational" stops.
    max_iterations : int
        Most local steps of "variational".
    n_threads : int, optional
        Blocks worked on at the same time; all usable cores by default. It changes no result.
    """
    if propagation not in PROPAGATIONS:
        raise ValueError(
            f"unknown propagation {propagation!r}: choose one of {', '.join(PROPAGATIONS)}."
        )
    inputs = build_inputs(inputs, model.architecture.n_inputs)
    check_factors(model.architecture, factors)
    tolerance = non_negative(tolerance, "tolerance")
    max_iterations = whole(max_iterations, "max_iterations")
    n_threads = usable_cores() if n_threads is None else whole(n_threads, "n_threads")
    factors = factors_beside(without_targets(factors), inputs)
    blocks = [inputs[part, ...] for part in slices(inputs.shape[0], block_rows(model.architecture))]
    if propagation == "variational":
        step = partial(_settle, model, factors, tolerance=tolerance, max_iterations=max_iterations)
    else:
        step = partial(_pushed, model, factors)
    with workers(min(n_threads, len(blocks))) as apply, np.errstate(all="ignore"):
        parts = list(apply(step, blocks))
    mean, signal, chance = (concatenate(column) for column in zip(*parts, strict=True))
    return Predictive(
        mean=mean,
        signal_variance=signal,
        chance_variance=chance,
        noise_variance=namespace(mean).zeros_like(mean) + output_noise(model, factors),
    )


def output_noise(model: BowTieModel, factors: GlobalFactors) -> Array:
    """Noise variance (D_out,) of new targets; 0 of classes and counts, whose noise is their own."""
    noise = inverse_gamma.mean(factors.layers[-1].noise_variance)
    if not model.outcome.has_noise:
        return namespace(noise).zeros_like(noise)
    return noise * model.outcome.variance_ratio


def log_density(
    found: Predictive, targets: Array, variance_ratio: np.ndarray | None = None
) -> np.ndarray:
    """Log density (n,) of targets (n, D_out) under Gaussians of these moments."""
    variance = to_numpy(found.signal_variance + found.noise_variance).astype(float)
    error = to_numpy(targets).astype(float) - to_numpy(found.mean)
    variance = variance if variance_ratio is None else variance_ratio * variance
    terms = -0.5 * (np.log(2.0 * np.pi * variance) + error**2 / variance)
    return np.asarray(terms.sum(axis=1))


def outputs_and_variances(outcome: Outcome, found: Predictive) -> tuple[np.ndarray, np.ndarray]:
    """Means of the outputs and variances of new targets, (n, D) each; logs of rates of counts."""
    variances = to_numpy(found.signal_variance + found.noise_variance).astype(float)
    return log_rates(outcome, to_numpy(found.mean).astype(float)), variances


def without_targets(factors: GlobalFactors) -> GlobalFactors:
    """Factors whose last hidden covariance is the noise alone, S_L = diag(1 / E[1/eta²_L])."""
    if len(factors.layers) == 1:
        return factors
    noise_precision = inverse_gamma.mean_inverse(factors.layers[-2].noise_variance)
    return replace(factors, shared_covariance=diagonal_matrix(1.0 / noise_precision))


def _settle(
    model: BowTieModel,
    factors: GlobalFactors,
    inputs: Array,
    *,
    tolerance: float,
    max_iterations: int,
) -> tuple[Array, Array, Array]:
    """Mean, variance, and its part by chance, of the output from settled local factors."""
    local, moments = settle(model, factors, inputs, None, tolerance, max_iterations)
    weights = factors.layers[-1].weights
    xp = namespace(inputs)
    inputs_mean = moments.inputs[-1]
    mean = preactivation_mean(weights, inputs_mean)
    # Var[z] = mu~'B mu~ + Tr((B + m m')_W C_L): no difference of large squares.
    signal = xp.sum((inputs_mean @ weights.covariance) * inputs_mean[None, :, :], axis=-1).T
    chance = xp.zeros_like(signal)
    if local.activations:
        covariance = last_covariance(local.activations, moments)
        second = gaussian.second_moment(weights)[:, 1:, 1:]
        n_outputs, width, _ = second.shape
        flat = xp.reshape(covariance, (-1, width * width))
        # Given the gates, q(a) varies by hidden noise alone.
        chance = chance + flat @ xp.reshape(second, (n_outputs, width * width)).T
    return mean, signal + chance, chance


def _pushed(
    model: BowTieModel, factors: GlobalFactors, inputs: Array
) -> tuple[Array, Array, Array]:
    mean, spread = push_forward(model, factors, inputs)
    return mean, spread.epistemic + spread.chance, spread.chance
