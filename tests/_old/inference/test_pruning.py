"""A pruned network against dense formulas, against the network it was, and against draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from bowtienet._old.data.rows import build_rows
from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions.gaussian import GaussianRows, sample
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.global_step import prior_precision, update_local_shrinkage
from bowtienet._old.inference.pruning import (
    Pruning,
    check_pruning,
    condition,
    prune,
    restore_shape,
)
from bowtienet._old.inference.start import initialize
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, build_model
from bowtienet._old.posterior.factors import GlobalFactors, check_factors
from bowtienet._old.posterior.selection import Selection, select
from bowtienet._old.prediction.predictive import Predictive, predict
from tests._old import builders

ALL = 0.9
"""A rate at which every weight that exists is chosen: only dead units go."""
NONE = 1e-300
ROUNDING = 1e-10
LIMIT = 5.0
"""Standard errors; a right program exceeds them in a given comparison with odds of 6e-7."""


def random_network(
    rng: np.random.Generator, hidden: tuple[int, ...], family: str = "student_t"
) -> tuple[BowTieModel, GlobalFactors]:
    """Generic factors with scales as a fit leaves them."""
    model = builders.fixed_model(hidden, family)
    return model, update_local_shrinkage(model, builders.random_factors(rng, model))


def without(
    model: BowTieModel, factors: GlobalFactors, masks: Sequence[np.ndarray]
) -> tuple[BowTieModel, GlobalFactors]:
    """The network in which weights outside the masks are exactly zero."""
    layers = []
    for layer, mask in zip(factors.layers, masks, strict=True):
        there = np.column_stack([np.ones(len(mask), bool), mask])
        weights = GaussianRows(
            mean=np.where(there, layer.weights.mean, 0.0),
            covariance=np.where(
                there[:, :, None] & there[:, None, :], layer.weights.covariance, 0.0
            ),
        )
        layers.append(replace(layer, weights=weights))
    return replace(model, connections=tuple(masks)), replace(factors, layers=tuple(layers))


def full_masks(model: BowTieModel) -> list[np.ndarray]:
    return [np.ones((above, below), bool) for below, above in pairwise(model.architecture.widths)]


# ------------------------------------------------------------------------------------------------
# Conditioning
# ------------------------------------------------------------------------------------------------


def slow_condition(
    mean: np.ndarray, covariance: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """m_k - B_kr B_rr^{-1} m_r and B_kk - B_kr B_rr^{-1} B_rk of one row, zero elsewhere."""
    k, r = np.flatnonzero(kept), np.flatnonzero(~kept)
    gain = covariance[np.ix_(k, r)] @ np.linalg.inv(covariance[np.ix_(r, r)])
    found_mean, found = np.zeros_like(mean), np.zeros_like(covariance)
    found_mean[k] = mean[k] - gain @ mean[r]
    found[np.ix_(k, k)] = covariance[np.ix_(k, k)] - gain @ covariance[np.ix_(r, k)]
    return found_mean, found


@pytest.mark.parametrize("size", [1, 4, 30])
def test_conditioning_against_the_dense_formula(size: int, rng: np.random.Generator) -> None:
    """Widths below and above that from which matrices are inverted by halves."""
    covariance = builders.random_covariance(rng, 8, size + 1)
    weights = GaussianRows(mean=rng.normal(size=(8, size + 1)), covariance=covariance)
    keep = rng.random((8, size)) < 0.5
    keep[0], keep[1] = True, False
    found, lost = condition(weights, keep)
    assert lost[0] == 0.0
    for row in range(8):
        kept = np.concatenate([[True], keep[row]])
        mean, expected = slow_condition(weights.mean[row], covariance[row], kept)
        np.testing.assert_allclose(found.mean[row], mean, rtol=1e-9, atol=1e-11)
        moved = weights.mean[row] - mean
        far = moved @ np.linalg.solve(covariance[row], moved)
        np.testing.assert_allclose(lost[row], far, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(found.covariance[row], expected, rtol=1e-9, atol=1e-11)
        assert not found.mean[row][~kept].any()
        assert not found.covariance[row][~kept].any()
        assert not found.covariance[row][:, ~kept].any()
    np.testing.assert_array_equal(found.mean[0], weights.mean[0])
    np.testing.assert_array_equal(found.covariance[0], covariance[0])


def test_conditioning_leaves_its_argument_and_knows_weights_that_are_gone(
    rng: np.random.Generator,
) -> None:
    """In two steps as in one, whatever is zero already."""
    covariance = builders.random_covariance(rng, 5, 7)
    weights = GaussianRows(mean=rng.normal(size=(5, 7)), covariance=covariance)
    mean_before, before = weights.mean.copy(), covariance.copy()
    first, second = (rng.random((5, 6)) < 0.6 for _ in range(2))
    found, _ = condition(condition(weights, first)[0], second)
    at_once, _ = condition(weights, first & second)
    np.testing.assert_allclose(found.mean, at_once.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.covariance, at_once.covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(weights.mean, mean_before)
    np.testing.assert_array_equal(weights.covariance, before)


# ------------------------------------------------------------------------------------------------
# What is left predicts as before
# ------------------------------------------------------------------------------------------------


def assert_same_prediction(found: Predictive, expected: Predictive, all_parts: bool) -> None:
    """Means and total variances; with all parts also what is known and what is chance."""
    np.testing.assert_allclose(found.mean, expected.mean, rtol=ROUNDING, atol=ROUNDING)
    total, before = (p.signal_variance + p.noise_variance for p in (found, expected))
    np.testing.assert_allclose(total, before, rtol=ROUNDING)
    if all_parts:
        known, before = (p.signal_variance - p.chance_variance for p in (found, expected))
        np.testing.assert_allclose(known, before, rtol=ROUNDING, atol=ROUNDING)
        chance, before = (p.chance_variance + p.noise_variance for p in (found, expected))
        np.testing.assert_allclose(chance, before, rtol=ROUNDING)


def zero_masks(rng: np.random.Generator, model: BowTieModel, where: str) -> list[np.ndarray]:
    """Masks in which units have lost one side, or random ones."""
    masks = full_masks(model)
    for index in range(len(masks) - 1):
        if where in ("incoming", "both"):
            masks[index][0] = False
        if where in ("outgoing", "both"):
            masks[index + 1][:, -1] = False
    if where == "random":
        masks = [mask & (rng.random(mask.shape) < 0.55) for mask in masks]
    return masks


@pytest.mark.parametrize("where", ["incoming", "outgoing", "both", "random"])
@pytest.mark.parametrize("hidden", builders.HIDDEN, ids=str)
def test_dead_units_go_without_a_trace(
    hidden: tuple[int, ...], where: str, rng: np.random.Generator
) -> None:
    inputs, shrunk = rng.normal(0.0, 2.0, size=(40, 3)), 0
    for _ in range(10 if where == "random" else 1):
        network = random_network(rng, hidden)
        model, factors = without(*network, zero_masks(rng, network[0], where))
        smaller, left, pruning = prune(model, factors, false_sign_rate=ALL)
        check_factors(smaller.architecture, left)
        check_pruning(smaller, pruning)
        shrunk += sum(smaller.architecture.hidden) < sum(hidden)
        found = predict(smaller, left, inputs[:, pruning.inputs])
        before = predict(model, factors, inputs)
        assert_same_prediction(found, before, all_parts=len(hidden) == 1)
    assert shrunk > 0


@pytest.mark.parametrize("hidden", builders.HIDDEN, ids=str)
def test_a_network_that_no_input_reaches_is_a_constant(
    hidden: tuple[int, ...], rng: np.random.Generator
) -> None:
    network = random_network(rng, hidden)
    masks = full_masks(network[0])
    masks[0][:] = False
    model, factors = without(*network, masks)
    smaller, left, pruning = prune(model, factors, false_sign_rate=ALL)
    assert smaller.architecture.widths == (0, 2)
    assert pruning.inputs.size == 0
    found = predict(smaller, left, np.zeros((6, 0)))
    before = predict(model, factors, rng.normal(size=(6, 3)))
    assert_same_prediction(found, before, all_parts=len(hidden) == 1)


def test_without_hidden_layers_weights_go_by_conditioning(rng: np.random.Generator) -> None:
    model, factors = random_network(rng, ())
    smaller, left, pruning = prune(model, factors, false_sign_rate=0.05)
    selection = select(model, factors, 0.05)
    assert 0 < smaller.n_weights() < 6
    for d in range(2):
        kept = np.concatenate([[True], selection.connections[0][d]])
        weights = factors.layers[0].weights
        mean, covariance = slow_condition(weights.mean[d], weights.covariance[d], kept)
        columns = np.concatenate([[0], 1 + pruning.inputs])
        np.testing.assert_allclose(left.layers[0].weights.mean[d], mean[columns], atol=1e-12)
        np.testing.assert_allclose(
            left.layers[0].weights.covariance[d], covariance[np.ix_(columns, columns)], atol=1e-12
        )


def test_a_constant_against_draws(rng: np.random.Generator) -> None:
    """Mean and variance of 400 000 networks whose first weights are zero, five errors each."""
    n = 400_000
    model, factors = random_network(rng, (4,))
    steady = [
        replace(layer, noise_variance=InverseGamma(concentration=30.0 + s, scale=20.0 * s))
        for layer, s in zip(
            factors.layers, (rng.uniform(0.5, 2, 4), rng.uniform(1, 2, 2)), strict=True
        )
    ]
    factors = replace(factors, layers=tuple(steady))
    smaller, left, _ = prune(model, factors, false_sign_rate=NONE)
    found = predict(smaller, left, np.zeros((1, 0)))
    kept = np.array([True, False, False, False])
    first, second = factors.layers
    hidden = np.empty((n, 4))
    for d in range(4):
        weights = first.weights
        mean, covariance = slow_condition(weights.mean[d], weights.covariance[d], kept)
        z = rng.normal(mean[0], np.sqrt(covariance[0, 0]), size=n)
        gate = rng.random(n) < expit(z / model.gate_temperature)
        noise = first.noise_variance
        moved = weights.mean[d] - mean
        far = moved @ np.linalg.solve(weights.covariance[d], moved)
        relieved = prior_precision(model, first)[d] @ (weights.mean[d] ** 2 - mean**2)
        # What the weights had explained is noise now: residual / 2, from residual · E[1/eta²].
        more = 0.5 * max(far + relieved, 0.0) * noise.scale[d] / noise.concentration[d]
        eta = (noise.scale[d] + more) / rng.gamma(noise.concentration[d], size=n)
        hidden[:, d] = gate * z + np.sqrt(eta) * rng.standard_normal(n)
    rows = sample(second.weights, rng, (n,))
    noise = second.noise_variance
    eta = noise.scale / rng.gamma(noise.concentration, size=(n, 2))
    y = rows[:, :, 0] + np.einsum("ndk,nk->nd", rows[:, :, 1:], hidden)
    y += np.sqrt(eta) * rng.standard_normal((n, 2))
    z_mean = (y.mean(axis=0) - found.mean[0]) / (y.std(axis=0) / np.sqrt(n))
    squares = (y - y.mean(axis=0)) ** 2
    total = (found.signal_variance + found.noise_variance)[0]
    z_variance = (squares.mean(axis=0) - total) / (squares.std(axis=0) / np.sqrt(n))
    assert np.max(np.abs([z_mean, z_variance])) < LIMIT


# ------------------------------------------------------------------------------------------------
# What is left
# ------------------------------------------------------------------------------------------------


def expected_gone(selection: Selection, index: int, n_layers: int) -> int:
    """Weights of a hidden layer that went although what they lead from stayed."""
    if index == len(selection.connections) - 1 or n_layers < len(selection.connections):
        return 0
    mask = selection.connections[index]
    living = range(mask.shape[1])
    if index:
        living = np.flatnonzero(selection.units[index - 1])
    return sum(1 for d in range(mask.shape[0]) for k in living if not mask[d, k])


@pytest.mark.parametrize("family", builders.ALL_FAMILIES)
@pytest.mark.parametrize("hidden", [(), *builders.HIDDEN], ids=str)
def test_what_is_left_is_a_network(
    hidden: tuple[int, ...], family: str, rng: np.random.Generator
) -> None:
    for rate in (0.05, 0.15, 0.3):
        model, factors = random_network(rng, hidden, family)
        smaller, left, pruning = prune(model, factors, false_sign_rate=rate)
        selection = select(model, factors, rate)
        check_factors(smaller.architecture, left)
        check_pruning(smaller, pruning)
        assert smaller.n_weights() == sum(int(mask.sum()) for mask in selection.connections)
        assert len(smaller.prior.local_shrinkage) == len(left.layers)
        for index, layer in enumerate(left.layers):
            mask = smaller.connections[index]
            variances = np.diagonal(layer.weights.covariance, axis1=1, axis2=2)[:, 1:]
            np.testing.assert_array_equal(variances > 0.0, mask)
            np.testing.assert_array_equal(layer.weights.mean[:, 1:] != 0.0, mask)
            tau, psi = layer.global_shrinkage, layer.local_shrinkage
            if isinstance(tau, GeneralizedInverseGaussian):
                prior = smaller.prior.global_shrinkage
                gone = smaller.removed_weights(index).count
                assert tau.order == prior.order - 0.5 * (int(mask.sum()) + gone)
                assert gone == expected_gone(selection, index, len(left.layers))
                assert np.shape(psi.scale) == mask.shape
                assert np.all(np.isfinite(gig.mean_inverse(psi)))
            assert layer.noise_variance.scale.shape == mask.shape[:1]
        if hidden and len(left.layers) > 1:
            width = smaller.architecture.hidden[-1]
            assert left.shared_covariance.shape == (width, width)


@pytest.mark.parametrize("family", ["student_t", "regularized_horseshoe"])
def test_the_scales_of_what_is_left_stay_with_their_weights(
    family: str, rng: np.random.Generator
) -> None:
    model, factors = random_network(rng, (4, 3), family)
    smaller, left, pruning = prune(model, factors, false_sign_rate=0.1)
    places = [pruning.inputs, *pruning.units, np.arange(2)]
    for index, (below, above) in enumerate(pairwise(places)):
        psi = factors.layers[index].local_shrinkage.scale[np.ix_(above, below)]
        mask = smaller.connections[index]
        np.testing.assert_array_equal(left.layers[index].local_shrinkage.scale[mask], psi[mask])
        slab, kept = factors.layers[index].slab_variance, left.layers[index].slab_variance
        assert (slab is None) == (kept is None) == (family == "student_t")
        if slab is not None:
            np.testing.assert_array_equal(kept.scale, slab.scale[np.ix_(above, below)])
            assert np.shape(kept.concentration) == mask.shape
        if index < 2:
            noise = factors.layers[index].noise_variance.scale[above]
            assert np.all(left.layers[index].noise_variance.scale >= noise)


def test_what_weights_had_explained_becomes_noise(rng: np.random.Generator) -> None:
    """In regression: half of what the sum of squares grows by, to the digit of convergence."""
    inputs = rng.normal(size=(200, 4)) @ (np.eye(4) + 0.4)
    targets = inputs @ [[1.0], [0.5], [0.0], [0.02]] + 0.3 * rng.normal(size=(200, 1))
    model = build_model(build_architecture(4, (), 1), prior="gaussian")
    rows = build_rows(inputs, targets)
    fitted = fit(model, rows, initialize(model, rows, 0), max_iter=500, tol=0.0)
    for rate in (1e-3, 1e-12, 1e-60):
        smaller, left, pruning = prune(fitted.model, fitted.factors, false_sign_rate=rate)
        assert smaller.n_weights() < 4
        squares = []
        for factors, columns in ((fitted.factors, np.arange(4)), (left, pruning.inputs)):
            weights = factors.layers[0].weights.mean[0]
            error = targets[:, 0] - weights[0] - inputs[:, columns] @ weights[1:]
            squares.append(np.sum(error**2))
        scales = [f.layers[0].noise_variance.scale[0] for f in (fitted.factors, left)]
        np.testing.assert_allclose(
            scales[1] - scales[0], 0.5 * (squares[1] - squares[0]), rtol=1e-6
        )


# ------------------------------------------------------------------------------------------------
# Places
# ------------------------------------------------------------------------------------------------


def test_shape_of_draws_of_constants_and_of_whole_networks(rng: np.random.Generator) -> None:
    model, factors = random_network(rng, (4, 3))
    values = [layer.weights.mean for layer in factors.layers]
    assert all(a is b for a, b in zip(restore_shape(values, None), values, strict=True))
    _, left, pruning = prune(model, factors, false_sign_rate=NONE)
    draws = [np.stack([layer.weights.mean, 2.0 * layer.weights.mean]) for layer in left.layers]
    whole = restore_shape(draws, pruning)
    assert [full.shape for full in whole] == [(2, 4, 4), (2, 3, 5), (2, 2, 4)]
    assert not whole[0].any()
    assert not whole[1].any()
    np.testing.assert_array_equal(whole[2][:, :, 0], draws[0][:, :, 0])
    assert not whole[2][:, :, 1:].any()
    constant, _, again = prune(*prune(model, factors, false_sign_rate=NONE)[:2])
    check_pruning(constant, again)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": np.array([0, 9])},
        {"inputs": np.array([0])},
        {"units": (np.array([0, 4]),)},
        {"architecture": build_architecture(3, (4, 3), 2)},
    ],
    ids=str,
)
def test_a_pruning_that_is_not_the_networks_is_refused(change: dict) -> None:
    model = builders.fixed_model((2,), n_inputs=2)
    pruning = Pruning(
        architecture=build_architecture(3, (4,), 2),
        inputs=np.array([0, 2]),
        units=(np.array([1, 3]),),
    )
    check_pruning(model, pruning)
    check_pruning(model, None)
    with pytest.raises(ValueError, match="pruning"):
        check_pruning(model, replace(pruning, **change))
    wrong = replace(model, connections=(np.ones((2, 3), bool), np.ones((2, 2), bool)))
    with pytest.raises(ValueError, match="connections"):
        check_pruning(wrong, pruning)
