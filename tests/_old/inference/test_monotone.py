"""No single update lowers the ELBO, in whatever order they come, and neither does a fit."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.start import initialize
from tests._old import builders

ROUNDING = 1e-9
DEPTHS = ((), *builders.HIDDEN)
N_UPDATES = 60


def total(point: builders.Point) -> float:
    return float(builders.bound_of(point).total)


@pytest.mark.parametrize("family", builders.ALL_FAMILIES)
@pytest.mark.parametrize("hidden", DEPTHS)
def test_no_single_update_lowers_the_bound(
    hidden: tuple[int, ...], family: str, rng: np.random.Generator
) -> None:
    point = builders.random_point(rng, hidden, family, n=6)
    names = list(builders.UPDATES)
    # Every update from the generic start, then in random order from wherever the last one led.
    for name in names:
        assert total(builders.UPDATES[name](point)) >= total(point) - ROUNDING
    order = [*rng.permutation(names), *rng.choice(names, size=N_UPDATES)]
    before = start = total(point)
    for step, name in enumerate(order):
        point = builders.UPDATES[name](point)
        after = total(point)
        assert np.isfinite(after)
        assert after >= before - ROUNDING * max(1.0, abs(before)), f"{name}, step {step}"
        before = after
    assert before > start + 1.0


@pytest.mark.parametrize(
    ("family", "name"),
    [
        *(
            ("normal_inverse_gaussian", name)
            for name in builders.UPDATES
            if name not in ("slab", "outcome")
        ),
        *(("regularized_horseshoe", name) for name in builders.UPDATES if name != "outcome"),
    ],
)
def test_each_update_raises_the_bound_and_is_idempotent(
    family: str, name: str, rng: np.random.Generator
) -> None:
    point = builders.random_point(rng, (4, 3), family)
    once = builders.UPDATES[name](point)
    twice = builders.UPDATES[name](once)
    assert total(once) > total(point) + 1e-4
    assert total(twice) == pytest.approx(total(once), rel=1e-12)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("family", builders.ALL_FAMILIES)
@pytest.mark.parametrize("hidden", DEPTHS)
def test_a_fit_only_climbs(
    hidden: tuple[int, ...], family: str, accelerate: bool, rng: np.random.Generator
) -> None:
    model = builders.fixed_model(hidden, family, gate_temperature=0.3)
    rows = builders.random_rows(rng, model, 25)
    factors = initialize(model, rows, rng, init="laplace")
    result = fit(model, rows, factors, max_iter=30, tol=0.0, accelerate=accelerate, block_size=10)
    history = np.asarray(result.elbo_history)
    assert result.status is Status.ITERATION_LIMIT
    assert len(history) > 10
    assert np.all(np.diff(history) >= -ROUNDING * np.abs(history[:-1]))
    assert history[-1] > history[0]
    assert float(result.elbo_terms.total) == history[-1]
