"""The chain's recursions against one dense inverse of its block-tridiagonal joint precision.

The optimal q(a) of a row is a Gaussian whose precision is block tridiagonal over layers. The
oracle assembles that matrix term by term; its inverse holds every moment that the backward pass
(`update_activations`) and the forward pass (`chain_moments`) reach layer by layer. The conditional
distributions of the layers are compared with it in `inference/test_against_oracle`.
"""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.inference.global_step import update_shared_covariance
from bowtienet.inference.local_step import update_activations
from bowtienet.posterior.moments import chain_moments, last_covariance
from bowtienet.prediction.variational import without_targets
from tests import oracle_bridge
from tests.oracle_bridge import assert_close, full_second_moment
from tests.oracles import plain_loops as oracle

WIDTHS = [(3, 4, 2), (2, 3, 2, 2), (2, 3, 2, 3, 1), (1, 2, 4, 3, 2, 2)]


@pytest.fixture(params=[(w, t) for w in WIDTHS for t in ("known", "unknown")], ids=str)
def chain(request, rng):
    """Case, activations, moments, and the dense mean and covariance of every row."""
    widths, targets = request.param
    case = oracle_bridge.random_case(rng, widths)
    y = case.y if targets == "known" else None
    prepare = without_targets if y is None else update_shared_covariance
    activations = update_activations(case.model, prepare(case.factors), case.x, y, case.memory)
    dense = []
    for n in range(case.x.shape[0]):
        y_n = None if y is None else y[n]
        dense.append(oracle.optimal_joint(case.state, case.x[n], y_n, n))
    return case, activations, chain_moments(activations, case.x), dense


def row(values, n):
    """Of the only network; (1, 1, ...) where rows share the values."""
    return values[0, n if values.shape[1] > 1 else 0]


def test_moments(chain):
    case, activations, moments, dense = chain
    slices = oracle.layer_slices(case.state)[1:]
    own = [*moments.own, last_covariance(activations, moments)]
    assert len(own) == len(slices)
    assert moments.cross[0] is None
    inputs = np.column_stack([np.ones(len(case.x)), case.x])
    assert_close(moments.inputs[0], inputs)
    assert_close(full_second_moment(moments, 0), np.einsum("ni,nj->nij", inputs, inputs))
    for n, (mean, covariance) in enumerate(dense):
        for layer, here in enumerate(slices):
            block = covariance[here, here]
            assert moments.inputs[layer + 1][0, n, 0] == 1.0
            assert_close(moments.inputs[layer + 1][0, n, 1:], mean[here])
            assert_close(moments.means[layer][0, n], mean[here])
            assert_close(row(own[layer], n), block)
            if layer > 0:
                assert_close(moments.cross[layer][0, n], covariance[here, slices[layer - 1]])
            if layer + 1 < len(slices):
                extended = np.concatenate([[1.0], mean[here]])
                second = np.outer(extended, extended)
                second[1:, 1:] += block
                assert_close(full_second_moment(moments, layer + 1)[n], second)
