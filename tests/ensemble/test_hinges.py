"""What rows leave open: against the dense posterior, at rows, in a gap, far outside."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.ensemble.hinges import (
    UNITS,
    Hinges,
    activations,
    deviations,
    learn_hinges,
    root_of,
    variances,
)


def crossing(rng: np.random.Generator, noise: float, n: int = 300) -> tuple[Hinges, np.ndarray]:
    """A sine of one column without rows in [-1, 1], for two scales of two targets."""
    x = (rng.uniform(1.0, 3.0, size=n) * rng.choice([-1.0, 1.0], size=n))[:, None]
    y = np.column_stack([np.sin(x[:, 0]), np.zeros(n)]) + noise * rng.normal(size=(n, 2))
    hinges = learn_hinges(
        "standard",
        rng.normal(size=(50, 1)),
        x.astype(np.float32),
        np.stack([y, 10.0 * y]),
        np.ones(n),
        np.array([[noise**2] * 2, [100.0 * noise**2] * 2]),
        rng,
    )
    return hinges, x


@pytest.mark.parametrize("noise", [0.1, 1e-3])
def test_small_at_rows_large_in_the_gap_and_linear_outside(
    noise: float, rng: np.random.Generator
) -> None:
    hinges, rows = crossing(rng, noise)
    at_rows = np.sqrt(np.median(variances(hinges, rows)[0, :, 0]))
    inside = np.sqrt(np.median(variances(hinges, np.linspace(-0.5, 0.5, 11)[:, None])[0, :, 0]))
    assert at_rows < 0.3 * noise
    assert inside > 5.0 * at_rows
    outside = np.sqrt(variances(hinges, np.array([[23.0], [43.0]]))[0, :, 0])
    assert outside[1] / outside[0] == pytest.approx(2.0, rel=0.15)


def test_the_scale_of_the_target_is_that_of_what_is_left_open(rng: np.random.Generator) -> None:
    hinges, _ = crossing(rng, 0.1)
    one, ten = variances(hinges, np.linspace(-4.0, 4.0, 9)[:, None])
    np.testing.assert_allclose(ten[:, 0], np.minimum(100.0 * one[:, 0], 1.0), rtol=1e-6)
    assert np.median(one[:, 1]) < 0.1 * np.median(one[:, 0])  # a constant leaves less open


def test_the_posterior_parts_into_noise_and_prior(rng: np.random.Generator) -> None:
    """S = S H'CH S / σ² + S S / τ; rows of weight two are two rows."""
    design = np.column_stack([np.ones(6), rng.normal(size=(6, 3))])
    weights = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    repeated = np.repeat(design, weights.astype(int), axis=0)
    moment = (design.T * weights) @ design
    np.testing.assert_allclose(moment, repeated.T @ repeated)
    root = root_of(moment, 0.3, 2.0)
    covariance = np.linalg.inv(moment / 0.3 + np.diag([1e-9, 0.5, 0.5, 0.5]))
    sampling = covariance @ moment @ covariance / 0.3
    np.testing.assert_allclose(root.T @ root, covariance - sampling, atol=1e-12)


def test_squares_of_deviations_are_the_variance(rng: np.random.Generator) -> None:
    hinges, _ = crossing(rng, 0.1)
    new = np.linspace(-3.0, 3.0, 7)[:, None]
    hidden = activations(hinges.weights, new)
    assert hidden.shape == (7, UNITS + 1)
    assert deviations(hinges, new).shape == (2, UNITS + 1, 7, 2)
    roots = hinges.roots[:, 0]
    expected = np.array([[h @ root.T @ root @ h for h in hidden] for root in roots])
    expected[1] = np.minimum(expected[1], 1.0)  # a transformed scale
    np.testing.assert_allclose(variances(hinges, new)[:, :, 0], expected)
