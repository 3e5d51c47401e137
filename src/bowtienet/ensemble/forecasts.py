"""Networks of every recipe without each fold, and their forecasts of held-out rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import slices
from bowtienet.ensemble.judgement import Forecasts, judge
from bowtienet.ensemble.linear import cross_fit_linear
from bowtienet.ensemble.portfolio import LINEAR, Recipe
from bowtienet.ensemble.problem import Problem, goals
from bowtienet.ensemble.streams import Training, streamed_minibatches
from bowtienet.networks.column_scales import Columns, local_prior
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

FIRST_STEPS = 1_000
"""Minibatches of the first training, however many rows there are: enough for most tables, rounds
are for the others (docs/measurements/portfolio.md)."""
LAST_STEPS = 250
"""Of the last training, with all rows."""
MOST_LONGER = 4.0
"""Times as long as in memory, where there are so many more rows than a sample: they are new."""


def train_recipes(
    problem: Problem,
    recipes: Sequence[Recipe],
    started: Sequence[Networks] | None,
    steps: int,
    seed: int,
    *,
    all_rows: bool = False,
) -> tuple[Networks, ...]:
    """Networks of all recipes after so many steps, from the start if none are given.

    With `all_rows` they see the fold that they held out, and relative penalties stay. Linear
    functions are exact from the start: without each fold, and behind them that of all rows.
    """
    tasks = _tasks(problem, recipes)
    trainings = []
    for number, members in enumerate(tasks):
        rng = np.random.default_rng([problem.seed, seed, number])
        start = None if started is None else concatenate([started[i] for i in members])
        alike = [recipes[i] for i in members]
        trainings.append(_training(problem, alike, start, steps, rng, all_rows))
    results: dict[int, Networks] = {}
    for members, trained in zip(tasks, _run(problem, trainings), strict=True):
        for number, index in enumerate(members):
            folds = slice(number * problem.n_folds, (number + 1) * problem.n_folds)
            results[index] = take(trained, folds)
    for index, recipe in enumerate(recipes):
        if recipe.view == LINEAR:
            results[index] = _linear(problem, recipe) if started is None else started[index]
    return tuple(results[index] for index in range(len(recipes)))


def _run(problem: Problem, trainings: Sequence[Training]) -> list[Networks]:
    """Networks of each training, by threads or a cluster."""
    if problem.stream is not None and problem.stream.run is not None:
        return problem.stream.run(trainings)
    with ThreadPoolExecutor(problem.jobs) as pool:
        try:
            futures = [pool.submit(training) for training in trainings]
            # A Ctrl-C that comes just before the main thread sleeps would wake it no more.
            while wait(futures, timeout=0.5).not_done:
                pass
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            problem.progress.interrupted.set()
            pool.shutdown(cancel_futures=True)
            raise


def _tasks(problem: Problem, recipes: Sequence[Recipe]) -> list[list[int]]:
    """Recipes that are trained side by side: of one view, warp and loss, and not too many."""

    def kind(index: int) -> tuple[str, bool, str]:
        recipe = recipes[index]
        return recipe.view, recipe.is_warped, recipe.outcome.name

    size, _ = batch_and_steps(len(problem.inputs))
    each = size * problem.n_folds * max(problem.hidden, default=1)
    most = max(1, 2**18 // each)  # activations of a minibatch that stay in a core's cache
    bent = [index for index, recipe in enumerate(recipes) if recipe.view != LINEAR]
    groups = [list(group) for _, group in itertools.groupby(bent, kind)]
    return [group[part] for group in groups for part in slices(len(group), most)]


def _training(
    problem: Problem,
    recipes: Sequence[Recipe],
    start: Networks | None,
    steps: int,
    rng: np.random.Generator,
    all_rows: bool,
) -> Training:
    """Of recipes of one view, warp and loss: folds within recipes side by side."""
    rate = 1.0 if start is None else 0.3 if all_rows else 0.5
    inputs, n_folds = problem.seen[recipes[0].view], problem.n_folds
    targets, outcome = goals(problem, recipes[0].is_warped), recipes[0].outcome
    held_out = np.tile(np.arange(n_folds), len(recipes))
    if start is None:
        level = np.average(outcome.working_targets(targets), axis=0, weights=problem.weights)
        start = random_networks(rng, inputs, problem.hidden, len(level), len(held_out))
        start.layers[-1][:, :, 0] = level
    size, _ = batch_and_steps(len(inputs))
    total = np.full(len(held_out), problem.fold_weights.sum())
    folds, columns = None, None
    shrinks = np.repeat([recipe.shrinks for recipe in recipes], n_folds)
    if not all_rows:
        folds = problem.folds
        total -= problem.fold_weights[held_out]
        if shrinks.any():
            owners = problem.views[recipes[0].view].owners
            columns = Columns(owners=owners, shrinks=shrinks, prior=local_prior(problem.prior))
    # The first three updates are within the warm-up and tell nothing.
    unit = work_of(problem, recipes, steps) / (UPDATES - 3)
    n_steps, stream = _steps(problem, steps), problem.stream
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
            None if all_rows else held_out,
        )
    return partial(
        _trained,
        start,
        batches,
        outcome=outcome,
        penalties=np.repeat([recipe.penalty for recipe in recipes], n_folds),
        total_weights=np.where(total > 0.0, total, 1.0),
        n_steps=n_steps,
        learning_rate=rate * LEARNING_RATE,
        columns=columns,
        progress=None if is_remote else lambda: problem.progress.advance(unit),
    )


def _trained(start: Networks, batches: Callable[[], Iterator[Batch]], **options: Any) -> Networks:
    return train(start, batches(), **options)


def work_of(problem: Problem, recipes: Sequence[Recipe], steps: int) -> float:
    """Steps x weights x rows of a minibatch, with the optimiser's share."""
    size, _ = batch_and_steps(len(problem.inputs))
    inputs = [problem.seen[r.view].shape[1] for r in recipes if r.view != LINEAR]
    # A unit costs as much as ten inputs, a step of the optimiser as much as sixty rows.
    weights = sum(
        units * (below + 10)
        for first in inputs
        for below, units in itertools.pairwise((first, *problem.hidden))
    )
    return float(_steps(problem, steps) * problem.n_folds * weights * (size + 60))


def _steps(problem: Problem, steps: int) -> int:
    # Batches of few rows are a third of them.
    share = 0.4 if len(problem.inputs) < FEW_ROWS else 1.0
    if problem.stream is not None:
        share = min(problem.stream.n_rows / len(problem.inputs), MOST_LONGER)
    return max(1, round(share * steps))


def cross_fit(problem: Problem, recipes: Sequence[Recipe]) -> Forecasts:
    """The first training of all recipes."""
    networks = train_recipes(problem, recipes, None, FIRST_STEPS, seed=0)
    return forecasts_of(problem, recipes, networks)


def forecasts_of(
    problem: Problem, recipes: Sequence[Recipe], networks: Sequence[Networks]
) -> Forecasts:
    """Forecasts of these networks for the rows that they held out."""
    said = [forecast(problem, r, n) for r, n in zip(recipes, networks, strict=True)]
    return judge(problem, recipes, networks, np.stack(said))


def forecast(problem: Problem, recipe: Recipe, networks: Networks) -> Floats:
    """Outputs (m, D) for the held-out rows, each by the network of its fold."""
    inputs, fold = problem.seen[recipe.view][problem.held], problem.folds[problem.held]
    result = np.empty((len(fold), networks.layers[-1].shape[1]))
    for index in range(problem.n_folds):
        alone = take(networks, slice(index, index + 1))
        result[fold == index] = outputs(alone, inputs[fold == index])[0]
    return result


def _linear(problem: Problem, recipe: Recipe) -> Networks:
    targets, folds = goals(problem, recipe.is_warped), (problem.folds, problem.n_folds)
    rows = problem.inputs, targets, problem.weights
    layers: Any = cross_fit_linear(*rows, *folds, recipe.outcome, problem.prior)
    return Networks(layers=(layers,))
