"""Each likelihood by itself: its bound, its losses, its parameters and its draws.

Monte Carlo comparisons are z-scores with a limit of 5 standard errors, a false-alarm rate of 6e-7
for each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma

from bowtienet._old.model.outcomes import Binary, Counts, Gaussian, Outcome, RowTerms, StudentT
from tests._old import builders

LIMIT = 5.0
OUTCOMES: dict[str, tuple[Outcome, int]] = {"gaussian": (Gaussian(), 2), **builders.OUTCOMES}
BY_ROW = tuple(builders.OUTCOMES)
POINTS = ("student_t", "student_t of one", "binary", "counts")
"""Outcomes whose bound is exact for a z that is known."""


def targets_of(rng: np.random.Generator, name: str, n: int) -> np.ndarray:
    outcome, n_outputs = OUTCOMES[name]
    return builders.random_targets(rng, outcome, n, n_outputs)


def log_likelihood(outcome: Outcome, targets: np.ndarray, z: np.ndarray, variance: Any) -> Any:
    """log p(y | z) (..., n), by SciPy's densities where it has them."""
    if isinstance(outcome, StudentT):
        law = stats.t(outcome.freedom, loc=z, scale=np.sqrt(variance))
        return law.logpdf(targets).sum(axis=-1)
    if isinstance(outcome, Counts):
        chance = 1.0 / (1.0 + np.exp(z[..., 0] + targets[:, 1] + outcome.offset))
        return stats.nbinom(outcome.dispersion, chance).logpmf(targets[:, 0])
    sigmoid = 1.0 / (1.0 + np.exp(-z))
    if isinstance(outcome, Binary):
        return stats.bernoulli(sigmoid[..., 0]).logpmf(targets[:, 0])
    own = np.take_along_axis(
        sigmoid, np.broadcast_to(targets.astype(int), (*z.shape[:-1], 1)), axis=-1
    )[..., 0]
    return np.log(own / sigmoid.sum(axis=-1))


def bound_of(
    outcome: Outcome,
    targets: np.ndarray,
    terms: RowTerms,
    mean: np.ndarray,
    square: np.ndarray,
    variance: Any,
) -> np.ndarray:
    """The bound of every row; eta² is known."""
    if outcome.has_noise:
        errors = targets**2 - 2.0 * targets * mean + square
        gauss = np.log(2.0 * np.pi * variance) + terms.precision * errors / variance
        return terms.constant - 0.5 * gauss.sum(axis=-1)
    parabola = terms.linear * mean - 0.5 * terms.precision * square
    return terms.constant + parabola.sum(axis=-1)


@pytest.mark.parametrize("name", BY_ROW)
@pytest.mark.parametrize("deviation", [0.05, 0.5, 2.0])
def test_the_bound_is_below_the_expected_log_likelihood(
    name: str, deviation: float, rng: np.random.Generator
) -> None:
    """In each of 12 rows; and near it where q(z) is narrow and the bound exact for a known z."""
    outcome, width = OUTCOMES[name]
    targets, mean = targets_of(rng, name, 12), rng.normal(size=(12, width))
    variance = np.array([0.3, 0.8])[:width] if outcome.has_noise else np.ones(width)
    terms = outcome.row_terms(targets, mean, mean**2 + deviation**2, 1.0 / variance)
    found = bound_of(outcome, targets, terms, mean, mean**2 + deviation**2, variance)
    z = mean + deviation * rng.standard_normal((20_000, *mean.shape))
    draws = log_likelihood(outcome, targets, z, variance)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    gap = draws.mean(axis=0) - found
    assert np.all(gap > -LIMIT * error)
    if deviation == 0.05 and name in POINTS:
        assert np.all(gap < 0.02)


@pytest.mark.parametrize("name", POINTS)
def test_the_bound_is_exact_for_a_known_output(name: str, rng: np.random.Generator) -> None:
    outcome, width = OUTCOMES[name]
    targets, z = targets_of(rng, name, 30), 2.0 * rng.normal(size=(30, width))
    variance = np.array([0.3, 0.8])[:width] if outcome.has_noise else np.ones(width)
    terms = outcome.row_terms(targets, z, z**2, 1.0 / variance)
    found = bound_of(outcome, targets, terms, z, z**2, variance)
    np.testing.assert_allclose(found, log_likelihood(outcome, targets, z, variance), rtol=1e-9)


def test_the_bound_of_classes_is_near_for_a_known_output(rng: np.random.Generator) -> None:
    """What the Poisson and gamma helpers cost, which are not independent in truth."""
    outcome, _ = OUTCOMES["classes"]
    targets, z = targets_of(rng, "classes", 200), rng.normal(size=(200, 3))
    terms = outcome.row_terms(targets, z, z**2, 1.0)
    gap = log_likelihood(outcome, targets, z, 1.0) - bound_of(outcome, targets, terms, z, z**2, 1.0)
    assert np.all(gap > 0.0)
    assert gap.mean() < 0.5


@pytest.mark.parametrize("name", OUTCOMES)
def test_gradient_of_the_loss(name: str, rng: np.random.Generator) -> None:
    outcome, width = OUTCOMES[name]
    targets, z = targets_of(rng, name, 20), 2.0 * rng.normal(size=(20, width))
    value, gradient = outcome.loss(targets, z)
    assert value.shape == (20,)
    step = 1e-6
    for d in range(width):
        move = step * (np.arange(width) == d)
        above, below = (outcome.loss(targets, z + sign * move)[0] for sign in (1.0, -1.0))
        np.testing.assert_allclose(
            gradient[:, d], (above - below) / (2.0 * step), rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("name", OUTCOMES)
def test_losses_are_likelihoods_but_for_constants(name: str, rng: np.random.Generator) -> None:
    outcome, width = OUTCOMES[name]
    targets, z = targets_of(rng, name, 20), rng.normal(size=(20, width))
    other = z + rng.normal(size=z.shape)
    difference = outcome.loss(targets, z)[0] - outcome.loss(targets, other)[0]
    expected = outcome.log_likelihood(targets, other) - outcome.log_likelihood(targets, z)
    if isinstance(outcome, StudentT):  # its loss is that of variance one near zero
        difference = difference * (outcome.freedom + 1.0) / outcome.freedom / 0.1
    np.testing.assert_allclose(difference, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", BY_ROW)
def test_log_likelihoods_are_complete(name: str, rng: np.random.Generator) -> None:
    outcome, width = OUTCOMES[name]
    targets, z = targets_of(rng, name, 20), rng.normal(size=(20, width))
    found = outcome.log_likelihood(targets, z)
    np.testing.assert_allclose(found, log_likelihood(outcome, targets, z, 0.1), rtol=1e-10)


@pytest.mark.parametrize("name", BY_ROW)
def test_networks_side_by_side(name: str, rng: np.random.Generator) -> None:
    """Leading axes and a parameter for each network are those networks one by one."""
    outcome, width = OUTCOMES[name]
    targets, mean = targets_of(rng, name, 7), rng.normal(size=(3, 7, width))
    square = mean**2 + rng.uniform(0.1, 1.0, size=mean.shape)
    precision = rng.uniform(0.5, 2.0, size=(3, 1, width))
    values = np.array([1.5, 2.5, 6.0])
    both = outcome
    if isinstance(outcome, StudentT):
        both = replace(outcome, freedom=values)
    if isinstance(outcome, Counts):
        both = replace(outcome, dispersion=values)
    together = both.row_terms(targets, mean, square, precision)
    for index in range(3):
        one: Any = outcome
        if isinstance(outcome, StudentT):
            one = replace(outcome, freedom=float(values[index]))
        if isinstance(outcome, Counts):
            one = replace(outcome, dispersion=float(values[index]))
        alone = one.row_terms(targets, mean[index], square[index], precision[index])
        for field in ("precision", "linear", "constant", "own"):
            found = getattr(together, field)[index]
            np.testing.assert_allclose(found, getattr(alone, field), rtol=1e-12, atol=1e-13)


def test_precision_and_linear_term_of_counts_are_linear_in_the_dispersion(
    rng: np.random.Generator,
) -> None:
    targets, mean = targets_of(rng, "counts", 9), rng.normal(size=(9, 1))
    low, high = (
        Counts(dispersion=r, offset=0.4).row_terms(targets, mean, mean**2 + 0.3, 1.0)
        for r in (1.2, 3.7)
    )
    assert low.slope is not None
    np.testing.assert_allclose(high.precision - low.precision, 2.5 * low.slope[0], rtol=1e-12)
    np.testing.assert_allclose(high.linear - low.linear, 2.5 * low.slope[1], rtol=1e-12)


@pytest.mark.parametrize("freedom", [2.0, 8.0])
def test_degrees_of_freedom_are_where_the_bound_is_highest(freedom: float) -> None:
    """q(lambda) stays: Σ E[log Gamma(lambda | nu/2, nu/2)] has no slope at the new nu."""
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.5, 2.0, size=400)
    targets = stats.t(freedom).rvs(size=(400, 1), random_state=rng)
    zeros = np.zeros((400, 1))
    terms = StudentT(freedom=4.0).row_terms(targets, zeros, zeros, 1.0)
    own = weights @ terms.own
    found = StudentT().renewed(own, None, weights.sum()).freedom
    slope = np.log(found / 2.0) + 1.0 - digamma(found / 2.0) + own[0] / weights.sum()
    assert abs(slope) < 1e-10


def test_em_finds_planted_degrees_of_freedom() -> None:
    """Within 4 standard errors of the maximum of the likelihood (false-alarm rate 6e-5)."""
    rng = np.random.default_rng(11)
    planted, count = 3.0, 4000
    targets = stats.t(planted).rvs(size=(count, 1), random_state=rng)
    zeros, outcome = np.zeros((count, 1)), StudentT(freedom=20.0)
    for _ in range(300):
        terms = outcome.row_terms(targets, zeros, zeros, 1.0)
        outcome = outcome.renewed(terms.own.sum(axis=0), None, np.asarray(float(count)))
    grid = planted * np.exp(np.linspace(-0.01, 0.01, 3))
    values = [stats.t(nu).logpdf(targets).sum() for nu in grid]
    information = -(values[0] - 2 * values[1] + values[2]) / (planted * 0.01) ** 2
    assert abs(outcome.freedom - planted) < 4.0 / np.sqrt(information)


def test_em_finds_a_planted_dispersion() -> None:
    """As above, with the mean of the counts known."""
    rng = np.random.default_rng(12)
    planted, count, log_mean = 2.0, 4000, 1.5
    z = np.full((count, 1), log_mean - np.log(planted))
    targets = Counts(dispersion=planted).sample(z, np.ones(1), rng)
    outcome = Counts(dispersion=20.0)
    for _ in range(400):
        terms = outcome.row_terms(targets, z, z**2, 1.0)
        assert terms.slope is not None
        slope = np.sum(terms.slope[1] * z - 0.5 * terms.slope[0] * z**2)
        before, outcome = outcome, outcome.renewed(terms.own.sum(axis=0), slope, count)

    # z is held, and with it the success probability: the likelihood in r alone.
    def value(r: float) -> float:
        chance = 1.0 / (1.0 + np.exp(z[:, 0]))
        return float(stats.nbinom(r, chance).logpmf(targets[:, 0]).sum())

    step = 0.02
    curvature = -(value(planted - step) - 2 * value(planted) + value(planted + step)) / step**2
    assert abs(outcome.dispersion - planted) < 4.0 / np.sqrt(curvature)
    assert outcome.dispersion == pytest.approx(before.dispersion, rel=1e-6)


@pytest.mark.parametrize("name", ["student_t of one", "counts"])
def test_each_renewal_raises_the_bound(name: str, rng: np.random.Generator) -> None:
    outcome: Any
    outcome, width = OUTCOMES[name]
    targets, mean = targets_of(rng, name, 50), rng.normal(size=(50, width))
    square, before = mean**2 + 0.2, -np.inf
    for _ in range(30):
        terms = outcome.row_terms(targets, mean, square, 1.0)
        value = bound_of(outcome, targets, terms, mean, square, 1.0).sum()
        assert value >= before - 1e-10 * abs(value)
        slope = None
        if terms.slope is not None:
            slope = np.sum(terms.slope[1] * mean - 0.5 * terms.slope[0] * square)
        before, outcome = value, outcome.renewed(terms.own.sum(axis=0), slope, np.asarray(50.0))


@pytest.mark.parametrize("name", ["student_t of one", "binary", "counts", "classes", "gaussian"])
def test_draws_have_the_stated_law(name: str, rng: np.random.Generator) -> None:
    """Means of indicators against probabilities: few comparisons of 5 standard errors."""
    outcome, width = OUTCOMES[name]
    z = np.tile(rng.normal(size=(1, width)), (40_000, 1))
    variance = np.array([0.4, 0.9])[:width]
    targets = outcome.sample(z, variance, rng)
    assert targets.shape == (40_000, outcome.n_columns(width))
    if outcome.has_noise:
        law: Any = stats.norm(z[0], np.sqrt(variance))
        if isinstance(outcome, StudentT):
            law = stats.t(outcome.freedom, z[0], np.sqrt(variance))
        chances = {level: law.cdf(level) for level in (-1.0, 0.0, 1.5)}
        for level, chance in chances.items():
            assert_frequency(np.mean(targets < level, axis=0), chance, 40_000)
        return
    for value in range(3):
        table = np.column_stack([np.full((1, 1), value), np.zeros((1, targets.shape[1] - 1))])
        if name == "binary" and value == 2:
            continue
        chance = np.exp(log_likelihood(outcome, table.astype(float), z[:1], variance))
        assert_frequency(np.mean(targets[:, 0] == value), chance, 40_000)


def assert_frequency(found: Any, chance: Any, n: int) -> None:
    error = np.sqrt(np.asarray(chance) * (1.0 - np.asarray(chance)) / n)
    assert np.all(np.abs(found - chance) < LIMIT * error)


def test_moments_of_the_noise() -> None:
    assert StudentT(freedom=6.0).variance_ratio == pytest.approx(stats.t(6.0).var())
    assert StudentT(freedom=1.5).variance_ratio == 3.0
    assert Gaussian().variance_ratio == 1.0


@pytest.mark.parametrize("name", BY_ROW)
def test_outputs_far_away_stay_finite(name: str) -> None:
    outcome, width = OUTCOMES[name]
    targets = targets_of(np.random.default_rng(0), name, 3)
    for size in (0.0, 30.0, 700.0, 1e6):
        for sign in (-1.0, 1.0):
            mean = np.full((3, width), sign * size)
            terms = outcome.row_terms(targets, mean, mean**2 + 1e-12, 1.0)
            assert np.all(np.isfinite(terms.linear)), size
            assert np.all(np.isfinite(terms.constant)), size
            assert np.all((terms.precision >= 0.0) & np.isfinite(terms.precision)), size
