"""A pruned network against dense formulas, against the network it was, and against draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from bowtienet._arrays import map_arrays
from bowtienet.distributions.gaussian import GaussianRows, sample
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.inference.ascend import ascend
from bowtienet.inference.global_step import update_local_shrinkage
from bowtienet.model.model import BowTieModel, Rows
from bowtienet.outcomes import GAUSSIAN, Binary, Outcome, StudentT
from bowtienet.posterior.factors import Posterior, network
from bowtienet.posterior.prune import condition, prune
from bowtienet.posterior.selection import NetworkSelection, select
from bowtienet.prediction.variational import output_moments, output_noise
from tests import builders
from tests.oracle_bridge import assert_equal

ALL = 0.9
"""A rate at which every weight that exists is chosen: only dead units go."""
NONE = 1e-300
ROUNDING = 1e-10
LIMIT = 5.0
"""Standard errors; a right program exceeds them in a given comparison with odds of 6e-7."""


def random_network(
    rng: np.random.Generator,
    hidden: tuple[int, ...],
    family: str = "student_t",
    outcome: Outcome = GAUSSIAN,
) -> tuple[BowTieModel, Posterior]:
    """One of two networks of generic factors, with scales as a fit leaves them."""
    n_outputs = 1 if isinstance(outcome, Binary) else 2
    model = builders.fixed_model(hidden, family, outcome=outcome, n_outputs=n_outputs)
    posterior = update_local_shrinkage(model, builders.random_factors(rng, model))
    shared, outcome = (
        map_arrays(lambda x: x[1:], part) for part in (model.global_shrinkage, model.outcome)
    )
    model = replace(model, global_shrinkage=shared, outcome=outcome)
    return model, network(posterior, 1)


def without(
    model: BowTieModel, posterior: Posterior, masks: Sequence[np.ndarray]
) -> tuple[BowTieModel, Posterior]:
    """The network in which weights outside the masks are exactly zero."""
    layers = [
        replace(layer, weights=builders.where_there(layer.weights, mask))
        for layer, mask in zip(posterior.layers, masks, strict=True)
    ]
    return replace(model, connections=tuple(masks)), replace(posterior, layers=tuple(layers))


def pruned(
    model: BowTieModel, posterior: Posterior, rate: float
) -> tuple[BowTieModel, Posterior, NetworkSelection]:
    selection = select(model, posterior, rate)
    return *prune(model, posterior, selection), selection


def full_masks(model: BowTieModel) -> list[np.ndarray]:
    return [np.ones((above, below), bool) for below, above in pairwise(model.architecture.widths)]


def slow_condition(
    mean: np.ndarray, covariance: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """m_k - B_kr B_rr^{-1} m_r and B_kk - B_kr B_rr^{-1} B_rk of one row, zero elsewhere."""
    k, r = np.flatnonzero(kept), np.flatnonzero(~kept)
    gain = covariance[np.ix_(k, r)] @ np.linalg.inv(covariance[np.ix_(r, r)])
    new_mean, new = np.zeros_like(mean), np.zeros_like(covariance)
    new_mean[k] = mean[k] - gain @ mean[r]
    new[np.ix_(k, k)] = covariance[np.ix_(k, k)] - gain @ covariance[np.ix_(r, k)]
    return new_mean, new


@pytest.mark.parametrize("size", [1, 4, 30])
def test_conditioning_against_the_dense_formula(size, rng):
    """Widths below and above that from which matrices are inverted by halves."""
    covariance = builders.random_covariance(rng, 8, size + 1)
    weights = GaussianRows(mean=rng.normal(size=(8, size + 1)), covariance=covariance)
    keep = rng.random((8, size)) < 0.5
    keep[0], keep[1] = True, False
    q = condition(weights, keep)
    for row in range(8):
        kept = np.concatenate([[True], keep[row]])
        mean, expected = slow_condition(weights.mean[row], covariance[row], kept)
        np.testing.assert_allclose(q.mean[row], mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(q.covariance[row], expected, rtol=1e-9, atol=1e-11)
        assert not q.mean[row][~kept].any()
        assert not q.covariance[row][~kept].any()
        assert not q.covariance[row][:, ~kept].any()
    np.testing.assert_array_equal(q.mean[0], weights.mean[0])
    np.testing.assert_array_equal(q.covariance[0], covariance[0])


def assert_same_prediction(
    smaller: tuple[BowTieModel, Posterior],
    inputs: np.ndarray,
    before: tuple[BowTieModel, Posterior],
    inputs_before: np.ndarray,
    *,
    both_parts: bool,
) -> None:
    """Means and variances; their two parts where no chance has moved into a bias."""
    now, then = output_moments(*smaller, inputs), output_moments(*before, inputs_before)
    np.testing.assert_allclose(now.mean, then.mean, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(
        now.epistemic + now.chance, then.epistemic + then.chance, rtol=ROUNDING
    )
    np.testing.assert_array_equal(output_noise(*smaller), output_noise(*before))
    if both_parts:
        np.testing.assert_allclose(now.chance, then.chance, rtol=ROUNDING)


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


@pytest.mark.parametrize(
    ("where", "hidden", "outcome"),
    [
        ("incoming", (4,), GAUSSIAN),
        ("incoming", (4, 3), StudentT()),
        ("outgoing", (4,), Binary()),
        ("outgoing", (3, 5, 2), GAUSSIAN),
        ("both", (4, 3), Binary()),
        ("random", (4,), StudentT()),
        ("random", (4, 3), GAUSSIAN),
        ("random", (3, 5, 2), GAUSSIAN),
    ],
    ids=str,
)
def test_dead_units_go_without_a_trace(where, hidden, outcome, rng):
    inputs, shrunk = rng.normal(0.0, 2.0, size=(40, 3)), 0
    for _ in range(10 if where == "random" else 1):
        whole = random_network(rng, hidden, outcome=outcome)
        whole = without(*whole, zero_masks(rng, whole[0], where))
        *smaller, selection = pruned(*whole, ALL)
        shrunk += sum(smaller[0].architecture.hidden) < sum(hidden)
        assert_same_prediction(
            smaller, inputs[:, selection.inputs], whole, inputs, both_parts=where == "outgoing"
        )
    assert shrunk > 0


@pytest.mark.parametrize("hidden", builders.HIDDEN, ids=str)
def test_a_network_that_no_input_reaches_is_a_constant(hidden, rng):
    whole = random_network(rng, hidden)
    masks = full_masks(whole[0])
    masks[0][:] = False
    whole = without(*whole, masks)
    *smaller, selection = pruned(*whole, ALL)
    assert smaller[0].architecture.widths == (0, 2)
    assert not selection.inputs.any()
    assert_same_prediction(
        smaller, np.zeros((6, 0)), whole, rng.normal(size=(6, 3)), both_parts=False
    )
    again = pruned(*smaller, NONE)
    map_arrays(np.testing.assert_array_equal, again[1], smaller[1])


def test_a_constant_against_draws(rng):
    """Mean and variance of 400 000 networks whose first weights are zero, five errors each."""
    n = 400_000
    model, posterior = random_network(rng, (4,))
    steady = [
        replace(layer, noise_variance=InverseGamma(concentration=30.0 + s, scale=20.0 * s))
        for layer, s in zip(
            posterior.layers, (rng.uniform(0.5, 2, (1, 4)), rng.uniform(1, 2, (1, 2))), strict=True
        )
    ]
    posterior = replace(posterior, layers=tuple(steady))
    smaller, left, _ = pruned(model, posterior, NONE)
    moments = output_moments(smaller, left, np.zeros((1, 0)))
    total = (moments.epistemic + moments.chance + output_noise(smaller, left))[0, 0]
    kept = np.array([True, False, False, False])
    first, second = (
        (layer.weights, map_arrays(lambda x: x[0], layer.noise_variance))
        for layer in posterior.layers
    )
    hidden = np.empty((n, 4))
    for d in range(4):
        weights, noise = first
        mean, covariance = slow_condition(weights.mean[0, d], weights.covariance[0, d], kept)
        z = rng.normal(mean[0], np.sqrt(covariance[0, 0]), size=n)
        gate = rng.random(n) < expit(z / model.temperature)
        eta = noise.scale[d] / rng.gamma(noise.concentration[d], size=n)
        hidden[:, d] = gate * z + np.sqrt(eta) * rng.standard_normal(n)
    weights, noise = second
    rows = sample(map_arrays(lambda x: x[0], weights), rng, (n,))
    eta = noise.scale / rng.gamma(noise.concentration, size=(n, 2))
    y = rows[:, :, 0] + np.einsum("ndk,nk->nd", rows[:, :, 1:], hidden)
    y += np.sqrt(eta) * rng.standard_normal((n, 2))
    z_mean = (y.mean(axis=0) - moments.mean[0, 0]) / (y.std(axis=0) / np.sqrt(n))
    squares = (y - y.mean(axis=0)) ** 2
    z_variance = (squares.mean(axis=0) - total) / (squares.std(axis=0) / np.sqrt(n))
    assert np.max(np.abs([z_mean, z_variance])) < LIMIT


@pytest.mark.parametrize(
    ("hidden", "family"),
    [
        ((), "student_t"),
        ((4,), "laplace"),
        ((4,), "gaussian"),
        ((4, 3), "regularized_horseshoe"),
        ((4, 3), "gig"),
        ((3, 5, 2), "horseshoe"),
        ((3, 5, 2), "student_t"),
    ],
    ids=str,
)
def test_what_is_left_is_a_network_with_the_scales_it_had(hidden, family, rng):
    sizes = set()
    for rate in (0.05, 0.15, 0.3):
        model, posterior = random_network(rng, hidden, family)
        smaller, left, selection = pruned(model, posterior, rate)
        sizes.add(sum(smaller.n_weights(index) for index in range(len(left.layers))))
        kept = [selection.inputs, *selection.units, np.ones(2, bool)]
        first = len(posterior.layers) - len(left.layers)
        widths = tuple(int(units.sum()) for units in kept[first:])
        assert smaller.architecture.widths == widths
        builders.assert_missing(smaller, left)
        layers = zip(left.layers, posterior.layers[first:], strict=True)
        for index, (layer, before) in enumerate(layers, start=first):
            below, above = kept[index], kept[index + 1]
            mask = smaller.connections[index - first]
            np.testing.assert_array_equal(mask, selection.connections[index][np.ix_(above, below)])
            noise = map_arrays(lambda x, a=above: x[:, a], before.noise_variance)
            assert_equal(layer.noise_variance, noise)
            slab = map_arrays(lambda x, a=above, b=below: x[:, a][:, :, b], before.slab_variance)
            assert_equal(layer.slab_variance, slab)
            assert layer.global_shrinkage is before.global_shrinkage
            psi = layer.local_shrinkage
            if isinstance(psi, GeneralizedInverseGaussian):
                scale = before.local_shrinkage.scale[:, above][:, :, below]
                np.testing.assert_array_equal(psi.scale, np.where(mask, scale, 1.0))
    assert len(sizes) > 1


@pytest.mark.parametrize(
    ("hidden", "family", "outcome"),
    [
        ((), "student_t", StudentT()),
        ((4,), "horseshoe", Binary()),
        ((4, 3), "regularized_horseshoe", GAUSSIAN),
        ((4, 3), "gig", StudentT()),
    ],
    ids=str,
)
def test_a_fit_goes_on_from_what_is_left(hidden, family, outcome, rng):
    """It only climbs, and the weights that went stay away."""
    model, posterior = random_network(rng, hidden, family, outcome)
    rows = builders.random_rows(rng, model, 60)
    for rate in (0.2, NONE):
        smaller, left, selection = pruned(model, posterior, rate)
        rows = Rows(
            inputs=rows.inputs[:, selection.inputs], targets=rows.targets, weights=rows.weights
        )
        result = ascend(smaller, left, rows, max_iter=20, tol=0.0)
        (history,) = result.elbo_history
        assert np.all(np.diff(history) >= -1e-9 * np.abs(history[:-1]))
        assert rate == NONE or history[-1] > history[0]
        builders.assert_missing(smaller, result.posterior)
        for index, layer in enumerate(result.posterior.layers):
            tau, prior = layer.global_shrinkage, smaller.global_shrinkage
            assert tau.order == prior.order - 0.5 * smaller.n_weights(index)
        model, posterior = smaller, result.posterior
    assert model.architecture.widths[0] == 0
