"""Random valid models, rows and factors, and every update as a map from one point to the next.

A `Point` is a complete member of the variational family with its model and data. None of what is
built here is near a fixed point of any update. `M` networks stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from bowtienet._arrays import map_arrays
from bowtienet.distributions import bernoulli, gaussian
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass
from bowtienet.inference.elbo import ElboTerms, elbo
from bowtienet.inference.empirical_bayes import (
    separate_hyperparameters,
    update_hyperparameters,
)
from bowtienet.inference.global_step import (
    update_global_shrinkage,
    update_local_shrinkage,
    update_noise,
    update_shared_covariance,
    update_slab,
    update_weights,
)
from bowtienet.inference.local_step import (
    local_memory,
    output_precision,
    update_activations,
    update_gates,
    update_tilts,
)
from bowtienet.inference.statistics import Statistics, block_statistics
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import (
    BowTieModel,
    Rows,
    build_model,
    default_scales,
)
from bowtienet.model.shrinkage import (
    FAMILIES,
    Prior,
    Shrinkage,
    ShrinkagePrior,
    scaled,
)
from bowtienet.outcomes import (
    GAUSSIAN,
    Binary,
    Classes,
    Outcome,
    RowTerms,
    StudentT,
)
from bowtienet.posterior.factors import (
    Activations,
    LayerFactors,
    LocalFactors,
    Posterior,
    network,
)
from bowtienet.posterior.moments import ChainMoments, chain_moments, output_moments


def _gig(order: float, scale: float, rate: float) -> GeneralizedInverseGaussian:
    return GeneralizedInverseGaussian(order=order, scale=scale, rate=rate)


ALL_FAMILIES = tuple(FAMILIES)
M = 2
"""Networks of a point."""
HIDDEN = ((4,), (4, 3), (3, 5, 2))
"""One, two and three hidden layers of unequal widths."""
OUTCOMES: dict[str, tuple[Outcome, int]] = {
    "student_t": (StudentT(freedom=3.3), 2),
    "student_t of one": (StudentT(freedom=5.1), 1),
    "binary": (Binary(), 1),
    "classes": (Classes(n_classes=3), 3),
}
"""Outcomes that are not Gaussian, each with a number of outputs."""

_PRIORS: dict[str, tuple[ShrinkagePrior, ShrinkagePrior]] = {
    "student_t": (_gig(-1.7, 0.6, 0.0), _gig(-1.2, 0.9, 0.0)),
    "laplace": (_gig(1.0, 0.0, 0.8), _gig(1.0, 0.0, 1.1)),
    "normal_gamma": (_gig(0.7, 0.0, 0.6), _gig(1.6, 0.0, 0.7)),
    "normal_inverse_gaussian": (_gig(-0.5, 0.7, 0.4), _gig(-0.5, 0.5, 0.8)),
    "gig": (_gig(0.3, 0.6, 0.9), _gig(-1.3, 0.8, 0.5)),
    "horseshoe": (HalfCauchy(scale=0.7), HalfCauchy(scale=1.6)),
    "regularized_horseshoe": (HalfCauchy(scale=1.2), HalfCauchy(scale=0.9)),
    "gaussian": (PointMass(value=1.4), PointMass(value=0.8)),
}
"""Of tau and psi."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A model, its data and a complete variational distribution."""

    model: BowTieModel
    rows: Rows
    factors: Posterior
    local: LocalFactors


Update = Callable[[Point], Point]


def fixed_model(
    hidden: tuple[int, ...],
    family: str = "student_t",
    *,
    n_inputs: int = 3,
    n_outputs: int = 2,
    temperature: float = 0.7,
    outcome: Outcome = GAUSSIAN,
) -> BowTieModel:
    """The model of this shape; no parameter of its prior equals another or a default."""
    model = build_model(
        build_architecture(n_inputs, hidden, n_outputs),
        prior=Prior(family, slab=(3.4, 0.8)),
        hidden_noise=(2.5, 0.7),
        output_noise=(3.1, 0.4 + 0.3 * np.arange(n_outputs)),
        bias_variance=1.3,
        temperature=temperature,
        outcome=outcome,
    )
    shared, local = _PRIORS[family]
    widths = model.architecture.widths[:-1]
    model = replace(
        model,
        global_shrinkage=shared,
        local_shrinkage=tuple(scaled(local, 1.0 / width) for width in widths),
    )
    return separate_hyperparameters(model, M)


def default_model(
    rows: Rows,
    hidden: tuple[int, ...],
    prior: str = "student_t",
    outcome: Outcome = GAUSSIAN,
    **settings: Any,
) -> BowTieModel:
    """The model with the paper's defaults for these rows."""
    delta, _, noise_scale = default_scales(rows, outcome)
    widths = rows.inputs.shape[1], hidden, noise_scale.size
    return build_model(
        build_architecture(*widths),
        prior=prior,
        default_delta=delta,
        output_noise=(2.0, noise_scale),
        outcome=outcome,
        **settings,
    )


def log_density(p: GeneralizedInverseGaussian | HalfCauchy, x: np.ndarray) -> np.ndarray:
    """At x > 0; of a half-Cauchy variable that of its square."""
    if isinstance(p, HalfCauchy):
        return np.log(np.sqrt(p.scale / x) / np.pi / (p.scale + x))
    return (p.order - 1.0) * np.log(x) - p.scale / x - p.rate * x - gig.log_normalizer(p)


def random_rows(rng: np.random.Generator, model: BowTieModel, n: int) -> Rows:
    """Rows with weights that are neither equal nor whole."""
    architecture = model.architecture
    return Rows(
        inputs=rng.normal(size=(n, architecture.n_inputs)),
        targets=random_targets(rng, model.outcome, n, architecture.n_outputs),
        weights=rng.uniform(0.3, 2.0, size=n),
    )


def random_targets(
    rng: np.random.Generator, outcome: Outcome, n: int, n_outputs: int
) -> np.ndarray:
    """Targets that the outcome allows."""
    if outcome.has_noise:
        return rng.normal(size=(n, n_outputs))
    return rng.integers(0, max(n_outputs, 2), size=(n, 1)).astype(float)


def random_covariance(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Positive definite matrices (*shape, K, K) from (*shape, K), of order 0.1, correlated."""
    size = shape[-1]
    root = rng.normal(size=(*shape, size))
    return 0.1 * (root @ np.swapaxes(root, -1, -2) / size + 0.3 * np.eye(size))


def random_factors(rng: np.random.Generator, model: BowTieModel) -> Posterior:
    """Global factors; those of GIG scales have the rate of the prior nowhere."""
    layers = []
    for index, (below, width) in enumerate(pairwise(model.architecture.widths)):
        layers.append(
            LayerFactors(
                weights=GaussianRows(
                    mean=rng.normal(0.0, 0.6, size=(M, width, below + 1)),
                    covariance=random_covariance(rng, M, width, below + 1),
                ),
                noise_variance=InverseGamma(
                    concentration=rng.uniform(2.0, 4.0, size=(M, width)),
                    scale=rng.uniform(2.0, 4.0, size=(M, width)),
                ),
                global_shrinkage=_random_shrinkage(
                    rng, model.global_shrinkage, width * below, (M,)
                ),
                local_shrinkage=_random_shrinkage(
                    rng, model.local_shrinkage[index], 1, (M, width, below)
                ),
                slab_variance=None
                if model.slab is None
                else InverseGamma(
                    concentration=rng.uniform(1.5, 3.0, size=(M, width, below)),
                    scale=rng.uniform(0.5, 2.0, size=(M, width, below)),
                ),
            )
        )
    hidden = model.architecture.hidden
    return Posterior(
        layers=tuple(layers),
        shared_covariance=random_covariance(rng, M, hidden[-1])
        if hidden and not model.outcome.by_row
        else None,
    )


def noisy_network(
    rng: np.random.Generator, hidden: tuple[int, ...], temperature: float, **shape: int
) -> tuple[BowTieModel, Posterior]:
    """Two networks whose noise has four moments, so that averages of squares have error bars."""
    model = fixed_model(hidden, temperature=temperature, **shape)
    posterior = random_factors(rng, model)
    layers = []
    for layer in posterior.layers:
        scale = rng.uniform(1.0, 3.0, size=layer.weights.mean.shape[:2])
        noise = InverseGamma(concentration=np.full(scale.shape, 9.0), scale=scale)
        layers.append(replace(layer, noise_variance=noise))
    return model, replace(posterior, layers=tuple(layers))


def random_local(
    rng: np.random.Generator, model: BowTieModel, factors: Posterior, rows: Rows
) -> LocalFactors:
    """Local factors of n rows; the last layer's covariance is the shared one if there is one."""
    n = rows.inputs.shape[0]
    hidden = model.architecture.hidden
    activations = []
    for index, width in enumerate(hidden):
        if index + 1 == len(hidden) and factors.shared_covariance is not None:
            covariance, log_determinant = factors.shared_covariance[:, None], None
        else:
            covariance = random_covariance(rng, M, n, width)
            log_determinant = np.linalg.slogdet(covariance)[1]
        activations.append(
            Activations(
                offset=rng.normal(size=(M, n, width)),
                gain=rng.normal(0.0, 0.5, size=(M, n, width, hidden[index - 1])) if index else None,
                covariance=covariance,
                log_determinant=log_determinant,
            )
        )
    log_odds = [rng.uniform(-3.0, 3.0, size=(M, n, width)) for width in hidden]
    gates = [bernoulli.probability_and_entropy(values) for values in log_odds]
    return LocalFactors(
        activations=tuple(activations),
        gate_probability=tuple(probability for probability, _ in gates),
        gate_entropy=tuple(entropy for _, entropy in gates),
        tilt=tuple(rng.uniform(0.2, 3.0, size=(M, n, width)) for width in hidden),
        outcome=_random_terms(rng, model, rows),
    )


def _random_terms(rng: np.random.Generator, model: BowTieModel, rows: Rows) -> RowTerms | None:
    """The outcome's parabolas that suit a random q(z), not that of the network."""
    if not model.outcome.by_row:
        return None
    shape = (M, rows.inputs.shape[0], model.architecture.n_outputs)
    mean = rng.normal(size=shape)
    precision = rng.uniform(0.5, 2.0, size=(M, 1, shape[-1]))
    square = mean**2 + rng.uniform(0.2, 1.0, size=shape)
    return model.outcome.row_terms(rows.targets, mean, square, precision)


def random_point(
    rng: np.random.Generator,
    hidden: tuple[int, ...],
    family: str = "student_t",
    n: int = 4,
    outcome: Outcome = GAUSSIAN,
    n_outputs: int = 2,
) -> Point:
    """A generic point: no factor is at its optimum given the others."""
    model = fixed_model(hidden, family, outcome=outcome, n_outputs=n_outputs)
    factors = random_factors(rng, model)
    rows = random_rows(rng, model, n)
    local = random_local(rng, model, factors, rows)
    return Point(model=model, rows=rows, factors=factors, local=local)


def network_of(point: Point, index: int) -> Point:
    """One of the networks, with a leading axis of 1."""
    model = point.model

    def take(x: np.ndarray) -> np.ndarray:
        return x[index : index + 1]

    model = replace(
        model,
        global_shrinkage=map_arrays(take, model.global_shrinkage),
        outcome=map_arrays(take, model.outcome),
    )
    local = map_arrays(take, point.local)
    return replace(point, model=model, factors=network(point.factors, index), local=local)


def masked(point: Point) -> Point:
    """The point without a third of its weights; q(tau) counts those that are left.

    The first unit of a hidden layer has no input, the last no output.
    """
    layers, masks = [], []
    for index, layer in enumerate(point.factors.layers):
        rows, columns = np.indices(layer.weights.mean[0, :, 1:].shape)
        mask = (rows + 2 * columns + index) % 3 != 0
        if index + 1 < len(point.factors.layers):
            mask[0] = False
        if index:
            mask[:, -1] = False
        tau = layer.global_shrinkage
        if isinstance(tau, GeneralizedInverseGaussian):
            order = point.model.global_shrinkage.order - 0.5 * int(mask.sum())
            tau = replace(tau, order=order)
        weights = where_there(layer.weights, mask)
        layers.append(replace(layer, weights=weights, global_shrinkage=tau))
        masks.append(mask)
    return replace(
        point,
        model=replace(point.model, connections=tuple(masks)),
        factors=replace(point.factors, layers=tuple(layers)),
    )


def where_there(weights: GaussianRows, mask: np.ndarray) -> GaussianRows:
    """Zero mean and variance of the weights outside the mask (D, K)."""
    there = with_bias(mask)
    both = there[:, :, None] & there[:, None, :]
    return GaussianRows(
        mean=np.where(there, weights.mean, 0.0), covariance=np.where(both, weights.covariance, 0.0)
    )


def with_bias(mask: np.ndarray) -> np.ndarray:
    """(D, K+1): biases always exist."""
    return np.pad(mask, ((0, 0), (1, 0)), constant_values=True)


def assert_missing(model: BowTieModel, factors: Posterior) -> None:
    """Weights that do not exist are zero to the bit, the others vary."""
    for layer, mask in zip(factors.layers, model.connections, strict=True):
        zeroed = where_there(layer.weights, mask)
        np.testing.assert_array_equal(layer.weights.mean, zeroed.mean)
        np.testing.assert_array_equal(layer.weights.covariance, zeroed.covariance)
        variance = np.diagonal(layer.weights.covariance, axis1=-2, axis2=-1)
        assert np.all(variance[:, with_bias(mask)] > 0.0)


def moments_of(point: Point) -> ChainMoments:
    """Moments of the point's q(a)."""
    return chain_moments(point.local.activations, point.rows.inputs)


def statistics_of(point: Point) -> Statistics:
    """Statistics of the point's local factors."""
    rows = point.rows
    return block_statistics(
        point.local,
        moments_of(point),
        rows.targets,
        rows.weights,
    )


def bound_of(point: Point) -> ElboTerms:
    """The evidence lower bound at the point."""
    return elbo(point.model, point.factors, statistics_of(point))


def weight_block(model: BowTieModel, factors: Posterior) -> float:
    """The bound's terms of W and its scales, without the entropy of q(W) and the biases.

    For a network without hidden layers, of which no row has been seen.
    """
    empty = LocalFactors(activations=(), gate_probability=(), gate_entropy=(), tilt=())
    moments = chain_moments((), np.zeros((1, model.architecture.n_inputs)))
    targets = np.zeros((1, model.architecture.n_outputs))
    terms = elbo(model, factors, block_statistics(empty, moments, targets, np.zeros(1)))
    weights = factors.layers[0].weights
    biases = stats.norm(0.0, np.sqrt(model.bias_variance)).logpdf(weights.mean[..., 0])
    total = terms.weights + terms.global_shrinkage + terms.local_shrinkage
    return float(np.sum(total) - np.sum(biases + gaussian.entropy(weights)))


def _update_shared_covariance(point: Point) -> Point:
    """S_L, kept the same in the local factors, which repeat it."""
    factors = update_shared_covariance(point.factors, by_row=point.model.outcome.by_row)
    if factors.shared_covariance is None:
        return point
    last = replace(point.local.activations[-1], covariance=factors.shared_covariance[:, None])
    activations = (*point.local.activations[:-1], last)
    return replace(point, factors=factors, local=replace(point.local, activations=activations))


def _update_activations(point: Point) -> Point:
    """q(a) whole: the shared covariance of the last layer first, as the backward pass needs it."""
    factors = update_shared_covariance(point.factors, by_row=point.model.outcome.by_row)
    memory = local_memory(point.local)
    activations = update_activations(
        point.model, factors, point.rows.inputs, point.rows.targets, memory
    )
    return replace(point, factors=factors, local=replace(point.local, activations=activations))


def _update_outcome(point: Point) -> Point:
    """The outcome's own local factors; Gaussian rows have none."""
    activations, moments = point.local.activations, moments_of(point)
    if not point.model.outcome.by_row:
        return point
    moments = output_moments(point.factors.layers[-1].weights, activations, moments)
    precision = output_precision(point.model, point.factors)
    terms = point.model.outcome.row_terms(point.rows.targets, *moments, precision)
    return replace(point, local=replace(point.local, outcome=terms))


def _update_gates(point: Point) -> Point:
    """Gates alone: `update_gates` reads E[z²] from fresh tilts, which q(omega) need not have."""
    moments = moments_of(point)
    fresh = update_tilts(point.model, point.factors, moments)
    gates, entropy = update_gates(point.model, point.factors, moments, fresh)
    return replace(point, local=replace(point.local, gate_probability=gates, gate_entropy=entropy))


def _of_factors(update: Callable[..., Posterior], *, reads_rows: bool = False) -> Update:
    """A global update as a map of points."""

    def moved(point: Point) -> Point:
        sums = (statistics_of(point),) if reads_rows else ()
        return replace(point, factors=update(point.model, point.factors, *sums))

    return moved


UPDATES: dict[str, Update] = {
    "shared_covariance": _update_shared_covariance,
    "activations": _update_activations,
    "tilts": lambda p: replace(
        p, local=replace(p.local, tilt=update_tilts(p.model, p.factors, moments_of(p)))
    ),
    "gates": _update_gates,
    "outcome": _update_outcome,
    "weights": _of_factors(update_weights, reads_rows=True),
    "noise": _of_factors(update_noise, reads_rows=True),
    "global_shrinkage": _of_factors(update_global_shrinkage),
    "local_shrinkage": _of_factors(update_local_shrinkage),
    "slab": _of_factors(update_slab),
    "hyperparameters": lambda p: replace(p, model=update_hyperparameters(p.model, p.factors)),
}
"""Every exact update, by the name of what it moves."""


def _random_shrinkage(
    rng: np.random.Generator, prior: ShrinkagePrior, count: int, shape: tuple[int, ...]
) -> Shrinkage:
    """q of its fixed order; a rate that is not zero differs from the prior's."""
    if isinstance(prior, PointMass):
        return prior
    scale: Any = (0.5 * count + 0.5) * rng.uniform(0.5, 2.0, size=shape)
    rate: Any = 0.0
    if not gig.is_zero(prior.rate):
        rate = np.asarray(np.mean(prior.rate) * rng.uniform(1.3, 2.0, size=shape))
    return GeneralizedInverseGaussian(
        order=prior.order - 0.5 * count, scale=np.asarray(scale), rate=rate
    )
