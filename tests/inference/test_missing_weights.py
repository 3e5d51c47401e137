"""Coordinate ascent in networks that lack weights, as pruned ones do.

`test_monotone` and `test_exact_cases` have such networks too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bowtienet._arrays import map_arrays
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.inference.ascend import Ascent, ascend
from bowtienet.model.architecture import build_architecture
from bowtienet.posterior.initialize import initialize
from tests.autodiff import Parameters, assert_stationary, outcome_gradient
from tests.builders import (
    ALL_FAMILIES,
    UPDATES,
    M,
    Point,
    assert_missing,
    masked,
    network_of,
    random_point,
    where_there,
    with_bias,
)

MOVED = ("weights", "global_shrinkage", "local_shrinkage", "hyperparameters")
SLAB_FAMILY = "regularized_horseshoe"
DIFFERENT = ("student_t", "gig", SLAB_FAMILY, "gaussian")
"""Families that differ in what a missing weight means for them."""
families = pytest.mark.parametrize("family", DIFFERENT)


def start_point(rng: np.random.Generator, hidden: tuple[int, ...], family: str) -> Point:
    """Where `ascend` begins, all weights included."""
    point = random_point(rng, hidden, family, n=25)
    point = replace(point, model=replace(point.model, temperature=0.3))
    start = initialize(network_of(point, 0).model, point.rows, rng, M, "laplace")
    return replace(point, factors=start)


def fit(point: Point, sweeps: int = 12) -> Ascent:
    return ascend(point.model, point.factors, point.rows, max_iter=sweeps, tol=0.0)


def of_present(slopes: Parameters, factor: str, masks: tuple[np.ndarray, ...]) -> Parameters:
    """Gradient in a factor without the entries of missing weights, which are set to zero."""
    result = {}
    for key, values in slopes[factor].items():
        there = np.array(True)
        if factor in ("weights", "local_shrinkage", "slab"):
            there = masks[int(key[-1])]
        if factor == "weights":
            there = with_bias(there)
            if key.startswith("covariance"):
                there = there[:, :, None] & there[:, None, :]
        result[key] = np.where(there, values, 0.0)
    return result


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=[pytest.mark.slow] * (family not in DIFFERENT))
        for family in ALL_FAMILIES
    ],
)
def test_updates_are_stationary(family, rng):
    """Local factors and noise ask nobody which weights exist, so their updates are not here."""
    names = {"gaussian": MOVED[:1], SLAB_FAMILY: (*MOVED, "slab")}.get(family, MOVED)
    point = masked(random_point(rng, (4, 3), family))
    masks, gradient = point.model.connections, outcome_gradient(point, names)
    before = gradient(point)
    for name in names:
        updated = UPDATES[name](point)
        # A rate that is searched for is known to the root of rounding only.
        tolerance = 1e-6 if (family, name) == ("gig", "hyperparameters") else 1e-10
        slopes = (of_present(each, name, masks) for each in (before, gradient(updated)))
        assert_stationary(*slopes, tolerance)
        assert_missing(updated.model, updated.factors)


@families
def test_missing_weights_stay_away_through_momentum_and_em(family, rng):
    """From a start that has them: the first sweep takes them out."""
    point = start_point(rng, (3, 5), family)
    model = replace(point.model, connections=masked(point).model.connections)
    point = replace(point, model=model)
    for sweeps in (1, 4, 15):
        ascent = fit(point, sweeps)
        assert_missing(model, ascent.posterior)
    for layer, mask in zip(ascent.posterior.layers, model.connections, strict=True):
        tau = layer.global_shrinkage
        if isinstance(tau, GeneralizedInverseGaussian):
            assert tau.order == model.global_shrinkage.order - 0.5 * int(mask.sum())
    # And side by side as one by one.
    for index in range(M):
        alone = fit(network_of(replace(point, local=None), index), 15).elbo_history[0]
        np.testing.assert_allclose(alone, ascent.elbo_history[index], rtol=1e-8)


@families
def test_an_input_that_leads_nowhere_is_as_good_as_absent(family, rng):
    """The same bound, sweep by sweep, as in a network of two inputs instead of three."""
    point = start_point(rng, (4, 3), family)
    first, *others = point.factors.layers
    masks = [np.ones(layer.weights.mean.shape[1:], bool)[:, 1:] for layer in point.factors.layers]
    masks[0][:, 1] = False
    # In the longer network the start says that the weights are zero, as those that are gone are.
    first = replace(first, weights=where_there(first.weights, masks[0]))
    columns, inputs = np.array([0, 1, 3]), np.array([0, 2])
    less = replace(
        first,
        weights=GaussianRows(
            mean=first.weights.mean[..., columns],
            covariance=first.weights.covariance[..., columns][..., columns, :],
        ),
        local_shrinkage=map_arrays(lambda x: x[..., inputs], first.local_shrinkage),
        slab_variance=map_arrays(lambda x: x[..., inputs], first.slab_variance),
    )
    longer = replace(
        point,
        model=replace(point.model, connections=tuple(masks)),
        factors=replace(point.factors, layers=(first, *others)),
    )
    shorter = replace(
        point,
        model=replace(point.model, architecture=build_architecture(2, (4, 3), 2)),
        rows=replace(point.rows, inputs=point.rows.inputs[:, inputs]),
        factors=replace(point.factors, layers=(less, *others)),
    )
    np.testing.assert_allclose(fit(longer).elbo_history, fit(shorter).elbo_history, rtol=1e-9)
