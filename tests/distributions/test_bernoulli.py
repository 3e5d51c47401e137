"""Probability and entropy of gates from their log odds."""

from __future__ import annotations

import jax
import numpy as np
from scipy import special, stats

from bowtienet.distributions import bernoulli

LOG_ODDS = np.array(
    [[-1e10, -800.0, -40.0, -3.0, -1e-9, 0.0], [1e-300, 0.4, 2.0, 36.0, 745.0, 1e6]]
)


def test_probability_and_entropy_agree_with_scipy():
    probability, entropy = bernoulli.probability_and_entropy(LOG_ODDS)
    np.testing.assert_allclose(probability, special.expit(LOG_ODDS), rtol=1e-15, atol=1e-300)
    expected = stats.bernoulli(probability).entropy().sum(axis=-1)
    np.testing.assert_allclose(entropy, expected, rtol=1e-14)


def test_many_units_neither_underflow_nor_overflow():
    _, entropy = bernoulli.probability_and_entropy(np.zeros((2, 5000)))
    np.testing.assert_allclose(entropy, 5000 * np.log(2.0), rtol=1e-14)


def test_gradient_in_the_probability_is_minus_the_log_odds():
    log_odds = np.array([-4.0, -0.3, 0.7, 9.0])
    slope = jax.grad(lambda v: bernoulli.probability_and_entropy(v)[1])(jax.numpy.asarray(log_odds))
    density = special.expit(log_odds) * special.expit(-log_odds)
    np.testing.assert_allclose(np.asarray(slope) / density, -log_odds, rtol=1e-10)
