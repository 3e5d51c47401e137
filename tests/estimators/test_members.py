"""Members: lengths, folds, places, snapshots, and which recipe stacking chooses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from bowtienet import BowTieRegressor
from bowtienet._arrays import map_arrays
from bowtienet.data.rows import Rows, build_rows, take_rows
from bowtienet.estimators import fitting, running
from bowtienet.estimators import members as module
from bowtienet.estimators import tasks as tasks_module
from bowtienet.estimators.members import (
    allocate,
    fit_alike,
    fit_stacked,
    held_out_folds,
    lengths_up_to,
    weigh,
)
from bowtienet.estimators.tasks import (
    Outcome,
    Recipe,
    Settings,
    Task,
    held_out_score,
    run_task,
)
from bowtienet.inference.convergence import Status
from bowtienet.inference.coordinate_ascent import fit
from bowtienet.inference.iterate import FitResult
from bowtienet.posterior.initialize import initialize
from bowtienet.prediction.predictive import predict
from bowtienet.prediction.weighting import stack_forecasts, variance_ratio

SETTINGS = Settings(
    hidden=(5,),
    family="student_t",
    scheme="relu_network",
    max_sweeps=40,
    tolerance=0.0,
    propagation="push_forward",
    n_threads=1,
)
RECIPE = Recipe(gate_temperature=0.05, penalty=1.0, seed=3)
few_examples = settings(max_examples=50, deadline=None, derandomize=True)


def bent_rows(n: int = 60, seed: int = 0) -> Rows:
    """A target that no straight line comes near to."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-1.7, 1.7, size=(n, 2))
    targets = 2.0 * np.abs(inputs[:, 0]) - 1.7 + 0.1 * rng.normal(size=n)
    return build_rows(inputs, targets)


def run_here(tasks: Sequence[Task]) -> Iterator[Outcome]:
    for task in tasks:
        yield run_task(task, SETTINGS)


def assert_same_fit(first: FitResult, second: FitResult) -> None:
    map_arrays(np.testing.assert_array_equal, first.factors, second.factors)
    assert first.elbo_history == second.elbo_history


# ------------------------------------------------------------------------------------------------
# Lengths, folds and places
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_sweeps", [1, 2, 19, 20, 21, 79, 80, 81, 160, 500, 5000])
def test_lengths(max_sweeps: int) -> None:
    """Each a fixed multiple of the one before, and the last one the most that is allowed."""
    lengths = lengths_up_to(max_sweeps)
    assert lengths[-1] == max_sweeps
    assert all(before < after for before, after in pairwise(lengths))
    assert lengths[0] == min(module.FIRST_LENGTH, max_sweeps)
    ratios = {after / before for before, after in pairwise(lengths[:-1])}
    assert ratios <= {float(module.LENGTHENING)}
    if len(lengths) > 1:
        assert lengths[-1] <= module.LENGTHENING * lengths[-2]


def test_folds_of_every_size() -> None:
    """From 1 to 5000 rows: consecutive, about a fifth each, until enough rows were held out."""
    for n in range(1, 5001):
        folds = held_out_folds(n)
        if n < module.FEWEST_ROWS:
            assert folds == []
            continue
        assert 1 <= len(folds) <= module.FOLDS
        assert folds[0].start == 0
        assert all(before.stop == after.start for before, after in pairwise(folds))
        sizes = [fold.stop - fold.start for fold in folds]
        assert min(sizes) >= 1
        assert max(sizes) - n / module.FOLDS < 1.0
        held_out = sum(sizes)
        assert held_out == folds[-1].stop <= n
        assert held_out >= min(module.HELD_OUT_ROWS, n)
        # And no fold more than that takes.
        assert held_out - sizes[-1] < module.HELD_OUT_ROWS


@given(
    counts=st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any),
    count=st.integers(1, 40),
)
@few_examples
def test_places_are_shared_out_in_proportion(counts: list[int], count: int) -> None:
    weights = np.array(counts, dtype=float)
    weights /= weights.sum()
    places = allocate(weights, count)
    assert places.sum() == count
    assert np.all(np.abs(places - weights * count) < 1.0 + 1e-9)
    assert np.all(places[weights == 0.0] == 0)
    order = np.argsort(weights, kind="stable")
    assert np.all(np.diff(places[order])[np.diff(weights[order]) > 1e-12] >= 0)


@pytest.mark.parametrize(
    ("weights", "count", "expected"),
    [
        ([1.0], 7, [7]),
        ([0.5, 0.5], 3, [2, 1]),
        ([0.0, 1.0, 0.0], 4, [0, 4, 0]),
        ([0.3, 0.7], 10, [3, 7]),
        ([0.1, 0.2, 0.7], 10, [1, 2, 7]),
        ([0.45, 0.35, 0.2], 2, [1, 1, 0]),
        ([1.0 / 3.0] * 3, 3, [1, 1, 1]),
        ([1.0 / 49.0] * 49, 49, [1] * 49),
    ],
)
def test_places(weights: list[float], count: int, expected: list[int]) -> None:
    np.testing.assert_array_equal(allocate(np.array(weights), count), expected)


# ------------------------------------------------------------------------------------------------
# One task
# ------------------------------------------------------------------------------------------------


def test_a_snapshot_is_the_fit_of_that_length() -> None:
    lengths = (1, 4, 9, 20)
    outcome = run_task(Task(recipe=RECIPE, rows=bent_rows(), lengths=lengths), SETTINGS)
    assert outcome.forecasts is None
    assert [result.n_sweeps for result in outcome.results] == list(lengths)
    for length, result in zip(lengths, outcome.results, strict=True):
        task = Task(recipe=RECIPE, rows=bent_rows(), lengths=(length,))
        assert_same_fit(run_task(task, SETTINGS).results[0], result)
        shorter = replace(SETTINGS, max_sweeps=length)
        assert_same_fit(run_task(Task(recipe=RECIPE, rows=bent_rows()), shorter).results[0], result)


def test_a_snapshot_where_a_sweep_was_undone() -> None:
    """A sweep that overshot is undone: a fit of just that length ends with the one before it."""
    rows, seen = bent_rows(), []
    task = Task(recipe=RECIPE, rows=rows, lengths=(120,))
    run_task(task, SETTINGS, lambda progress: seen.append(progress.sweep))
    undone = min(set(range(1, 120)) - set(seen))
    both = run_task(replace(task, lengths=(undone, 120)), SETTINGS).results[0]
    alone = run_task(replace(task, lengths=(undone,)), SETTINGS).results[0]
    assert_same_fit(both, alone)


def test_a_fit_that_converges_has_its_end_at_every_later_length() -> None:
    loose = replace(SETTINGS, tolerance=1e-2)
    task = Task(recipe=RECIPE, rows=bent_rows(), lengths=(2, 50, 200))
    first, second, third = run_task(task, loose).results
    assert second.status is third.status is Status.CONVERGED
    assert first.n_sweeps == 2 < second.n_sweeps < 50
    assert_same_fit(second, third)


def test_a_task_is_repeatable_and_its_seed_matters() -> None:
    task = Task(recipe=RECIPE, rows=bent_rows(), lengths=(5,))
    first = run_task(task, SETTINGS).results[0]
    assert_same_fit(run_task(task, replace(SETTINGS, n_threads=3)).results[0], first)
    other = replace(task, recipe=replace(RECIPE, seed=4))
    assert run_task(other, SETTINGS).results[0].elbo_history != first.elbo_history


def test_a_task_follows_its_recipe() -> None:
    task = Task(recipe=RECIPE, rows=bent_rows(), lengths=(5,))
    first = run_task(task, SETTINGS).results[0]
    assert first.model.gate_temperature == RECIPE.gate_temperature
    other = replace(task, recipe=replace(RECIPE, penalty=30.0))
    weights = [
        run_task(one, SETTINGS).results[0].factors.layers[0].weights.mean for one in (task, other)
    ]
    assert np.sum(weights[1][:, 1:] ** 2) < 0.5 * np.sum(weights[0][:, 1:] ** 2)


def test_a_task_may_go_on_from_an_earlier_result() -> None:
    rows = bent_rows()
    start = run_task(Task(recipe=RECIPE, rows=rows, lengths=(10,)), SETTINGS).results[0]
    on = run_task(Task(recipe=RECIPE, rows=rows, lengths=(10,), start=start), SETTINGS).results[0]
    expected = fit(start.model, rows, start.factors, max_iter=10, tol=0.0)
    assert_same_fit(on, expected)
    assert on.elbo_history[-1] > start.elbo_history[-1]


def test_a_length_that_was_chosen_does_not_cut_a_fit_short() -> None:
    task = Task(recipe=RECIPE, rows=bent_rows(), lengths=(3,))
    assert run_task(task, SETTINGS).results[0].status is Status.ITERATION_LIMIT
    chosen = run_task(replace(task, chosen=True), SETTINGS).results[0]
    assert (chosen.status, chosen.n_sweeps) == (Status.EARLY_STOPPED, 3)
    finished = replace(task, lengths=(2000,), chosen=True)
    loose = replace(SETTINGS, tolerance=1e-2)
    assert run_task(finished, loose).results[0].status is Status.CONVERGED


def test_forecasts_are_those_of_the_rows_held_out() -> None:
    rows = bent_rows()
    rows = replace(rows, targets=np.column_stack([rows.targets, rows.inputs[:, 1]]))
    held_out, kept = take_rows(rows, np.arange(15)), take_rows(rows, np.arange(15, 60))
    task = Task(recipe=RECIPE, rows=kept, held_out=held_out, lengths=(3, 8))
    outcome = run_task(task, SETTINGS)
    assert outcome.forecasts is not None
    assert outcome.forecasts.shape == (2, 2, 15, 2)
    assert len(outcome.results) == 1
    for index, length in enumerate((3, 8)):
        alone = run_task(Task(recipe=RECIPE, rows=kept, lengths=(length,)), SETTINGS).results[0]
        new = predict(alone.model, alone.factors, held_out.inputs)
        errors, variances = outcome.forecasts[:, index]
        np.testing.assert_array_equal(errors, held_out.targets - new.mean)
        np.testing.assert_array_equal(variances, new.signal_variance + new.noise_variance)


def test_the_score_of_rows_held_out() -> None:
    """Mean log density with the variance that they ask for, by hand: r = (10 + 5) / (5 + 5)."""
    errors, variances = np.array([[1.0], [3.0]]), np.array([[2.0], [3.0]])
    weights = np.array([2.0, 3.0])
    ratio = (2.0 * 0.5 + 3.0 * 3.0 + 5.0) / (5.0 + 5.0)
    logs = -0.5 * (np.log(2.0 * np.pi * ratio * variances) + errors**2 / (ratio * variances))
    expected = (2.0 * logs[0, 0] + 3.0 * logs[1, 0]) / 5.0
    assert held_out_score(errors, variances, weights) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("worthwhile", "stopped"), [(1e6, True), (-1e6, False)])
def test_a_fit_stops_when_longer_does_not_predict_better(
    worthwhile: float, stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the second length if its gain is too small; every length has its forecasts anyway."""
    monkeypatch.setattr(tasks_module, "WORTHWHILE", worthwhile)
    rows, lengths = bent_rows(), (2, 6, 12, 24)
    held_out, kept = take_rows(rows, np.arange(15)), take_rows(rows, np.arange(15, 60))
    seen: list[int] = []
    task = Task(recipe=RECIPE, rows=kept, held_out=held_out, lengths=lengths)
    outcome = run_task(task, SETTINGS, lambda progress: seen.append(progress.sweep))
    assert seen[-1] == (6 if stopped else 24)
    assert outcome.results[0].n_sweeps == seen[-1]
    assert outcome.forecasts is not None
    assert outcome.forecasts.shape == (2, 4, 15, 1)
    same = [np.array_equal(a, b) for a, b in pairwise(np.swapaxes(outcome.forecasts, 0, 1))]
    assert same == ([False, True, True] if stopped else [False, False, False])
    # Without rows held out nothing can stop it.
    seen.clear()
    run_task(replace(task, held_out=None), SETTINGS, lambda progress: seen.append(progress.sweep))
    assert seen[-1] == 24


def test_the_gain_is_weighed_like_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the row that counts decides: its error shrinks while that of the other grows."""
    rows = bent_rows()
    held_out = Rows(
        inputs=rows.inputs[:2], targets=rows.targets[:2], weights=np.array([1000.0, 1.0])
    )
    task = Task(
        recipe=RECIPE,
        rows=take_rows(rows, np.arange(2, 60)),
        held_out=held_out,
        lengths=(1, 2, 3, 4),
    )
    table = [[1.0, 1.0], [0.5, 5.0], [0.25, 7.0], [0.125, 9.0]]

    def length_of(table: list[list[float]]) -> int:
        errors = iter(table)
        monkeypatch.setattr(
            tasks_module,
            "errors_and_variances",
            lambda *_: (np.array(next(errors))[:, None], np.ones((2, 1))),
        )
        return run_task(task, SETTINGS).results[0].n_sweeps

    assert length_of(table) == 4
    assert length_of(table[::-1]) == 2


def test_a_task_gives_its_ratio_to_the_fit_and_a_fit_to_those_that_go_on() -> None:
    task = Task(recipe=RECIPE, rows=bent_rows(), lengths=(2, 4))
    assert [result.variance_ratio for result in run_task(task, SETTINGS).results] == [None, None]
    asked = run_task(replace(task, variance_ratio=np.array([1.7])), SETTINGS)
    assert [result.variance_ratio.tolist() for result in asked.results] == [[1.7], [1.7]]
    assert_same_fit(asked.results[1], run_task(task, SETTINGS).results[1])
    on = Task(rows=bent_rows(), start=asked.results[0], lengths=(2,))
    assert run_task(on, SETTINGS).results[0].variance_ratio.tolist() == [1.7]
    other = replace(on, variance_ratio=np.array([0.4]))
    assert run_task(other, SETTINGS).results[0].variance_ratio.tolist() == [0.4]


def test_a_task_starts_with_as_many_networks_as_its_recipe_says() -> None:
    """Two of five units each have no weights between them."""
    wide = replace(SETTINGS, hidden=(10, 10), max_sweeps=1)
    starts = []

    def note(model: Any, rows: Rows, rng: Any, **settings: Any) -> Any:
        starts.append(initialize(model, rows, rng, **settings))
        return starts[-1]

    task = Task(recipe=replace(RECIPE, parts=2), rows=bent_rows(20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks_module, "initialize", note)
        run_task(task, wide)
        run_task(replace(task, recipe=RECIPE), wide)
    between = [start.layers[1].weights.mean[:5, 6:] for start in starts]
    np.testing.assert_array_equal(between[0], 0.0)
    assert np.all(between[1] != 0.0)


def test_ctrl_c_within_a_task() -> None:
    """The state reached so far; at a callback's own wish it is no interruption."""

    def at_third(answer: Callable[[], bool]) -> Callable[[Any], bool]:
        return lambda progress: answer() if progress.sweep == 3 else False

    def raise_it() -> bool:
        raise KeyboardInterrupt

    task = Task(recipe=RECIPE, rows=bent_rows(), lengths=(10, 20))
    outcome = run_task(task, SETTINGS, at_third(raise_it))
    assert outcome.interrupted
    assert len(outcome.results) == 2
    assert_same_fit(outcome.results[0], outcome.results[1])
    assert outcome.results[0].status is Status.INTERRUPTED
    assert outcome.results[0].n_sweeps == 3
    asked = run_task(task, SETTINGS, at_third(lambda: True))
    assert not asked.interrupted
    assert asked.results[0].n_sweeps == 3


# ------------------------------------------------------------------------------------------------
# Choosing
# ------------------------------------------------------------------------------------------------


class Stage:
    """A runner that fits nothing: held-out errors come from a function of the task.

    Variances are all one: of the errors' sizes stacking makes what each recipe needs.
    """

    def __init__(
        self, errors: Callable[[Task, int], np.ndarray], stop_after: int | None = None
    ) -> None:
        self.errors, self.stop_after = errors, stop_after
        self.calls: list[list[Task]] = []

    def __call__(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        self.calls.append(list(tasks))
        for task in tasks[: self.stop_after]:
            found = None
            if task.held_out is not None:
                errors = np.stack([self.errors(task, length) for length in task.lengths])
                found = np.stack([errors, np.ones_like(errors)])[..., None]
            yield Outcome(results=(result_of(task),), forecasts=found)


def alike(task: Task, length: int) -> np.ndarray:
    return np.ones(len(task.held_out.inputs))


def result_of(task: Task) -> FitResult:
    unknown: Any = None
    return FitResult(
        model=unknown,
        factors=unknown,
        elbo_terms=None,
        elbo_history=(-float(task.recipe.seed),),
        n_sweeps=max(task.lengths, default=0),
        status=Status.EARLY_STOPPED if task.chosen else Status.ITERATION_LIMIT,
        variance_ratio=task.variance_ratio,
    )


def recipes(n: int) -> list[Recipe]:
    return [Recipe(gate_temperature=0.1 * (k + 1), penalty=1.0, seed=k) for k in range(n)]


def stacked(
    stage: Any, n_recipes: int = 3, n_members: int = 4, max_sweeps: int = 100, n: int = 40
) -> tuple[list[FitResult], np.ndarray]:
    rng = np.random.default_rng(0)
    return fit_stacked(bent_rows(n), recipes(n_recipes), n_members, stage, max_sweeps, rng)


def test_trials_hold_each_row_out_once_and_members_see_all() -> None:
    stage = Stage(alike)
    stacked(stage)
    trials, final = stage.calls
    assert len(trials) == 3 * len(held_out_folds(40))
    for recipe in recipes(3):
        own = [task for task in trials if task.recipe == recipe]
        held_out = np.concatenate([task.held_out.inputs for task in own])
        np.testing.assert_array_equal(held_out, bent_rows(40).inputs)
        for task in own:
            together = np.concatenate([task.rows.inputs, task.held_out.inputs])
            assert len(np.unique(together, axis=0)) == 40
            assert task.lengths == lengths_up_to(100)
    assert len(final) == 4
    for task in final:
        assert task.rows.inputs.shape[0] == 40
        assert task.held_out is None
        assert len(task.lengths) == 1
    assert len({task.recipe.seed for task in final}) == 4


def test_the_best_recipe_and_length_get_the_members() -> None:
    best = lengths_up_to(100)[1]

    def errors(task: Task, length: int) -> np.ndarray:
        good = task.recipe.gate_temperature == 0.2 and length == best
        return np.full(len(task.held_out.inputs), 0.1 if good else 9.0)

    for n_members in (1, 4):
        stage = Stage(errors)
        members, weights = stacked(stage, n_members=n_members)
        np.testing.assert_allclose(weights, np.full(n_members, 1.0 / n_members), rtol=1e-12)
        for task in stage.calls[1]:
            assert (task.recipe.gate_temperature, task.lengths) == (0.2, (best,))
        assert {member.status for member in members} == {Status.EARLY_STOPPED}


def errors_here_and_there(task: Task, length: int) -> np.ndarray:
    """Of a recipe that is right early, of one that is late, of others that are never."""
    first = bent_rows(40).inputs[:24]
    early = np.array([np.any(np.all(row == first, axis=1)) for row in task.held_out.inputs])
    wanted = early if task.recipe.seed == 0 else ~early
    return np.where(wanted & (task.recipe.seed < 2), 0.1, 60.0)


def test_two_recipes_that_are_each_best_somewhere_share_the_members() -> None:
    """Three fifths of the rows and two: weights 0.6 and 0.4, places 2 and 1 of three."""

    stage = Stage(errors_here_and_there)
    _, weights = stacked(stage, n_members=3, max_sweeps=15)
    temperatures = [task.recipe.gate_temperature for task in stage.calls[1]]
    np.testing.assert_allclose(temperatures, [0.1, 0.1, 0.2])
    np.testing.assert_allclose(weights, [0.3, 0.3, 0.4], atol=1e-4)


def test_rows_count_by_their_weight() -> None:
    rows = bent_rows(40)
    heavy = Rows(
        inputs=rows.inputs,
        targets=rows.targets,
        weights=np.where(np.arange(40) < 10, 9.0, 1.0),
    )

    def errors(task: Task, length: int) -> np.ndarray:
        return np.where((task.held_out.weights > 1.0) == (task.recipe.seed == 0), 0.1, 60.0)

    stage = Stage(errors)
    _, weights = fit_stacked(heavy, recipes(2), 4, stage, 15, np.random.default_rng(0))
    temperatures = [task.recipe.gate_temperature for task in stage.calls[1]]
    np.testing.assert_allclose(temperatures, [0.1, 0.1, 0.1, 0.2])
    np.testing.assert_allclose(weights, [0.25, 0.25, 0.25, 0.25], atol=1e-4)


def test_where_longer_is_the_same_the_shortest_is_fitted() -> None:
    for n_members in (1, 4):
        stage = Stage(alike)
        stacked(stage, n_recipes=1, n_members=n_members, max_sweeps=500)
        assert {task.lengths for task in stage.calls[1]} == {(module.FIRST_LENGTH,)}


def test_a_fit_that_was_still_gaining_says_so() -> None:
    """Only then is the last length a limit that was too low."""
    stage = Stage(lambda task, length: np.full(len(task.held_out.inputs), 1000.0 / length))
    members, _ = stacked(stage, n_recipes=1)
    assert {task.lengths for task in stage.calls[1]} == {(100,)}
    assert {member.status for member in members} == {Status.ITERATION_LIMIT}
    # Wider intervals do as well as a longer fit where errors stay as they are.
    stage = Stage(lambda task, length: np.full(len(task.held_out.inputs), 10.0))
    members, _ = stacked(stage, n_recipes=1)
    assert {member.status for member in members} == {Status.EARLY_STOPPED}


@pytest.mark.parametrize("n_members", [1, 4])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_recipe_that_breaks_down_gets_no_members(bad: float, n_members: int) -> None:
    """Even in one row."""

    def errors(task: Task, length: int) -> np.ndarray:
        found = np.ones(len(task.held_out.inputs))
        found[0] = bad if task.recipe.seed == 0 else 1.0
        return found

    stage = Stage(errors)
    _, weights = stacked(stage, n_members=n_members)
    assert np.all(np.isfinite(weights))
    assert all(task.recipe.gate_temperature > 0.15 for task in stage.calls[1])
    assert all(np.all(np.isfinite(task.variance_ratio)) for task in stage.calls[1])


# ------------------------------------------------------------------------------------------------
# Variances
# ------------------------------------------------------------------------------------------------


def random_table(seed: int, n_outputs: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts (2, 3 recipes, 2 lengths, 30 rows, D) and weights of the rows."""
    rng = np.random.default_rng(seed)
    variances = rng.gamma(4.0, 0.25, size=(3, 2, 30, n_outputs))
    errors = np.sqrt(variances) * rng.normal(0.0, 1.5, size=variances.shape)
    return np.stack([errors, variances]), rng.uniform(0.5, 2.0, size=30)


@pytest.mark.parametrize("seed", range(3))
def test_one_member_is_the_best_alone_with_its_own_ratio(seed: int) -> None:
    forecasts, row_weights = random_table(seed)
    weights, ratios = weigh(forecasts, row_weights, 1)
    assert (weights.shape, ratios.shape) == ((3, 2), (3, 2, 2))
    scores = np.empty((3, 2))
    for place in np.ndindex(3, 2):
        errors, variances = forecasts[(slice(None), *place)]
        ratio = variance_ratio(errors, variances, row_weights)
        np.testing.assert_array_equal(ratios[place], ratio)
        spread = ratio * variances
        logs = -0.5 * (np.log(2.0 * np.pi * spread) + errors**2 / spread)
        scores[place] = row_weights @ logs.sum(axis=1)
    np.testing.assert_array_equal(weights, scores == scores.max())


@pytest.mark.parametrize("seed", range(3))
def test_several_members_share_a_factor(seed: int) -> None:
    """Weights and factor of stacking, after each candidate has got its own ratio."""
    forecasts, row_weights = random_table(seed)
    weights, ratios = weigh(forecasts, row_weights, 2)
    alone = weigh(forecasts, row_weights, 1)[1]
    errors, variances = forecasts.reshape(2, 6, 30, 2)
    expected, factor = stack_forecasts(errors, alone.reshape(6, 1, 2) * variances, row_weights)
    np.testing.assert_array_equal(weights.ravel(), expected)
    np.testing.assert_allclose(ratios, alone * factor, rtol=1e-14)
    assert np.all(factor < 1.0)


@pytest.mark.parametrize("n_members", [1, 3])
def test_ratios_reach_the_fits(n_members: int) -> None:
    """Each member has that of its own recipe and length: of errors of a known size."""

    def errors(task: Task, length: int) -> np.ndarray:
        good = task.recipe.seed == 1 and length == 80
        return np.full(len(task.held_out.inputs), 3.0 if good else 20.0)

    stage = Stage(errors)
    members, _ = stacked(stage, n_members=n_members)
    own = (40.0 * 9.0 + 5.0) / 45.0
    # In their mixture the same rows ask again: what the prior held back the first time.
    factor = 1.0 if n_members == 1 else (40.0 * 9.0 / own + 5.0) / 45.0
    for task, member in zip(stage.calls[1], members, strict=True):
        assert (task.recipe.gate_temperature, task.lengths) == (0.2, (80,))
        np.testing.assert_allclose(task.variance_ratio, [own * factor], rtol=1e-4)
        assert member.variance_ratio is task.variance_ratio
    assert all(task.variance_ratio is None for task in stage.calls[0])


def test_only_rows_held_out_say_how_sure_a_member_may_be() -> None:
    rows = bent_rows(30)
    both = np.column_stack([rows.targets, -rows.inputs[:, 1]])
    small: dict[str, Any] = {"n_estimators": 2, "init_penalty": 1.0, "max_iter": 3}
    small |= {"gate_temperature": 0.05, "random_state": 0}

    def ratios(n_rows: int = 30, **changes: Any) -> list[Any]:
        model = BowTieRegressor((4,), **(small | changes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows.inputs[:n_rows], both[:n_rows])
        return [member.variance_ratio for member in model.ensemble_.members]

    for found in (*ratios(), *ratios(n_estimators=1), *ratios(solver="svi")):
        assert found.shape == (2,)
        assert np.all((found > 0.0) & (found != 1.0))
    for found in (*ratios(combine="equal"), *ratios(combine="elbo"), *ratios(9)):
        assert found is None


def test_too_few_rows_are_not_held_out() -> None:
    stage = Stage(lambda task, length: np.zeros(0))
    members, weights = stacked(stage, n_members=5, n=module.FEWEST_ROWS - 1)
    (tasks,) = stage.calls
    assert [task.held_out for task in tasks] == [None] * 5
    temperatures = [task.recipe.gate_temperature for task in tasks]
    np.testing.assert_allclose(temperatures, [0.3, 0.2, 0.1, 0.3, 0.2])
    assert len({task.recipe.seed for task in tasks}) == 5
    assert len(members) == 5
    np.testing.assert_array_equal(weights, np.full(5, 0.2))


def test_an_interrupted_stage_leaves_what_there_is() -> None:
    stage = Stage(alike, stop_after=2)
    members, weights = stacked(stage)
    assert len(stage.calls) == 1
    assert len(members) == 2
    np.testing.assert_array_equal(weights, [0.5, 0.5])


def test_members_that_are_alike_are_weighed_by_their_bound() -> None:
    stage = Stage(lambda task, length: np.zeros(0))
    members, weights = fit_alike(bent_rows(), recipes(3), stage, "elbo", 0.5)
    expected = np.exp(-0.5 * np.arange(3.0))
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-12)
    assert len(members) == 3
    _, weights = fit_alike(bent_rows(), recipes(3), stage, "equal", 0.5)
    np.testing.assert_array_equal(weights, np.full(3, 1.0 / 3.0))


def test_a_recipe_that_can_bend_is_chosen() -> None:
    """Real fits: at temperature 50 gates are open by half, and the network is a straight line."""
    chosen = [replace(RECIPE, gate_temperature=50.0), replace(RECIPE, gate_temperature=0.02)]
    members, weights = fit_stacked(bent_rows(50), chosen, 3, run_here, 20, np.random.default_rng(0))
    assert len(members) == 3
    assert np.sum(weights) == pytest.approx(1.0)
    assert {member.model.gate_temperature for member in members} == {0.02}
    assert len({member.elbo_history for member in members}) == 3
    new = bent_rows(200, seed=1)
    mean = sum(
        weight * predict(member.model, member.factors, new.inputs).mean
        for weight, member in zip(weights, members, strict=True)
    )
    assert np.sqrt(np.mean((mean - new.targets) ** 2)) < 0.3


# ------------------------------------------------------------------------------------------------
# What there is to choose from
# ------------------------------------------------------------------------------------------------


def starts(hidden: tuple[int, ...], **settings: Any) -> list[tuple[float, float, int]]:
    """Temperature, penalty and number of networks of each recipe; seeds all differ."""
    found = BowTieRegressor(hidden, **settings)._recipes(np.random.default_rng(0), hidden)
    assert len({recipe.seed for recipe in found}) == len(found)
    return [(recipe.gate_temperature, recipe.penalty, recipe.parts) for recipe in found]


def test_recipes_of_the_default() -> None:
    assert starts((50,)) == [(fitting.TEMPERATURE, *recipe) for recipe in fitting.RECIPES]
    alone = starts((50,), n_estimators=1)
    assert alone == [(fitting.TEMPERATURE, *recipe) for recipe in fitting.RECIPES_ALONE]
    for menu in (fitting.RECIPES, fitting.RECIPES_ALONE):
        assert len(set(menu)) == len(menu)


def test_recipes_that_would_be_the_same_are_tried_once() -> None:
    """Networks of three units at least: of small layers there is but one, whatever is wanted."""
    penalties = list(dict.fromkeys(penalty for penalty, _ in fitting.RECIPES))
    assert len(penalties) < len(fitting.RECIPES)
    assert starts((5,)) == [(0.01, penalty, 1) for penalty in penalties]
    assert starts((50, 5)) == starts((5,))
    numbers = list(dict.fromkeys(parts for _, parts in fitting.RECIPES))
    given = starts((50,), init_penalty=0.3, gate_temperature=0.2)
    assert given == [(0.2, 0.3, parts) for parts in numbers]
    assert starts((5,), init_penalty=0.3) == [(0.01, 0.3, 1)]
    assert all(parts <= 2 for _, _, parts in starts((50, 8)))


@pytest.mark.parametrize("settings", [{"init": "laplace"}, {"init": "spike_slab"}, {}], ids=str)
def test_without_a_network_to_start_from_there_is_one_recipe(settings: dict[str, Any]) -> None:
    assert len(starts((50,) if settings else (), **settings)) == 1


@pytest.mark.parametrize("combine", ["equal", "elbo"])
def test_members_that_are_alike_differ_in_their_seed_alone(combine: str) -> None:
    found = starts((50,), combine=combine, n_estimators=3)
    assert found == [(fitting.TEMPERATURE, *fitting.ALIKE)] * 3
    given = starts((50,), combine=combine, n_estimators=2, init_penalty=2.0)
    assert given == [(fitting.TEMPERATURE, 2.0, fitting.ALIKE[1])] * 2


# ------------------------------------------------------------------------------------------------
# Ctrl-C at the estimator
# ------------------------------------------------------------------------------------------------

N_TRIALS = 5
"""Folds of one recipe."""


class Interrupting:
    """`run_task`, with Ctrl-C in the third sweep or the start of the task of a given number."""

    def __init__(self, number: int, in_start: bool) -> None:
        self.number, self.in_start, self.count = number, in_start, 0

    def __call__(self, task: Task, shared: Settings, callback: Any = None, **_: Any) -> Outcome:
        self.count += 1
        if self.count != self.number:
            return run_task(task, shared, callback)
        if self.in_start:
            raise KeyboardInterrupt

        def interrupt(progress: Any) -> bool:
            if progress.sweep >= 3:
                raise KeyboardInterrupt
            return False

        return run_task(task, shared, interrupt)


def interrupted_fit(
    number: int, in_start: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[BowTieRegressor, Interrupting]:
    runner = Interrupting(number, in_start)
    monkeypatch.setattr(running, "run_task", runner)
    rows = bent_rows(50)
    model = BowTieRegressor(
        (5,), n_estimators=3, init_penalty=1.0, gate_temperature=0.05, max_iter=8, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="interrupted") as seen:
        model.fit(rows.inputs, rows.targets[:, 0])
    assert len(seen) == 1
    return model, runner


@pytest.mark.parametrize("in_start", [False, True], ids=["in a sweep", "in the start"])
@pytest.mark.parametrize(
    "number", [1, 2, N_TRIALS, N_TRIALS + 1, N_TRIALS + 2, N_TRIALS + 3], ids=str
)
def test_an_interrupted_fit_is_usable_and_no_other_follows(
    number: int, in_start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (number, in_start) == (1, True):
        with pytest.raises(KeyboardInterrupt):
            interrupted_fit(number, in_start, monkeypatch)
        return
    model, runner = interrupted_fit(number, in_start, monkeypatch)
    assert runner.count == number
    assert np.sum(model.member_weights_) == pytest.approx(1.0)
    new = bent_rows(7, seed=2)
    mean, deviation = model.predict(new.inputs, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(deviation > 0.0)
    found = number - in_start
    expected = found if found <= N_TRIALS else found - N_TRIALS
    assert len(model.ensemble_.members) == expected
