"""The softmax of ordinary networks; the classes of the engine are in `test_outcomes`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax

from bowtienet.outcomes import Softmax


def test_the_loss_is_minus_the_log_of_the_softmax(rng):
    """With its derivative by autodiff, for two networks at once."""
    outcome, z = Softmax(n_classes=3), rng.normal(size=(2, 20, 3))
    targets = rng.integers(0, 3, size=(20, 1)).astype(float)
    loss, slope = outcome.loss(targets, z)
    index = np.broadcast_to(targets.astype(int), (2, 20, 1))
    expected = -np.take_along_axis(log_softmax(z, axis=-1), index, axis=-1)[..., 0]
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    gradient = jax.grad(lambda x: jnp.sum(outcome.loss(jnp.asarray(targets), x)[0]))(jnp.asarray(z))
    np.testing.assert_allclose(slope, gradient, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [30.0, 1e4, 1e30])
def test_outputs_far_away_stay_finite(size, dtype):
    """A sure and right row costs nothing, a sure and wrong one the difference of its outputs."""
    z = np.array([[size, 0.0, -size], [size, 0.0, -size]], dtype=dtype)
    targets = np.array([[0.0], [2.0]], dtype=dtype)
    loss, slope = Softmax(n_classes=3).loss(targets, z)
    assert loss.dtype == slope.dtype == dtype
    np.testing.assert_allclose(loss, [0.0, 2.0 * size], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(slope, [[0.0, 0.0, 0.0], [1.0, 0.0, -1.0]], atol=1e-12)
