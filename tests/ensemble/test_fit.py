"""The five steps of a fit on small tables: no leak, the same again, members, rounds, what joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet import BowTieRegressor
from bowtienet.ensemble import fit as module
from bowtienet.ensemble import linear
from bowtienet.ensemble.ensemble import member_outputs, predictive, seen_of
from bowtienet.ensemble.fit import ENOUGH_GAIN, KEPT, fit_ensemble, go_on, without_epistemic
from bowtienet.ensemble.forecasts import (
    FIRST_STEPS,
    cross_fit,
    forecast,
    forecasts_of,
    train_recipes,
)
from bowtienet.ensemble.hinges import variances
from bowtienet.ensemble.judgement import LOSS_OF_WARP, Forecasts, joining, judge
from bowtienet.ensemble.linear import cross_fit_linear
from bowtienet.ensemble.portfolio import LINEAR, Recipe, portfolio, widths
from bowtienet.ensemble.problem import Problem, goals, has_outliers, pose
from bowtienet.ensemble.stacking import Stack
from bowtienet.networks.networks import count_of, outputs, random_networks, take
from bowtienet.outcomes import GAUSSIAN, Counts, Outcome, Softmax, StudentT

OUTCOMES = [GAUSSIAN, Softmax(n_classes=3), Counts()]


def planted(
    rng: np.random.Generator, outcome: Outcome, n: int = 90
) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, 3))
    signal = x[:, :1] + np.abs(x[:, 1:2])
    if isinstance(outcome, Softmax):
        return x, np.digitize(signal + 0.5 * rng.normal(size=(n, 1)), [0.3, 1.3]).astype(float)
    if isinstance(outcome, Counts):
        return x, rng.poisson(np.exp(signal)).astype(float)
    return x, signal + 0.3 * rng.normal(size=(n, 1))


def posed(
    x: np.ndarray, y: np.ndarray, outcome: Outcome = GAUSSIAN, seed: int = 0, **changes: Any
) -> Problem:
    settings = BowTieRegressor(**{"target_transform": "none", **changes})
    columns = np.arange(x.shape[1])
    return pose(settings, x, y, np.ones(len(x)), columns, outcome, hidden=(8,), seed=seed)


def recipes_of(problem: Problem) -> tuple[Recipe, ...]:
    return portfolio(
        tuple(problem.views), max(1, len(problem.warps)), problem.outcome, shrinks=True
    )


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.name)
def test_no_target_of_a_held_out_row_reaches_its_forecast(
    outcome: Outcome, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, also after a round: targets of a fold change places, so that means stay.

    The linear recipe has them in common rounding. Its penalty is given, as all rows choose it.
    """
    monkeypatch.setattr(linear, "PENALTIES", (2.0,))
    problem = posed(*planted(rng, outcome), outcome)
    fold = np.flatnonzero(problem.folds == 4)
    targets = problem.targets.copy()
    targets[fold] = np.roll(targets[fold], 1, axis=0)
    assert np.any(targets != problem.targets)

    def said(problem: Problem) -> Forecasts:
        first = cross_fit(problem, recipes_of(problem))
        networks = train_recipes(problem, first.recipes, first.networks, 100, seed=1)
        return forecasts_of(problem, first.recipes, networks)

    before, after = said(problem), said(replace(problem, targets=targets))
    for recipe, a, b in zip(before.recipes, before.outputs, after.outputs, strict=True):
        if recipe.view == LINEAR:
            np.testing.assert_allclose(a[fold], b[fold], rtol=1e-5, atol=1e-7)
        else:
            np.testing.assert_array_equal(a[fold], b[fold])
        assert np.any(np.delete(a, fold, axis=0) != np.delete(b, fold, axis=0))


def test_each_row_is_forecast_by_the_network_of_its_fold(rng: np.random.Generator) -> None:
    """Rows of fold -1 are forecast by none."""
    problem = posed(*planted(rng, GAUSSIAN))
    folds = np.where(np.arange(90) % 4 == 0, -1, problem.folds)
    problem, recipe = replace(problem, folds=folds), Recipe(view="standard", outcome=GAUSSIAN)
    networks = random_networks(rng, problem.inputs, (8,), 2, problem.n_folds)
    result = forecast(problem, recipe, networks)
    held = [n for n in range(90) if folds[n] >= 0]
    assert result.shape == (len(held), 2)
    for row, n in zip(result, held, strict=True):
        single = take(networks, slice(folds[n], folds[n] + 1))
        np.testing.assert_allclose(row, outputs(single, problem.inputs[n : n + 1])[0, 0], rtol=1e-4)


# The same again


def test_members_are_the_networks_of_the_folds(rng: np.random.Generator) -> None:
    """And of the linear recipe the function of all rows."""
    problem = posed(*planted(rng, GAUSSIAN))
    x, y = problem.inputs, 2.0 * problem.inputs[:, :1] + 0.1 * rng.normal(size=(90, 1))
    problem = posed(x, y)
    ensemble = fit_ensemble(problem, 0)
    assert problem.n_folds == 10
    assert 1 < len(ensemble.recipes) == len(ensemble.members) <= KEPT
    for recipe, member in zip(ensemble.recipes, ensemble.members, strict=True):
        assert count_of(member) == (1 if recipe.view == LINEAR else 10)
    place = [recipe.view for recipe in ensemble.recipes].index(LINEAR)
    exact = cross_fit_linear(
        x, goals(problem, False), np.ones(90), problem.folds, 10, GAUSSIAN, problem.prior
    )
    np.testing.assert_array_equal(ensemble.members[place].layers[0], exact[-1:])
    assert ensemble.stacks[0].weights[place] > 0.3
    assert set(ensemble.views) == {recipe.view for recipe in ensemble.recipes} - {LINEAR}


def test_noise_is_less_what_is_epistemic(rng: np.random.Generator) -> None:
    """But never less than a share of it."""
    x, y = planted(rng, GAUSSIAN, 60)
    ensemble = fit_ensemble(posed(x, y), 0)
    assert ensemble.hinges is not None
    left_open = variances(ensemble.hinges, seen_of(ensemble, x)[ensemble.hinges.view]).mean()
    apart = left_open + np.array(
        [
            np.mean(np.var(values, axis=0, ddof=1)) if len(values) > 1 else 0.0
            for values in member_outputs(ensemble, seen_of(ensemble, x))
        ]
    )
    assert apart.max() > 0.0
    for spread in (10.0 * apart.max(), 1e-3 * apart.max(), 0.0):
        given = np.full((len(apart), 1), spread)
        left = without_epistemic(replace(ensemble, spread=given), x).spread
        np.testing.assert_allclose(left[:, 0], np.maximum(spread - apart, 0.3 * spread))
    assert np.all(ensemble.spread > 0.0)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_tables_of_few_rows(n: int, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    for targets in (y, np.zeros((n, 1))):
        distribution = predictive(fit_ensemble(posed(x, targets), 1), x)
        assert np.isfinite(distribution.mean()).all()
        assert np.isfinite(distribution.std()).all()


def test_a_total_among_the_rows_does_not_spoil_the_others(rng: np.random.Generator) -> None:
    """A row of a hundred times the others: weak recipes have twins that do not follow it."""
    x = rng.uniform(1.0, 3.0, size=(160, 2))
    y = 5.0 + np.sin(3.0 * x[:, :1]) + 0.1 * rng.normal(size=(160, 1))
    x[0], y[0] = 100.0 * x[1:].mean(axis=0), 100.0 * y[1:].mean()
    assert not has_outliers(posed(x[1:120], y[1:120]))
    problem = posed(x[:120], y[:120])
    assert has_outliers(problem)
    ensemble = fit_ensemble(problem, 0)
    assert any(isinstance(recipe.outcome, StudentT) for recipe in ensemble.recipes)
    away = np.asarray(predictive(ensemble, x[120:]).mean()) - y[120:]
    assert np.sqrt(np.mean(away**2)) < 0.3


# Warped recipes


@pytest.mark.parametrize(
    ("loss", "joins"), [(LOSS_OF_WARP - 0.01, True), (LOSS_OF_WARP + 0.01, False)]
)
def test_a_warped_recipe_joins_if_its_mean_does_not_suffer(
    loss: float, joins: bool, rng: np.random.Generator
) -> None:
    """Its warp is a line here, so that its errors are exactly so many times the plain one's."""
    problem = posed(*planted(rng, GAUSSIAN))
    problem = replace(problem, warps=problem.warps * 2)
    errors = 0.2 * rng.normal(size=(90, 1))
    aims = goals(problem, False)
    said = [aims + factor * errors for factor in (1.0, 1.5, loss)]
    plain = Recipe(view="standard", outcome=GAUSSIAN)
    recipes = (plain, plain, replace(plain, is_warped=True))
    forecasts = judge(problem, recipes, (None,) * 3, np.stack(said))
    expected = [0, 1, 2] if joins else [0, 1]
    assert joining(problem, forecasts).tolist() == expected


def worth(log_density: float, recipes: Any = ()) -> Forecasts:
    """Forecasts of nothing, of this density."""
    nothing = np.zeros((1, 1))
    stack = Stack(weights=np.ones(1), levels=np.ones(1), gates=nothing, log_density=log_density)
    return Forecasts(recipes=recipes, networks=(), outputs=nothing, stacks=(stack,), spread=nothing)


@pytest.mark.parametrize(
    ("gains", "n_rounds", "kept"),
    [
        ([-0.1, 1.0, 1.0], 1, 0),
        ([0.5 * ENOUGH_GAIN, 1.0, 1.0], 1, 1),
        ([2.0 * ENOUGH_GAIN, -0.1, 1.0], 2, 1),
        ([2.0 * ENOUGH_GAIN, 0.5 * ENOUGH_GAIN, 1.0], 2, 2),
        ([1.0, 1.0, 1.0], 3, 3),
    ],
)
def test_a_round_is_kept_if_it_gains(
    gains: list[float],
    n_rounds: int,
    kept: int,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small gain is the last; each round goes on from the one before, with twice the steps."""
    problem, recipes = (
        posed(*planted(rng, GAUSSIAN, 30)),
        (Recipe(view="standard", outcome=GAUSSIAN),),
    )
    start, courses = worth(0.0, recipes), []

    def train(problem: Problem, recipes: Any, started: Any, steps: int, seed: int) -> Any:
        courses.append((started, steps, seed))
        return f"after {len(courses)}"

    def forecasts_of(problem: Problem, recipes: Any, networks: Any) -> Forecasts:
        return replace(worth(sum(gains[: len(courses)]), recipes), networks=networks)

    monkeypatch.setattr(module, "train_recipes", train)
    monkeypatch.setattr(module, "forecasts_of", forecasts_of)
    result = go_on(problem, start, 3)
    started, steps, seeds = zip(*courses, strict=True)
    assert started == ((), "after 1", "after 2")[:n_rounds]
    assert steps == tuple(FIRST_STEPS * 2**number for number in range(1, n_rounds + 1))
    assert len(set(seeds)) == n_rounds
    assert result.networks == (f"after {kept}" if kept else ())
    assert result.log_density == pytest.approx(sum(gains[:kept]))
    assert go_on(problem, start, 0) is start


# Ctrl-C


def test_an_interrupted_fit(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the held-out forecasts it is fitted, with a warning; before them there is nothing."""

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    x, y = planted(rng, GAUSSIAN, 60)
    monkeypatch.setattr(module, "train_recipes", interrupt)
    with pytest.warns(UserWarning, match="interrupted: the networks of the held-out forecasts"):
        ensemble = fit_ensemble(posed(x, y), 2)
    assert np.mean((predictive(ensemble, x).mean() - y) ** 2) < 0.5 * np.var(y)
    monkeypatch.setattr(module, "cross_fit", interrupt)
    with pytest.raises(KeyboardInterrupt, match="nothing is fitted"):
        fit_ensemble(posed(x, y), 2)


@pytest.mark.parametrize(("gain", "joins"), [(0.19, False), (0.21, True)])
def test_a_warped_recipe_of_a_far_better_density_joins(
    gain: float, joins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its mean; `joining` leaves it out here."""
    few, everything = worth(1.0), worth(1.0 + gain)
    monkeypatch.setattr(module, "joining", lambda *_: None)
    monkeypatch.setattr(module, "chosen", lambda *_: few)
    assert module.joined(None, everything) is (everything if joins else few)


@pytest.mark.parametrize(
    ("n", "effort", "expected"),
    [
        (999, "balanced", (50,)),
        (1_000, "fast", (50, 50)),
        (5_000, "balanced", (64, 64)),
        (999, "best", (64, 64)),
        (5_000, "best", (128, 64)),
    ],
)
def test_widths(n: int, effort: str, expected: tuple[int, ...]) -> None:
    """Two layers from a thousand rows on; `effort` makes them wider."""
    assert widths(n, effort) == expected
