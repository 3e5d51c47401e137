"""Which way an ensemble is fitted, members by their ELBO, and members that go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bowtienet._old.ensemble import large_tables, member, recipes
from bowtienet._old.ensemble import member as member_module
from bowtienet._old.ensemble import training as module
from bowtienet._old.ensemble.ensemble import Ensemble, check_ensemble, mean_and_deviation
from bowtienet._old.ensemble.member import Task, TaskResult, run_task
from bowtienet._old.ensemble.settings import EFFORTS, Effort, Settings
from bowtienet._old.ensemble.training import fit_alike, fit_further, fit_members
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.pruning import Pruning
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.prediction.levels import Levels
from bowtienet._old.representation.representation import PLAIN, View
from tests._old.ensemble.fits import SETTINGS, bent_rows, bent_table, fit, small, task

LEVELS = Levels(scale=np.ones((1, 1)), gates=np.empty((0, 1, 1)), columns=np.empty(0, dtype=int))
SHORT = Effort(
    screens=True,
    penalties=(0.1, 3.0),
    parts=(1, 2),
    adapts=False,
    lengths=(15, 30),
    kept=(2, 2),
    n_recipes=2,
    sweeps=(1,),
    members=4,
)


class Stage:
    """A runner that fits nothing; the bound of a member is less by its place."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.calls: list[list[Task]] = []

    def __call__(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        self.calls.append(list(tasks))
        for place, one in enumerate(tasks[: self.stop_after]):
            yield TaskResult(result=result_of(one, elbo_history=(-float(place),)))


def result_of(task: Task, **changes: Any) -> FitResult:
    unknown: Any = None
    result = FitResult(
        model=unknown,
        factors=unknown,
        elbo_terms=None,
        elbo_history=(0.0,),
        n_sweeps=max(task.lengths, default=0),
        status=Status.EARLY_STOPPED if task.chosen else Status.ITERATION_LIMIT,
    )
    return replace(result, **changes)


def silent(*_: object, **__: object) -> None:
    pass


# Which way


@pytest.mark.parametrize(
    ("n", "changes", "expected"),
    [
        (60, {}, "cross_fit"),
        (61, {}, "fit_large"),
        (61, {"init": "laplace"}, "cross_fit"),
        (61, {"hidden_layer_sizes": ()}, "cross_fit"),
        (30, {"weighting": "equal"}, "fit_alike"),
        (61, {"weighting": "elbo"}, "fit_alike"),
    ],
)
def test_which_way_rows_in_memory_are_fitted(
    n: int, changes: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MANY_ROWS", 60)
    for name in ("cross_fit", "fit_large", "fit_alike"):
        monkeypatch.setattr(module, name, lambda *_, name=name: name)
    given, rng = Task(rows=bent_rows(n)), np.random.default_rng(0)
    settings = Settings(**changes)
    assert fit_members(given, [PLAIN], settings, Stage(), rng, silent) == expected


# Members by their ELBO, or alike


@pytest.mark.parametrize("n", [9, 40])
def test_members_that_are_alike_have_weights_from_their_bound(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the best recipe, each from a network of its own that has seen all rows."""
    monkeypatch.setitem(EFFORTS, "short", SHORT)
    stage, rng = Stage(), np.random.default_rng(0)
    shared = small(n_estimators=3, effort="short", weighting="elbo", elbo_tempering=0.5)
    given = task(rows=bent_rows(n))
    found = fit_alike(given, [PLAIN], shared, stage, rng, silent)
    expected = np.exp(-0.5 * np.arange(3.0))
    np.testing.assert_allclose(found.weights, expected / expected.sum(), rtol=1e-12)
    assert (len(found.members), found.views, found.groups) == (3, [0, 0, 0], [0, 1, 2])
    [tasks] = stage.calls
    assert len({one.recipe.seed for one in tasks}) == 3
    assert len({replace(one.recipe, seed=0) for one in tasks}) == 1
    assert len({one.network[0].tobytes() for one in tasks}) == 3
    equal = replace(shared, weighting="equal")
    found = fit_alike(given, [PLAIN], equal, stage, rng, silent)
    np.testing.assert_array_equal(found.weights, np.full(3, 1.0 / 3.0))


def test_random_starts_have_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "short", SHORT)
    stage = Stage()
    shared = small(effort="short", weighting="equal", init="laplace")
    given, rng = task(rows=bent_rows(40)), np.random.default_rng(0)
    fit_alike(given, [PLAIN], shared, stage, rng, silent)
    assert [one.network for one in stage.calls[0]] == [None, None]


# Many rows


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of more than 150 rows are large."""
    monkeypatch.setitem(EFFORTS, "short", SHORT)
    monkeypatch.setattr(module, "MANY_ROWS", 150)
    monkeypatch.setattr(recipes, "MANY_ROWS", 150)
    monkeypatch.setattr(large_tables, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(large_tables, "HELD_OUT_ROWS", 40)
    monkeypatch.setattr(large_tables, "BATCH", 32)
    monkeypatch.setattr(large_tables, "VISITS", 2000)


def large(n_estimators: int | None = None, **changes: Any) -> Settings:
    given = {"features": "standard", "target_transform": "none", "effort": "short"}
    return Settings(hidden_layer_sizes=(6,), n_estimators=n_estimators, **(given | changes))


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("count", [None, 1, 3, 12])
def test_members_of_a_large_table(count: int | None) -> None:
    """Groups share the members that are wanted; those without weight are left out."""
    found = fit(bent_table(200), large(count)).ensemble
    check_ensemble(found, 2, 1)
    wanted = count or SHORT.members
    sizes = np.bincount(found.groups)
    assert len(sizes) <= SHORT.n_recipes
    assert 1 <= len(found.members) <= wanted
    if len(sizes) == min(SHORT.n_recipes, wanted):
        assert len(found.members) == wanted
    assert found.weights.sum() == pytest.approx(1.0)
    for group in range(len(sizes)):
        own = [k for k, place in enumerate(found.groups) if place == group]
        assert len({found.weights[k] for k in own}) == 1
        assert len({found.members[k].variance_ratio.tobytes() for k in own}) == 1
    assert found.held_out.values.shape == (40, 1)
    new, target = bent_table(200, seed=1)
    mean, deviation = mean_and_deviation(found, new)
    assert np.sqrt(np.mean((mean[:, 0] - target) ** 2)) < 0.5
    assert np.mean(np.abs(mean[:, 0] - target) < 2.0 * deviation[:, 0]) > 0.8


@pytest.mark.usefixtures("many")
def test_held_out_rows_of_a_large_table_are_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts of the last rows do not depend on their targets; the members do."""
    rows, noted = bent_rows(200), []
    whole = large_tables._together

    def note(group: Any, targets: Any, forecasts: Any, *others: Any) -> Any:
        noted.append((targets, np.stack(forecasts)))
        return whole(group, targets, forecasts, *others)

    monkeypatch.setattr(large_tables, "_together", note)
    prior = rows.targets
    plain = member.default_model
    monkeypatch.setattr(
        member, "default_model", lambda a, x, y, w, **given: plain(a, x, prior, w, **given)
    )
    targets = rows.targets.copy()
    targets[160:] += 0.2
    members = []
    for own in (rows, replace(rows, targets=targets)):
        rng = np.random.default_rng(0)
        found = fit_members(Task(rows=own), [PLAIN], large(2), Stage(), rng, silent)
        members.append(found.members)
    half = len(noted) // 2
    for (y, before), (moved, after) in zip(noted[:half], noted[half:], strict=True):
        np.testing.assert_allclose(moved - y, 0.2, rtol=1e-9)
        np.testing.assert_allclose(after[:, 0] - before[:, 0], 0.0, atol=2e-10)
        np.testing.assert_allclose(after[:, 1], before[:, 1], rtol=1e-9)
    first, second = (own[0].factors.layers[0].weights.mean for own in members)
    assert not np.array_equal(first, second)


@pytest.mark.usefixtures("many")
def test_a_stream_is_fitted_too() -> None:
    X, y = bent_table(200)
    batches = [(X[i : i + 50], y[i : i + 50]) for i in range(0, 200, 50)]
    found = fit((batches,), large(3, solver="svi", batch_size=50, max_iter=20)).ensemble
    check_ensemble(found, 2, 1)
    assert 1 <= len(found.members) <= 3
    assert found.held_out.values.shape == (40, 1)
    assert all(member.variance_ratio is not None for member in found.members)
    mean, _ = mean_and_deviation(found, X)
    assert np.sqrt(np.mean((mean[:, 0] - y) ** 2)) < 0.6


@pytest.mark.parametrize(("n", "expected"), [(5_001, 60), (200_000, 30), (10**7, 5)])
def test_passes_over_many_rows(n: int, expected: int) -> None:
    assert large_tables.n_passes(n) == expected


def test_the_variance_of_a_group_is_right_on_average() -> None:
    """r v + spread has the mean that errors ask for, unless little is left of r."""
    rng = np.random.default_rng(0)
    forecasts = [np.stack([rng.normal(size=(50, 2)), np.full((50, 2), 4.0)]) for _ in range(3)]
    weights = rng.uniform(0.5, 2.0, size=50)
    group: Any = SimpleNamespace(candidate=None)
    targets = rng.normal(size=(50, 2)) * [0.0, 2.0]
    found = large_tables._together(group, targets, forecasts, weights, 1, Settings())
    errors = targets - np.mean([one[0] for one in forecasts], axis=0)
    spread = np.var([one[0] for one in forecasts], axis=0)
    np.testing.assert_allclose(found.errors, errors)
    np.testing.assert_allclose(found.variances, found.ratio * 4.0 + spread)
    asked = (weights @ (errors**2 / (4.0 + spread)) + 5.0) / (weights.sum() + 5.0)
    wanted = asked * (4.0 + spread.mean(axis=0))
    kept = wanted - spread.mean(axis=0) > 0.25 * asked * 4.0
    np.testing.assert_array_equal(kept, [False, True])
    np.testing.assert_allclose(found.variances.mean(axis=0)[kept], wanted[kept])
    np.testing.assert_allclose(found.ratio[~kept], 0.25 * asked[~kept])


# Members that go on


def further(members: Sequence[FitResult], stage: Any, **changes: Any) -> Any:
    representation: Any = SimpleNamespace(views=(PLAIN,))
    ensemble = Ensemble(
        members=tuple(members),
        weights=np.linspace(1.0, 2.0, len(members)) / np.linspace(1.0, 2.0, len(members)).sum(),
        representation=representation,
        views=(0,) * len(members),
        groups=tuple(range(len(members))),
        levels=LEVELS,
        propagation="push_forward",
    )
    given = replace(Task(rows=bent_rows(), n_threads=1), **changes)
    return ensemble, fit_further(given, ensemble, stage)


def test_members_that_go_on_keep_their_weights() -> None:
    stage = Stage()
    before = [
        result_of(task(), status=Status.EARLY_STOPPED, n_sweeps=20),
        result_of(task(), status=Status.CONVERGED, n_sweeps=35),
    ]
    ensemble, found = further(before, stage)
    members = found.members
    assert found.weights == list(ensemble.weights)
    assert (found.views, found.groups) == ([0, 0], [0, 1])
    assert found.noise.levels is LEVELS
    assert len(members) == 2
    (tasks,) = stage.calls
    assert [one.start for one in tasks] == before
    assert [(one.lengths, one.chosen) for one in tasks] == [((), False)] * 2


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
    )

    class Stream:
        def seen_by(self, view: View, inputs: np.ndarray | None) -> Any:
            return SimpleNamespace(provider=lambda architecture: (view, inputs))

    def run(tasks: Sequence[Task]) -> list[TaskResult]:
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


def test_members_that_were_not_reached_stay_as_they_were() -> None:
    before = [result_of(task(), n_sweeps=k) for k in (5, 6, 7)]
    ensemble, found = further(before, Stage(stop_after=1))
    members, weights = found.members, found.weights
    assert members[0] is not before[0]
    assert members[1:] == before[1:]
    assert weights == list(ensemble.weights)
