"""The engine with outcomes that are not Gaussian: stationary updates, EM, and limiting cases.

The local factors of the outcomes themselves are compared with free ones, whose derivatives vanish,
in `test_outcomes_against_oracle`. `test_monotone` and `test_invariances` have all outcomes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bowtienet._arrays import map_arrays
from bowtienet.inference.ascend import RowProvider, ascend, build_blocks, sweep
from bowtienet.inference.local_step import initialize_local
from bowtienet.model.model import BowTieModel, Rows
from bowtienet.outcomes import GAUSSIAN, StudentT
from bowtienet.posterior.factors import Posterior
from bowtienet.posterior.initialize import initialize
from tests import builders
from tests.autodiff import assert_stationary, outcome_gradient
from tests.builders import M

ROUNDING = 1e-9


def problem(hidden: tuple[int, ...], name: str, n: int = 40) -> tuple[BowTieModel, Posterior, Rows]:
    """What `ascend` begins with."""
    rng = np.random.default_rng(7)
    outcome, n_outputs = builders.OUTCOMES[name]
    point = builders.random_point(rng, hidden, n=n, outcome=outcome, n_outputs=n_outputs)
    point = replace(point, model=replace(point.model, temperature=0.3))
    start = initialize(builders.network_of(point, 0).model, point.rows, rng, M, "laplace")
    return point.model, start, point.rows


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("student_t of one", (4,)),  # common axes
        ("student_t", (4, 3)),
        ("classes", (4,)),
        ("binary", (4, 3)),
        # seconds of compilation each
        pytest.param("student_t of one", (4, 3), marks=pytest.mark.slow),
        pytest.param("student_t", (4,), marks=pytest.mark.slow),
        pytest.param("classes", (4, 3), marks=pytest.mark.slow),
        pytest.param("binary", (4,), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_updates_are_stationary(name, hidden, rng):
    outcome, n_outputs = builders.OUTCOMES[name]
    point = builders.random_point(rng, hidden, n=5, outcome=outcome, n_outputs=n_outputs)
    names = ("activations", "weights", "noise")
    slopes = outcome_gradient(point, names)
    before = slopes(point)
    for update in names:
        moved, after = before[update], slopes(builders.UPDATES[update](point))[update]
        if update == "noise" and not outcome.has_noise:
            for slope in (moved, after):
                for what in ("concentration", "scale"):
                    assert not slope.pop(f"{what} {len(hidden)}").any()
        assert_stationary(moved, after)


@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
def test_em_from_any_degrees_of_freedom(hidden):
    """Far from their place, too, the bound rises."""
    model, start, rows = problem(hidden, "student_t")
    for freedom in (0.7, 16.0):
        model = replace(model, outcome=StudentT(freedom=freedom))
        ascent = ascend(model, start, rows, max_iter=60, tol=0.0, accelerate=False)
        for history in ascent.elbo_history:
            assert np.all(np.diff(history) >= -ROUNDING * np.abs(history[:-1]))
        assert np.all(np.abs(ascent.model.outcome.freedom - freedom) > 0.1)


def test_classes_swap_with_the_sign_of_the_output():
    """Binary: y -> 1 - y, z -> -z."""
    model, start, rows = problem((4,), "binary")
    *hidden, output = start.layers
    flipped = replace(output, weights=replace(output.weights, mean=-output.weights.mean))
    first = ascend(model, start, rows, max_iter=4, tol=0.0)
    second = ascend(
        model,
        replace(start, layers=(*hidden, flipped)),
        replace(rows, targets=1.0 - rows.targets),
        max_iter=4,
        tol=0.0,
    )
    np.testing.assert_allclose(second.elbo_terms.total, first.elbo_terms.total, rtol=1e-10)


def test_many_degrees_of_freedom_are_gaussian_noise(monkeypatch):
    """Sweep by sweep: with one round of global updates S_L is renewed at the same places."""
    model, start, rows = problem((4,), "student_t")
    monkeypatch.setattr(StudentT, "renewed", lambda self, *_: self)
    settings = {"max_iter": 6, "tol": 0.0, "accelerate": False}
    gaussian = replace(model, outcome=GAUSSIAN)
    expected = ascend(gaussian, start, rows, **settings).posterior.layers
    errors = []
    for freedom in (1e3, 1e5, 1e7):
        heavy = replace(model, outcome=StudentT(freedom=freedom))
        layers = ascend(heavy, start, rows, **settings).posterior.layers
        parts: list[float] = []
        map_arrays(
            lambda a, b, parts=parts: parts.append(np.max(np.abs(a - b) / (1 + np.abs(b)))),
            layers,
            expected,
        )
        errors.append(max(parts))
    assert errors[0] < 0.02
    assert errors[1] < 0.02 * errors[0]
    assert errors[2] < 0.02 * errors[1]


@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
def test_no_rows_with_weight_leave_the_prior(hidden):
    model, start, rows = problem(hidden, "binary")
    blocks = build_blocks(replace(rows, weights=0.0 * rows.weights), model, M)
    memory = [initialize_local(model, start, b.inputs, b.targets) for b, _ in blocks]
    found = sweep(model, start, RowProvider(blocks), memory, rounds=1)
    np.testing.assert_array_equal(found.elbo_terms.likelihood, 0.0)
    for layer in found.posterior.layers:
        np.testing.assert_array_equal(layer.weights.mean, 0.0)
