"""How members are chosen: lengths, folds, places, and which recipe stacking takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bowtienet.ensemble.candidates import held_out_folds
from hypothesis import given, settings
from hypothesis import strategies as st

from bowtienet.data.rows import Rows
from bowtienet.ensemble import candidates
from bowtienet.ensemble import member as member_module
from bowtienet.ensemble import training as module
from bowtienet.ensemble.ensemble import Ensemble
from bowtienet.ensemble.member import Outcome, Task, run_task
from bowtienet.ensemble.settings import Recipe, Settings
from bowtienet.ensemble.stacking import variance_ratio
from bowtienet.ensemble.training import (
    Fitted,
    allocate,
    begin,
    fit_alike,
    fit_further,
    fit_stacked,
    fit_streamed,
    lengths_up_to,
    weigh,
)
from bowtienet.inference.convergence import Status
from bowtienet.inference.iterate import FitResult
from bowtienet.inference.pruning import Pruning
from bowtienet.model.architecture import build_architecture
from bowtienet.prediction.predictive import predict
from bowtienet.representation.pieces import fit_pieces
from bowtienet.representation.representation import PLAIN, View
from tests.ensemble.fits import RECIPE, SETTINGS, bent_rows, bent_table, cut_in, fit, small, task

few_examples = settings(max_examples=50, deadline=None, derandomize=True)


# Lengths, folds and places


@pytest.mark.parametrize("max_iter", [1, 2, 19, 20, 21, 79, 80, 81, 160, 500, 5000])
def test_lengths(max_iter: int) -> None:
    """Each a fixed multiple of the one before, and the last one the most that is allowed."""
    lengths = lengths_up_to(max_iter)
    assert lengths[-1] == max_iter
    assert all(before < after for before, after in pairwise(lengths))
    assert lengths[0] == min(module.FIRST_LENGTH, max_iter)
    ratios = {after / before for before, after in pairwise(lengths[:-1])}
    assert ratios <= {float(module.LENGTHENING)}
    if len(lengths) > 1:
        assert lengths[-1] <= module.LENGTHENING * lengths[-2]


def test_folds_of_every_size() -> None:
    """From 1 to 3000 rows: consecutive, about a fifth each, until enough rows were held out."""
    for n in range(1, 3001):
        folds = held_out_folds(n, module.HELD_OUT_ROWS)
        if n < candidates.FEWEST_ROWS:
            assert folds == []
            continue
        assert 1 <= len(folds) <= candidates.FOLDS
        assert folds[0].start == 0
        assert all(before.stop == after.start for before, after in pairwise(folds))
        sizes = [fold.stop - fold.start for fold in folds]
        assert min(sizes) >= 1
        assert max(sizes) - n / candidates.FOLDS < 1.0
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


# Choosing


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
        for one in tasks[: self.stop_after]:
            found = None
            if one.held_out is not None:
                errors = np.stack([self.errors(one, length) for length in one.lengths])
                found = np.stack([errors, np.ones_like(errors)])[..., None]
            yield Outcome(result=result_of(one), forecasts=found)


def alike(task: Task, length: int) -> np.ndarray:
    return np.ones(len(task.held_out.inputs))


def result_of(task: Task, **changes: Any) -> FitResult:
    unknown: Any = None
    seed = 0 if task.recipe is None else task.recipe.seed
    result = FitResult(
        model=unknown,
        factors=unknown,
        elbo_terms=None,
        elbo_history=(-float(seed),),
        n_sweeps=max(task.lengths, default=0),
        status=Status.EARLY_STOPPED if task.chosen else Status.ITERATION_LIMIT,
        variance_ratio=task.variance_ratio,
    )
    return replace(result, **changes)


def recipes(n: int) -> list[Recipe]:
    start = {"init_penalty": 1.0, "start_iterations": 5}
    return [Recipe(gate_temperature=0.1 * (k + 1), **start, seed=k) for k in range(n)]


def stacked(
    stage: Any,
    n_recipes: int = 3,
    n_members: int = 4,
    max_iter: int = 100,
    rows: Rows | None = None,
) -> Fitted:
    shared = Settings(hidden_layer_sizes=(3,), n_estimators=n_members, max_iter=max_iter)
    given = Task(rows=bent_rows(40) if rows is None else rows)
    return fit_stacked(given, [PLAIN], recipes(n_recipes), shared, stage, np.random.default_rng(0))


def test_trials_hold_each_row_out_once_and_members_see_all() -> None:
    stage = Stage(alike)
    stacked(stage)
    trials, final = stage.calls
    assert len(trials) == 3 * len(held_out_folds(40, module.HELD_OUT_ROWS))
    for recipe in recipes(3):
        own = [trial for trial in trials if trial.recipe == recipe]
        held_out = np.concatenate([trial.held_out.inputs for trial in own])
        np.testing.assert_array_equal(held_out, bent_rows(40).inputs)
        for trial in own:
            together = np.concatenate([trial.rows.inputs, trial.held_out.inputs])
            assert len(np.unique(together, axis=0)) == 40
            assert trial.lengths == lengths_up_to(100)
    assert len(final) == 4
    for one in final:
        assert one.rows.inputs.shape[0] == 40
        assert one.held_out is None
        assert len(one.lengths) == 1
    assert len({one.recipe.seed for one in final}) == 4


@pytest.mark.parametrize("n_members", [1, 4])
def test_the_best_recipe_and_length_get_the_members(n_members: int) -> None:
    best = lengths_up_to(100)[1]

    def errors(task: Task, length: int) -> np.ndarray:
        good = task.recipe.gate_temperature == 0.2 and length == best
        return np.full(len(task.held_out.inputs), 0.1 if good else 9.0)

    stage = Stage(errors)
    members, weights, _ = stacked(stage, n_members=n_members)
    np.testing.assert_allclose(weights, np.full(n_members, 1.0 / n_members), rtol=1e-12)
    for one in stage.calls[1]:
        assert (one.recipe.gate_temperature, one.lengths) == (0.2, (best,))
    assert {member.status for member in members} == {Status.EARLY_STOPPED}


def test_two_recipes_that_are_each_best_somewhere_share_the_members() -> None:
    """Three fifths of the rows and two: weights 0.6 and 0.4, places 2 and 1 of three."""
    first = bent_rows(40).inputs[:24]

    def errors(task: Task, length: int) -> np.ndarray:
        early = np.array([np.any(np.all(row == first, axis=1)) for row in task.held_out.inputs])
        wanted = early if task.recipe.seed == 0 else ~early
        return np.where(wanted & (task.recipe.seed < 2), 0.1, 60.0)

    stage = Stage(errors)
    _, weights, _ = stacked(stage, n_members=3, max_iter=module.FIRST_LENGTH)
    temperatures = [one.recipe.gate_temperature for one in stage.calls[1]]
    np.testing.assert_allclose(temperatures, [0.1, 0.1, 0.2])
    np.testing.assert_allclose(weights, [0.3, 0.3, 0.4], atol=1e-4)


def test_rows_count_by_their_weight() -> None:
    """A quarter of the rows with weight 9 are three quarters of all."""
    heavy = replace(bent_rows(40), weights=np.where(np.arange(40) < 10, 9.0, 1.0))

    def errors(task: Task, length: int) -> np.ndarray:
        return np.where((task.held_out.weights > 1.0) == (task.recipe.seed == 0), 0.1, 60.0)

    stage = Stage(errors)
    _, weights, _ = stacked(stage, n_recipes=2, max_iter=module.FIRST_LENGTH, rows=heavy)
    temperatures = [one.recipe.gate_temperature for one in stage.calls[1]]
    np.testing.assert_allclose(temperatures, [0.1, 0.1, 0.1, 0.2])
    np.testing.assert_allclose(weights, [0.25, 0.25, 0.25, 0.25], atol=1e-4)


def test_where_longer_is_the_same_the_shortest_is_fitted() -> None:
    for n_members in (1, 4):
        stage = Stage(alike)
        stacked(stage, n_recipes=1, n_members=n_members, max_iter=500)
        assert {one.lengths for one in stage.calls[1]} == {(module.FIRST_LENGTH,)}


@pytest.mark.parametrize(
    ("max_iter", "error", "status"),
    [
        pytest.param(100, lambda length: 1000.0 / length, Status.ITERATION_LIMIT, id="gaining"),
        pytest.param(100, lambda length: 10.0, Status.EARLY_STOPPED, id="as good"),
        pytest.param(5, lambda length: 10.0, Status.ITERATION_LIMIT, id="nothing to compare"),
    ],
)
def test_statuses_of_lengths(max_iter: int, error: Callable[[int], float], status: Status) -> None:
    """Only where the last length still gains, or is the only one, was the limit too low."""
    stage = Stage(lambda task, length: np.full(len(task.held_out.inputs), error(length)))
    members, _, _ = stacked(stage, n_recipes=1, max_iter=max_iter)
    assert {member.status for member in members} == {status}


@pytest.mark.parametrize("n_members", [1, 4])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_recipe_that_breaks_down_gets_no_members(bad: float, n_members: int) -> None:
    """Even in one row."""

    def errors(task: Task, length: int) -> np.ndarray:
        found = np.ones(len(task.held_out.inputs))
        found[0] = bad if task.recipe.seed == 0 else 1.0
        return found

    stage = Stage(errors)
    _, weights, _ = stacked(stage, n_members=n_members)
    assert np.all(np.isfinite(weights))
    assert all(one.recipe.gate_temperature > 0.15 for one in stage.calls[1])
    assert all(np.all(np.isfinite(one.variance_ratio)) for one in stage.calls[1])


def test_too_few_rows_are_not_held_out() -> None:
    """All recipes in turn."""
    stage = Stage(alike)
    members, weights, _ = stacked(stage, n_members=5, rows=bent_rows(candidates.FEWEST_ROWS - 1))
    (tasks,) = stage.calls
    assert [one.held_out for one in tasks] == [None] * 5
    temperatures = [one.recipe.gate_temperature for one in tasks]
    np.testing.assert_allclose(temperatures, [0.1, 0.2, 0.3, 0.1, 0.2])
    assert len({one.recipe.seed for one in tasks}) == 5
    assert len(members) == 5
    np.testing.assert_array_equal(weights, np.full(5, 0.2))


def test_a_recipe_that_can_bend_is_chosen() -> None:
    """Real fits: at temperature 50 gates are open by half, and the network is a straight line."""
    chosen = [replace(RECIPE, gate_temperature=50.0), replace(RECIPE, gate_temperature=0.02)]
    shared = replace(SETTINGS, n_estimators=3, max_iter=20)

    def run(tasks: Sequence[Task]) -> list[Outcome]:
        return [run_task(one, shared) for one in tasks]

    given = Task(rows=bent_rows(50), n_threads=1)
    members, weights, places = fit_stacked(
        given, [PLAIN], chosen, shared, run, np.random.default_rng(0)
    )
    assert places == [0, 0, 0]
    assert np.sum(weights) == pytest.approx(1.0)
    assert {member.model.gate_temperature for member in members} == {0.02}
    assert len({member.elbo_history for member in members}) == 3
    new = bent_rows(200, seed=1)
    mean = sum(
        weight * predict(member.model, member.factors, new.inputs).mean
        for weight, member in zip(weights, members, strict=True)
    )
    assert np.sqrt(np.mean((mean - new.targets) ** 2)) < 0.3


# Starts


@pytest.mark.parametrize("parted", [False, True])
def test_tasks_begin_with_networks_of_their_recipe_view_and_fold(parted: bool) -> None:
    """In the order of the recipes, which may have their views in any."""
    given = task(rows=bent_rows(40))
    pieces = fit_pieces(given.rows.inputs, given.rows.weights, 4)
    views = [PLAIN, View(pieces=pieces)]
    menu = [
        replace(recipe, view=view) for recipe, view in zip(recipes(4), (1, 0, 1, 0), strict=True)
    ]
    folds = [slice(0, 8), None, slice(8, 16), slice(0, 8)] if parted else None
    found = begin(given, views, menu, SETTINGS, folds)
    for index, (one, recipe) in enumerate(zip(found, menu, strict=True)):
        assert (one.recipe, one.view) == (recipe, views[recipe.view])
        assert one.rows is given.rows
        fold = None if folds is None else folds[index]
        hidden = SETTINGS.hidden_layer_sizes
        [alone] = candidates.start_networks(given.rows, one.view, [recipe], [fold], hidden)
        assert one.network is not None
        for layer, expected in zip(one.network, alone, strict=True):
            np.testing.assert_allclose(layer, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("changes", [{"init": "laplace"}, {"hidden_layer_sizes": ()}], ids=str)
def test_random_starts_have_no_network(changes: dict[str, Any]) -> None:
    found = begin(task(), [PLAIN], recipes(2), replace(SETTINGS, **changes))
    assert [one.network for one in found] == [None, None]
    assert [one.recipe for one in found] == recipes(2)


def test_trials_start_from_networks_that_have_not_seen_their_held_out_rows() -> None:
    """Each fold's network is that of the other rows alone."""
    stage = Stage(alike)
    stacked(stage, n_recipes=2)
    trials, final = stage.calls
    for trial in trials:
        [alone] = candidates.start_networks(trial.rows, PLAIN, [trial.recipe], [None], (3,))
        for layer, expected in zip(trial.network, alone, strict=True):
            np.testing.assert_allclose(layer, expected, rtol=2e-4, atol=2e-4)
    assert all(one.network is not None for one in final)


# Weights and variances


def random_table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts (2, 3 recipes, 2 lengths, 30 rows, 2) and weights of the rows."""
    rng = np.random.default_rng(seed)
    variances = rng.gamma(4.0, 0.25, size=(3, 2, 30, 2))
    errors = np.sqrt(variances) * rng.normal(0.0, 1.5, size=variances.shape)
    return np.stack([errors, variances]), rng.uniform(0.5, 2.0, size=30)


@pytest.mark.parametrize("seed", range(3))
def test_one_member_is_the_best_alone_with_its_own_ratio(seed: int) -> None:
    forecasts, row_weights = random_table(seed)
    weights, ratios = weigh(forecasts, np.zeros((3, 30)), row_weights, 1)
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


@pytest.mark.parametrize("n_members", [1, 3])
def test_ratios_reach_the_fits(n_members: int) -> None:
    """Each member has that of its own recipe and length: of errors of a known size."""

    def errors(task: Task, length: int) -> np.ndarray:
        good = task.recipe.seed == 1 and length == 80
        return np.full(len(task.held_out.inputs), 3.0 if good else 20.0)

    stage = Stage(errors)
    members, _, _ = stacked(stage, n_members=n_members)
    own = (40.0 * 9.0 + 5.0) / 45.0
    # In their mixture the same rows ask again: what the prior held back the first time.
    factor = 1.0 if n_members == 1 else (40.0 * 9.0 / own + 5.0) / 45.0
    for one, member in zip(stage.calls[1], members, strict=True):
        assert (one.recipe.gate_temperature, one.lengths) == (0.2, (80,))
        np.testing.assert_allclose(one.variance_ratio, [own * factor], rtol=1e-4)
        assert member.variance_ratio is one.variance_ratio
    assert all(trial.variance_ratio is None for trial in stage.calls[0])


# Other kinds of members


def test_members_that_are_alike_have_weights_from_their_bound() -> None:
    stage = Stage(alike)
    shared = Settings(weighting="elbo", elbo_tempering=0.5)
    tasks = begin(task(), [PLAIN], recipes(3), SETTINGS)
    members, weights, places = fit_alike(tasks, shared, stage)
    expected = np.exp(-0.5 * np.arange(3.0))
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-12)
    assert (len(members), places) == (3, [0, 0, 0])
    equal = replace(shared, weighting="equal")
    _, weights, _ = fit_alike(tasks, equal, stage)
    np.testing.assert_array_equal(weights, np.full(3, 1.0 / 3.0))


def test_members_of_a_stream_without_weight_are_left_out() -> None:
    """The one whose errors are large, and the one that broke down."""
    sizes = (1.0, 30.0, np.nan, 1.0)
    rows = bent_rows(20)
    held_out = replace(rows, weights=np.linspace(0.5, 2.0, 20))
    tasks = [Task(rows=rows, held_out=held_out) for _ in sizes]
    ones = np.ones((1, 20, 1))
    outcomes = [
        Outcome(result=result_of(tasks[0], n_sweeps=k), forecasts=np.stack([size * ones, ones]))
        for k, size in enumerate(sizes)
    ]
    members, weights, _ = fit_streamed(tasks, lambda _: outcomes)
    assert [member.n_sweeps for member in members] == [0, 3]
    np.testing.assert_allclose(weights, [0.5, 0.5])
    for member in members:
        np.testing.assert_allclose(member.variance_ratio, [1.0], rtol=1e-4)
    # What Ctrl-C left has equal weights, and no variance is known.
    for left in (outcomes[:2], [*outcomes[:3], replace(outcomes[3], interrupted=True)]):
        members, weights, _ = fit_streamed(tasks, lambda _, left=left: left)
        assert [member.variance_ratio for member in members] == [None] * len(left)
        np.testing.assert_allclose(weights, 1.0 / len(left))


def further(members: Sequence[FitResult], stage: Any, **changes: Any) -> Any:
    representation: Any = SimpleNamespace(views=(PLAIN,))
    ensemble = Ensemble(
        members=tuple(members),
        weights=np.linspace(1.0, 2.0, len(members)) / np.linspace(1.0, 2.0, len(members)).sum(),
        representation=representation,
        views=(0,) * len(members),
        propagation="push_forward",
    )
    given = replace(Task(rows=bent_rows(), n_threads=1), **changes)
    return ensemble, fit_further(given, ensemble, stage, as_long_again=True)


def test_members_that_go_on_keep_their_weights_and_their_chosen_lengths() -> None:
    stage = Stage(alike)
    before = [
        result_of(task(), status=Status.EARLY_STOPPED, n_sweeps=20),
        result_of(task(), status=Status.CONVERGED, n_sweeps=35),
    ]
    ensemble, (members, weights, _) = further(before, stage)
    assert weights is ensemble.weights
    assert len(members) == 2
    (tasks,) = stage.calls
    assert [one.start for one in tasks] == before
    assert [(one.lengths, one.chosen) for one in tasks] == [((20,), True), ((), False)]
    # A length in sweeps is none in minibatches.
    further(before, stage, stochastic=True)
    assert [(one.lengths, one.chosen) for one in stage.calls[1]] == [((), False)] * 2


def test_members_that_go_on_see_the_inputs_that_they_have_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Any] = []

    def note(model: Any, rows: Any, factors: Any, **_: Any) -> FitResult:
        given.append(rows)
        return result_of(task())

    monkeypatch.setattr(member_module, "fit", note)
    left = Pruning(
        architecture=build_architecture(2, (4,), 1),
        inputs=np.array([1]),
        units=(np.arange(4),),
        keep_threshold=0.9,
        false_sign_rate=0.01,
    )

    class Stream:
        def seen_by(self, view: View, inputs: np.ndarray | None) -> Any:
            return SimpleNamespace(provider=lambda architecture: (view, inputs))

    def run(tasks: Sequence[Task]) -> list[Outcome]:
        return [run_task(one, SETTINGS) for one in tasks]

    model: Any = SimpleNamespace(architecture=None)
    before = [result_of(task(), model=model, pruning=left), result_of(task(), model=model)]
    _, fitted = further(before, run)
    assert [member.pruning for member in fitted.members] == [left, None]
    np.testing.assert_array_equal(given[0].inputs, bent_rows().inputs[:, [1]])
    np.testing.assert_array_equal(given[1].inputs, bent_rows().inputs)
    stream: Any = Stream()
    further(before, run, stream=stream)
    assert given[2:] == [(PLAIN, left.inputs), (PLAIN, None)]


# Interruption


def test_members_that_were_not_reached_stay_as_they_were() -> None:
    before = [result_of(task(), n_sweeps=k) for k in (5, 6, 7)]
    ensemble, (members, weights, _) = further(before, Stage(alike, stop_after=1))
    assert members[0] is not before[0]
    assert members[1:] == before[1:]
    assert weights is ensemble.weights


@pytest.mark.parametrize("number", [1, 2, 5, 6, 7])
def test_an_interrupted_fit_leaves_an_ensemble(number: int) -> None:
    """Of its five trials until a member is begun, then of its members."""
    watch = cut_in(number, 2, KeyboardInterrupt)
    found = fit(bent_table(50), small(), watch)
    assert found.interrupted
    assert watch.n_members == number
    members = found.ensemble.members
    assert len(members) == (number if number <= 5 else number - 5)
    assert members[-1].status is Status.INTERRUPTED
    assert np.sum(found.ensemble.weights) == pytest.approx(1.0)
