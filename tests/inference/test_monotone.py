"""No single update lowers the ELBO of any network, in whatever order, and neither does a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bowtienet.inference.ascend import Status, ascend
from bowtienet.outcomes import GAUSSIAN, StudentT
from bowtienet.posterior.initialize import initialize
from tests import builders
from tests.builders import UPDATES, M, Point

ROUNDING = 1e-9
N_UPDATES = 60
CASES = [
    ((), "student_t", "gaussian"),
    ((), "gig", "classes"),
    ((), "horseshoe", "student_t"),
    ((), "gaussian", "binary"),
    ((4,), "laplace", "gaussian"),
    ((4,), "regularized_horseshoe", "gaussian"),
    ((4,), "normal_gamma", "student_t of one"),
    ((4,), "gaussian", "classes"),
    ((4,), "normal_inverse_gaussian", "binary"),
    ((4, 3), "normal_inverse_gaussian", "gaussian"),
    ((4, 3), "student_t", "binary"),
    ((4, 3), "horseshoe", "gaussian"),
    ((4, 3), "gig", "gaussian"),
    ((4, 3), "laplace", "student_t"),
    ((3, 5, 2), "student_t", "gaussian"),
    ((3, 5, 2), "regularized_horseshoe", "student_t of one"),
    ((3, 5, 2), "normal_gamma", "classes"),
    ((), "student_t", "gaussian, masked"),
    ((), "regularized_horseshoe", "binary, masked"),
    ((4,), "gaussian", "student_t of one, masked"),
    ((4, 3), "gig", "gaussian, masked"),
    ((4, 3), "horseshoe", "classes, masked"),
    ((4, 3), "normal_inverse_gaussian", "student_t, masked"),
]
"""Every family and outcome with no, one, and several hidden layers; some without some weights."""

all_cases = pytest.mark.parametrize(("hidden", "family", "outcome"), CASES, ids=str)


def random_point(rng: np.random.Generator, hidden, family: str, name: str, n: int) -> Point:
    name, *masked = name.split(", ")
    outcome, n_outputs = builders.OUTCOMES.get(name, (GAUSSIAN, 2))
    point = builders.random_point(rng, hidden, family, n, outcome, n_outputs)
    return builders.masked(point) if masked else point


def total(point: Point) -> np.ndarray:
    bound = builders.bound_of(point).total
    assert bound.shape == (M,)
    return bound


@all_cases
def test_no_single_update_lowers_the_bound(hidden, family, outcome, rng):
    point = random_point(rng, hidden, family, outcome, 6)
    before = start = total(point)
    # Every update from the generic start, then in random order from wherever the last one led.
    for update in UPDATES.values():
        assert np.all(total(update(point)) >= before - ROUNDING)
    order = [*rng.permutation(list(UPDATES)), *rng.choice(list(UPDATES), size=N_UPDATES)]
    for step, name in enumerate(order):
        point = UPDATES[name](point)
        after = total(point)
        assert np.all(np.isfinite(after))
        slack = ROUNDING * np.maximum(1.0, np.abs(before))
        assert np.all(after >= before - slack), f"{name}, step {step}"
        before = after
    assert np.all(before > start + 1.0)


@all_cases
def test_a_fit_only_climbs(hidden, family, outcome, rng):
    """EM included, also that of the outcome, which moves from sweep to sweep."""
    point = random_point(rng, hidden, family, outcome, 25)
    point = replace(point, model=replace(point.model, temperature=0.3))
    model, rows = point.model, point.rows
    start = initialize(builders.network_of(point, 0).model, rows, rng, M, "laplace")
    for accelerate in (False, True):
        result = ascend(model, start, rows, max_iter=30, tol=0.0, accelerate=accelerate)
        assert result.status == (Status.ITERATION_LIMIT,) * M
        assert result.n_sweeps == (30,) * M
        for history, bound in zip(result.elbo_history, result.elbo_terms.total, strict=True):
            assert 10 < len(history) <= 30 if accelerate else len(history) == 30
            assert np.all(np.diff(history) >= -ROUNDING * np.abs(history[:-1]))
            assert history[-1] > history[0]
            assert bound == history[-1]
        if isinstance(model.outcome, StudentT):
            assert np.all(result.model.outcome.freedom != model.outcome.freedom)
