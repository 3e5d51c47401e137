"""Networks of every recipe without each fold, and their forecasts of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet.ensemble.linear import cross_fit_linear
from bowtienet.ensemble.portfolio import LINEAR, Recipe
from bowtienet.ensemble.problem import Problem, goals
from bowtienet.ensemble.streams import Training, streamed_minibatches
from bowtienet.networks.column_scales import Columns
from bowtienet.networks.networks import Networks, concatenate, outputs, random_networks, take
from bowtienet.networks.train import (
    FEW_ROWS,
    LEARNING_RATE,
    UPDATES,
    Batch,
    batch_and_steps,
    minibatches,
    train,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Forecasts:
    """Forecast of each recipe for each held-out row, by a network that has not seen it."""

    recipes: tuple[Recipe, ...]
    networks: tuple[Networks, ...]
    """Of each recipe, those of all folds side by side."""
    outputs: Floats
    """(R, m, D) for the m held-out rows, on the scale of the recipe."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """How long and how fast networks train."""

    steps: int
    """Minibatches, however many rows there are; fewer below `FEW_ROWS`."""
    rate: float
    """Highest rate, over the trainer's."""
    all_rows: bool = False
    """Whether networks see the fold that they held out; relative penalties stay then."""


ROWS_OF_OPTIMISER, INPUTS_OF_UNIT = 60, 10
"""What a step of the optimiser costs, in rows; what a unit costs, in inputs."""
FIRST = Course(steps=1_000, rate=1.0)
"""Enough for most tables: rounds are for the others (docs/measurements/portfolio.md)."""
LAST = Course(steps=250, rate=0.3, all_rows=True)
SHARE_OF_FEW = 0.4
"""Of the steps, where batches are a third of the rows."""
MOST_LONGER = 4.0
"""Times as long as in memory, where there are so many more rows than a sample: they are new."""
NUMBERS_AT_ONCE = 2**18
"""Activations of a task on one minibatch: so many stay in a core's cache."""


def train_recipes(
    problem: Problem,
    recipes: Sequence[Recipe],
    started: Sequence[Networks] | None,
    course: Course,
    seed: int,
) -> tuple[Networks, ...]:
    """Networks of all recipes, tasks by threads; from the start if none are given."""
    tasks = _tasks(problem, recipes)
    trainings = []
    for number, members in enumerate(tasks):
        rng = np.random.default_rng([problem.seed, seed, number])
        own = [recipes[i] for i in members]
        start = None if started is None else concatenate([started[i] for i in members])
        trainings.append(_training(problem, own, start, course, rng))
    results = [
        [take(trained, part) for part in _slices(len(members), problem.n_folds)]
        for members, trained in zip(tasks, _run(problem, trainings), strict=True)
    ]
    by_index = {
        index: networks
        for members, parts in zip(tasks, results, strict=True)
        for index, networks in zip(members, parts, strict=True)
    }
    return tuple(by_index[index] for index in range(len(recipes)))


def _run(problem: Problem, trainings: Sequence[Training]) -> list[Networks]:
    """Networks of each training, by threads or a cluster."""
    if problem.stream is not None and problem.stream.run is not None:
        return problem.stream.run(trainings)
    with ThreadPoolExecutor(problem.jobs) as pool:
        try:
            return list(pool.map(_call, trainings))
        except KeyboardInterrupt:
            problem.progress.interrupted.set()
            raise


def _call(training: Training) -> Networks:
    return training()


def _tasks(problem: Problem, recipes: Sequence[Recipe]) -> list[list[int]]:
    """Recipes that are trained side by side: of one view, warp and loss, and not too many."""
    alike: dict[tuple[str, bool, str], list[int]] = {}
    for index, recipe in enumerate(recipes):
        key = recipe.view, recipe.is_warped, recipe.outcome.name
        alike.setdefault(key, []).append(index)
    size, _ = batch_and_steps(len(problem.inputs))
    each = size * problem.n_folds * max(problem.hidden, default=1)
    most = max(1, NUMBERS_AT_ONCE // each)
    return [
        members[begin : begin + most]
        for members in alike.values()
        for begin in range(0, len(members), most)
    ]


def _training(
    problem: Problem,
    recipes: Sequence[Recipe],
    start: Networks | None,
    course: Course,
    rng: np.random.Generator,
) -> Training:
    """Of recipes of one view, warp and loss: folds within recipes side by side."""
    inputs, n_folds = problem.seen[recipes[0].view], problem.n_folds
    targets, outcome = goals(problem, recipes[0].is_warped), recipes[0].outcome
    held_out = np.tile(np.arange(n_folds), len(recipes))
    if start is None:
        level = np.average(outcome.working_targets(targets), axis=0, weights=problem.weights)
        start = random_networks(rng, inputs, problem.hidden, len(level), len(held_out))
        start.layers[-1][:, :, 0] = level
    size, _ = batch_and_steps(len(inputs))
    of_folds = _fold_weights(problem)
    total = np.full(len(held_out), of_folds.sum())
    folds, columns = None, None
    shrinks = np.repeat([recipe.shrinks for recipe in recipes], n_folds)
    if not course.all_rows:
        folds = problem.folds
        total -= of_folds[held_out]
        if shrinks.any():
            owners = problem.views[recipes[0].view].owners
            columns = Columns(owners=owners, shrinks=shrinks, prior=problem.prior)
    unit = work_of(problem, recipes, course) / UPDATES
    n_steps, stream = _steps(problem, course), problem.stream
    batches: Callable[[], Iterator[Batch]] = partial(
        minibatches, inputs, targets, problem.weights, size, rng, folds, held_out
    )
    is_remote = stream is not None and stream.run is not None
    # A course that takes in no more rows than the sample has takes these, where they are.
    if stream is not None and (is_remote or n_steps * size > len(inputs)):
        batches = partial(
            streamed_minibatches,
            stream.read,
            stream.n_rows,
            n_steps * size,
            problem.views[recipes[0].view],
            problem.warps[int(recipes[0].is_warped)] if problem.warps else None,
            size,
            int(rng.integers(2**63)),
            None if course.all_rows else held_out,
        )
    return partial(
        _trained,
        start,
        batches,
        outcome=outcome,
        penalties=np.repeat([recipe.penalty for recipe in recipes], n_folds),
        total_weights=np.where(total > 0.0, total, 1.0),
        n_steps=n_steps,
        learning_rate=course.rate * LEARNING_RATE,
        columns=columns,
        progress=None if is_remote else lambda: problem.progress.advance(unit),
    )


def _trained(start: Networks, batches: Callable[[], Iterator[Batch]], **options: Any) -> Networks:
    return train(start, batches(), **options)


def _fold_weights(problem: Problem) -> Floats:
    """(F + 1,): total weight of the rows of each fold, and of those that no network holds out."""
    if problem.stream is not None:
        return problem.stream.fold_weights
    return np.roll(np.bincount(problem.folds + 1, problem.weights, problem.n_folds + 1), -1)


def work_of(problem: Problem, recipes: Sequence[Recipe], course: Course) -> float:
    """Steps x weights x rows of a minibatch, with the optimiser's share."""
    size, _ = batch_and_steps(len(problem.inputs))
    units = sum(problem.hidden) * problem.n_folds
    inputs = [problem.seen[r.view].shape[1] + INPUTS_OF_UNIT for r in recipes if r.view != LINEAR]
    return _steps(problem, course) * units * sum(inputs) * (size + ROWS_OF_OPTIMISER)


def _steps(problem: Problem, course: Course) -> int:
    share = SHARE_OF_FEW if len(problem.inputs) < FEW_ROWS else 1.0
    if problem.stream is not None:
        share = min(problem.stream.n_rows / len(problem.inputs), MOST_LONGER)
    return max(1, round(share * course.steps))


def _slices(count: int, size: int) -> list[slice]:
    return [slice(index * size, (index + 1) * size) for index in range(count)]


def forecast(problem: Problem, recipe: Recipe, networks: Networks) -> Floats:
    """Outputs (m, D) for the held-out rows, each by the network of its fold."""
    rows = problem.held
    inputs = inputs_of(problem.seen, problem.inputs, recipe)[rows]
    fold = problem.folds[rows]
    found: Floats | None = None
    for index in range(problem.n_folds):
        chosen = fold == index
        values = outputs(take(networks, slice(index, index + 1)), inputs[chosen])[0]
        if found is None:
            found = np.empty((len(rows), values.shape[1]))
        found[chosen] = values
    assert found is not None
    return found


def inputs_of(seen: dict[str, NDArray[np.float32]], inputs: Floats, recipe: Recipe) -> NDArray:
    """What the networks of a recipe see; the linear one sees the columns in double precision."""
    return inputs if recipe.view == LINEAR else seen[recipe.view]


def cross_fit(problem: Problem, recipes: Sequence[Recipe]) -> Forecasts:
    """The first training of all recipes."""
    bent = [recipe for recipe in recipes if recipe.view != LINEAR]
    trained = train_recipes(problem, bent, None, FIRST, seed=0)
    linear = [_linear_folds(problem, r) for r in recipes if r.view == LINEAR]
    return forecasts_of(problem, recipes, (*trained, *linear))


def train_further(
    problem: Problem, forecasts: Forecasts, course: Course, seed: int
) -> tuple[Networks, ...]:
    """All networks after a further course; linear ones are exact already."""
    networks = list(forecasts.networks)
    bent = [i for i, recipe in enumerate(forecasts.recipes) if recipe.view != LINEAR]
    recipes, started = [forecasts.recipes[i] for i in bent], [networks[i] for i in bent]
    trained = train_recipes(problem, recipes, started, course, seed)
    for i, each in zip(bent, trained, strict=True):
        networks[i] = each
    return tuple(networks)


def forecasts_of(
    problem: Problem, recipes: Sequence[Recipe], networks: Sequence[Networks]
) -> Forecasts:
    """Forecasts of these networks for the rows that they held out."""
    said = [forecast(problem, r, n) for r, n in zip(recipes, networks, strict=True)]
    return Forecasts(recipes=tuple(recipes), networks=tuple(networks), outputs=np.stack(said))


def _linear_folds(problem: Problem, recipe: Recipe) -> Networks:
    """The linear functions without each fold, and behind them the one of all rows."""
    linear = cross_fit_linear(
        problem.inputs,
        goals(problem, recipe.is_warped),
        problem.weights,
        problem.folds,
        problem.n_folds,
        recipe.outcome,
        problem.family,
    )
    return Networks(layers=(np.concatenate([linear.folds_layer, linear.layer]),))
