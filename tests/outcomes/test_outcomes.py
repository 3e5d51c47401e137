"""Each likelihood by itself: its bound, its losses, its parameters and its draws.

Monte Carlo comparisons are z-scores with a limit of 5 standard errors, a false-alarm rate of 6e-7
for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma

from bowtienet.outcomes import GAUSSIAN, Binary, Classes, Outcome, RowTerms, Softmax, StudentT
from tests import builders

LIMIT = 5.0
OUTCOMES: dict[str, tuple[Outcome, int]] = {"gaussian": (GAUSSIAN, 2), **builders.OUTCOMES}
EXACT = ("gaussian", "student_t", "student_t of one", "binary")
"""Outcomes whose bound is exact for a z that is known; they have losses for ordinary networks."""
VARIANCE = np.array([0.3, 0.8])
"""eta² of the outputs, known."""


def case(rng: np.random.Generator, name: str, n: int) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """The outcome, targets, outputs z (2, n, D) of two networks, and eta²."""
    outcome, width = OUTCOMES[name]
    targets = builders.random_targets(rng, outcome, n, width)
    variance = VARIANCE[:width] if outcome.has_noise else np.ones(width)
    return outcome, targets, 1.5 * rng.normal(size=(2, n, width)), variance


def log_likelihood(outcome: Outcome, targets: np.ndarray, z: np.ndarray, variance: Any) -> Any:
    """log p(y | z) (..., n), by SciPy's densities where it has them."""
    if outcome.has_noise:
        law: Any = stats.norm(z, np.sqrt(variance))
        if isinstance(outcome, StudentT):
            law = stats.t(outcome.freedom, loc=z, scale=np.sqrt(variance))
        return law.logpdf(targets).sum(axis=-1)
    sigmoid = 1.0 / (1.0 + np.exp(-z))
    if isinstance(outcome, Binary):
        return stats.bernoulli(sigmoid[..., 0]).logpmf(targets[:, 0])
    index = np.broadcast_to(targets.astype(int), (*z.shape[:-1], 1))
    return np.log(np.take_along_axis(sigmoid, index, axis=-1)[..., 0] / sigmoid.sum(axis=-1))


def bound_of(
    outcome: Outcome, targets: np.ndarray, mean: np.ndarray, square: np.ndarray, variance: Any
) -> tuple[np.ndarray, RowTerms]:
    """The bound of every row with its parabola."""
    terms = outcome.row_terms(targets, mean, square, 1.0 / variance)
    if not outcome.has_noise:
        parabola = terms.linear * mean - 0.5 * terms.precision * square
        return terms.constant + parabola.sum(axis=-1), terms
    np.testing.assert_allclose(terms.linear, terms.precision * targets, rtol=1e-14)
    errors = targets**2 - 2.0 * targets * mean + square
    gauss = np.log(2.0 * np.pi * variance) + terms.precision * errors / variance
    return terms.constant - 0.5 * gauss.sum(axis=-1), terms


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("deviation", [0.05, 2.0])
def test_the_bound_is_below_the_expected_log_likelihood(name, deviation, rng):
    """In each of 24 rows; near it where q(z) is narrow and the bound exact for a known z."""
    outcome, targets, mean, variance = case(rng, name, 12)
    bound, _ = bound_of(outcome, targets, mean, mean**2 + deviation**2, variance)
    z = mean + deviation * rng.standard_normal((20_000, *mean.shape))
    draws = log_likelihood(outcome, targets, z, variance)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    gap = draws.mean(axis=0) - bound
    assert np.all(gap > -LIMIT * error)
    if name == "gaussian":
        assert np.all(gap < LIMIT * error)
    elif deviation == 0.05 and name in EXACT:
        assert np.all(gap < 0.02)


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_bound_for_a_known_output(name, rng):
    """Exact but for the Poisson and gamma helpers of classes, which are not independent."""
    outcome, targets, z, variance = case(rng, name, 100)
    bound, _ = bound_of(outcome, targets, z, z**2, variance)
    exact = log_likelihood(outcome, targets, z, variance)
    if name in EXACT:
        np.testing.assert_allclose(bound, exact, rtol=1e-9)
    else:
        assert np.all(exact > bound)
        assert np.mean(exact - bound) < 0.5


@pytest.mark.parametrize("name", EXACT)
def test_losses_are_likelihoods_but_for_constants(name, rng):
    """With their gradients; the loss of a Student-t is that of variance one near zero."""
    outcome, targets, z, _ = case(rng, name, 20)
    value, gradient = outcome.loss(targets, z)
    assert value.shape == z.shape[:-1]
    step = 1e-6
    for d in range(z.shape[-1]):
        move = step * (np.arange(z.shape[-1]) == d)
        above, below = (outcome.loss(targets, z + sign * move)[0] for sign in (1.0, -1.0))
        slope = (above - below) / (2.0 * step)
        np.testing.assert_allclose(gradient[..., d], slope, rtol=1e-6, atol=1e-8)
    variance, factor = 1.0, 1.0
    if isinstance(outcome, StudentT):
        variance = 0.1
        factor = (outcome.freedom + 1.0) / outcome.freedom / variance
    first, second = (log_likelihood(outcome, targets, x, variance) for x in (z[0], z[1]))
    difference = factor * (value[1] - value[0])
    np.testing.assert_allclose(difference, first - second, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("freedom", [2.0, 8.0])
def test_degrees_of_freedom_are_where_the_bound_is_highest(freedom, rng):
    """q(lambda) stays: Σ E[log Gamma(lambda | nu/2, nu/2)] has no slope at the new nu."""
    weights = rng.uniform(0.5, 2.0, size=400)
    targets = stats.t(freedom).rvs(size=(400, 1), random_state=rng)
    zeros = np.zeros((400, 1))
    sums = weights @ StudentT(freedom=4.0).row_terms(targets, zeros, zeros, 1.0).parameter
    renewed = StudentT().renewed(sums, weights.sum()).freedom
    slope = np.log(renewed / 2.0) + 1.0 - digamma(renewed / 2.0) + sums[0] / weights.sum()
    assert abs(slope) < 1e-10


@pytest.mark.parametrize("name", OUTCOMES)
def test_draws_have_the_stated_law(name, rng):
    """Frequencies against probabilities: few comparisons of 5 standard errors."""
    outcome, _, z, variance = case(rng, name, 1)
    n, z = 40_000, z[0]
    draws = outcome.sample(np.tile(z, (n, 1)), variance, rng)
    assert draws.shape == (n, z.shape[1] if outcome.has_noise else 1)
    if outcome.has_noise:
        law: Any = stats.norm(z[0], np.sqrt(variance))
        if isinstance(outcome, StudentT):
            law = stats.t(outcome.freedom, z[0], np.sqrt(variance))
        events = [(draws < level, law.cdf(level)) for level in (-1.0, 0.0, 1.5)]
    else:
        values = [np.array([[float(c)]]) for c in range(max(z.shape[1], 2))]
        chances = [np.exp(log_likelihood(outcome, value, z, variance)) for value in values]
        assert np.sum(chances) == pytest.approx(1.0)
        events = [(draws == value, chance) for value, chance in zip(values, chances, strict=True)]
    for happened, chance in events:
        error = np.sqrt(chance * (1.0 - chance) / n)
        assert np.all(np.abs(happened.mean(axis=0) - chance) < LIMIT * error)


def test_moments_of_the_noise():
    assert StudentT(freedom=6.0).variance_ratio == pytest.approx(stats.t(6.0).var())
    assert StudentT(freedom=1.5).variance_ratio == 3.0
    assert GAUSSIAN.variance_ratio == 1.0


def test_working_targets():
    """Outputs that a linear fit may aim at: fairly sure classes, and no outliers."""
    targets = np.array([[-40.0], [0.5], [7.0]])
    np.testing.assert_array_equal(GAUSSIAN.working_targets(targets), targets)
    np.testing.assert_array_equal(StudentT().working_targets(targets), [[-3.0], [0.5], [3.0]])
    labels = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(Binary().working_targets(labels), [[-2.0], [2.0]])
    expected = [[2.0, -2.0, -2.0], [-2.0, 2.0, -2.0]]
    for outcome in (Classes(n_classes=3), Softmax(n_classes=3)):
        np.testing.assert_array_equal(outcome.working_targets(labels), expected)


@pytest.mark.parametrize("name", OUTCOMES)
def test_outputs_far_away_stay_finite(name, rng):
    outcome, targets, z, _ = case(rng, name, 3)
    for size in (0.0, 30.0, 700.0, 1e6):
        for sign in (-1.0, 1.0):
            mean = np.full(z.shape, sign * size)
            terms = outcome.row_terms(targets, mean, mean**2 + 1e-12, 1.0)
            assert np.all(np.isfinite(terms.linear)), size
            assert np.all(np.isfinite(terms.constant)), size
            assert np.all((terms.precision >= 0.0) & np.isfinite(terms.precision)), size
