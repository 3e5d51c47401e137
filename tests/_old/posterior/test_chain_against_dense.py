"""The chain's recursions against one dense inverse of its block-tridiagonal joint precision.

The optimal q(a) of a row is a Gaussian whose precision is block tridiagonal over layers. The
oracle assembles that matrix term by term; its inverse holds every moment that the backward pass
(`update_activations`) and the forward pass (`chain_moments`) reach layer by layer.
"""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet._old.inference.global_step import update_shared_covariance
from bowtienet._old.inference.local_step import update_activations
from bowtienet._old.posterior.moments import chain_moments, last_covariance, own_squares
from bowtienet._old.prediction.predictive import without_targets
from tests._old import oracle_bridge
from tests._old.oracle_bridge import assert_close
from tests._old.oracles import plain_loops as oracle

WIDTHS = [(2, 3, 2, 2), (2, 3, 2, 3, 1), (1, 2, 4, 3, 2, 2)]


@pytest.fixture(params=[(w, t) for w in WIDTHS for t in ("known", "unknown")], ids=str)
def chain(request, rng):
    """Case, activations, moments, and the dense precision, mean and covariance of every row."""
    widths, targets = request.param
    case = oracle_bridge.random_case(rng, widths)
    y = case.y if targets == "known" else None
    prepare = without_targets if y is None else update_shared_covariance
    activations = update_activations(case.model, prepare(case.factors), case.x, y, case.memory)
    dense = []
    for n in range(case.x.shape[0]):
        y_n = None if y is None else y[n]
        precision, linear = oracle.dense_joint_precision(case.state, case.x[n], y_n, n)
        covariance = np.linalg.inv(precision)
        dense.append((precision, covariance @ linear, covariance))
    return case, activations, chain_moments(activations, case.x), dense


def rows_and_slices(chain):
    case, _, _, dense = chain
    return list(enumerate(dense)), oracle.layer_slices(case.state)


def test_means(chain):
    moments = chain[2]
    rows, slices = rows_and_slices(chain)
    for n, (_, mean, _) in rows:
        for layer, here in enumerate(slices):
            assert moments.inputs[layer + 1][n, 0] == 1.0
            assert_close(moments.inputs[layer + 1][n, 1:], mean[here])


def test_own_covariances(chain):
    _, activations, moments, _ = chain
    rows, slices = rows_and_slices(chain)
    own = [*moments.own, last_covariance(activations, moments)]
    assert len(own) == len(slices)
    for n, (_, _, covariance) in rows:
        for values, here in zip(own, slices, strict=True):
            assert_close(
                np.broadcast_to(values, (len(rows), *values.shape[1:]))[n], covariance[here, here]
            )


def test_cross_covariances(chain):
    moments = chain[2]
    rows, slices = rows_and_slices(chain)
    assert moments.cross[0] is None
    for n, (_, _, covariance) in rows:
        for layer in range(1, len(slices)):
            expected = covariance[slices[layer], slices[layer - 1]]
            assert_close(moments.cross[layer][n], expected)


def test_conditional_covariances_and_gains(chain):
    """S_l = (C_ll - C_l,l-1 C_l-1,l-1^{-1} C_l-1,l) and M_l = C_l,l-1 C_l-1,l-1^{-1}."""
    activations = chain[1]
    rows, slices = rows_and_slices(chain)
    for n, (_, _, covariance) in rows:
        for layer in range(1, len(slices)):
            here, below = slices[layer], slices[layer - 1]
            gain = np.linalg.solve(covariance[below, below], covariance[below, here]).T
            factor = activations[layer]
            assert_close(factor.gain[n], gain, rtol=1e-8)
            conditional = covariance[here, here] - gain @ covariance[below, here]
            shared = factor.covariance.shape[0] == 1
            assert_close(factor.covariance[0 if shared else n], conditional, rtol=1e-8)


def test_log_determinants_add_up_to_that_of_the_joint(chain):
    activations = chain[1]
    for n, (precision, _, _) in rows_and_slices(chain)[0]:
        total = sum(
            a.log_determinant[0 if a.log_determinant.shape[0] == 1 else n] for a in activations
        )
        assert total == pytest.approx(-np.linalg.slogdet(precision)[1], rel=1e-10, abs=1e-10)


def test_own_squares_leave_out_only_the_shared_covariance(chain):
    _, activations, moments, _ = chain
    rows, slices = rows_and_slices(chain)
    for n, (_, mean, covariance) in rows:
        for layer, here in enumerate(slices):
            expected = mean[here] ** 2 + np.diag(covariance[here, here])
            if layer == len(slices) - 1:
                expected = expected - np.diag(activations[-1].covariance[0])
            assert_close(own_squares(activations, moments, layer)[n], expected)
