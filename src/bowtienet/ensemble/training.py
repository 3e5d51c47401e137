"""How the members of an ensemble are chosen and fitted.

The ELBO does not say which start or length predicts best; held-out rows do. So every recipe is
first fitted to a part of the rows, with its held-out log density noted after 20, 80, 320, ...
sweeps until that stops rising; stacking gives weights to all recipes and lengths; and members are
fitted to all rows by those that got weight, in proportion to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import slices, to_numpy
from bowtienet.data.canonical import take_columns
from bowtienet.data.rows import Rows, take_rows
from bowtienet.ensemble.ensemble import Ensemble, Floats
from bowtienet.ensemble.member import Outcome, Task, held_out_score, last_bound
from bowtienet.ensemble.settings import Recipe, Settings, build_recipes, repeat
from bowtienet.ensemble.stacking import (
    elbo_weights,
    equal_weights,
    stack_forecasts,
    variance_ratio,
)
from bowtienet.inference.convergence import Status
from bowtienet.inference.iterate import FitResult

FOLDS = 5
HELD_OUT_ROWS = 200
"""Folds are held out in turn until this many rows have been: few rows need all of them."""
FEWEST_ROWS = 10
"""Below this nothing is held out."""
FIRST_LENGTH, LENGTHENING = 20, 4
UNFINISHED = 0.05
"""Gain of the last length allowed from which the fit is said to have been cut short."""
LEAST_WEIGHT = 1e-3
"""Members of a stream with less weight are left out: they cost time and say nothing."""

Run = Callable[[Sequence[Task]], Iterable[Outcome]]
"""Runs tasks and answers in their order; it may stop early."""
Fitted = tuple[list[FitResult], Floats]
"""Members and their weights."""


def fit_members(task: Task, settings: Settings, run: Run, rng: np.random.Generator) -> Fitted:
    """New members; `task` has the rows, or those of a stream to start from, and the stream."""
    recipes = build_recipes(settings, rng)
    if settings.weighting != "stacking":
        return fit_alike(task, recipes, settings, run)
    if not task.stochastic:
        return fit_stacked(task, recipes, settings, run, rng)
    chosen = repeat(recipes, settings.n_estimators, rng)
    return fit_streamed([replace(task, recipe=recipe) for recipe in chosen], run)


def fit_further(task: Task, ensemble: Ensemble, run: Run, *, as_long_again: bool) -> Fitted:
    """The members of an ensemble, each fitted further, with the weights that they had."""
    tasks = [_further(task, member, as_long_again) for member in ensemble.members]
    members = [outcome.result for outcome in run(tasks)]
    return [*members, *ensemble.members[len(members) :]], ensemble.weights


def fit_alike(task: Task, recipes: Sequence[Recipe], settings: Settings, run: Run) -> Fitted:
    """Members fitted to all rows, with weights from their ELBO or equal ones."""
    outcomes = list(run([replace(task, recipe=recipe) for recipe in recipes]))
    if settings.weighting != "elbo" or not outcomes:
        return _equally(outcomes)
    members = [outcome.result for outcome in outcomes]
    bounds = [last_bound(member) for member in members]
    known = np.asarray([-np.inf if bound is None else bound for bound in bounds])
    return members, elbo_weights(known, settings.elbo_tempering)


def fit_stacked(
    task: Task, recipes: Sequence[Recipe], settings: Settings, run: Run, rng: np.random.Generator
) -> Fitted:
    """Members of the recipes and lengths that predict held-out rows best, fitted to all rows.

    Of a stream, the task's rows are a sample: recipes are compared on it, and members fitted to the
    stream. If the fits are interrupted, what there is counts equally.
    """
    rows, n_members = task.rows, settings.n_estimators
    folds = held_out_folds(rows.inputs.shape[0])
    if not folds:
        # Too few rows to compare: all recipes in turn, from the smoothest on.
        return _equally(
            list(run([replace(task, recipe=r) for r in repeat(recipes[::-1], n_members, rng)]))
        )
    lengths = lengths_up_to(settings.max_iter)
    parts = [_parted(rows, fold) for fold in folds]
    tasks = [
        Task(recipe=recipe, rows=rest, held_out=out, lengths=lengths, n_threads=task.n_threads)
        for recipe in recipes
        for rest, out in parts
    ]
    trials = list(run(tasks))
    if len(trials) < len(tasks) or trials[-1].interrupted:
        return _equally(trials)
    row_weights = to_numpy(rows.weights).astype(float)[: folds[-1].stop]
    forecasts = _forecast_table(trials, len(recipes))
    weights, ratios = weigh(forecasts, row_weights, n_members)
    unfinished = _still_rising(forecasts, row_weights)
    chosen = np.repeat(np.arange(weights.size), allocate(weights.ravel(), n_members))
    shares = weights.ravel()[chosen] / np.bincount(chosen)[chosen]
    tasks = [
        replace(
            task,
            recipe=replace(recipes[recipe], seed=int(rng.integers(2**32))),
            lengths=(lengths[length],),
            chosen=not unfinished[recipe, length],
            variance_ratio=ratios[recipe, length],
        )
        for recipe, length in (divmod(int(index), len(lengths)) for index in chosen)
    ]
    members = [outcome.result for outcome in run(tasks)]
    if not members:
        return _equally(trials)
    shares = shares[: len(members)]
    return members, shares / shares.sum()


def fit_streamed(tasks: Sequence[Task], run: Run) -> Fitted:
    """Members of a stream's tasks, stacked by the held-out rows; equal if there are none."""
    outcomes = list(run(tasks))
    held_out = tasks[0].held_out
    complete = len(outcomes) == len(tasks) and not outcomes[-1].interrupted
    if held_out is None or not complete:
        return _equally(outcomes)
    members = [outcome.result for outcome in outcomes]
    last = [outcome.forecasts[:, -1:] for outcome in outcomes if outcome.forecasts is not None]
    row_weights = np.asarray(held_out.weights, dtype=float)
    weights, ratios = (found[:, 0] for found in weigh(np.stack(last, 1), row_weights, len(members)))
    kept = np.flatnonzero(weights >= LEAST_WEIGHT)
    chosen = [replace(members[index], variance_ratio=ratios[index]) for index in kept]
    return chosen, weights[kept] / weights[kept].sum()


def lengths_up_to(max_iter: int) -> tuple[int, ...]:
    """20, 80, 320, ... and the last one allowed."""
    lengths = []
    length = FIRST_LENGTH
    while length < max_iter:
        lengths.append(length)
        length *= LENGTHENING
    return (*lengths, max_iter)


def held_out_folds(n_rows: int) -> list[slice]:
    """Fifths of the rows to hold out in turn; no more of them than it takes to compare recipes."""
    if n_rows < FEWEST_ROWS:
        return []
    folds = slices(n_rows, -(-n_rows // FOLDS))
    return folds[: max(1, -(-HELD_OUT_ROWS // (folds[0].stop - folds[0].start)))]


def allocate(weights: Floats, count: int) -> NDArray[np.intp]:
    """`count` places shared out in proportion to weights, the largest remainders first."""
    quota = weights * count
    places = np.floor(quota).astype(np.intp)
    left = count - places.sum()
    places[np.argsort(places - quota, kind="stable")[:left]] += 1
    return places


def weigh(forecasts: Floats, row_weights: Floats, n_members: int) -> tuple[Floats, Floats]:
    """Weights (recipes, lengths) and variance ratios (recipes, lengths, D_out) of what to fit.

    Each candidate first gets the variance that held-out rows ask for. One member is then the best
    of them alone; for several, stacking sets their weights and the variances of their mixture.
    """
    _, n_recipes, n_lengths, n_rows, n_outputs = forecasts.shape
    errors, variances = forecasts.reshape(2, -1, n_rows, n_outputs)
    ratios = np.stack(
        [variance_ratio(e, v, row_weights) for e, v in zip(errors, variances, strict=True)]
    )
    if n_members == 1:
        scores = _scores(forecasts, row_weights).ravel()
        weights = np.where(np.arange(scores.size) == np.argmax(scores), 1.0, 0.0)
    else:
        weights, factor = stack_forecasts(errors, ratios[:, None] * variances, row_weights)
        ratios = ratios * factor
    weights = weights.reshape(n_recipes, n_lengths)
    # Where no fold ran on, longer is the same fit: its weight belongs to the shortest.
    for length in reversed(range(1, n_lengths)):
        same = np.all(forecasts[:, :, length] == forecasts[:, :, length - 1], axis=(0, 2, 3))
        weights[:, length - 1] += np.where(same, weights[:, length], 0.0)
        weights[:, length] = np.where(same, 0.0, weights[:, length])
    return weights, ratios.reshape(n_recipes, n_lengths, n_outputs)


def _further(task: Task, member: FitResult, as_long_again: bool) -> Task:
    """A member goes on to the end, or runs as long again if held-out rows chose its length."""
    rows, stream = task.rows, task.stream
    if member.pruning is not None:
        rows = take_columns(rows, member.pruning.inputs)
        stream = None if stream is None else stream.taking(member.pruning.inputs)
    # Lengths are sweeps over all rows: a minibatch is none.
    chosen = as_long_again and member.status is Status.EARLY_STOPPED and not task.stochastic
    lengths = (member.n_sweeps,) if chosen else ()
    return replace(task, rows=rows, stream=stream, start=member, lengths=lengths, chosen=chosen)


def _equally(outcomes: Sequence[Outcome]) -> Fitted:
    """The fits that there are, also after an interruption, all alike."""
    members = [outcome.result for outcome in outcomes]
    return members, equal_weights(len(members)) if members else np.empty(0)


def _parted(rows: Rows, fold: slice) -> tuple[Rows, Rows]:
    """Rows to fit and held-out rows; made once and shared by all recipes."""
    everything = np.arange(rows.inputs.shape[0])
    return take_rows(rows, np.delete(everything, fold)), take_rows(rows, everything[fold])


def _forecast_table(trials: Sequence[Outcome], n_recipes: int) -> Floats:
    """Held-out errors and variances (2, recipes, lengths, rows, D_out); recipe by recipe."""
    n_folds = len(trials) // n_recipes
    parts = [trial.forecasts for trial in trials if trial.forecasts is not None]
    return np.stack(
        [
            np.concatenate(parts[first : first + n_folds], axis=2)
            for first in range(0, len(parts), n_folds)
        ],
        axis=1,
    )


def _scores(forecasts: Floats, row_weights: Floats) -> Floats:
    """Held-out log densities per row (recipes, lengths), each with the variances it should have."""
    errors, variances = forecasts
    return np.array(
        [
            [held_out_score(e, v, row_weights) for e, v in zip(*recipe, strict=True)]
            for recipe in zip(errors, variances, strict=True)
        ]
    )


def _still_rising(forecasts: Floats, row_weights: Floats) -> NDArray[np.bool_]:
    """Whether a longer fit may be worthwhile (recipes, lengths): only at the last length.

    With a single length nothing was compared: the limit chose it, not the held-out rows.
    """
    scores = _scores(forecasts, row_weights)
    rising = np.zeros(scores.shape, dtype=bool)
    best_before = scores[:, :-1].max(axis=1, initial=-np.inf)
    rising[:, -1] = scores[:, -1] > best_before + UNFINISHED
    return rising
