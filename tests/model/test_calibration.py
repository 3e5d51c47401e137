"""Slopes, dispersions and starts that suit rows: planted values, quadrature, hard tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import nbinom

from bowtienet.model.outcomes import (
    Binary,
    Classes,
    Counts,
    Gaussian,
    Outcome,
    StudentT,
    calibration,
)
from bowtienet.model.outcomes.calibration import scaled_log_likelihood, start_counts


def draw(outcome: Outcome, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Targets (n, 1) of classes with these outputs."""
    chances = expit(outputs)
    if isinstance(outcome, Binary):
        return (rng.random(chances.shape) < chances).astype(float)
    bounds = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    return (rng.random((len(outputs), 1)) > bounds).sum(axis=1, keepdims=True).astype(float)


def draw_counts(n: int, r: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Targets with exposures, and the logs of their rates (n, 1)."""
    logs, z = rng.normal(size=n), rng.normal(size=(n, 1))
    means = np.exp(z[:, 0] + logs + 1.0)
    return np.column_stack([rng.poisson(means * rng.gamma(r, 1.0 / r, size=n)), logs]), z


@pytest.mark.parametrize("over", [0.25, 1.0, 4.0])
@pytest.mark.parametrize(("outcome", "width"), [(Binary(), 1), (Classes(n_classes=4), 4)])
def test_slope_recovers_planted_confidence(
    outcome: Outcome, width: int, over: float, rng: np.random.Generator
) -> None:
    """The slope of 5,000 rows has a relative standard error of about 0.03."""
    z = 1.5 * rng.normal(size=(5000, width))
    targets = draw(outcome, z, rng)
    same, slope, values = scaled_log_likelihood(outcome, targets, over * z, None, np.ones(5000))
    assert same is outcome
    np.testing.assert_allclose(slope * over, 1.0, atol=0.15)
    np.testing.assert_allclose(values, outcome.log_likelihood(targets, slope * over * z))
    best = minimize_scalar(
        lambda log: -np.sum(outcome.log_likelihood(targets, np.exp(log) * over * z)),
        bounds=(-3.0, 3.0),
        method="bounded",
    )
    np.testing.assert_allclose(values.sum(), -best.fun, rtol=1e-6)
    np.testing.assert_allclose(slope, np.exp(best.x), rtol=2e-3)


@pytest.mark.parametrize(("outcome", "width"), [(Binary(), 1), (Classes(n_classes=4), 4)])
def test_slope_of_uncertain_outputs_is_the_best(
    outcome: Outcome, width: int, rng: np.random.Generator
) -> None:
    z, v = rng.normal(size=(2000, width)), rng.uniform(0.1, 2.0, size=(2000, width))
    targets, weights = draw(outcome, z, rng), rng.uniform(0.0, 2.0, size=2000)
    _, slope, values = scaled_log_likelihood(outcome, targets, 2.0 * z, v, weights)

    def at(a: float) -> np.ndarray:
        moderated = 2.0 * a * z / np.sqrt(1.0 + np.pi / 8.0 * a * a * v)
        return outcome.log_likelihood(targets, moderated)

    np.testing.assert_allclose(values, at(slope))
    for other in (0.98, 1.02):
        assert weights @ at(slope * other) < weights @ values


def test_moderated_probabilities_are_near_the_integral(rng: np.random.Generator) -> None:
    """The approximation is off by up to 0.02 for variances up to 4."""
    z, v = 2.0 * rng.normal(size=(500, 1)), rng.uniform(0.0, 4.0, size=(500, 1))
    targets = draw(Binary(), z, rng)
    _, slope, values = scaled_log_likelihood(Binary(), targets, z, v, np.ones(500))
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    exact = expit(slope * (z + np.sqrt(v) * points)) @ weights / weights.sum()
    found = np.where(targets[:, 0] == 1.0, np.exp(values), -np.expm1(values))
    np.testing.assert_allclose(found, exact, atol=0.03)


def test_few_evaluations(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    slope_at = calibration._slope_at
    monkeypatch.setattr(calibration, "_slope_at", lambda *given: seen.append(1) or slope_at(*given))
    z = rng.normal(size=(300, 3))
    for over in (0.1, 0.5, 1.0, 2.0, 15.0):
        seen.clear()
        targets = draw(Classes(n_classes=3), z, rng)
        scaled_log_likelihood(Classes(n_classes=3), targets, over * z, None, np.ones(300))
        assert len(seen) <= 14


def test_rows_without_weight_do_not_choose(rng: np.random.Generator) -> None:
    z, weights = rng.normal(size=(200, 1)), np.ones(200)
    targets, weights[100:] = draw(Binary(), z, rng), 0.0
    _, slope, values = scaled_log_likelihood(Binary(), targets, z, None, weights)
    _, alone, own = scaled_log_likelihood(Binary(), targets[:100], z[:100], None, np.ones(100))
    assert slope == alone
    np.testing.assert_array_equal(values[:100], own)
    assert np.isfinite(values).all()


def test_large_tables_choose_by_a_part_of_the_rows(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = rng.normal(size=(4000, 3))
    targets, weights = draw(Classes(n_classes=3), z, rng), np.ones(4000)
    monkeypatch.setattr(calibration, "SEARCH_NUMBERS", 3000)
    _, slope, values = scaled_log_likelihood(Classes(n_classes=3), targets, z, None, weights)
    some = slice(None, None, 4)
    monkeypatch.undo()
    _, part, _ = scaled_log_likelihood(
        Classes(n_classes=3), targets[some], z[some], None, weights[some]
    )
    assert slope == part
    assert values.shape == (4000,)


@pytest.mark.parametrize("case", ["separable", "upside down", "nothing known", "one row"])
def test_slopes_of_hard_tables(case: str, rng: np.random.Generator) -> None:
    z = rng.normal(size=(50, 1))
    targets = (z > 0.0).astype(float)
    if case == "upside down":
        targets = 1.0 - targets
    elif case == "nothing known":
        z = np.zeros((50, 1))
    elif case == "one row":
        z, targets = z[:1], targets[:1]
    _, slope, values = scaled_log_likelihood(Binary(), targets, z, None, np.ones(len(z)))
    expected = {"upside down": 0.05, "nothing known": 1.0}.get(case, 20.0)
    np.testing.assert_allclose(slope, expected)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("outcome", [Gaussian(), StudentT()])
def test_outcomes_with_noise_keep_their_slope(outcome: Outcome, rng: np.random.Generator) -> None:
    y, z = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    same, slope, values = scaled_log_likelihood(outcome, y, z, np.ones_like(z), np.ones(30))
    assert same is outcome
    assert slope == 1.0
    np.testing.assert_allclose(values, outcome.log_likelihood(y, z))


@pytest.mark.parametrize("r", [0.4, 3.0, 40.0])
def test_dispersion_recovers_the_planted_one(r: float, rng: np.random.Generator) -> None:
    targets, z = draw_counts(20_000, r, rng)
    outcome = Counts(dispersion=2.0, offset=1.0 - np.log(2.0))
    found, slope, values = scaled_log_likelihood(outcome, targets, z, None, np.ones(20_000))
    assert isinstance(found, Counts)
    assert slope == 1.0
    np.testing.assert_allclose(found.dispersion, r, rtol=0.15)
    np.testing.assert_allclose(found.offset + np.log(found.dispersion), 1.0)
    np.testing.assert_allclose(values, found.log_likelihood(targets, z), rtol=1e-9)
    means, own = np.exp(z[:, 0] + targets[:, 1] + 1.0), found.dispersion
    expected = nbinom.logpmf(targets[:, 0], own, own / (own + means))
    np.testing.assert_allclose(values, expected, rtol=1e-8)
    for other in (0.97 * own, 1.03 * own):
        assert nbinom.logpmf(targets[:, 0], other, other / (other + means)).sum() < values.sum()


def test_uncertain_rates_have_the_right_mean_and_variance(rng: np.random.Generator) -> None:
    """Moments of a mixture of 400,000 draws against those of its distribution."""
    count, v = np.arange(4000.0), 0.3
    targets = np.column_stack([count, np.zeros(4000)])
    z, spread = np.full((4000, 1), 0.5), np.full((4000, 1), v)
    weights = np.zeros(4000)
    weights[:12] = [3, 4, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1]
    found, _, values = scaled_log_likelihood(Counts(dispersion=3.0), targets, z, spread, weights)
    assert isinstance(found, Counts)
    r, p = float(found.dispersion), np.exp(values)
    rates = 3.0 * np.exp(0.5 + np.sqrt(v) * rng.normal(size=400_000))
    draws = rng.poisson(rates * rng.gamma(r, 1.0 / r, size=400_000))
    np.testing.assert_allclose(p.sum(), 1.0, rtol=1e-6)
    np.testing.assert_allclose(p @ count, draws.mean(), rtol=0.01)
    np.testing.assert_allclose(p @ count**2 - (p @ count) ** 2, draws.var(), rtol=0.06)


@pytest.mark.parametrize("r", [0.5, 5.0])
def test_counts_start_from_their_moments(r: float, rng: np.random.Generator) -> None:
    logs = rng.normal(0.0, 0.5, size=50_000)
    logs[0] = np.log(1e-200)
    means = 7.0 * np.exp(logs)
    targets = np.column_stack([rng.poisson(means * rng.gamma(r, 1.0 / r, size=50_000)), logs])
    weights = np.ones(50_000)
    targets[1], weights[1] = [1e9, 50.0], 0.0
    found = start_counts(targets, weights)
    rate = targets[:, 0] @ weights / (np.exp(logs) @ weights)
    np.testing.assert_allclose(found.dispersion * np.exp(found.offset), rate, rtol=1e-3)
    np.testing.assert_allclose(found.dispersion, r, rtol=0.1)


@pytest.mark.parametrize(
    ("count", "dispersion"), [([0, 0, 0], 1e3), ([2, 2, 2], 1e3), ([0, 0, 10**6], 0.5)]
)
def test_starts_of_hard_counts(count: list[int], dispersion: float) -> None:
    targets = np.column_stack([count, np.full(3, -300.0)]).astype(float)
    found = start_counts(targets, np.ones(3))
    assert np.isfinite(found.offset)
    np.testing.assert_allclose(found.dispersion, dispersion, rtol=1e-3)
    assert np.all(np.isfinite(found.working_targets(targets)))
    assert start_counts(targets, np.zeros(3)) == Counts()
