"""Student-t noise: outliers hardly move the fit, and predictions say that there are some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieRegressor, load
from bowtienet._old.model.outcomes import StudentT
from tests._old.estimators.models import stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 400
NOISE = 0.3


def function(X: np.ndarray) -> np.ndarray:
    return 2.0 * np.abs(X[:, 0]) + np.sin(2.0 * X[:, 1])


RNG = np.random.default_rng(530)
X = RNG.uniform(-2.0, 2.0, size=(N, 3))
Y = function(X) + NOISE * RNG.normal(size=N)
WILD = RNG.random(N) < 0.1
SHIFTS = RNG.choice([-1.0, 1.0], size=N) * RNG.uniform(20.0, 50.0, size=N) * Y.std()
DIRTY = Y + WILD * SHIFTS
GRID = np.random.default_rng(531).uniform(-2.0, 2.0, size=(500, 3))


def heavy(**changes: Any) -> BowTieRegressor:
    """Of a few seconds, with penalties and lengths that held-out rows choose."""
    settings = {"outcome": "student_t", "effort": "fast", "hidden_layer_sizes": (20,)}
    settings |= {"n_estimators": None, "init_penalty": "auto", "gate_temperature": "auto"}
    return stacked(**(settings | {"max_iter": 80} | changes))


@pytest.fixture(scope="module")
def fitted() -> BowTieRegressor:
    return heavy().fit(X, DIRTY)


def rmse(model: BowTieRegressor) -> float:
    return float(np.sqrt(np.mean((model.predict(GRID) - function(GRID)) ** 2)))


def test_wild_targets_move_the_fit_by_less_than_a_standard_error(fitted: BowTieRegressor) -> None:
    """On average over a grid, in standard errors of the function of the fit without these rows."""
    clean = heavy().fit(X[~WILD], Y[~WILD])
    known = clean.predict_components(GRID)
    moved = (fitted.predict(GRID) - known.mean) / np.sqrt(known.epistemic_variance)
    assert np.sqrt(np.mean(moved**2)) < 1.0
    assert rmse(fitted) < 1.1 * rmse(clean)
    gaussian = heavy(outcome="gaussian").fit(X, DIRTY)
    assert rmse(gaussian) > 5.0 * rmse(fitted)


def test_the_function_is_known_as_well_as_without_wild_targets(fitted: BowTieRegressor) -> None:
    """The predictive variance has the outliers, the epistemic part has not."""
    found, (_, std) = fitted.predict_components(GRID), fitted.predict(GRID, return_std=True)
    assert_allclose(found.epistemic_variance + found.noise_variance, std**2)
    known = heavy().fit(X[~WILD], Y[~WILD]).predict_components(GRID)
    assert found.epistemic_variance.mean() < 4.0 * known.epistemic_variance.mean()
    assert np.sqrt(found.epistemic_variance.mean()) < 2.0 * rmse(fitted)
    assert std.mean() > 5.0 * NOISE
    for joint in (False, True):
        smooth = fitted.sample_y(GRID[:20], 500, noise=False, joint=joint)
        assert smooth.std(axis=1).mean() < 2.0 * rmse(fitted)


def test_intervals_have_the_width_of_the_bulk_and_the_tails(fitted: BowTieRegressor) -> None:
    """80 % of targets with 10 % wild: 0.04 for the fit, and four standard errors."""
    rng = np.random.default_rng(532)
    wild = rng.random(len(GRID)) < 0.1
    y = function(GRID) + NOISE * rng.normal(size=len(GRID)) + wild * 100.0
    ends = fitted.predict_interval(GRID, 0.8)
    held = np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))
    assert abs(held - 0.8) < 0.04 + 4.0 * np.sqrt(0.8 * 0.2 / len(GRID))
    assert np.median(ends[:, 1] - ends[:, 0]) < 8.0 * NOISE
    gaussian = heavy(outcome="gaussian").fit(X, DIRTY)
    assert fitted.log_score(GRID, y) > gaussian.log_score(GRID, y)


def test_draws_have_the_moments_of_the_distribution() -> None:
    """Noise of t_5, so that moments of draws settle."""
    rng = np.random.default_rng(533)
    model = heavy().fit(X, function(X) + NOISE * rng.standard_t(5, size=N))
    mean, std = model.predict(GRID[:20], return_std=True)
    for joint in (False, True):
        draws = model.sample_y(GRID[:20], 3000, joint=joint)
        assert draws.shape == (20, 3000)
        assert (np.abs(draws.mean(axis=1) - mean) < 0.15 * std).all()
        assert_allclose(draws.std(axis=1), std, rtol=0.25)


def test_degrees_of_freedom_are_found_or_given(fitted: BowTieRegressor) -> None:
    def freedoms(model: BowTieRegressor) -> list[float]:
        outcomes = [member.model.outcome for member in model.ensemble_.members]
        assert all(isinstance(one, StudentT) for one in outcomes)
        return [float(np.mean(one.freedom)) for one in outcomes]  # type: ignore[attr-defined]

    assert max(freedoms(fitted)) < 4.0
    assert min(freedoms(heavy().fit(X, Y))) > 2.0 * max(freedoms(fitted))
    assert set(freedoms(heavy(degrees_of_freedom=3.5).fit(X, DIRTY))) == {3.5}
    with pytest.raises(ValueError, match="degrees_of_freedom"):
        heavy(degrees_of_freedom=0.0).fit(X, Y)


def test_several_targets(tmp_path: Path) -> None:
    both = np.column_stack([DIRTY, X[:, 2] + 0.1 * np.random.default_rng(534).normal(size=N)])
    model = heavy().fit(X, both)
    found = model.predict(GRID)
    assert found.shape == (len(GRID), 2)
    assert np.sqrt(np.mean((found[:, 0] - function(GRID)) ** 2)) < 0.5
    assert np.sqrt(np.mean((found[:, 1] - GRID[:, 2]) ** 2)) < 0.2
    assert model.predict_interval(GRID).shape == (len(GRID), 2, 2)
    model.save(tmp_path / "model.btn")
    assert_array_equal(load(tmp_path / "model.btn").predict(GRID), found)


def test_files_keep_the_outcome(fitted: BowTieRegressor, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.btn")
    again = load(tmp_path / "model.btn")
    assert again.outcome == "student_t"
    assert_array_equal(again.predict_interval(GRID), fitted.predict_interval(GRID))
    assert_array_equal(again.sample_y(GRID, 3), fitted.sample_y(GRID, 3))


@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_streams_and_rows_that_arrive(solver: str) -> None:
    batches = [(X[:150], DIRTY[:150]), (X[150:], DIRTY[150:])]
    model = heavy(solver=solver, batch_size=100, max_iter=5).fit(batches)
    assert model.solver_ == solver
    before = rmse(model)
    assert before < 0.6
    model.partial_fit(X[:100], DIRTY[:100])
    assert rmse(model) < before + 0.2


def test_explanations_and_refusals(fitted: BowTieRegressor) -> None:
    explained = fitted.explain(X[:3])
    mean, std = fitted.predict(X[:3], return_std=True)
    assert_allclose(explained.base_mean + explained.mean_contributions.sum(axis=1), mean)
    assert_allclose(explained.base_std + explained.std_contributions.sum(axis=1), std)
    assert fitted.structure(X, DIRTY).selected[:2].all()
    with pytest.raises(ValueError, match="not for outcome='student_t'"):
        fitted.prune(X, DIRTY)
