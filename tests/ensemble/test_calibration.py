"""Temperature and dispersion against fine grids of SciPy's likelihoods, and degenerate tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax

from bowtienet.ensemble.judgement import dispersion, temperature


def log_losses(t: np.ndarray, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Log losses (n, T) of the rows at temperatures (T,)."""
    logs = log_softmax(outputs[:, :, None] / t, axis=1)
    return -np.take_along_axis(logs, labels[:, None, None], axis=1)[:, 0]


def count_losses(alpha: np.ndarray, rates: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """-log NB2 (n, A) at dispersions (A,)."""
    size = 1.0 / alpha
    return -stats.nbinom(size, size / (size + rates[:, None])).logpmf(counts[:, None])


def planted_classes(
    rng: np.random.Generator, t: float, n: int = 3000
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of three classes that are right at temperature t, and labels."""
    outputs = 3.0 * rng.normal(size=(n, 3)) + 5.0
    return outputs, np.argmax(outputs / t + rng.gumbel(size=(n, 3)), axis=1)


def planted_counts(
    rng: np.random.Generator, alpha: float, n: int = 3000
) -> tuple[np.ndarray, np.ndarray]:
    rates = np.exp(rng.normal(1.0, 1.0, size=n))
    noise = rng.gamma(1.0 / alpha, alpha, size=n) if alpha else 1.0
    return rates, rng.poisson(rates * noise).astype(float)


@pytest.mark.parametrize("planted", [0.5, 1.0, 4.0])
def test_temperature(planted: float, rng: np.random.Generator) -> None:
    """Weights are repeated rows; no temperature near by has a smaller loss."""
    outputs, labels = planted_classes(rng, planted)
    weights = rng.integers(0, 3, size=len(labels))
    found = temperature(outputs, labels, weights.astype(float))
    grid = np.geomspace(0.8 * found, 1.25 * found, 2001)
    best = grid[np.argmin(weights @ log_losses(grid, outputs, labels))]
    assert found == pytest.approx(best, rel=4e-4)
    rows = np.repeat(np.arange(len(labels)), weights)
    repeated = temperature(outputs[rows], labels[rows], np.ones(len(rows)))
    assert repeated == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("planted", [0.05, 0.5, 3.0])
def test_dispersion(planted: float, rng: np.random.Generator) -> None:
    """Weights are repeated rows; no dispersion near by has a higher likelihood."""
    rates, counts = planted_counts(rng, planted)
    weights = rng.integers(0, 3, size=len(rates))
    found = dispersion(rates, counts, weights.astype(float))
    grid = np.geomspace(0.8 * found, 1.25 * found, 801)
    best = grid[np.argmin(weights @ count_losses(grid, rates, counts))]
    assert found == pytest.approx(best, rel=1e-3)
    rows = np.repeat(np.arange(len(rates)), weights)
    repeated = dispersion(rates[rows], counts[rows], np.ones(len(rows)))
    assert repeated == pytest.approx(found, rel=1e-4)


def test_poisson_counts_have_little_dispersion(rng: np.random.Generator) -> None:
    """And counts that vary less than Poisson ones have none."""
    rates, counts = planted_counts(rng, 0.0)
    assert dispersion(rates, counts, np.ones(3000)) < 0.02
    assert dispersion(rates, np.round(rates), np.ones(3000)) == 0.0


def test_dispersion_of_large_counts(rng: np.random.Generator) -> None:
    """Of counts near 10^8 it may be tiny: (relative sd)² = 1e-6, to 4 times sqrt(2 / 3000)."""
    rates = np.full(3000, 1e8)
    counts = np.round(rates * (1.0 + 1e-3 * rng.normal(size=3000)))
    assert dispersion(rates, counts, np.ones(3000)) == pytest.approx(1e-6, rel=0.11)


def test_classes_without_a_best_temperature(rng: np.random.Generator) -> None:
    """All right: the lowest; all wrong: the highest; outputs that say nothing: one."""
    outputs = rng.normal(size=(50, 3))
    ones = np.ones(50)
    assert temperature(outputs, np.argmax(outputs, axis=1), ones) == 0.05
    assert temperature(outputs, np.argmin(outputs, axis=1), ones) == 20.0
    assert temperature(np.zeros((50, 3)), np.zeros(50, dtype=int), ones) == 1.0
    assert temperature(1e6 * outputs, np.argmax(outputs, axis=1), ones) in (0.05, 1.0, 20.0)
    row, one = np.array([[0.0, 2.0]]), np.ones(1)
    assert temperature(row, np.array([1]), one) == 0.05
    assert temperature(row, np.array([0]), one) == 20.0


def test_counts_without_a_best_dispersion() -> None:
    """All zero, or one row: the range ends it."""
    assert dispersion(np.full(20, 3.0), np.zeros(20), np.ones(20)) == 100.0
    assert dispersion(np.zeros(5), np.zeros(5), np.ones(5)) == 0.0
    assert dispersion(np.array([3.0]), np.array([3.0]), np.ones(1)) == 0.0
    assert 0.1 < dispersion(np.array([3.0]), np.array([30.0]), np.ones(1)) <= 100.0
