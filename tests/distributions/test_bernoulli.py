"""Entropy of a Bernoulli variable."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bowtienet.distributions import bernoulli


def test_entropy_agrees_with_scipy_and_is_exact_at_the_ends() -> None:
    probability = np.array([0.0, 1e-300, 1e-9, 0.3, 0.5, 0.99, 1.0])
    entropy = bernoulli.entropy(probability)
    np.testing.assert_allclose(entropy, stats.bernoulli(probability).entropy(), rtol=1e-13)
    assert entropy[0] == 0.0
    assert entropy[-1] == 0.0


def test_jax_gradient_is_minus_the_logit() -> None:
    jax = pytest.importorskip("jax")
    probability = np.array([1e-6, 0.3, 0.5, 0.999])
    gradient = jax.grad(lambda x: bernoulli.entropy(x).sum())(jax.numpy.asarray(probability))
    expected = np.log1p(-probability) - np.log(probability)
    np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-10, atol=1e-12)
