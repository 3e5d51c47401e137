"""Counts against SciPy's negative binomial, autodiff and their own limits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bowtienet.outcomes import Counts


def case(rng: np.random.Generator, n: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Targets (n, 2) and outputs (n, 1)."""
    logs = rng.normal(size=n)
    return np.column_stack([rng.poisson(4.0, size=n), logs]).astype(float), rng.normal(size=(n, 1))


@pytest.mark.parametrize("dispersion", [0.0, 0.3, 5.0])
def test_the_loss_is_the_likelihood_but_for_a_constant(dispersion, rng):
    """Differences between two outputs; the Poisson distribution where the dispersion is zero."""
    targets, first = case(rng)
    second = first + rng.normal(size=first.shape)

    def log_likelihood(z: np.ndarray) -> np.ndarray:
        mean = np.exp(z[:, 0] + targets[:, 1])
        if not dispersion:
            return stats.poisson(mean).logpmf(targets[:, 0])
        size = 1.0 / dispersion
        return stats.nbinom(size, size / (size + mean)).logpmf(targets[:, 0])

    outcome = Counts(dispersion=dispersion)
    difference = outcome.loss(targets, second)[0] - outcome.loss(targets, first)[0]
    expected = log_likelihood(first) - log_likelihood(second)
    np.testing.assert_allclose(difference, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dispersion", [0.0, 0.3, 5.0])
def test_the_derivative_is_that_of_the_loss(dispersion, rng):
    targets, z = case(rng)
    outcome = Counts(dispersion=dispersion)
    expected = jax.grad(lambda x: jnp.sum(outcome.loss(jnp.asarray(targets), x)[0]))(jnp.asarray(z))
    np.testing.assert_allclose(outcome.loss(targets, z)[1], expected, rtol=1e-9, atol=1e-12)


def test_an_exposure_shifts_the_output(rng):
    """And none is an exposure of one."""
    targets, z = case(rng)
    shifted, plain = Counts().loss(targets, z), Counts().loss(targets[:, :1], z + targets[:, 1:])
    for value, expected in zip(shifted, plain, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dispersion", [0.0, 0.2, 100.0])
def test_outputs_far_away_stay_finite(dispersion, dtype):
    """For counts from nothing to millions; slopes are between -y and r, to rounding."""
    z = np.array([-1e4, -700.0, 0.0, 700.0, 1e4], dtype=dtype)[:, None]
    for count in (0.0, 1.0, 3e6):
        targets = np.full_like(z, count)
        loss, slope = Counts(dispersion=dispersion).loss(targets, z)
        assert loss.dtype == slope.dtype == dtype
        assert np.all(np.isfinite(loss))
        assert slope[0, 0] == pytest.approx(-count)
        assert slope[-1, 0] == pytest.approx(1.0 / max(dispersion, 1e-9))


def test_large_counts_lose_no_digit_of_the_slope():
    """At mu = y (1 + d) the slope is r d y / (r + mu)."""
    count, step, size = 1e9, 1e-3, 5.0
    z = np.array([[np.log(count) + np.log1p(step)]], dtype=np.float64)
    slope = Counts(dispersion=1.0 / size).loss(np.array([[count]]), z)[1][0, 0]
    expected = size * step * count / (size + count * (1.0 + step))
    assert slope == pytest.approx(expected, rel=1e-9)


def test_working_targets_are_log_rates(rng):
    """Those of large counts are the observed ones; without exposure that of the whole table.

    The unit of the exposures, however large, only shifts them.
    """
    targets = np.array([[4e6, np.log(4e3)], [9e6, np.log(3e3)], [0.0, -30.0]])
    working = Counts().working_targets(targets)
    expected = np.log([1e3, 3e3, 13e6 / 7e3])[:, None]
    np.testing.assert_allclose(working, expected, atol=1e-3)
    moved = Counts().working_targets(targets + np.array([0.0, 800.0]))
    np.testing.assert_allclose(moved, working - 800.0, rtol=1e-12)
    assert np.all(np.isfinite(Counts().working_targets(np.zeros((3, 1)))))
    assert Counts().working_targets(np.array([[2.0]])) == pytest.approx(np.log(2.5 / 1.2))
