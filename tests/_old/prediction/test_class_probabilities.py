"""Probabilities of uncertain outputs against draws, and their limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, expit

from bowtienet._old.model.outcomes import Binary, Classes, Outcome
from bowtienet._old.prediction.class_probabilities import (
    expected_probabilities,
    probabilities,
    probability_moments,
)

CASES = [(Binary(), 1), (Classes(n_classes=3), 3), (Classes(n_classes=12), 12)]


@pytest.mark.parametrize(("outcome", "width"), CASES)
def test_moments_by_draws(outcome: Outcome, width: int, rng: np.random.Generator) -> None:
    """20,000 draws have errors below 0.004; the quadrature of several outputs about 0.005."""
    means, variances = 2.0 * rng.normal(size=(8, width)), rng.uniform(0.0, 1.5, size=(8, width))
    z = means + np.sqrt(variances) * rng.normal(size=(20_000, 8, width))
    p = probabilities(outcome, z)
    found = probability_moments(outcome, means, variances)
    np.testing.assert_allclose(found.mean, p.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(np.sqrt(found.variance), p.std(axis=0), atol=0.03)
    np.testing.assert_allclose(found.entropy, entr(p).sum(axis=-1).mean(axis=0), atol=0.03)
    expected = expected_probabilities(outcome, means, variances)
    np.testing.assert_allclose(expected, p.mean(axis=0), atol=0.02)


@pytest.mark.parametrize(("outcome", "width"), CASES)
def test_certain_outputs(outcome: Outcome, width: int, rng: np.random.Generator) -> None:
    z = rng.normal(size=(5, width))
    found = probability_moments(outcome, z, np.zeros_like(z))
    np.testing.assert_allclose(found.mean, probabilities(outcome, z), rtol=1e-12)
    np.testing.assert_allclose(found.variance, 0.0, atol=1e-28)
    # The mixture of probits is within 5e-5 of the sigmoid.
    expected = expected_probabilities(outcome, z, np.zeros_like(z))
    np.testing.assert_allclose(expected, probabilities(outcome, z), atol=5e-5)


@pytest.mark.parametrize(("outcome", "width"), CASES)
def test_probabilities_sum_to_one_wherever_outputs_are(outcome: Outcome, width: int) -> None:
    for far in (-1e6, -800.0, 0.0, 800.0, 1e6):
        z = np.full((2, width), far)
        for variance in (0.0, 1e8):
            found = expected_probabilities(outcome, z, np.full_like(z, variance))
            assert np.all(found >= 0.0)
            np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_the_logistic_softmax() -> None:
    z = np.array([[0.3, -2.0, 1.0]])
    np.testing.assert_allclose(
        probabilities(Classes(n_classes=3), z), expit(z) / expit(z).sum(), rtol=1e-12
    )
