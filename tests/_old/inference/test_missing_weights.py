"""Coordinate ascent in networks that lack weights, and in networks that lose units on the way."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.distributions.gaussian import GaussianRows, entropy
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.elbo import elbo
from bowtienet._old.inference.global_step import update_global_shrinkage, update_local_shrinkage
from bowtienet._old.inference.iterate import Progress
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.statistics import block_statistics
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, RemovedWeights, build_model
from bowtienet._old.model.shrinkage import build_shrinkage
from bowtienet._old.posterior.factors import GlobalFactors, LocalFactors
from bowtienet._old.posterior.initialize import build_factors
from bowtienet._old.posterior.moments import chain_moments
from tests._old import autodiff, builders
from tests._old.builders import Point

ROUNDING = 1e-9
STATIONARY = 1e-10
SEARCHED = 1e-6
"""A rate that is searched for is known to the root of rounding only."""
MOVED = ("weights", "global_shrinkage", "local_shrinkage", "hyperparameters")
SLAB_FAMILY = "regularized_horseshoe"
LOCAL = ("shared_covariance", "activations", "tilts", "gates", "noise")
HELD = 1e8
COMPILED = [
    pytest.param(family, marks=[pytest.mark.slow] * family.startswith("normal_"))
    for family in builders.ALL_FAMILIES
]
"""All families; five seconds each, so the two between the others only when there is time."""


def masks_of(model: BowTieModel) -> tuple[np.ndarray, ...]:
    """About a third is missing; the first unit of a layer has no input, the last no output."""
    masks = []
    widths = model.architecture.widths
    for index, (below, above) in enumerate(pairwise(widths)):
        rows, columns = np.indices((above, below))
        mask = (rows + 2 * columns + index) % 3 != 0
        if index + 2 < len(widths):
            mask[0] = False
        if index:
            mask[:, -1] = False
        masks.append(mask)
    return tuple(masks)


def with_bias(mask: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(mask), dtype=bool), mask])


def masked(point: Point, gone: int = 0) -> Point:
    """The point without some of its weights; q(tau) counts those that are left, or were pruned."""
    masks, layers = masks_of(point.model), []
    removed = [RemovedWeights(count=gone * (i + 1), held=0.02) for i in range(len(masks))]
    for layer, mask, less in zip(point.factors.layers, masks, removed, strict=True):
        there = with_bias(mask)
        both = there[:, :, None] & there[:, None, :]
        weights = GaussianRows(
            mean=np.where(there, layer.weights.mean, 0.0),
            covariance=np.where(both, layer.weights.covariance, 0.0),
        )
        tau, prior = layer.global_shrinkage, point.model.prior.global_shrinkage
        if isinstance(tau, GeneralizedInverseGaussian):
            tau = replace(tau, order=prior.order - 0.5 * (int(mask.sum()) + less.count))
        layers.append(replace(layer, weights=weights, global_shrinkage=tau))
    model = replace(point.model, connections=masks, removed=tuple(removed))
    return replace(point, model=model, factors=replace(point.factors, layers=tuple(layers)))


def assert_missing(model: BowTieModel, factors: GlobalFactors) -> None:
    """Weights that do not exist are zero to the bit, the others vary."""
    for layer, mask in zip(factors.layers, model.connections, strict=True):
        there = with_bias(mask)
        both = there[:, :, None] & there[:, None, :]
        assert not layer.weights.mean[~there].any()
        assert not layer.weights.covariance[~both].any()
        assert np.all(np.diagonal(layer.weights.covariance, axis1=1, axis2=2)[there] > 0.0)


# ------------------------------------------------------------------------------------------------
# Stationarity
# ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def compiled_gradient(hidden: tuple[int, ...], family: str) -> Any:
    template = masked(builders.random_point(np.random.default_rng(0), hidden, family))

    def value(moving: Any, still: Any, *arrays: Any) -> Any:
        rows = Rows(inputs=arrays[0], targets=arrays[1], weights=arrays[2])
        return autodiff.bound_value(template, moving, still, rows)

    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return jax.jit(jax.grad(value), compiler_options=options)


def gradient(point: Point, family: str, names: tuple[str, ...]) -> dict[str, dict[str, np.ndarray]]:
    """Gradient of the bound in what exists: entries of missing weights are left out."""
    still, rows = autodiff.free_parameters(point), point.rows
    moving = {name: still.pop(name) for name in names}
    compiled = compiled_gradient(point.model.architecture.hidden, family)
    found = compiled(moving, still, rows.inputs, rows.targets, rows.weights)
    found = jax.tree.map(np.array, found)
    for index, mask in enumerate(point.model.connections):
        there = with_bias(mask)
        parts = found.get("weights", {})
        if parts:
            parts[f"mean {index}"][~there] = 0.0
            parts[f"covariance {index}"][~(there[:, :, None] & there[:, None, :])] = 0.0
        for factor in ("local_shrinkage", "slab"):
            for key in (f"concentration {index}", f"scale {index}", f"rate {index}"):
                if key in found.get(factor, {}):
                    found[factor][key][~mask] = 0.0
    return found


@pytest.mark.parametrize("family", COMPILED)
def test_updates_are_stationary(family: str, rng: np.random.Generator) -> None:
    """Two hidden layers of unequal widths, two outputs: zero after the update, not before."""
    names = (*MOVED, *LOCAL) if family == "student_t" else MOVED
    names = (*names, "slab") if family == SLAB_FAMILY else names
    point = masked(builders.random_point(rng, (4, 3), family))
    before = gradient(point, family, names)
    for name in names:
        updated = builders.UPDATES[name](point)
        if family == "gaussian" and name != "weights":
            assert not before[name]
            continue
        after = gradient(updated, family, names)[name]
        tolerance = SEARCHED if (family, name) == ("gig", "hyperparameters") else STATIONARY
        assert after.keys() == before[name].keys() != set()
        for key, slope in before[name].items():
            scale, left = np.abs(slope).max(), np.abs(after[key]).max()
            assert scale > 1e-4, f"{name} {key} starts at its optimum"
            assert left <= tolerance * (1.0 + scale), f"{name} {key}: {left} of {scale} left"
        assert_missing(updated.model, updated.factors)


# ------------------------------------------------------------------------------------------------
# No step down, and zeros stay zero
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", builders.ALL_FAMILIES)
@pytest.mark.parametrize("hidden", [(), (4, 3)], ids=str)
def test_no_single_update_lowers_the_bound(
    hidden: tuple[int, ...], family: str, rng: np.random.Generator
) -> None:
    point = masked(builders.random_point(rng, hidden, family, n=6), gone=4)
    names = list(builders.UPDATES)
    before = start_value = float(builders.bound_of(point).total)
    for name in [*rng.permutation(names), *rng.choice(names, size=25)]:
        point = builders.UPDATES[name](point)
        after = float(builders.bound_of(point).total)
        assert after >= before - ROUNDING * max(1.0, abs(before)), name
        before = after
    assert before > start_value + 1.0
    assert_missing(point.model, point.factors)


@pytest.mark.parametrize("family", builders.ALL_FAMILIES)
@pytest.mark.parametrize("hidden", [(4,), (3, 5)], ids=str)
def test_missing_weights_stay_away_through_momentum_and_em(
    hidden: tuple[int, ...], family: str, rng: np.random.Generator
) -> None:
    """From a start that has them: the first sweep takes them out."""
    model = builders.fixed_model(hidden, family, gate_temperature=0.3)
    model = replace(model, connections=masks_of(model))
    rows = builders.random_rows(rng, model, 25)

    def look(progress: Progress) -> bool:
        assert_missing(progress.model, progress.factors)
        return False

    factors = initialize(model, rows, rng, init="laplace")
    result = fit(model, rows, factors, max_iter=15, tol=0.0, block_size=10, callback=look)
    history = np.asarray(result.elbo_history)
    assert result.status is Status.ITERATION_LIMIT
    assert np.all(np.diff(history) >= -ROUNDING * np.abs(history[:-1]))
    for layer, mask in zip(result.factors.layers, model.connections, strict=True):
        tau = layer.global_shrinkage
        if isinstance(tau, GeneralizedInverseGaussian):
            assert tau.order == model.prior.global_shrinkage.order - 0.5 * int(mask.sum())


@pytest.mark.parametrize("family", builders.ALL_FAMILIES)
def test_connections_that_are_all_there_change_nothing(
    family: str, rng: np.random.Generator
) -> None:
    model = builders.fixed_model((4, 3), family, gate_temperature=0.3)
    rows = builders.random_rows(rng, model, 25)
    factors = initialize(model, rows, rng, init="laplace")
    whole = tuple(np.ones(layer.weights.mean[:, 1:].shape, bool) for layer in factors.layers)
    both = (replace(model, connections=connections) for connections in (None, whole))
    first, second = (fit(network, rows, factors, max_iter=6) for network in both)
    np.testing.assert_allclose(second.elbo_history, first.elbo_history, rtol=1e-12)
    for a, b in zip(first.factors.layers, second.factors.layers, strict=True):
        np.testing.assert_allclose(b.weights.mean, a.weights.mean, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------------------------
# Exact cases
# ------------------------------------------------------------------------------------------------


def test_lines_through_some_inputs_are_bayesian_regression(rng: np.random.Generator) -> None:
    """Each output has inputs of its own; posterior to 1e-6 and evidence to 1e-5 as with all."""
    noise, inputs = np.array([0.3, 0.8]), rng.normal(size=(30, 4))
    mask = np.array([[True, False, True, False], [False, True, True, True]])
    lines = np.where(mask, rng.normal(size=(2, 4)), 0.0)
    targets = inputs @ lines.T + rng.normal(size=(30, 2)) * np.sqrt(noise)
    model = build_model(
        build_architecture(4, (), 2),
        prior="gaussian",
        global_parameters={"variance": 2.0},
        local_parameters={"variance": 0.3},
        output_noise=(HELD, HELD * noise),
        bias_variance=1.7,
        scale_with_size=False,
    )
    model, rows = replace(model, connections=(mask,)), build_rows(inputs, targets)
    start_at = initialize(model, rows, 0, init="laplace")
    result = fit(model, rows, start_at, max_iter=60, tol=1e-14, accelerate=False)
    evidence = 0.0
    for d in range(2):
        there = np.flatnonzero(with_bias(mask)[d])
        design = np.column_stack([np.ones(30), inputs])[:, there]
        prior = np.diag([1.7, *[0.6] * int(mask[d].sum())])
        covariance = np.linalg.inv(np.linalg.inv(prior) + design.T @ design / noise[d])
        mean = covariance @ design.T @ targets[:, d] / noise[d]
        found = result.factors.layers[0].weights
        np.testing.assert_allclose(found.mean[d, there], mean, rtol=1e-6)
        np.testing.assert_allclose(
            found.covariance[d][np.ix_(there, there)], covariance, rtol=1e-6, atol=1e-9
        )
        marginal = noise[d] * np.eye(30) + design @ prior @ design.T
        evidence += stats.multivariate_normal(np.zeros(30), marginal).logpdf(targets[:, d])
    assert_missing(model, result.factors)
    assert result.elbo_history[-1] == pytest.approx(evidence, abs=1e-5)


@pytest.mark.parametrize("family", builders.ALL_FAMILIES)
def test_an_input_that_leads_nowhere_is_as_good_as_absent(
    family: str, rng: np.random.Generator
) -> None:
    """The same bound, sweep by sweep, as in a network of two inputs instead of three."""
    model = builders.fixed_model((4, 3), family, gate_temperature=0.3)
    rows = builders.random_rows(rng, model, 20)
    factors = initialize(model, rows, rng, init="laplace")
    masks = [np.ones(layer.weights.mean[:, 1:].shape, bool) for layer in factors.layers]
    masks[0][:, 1] = False
    shorter = replace(model, architecture=build_architecture(2, (4, 3), 2))
    first, columns = factors.layers[0], np.array([0, 1, 3])
    local = first.local_shrinkage
    if isinstance(local, GeneralizedInverseGaussian):
        local = replace(local, scale=local.scale[:, [0, 2]])
    slab = map_arrays(lambda x: x[:, [0, 2]], first.slab_variance)
    weights = GaussianRows(
        mean=first.weights.mean[:, columns],
        covariance=first.weights.covariance[:, columns][:, :, columns],
    )
    less = replace(first, weights=weights, local_shrinkage=local, slab_variance=slab)
    # In the longer network the start says that the weights are zero, as those that are gone are.
    first.weights.mean[:, 2] = 0.0
    first.weights.covariance[:, 2, :] = first.weights.covariance[:, :, 2] = 0.0
    settings = {"max_iter": 8, "tol": 0.0}
    found = fit(replace(model, connections=tuple(masks)), rows, factors, **settings)
    expected = fit(
        shorter,
        replace(rows, inputs=rows.inputs[:, [0, 2]]),
        replace(factors, layers=(less, *factors.layers[1:])),
        **settings,
    )
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=1e-9)


def weight_block(model: BowTieModel, factors: GlobalFactors) -> float:
    """The bound's terms of W and its scales, without the entropy of q(W) and the biases."""
    empty = LocalFactors(activations=(), gate_probability=(), gate_entropy=(), tilt=())
    moments = chain_moments((), np.zeros((1, 3)))
    terms = elbo(model, factors, block_statistics(empty, moments, np.zeros((1, 2)), np.zeros(1)))
    weights = factors.layers[0].weights
    rest = stats.norm(0.0, np.sqrt(1.3)).logpdf(weights.mean[:, 0]) + entropy(weights)
    total = terms.weights + terms.global_shrinkage + terms.local_shrinkage
    return float(total - np.sum(rest))


@pytest.mark.parametrize("what", ["tau", "psi"])
def test_scales_of_known_weights_give_the_marginal_of_those_that_exist(
    what: str, rng: np.random.Generator
) -> None:
    """One Student-t vector for tau ~ IG(1.5, 0.5), Laplace variables for psi ~ Exp(0.8)."""
    fixed = build_shrinkage("gaussian", variance=0.7)
    tau = build_shrinkage("student_t", order=-1.5, scale=0.5) if what == "tau" else fixed
    psi = build_shrinkage("laplace", rate=0.8) if what == "psi" else fixed
    model = builders.fixed_model(())
    prior = replace(model.prior, global_shrinkage=tau, local_shrinkage=(psi,))
    mask = np.array([[True, False, True], [True, True, False]])
    model = replace(model, prior=prior, connections=(mask,))
    mean = np.where(with_bias(mask), rng.normal(size=(2, 4)), 0.0)
    factors = build_factors(model, [mean], rng)
    sharp = 1e-14 * with_bias(mask)[:, :, None] * np.eye(4)
    weights = GaussianRows(mean=mean, covariance=sharp)
    factors = replace(factors, layers=(replace(factors.layers[0], weights=weights),))
    values = mean[:, 1:][mask]
    if what == "tau":
        updated = update_global_shrinkage(model, factors)
        student = stats.multivariate_t(np.zeros(4), 0.5 / 1.5 * 0.7 * np.eye(4), df=3.0)
        expected = float(student.logpdf(values))
    else:
        updated = update_local_shrinkage(model, factors)
        # W ~ N(0, 0.7 psi) with psi ~ Exp(0.8) has the density of Laplace(sqrt(0.7 / 1.6)).
        expected = stats.laplace(scale=np.sqrt(0.7 / 1.6)).logpdf(values).sum()
    assert weight_block(model, updated) == pytest.approx(expected, abs=1e-8)
