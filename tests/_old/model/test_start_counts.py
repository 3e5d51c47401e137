"""Where fits of counts begin: moments of rates, and tables that are hard."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet._old.model.outcomes import Counts
from bowtienet._old.model.outcomes.counts import start_counts


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
