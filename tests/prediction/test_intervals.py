"""Conformal intervals: their guarantee, its ranks, weights, counts, several targets, far tails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.intervals import conformal_interval, conformal_level, conformal_scores
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.warp import fit_warp


def gaussian(means: np.ndarray, noise: float = 1.0) -> Mixture:
    means = means[None]
    return Mixture(
        weights=np.ones(1), means=means, epistemic=0.0 * means, noise=np.full(means.shape, noise)
    )


def poisson(means: np.ndarray) -> CountMixture:
    return CountMixture(weights=np.ones(1), means=means[None], dispersion=np.zeros(1))


def test_scores_are_deviations(rng):
    """Also where the distribution function is one to rounding."""
    y = np.array([-30.0, -9.0, -0.3, 0.0, 2.0, 9.0, 30.0])
    np.testing.assert_allclose(conformal_scores(gaussian(0.0 * y), y), np.abs(y), rtol=1e-12)
    np.testing.assert_array_equal(conformal_scores(gaussian(0.0 * y), 0.0 * y + 50.0), np.inf)
    means = rng.normal(size=(2, 5))
    mixture = Mixture(
        weights=np.array([0.4, 0.6]), means=means, epistemic=np.ones((2, 5)), noise=np.ones((2, 5))
    )
    levels = rng.random(5)
    y = np.diagonal(mixture.ppf(levels))
    np.testing.assert_allclose(conformal_scores(mixture, y), np.abs(stats.norm.ppf(levels)))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 8, 9, 19, 99, 100])
def test_ranks(n, coverage, rng):
    """The least rank with rank / (n + 1) >= coverage, in whole numbers."""
    scores = rng.permutation(n) + 1.0
    per_cent = round(100 * coverage)
    rank = -(-per_cent * (n + 1) // 100)
    assert conformal_level(scores, coverage) == (rank if rank <= n else np.inf)


def test_weights(rng):
    scores, weights = rng.random(50), rng.uniform(0.5, 2.0, 50)
    for factor in (1.0, 1e-3, 1e6):
        assert conformal_level(scores, 0.8, weights * factor) == conformal_level(
            scores, 0.8, weights
        )
    assert conformal_level(scores, 0.8, np.full(50, 3.0)) == conformal_level(scores, 0.8)
    kept = rng.random(50) < 0.6
    assert conformal_level(scores, 0.8, 1.0 * kept) == conformal_level(scores[kept], 0.8)
    heavy = np.where(scores > 0.5, 10.0, 1.0)
    assert conformal_level(scores, 0.5, heavy) > conformal_level(scores, 0.5)


@pytest.mark.parametrize(
    "kind",
    ["wrong", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("warped", "counts"))],
)
def test_guarantee_of_a_split(kind, rng):
    """400 splits of 30 rows and 20 new ones hold 0.9 at least, however wrong the distribution is.

    The exact mean is 28/31 = 0.903 without ties; its standard error over splits is 0.0043, so that
    a false alarm at 0.89 has a chance of 1e-3.
    """
    held = []
    for _ in range(400):
        x = rng.normal(size=50)
        if kind == "counts":
            y = rng.poisson(np.exp(1.0 + x)).astype(float)
            parts = [poisson(np.exp(0.5 + 0.8 * part)) for part in (x[:30], x[30:])]
        else:
            y = x + np.exp(x) * rng.standard_t(3, size=50)
            parts = [gaussian(0.7 * part + 0.3, 0.5) for part in (x[:30], x[30:])]
        if kind == "warped":
            warp = fit_warp(np.exp(rng.normal(size=(50, 1))), np.ones(50), transformed=True)
            parts = [
                Mixture(
                    weights=part.weights,
                    means=part.means,
                    epistemic=part.epistemic,
                    noise=part.noise,
                    warps=(warp,),
                    warp_of=(0,),
                )
                for part in parts
            ]
        radius = conformal_level(conformal_scores(parts[0], y[:30]), 0.9)
        low, high = conformal_interval(parts[1], radius)
        held.append(np.mean((y[30:] >= low) & (y[30:] <= high)))
    assert np.mean(held) > 0.89
    if kind != "counts":
        assert np.mean(held) < 0.92


def test_a_target_that_is_an_end_lies_inside(rng):
    """The interval of radius score ends at the target, to rounding, or holds it."""
    x = rng.normal(size=40)
    for distribution, y in (
        (gaussian(x), x + 3.0 * rng.normal(size=40)),
        (poisson(np.exp(2.0 * x)), rng.poisson(np.exp(1.0 + x)).astype(float)),
    ):
        for row, score in enumerate(conformal_scores(distribution, y)):
            low, high = conformal_interval(distribution, score)
            assert low[row] - 1e-9 <= y[row] <= high[row] + 1e-9


def test_several_targets_separately(rng):
    means = rng.normal(size=(60, 2))
    y = means + rng.normal(size=(60, 2)) * np.array([1.0, 5.0])
    scores = conformal_scores(gaussian(means), y)
    radius = conformal_level(scores, 0.8)
    ends = conformal_interval(gaussian(means), radius)
    for target in range(2):
        assert radius[target] == conformal_level(scores[:, target], 0.8)
        alone = conformal_interval(gaussian(means[:, target]), radius[target])
        for found, expected in zip(ends, alone, strict=True):
            np.testing.assert_allclose(found[:, target], expected, rtol=1e-12)
    assert radius[1] > 3.0 * radius[0]


def test_an_infinite_radius_has_infinite_ends():
    low, high = conformal_interval(gaussian(np.zeros((3, 2))), np.array([np.inf, 1.0]))
    np.testing.assert_array_equal([low[:, 0], high[:, 0]], [[-np.inf] * 3, [np.inf] * 3])
    assert np.all(np.isfinite([low[:, 1], high[:, 1]]))
    low, high = conformal_interval(poisson(np.ones(2)), np.inf)
    np.testing.assert_array_equal([low, high], [[0.0, 0.0], [np.inf, np.inf]])
