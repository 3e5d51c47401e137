"""How the members of an ensemble are chosen and fitted.

The ELBO does not say which start or length predicts best; held-out rows do. Ordinary networks have
told which recipes are worth a try (`candidates`). Each of these is first fitted to a part of the
rows, with its held-out log density noted after 5, 10, 20, ... sweeps until that stops rising;
stacking gives weights to all recipes and lengths; and members are fitted to all rows by those that
got weight, in proportion to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import to_numpy
from bowtienet.data.rows import Rows, take_rows
from bowtienet.ensemble.candidates import (
    held_out_folds,
    start_networks,
    starts_from_networks,
)
from bowtienet.ensemble.ensemble import Ensemble, Floats
from bowtienet.ensemble.member import Outcome, Task, held_out_score, last_bound
from bowtienet.ensemble.settings import Recipe, Settings, repeat
from bowtienet.ensemble.stacking import (
    elbo_weights,
    equal_weights,
    stack_forecasts,
    variance_ratio,
)
from bowtienet.inference.convergence import Status
from bowtienet.inference.iterate import FitResult
from bowtienet.representation.representation import View, log_slopes

HELD_OUT_ROWS = 200
"""Folds are held out in turn until this many rows have been: few rows need all of them."""
FIRST_LENGTH, LENGTHENING = 5, 2
UNFINISHED = 0.05
"""Gain of the last length allowed from which the fit is said to have been cut short."""
LEAST_WEIGHT = 1e-3
"""Members of a stream with less weight are left out: they cost time and say nothing."""

Run = Callable[[Sequence[Task]], Iterable[Outcome]]
"""Runs tasks and answers in their order; it may stop early."""


class Fitted(NamedTuple):
    """Members, their weights, and the place of each one's view among those of the ensemble."""

    members: list[FitResult]
    weights: Floats
    views: list[int]


def fit_members(
    task: Task,
    views: Sequence[View],
    recipes: Sequence[Recipe],
    settings: Settings,
    run: Run,
    rng: np.random.Generator,
) -> Fitted:
    """New members of some recipes, the best of which is the first.

    `task` has the rows, or those of a stream to start from, and the stream.
    """
    if settings.weighting != "stacking":
        chosen = repeat(recipes[:1], settings.n_estimators, rng)
        return fit_alike(begin(task, views, chosen, settings), settings, run)
    if not task.stochastic:
        return fit_stacked(task, views, recipes, settings, run, rng)
    chosen = repeat(recipes, settings.n_estimators, rng)
    return fit_streamed(begin(task, views, chosen, settings), run)


def begin(
    task: Task,
    views: Sequence[View],
    recipes: Sequence[Recipe],
    settings: Settings,
    folds: Sequence[slice | None] | None = None,
) -> list[Task]:
    """A task for each recipe, with the network that it starts from, fitted without its fold."""
    tasks = [replace(task, recipe=recipe, view=views[recipe.view]) for recipe in recipes]
    if not starts_from_networks(settings):
        return tasks
    folds = [None] * len(tasks) if folds is None else folds
    for place, view in enumerate(views):
        own = [index for index, recipe in enumerate(recipes) if recipe.view == place]
        if own:
            networks = start_networks(
                task.rows,
                view,
                [recipes[index] for index in own],
                [folds[index] for index in own],
                settings.hidden_layer_sizes,
            )
            for index, network in zip(own, networks, strict=True):
                tasks[index] = replace(tasks[index], network=network)
    return tasks


def fit_further(task: Task, ensemble: Ensemble, run: Run, *, as_long_again: bool) -> Fitted:
    """The members of an ensemble, each fitted further, with the weights that they had."""
    views = [ensemble.representation.views[place] for place in ensemble.views]
    tasks = [
        _further(replace(task, view=view), member, as_long_again)
        for member, view in zip(ensemble.members, views, strict=True)
    ]
    members = [outcome.result for outcome in run(tasks)]
    everyone = [*members, *ensemble.members[len(members) :]]
    return Fitted(everyone, ensemble.weights, list(ensemble.views))


def fit_alike(tasks: Sequence[Task], settings: Settings, run: Run) -> Fitted:
    """Members fitted to all rows, with weights from their ELBO or equal ones."""
    outcomes = list(run(tasks))
    if settings.weighting != "elbo" or not outcomes:
        return _equally(outcomes, tasks)
    members = [outcome.result for outcome in outcomes]
    bounds = [last_bound(member) for member in members]
    known = np.asarray([-np.inf if bound is None else bound for bound in bounds])
    weights = elbo_weights(known, settings.elbo_tempering)
    return Fitted(members, weights, _views(tasks[: len(members)]))


def fit_stacked(
    task: Task,
    views: Sequence[View],
    recipes: Sequence[Recipe],
    settings: Settings,
    run: Run,
    rng: np.random.Generator,
) -> Fitted:
    """Members of the recipes and lengths that predict held-out rows best, fitted to all rows.

    Of a stream, the task's rows are a sample: recipes are compared on it, and members fitted to the
    stream. If the fits are interrupted, what there is counts equally.
    """
    rows, n_members = task.rows, settings.n_estimators
    folds = held_out_folds(rows.inputs.shape[0], HELD_OUT_ROWS)
    if not folds:
        # Too few rows to compare: all recipes in turn.
        tasks = begin(task, views, repeat(recipes, n_members, rng), settings)
        return _equally(list(run(tasks)), tasks)
    lengths = lengths_up_to(settings.max_iter)
    parts = [_parted(rows, fold) for fold in folds]
    alone = replace(task, stream=None)
    repeated = [recipe for recipe in recipes for _ in folds]
    begun = begin(alone, views, repeated, settings, list(folds) * len(recipes))
    trial_tasks = [
        replace(one, rows=rest, held_out=out, lengths=lengths)
        for one, (rest, out) in zip(begun, parts * len(recipes), strict=True)
    ]
    trials = list(run(trial_tasks))
    if len(trials) < len(trial_tasks) or trials[-1].interrupted:
        return _equally(trials, trial_tasks)
    held_out = take_rows(rows, np.arange(folds[-1].stop))
    row_weights = to_numpy(held_out.weights).astype(float)
    slopes = [log_slopes(view, held_out) for view in views]
    forecasts = _forecast_table(trials, len(recipes))
    weights, ratios = weigh(
        forecasts, np.stack([slopes[recipe.view] for recipe in recipes]), row_weights, n_members
    )
    unfinished = _still_rising(forecasts, row_weights)
    places = np.repeat(np.arange(weights.size), allocate(weights.ravel(), n_members))
    shares = weights.ravel()[places] / np.bincount(places)[places]
    chosen = [divmod(int(index), len(lengths)) for index in places]
    final = [replace(recipes[recipe], seed=int(rng.integers(2**32))) for recipe, _ in chosen]
    tasks = [
        replace(
            one,
            lengths=(lengths[length],),
            chosen=not unfinished[recipe, length],
            variance_ratio=ratios[recipe, length],
        )
        for one, (recipe, length) in zip(begin(task, views, final, settings), chosen, strict=True)
    ]
    members = [outcome.result for outcome in run(tasks)]
    if not members:
        return _equally(trials, trial_tasks)
    shares = shares[: len(members)]
    return Fitted(members, shares / shares.sum(), _views(tasks[: len(members)]))


def fit_streamed(tasks: Sequence[Task], run: Run) -> Fitted:
    """Members of a stream's tasks, stacked by the held-out rows; equal if there are none."""
    outcomes = list(run(tasks))
    held_out = tasks[0].held_out
    complete = len(outcomes) == len(tasks) and not outcomes[-1].interrupted
    if held_out is None or not complete:
        return _equally(outcomes, tasks)
    members = [outcome.result for outcome in outcomes]
    last = [outcome.forecasts[:, -1:] for outcome in outcomes if outcome.forecasts is not None]
    row_weights = np.asarray(held_out.weights, dtype=float)
    slopes = np.stack([log_slopes(task.view, held_out) for task in tasks])
    found = weigh(np.stack(last, 1), slopes, row_weights, len(members))
    weights, ratios = (values[:, 0] for values in found)
    kept = np.flatnonzero(weights >= LEAST_WEIGHT).tolist()
    chosen = [replace(members[index], variance_ratio=ratios[index]) for index in kept]
    return Fitted(chosen, weights[kept] / weights[kept].sum(), _views([tasks[k] for k in kept]))


def lengths_up_to(max_iter: int) -> tuple[int, ...]:
    """5, 10, 20, ... and the last one allowed."""
    lengths = []
    length = FIRST_LENGTH
    while length < max_iter:
        lengths.append(length)
        length *= LENGTHENING
    return (*lengths, max_iter)


def allocate(weights: Floats, count: int) -> NDArray[np.intp]:
    """`count` places shared out in proportion to weights, the largest remainders first."""
    quota = weights * count
    places = np.floor(quota).astype(np.intp)
    left = count - places.sum()
    places[np.argsort(places - quota, kind="stable")[:left]] += 1
    return places


def weigh(
    forecasts: Floats, slopes: Floats, row_weights: Floats, n_members: int
) -> tuple[Floats, Floats]:
    """Weights (recipes, lengths) and variance ratios (recipes, lengths, D_out) of what to fit.

    Each candidate first gets the variance that held-out rows ask for. One member is then the best
    of them alone; for several, stacking sets their weights and the variances of their mixture.
    `slopes` (recipes, rows) turn log densities of warped targets into those of the user's.
    """
    _, n_recipes, n_lengths, n_rows, n_outputs = forecasts.shape
    errors, variances = forecasts.reshape(2, -1, n_rows, n_outputs)
    ratios = np.stack(
        [variance_ratio(e, v, row_weights) for e, v in zip(errors, variances, strict=True)]
    )
    if n_members == 1:
        scores = _scores(forecasts, row_weights)
        scores = (scores + (slopes @ row_weights / row_weights.sum())[:, None]).ravel()
        weights = np.where(np.arange(scores.size) == np.argmax(scores), 1.0, 0.0)
    else:
        weights, factor = stack_forecasts(
            errors,
            ratios[:, None] * variances,
            row_weights,
            log_slopes=np.repeat(slopes, n_lengths, axis=0),
        )
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
    # Lengths are sweeps over all rows: a minibatch is none.
    chosen = as_long_again and member.status is Status.EARLY_STOPPED and not task.stochastic
    lengths = (member.n_sweeps,) if chosen else ()
    return replace(task, start=member, lengths=lengths, chosen=chosen)


def _views(tasks: Sequence[Task]) -> list[int]:
    return [0 if task.recipe is None else task.recipe.view for task in tasks]


def _equally(outcomes: Sequence[Outcome], tasks: Sequence[Task]) -> Fitted:
    """The fits that there are, also after an interruption, all alike."""
    members = [outcome.result for outcome in outcomes]
    weights = equal_weights(len(members)) if members else np.empty(0)
    return Fitted(members, weights, _views(tasks[: len(members)]))


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
