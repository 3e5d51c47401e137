"""Slopes and dispersions by held-out rows: planted values, quadrature, hard tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import nbinom

from bowtienet._old.model.outcomes import Binary, Classes, Counts, Gaussian, Outcome, StudentT
from bowtienet._old.prediction.calibration import (
    PRIOR_ROWS,
    Calibration,
    aligned,
    calibrate,
    check_calibration,
    common_slope,
    is_discrete,
    log_probabilities,
    rate_outcome,
)


def draw(outcome: Outcome, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Targets (n, 1) of classes with these outputs."""
    chances = expit(outputs)
    if isinstance(outcome, Binary):
        return (rng.random(chances.shape) < chances).astype(float)
    bounds = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    return (rng.random((len(outputs), 1)) > bounds).sum(axis=1, keepdims=True).astype(float)


@pytest.mark.parametrize("over", [0.25, 1.0, 4.0])
@pytest.mark.parametrize(("outcome", "width"), [(Binary(), 1), (Classes(n_classes=4), 4)])
def test_slope_recovers_planted_confidence(
    outcome: Outcome, width: int, over: float, rng: np.random.Generator
) -> None:
    """The slope of 5,000 rows has a relative standard error of about 0.03: four of them."""
    z = 1.5 * rng.normal(size=(5000, width))
    targets = draw(outcome, z, rng)
    zeros, ones = np.zeros_like(z), np.ones(5000)
    slope, dispersion, logs = calibrate(outcome, targets, over * z, zeros, ones)
    assert abs(math.log(slope * over)) < 0.12
    assert dispersion == 1.0
    before = log_probabilities(outcome, targets, over * z, zeros)
    penalty = 0.5 * PRIOR_ROWS * math.log(slope) ** 2
    assert logs.sum() - penalty >= before.sum() - 1e-9


def test_uncertain_outputs_are_integrated(rng: np.random.Generator) -> None:
    """By draws: 400,000 have an error below 0.001 in each probability, so 0.01 in its log."""
    means, variances = rng.normal(size=(6, 3)), rng.uniform(0.2, 1.5, size=(6, 3))
    targets = rng.integers(0, 3, size=(6, 1)).astype(float)
    z = means + np.sqrt(variances) * rng.normal(size=(400_000, 6, 3))
    chances = expit(z)
    chances /= chances.sum(axis=-1, keepdims=True)
    expected = np.log(chances.mean(axis=0)[np.arange(6), targets[:, 0].astype(int)])
    found = log_probabilities(Classes(n_classes=3), targets, means, variances)
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_a_few_right_answers_do_not_make_certain(rng: np.random.Generator) -> None:
    """All ten rows are right: without the prior the slope would be as large as it may."""
    z = np.where(np.arange(10) % 2 == 0, -2.0, 2.0)[:, None]
    targets = (z > 0.0).astype(float)
    slope, _, _ = calibrate(Binary(), targets, z, np.zeros_like(z), np.ones(10))
    assert 1.0 < slope < 3.0


@pytest.mark.parametrize("r", [0.5, 3.0])
def test_dispersion_recovers_the_planted_one(r: float, rng: np.random.Generator) -> None:
    """Four standard errors of 4,000 rows, whose relative one is below 0.05."""
    z = rng.normal(1.0, 0.7, size=(4000, 1))
    means = np.exp(z[:, 0])
    targets = np.column_stack([rng.poisson(means * rng.gamma(r, 1.0 / r, 4000)), np.zeros(4000)])
    slope, found, logs = calibrate(Counts(), targets, z, np.zeros_like(z), np.ones(4000))
    assert slope == 1.0
    assert abs(math.log(found / r)) < 0.2
    expected = nbinom.logpmf(targets[:, 0], found, found / (found + means))
    np.testing.assert_allclose(logs, expected, rtol=1e-8)


def test_log_rates_keep_their_means() -> None:
    """Whatever the dispersion, e^z is the mean for exposure 1."""
    outcome = rate_outcome(0.3)
    assert outcome.dispersion * math.exp(outcome.offset) == pytest.approx(1.0)


def test_rows_without_weight_do_not_choose(rng: np.random.Generator) -> None:
    z = rng.normal(size=(300, 1))
    targets = draw(Binary(), z, rng)
    weights = np.ones(300)
    weights[200:] = 0.0
    found = calibrate(Binary(), targets, z, np.zeros_like(z), weights)
    fewer = calibrate(Binary(), targets[:200], z[:200], np.zeros((200, 1)), np.ones(200))
    assert found[0] == pytest.approx(fewer[0], rel=1e-6)


def test_classes_and_counts_are_discrete() -> None:
    assert [is_discrete(one) for one in (Binary(), Classes(n_classes=3), Counts())] == [True] * 3
    assert not is_discrete(Gaussian())
    assert not is_discrete(StudentT())


@pytest.mark.parametrize("slope", [np.array([1.0]), np.array([1.0, -1.0]), np.array([1.0, np.nan])])
def test_calibrations_that_do_not_fit_are_refused(slope: np.ndarray) -> None:
    check_calibration(Calibration(slope=np.ones(2), dispersion=np.ones(2)), 2)
    with pytest.raises(ValueError, match="each group"):
        check_calibration(Calibration(slope=slope, dispersion=np.ones(2)), 2)


def test_a_mixture_of_noisy_forecasts_may_be_surer(rng: np.random.Generator) -> None:
    """Forecasts with noise of their own, each calibrated: their mixture is not sure enough."""
    z = 2.0 * rng.normal(size=(4000, 1))
    targets = draw(Binary(), z, rng)
    zeros, ones = np.zeros_like(z), np.ones(4000)
    forecasts = []
    for _ in range(3):
        noisy = z + 1.5 * rng.normal(size=z.shape)
        slope, _, _ = calibrate(Binary(), targets, noisy, zeros, ones)
        forecasts.append((slope * noisy, zeros))
    weights = np.full(3, 1.0 / 3.0)
    found = common_slope(Binary(), targets, forecasts, weights, ones)
    assert found > 1.1
    [single] = [common_slope(Binary(), targets, forecasts[:1], np.ones(1), ones)]
    assert single == pytest.approx(1.0, abs=0.03)


def test_members_are_aligned_without_moving_their_mean(rng: np.random.Generator) -> None:
    """Shifts that all classes of a row share are gone, differences of classes and means stay."""
    outputs = rng.normal(size=(4, 6, 3))
    shifted = outputs + 10.0 * rng.normal(size=(4, 6, 1))
    found = aligned(Classes(n_classes=3), shifted)
    np.testing.assert_allclose(found.mean(axis=0), shifted.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        np.diff(found, axis=-1), np.diff(outputs, axis=-1), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(np.ptp(found.mean(axis=-1), axis=0), 0.0, atol=1e-12)
    np.testing.assert_array_equal(aligned(Binary(), shifted), shifted)
